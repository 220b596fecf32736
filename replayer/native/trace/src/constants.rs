//! Names of constants as strace prints them, and their values on Linux x86-64.

use crate::bytes::{take_number, take_radix};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// The value of `O_RDONLY|O_CLOEXEC`, `S_IFREG|0644`, `0x80000` or `0600`.
///
/// None where a part is neither a known name nor a number (a name of no consequence is 0 only where `lenient_flags` is
/// asked for).
pub(crate) fn flags(text: &[u8]) -> Option<i64> {
    let mut value = 0;
    for part in text.split(|&byte| byte == b'|') {
        value |= constant(part)?;
    }
    Some(value)
}

/// As `flags`, with unknown names counted as 0.
pub(crate) fn lenient_flags(text: &[u8]) -> i64 {
    text.split(|&byte| byte == b'|')
        .filter_map(constant)
        .fold(0, |all, part| all | part)
}

fn by_name() -> &'static FxHashMap<&'static [u8], i64> {
    static BY_NAME: OnceLock<FxHashMap<&'static [u8], i64>> = OnceLock::new();
    BY_NAME.get_or_init(|| {
        NAMES
            .iter()
            .map(|&(name, value)| (name.as_bytes(), value))
            .collect()
    })
}

fn constant(part: &[u8]) -> Option<i64> {
    let part = part.trim_ascii();
    match part {
        // What most lines hold needs no search.
        [digit @ b'0'..=b'9'] => return Some(i64::from(digit - b'0')),
        b"O_RDONLY" => return Some(0),
        b"S_IFREG" => return Some(S_IFREG),
        _ => {}
    }
    if let Some(rest) = part.strip_prefix(b"0")
        && rest.first().is_some_and(u8::is_ascii_digit)
    {
        return take_radix(rest, 8).map(|(value, _)| value);
    }
    if part.first().is_some_and(u8::is_ascii_digit) {
        return take_number(part).map(|(value, _)| value);
    }
    by_name().get(part).copied()
}

pub(crate) const O_ACCMODE: i64 = 0x3;
pub(crate) const O_CREAT: i64 = 0x40;
pub(crate) const O_EXCL: i64 = 0x80;
pub(crate) const O_TRUNC: i64 = 0x200;
pub(crate) const O_APPEND: i64 = 0x400;
pub(crate) const O_DIRECTORY: i64 = 0x1_0000;
pub(crate) const O_NOFOLLOW: i64 = 0x2_0000;
pub(crate) const O_CLOEXEC: i64 = 0x8_0000;
pub(crate) const O_RDWR: i64 = 0x2;
pub(crate) const O_TMPFILE: i64 = 0x41_0000;
pub(crate) const AT_SYMLINK_NOFOLLOW: i64 = 0x100;
pub(crate) const AT_REMOVEDIR: i64 = 0x200;
pub(crate) const AT_SYMLINK_FOLLOW: i64 = 0x400;
pub(crate) const AT_EMPTY_PATH: i64 = 0x1000;
pub(crate) const CLONE_FS: i64 = 0x200;
pub(crate) const CLONE_FILES: i64 = 0x400;
pub(crate) const CLONE_VFORK: i64 = 0x4000;
pub(crate) const CLONE_VM: i64 = 0x100;
pub(crate) const CLONE_THREAD: i64 = 0x1_0000;
pub(crate) const CLONE_NEWNS: i64 = 0x2_0000;
pub(crate) const CLONE_NEWUSER: i64 = 0x1000_0000;
pub(crate) const CLONE_SYSVSEM: i64 = 0x4_0000;
pub(crate) const CLOSE_RANGE_UNSHARE: i64 = 0x2;
pub(crate) const CLOSE_RANGE_CLOEXEC: i64 = 0x4;
pub(crate) const F_SETLK: i64 = 0x6;
pub(crate) const F_SETLKW: i64 = 0x7;
pub(crate) const F_OFD_SETLK: i64 = 0x25;
pub(crate) const F_OFD_SETLKW: i64 = 0x26;
pub(crate) const SEEK_END: i64 = 0x2;
pub(crate) const SEEK_DATA: i64 = 0x3;
pub(crate) const SEEK_HOLE: i64 = 0x4;
/// Kinds of fcntl locks, as the tables have them.
pub(crate) const F_RDLCK: i64 = 0;
pub(crate) const F_UNLCK: i64 = 2;
pub(crate) const LOCK_NB: i64 = 0x4;
pub(crate) const LOCK_UN: i64 = 0x8;
pub(crate) const LOCK_SH: i64 = 0x1;
pub(crate) const RWF_APPEND: i64 = 0x10;
pub(crate) const RWF_NOAPPEND: i64 = 0x20;
pub(crate) const MAP_ANONYMOUS: i64 = 0x20;
pub(crate) const FALLOC_FL_KEEP_SIZE: i64 = 0x1;
pub(crate) const RENAME_NOREPLACE: i64 = 0x1;
pub(crate) const RENAME_EXCHANGE: i64 = 0x2;
pub(crate) const X_OK: i64 = 1;
pub(crate) const S_IFLNK: i64 = 0xa000;
pub(crate) const S_IFREG: i64 = 0x8000;
pub(crate) const S_IFSOCK: i64 = 0xc000;
pub(crate) const S_IFDIR: i64 = 0x4000;
pub(crate) const S_IFMT: i64 = 0xf000;

