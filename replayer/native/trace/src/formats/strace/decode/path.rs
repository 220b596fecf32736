//! Calls that name files by path.
#![allow(clippy::unnecessary_wraps, reason = "all decoders have one signature")]

use crate::bytes::{find, from, number};
use crate::call::{Args, At, FileArg, Kind, PathArg};
use crate::constants::{
    AT_EMPTY_PATH, AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW, O_CREAT, O_TRUNC, flags, lenient_flags,
};
use crate::formats::strace::decode::{Decoder, all_flags, set_flags};
use crate::formats::strace::scan::Scanned;
use crate::formats::strace::value::{
    NOW, at, field, file, path, path_at, seen, string, string_start, time_ns,
};
use replayer_ops::Op;
use std::borrow::Cow;

#[rustfmt::skip]
pub(crate) const DECODERS: &[(&str, Decoder)] = &[
    ("open", |c| opened(c, path(c.arg(0))?, args!(c, flags = all_flags 1, mode = flags 2))),
    ("openat", |c| opened(c, first_at(c)?, args!(c, flags = all_flags 2, mode = flags 3))), ("openat2", openat2),
    ("creat", |c| opened(c, path(c.arg(0))?, Args { flags: Some(1 | O_CREAT | O_TRUNC), ..args!(c, mode = flags 1) })),
    ("stat", |c| on_first(c, Op::Stat, args!(c, seen = seen 1))), ("stat64", |c| on_first(c, Op::Stat, args!(c, seen = seen 1))),
    ("lstat", |c| on_first(c, Op::Lstat, args!(c, seen = seen 1))), ("lstat64", |c| on_first(c, Op::Lstat, args!(c, seen = seen 1))),
    ("newfstatat", |c| stat_at(c, lenient_flags(c.arg(3)), c.arg(2))), ("fstatat64", |c| stat_at(c, lenient_flags(c.arg(3)), c.arg(2))),
    ("statx", |c| stat_at(c, lenient_flags(c.arg(2)), c.arg(4))),
    ("access", |c| on_first(c, Op::Access, args!(c, flags = flags 1))), ("faccessat", faccessat), ("faccessat2", faccessat),
    ("chdir", |c| on_first(c, Op::Chdir, args!(c))),
    ("mkdir", |c| on_first(c, Op::Mkdir, args!(c, mode = flags 1))), ("mkdirat", |c| on_first_at(c, Op::Mkdir, args!(c, mode = flags 2))),
    ("mknod", |c| on_first(c, Op::Mknod, args!(c, mode = flags 1))), ("mknodat", |c| on_first_at(c, Op::Mknod, args!(c, mode = flags 2))),
    ("chmod", |c| on_first(c, Op::Chmod, args!(c, mode = flags 1))), ("fchmodat", fchmodat), ("fchmodat2", fchmodat),
    ("rmdir", |c| on_first(c, Op::Rmdir, args!(c))), ("unlink", |c| on_first(c, Op::Unlink, args!(c))), ("unlinkat", unlinkat),
    ("statfs", |c| on_first(c, Op::Statfs, args!(c))), ("statfs64", |c| on_first(c, Op::Statfs, args!(c))),
    ("readlink", |c| on_first(c, Op::Readlink, args!(c, text = string 1, size = number 2))),
    ("readlinkat", |c| on_first_at(c, Op::Readlink, args!(c, text = string 2, size = number 3))),
    ("rename", |c| two_paths(c, Op::Rename)), ("renameat", renameat), ("renameat2", renameat),
    ("link", |c| two_paths(c, Op::Link)), ("linkat", |c| two_paths_at(c, Op::Link, args!(c, flags = set_flags 4))),
    ("symlink", |c| symlink(c, path(c.arg(1))?)), ("symlinkat", |c| symlink(c, path_at(c.arg(1), c.arg(2))?)),
    ("truncate", |c| on_first(c, Op::Truncate, args!(c, size = number 1))), ("truncate64", |c| on_first(c, Op::Truncate, args!(c, size = number 1))),
    ("chown", |c| on_first(c, Op::Chown, args!(c, uid = owner 1, gid = owner 2))),
    ("chown32", |c| on_first(c, Op::Chown, args!(c, uid = owner 1, gid = owner 2))),
    ("lchown", |c| on_first(c, Op::Lchown, args!(c, uid = owner 1, gid = owner 2))),
    ("lchown32", |c| on_first(c, Op::Lchown, args!(c, uid = owner 1, gid = owner 2))), ("fchownat", fchownat),
    ("getxattr", |c| on_first(c, Op::Getxattr, xattr_args(c))), ("lgetxattr", |c| on_first(c, Op::Lgetxattr, xattr_args(c))),
    ("setxattr", |c| on_first(c, Op::Setxattr, xattr_args(c))), ("lsetxattr", |c| on_first(c, Op::Lsetxattr, xattr_args(c))),
    ("removexattr", |c| on_first(c, Op::Removexattr, xattr_args(c))), ("lremovexattr", |c| on_first(c, Op::Lremovexattr, xattr_args(c))),
    ("listxattr", |c| on_first(c, Op::Listxattr, args!(c, size = number 2))), ("llistxattr", |c| on_first(c, Op::Llistxattr, args!(c, size = number 2))),
    ("utime", utime), ("utimes", |c| on_first(c, Op::Utimens, times(c.arg(1)))),
    ("futimesat", |c| on_first_at(c, Op::Utimens, times(c.arg(2)))), ("utimensat", utimensat), ("utimensat_time64", utimensat),
];

