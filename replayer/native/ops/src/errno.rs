//! Names and numbers of errors on Linux (asm-generic/errno-base.h, errno.h).

/// The highest number that Linux documents for programs.
pub(crate) const LAST: u8 = 133;

/// Numbers that code asks for by name.
#[allow(missing_docs, reason = "errno(3) says what they mean")]
pub mod numbers {
    pub const ENOENT: u16 = 2;
    pub const EAGAIN: u16 = 11;
    pub const EACCES: u16 = 13;
    pub const EEXIST: u16 = 17;
    pub const EXDEV: u16 = 18;
    pub const ENOTDIR: u16 = 20;
    pub const EISDIR: u16 = 21;
    pub const EINVAL: u16 = 22;
    pub const ENOTEMPTY: u16 = 39;
    pub const ELOOP: u16 = 40;
    pub const ESTALE: u16 = 116;
}

/// The number of a name such as `ENOENT`, or of strace's `ERRNO_524`.
#[must_use]
pub fn errno_number(name: &str) -> Option<u16> {
    match name {
        // Most failed calls are lookups of what is not there.
        "ENOENT" => return Some(numbers::ENOENT),
        "EWOULDBLOCK" => return errno_number("EAGAIN"),
        "EDEADLOCK" => return errno_number("EDEADLK"),
        "ENOTSUP" => return errno_number("EOPNOTSUPP"),
        _ => {}
    }
    if let Some(digits) = name.strip_prefix("ERRNO_") {
        return digits.parse().ok();
    }
    let at = NAMES.iter().skip(1).position(|known| *known == name)?;
    u16::try_from(at + 1).ok()
}

/// The name of a number; the more common one where two share it.
#[must_use]
pub fn errno_name(number: u16) -> &'static str {
    match NAMES.get(usize::from(number)) {
        Some(name) if number > 0 => name,
        _ => "EUNKNOWN",
    }
}

/// By number. 41 and 58 have no name.
const NAMES: &[&str] = &[
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
        assert_eq!(errno_number("ENOENT"), Some(2));
        assert_eq!(errno_number("EWOULDBLOCK"), Some(11));
        assert_eq!(errno_number("EOPNOTSUPP"), Some(95));
        assert_eq!(errno_name(95), "EOPNOTSUPP");
        assert_eq!(errno_number("ERRNO_524"), Some(524));
        assert_eq!(errno_number("ENOSUCHTHING"), None);
        assert_eq!(errno_number(""), None);
        assert_eq!(errno_name(11), "EAGAIN");
        assert_eq!(errno_name(0), "EUNKNOWN");
        assert_eq!(errno_name(9999), "EUNKNOWN");
        for number in 1..=u16::from(LAST) {
            assert_eq!(errno_number(errno_name(number)), Some(number));
        }
    }
}
