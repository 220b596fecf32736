//! The names of things that are timed and of the ways they end. No behaviour lives here.

macro_rules! ops {
    ($($variant:ident $name:literal),+ $(,)?) => {
        /// A timed call; its number is its index in [`OPS`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Op { $($variant),+ }

        /// Every op: first those of plan format 1, then those that only traces have, then what is no call: waiting for others.
        pub(crate) const OPS: &[&str] = &[$($name),+];

        impl Op {
            const ALL: &[Op] = &[$(Op::$variant),+];
        }
    };
}

ops! {
    Open "open", Close "close", Read "read", Pread "pread", PreadRandom "pread_random",
    Write "write", Append "append", Pwrite "pwrite", PwriteRandom "pwrite_random", Lseek "lseek",
    Fsync "fsync", Fdatasync "fdatasync", Fstat "fstat", Ftruncate "ftruncate",
    Fallocate "fallocate", Fchmod "fchmod", Fchown "fchown", Futimens "futimens", Flock "flock",
    FlockUnlock "flock_unlock", FcntlLock "fcntl_lock", FcntlUnlock "fcntl_unlock", Getdents "getdents", CopyFileRange "copy_file_range",
    Sendfile "sendfile", MmapRead "mmap_read", Stat "stat", Lstat "lstat", Access "access",
    Mkdir "mkdir", Rmdir "rmdir", Unlink "unlink", Rename "rename", Link "link",
    Symlink "symlink", Readlink "readlink", Truncate "truncate", Chmod "chmod", Chown "chown",
    Utimens "utimens", Getxattr "getxattr", Setxattr "setxattr", Removexattr "removexattr",
    Listxattr "listxattr",
    Readv "readv", Writev "writev", Preadv "preadv", Pwritev "pwritev", Fstatfs "fstatfs",
    Syncfs "syncfs", SyncFileRange "sync_file_range", Fadvise "fadvise", Readahead "readahead",
    Fgetxattr "fgetxattr", Fsetxattr "fsetxattr", Fremovexattr "fremovexattr",
    Flistxattr "flistxattr", Lock "lock", Fcntl "fcntl", Ioctl "ioctl", Mmap "mmap",
    Clone "clone", Splice "splice", Chdir "chdir", Statfs "statfs", Mknod "mknod",
    Lchown "lchown", Lutimens "lutimens", Lgetxattr "lgetxattr", Lsetxattr "lsetxattr",
    Lremovexattr "lremovexattr", Llistxattr "llistxattr",
    Until "until", Await "await",
}

/// How many ops the steps of a plan can have: the first ones.
const PLAN_OPS: usize = Op::Listxattr as usize + 1;

/// Every op, as named in plan format 1.
#[must_use]
pub fn plan_ops() -> &'static [&'static str] {
    OPS.get(..PLAN_OPS).unwrap_or(OPS)
}

impl Op {
    /// The op of a plan's step.
    pub(crate) fn of_name(name: &str) -> Option<Op> {
        Op::ALL
            .iter()
            .copied()
            .take(PLAN_OPS)
            .find(|op| op_name(*op as u8) == name)
    }
}

const OP_COUNT: u8 = Op::Await as u8 + 1;
const _: () = assert!(OPS.len() == OP_COUNT as usize);

/// Latency of a transaction: end − intended.
pub(crate) const TRANSACTION: u8 = OP_COUNT;
/// Service time of a transaction: end − start.
pub(crate) const SERVICE: u8 = OP_COUNT + 1;
/// Lag of a transaction: start − intended.
pub(crate) const LAG: u8 = OP_COUNT + 2;
/// Lag of an event of a replay at its recorded time: begin − intended.
pub(crate) const EVENT_LAG: u8 = OP_COUNT + 3;
/// How many different values `Sample::op` has.
pub(crate) const KINDS: usize = OPS.len() + 4;

/// The name of a sample's `op`.
pub(crate) fn op_name(op: u8) -> &'static str {
    match op {
        TRANSACTION => "transaction",
        SERVICE => "transaction.service",
        LAG => "transaction.lag",
        EVENT_LAG => "event.lag",
        other => OPS.get(usize::from(other)).copied().unwrap_or("unknown"),
    }
}