#[rustfmt::skip]
const NAMES: [(&str, i64); 166] = [
    ("AT_EACCESS", 0x200), ("AT_EMPTY_PATH", 0x1000), ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_RECURSIVE", 0x8000), ("AT_REMOVEDIR", 0x200), ("AT_STATX_DONT_SYNC", 0x4000),
    ("AT_STATX_FORCE_SYNC", 0x2000), ("AT_STATX_SYNC_AS_STAT", 0x0), ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_SYMLINK_NOFOLLOW", 0x100), ("CLONE_FILES", 0x400), ("CLONE_FS", 0x200),
    ("CLONE_NEWNS", 0x2_0000), ("CLONE_NEWUSER", 0x1000_0000), ("CLONE_PARENT", 0x8000), ("CLONE_PIDFD", 0x1000),
    ("CLONE_PTRACE", 0x2000), ("CLONE_SETTLS", 0x8_0000), ("CLONE_SIGHAND", 0x800),
    ("CLONE_SYSVSEM", 0x4_0000), ("CLONE_THREAD", 0x1_0000), ("CLONE_VFORK", 0x4000),
    ("CLONE_VM", 0x100), ("CLOSE_RANGE_CLOEXEC", 0x4), ("CLOSE_RANGE_UNSHARE", 0x2),
    ("FALLOC_FL_COLLAPSE_RANGE", 0x8), ("FALLOC_FL_INSERT_RANGE", 0x20),
    ("FALLOC_FL_KEEP_SIZE", 0x1), ("FALLOC_FL_NO_HIDE_STALE", 0x4), ("FALLOC_FL_PUNCH_HOLE", 0x2),
    ("FALLOC_FL_UNSHARE_RANGE", 0x40), ("FALLOC_FL_ZERO_RANGE", 0x10), ("FASYNC", 0x2000),
    ("FD_CLOEXEC", 0x1), ("F_ADD_SEALS", 0x409), ("F_DUPFD", 0x0), ("F_DUPFD_CLOEXEC", 0x406),
    ("F_GETFD", 0x1), ("F_GETFL", 0x3), ("F_GETLEASE", 0x401), ("F_GETLK", 0x5), ("F_GETLK64", 0xc),
    ("F_GETOWN", 0x9), ("F_GETOWN_EX", 0x10), ("F_GETPIPE_SZ", 0x408), ("F_GETSIG", 0xb),
    ("F_GET_RW_HINT", 0x40b), ("F_GET_SEALS", 0x40a), ("F_NOTIFY", 0x402), ("F_OFD_GETLK", 0x24),
    ("F_OFD_SETLK", 0x25), ("F_OFD_SETLKW", 0x26), ("F_OK", 0x0), ("F_RDLCK", 0x0),
    ("F_SETFD", 0x2), ("F_SETFL", 0x4), ("F_SETLEASE", 0x400), ("F_SETLK", 0x6), ("F_SETLK64", 0xd),
    ("F_SETLKW", 0x7), ("F_SETLKW64", 0xe), ("F_SETOWN", 0x8), ("F_SETOWN_EX", 0xf),
    ("F_SETPIPE_SZ", 0x407), ("F_SETSIG", 0xa), ("F_SET_RW_HINT", 0x40c), ("F_UNLCK", 0x2),
    ("F_WRLCK", 0x1), ("LOCK_EX", 0x2), ("LOCK_MAND", 0x20), ("LOCK_NB", 0x4), ("LOCK_READ", 0x40),
    ("LOCK_SH", 0x1), ("LOCK_UN", 0x8), ("LOCK_WRITE", 0x80), ("MAP_ANONYMOUS", 0x20),
    ("MAP_DENYWRITE", 0x800), ("MAP_FIXED", 0x10), ("MAP_LOCKED", 0x2000),
    ("MAP_NONBLOCK", 0x1_0000), ("MAP_NORESERVE", 0x4000), ("MAP_POPULATE", 0x8000),
    ("MAP_PRIVATE", 0x2), ("MAP_SHARED", 0x1), ("MAP_SHARED_VALIDATE", 0x3),
    ("MAP_STACK", 0x2_0000), ("MAP_SYNC", 0x8_0000), ("O_ACCMODE", 0x3),
    ("O_APPEND", 0x400), ("O_ASYNC", 0x2000), ("O_CLOEXEC", 0x8_0000), ("O_CREAT", 0x40),
    ("O_DIRECT", 0x4000), ("O_DIRECTORY", 0x1_0000), ("O_DSYNC", 0x1000), ("O_EXCL", 0x80),
    ("O_LARGEFILE", 0x8000), ("O_NDELAY", 0x800), ("O_NOATIME", 0x4_0000), ("O_NOCTTY", 0x100),
    ("O_NOFOLLOW", 0x2_0000), ("O_NONBLOCK", 0x800), ("O_PATH", 0x20_0000), ("O_RDONLY", 0x0),
    ("O_RDWR", 0x2), ("O_SYNC", 0x10_1000), ("O_TMPFILE", 0x41_0000), ("O_TRUNC", 0x200),
    ("O_WRONLY", 0x1), ("POSIX_FADV_DONTNEED", 0x4), ("POSIX_FADV_NOREUSE", 0x5),
    ("POSIX_FADV_NORMAL", 0x0), ("POSIX_FADV_RANDOM", 0x1), ("POSIX_FADV_SEQUENTIAL", 0x2),
    ("POSIX_FADV_WILLNEED", 0x3), ("PROT_EXEC", 0x4), ("PROT_NONE", 0x0), ("PROT_READ", 0x1),
    ("PROT_WRITE", 0x2), ("RENAME_EXCHANGE", 0x2), ("RENAME_NOREPLACE", 0x1),
    ("RENAME_WHITEOUT", 0x4), ("RESOLVE_BENEATH", 0x8), ("RESOLVE_CACHED", 0x20),
    ("RESOLVE_IN_ROOT", 0x10), ("RESOLVE_NO_MAGICLINKS", 0x2), ("RESOLVE_NO_SYMLINKS", 0x4),
    ("RESOLVE_NO_XDEV", 0x1), ("RWF_APPEND", 0x10), ("RWF_ATOMIC", 0x40), ("RWF_DONTCACHE", 0x80),
    ("RWF_DSYNC", 0x2), ("RWF_HIPRI", 0x1), ("RWF_NOAPPEND", 0x20), ("RWF_NOWAIT", 0x8),
    ("RWF_SYNC", 0x4), ("R_OK", 0x4), ("SEEK_CUR", 0x1), ("SEEK_DATA", 0x3),
    ("SEEK_END", 0x2), ("SEEK_HOLE", 0x4), ("SEEK_SET", 0x0), ("SPLICE_F_GIFT", 0x8),
    ("SPLICE_F_MORE", 0x4), ("SPLICE_F_MOVE", 0x1), ("SPLICE_F_NONBLOCK", 0x2),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 0x4), ("SYNC_FILE_RANGE_WAIT_BEFORE", 0x1),
    ("SYNC_FILE_RANGE_WRITE", 0x2), ("SYNC_FILE_RANGE_WRITE_AND_WAIT", 0x7), ("S_IFBLK", 0x6000),
    ("S_IFCHR", 0x2000), ("S_IFDIR", 0x4000), ("S_IFIFO", 0x1000), ("S_IFLNK", 0xa000),
    ("S_IFREG", 0x8000), ("S_IFSOCK", 0xc000), ("S_ISGID", 0x400), ("S_ISUID", 0x800),
    ("S_ISVTX", 0x200), ("W_OK", 0x2), ("XATTR_CREATE", 0x1), ("XATTR_REPLACE", 0x2), ("X_OK", 0x1),
    ("__O_SYNC", 0x10_0000), ("__O_TMPFILE", 0x40_0000),
];

/// Whether an open follows a symlink in the last place (`open(2)`).
pub(crate) fn follows_to_open(flags: i64) -> bool {
    let makes_anew = flags & O_CREAT != 0 && flags & O_EXCL != 0;
    flags & O_NOFOLLOW == 0 && !makes_anew
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_octal_modes_are_read() {
        assert_eq!(flags(b"O_RDONLY|O_CLOEXEC"), Some(O_CLOEXEC));
        assert_eq!(flags(b"S_IFREG|0644"), Some(0o100_644));
        assert_eq!(flags(b"0x80000"), Some(0x8_0000));
        assert_eq!(flags(b"0600"), Some(0o600));
        assert_eq!(flags(b"0"), Some(0));
        assert_eq!(flags(b"7"), Some(7));
        for part in ["O_RDONLY", "S_IFREG"] {
            assert_eq!(
                constant(part.as_bytes()),
                by_name().get(part.as_bytes()).copied()
            );
        }
        assert_eq!(flags(b"O_NEW"), None);
        assert_eq!(lenient_flags(b"O_NEW|O_CREAT"), O_CREAT);
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
