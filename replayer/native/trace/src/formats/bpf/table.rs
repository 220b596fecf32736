//! The calls that are recorded, and what of each: the one table of the probe, which its loader fills in, and of the importer.
//!
//! A letter stands for an argument. Numbers are kept as they are:
//! `d` a descriptor or another int, `l` a signed number, `u` a count, `x` flags, `o` a mode, `m` a mode where the flags before it
//! create, `k` the command of fcntl, `q` the command of ioctl, `f` the command of futex. Beside them, of one argument:
//! `s` a path or name (at most two), `S` text that the call wrote, `=` `+` `~` a stat, statx, stat64 that it wrote, `i` `I` iovecs (of 32
//! bits), `n` entries that it wrote, `L` a lock, or a number where the command has none, `T` `V` two times in ns or us, `t` two in s,
//! `h` how to open, `c` how to clone, `w` how a child ended, `P` two descriptors, `*` an offset, `a` a socket's address, `v` an access list.
//! `-` is not kept. Of i386 alone: `j` half a number, of which `J` is the upper half and `H` the lower one; `p` pages, `z` a number of 16
//! bits, `%` a stat, `e` entries, `O` an offset, `N` `U` `y` times in ns, us and s, `r` a position that the call wrote, `E` the arguments of
//! socketcall. A call that is only `!` is counted, not recorded.

use super::record::Record;
use super::shape::Shape;
use std::sync::LazyLock;

/// One call.
pub(super) struct RecordedCall {
    pub(super) name: &'static str,
    pub(super) letters: &'static [u8],
}

/// The calls of a machine, by number.
type Table = [(u16, &'static str, &'static str)];

