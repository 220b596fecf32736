//! Which decoder reads which system call.
#![allow(clippy::unnecessary_wraps, reason = "all decoders have one signature")]

/// Arguments, each read from its place: `args!(call, size = number 2, offset = number 3)`.
macro_rules! args {
    ($call:expr $(, $field:ident = $read:ident $place:literal)*) => {
        Args { $($field: $read($call.arg($place)),)* ..Args::default() }
    };
}

pub(crate) mod file;
pub(crate) mod path;

use crate::bytes::{cut, find, from, number};
use crate::call::{Args, FileArg, Gone, Kind, OnExec, PathArg, Shares, TouchedPages};
use crate::constants::{
    CLONE_FILES, CLONE_FS, CLONE_NEWNS, CLONE_NEWUSER, CLONE_SYSVSEM, CLONE_THREAD, CLONE_VFORK,
    CLONE_VM, O_CLOEXEC, S_IFSOCK, flags, lenient_flags,
};
use crate::formats::strace::scan::Scanned;
use crate::formats::strace::value::{field, file, path, path_at, string};
use replayer_ops::Op;
use rustc_hash::FxHashMap;

/// Reads the arguments of one system call; None where they are not readable.
pub(crate) type Decoder = for<'a> fn(&Scanned<'a>) -> Option<Kind<'a>>;

/// A decoder for each system call that matters; the others are `Kind::Other`.
pub(crate) struct Decoders {
    by_name: FxHashMap<&'static [u8], (&'static str, Decoder)>,
    /// Those that were asked for last, by a number that is made of their names: most logs hold a dozen kinds of calls.
    recent: [Option<(&'static str, Decoder)>; RECENT],
}

/// Decoders that are found without a search (chosen).
const RECENT: usize = 64;

impl Default for Decoders {
    fn default() -> Self {
        let lists: [&[(&str, Decoder)]; 3] = [STATE, path::DECODERS, file::DECODERS];
        let each = lists.into_iter().flatten();
        Self {
            by_name: each
                .map(|&(name, decoder)| (name.as_bytes(), (name, decoder)))
                .collect(),
            recent: [None; RECENT],
        }
    }
}

impl Decoders {
    /// The decoder of a system call, and its name.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<(&'static str, Decoder)> {
        let [first, last] = [name.first(), name.last()].map(|byte| byte.copied().unwrap_or(0));
        let mixed = name.len() + 5 * usize::from(first) + 11 * usize::from(last);
        let place = self.recent.get_mut(mixed % RECENT)?;
        if let Some((known, decoder)) = *place
            && known.as_bytes() == name
        {
            return Some((known, decoder));
        }
        let found = self.by_name.get(name).copied();
        *place = found.or(*place);
        found
    }
}

#[rustfmt::skip]
const STATE: &[(&str, Decoder)] = &[
    ("accept", |_| Some(Kind::Accept)), ("accept4", |_| Some(Kind::Accept)), ("bind", bind),
    ("chroot", |c| Some(Kind::Chroot(path(c.arg(0))?))), ("pivot_root", |c| Some(Kind::PivotRoot(path(c.arg(0))?))),
    ("getcwd", getcwd), ("inherited", inherited), ("page_fault", page_fault), ("munmap", unmap), ("mremap", remap),
    ("clone", spawn), ("clone2", spawn), ("clone3", spawn), ("fork", |_| Some(Kind::Spawn(Shares::default()))),
    ("vfork", |_| Some(Kind::Spawn(Shares { memory: true, memory_in_turn: true, ..Shares::default() }))),
    ("execve", |c| Some(Kind::Exec { path: path(c.arg(0)) })), ("execveat", |c| Some(Kind::Exec { path: path_at(c.arg(0), c.arg(1)) })),
    ("wait4", reaped), ("waitpid", reaped), ("futex", joined), ("futex_time64", joined),
    // waitid returns 0: the task stands in its third argument, which `Kind::Reaped` does not carry.
    ("waitid", |_| Some(Kind::Other)),
    ("umask", |c| Some(Kind::Umask(flags(c.arg(0))?))),
    ("socket", foreign), ("epoll_create", foreign), ("epoll_create1", foreign), ("eventfd", foreign),
    ("eventfd2", foreign), ("inotify_init", foreign), ("inotify_init1", foreign), ("signalfd4", foreign),
    ("timerfd_create", foreign), ("memfd_create", foreign), ("io_uring_setup", foreign), ("pidfd_open", foreign),
    ("userfaultfd", foreign), ("perf_event_open", foreign), ("fanotify_init", foreign), ("bpf", foreign),
    ("pipe", pair), ("pipe2", pair), ("socketpair", last_pair),
    ("poll", poll), ("ppoll", poll), ("select", poll), ("_newselect", poll), ("pselect6", poll),
    ("ppoll_time64", poll), ("pselect6_time64", poll),
    ("epoll_wait", poll), ("epoll_pwait", poll), ("epoll_pwait2", poll),
    ("io_uring_enter", |c| submission(c, "io_uring")), ("io_submit", |c| submission(c, "libaio")), ("follows", follows),
    ("msync", |_| Some(Kind::Blind("msync of mapped files"))),
    ("unshare", unshare), ("setns", |_| Some(Kind::Blind("setns"))),
    ("name_to_handle_at", unsupported_at), ("open_tree", |c| Some(Kind::Mount { from: path_at(c.arg(0), c.arg(1)), at: None })),
    ("move_mount", |c| Some(Kind::Mount { from: path_at(c.arg(0), c.arg(1)), at: path_at(c.arg(2), c.arg(3)) })),
    ("mount_setattr", unsupported_at),
    ("inotify_add_watch", |c| unsupported(path(c.arg(1)), None)), ("mount", mount),
    ("fanotify_mark", |c| unsupported(path_at(c.arg(3), c.arg(4)), None)),
    ("umount", unmount), ("umount2", unmount),
    ("swapon", unsupported_path), ("swapoff", unsupported_path), ("acct", unsupported_path), ("uselib", unsupported_path),
    ("tee", |c| unsupported(None, file(c.arg(0)))), ("vmsplice", |c| unsupported(None, file(c.arg(0)))),
];