/// Outcome codes: 0 is `ok`, 1 to 133 are errno numbers, the rest are ours.
pub(crate) const OK: u8 = 0;
pub(crate) const LAST_ERRNO: u8 = 133;
/// Read less than the entry holds.
pub(crate) const SHORT: u8 = 134;
/// A transaction in which an op had an unexpected outcome.
pub(crate) const FAILED: u8 = 135;
/// A transaction that was cut off, or a call in it that our own signal interrupted.
pub(crate) const CANCELLED: u8 = 136;
/// An errno that Linux does not document for programs.
pub(crate) const UNKNOWN: u8 = 137;

/// A call of a replay that went well although it was recorded as an error, or that returned another number.
pub(crate) const DIVERGED: u8 = 138;
/// What was waited for did not come within its limit.
pub(crate) const UNMET: u8 = 139;

/// A read returned part of a write and not all of it (`verify`).
pub(crate) const TORN: u8 = 140;
/// A read returned data of another file, place or run.
pub(crate) const SWAPPED: u8 = 141;
/// A read returned nothing where something had been written.
pub(crate) const LOST: u8 = 142;
/// A read returned what was there before the last write.
pub(crate) const STALE: u8 = 143;

/// Whether a read returned something else than what was written: no step can expect that.
pub(crate) fn is_violation(outcome: u8) -> bool {
    (TORN..=STALE).contains(&outcome)
}

/// Whether an outcome may become another one when the call is made again: names come and go, locks are given back, contents grow.
pub(crate) fn may_change(outcome: u8) -> bool {
    const ENOENT: u8 = 2;
    const EAGAIN: u8 = 11;
    const EEXIST: u8 = 17;
    const ESTALE: u8 = 116;
    [OK, SHORT, ENOENT, EAGAIN, EEXIST, ESTALE].contains(&outcome)
}

/// The outcome code of an errno.
pub(crate) fn outcome_of_errno(errno: i32) -> u8 {
    u8::try_from(errno)
        .ok()
        .filter(|code| (1..=LAST_ERRNO).contains(code))
        .unwrap_or(UNKNOWN)
}

/// The name of an outcome code.
#[must_use]
pub fn outcome_name(code: u8) -> &'static str {
    match code {
        OK => "ok",
        SHORT => "SHORT",
        FAILED => "failed",
        CANCELLED => "cancelled",
        DIVERGED => "DIVERGED",
        UNMET => "UNMET",
        TORN => "TORN",
        SWAPPED => "SWAPPED",
        LOST => "LOST",
        STALE => "STALE",
        errno => ERRNO_NAMES
            .get(usize::from(errno))
            .copied()
            .unwrap_or("EUNKNOWN"),
    }
}

/// The outcome code of a name in `expect`.
pub(crate) fn outcome_of_name(name: &str) -> Option<u8> {
    match name {
        "ok" => Some(OK),
        "SHORT" => Some(SHORT),
        "UNMET" => Some(UNMET),
        "EWOULDBLOCK" => outcome_of_name("EAGAIN"),
        "ENOTSUP" => outcome_of_name("EOPNOTSUPP"),
        "EDEADLOCK" => outcome_of_name("EDEADLK"),
        _ => ERRNO_NAMES
            .iter()
            .skip(1)
            .position(|known| *known == name && !name.is_empty())
            .and_then(|index| u8::try_from(index + 1).ok()),
    }
}