/// The numbers of x86-64 (`asm/unistd_64.h`).
#[rustfmt::skip]
const X86_64: &Table = &[
    (0, "read", "d-u"), (1, "write", "d-u"), (2, "open", "sxm"), (3, "close", "d"), (4, "stat", "s="), (5, "fstat", "d="),
    (6, "lstat", "s="), (7, "poll", ""), (8, "lseek", "dlx"), (9, "mmap", "-uxxdx"), (11, "munmap", "xu"), (16, "ioctl", "dqd"), (17, "pread64", "d-ul"),
    (18, "pwrite64", "d-ul"), (19, "readv", "diu"), (20, "writev", "diu"), (21, "access", "sx"), (22, "pipe", "P"), (23, "select", ""),
    (25, "mremap", "xuux"), (32, "dup", "d"), (33, "dup2", "dd"), (40, "sendfile", "dd*u"), (41, "socket", ""), (43, "accept", "d"), (49, "bind", "da"),
    (53, "socketpair", "xxxP"), (56, "clone", "x"), (57, "fork", ""), (58, "vfork", ""), (59, "execve", "s"), (61, "wait4", "dw"),
    (72, "fcntl", "dkL"), (73, "flock", "dx"), (74, "fsync", "d"), (75, "fdatasync", "d"), (76, "truncate", "sl"), (77, "ftruncate", "dl"),
    (78, "getdents", "dnu"), (79, "getcwd", "S"), (80, "chdir", "s"), (81, "fchdir", "d"), (82, "rename", "ss"), (83, "mkdir", "so"),
    (84, "rmdir", "s"), (85, "creat", "so"), (86, "link", "ss"), (87, "unlink", "s"), (88, "symlink", "ss"), (89, "readlink", "sSu"),
    (90, "chmod", "so"), (91, "fchmod", "do"), (92, "chown", "sdd"), (93, "fchown", "ddd"), (94, "lchown", "sdd"), (95, "umask", "o"),
    (132, "utime", "st"), (133, "mknod", "so"), (134, "uselib", "s"), (137, "statfs", "s"), (138, "fstatfs", "d"), (155, "pivot_root", "s"),
    (161, "chroot", "s"), (162, "sync", ""), (163, "acct", "s"), (165, "mount", "ss-x"), (166, "umount2", "s"), (167, "swapon", "s"),
    (168, "swapoff", "s"), (187, "readahead", "dlu"), (188, "setxattr", "ssvux"), (189, "lsetxattr", "ssvux"), (190, "fsetxattr", "dsvux"),
    (191, "getxattr", "ssvu"), (192, "lgetxattr", "ssvu"), (193, "fgetxattr", "dsvu"), (194, "listxattr", "s-u"), (195, "llistxattr", "s-u"),
    (196, "flistxattr", "d-u"), (197, "removexattr", "ss"), (198, "lremovexattr", "ss"), (199, "fremovexattr", "ds"), (202, "futex", "-fd"),
    (208, "io_getevents", ""), (209, "io_submit", ""), (213, "epoll_create", ""), (217, "getdents64", "dnu"), (221, "fadvise64", "dlux"), (232, "epoll_wait", ""),
    (235, "utimes", "sV"), (253, "inotify_init", ""), (254, "inotify_add_watch", "ds"), (257, "openat", "dsxm"), (258, "mkdirat", "dso"),
    (259, "mknodat", "dso"), (260, "fchownat", "dsddx"), (261, "futimesat", "dsV"), (262, "newfstatat", "ds=x"), (263, "unlinkat", "dsx"),
    (264, "renameat", "dsds"), (265, "linkat", "dsdsx"), (266, "symlinkat", "sds"), (267, "readlinkat", "dsSu"), (268, "fchmodat", "dso"),
    (269, "faccessat", "dsx"), (270, "pselect6", ""), (271, "ppoll", ""), (272, "unshare", "x"), (275, "splice", "d*d*ux"), (276, "tee", "d"),
    (277, "sync_file_range", "dlux"), (278, "vmsplice", "d"), (280, "utimensat", "dsTx"), (281, "epoll_pwait", ""), (283, "timerfd_create", ""),
    (284, "eventfd", ""), (285, "fallocate", "dxll"), (288, "accept4", "d"), (289, "signalfd4", ""), (290, "eventfd2", ""),
    (291, "epoll_create1", ""), (292, "dup3", "ddx"), (293, "pipe2", "Px"), (294, "inotify_init1", ""), (295, "preadv", "diul"),
    (296, "pwritev", "diul"), (298, "perf_event_open", ""), (300, "fanotify_init", ""), (301, "fanotify_mark", "---ds"), (303, "name_to_handle_at", "ds"),
    (306, "syncfs", "d"), (308, "setns", ""), (316, "renameat2", "dsdsx"), (319, "memfd_create", ""), (321, "bpf", ""), (322, "execveat", "ds"),
    (323, "userfaultfd", ""), (326, "copy_file_range", "d*d*ux"), (327, "preadv2", "diullx"), (328, "pwritev2", "diullx"), (332, "statx", "dsx-+"),
    (333, "io_pgetevents", ""),
    (425, "io_uring_setup", ""), (426, "io_uring_enter", ""), (428, "open_tree", "ds"), (429, "move_mount", "dsds"), (434, "pidfd_open", ""), (435, "clone3", "c"),
    (436, "close_range", "uux"), (437, "openat2", "dsh"), (439, "faccessat2", "dsxx"), (441, "epoll_pwait2", ""), (442, "mount_setattr", "ds"),
    (452, "fchmodat2", "dsox"),
];

