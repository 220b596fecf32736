//! The table of ops: every call that a plan or a trace can ask for, with what it does.
//!
//! Other lists of ops, in Rust and in Python, are derived from this one. No call is made here.

mod errno;

pub use errno::{errno_name, errno_number, numbers};

use errno::numbers::{EAGAIN, EEXIST, ENOENT, ESTALE};

/// What an op does to the tree: what ordering, labels and inference ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Looks a name up.
    Look,
    /// Looks a name up, and changes what it means.
    Alter,
    /// Changes attributes of what a name means.
    Attribute,
    /// Uses a descriptor without changing the file.
    Use,
    /// Reads data.
    Read,
    /// Writes data.
    Write,
    /// Changes attributes through a descriptor.
    Mark,
    /// Ends a descriptor, or a thread.
    End,
}

/// What an op does with the contents of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Nothing.
    None,
    /// Its bytes come from a file.
    Reads,
    /// Its bytes go into a file.
    Writes,
    /// Its bytes come from one file and go into another one.
    Copies,
    /// It changes contents, and moves no bytes through the client.
    Alters,
}

/// A fact about an op that is so or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "the words of the table")]
pub enum Flag {
    /// Steps of plans can have it (plan format 1).
    plan,
    /// Events of traces can have it (trace format 1).
    trace,
    /// No call: waiting for others.
    wait,
    /// No call of the recorded program: replays make it between the timed ones.
    untimed,
    /// A client can answer it from its caches.
    cached,
    /// What was written is stored when it returns.
    flushes,
    /// It makes what was not there. An open may.
    makes,
    /// It returns a length, or a place, that the file's contents decide.
    length,
    /// It moves the offset of its description.
    moves,
    /// A symlink in the last place is not followed.
    nofollow,
    /// It is about extended attributes: it fails when an attribute is not there.
    xattr,
    /// File systems need not have it.
    optional,
    /// A step of a plan makes it again until it returns 0.
    to_end,
    /// It returns 0 where there is no more: at the end of a file or folder.
    ends,
}

impl Flag {
    /// Every flag.
    pub const ALL: &'static [Flag] = &[
        Flag::plan,
        Flag::trace,
        Flag::wait,
        Flag::untimed,
        Flag::cached,
        Flag::flushes,
        Flag::makes,
        Flag::length,
        Flag::moves,
        Flag::nofollow,
        Flag::xattr,
        Flag::optional,
        Flag::to_end,
        Flag::ends,
    ];
}

macro_rules! ops {
    ($($variant:ident $name:literal $class:ident $contents:ident [$($flag:ident)*] $(as $same:literal)?,)+) => {
        /// A call; its number is its index in [`Op::ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the name says it")]
        pub enum Op { $($variant),+ }

        impl Op {
            /// Every op, in the order of its number.
            pub const ALL: &'static [Op] = &[$(Op::$variant),+];

            /// Its name in plans, tables and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Op::$variant => $name),+ }
            }

            /// What it does to the tree.
            #[must_use]
            pub const fn class(self) -> Class {
                match self { $(Op::$variant => Class::$class),+ }
            }

            /// What it does with contents.
            #[must_use]
            pub const fn contents(self) -> Contents {
                match self { $(Op::$variant => Contents::$contents),+ }
            }

            /// The op that does the same to a mount, and by whose name both are compared: itself for most.
            #[must_use]
            pub const fn same_as(self) -> &'static str {
                match self { $(Op::$variant => first_of(&[$($same,)? $name])),+ }
            }

            const fn flags(self) -> u16 {
                match self { $(Op::$variant => 0 $(| 1 << Flag::$flag as u16)*),+ }
            }
        }
    };
}

const fn first_of(names: &'static [&'static str]) -> &'static str {
    match names {
        [first, ..] => first,
        [] => "",
    }
}