pub(crate) fn on_path<'a>(op: Op, path: PathArg<'a>, args: Args<'a>) -> Option<Kind<'a>> {
    Some(Kind::Path { op, path, args })
}

/// A path beside the directory that it is relative to, as first arguments.
fn first_at<'a>(call: &Scanned<'a>) -> Option<PathArg<'a>> {
    path_at(call.arg(0), call.arg(1))
}

fn on_first<'a>(call: &Scanned<'a>, op: Op, args: Args<'a>) -> Option<Kind<'a>> {
    on_path(op, path(call.arg(0))?, args)
}

fn on_first_at<'a>(call: &Scanned<'a>, op: Op, args: Args<'a>) -> Option<Kind<'a>> {
    on_path(op, first_at(call)?, args)
}

fn two_paths<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    Some(Kind::TwoPaths {
        op,
        path: path(call.arg(0))?,
        to: path(call.arg(1))?,
        args: Args::default(),
    })
}

fn two_paths_at<'a>(call: &Scanned<'a>, op: Op, args: Args<'a>) -> Option<Kind<'a>> {
    Some(Kind::TwoPaths {
        op,
        path: first_at(call)?,
        to: path_at(call.arg(2), call.arg(3))?,
        args,
    })
}

fn symlink<'a>(call: &Scanned<'a>, path: PathArg<'a>) -> Option<Kind<'a>> {
    let args = Args {
        text: Some(string(call.arg(0))?),
        ..Args::default()
    };
    on_path(Op::Symlink, path, args)
}

fn faccessat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    on_first_at(
        call,
        Op::Access,
        args!(call, flags = flags 2, mode = set_flags 3),
    )
}

fn unlinkat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let is_directory = lenient_flags(call.arg(2)) & AT_REMOVEDIR != 0;
    let op = if is_directory { Op::Rmdir } else { Op::Unlink };
    on_first_at(call, op, Args::default())
}

fn renameat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    // An empty path says it: the descriptor's own file.
    let bits = lenient_flags(call.arg(4)) & !AT_EMPTY_PATH;
    let args = Args {
        flags: (bits != 0).then_some(bits),
        ..Args::default()
    };
    two_paths_at(call, Op::Rename, args)
}

fn opened<'a>(call: &Scanned<'a>, path: PathArg<'a>, args: Args<'a>) -> Option<Kind<'a>> {
    Some(Kind::Open {
        path,
        args,
        shown: call.result.shown,
    })
}

fn openat2<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let how = call.arg(2);
    let args = Args {
        flags: field(how, b"flags").map(lenient_flags),
        mode: field(how, b"mode").and_then(flags),
        size: field(how, b"resolve")
            .map(lenient_flags)
            .filter(|&bits| bits != 0),
        ..Args::default()
    };
    opened(call, first_at(call)?, args)
}

fn stat_at<'a>(call: &Scanned<'a>, bits: i64, shown: &[u8]) -> Option<Kind<'a>> {
    // What asks for fresh attributes matters on a mount; what chooses between stat and lstat is in the op.
    let kept = bits & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    let args = Args {
        flags: (kept != 0).then_some(kept),
        seen: seen(shown),
        ..Args::default()
    };
    if bits & AT_EMPTY_PATH != 0 && matches!(call.arg(1), b"\"\"" | b"NULL") {
        return match at(call.arg(0))? {
            At::File(file) => Some(Kind::file(Op::Fstat, file, args)),
            at @ At::Cwd(_) => {
                let text = Cow::Borrowed(&b"."[..]);
                on_path(Op::Stat, PathArg { at, text }, args)
            }
        };
    }
    let op = if bits & AT_SYMLINK_NOFOLLOW != 0 {
        Op::Lstat
    } else {
        Op::Stat
    };
    on_path(op, first_at(call)?, args)
}