/// Recordings with eBPF name no arguments: they count what they do not know of requests themselves.
fn submission<'a>(call: &Scanned<'a>, name: &'static str) -> Option<Kind<'a>> {
    let is_told_of = call.arg(0).is_empty();
    Some(if is_told_of {
        Kind::Other
    } else {
        Kind::Blind(name)
    })
}

/// What recordings with eBPF say of requests: they come after what their submitter has done, and it goes on after them.
fn follows<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Follows(number(call.arg(0))?.try_into().ok()?))
}

fn poll<'a>(_: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Poll)
}

fn foreign<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Foreign(call.result.value.into_iter().collect()))
}

fn unsupported<'a>(path: Option<PathArg<'a>>, file: Option<FileArg<'a>>) -> Option<Kind<'a>> {
    Some(Kind::Unsupported { path, file })
}

/// What changes only how a mount behaves mounts nothing, and what is mounted is a name only if that is mounted once more (`mount(2)`).
fn mount<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    const CHANGES: [(&[u8], i64); 5] = [
        (b"MS_REMOUNT", 1 << 5),
        (b"MS_UNBINDABLE", 1 << 17),
        (b"MS_PRIVATE", 1 << 18),
        (b"MS_SLAVE", 1 << 19),
        (b"MS_SHARED", 1 << 20),
    ];
    const OF_NAMES: [(&[u8], i64); 2] = [(b"MS_BIND", 1 << 12), (b"MS_MOVE", 1 << 13)];
    let bits = number(call.arg(3)).unwrap_or(0);
    let has = |&(word, bit): &(&[u8], i64)| {
        bits & bit != 0 || crate::bytes::find(call.arg(3), word).is_some()
    };
    if CHANGES.iter().any(has) {
        return Some(Kind::Other);
    }
    let from = path(call.arg(0)).filter(|_| OF_NAMES.iter().any(has));
    let at = path(call.arg(1));
    Some(Kind::Mount { from, at })
}

fn unmount<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let at = path(call.arg(0));
    Some(Kind::Mount { from: None, at })
}

fn unsupported_at<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    unsupported(path_at(call.arg(0), call.arg(1)), None)
}

fn unsupported_path<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    unsupported(path(call.arg(0)), None)
}

/// The flags that are known.
fn all_flags(text: &[u8]) -> Option<i64> {
    Some(lenient_flags(text))
}

/// The same, if any is set.
fn set_flags(text: &[u8]) -> Option<i64> {
    all_flags(text).filter(|&bits| bits != 0)
}

/// A socket gets a name (unix(7)): `{sa_family=AF_UNIX, sun_path="/r/s"}`. An abstract one, behind `@`, is no file.
fn bind<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let address = call.arg(1);
    let named = find(address, b"sun_path=").and_then(|at| from(address, at + 9).strip_suffix(b"}"));
    let made = named.filter(|_| call.result.value == Some(0));
    let Some(path) = made.and_then(path) else {
        return Some(Kind::Other);
    };
    let args = Args {
        mode: Some(S_IFSOCK | 0o777),
        ..Args::default()
    };
    path::on_path(Op::Mknod, path, args)
}