// First what plans can have, then what only traces have, then what is no call of a program.
#[rustfmt::skip]
ops! {
    Open "open" Look None [plan trace cached makes],
    Close "close" End None [plan trace],
    Read "read" Read Reads [plan trace cached moves length ends],
    Pread "pread" Read Reads [plan trace cached length ends],
    PreadRandom "pread_random" Read Reads [plan cached length ends] as "pread",
    Write "write" Write Writes [plan trace moves],
    Append "append" Write Writes [plan] as "write",
    Pwrite "pwrite" Write Writes [plan trace],
    PwriteRandom "pwrite_random" Write Writes [plan] as "pwrite",
    Lseek "lseek" Use None [plan trace moves length],
    Fsync "fsync" Use None [plan trace flushes],
    Fdatasync "fdatasync" Use None [plan trace flushes],
    Fstat "fstat" Use None [plan trace],
    Fiemap "fiemap" Use None [plan trace optional],
    Ftruncate "ftruncate" Write Alters [plan trace],
    Fallocate "fallocate" Write Alters [plan trace],
    Fchmod "fchmod" Mark None [plan trace],
    Fchown "fchown" Mark None [plan trace],
    Futimens "futimens" Mark None [plan trace],
    Flock "flock" Use None [plan trace],
    FlockUnlock "flock_unlock" Use None [plan] as "flock",
    FcntlLock "fcntl_lock" Use None [plan],
    FcntlUnlock "fcntl_unlock" Use None [plan] as "fcntl_lock",
    Getdents "getdents" Read None [plan trace cached moves length ends],
    CopyFileRange "copy_file_range" Write Copies [plan trace to_end ends],
    Sendfile "sendfile" Read Reads [plan trace cached to_end ends],
    MmapRead "mmap_read" Read Reads [plan trace cached],
    Stat "stat" Look None [plan trace cached],
    Lstat "lstat" Look None [plan trace cached nofollow],
    Access "access" Look None [plan trace cached],
    Mkdir "mkdir" Alter None [plan trace makes nofollow],
    Rmdir "rmdir" Alter None [plan trace nofollow],
    Unlink "unlink" Alter None [plan trace nofollow],
    Rename "rename" Alter None [plan trace nofollow],
    Link "link" Alter None [plan trace makes nofollow],
    Symlink "symlink" Alter None [plan trace makes nofollow],
    Readlink "readlink" Look None [plan trace cached nofollow],
    Truncate "truncate" Attribute Alters [plan trace],
    Chmod "chmod" Attribute None [plan trace],
    Chown "chown" Attribute None [plan trace],
    Utimens "utimens" Attribute None [plan trace],
    Getxattr "getxattr" Look None [plan trace cached xattr],
    Setxattr "setxattr" Attribute None [plan trace xattr],
    Removexattr "removexattr" Attribute None [plan trace xattr],
    Listxattr "listxattr" Look None [plan trace cached xattr],
    Readv "readv" Read Reads [trace cached moves length ends] as "read",
    Writev "writev" Write Writes [trace moves] as "write",
    Preadv "preadv" Read Reads [trace cached length ends] as "pread",
    Pwritev "pwritev" Write Writes [trace] as "pwrite",
    Fstatfs "fstatfs" Use None [trace],
    Syncfs "syncfs" Use None [trace flushes],
    SyncFileRange "sync_file_range" Use None [trace],
    Fadvise "fadvise" Use None [trace],
    Readahead "readahead" Use None [trace],
    Fgetxattr "fgetxattr" Use None [trace xattr] as "getxattr",
    Fsetxattr "fsetxattr" Mark None [trace xattr] as "setxattr",
    Fremovexattr "fremovexattr" Mark None [trace xattr] as "removexattr",
    Flistxattr "flistxattr" Use None [trace xattr] as "listxattr",
    Lock "lock" Use None [trace] as "fcntl_lock",
    Fcntl "fcntl" Use None [trace optional],
    Ioctl "ioctl" Use None [trace optional],
    Mmap "mmap" Read None [trace],
    Clone "clone" Write Alters [trace optional],
    Splice "splice" Read Copies [trace ends],
    Chdir "chdir" Look None [trace],
    Statfs "statfs" Look None [trace],
    Mknod "mknod" Alter None [trace makes nofollow],
    Lchown "lchown" Attribute None [trace nofollow] as "chown",
    Lutimens "lutimens" Attribute None [trace nofollow] as "utimens",
    Lgetxattr "lgetxattr" Look None [trace nofollow xattr cached] as "getxattr",
    Lsetxattr "lsetxattr" Attribute None [trace nofollow xattr] as "setxattr",
    Lremovexattr "lremovexattr" Attribute None [trace nofollow xattr] as "removexattr",
    Llistxattr "llistxattr" Look None [trace nofollow xattr cached] as "listxattr",
    Until "until" Use None [wait],
    Await "await" Use None [wait],
    CloseDup "close_dup" Use None [trace] as "close",
    CloseExit "close_exit" End None [trace untimed],
    Exit "exit" End None [trace untimed],
    Inherit "inherit" Look None [trace untimed],
    Meanwhile "meanwhile" Use None [trace untimed],
}

impl Op {
    /// Whether a fact holds.
    #[must_use]
    pub const fn is(self, flag: Flag) -> bool {
        self.flags() & (1 << flag as u16) != 0
    }

    /// Whether a symlink in the last place is followed.
    #[must_use]
    pub const fn follows(self) -> bool {
        !self.is(Flag::nofollow)
    }

    /// Whether it moves the offset of its description.
    #[must_use]
    pub const fn moves(self) -> bool {
        self.is(Flag::moves)
    }

    /// The op of a plan's step.
    #[must_use]
    pub fn of_plan(name: &str) -> Option<Op> {
        Op::find(name, Flag::plan)
    }

    /// The op of a trace's event.
    #[must_use]
    pub fn of_trace(name: &str) -> Option<Op> {
        Op::find(name, Flag::trace)
    }

    fn find(name: &str, flag: Flag) -> Option<Op> {
        let mut with = Op::with(flag);
        with.find(|op| op.name() == name)
    }

