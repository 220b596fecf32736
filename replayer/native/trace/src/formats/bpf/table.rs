//! The calls that are recorded, and what of each: the one table of the probe, which its loader fills in, and of the importer.
//!
//! A letter stands for an argument. Numbers are kept as they are:
//! `d` a descriptor or another int, `l` a signed number, `u` a count, `x` flags, `o` a mode, `m` a mode where the flags before it
//! create, `k` the command of fcntl, `q` the command of ioctl, `f` the command of futex. Beside them, of one argument:
//! `s` a path or name (at most two), `S` text that the call wrote, `=` `+` `~` a stat, statx, stat64 that it wrote, `i` `I` iovecs (of 32
//! bits), `n` entries that it wrote, `L` a lock, or a number where the command has none, `T` `V` two times in ns or us, `t` two in s,
//! `h` how to open, `c` how to clone, `w` how a child ended, `P` two descriptors, `*` an offset, `a` a socket's address, `v` an access list.
//! `-` is not kept.

use super::shape::Shape;

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
    (6, "lstat", "s="), (7, "poll", ""), (8, "lseek", "dlx"), (9, "mmap", "-uxxdx"), (16, "ioctl", "dqd"), (17, "pread64", "d-ul"),
    (18, "pwrite64", "d-ul"), (19, "readv", "diu"), (20, "writev", "diu"), (21, "access", "sx"), (22, "pipe", "P"), (23, "select", ""),
    (32, "dup", "d"), (33, "dup2", "dd"), (40, "sendfile", "dd*u"), (41, "socket", ""), (43, "accept", "d"), (49, "bind", "da"),
    (53, "socketpair", "xxxP"), (56, "clone", "x"), (57, "fork", ""), (58, "vfork", ""), (59, "execve", "s"), (61, "wait4", "dw"),
    (72, "fcntl", "dkL"), (73, "flock", "dx"), (74, "fsync", "d"), (75, "fdatasync", "d"), (76, "truncate", "sl"), (77, "ftruncate", "dl"),
    (78, "getdents", "dnu"), (79, "getcwd", "S"), (80, "chdir", "s"), (81, "fchdir", "d"), (82, "rename", "ss"), (83, "mkdir", "so"),
    (84, "rmdir", "s"), (85, "creat", "so"), (86, "link", "ss"), (87, "unlink", "s"), (88, "symlink", "ss"), (89, "readlink", "sSu"),
    (90, "chmod", "so"), (91, "fchmod", "do"), (92, "chown", "sdd"), (93, "fchown", "ddd"), (94, "lchown", "sdd"), (95, "umask", "o"),
    (132, "utime", "st"), (133, "mknod", "so"), (134, "uselib", "s"), (137, "statfs", "s"), (138, "fstatfs", "d"), (155, "pivot_root", "s"),
    (161, "chroot", "s"), (162, "sync", ""), (163, "acct", "s"), (165, "mount", "-s"), (166, "umount2", "s"), (167, "swapon", "s"),
    (168, "swapoff", "s"), (187, "readahead", "dlu"), (188, "setxattr", "ssvux"), (189, "lsetxattr", "ssvux"), (190, "fsetxattr", "dsvux"),
    (191, "getxattr", "ssvu"), (192, "lgetxattr", "ssvu"), (193, "fgetxattr", "dsvu"), (194, "listxattr", "s-u"), (195, "llistxattr", "s-u"),
    (196, "flistxattr", "d-u"), (197, "removexattr", "ss"), (198, "lremovexattr", "ss"), (199, "fremovexattr", "ds"), (202, "futex", "-fd"),
    (209, "io_submit", ""), (213, "epoll_create", ""), (217, "getdents64", "dnu"), (221, "fadvise64", "dlux"), (232, "epoll_wait", ""),
    (235, "utimes", "sV"), (253, "inotify_init", ""), (254, "inotify_add_watch", "ds"), (257, "openat", "dsxm"), (258, "mkdirat", "dso"),
    (259, "mknodat", "dso"), (260, "fchownat", "dsddx"), (261, "futimesat", "dsV"), (262, "newfstatat", "ds=x"), (263, "unlinkat", "dsx"),
    (264, "renameat", "dsds"), (265, "linkat", "dsdsx"), (266, "symlinkat", "sds"), (267, "readlinkat", "dsSu"), (268, "fchmodat", "dso"),
    (269, "faccessat", "dsx"), (270, "pselect6", ""), (271, "ppoll", ""), (272, "unshare", "x"), (275, "splice", "d*d*ux"), (276, "tee", "d"),
    (277, "sync_file_range", "dlux"), (278, "vmsplice", "d"), (280, "utimensat", "dsTx"), (281, "epoll_pwait", ""), (283, "timerfd_create", ""),
    (284, "eventfd", ""), (285, "fallocate", "dxll"), (288, "accept4", "d"), (289, "signalfd4", ""), (290, "eventfd2", ""),
    (291, "epoll_create1", ""), (292, "dup3", "ddx"), (293, "pipe2", "Px"), (294, "inotify_init1", ""), (295, "preadv", "diul"),
    (296, "pwritev", "diul"), (298, "perf_event_open", ""), (300, "fanotify_init", ""), (301, "fanotify_mark", "---ds"), (303, "name_to_handle_at", "ds"),
    (306, "syncfs", "d"), (316, "renameat2", "dsdsx"), (319, "memfd_create", ""), (321, "bpf", ""), (322, "execveat", "ds"),
    (323, "userfaultfd", ""), (326, "copy_file_range", "d*d*ux"), (327, "preadv2", "diullx"), (328, "pwritev2", "diullx"), (332, "statx", "dsx-+"),
    (425, "io_uring_setup", ""), (426, "io_uring_enter", ""), (428, "open_tree", "ds"), (434, "pidfd_open", ""), (435, "clone3", "c"),
    (436, "close_range", "uux"), (437, "openat2", "dsh"), (439, "faccessat2", "dsxx"), (441, "epoll_pwait2", ""), (442, "mount_setattr", "ds"),
    (452, "fchmodat2", "dsox"),
];

/// Numbers of the probe's table: those of i386 come behind those of x86-64.
pub(super) const CALLS: usize = 1024;
pub(super) const EXECVE: u16 = 59;
pub(super) const EXECVEAT: u16 = 322;

/// The call of a number of the probe.
pub(super) fn by_number() -> Vec<Option<RecordedCall>> {
    let mut all: Vec<Option<RecordedCall>> = (0..CALLS).map(|_| None).collect();
    for &(number, name, letters) in X86_64 {
        if let Some(place) = all.get_mut(usize::from(number)) {
            let letters = letters.as_bytes();
            *place = Some(RecordedCall { name, letters });
        }
    }
    all
}

/// How the probe records each call, as its object lays the table out.
#[must_use]
pub fn probe_table() -> Vec<u8> {
    let calls = by_number();
    let shapes = calls.iter().map(|call| {
        let call = call.as_ref();
        call.map_or_else(Shape::default, |call| Shape::of(call.name, call.letters))
    });
    shapes.flat_map(Shape::bytes).collect()
}