fn getcwd<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(string(call.arg(0)).map_or(Kind::Other, Kind::Getcwd))
}

/// What `replayer capture` writes before strace's own lines, and what recordings with eBPF begin with.
fn inherited<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Inherited {
        file: file(call.arg(0))?,
        flags: number(call.arg(1))?,
        offset: number(call.arg(2))?,
        gone: number(call.arg(3))
            .zip(number(call.arg(4)))
            .map(|(size, inode)| Gone { size, inode }),
        description: number(call.arg(5)),
    })
}

/// What no strace prints, but the probe has recorded.
fn page_fault<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Touched(TouchedPages {
        address: number(call.arg(0))?,
        size: number(call.arg(1))?,
        pages: (number(call.arg(2))?, number(call.arg(3))?),
        file_size: number(call.arg(4))?,
        faults: u64::try_from(number(call.arg(5))?).ok()?,
        writes: u64::try_from(number(call.arg(6))?).ok()?,
    }))
}

fn unmap<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Unmap {
        from: (number(call.arg(0))?, number(call.arg(1))?),
        to: None,
    })
}

fn remap<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Unmap {
        from: (number(call.arg(0))?, number(call.arg(1))?),
        to: call.result.value.zip(number(call.arg(2))),
    })
}

fn spawn<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let flags = call
        .args
        .iter()
        .find_map(|arg| field(arg, b"flags").or_else(|| arg.strip_prefix(b"flags=")))
        .map_or_else(|| lenient_flags(call.arg(0)), lenient_flags);
    Some(Kind::Spawn(Shares {
        process: flags & CLONE_THREAD != 0,
        files: flags & CLONE_FILES != 0,
        cwd: flags & CLONE_FS != 0,
        parts_mounts: flags & CLONE_NEWNS != 0,
        memory: flags & CLONE_VM != 0,
        memory_in_turn: flags & CLONE_VFORK != 0,
    }))
}

/// Other mounts and other users come with a working directory of one's own (unshare(2)).
fn unshare<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    const SEEN: i64 = CLONE_FILES | CLONE_FS | CLONE_SYSVSEM;
    let known = flags(call.arg(0));
    let parts = lenient_flags(call.arg(0));
    Some(Kind::Unshare {
        files: parts & CLONE_FILES != 0,
        cwd: parts & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER) != 0,
        mounts: parts & CLONE_NEWNS != 0,
        unseen: known.is_none_or(|known| known & !SEEN != 0),
    })
}

fn reaped<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let status = call.arg(1);
    let lives = [&b"WIFSTOPPED"[..], b"WIFCONTINUED"];
    if lives.iter().any(|how| find(status, how).is_some()) {
        return Some(Kind::Other);
    }
    Some(Kind::Reaped)
}

/// Who joins a thread waits until its number, which stands in a futex meanwhile, is taken out: nobody else waits for such a value.
fn joined<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let waits = call.arg(1).starts_with(b"FUTEX_WAIT");
    let thread = waits.then(|| number(call.arg(2)))?;
    Some(thread.map_or(Kind::Other, Kind::Joined))
}

fn pair<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(ends_in(call.arg(0), false, call.arg(1)))
}

fn last_pair<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(ends_in(call.arg(3), true, call.arg(1)))
}

/// The two descriptors of `[3<pipe:[1]>, 4<pipe:[1]>]`.
fn ends_in<'a>(text: &[u8], both_ways: bool, flags: &[u8]) -> Kind<'a> {
    let first = from(text, 1);
    let second = find(first, b", ").map_or(&[][..], |at| from(first, at + 2));
    match [first, second].map(number) {
        [Some(first), Some(second)] => Kind::Pair {
            ends: [first, second],
            both_ways,
            // O_CLOEXEC and SOCK_CLOEXEC, which are one bit
            on_exec: match find(flags, b"_CLOEXEC") {
                Some(_) => OnExec::Close,
                None if number(flags).unwrap_or(0) & O_CLOEXEC != 0 => OnExec::Close,
                None => OnExec::Keep,
            },
        },
        numbers => Kind::Foreign(numbers.into_iter().flatten().collect()),
    }
}

/// Whether arguments that no decoder could read hold no path at all: an address, NULL, or a string that strace cut.
pub(crate) fn has_no_path(call: &Scanned<'_>) -> bool {
    call.args
        .iter()
        .take(3)
        .any(|arg| arg == b"NULL" || arg.ends_with(b"\"...") || cut(arg, 0, 2) == b"0x")
}