    /// The ops for which a fact holds.
    pub fn with(flag: Flag) -> impl Iterator<Item = Op> {
        Op::ALL.iter().copied().filter(move |op| op.is(flag))
    }
}

// The ways a call ends: codes 1 to 133 are errno numbers, the others are ours.

/// It went well.
pub const OK: u8 = 0;
/// The last code that is an errno.
pub const LAST_ERRNO: u8 = crate::errno::LAST;
/// Read less than the entry holds.
pub const SHORT: u8 = 134;
/// A transaction in which an op had an unexpected outcome.
pub const FAILED: u8 = 135;
/// A transaction that was cut off, or a call in it that our own signal interrupted.
pub const CANCELLED: u8 = 136;
/// An errno that Linux does not document for programs.
pub const UNKNOWN: u8 = 137;

/// A call of a replay that went well although it was recorded as an error, or that returned another number.
pub const DIVERGED: u8 = 138;
/// What was waited for did not come within its limit.
pub const UNMET: u8 = 139;

/// A read returned part of a write and not all of it (`verify`).
pub const TORN: u8 = 140;
/// A read returned data of another file, place or run.
pub const SWAPPED: u8 = 141;
/// A read returned nothing where something had been written.
pub const LOST: u8 = 142;
/// A read returned what was there before the last write.
pub const STALE: u8 = 143;

/// A call that moves data went well and moved none: it found the end of the file or of the folder.
pub const END: u8 = 144;

/// Whether a read returned something else than what was written: no step can expect that.
#[must_use]
pub fn is_violation(outcome: u8) -> bool {
    (TORN..=STALE).contains(&outcome)
}

/// Whether an outcome may become another one when the call is made again: names come and go, locks are given back, contents grow.
#[must_use]
pub fn may_change(outcome: u8) -> bool {
    [OK, SHORT].contains(&outcome) || [ENOENT, EAGAIN, EEXIST, ESTALE].contains(&u16::from(outcome))
}

/// The outcome code of an errno.
#[must_use]
pub fn outcome_of_errno(errno: i32) -> u8 {
    u8::try_from(errno)
        .ok()
        .filter(|code| (1..=LAST_ERRNO).contains(code))
        .unwrap_or(UNKNOWN)
}

/// The name of an outcome code.
#[must_use]
pub fn outcome_name(code: u8) -> &'static str {
    OURS.iter()
        .find(|(_, known)| *known == code)
        .map_or_else(|| errno_name(u16::from(code)), |(name, _)| name)
}

/// The outcome code of a name in `expect`.
#[must_use]
pub fn outcome_of_name(name: &str) -> Option<u8> {
    match OURS.iter().find(|(known, _)| *known == name) {
        Some((_, code)) => [OK, SHORT, UNMET].contains(code).then_some(*code),
        None => errno_number(name)
            .and_then(|number| u8::try_from(number).ok())
            .filter(|code| *code <= LAST_ERRNO),
    }
}

/// Outcomes that are no errno.
const OURS: [(&str, u8); 11] = [
    ("ok", OK),
    ("SHORT", SHORT),
    ("failed", FAILED),
    ("cancelled", CANCELLED),
    ("DIVERGED", DIVERGED),
    ("UNMET", UNMET),
    ("TORN", TORN),
    ("SWAPPED", SWAPPED),
    ("LOST", LOST),
    ("STALE", STALE),
    ("END", END),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_op() {
        for op in Op::with(Flag::plan) {
            assert_eq!(Op::of_plan(op.name()), Some(op));
        }
        for op in Op::with(Flag::trace) {
            assert_eq!(Op::of_trace(op.name()), Some(op));
        }
        assert_eq!(Op::of_trace("fork"), None);
        assert_eq!(Op::of_plan("readv"), None);
        assert_eq!(Op::of_trace("pread_random"), None);
        assert_eq!(Op::with(Flag::plan).count(), 45);
    }

    #[test]
    fn every_op_is_compared_by_the_name_of_an_op() {
        for op in Op::ALL {
            assert!(
                Op::ALL.iter().any(|other| other.name() == op.same_as()),
                "{op:?}"
            );
        }
    }

    #[test]
    fn names_and_codes_agree() {
        for name in ["ok", "SHORT", "ENOENT", "EAGAIN", "EEXIST", "ESTALE"] {
            assert!(outcome_of_name(name).is_some_and(may_change), "{name}");
        }
        assert!(!may_change(5) && !may_change(UNMET));
        assert_eq!(outcome_of_name("ENOENT"), Some(2));
        assert_eq!(outcome_name(116), "ESTALE");
        assert_eq!(outcome_name(outcome_of_errno(524)), "EUNKNOWN");
        assert_eq!(outcome_of_name(""), None);
        assert_eq!(outcome_of_name("TORN"), None);
        for code in 1..=LAST_ERRNO {
            assert_eq!(outcome_of_name(outcome_name(code)), Some(code));
        }
    }
}