/// Linux, asm-generic numbers (errno-base.h, errno.h).
const ERRNO_NAMES: &[&str] = &[
    "ok",
    "EPERM",
    "ENOENT",
    "ESRCH",
    "EINTR",
    "EIO",
    "ENXIO",
    "E2BIG",
    "ENOEXEC",
    "EBADF",
    "ECHILD",
    "EAGAIN",
    "ENOMEM",
    "EACCES",
    "EFAULT",
    "ENOTBLK",
    "EBUSY",
    "EEXIST",
    "EXDEV",
    "ENODEV",
    "ENOTDIR",
    "EISDIR",
    "EINVAL",
    "ENFILE",
    "EMFILE",
    "ENOTTY",
    "ETXTBSY",
    "EFBIG",
    "ENOSPC",
    "ESPIPE",
    "EROFS",
    "EMLINK",
    "EPIPE",
    "EDOM",
    "ERANGE",
    "EDEADLK",
    "ENAMETOOLONG",
    "ENOLCK",
    "ENOSYS",
    "ENOTEMPTY",
    "ELOOP",
    "E41",
    "ENOMSG",
    "EIDRM",
    "ECHRNG",
    "EL2NSYNC",
    "EL3HLT",
    "EL3RST",
    "ELNRNG",
    "EUNATCH",
    "ENOCSI",
    "EL2HLT",
    "EBADE",
    "EBADR",
    "EXFULL",
    "ENOANO",
    "EBADRQC",
    "EBADSLT",
    "E58",
    "EBFONT",
    "ENOSTR",
    "ENODATA",
    "ETIME",
    "ENOSR",
    "ENONET",
    "ENOPKG",
    "EREMOTE",
    "ENOLINK",
    "EADV",
    "ESRMNT",
    "ECOMM",
    "EPROTO",
    "EMULTIHOP",
    "EDOTDOT",
    "EBADMSG",
    "EOVERFLOW",
    "ENOTUNIQ",
    "EBADFD",
    "EREMCHG",
    "ELIBACC",
    "ELIBBAD",
    "ELIBSCN",
    "ELIBMAX",
    "ELIBEXEC",
    "EILSEQ",
    "ERESTART",
    "ESTRPIPE",
    "EUSERS",
    "ENOTSOCK",
    "EDESTADDRREQ",
    "EMSGSIZE",
    "EPROTOTYPE",
    "ENOPROTOOPT",
    "EPROTONOSUPPORT",
    "ESOCKTNOSUPPORT",
    "EOPNOTSUPP",
    "EPFNOSUPPORT",
    "EAFNOSUPPORT",
    "EADDRINUSE",
    "EADDRNOTAVAIL",
    "ENETDOWN",
    "ENETUNREACH",
    "ENETRESET",
    "ECONNABORTED",
    "ECONNRESET",
    "ENOBUFS",
    "EISCONN",
    "ENOTCONN",
    "ESHUTDOWN",
    "ETOOMANYREFS",
    "ETIMEDOUT",
    "ECONNREFUSED",
    "EHOSTDOWN",
    "EHOSTUNREACH",
    "EALREADY",
    "EINPROGRESS",
    "ESTALE",
    "EUCLEAN",
    "ENOTNAM",
    "ENAVAIL",
    "EISNAM",
    "EREMOTEIO",
    "EDQUOT",
    "ENOMEDIUM",
    "EMEDIUMTYPE",
    "ECANCELED",
    "ENOKEY",
    "EKEYEXPIRED",
    "EKEYREVOKED",
    "EKEYREJECTED",
    "EOWNERDEAD",
    "ENOTRECOVERABLE",
    "ERFKILL",
    "EHWPOISON",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(Op::of_name("stat"), Some(Op::Stat));
        assert_eq!(op_name(Op::Listxattr as u8), "listxattr");
        assert_eq!(op_name(LAG), "transaction.lag");
        assert_eq!(op_name(EVENT_LAG), "event.lag");
        assert_eq!(Op::of_name("readv"), None);
        assert_eq!(plan_ops().len(), 44);
        assert_eq!(Op::of_name("flock_unlock"), Some(Op::FlockUnlock));
        assert_eq!(op_name(Op::Readv as u8), "readv");
        assert_eq!(op_name(Op::Until as u8), "until");
        assert_eq!(Op::of_name("until"), None);
        for name in ["ok", "SHORT", "ENOENT", "EAGAIN", "EEXIST", "ESTALE"] {
            assert!(outcome_of_name(name).is_some_and(may_change), "{name}");
        }
        assert!(!may_change(5) && !may_change(UNMET));
        assert_eq!(outcome_of_name("ENOENT"), Some(2));
        assert_eq!(outcome_name(116), "ESTALE");
        assert_eq!(outcome_name(outcome_of_errno(524)), "EUNKNOWN");
        assert_eq!(outcome_of_name(""), None);
        for code in 1..=LAST_ERRNO {
            let name = outcome_name(code);
            assert!(
                name.is_empty() || outcome_of_name(name) == Some(code),
                "{name}"
            );
        }
    }
}