/// The numbers of i386 (`asm/unistd_32.h`), up to those that all machines have in common.
#[rustfmt::skip]
const I386: &Table = &[
    (2, "fork", ""), (3, "read", "d-u"), (4, "write", "d-u"), (5, "open", "sxm"), (6, "close", "d"), (7, "waitpid", "dw"), (8, "creat", "so"),
    (9, "link", "ss"), (10, "unlink", "s"), (11, "execve", "s"), (12, "chdir", "s"), (14, "mknod", "so"), (15, "chmod", "so"),
    (16, "lchown", "szz"), (18, "oldstat", "!"), (19, "lseek", "dlx"), (21, "mount", "ss-x"), (22, "umount", "s"), (28, "oldfstat", "!"),
    (30, "utime", "sy"), (33, "access", "sx"), (36, "sync", ""), (38, "rename", "ss"), (39, "mkdir", "so"), (40, "rmdir", "s"), (41, "dup", "d"),
    (42, "pipe", "P"), (51, "acct", "s"), (52, "umount2", "s"), (54, "ioctl", "dqd"), (55, "fcntl", "dkL"), (60, "umask", "o"),
    (61, "chroot", "s"), (63, "dup2", "dd"), (82, "select", ""), (83, "symlink", "ss"), (84, "oldlstat", "!"), (85, "readlink", "sSu"),
    (86, "uselib", "s"), (87, "swapon", "s"), (89, "readdir", "!"), (90, "mmap", "!"), (91, "munmap", "xu"), (92, "truncate", "sl"), (93, "ftruncate", "dl"),
    (94, "fchmod", "do"), (95, "fchown", "dzz"), (99, "statfs", "s"), (100, "fstatfs", "d"), (102, "socketcall", "jE"), (106, "stat", "s%"),
    (107, "lstat", "s%"), (108, "fstat", "d%"), (114, "wait4", "dw"), (115, "swapoff", "s"), (118, "fsync", "d"), (120, "clone", "x"),
    (133, "fchdir", "d"), (140, "_llseek", "djHrx"), (141, "getdents", "deu"), (142, "_newselect", ""), (143, "flock", "dx"),
    (145, "readv", "dIu"), (146, "writev", "dIu"), (148, "fdatasync", "d"), (163, "mremap", "xuux"), (168, "poll", ""), (180, "pread64", "d-ujJ"),
    (181, "pwrite64", "d-ujJ"), (182, "chown", "szz"), (183, "getcwd", "S"), (187, "sendfile", "ddOu"), (190, "vfork", ""),
    (192, "mmap2", "-uxxdp"), (193, "truncate64", "sjJ"), (194, "ftruncate64", "djJ"), (195, "stat64", "s~"), (196, "lstat64", "s~"),
    (197, "fstat64", "d~"), (198, "lchown32", "sdd"), (207, "fchown32", "ddd"), (212, "chown32", "sdd"), (217, "pivot_root", "s"),
    (220, "getdents64", "dnu"), (221, "fcntl64", "dkL"), (225, "readahead", "djJu"), (226, "setxattr", "ssvux"), (227, "lsetxattr", "ssvux"),
    (228, "fsetxattr", "dsvux"), (229, "getxattr", "ssvu"), (230, "lgetxattr", "ssvu"), (231, "fgetxattr", "dsvu"), (232, "listxattr", "s-u"),
    (233, "llistxattr", "s-u"), (234, "flistxattr", "d-u"), (235, "removexattr", "ss"), (236, "lremovexattr", "ss"), (237, "fremovexattr", "ds"),
    (239, "sendfile64", "dd*u"), (240, "futex", "-fd"), (248, "io_submit", ""), (250, "fadvise64", "djJux"), (254, "epoll_create", ""),
    (256, "epoll_wait", ""), (268, "statfs64", "s"), (269, "fstatfs64", "d"), (271, "utimes", "sU"), (272, "fadvise64_64", "djJjJx"),
    (291, "inotify_init", ""), (292, "inotify_add_watch", "ds"), (295, "openat", "dsxm"), (296, "mkdirat", "dso"), (297, "mknodat", "dso"),
    (298, "fchownat", "dsddx"), (299, "futimesat", "dsU"), (300, "fstatat64", "ds~x"), (301, "unlinkat", "dsx"), (302, "renameat", "dsds"),
    (303, "linkat", "dsdsx"), (304, "symlinkat", "sds"), (305, "readlinkat", "dsSu"), (306, "fchmodat", "dso"), (307, "faccessat", "dsx"),
    (308, "pselect6", ""), (309, "ppoll", ""), (310, "unshare", "x"), (313, "splice", "d*d*ux"), (314, "sync_file_range", "djJjJx"),
    (315, "tee", "d"), (316, "vmsplice", "d"), (319, "epoll_pwait", ""), (320, "utimensat", "dsNx"), (322, "timerfd_create", ""),
    (323, "eventfd", ""), (324, "fallocate", "dxjJjJ"), (327, "signalfd4", ""), (328, "eventfd2", ""), (329, "epoll_create1", ""),
    (330, "dup3", "ddx"), (331, "pipe2", "Px"), (332, "inotify_init1", ""), (333, "preadv", "dIujJ"), (334, "pwritev", "dIujJ"),
    (336, "perf_event_open", ""), (338, "fanotify_init", ""), (339, "fanotify_mark", "--j-ds"), (341, "name_to_handle_at", "ds"),
    (344, "syncfs", "d"), (346, "setns", ""), (353, "renameat2", "dsdsx"), (356, "memfd_create", ""), (357, "bpf", ""), (358, "execveat", "ds"), (359, "socket", ""),
    (360, "socketpair", "xxxP"), (361, "bind", "da"), (364, "accept4", "d"), (374, "userfaultfd", ""), (377, "copy_file_range", "d*d*ux"),
    (378, "preadv2", "dIujJx"), (379, "pwritev2", "dIujJx"), (383, "statx", "dsx-+"), (412, "utimensat_time64", "dsTx"),
    (413, "pselect6_time64", ""), (414, "ppoll_time64", ""), (422, "futex_time64", "-fd"),
];
/// From here on all machines number calls alike.
const IN_COMMON: u16 = 424;

