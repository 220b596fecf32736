//! Names and numbers of errors on Linux (errno.h).

/// The number of a name such as `ENOENT`.
pub(crate) fn number_of(name: &[u8]) -> Option<u16> {
    // Most failed calls are lookups of what is not there.
    if name == b"ENOENT" {
        return Some(ENOENT);
    }
    if let Some(digits) = name.strip_prefix(b"ERRNO_") {
        return crate::bytes::number(digits).and_then(|value| u16::try_from(value).ok());
    }
    NAMES
        .binary_search_by(|(known, _)| known.as_bytes().cmp(name))
        .ok()
        .and_then(|at| NAMES.get(at))
        .map(|&(_, number)| number)
}

/// The name of a number; the more common one where two share it.
pub(crate) fn name_of(number: u16) -> &'static str {
    NAMES
        .iter()
        .filter(|&&(name, _)| !ALIASES.contains(&name))
        .find(|&&(_, known)| known == number)
        .map_or("EUNKNOWN", |&(name, _)| name)
}

const ALIASES: [&str; 3] = ["EWOULDBLOCK", "EDEADLOCK", "ENOTSUP"];

#[rustfmt::skip]
const NAMES: [(&str, u16); 134] = [
    ("E2BIG", 7), ("EACCES", 13), ("EADDRINUSE", 98), ("EADDRNOTAVAIL", 99), ("EADV", 68),
    ("EAFNOSUPPORT", 97), ("EAGAIN", 11), ("EALREADY", 114), ("EBADE", 52), ("EBADF", 9),
    ("EBADFD", 77), ("EBADMSG", 74), ("EBADR", 53), ("EBADRQC", 56), ("EBADSLT", 57),
    ("EBFONT", 59), ("EBUSY", 16), ("ECANCELED", 125), ("ECHILD", 10), ("ECHRNG", 44),
    ("ECOMM", 70), ("ECONNABORTED", 103), ("ECONNREFUSED", 111), ("ECONNRESET", 104),
    ("EDEADLK", 35), ("EDEADLOCK", 35), ("EDESTADDRREQ", 89), ("EDOM", 33), ("EDOTDOT", 73),
    ("EDQUOT", 122), ("EEXIST", 17), ("EFAULT", 14), ("EFBIG", 27), ("EHOSTDOWN", 112),
    ("EHOSTUNREACH", 113), ("EHWPOISON", 133), ("EIDRM", 43), ("EILSEQ", 84), ("EINPROGRESS", 115),
    ("EINTR", 4), ("EINVAL", 22), ("EIO", 5), ("EISCONN", 106), ("EISDIR", 21), ("EISNAM", 120),
    ("EKEYEXPIRED", 127), ("EKEYREJECTED", 129), ("EKEYREVOKED", 128), ("EL2HLT", 51),
    ("EL2NSYNC", 45), ("EL3HLT", 46), ("EL3RST", 47), ("ELIBACC", 79), ("ELIBBAD", 80),
    ("ELIBEXEC", 83), ("ELIBMAX", 82), ("ELIBSCN", 81), ("ELNRNG", 48), ("ELOOP", 40),
    ("EMEDIUMTYPE", 124), ("EMFILE", 24), ("EMLINK", 31), ("EMSGSIZE", 90), ("EMULTIHOP", 72),
    ("ENAMETOOLONG", 36), ("ENAVAIL", 119), ("ENETDOWN", 100), ("ENETRESET", 102),
    ("ENETUNREACH", 101), ("ENFILE", 23), ("ENOANO", 55), ("ENOBUFS", 105), ("ENOCSI", 50),
    ("ENODATA", 61), ("ENODEV", 19), ("ENOENT", 2), ("ENOEXEC", 8), ("ENOKEY", 126), ("ENOLCK", 37),
    ("ENOLINK", 67), ("ENOMEDIUM", 123), ("ENOMEM", 12), ("ENOMSG", 42), ("ENONET", 64),
    ("ENOPKG", 65), ("ENOPROTOOPT", 92), ("ENOSPC", 28), ("ENOSR", 63), ("ENOSTR", 60),
    ("ENOSYS", 38), ("ENOTBLK", 15), ("ENOTCONN", 107), ("ENOTDIR", 20), ("ENOTEMPTY", 39),
    ("ENOTNAM", 118), ("ENOTRECOVERABLE", 131), ("ENOTSOCK", 88), ("ENOTSUP", 95), ("ENOTTY", 25),
    ("ENOTUNIQ", 76), ("ENXIO", 6), ("EOPNOTSUPP", 95), ("EOVERFLOW", 75), ("EOWNERDEAD", 130),
    ("EPERM", 1), ("EPFNOSUPPORT", 96), ("EPIPE", 32), ("EPROTO", 71), ("EPROTONOSUPPORT", 93),
    ("EPROTOTYPE", 91), ("ERANGE", 34), ("EREMCHG", 78), ("EREMOTE", 66), ("EREMOTEIO", 121),
    ("ERESTART", 85), ("ERFKILL", 132), ("EROFS", 30), ("ESHUTDOWN", 108), ("ESOCKTNOSUPPORT", 94),
    ("ESPIPE", 29), ("ESRCH", 3), ("ESRMNT", 69), ("ESTALE", 116), ("ESTRPIPE", 86), ("ETIME", 62),
    ("ETIMEDOUT", 110), ("ETOOMANYREFS", 109), ("ETXTBSY", 26), ("EUCLEAN", 117), ("EUNATCH", 49),
    ("EUSERS", 87), ("EWOULDBLOCK", 11), ("EXDEV", 18), ("EXFULL", 54),
];

pub(crate) const ENOENT: u16 = 2;
pub(crate) const EAGAIN: u16 = 11;
pub(crate) const EACCES: u16 = 13;
pub(crate) const EEXIST: u16 = 17;
pub(crate) const EXDEV: u16 = 18;
pub(crate) const ENOTDIR: u16 = 20;
pub(crate) const EISDIR: u16 = 21;
pub(crate) const EINVAL: u16 = 22;
pub(crate) const ENOTEMPTY: u16 = 39;
pub(crate) const ELOOP: u16 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(number_of(b"ENOENT"), Some(ENOENT));
        assert_eq!(number_of(b"EWOULDBLOCK"), Some(11));
        assert_eq!(number_of(b"EOPNOTSUPP"), Some(95));
        assert_eq!(name_of(95), "EOPNOTSUPP");
        assert_eq!(number_of(b"ERRNO_5"), Some(5));
        assert_eq!(number_of(b"ENOSUCHTHING"), None);
        assert_eq!(name_of(11), "EAGAIN");
        assert_eq!(name_of(9999), "EUNKNOWN");
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