/// The descriptor that a call means itself: `AT_EMPTY_PATH`, and an empty path.
pub(crate) fn own_file<'a>(call: &Scanned<'a>, bits: i64) -> Option<FileArg<'a>> {
    let is_empty = bits & AT_EMPTY_PATH != 0 && call.arg(1) == b"\"\"";
    match at(call.arg(0))? {
        At::File(file) if is_empty => Some(file),
        _ => None,
    }
}

fn fchmodat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = args!(call, mode = flags 2);
    if let Some(file) = own_file(call, lenient_flags(call.arg(3))) {
        return Some(Kind::file(Op::Fchmod, file, args));
    }
    on_path(Op::Chmod, first_at(call)?, args)
}

/// A user or group; -1 stays as it is.
pub(crate) fn owner(text: &[u8]) -> Option<i64> {
    number(text).map(|id| if id == 0xffff_ffff { -1 } else { id })
}

fn fchownat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let bits = lenient_flags(call.arg(4));
    let args = args!(call, uid = owner 2, gid = owner 3);
    if let Some(file) = own_file(call, bits) {
        return Some(Kind::file(Op::Fchown, file, args));
    }
    let op = if bits & AT_SYMLINK_NOFOLLOW != 0 {
        Op::Lchown
    } else {
        Op::Chown
    };
    on_path(op, first_at(call)?, args)
}

/// `name, value, size, flags` behind a path or descriptor.
pub(crate) fn xattr_args<'a>(call: &Scanned<'a>) -> Args<'a> {
    let name = string_start(call.arg(1));
    let is_list = name.as_deref() == Some(b"system.posix_acl_access");
    Args {
        mode: is_list
            .then(|| mode_of_list(&string(call.arg(2))?))
            .flatten(),
        text: name,
        size: number(call.arg(3)),
        flags: flags(call.arg(4)).filter(|&bits| bits != 0),
        ..Args::default()
    }
}

/// The mode that an access control list stands for, if it says no more than one: `linux/posix_acl_xattr.h`.
fn mode_of_list(list: &[u8]) -> Option<i64> {
    let entries = list.strip_prefix(&2_u32.to_le_bytes())?;
    let (entries, rest) = entries.as_chunks::<8>();
    let [owner, group, others] = entries else {
        return None;
    };
    let mut mode = 0;
    for (entry, wanted) in [(owner, 1), (group, 4), (others, 0x20)] {
        mode = match *entry {
            [tag, 0, allowed @ 0..=7, 0, ..] if tag == wanted => mode << 3 | i64::from(allowed),
            _ => return None,
        };
    }
    rest.is_empty().then_some(mode)
}

/// Times of `[atime, mtime]`, or now for NULL.
fn times<'a>(text: &[u8]) -> Args<'a> {
    let Some(inner) = text.strip_prefix(b"[") else {
        return Args {
            atime_ns: Some(NOW),
            mtime_ns: Some(NOW),
            ..Args::default()
        };
    };
    let open = inner.first() == Some(&b'{');
    let first_end = find(inner, if open { b"}" } else { b"," }).unwrap_or(0);
    let second = from(inner, first_end);
    let second = find(second, b", ").map_or(second, |at| from(second, at + 2));
    Args {
        atime_ns: time_ns(inner),
        mtime_ns: time_ns(second),
        ..Args::default()
    }
}

fn utime<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let shown = call.arg(1);
    let second = |name: &[u8]| {
        field(shown, name)
            .and_then(number)
            .and_then(|value| value.checked_mul(1_000_000_000))
            .or(Some(NOW))
    };
    let args = Args {
        atime_ns: second(b"actime"),
        mtime_ns: second(b"modtime"),
        ..Args::default()
    };
    on_path(Op::Utimens, path(call.arg(0))?, args)
}

fn utimensat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = times(call.arg(2));
    let bits = lenient_flags(call.arg(3));
    let own = match call.arg(1) {
        b"NULL" => Some(file(call.arg(0))?),
        _ => own_file(call, bits),
    };
    if let Some(file) = own {
        return Some(Kind::file(Op::Futimens, file, args));
    }
    let op = if bits & AT_SYMLINK_NOFOLLOW != 0 {
        Op::Lutimens
    } else {
        Op::Utimens
    };
    on_path(op, first_at(call)?, args)
}