/// Numbers of the probe's table: those of i386 come behind those of x86-64.
const CALLS: usize = 1024;
const COMPAT: u16 = 512;
const SOCKETCALL: u16 = COMPAT + 102;

/// Whether a number is that of a call of i386.
pub(super) fn is_compat(number: u16) -> bool {
    number >= COMPAT
}

/// Whether a number is that of `execve`, or of `execveat`.
pub(super) fn executes(number: u16) -> bool {
    matches!(number, 59 | 523) || executes_at(number)
}

/// Whether a number is that of `execveat`.
pub(super) fn executes_at(number: u16) -> bool {
    matches!(number, 322 | 870)
}

/// The name of a recorded call: socketcall is many.
pub(super) fn name_of(call: &RecordedCall, record: &Record<'_>) -> &'static str {
    match record.number_at(0) {
        _ if record.number != SOCKETCALL => call.name,
        1 => "socket",
        5 => "accept",
        8 => "socketpair",
        18 => "accept4",
        _ => call.name,
    }
}

/// Calls that submit requests, or wait for them.
const ASKING: [&str; 4] = [
    "io_uring_enter",
    "io_submit",
    "io_getevents",
    "io_pgetevents",
];

/// Whether a call submits requests, or waits for them.
pub(super) fn asks(call: &RecordedCall) -> bool {
    ASKING.contains(&call.name)
}

/// Whether requests of `io_uring`, and of libaio, are recorded, as the end of a recording tells it.
pub(super) fn has_requests(told: u64) -> [bool; 2] {
    [told & RINGS != 0, told & LIBAIO != 0]
}

/// The bit that says it of `io_uring`.
pub const RINGS: u64 = 1;
/// The one that says it of libaio.
pub const LIBAIO: u64 = 2;

static BY_NUMBER: LazyLock<Vec<Option<RecordedCall>>> = LazyLock::new(|| {
    let mut all: Vec<Option<RecordedCall>> = (0..CALLS).map(|_| None).collect();
    let compat = X86_64.iter().filter(|(number, ..)| *number >= IN_COMMON);
    let compat = I386.iter().chain(compat);
    let compat = compat.map(|&(number, name, letters)| (COMPAT + number, name, letters));
    for (number, name, letters) in X86_64.iter().copied().chain(compat) {
        if let Some(place) = all.get_mut(usize::from(number)) {
            let letters = letters.as_bytes();
            *place = Some(RecordedCall { name, letters });
        }
    }
    all
});

/// What is known of a recorded call.
pub(super) fn call_of(record: &Record<'_>) -> Option<&'static RecordedCall> {
    BY_NUMBER.get(usize::from(record.number))?.as_ref()
}

/// Names of calls by their numbers in the probe's table, and a letter for each of their arguments.
pub fn call_names() -> impl Iterator<Item = Option<(&'static str, &'static [u8])>> {
    let calls = BY_NUMBER.iter();
    calls.map(|call| call.as_ref().map(|call| (call.name, call.letters)))
}

/// How the probe records each call, as its object lays the table out.
#[must_use]
pub fn probe_table() -> Vec<u8> {
    let shapes = BY_NUMBER.iter().map(|call| {
        let call = call.as_ref();
        call.map_or_else(Shape::default, |call| Shape::of(call.name, call.letters))
    });
    shapes.flat_map(Shape::bytes).collect()
}
