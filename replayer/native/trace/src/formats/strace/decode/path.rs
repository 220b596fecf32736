//! Calls that name files by path.
#![allow(clippy::unnecessary_wraps, reason = "all decoders have one signature")]

use crate::bytes::{find, from, number};
use crate::call::{Args, At, FileArg, Kind, PathArg};
use crate::constants::{
    AT_EMPTY_PATH, AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW, O_CREAT, O_TRUNC, flags, lenient_flags,
};
use crate::formats::strace::decode::Decoder;
use crate::formats::strace::scan::Scanned;
use crate::formats::strace::value::{
    NOW, at, field, file, path, path_at, seen, string, string_start, time_ns,
};
use replayer_ops::Op;
use std::borrow::Cow;

#[rustfmt::skip]
pub(crate) const DECODERS: &[(&str, Decoder)] = &[
    ("open", open), ("openat", openat), ("openat2", openat2), ("creat", creat),
    ("stat", |call| stat(call, Op::Stat)), ("stat64", |call| stat(call, Op::Stat)),
    ("lstat", |call| stat(call, Op::Lstat)), ("lstat64", |call| stat(call, Op::Lstat)),
    ("newfstatat", fstatat), ("fstatat64", fstatat), ("statx", statx),
    ("access", access), ("faccessat", faccessat), ("faccessat2", faccessat),
    ("mkdir", |call| with_mode(call, Op::Mkdir)), ("mkdirat", |call| with_mode_at(call, Op::Mkdir)),
    ("mknod", |call| with_mode(call, Op::Mknod)), ("mknodat", |call| with_mode_at(call, Op::Mknod)),
    ("chmod", |call| with_mode(call, Op::Chmod)), ("fchmodat", fchmodat),
    ("fchmodat2", fchmodat),
    ("rmdir", |call| plain(call, Op::Rmdir)), ("unlink", |call| plain(call, Op::Unlink)),
    ("unlinkat", unlinkat), ("statfs", |call| plain(call, Op::Statfs)), ("statfs64", |call| plain(call, Op::Statfs)),
    ("readlink", readlink), ("readlinkat", readlinkat),
    ("rename", rename), ("renameat", renameat), ("renameat2", renameat),
    ("link", link), ("linkat", linkat), ("symlink", symlink), ("symlinkat", symlinkat),
    ("truncate", truncate), ("truncate64", truncate),
    ("chown", |call| chown(call, Op::Chown)), ("lchown", |call| chown(call, Op::Lchown)),
    ("chown32", |call| chown(call, Op::Chown)), ("lchown32", |call| chown(call, Op::Lchown)), ("fchownat", fchownat),
    ("getxattr", |call| xattr(call, Op::Getxattr)), ("lgetxattr", |call| xattr(call, Op::Lgetxattr)),
    ("setxattr", |call| xattr(call, Op::Setxattr)), ("lsetxattr", |call| xattr(call, Op::Lsetxattr)),
    ("removexattr", |call| xattr(call, Op::Removexattr)), ("lremovexattr", |call| xattr(call, Op::Lremovexattr)),
    ("listxattr", |call| listxattr(call, Op::Listxattr)), ("llistxattr", |call| listxattr(call, Op::Llistxattr)),
    ("utime", utime), ("utimes", utimes), ("utimensat", utimensat), ("futimesat", futimesat),
];

pub(crate) fn on_path<'a>(op: Op, path: PathArg<'a>, args: Args<'a>) -> Option<Kind<'a>> {
    Some(Kind::Path { op, path, args })
}

fn opened<'a>(call: &Scanned<'a>, path: PathArg<'a>, args: Args<'a>) -> Option<Kind<'a>> {
    Some(Kind::Open {
        path,
        args,
        shown: call.result.shown,
    })
}

fn open<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        flags: Some(lenient_flags(call.args.get(1))),
        mode: flags(call.args.get(2)),
        ..Args::default()
    };
    opened(call, path(call.args.get(0))?, args)
}

fn openat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        flags: Some(lenient_flags(call.args.get(2))),
        mode: flags(call.args.get(3)),
        ..Args::default()
    };
    opened(call, path_at(call.args.get(0), call.args.get(1))?, args)
}

fn openat2<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let how = call.args.get(2);
    let args = Args {
        flags: field(how, b"flags").map(lenient_flags),
        mode: field(how, b"mode").and_then(flags),
        size: field(how, b"resolve")
            .map(lenient_flags)
            .filter(|&bits| bits != 0),
        ..Args::default()
    };
    opened(call, path_at(call.args.get(0), call.args.get(1))?, args)
}

fn creat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        flags: Some(1 | O_CREAT | O_TRUNC),
        mode: flags(call.args.get(1)),
        ..Args::default()
    };
    opened(call, path(call.args.get(0))?, args)
}

fn stat<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let args = Args {
        seen: seen(call.args.get(1)),
        ..Args::default()
    };
    on_path(op, path(call.args.get(0))?, args)
}

fn fstatat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    stat_at(call, lenient_flags(call.args.get(3)), call.args.get(2))
}

fn statx<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    stat_at(call, lenient_flags(call.args.get(2)), call.args.get(4))
}

fn stat_at<'a>(call: &Scanned<'a>, bits: i64, shown: &[u8]) -> Option<Kind<'a>> {
    // What asks for fresh attributes matters on a mount; what chooses between stat and lstat is in the op.
    let kept = bits & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    let args = Args {
        flags: (kept != 0).then_some(kept),
        seen: seen(shown),
        ..Args::default()
    };
    if bits & AT_EMPTY_PATH != 0 && matches!(call.args.get(1), b"\"\"" | b"NULL") {
        return match at(call.args.get(0))? {
            At::File(file) => Some(Kind::File {
                op: Op::Fstat,
                file,
                args,
            }),
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
    on_path(op, path_at(call.args.get(0), call.args.get(1))?, args)
}

fn access<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        flags: flags(call.args.get(1)),
        ..Args::default()
    };
    on_path(Op::Access, path(call.args.get(0))?, args)
}

fn faccessat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let bits = lenient_flags(call.args.get(3));
    let args = Args {
        flags: flags(call.args.get(2)),
        mode: (bits != 0).then_some(bits),
        ..Args::default()
    };
    on_path(
        Op::Access,
        path_at(call.args.get(0), call.args.get(1))?,
        args,
    )
}

pub(crate) fn chdir<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    plain(call, Op::Chdir)
}

fn plain<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    on_path(op, path(call.args.get(0))?, Args::default())
}

fn with_mode<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let args = Args {
        mode: flags(call.args.get(1)),
        ..Args::default()
    };
    on_path(op, path(call.args.get(0))?, args)
}

fn with_mode_at<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let args = Args {
        mode: flags(call.args.get(2)),
        ..Args::default()
    };
    on_path(op, path_at(call.args.get(0), call.args.get(1))?, args)
}

/// The descriptor that a call means itself: `AT_EMPTY_PATH`, and an empty path.
pub(crate) fn own_file<'a>(call: &Scanned<'a>, bits: i64) -> Option<FileArg<'a>> {
    let is_empty = bits & AT_EMPTY_PATH != 0 && call.args.get(1) == b"\"\"";
    match at(call.args.get(0))? {
        At::File(file) if is_empty => Some(file),
        _ => None,
    }
}

fn fchmodat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    if let Some(file) = own_file(call, lenient_flags(call.args.get(3))) {
        return Some(Kind::File {
            op: Op::Fchmod,
            file,
            args: Args {
                mode: flags(call.args.get(2)),
                ..Args::default()
            },
        });
    }
    with_mode_at(call, Op::Chmod)
}

fn unlinkat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let op = if lenient_flags(call.args.get(2)) & AT_REMOVEDIR != 0 {
        Op::Rmdir
    } else {
        Op::Unlink
    };
    on_path(
        op,
        path_at(call.args.get(0), call.args.get(1))?,
        Args::default(),
    )
}

fn link_args<'a>(target: &'a [u8], size: &[u8]) -> Args<'a> {
    Args {
        size: number(size),
        text: string(target),
        ..Args::default()
    }
}

fn readlink<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = link_args(call.args.get(1), call.args.get(2));
    on_path(Op::Readlink, path(call.args.get(0))?, args)
}

fn readlinkat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = link_args(call.args.get(2), call.args.get(3));
    on_path(
        Op::Readlink,
        path_at(call.args.get(0), call.args.get(1))?,
        args,
    )
}

fn rename<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::TwoPaths {
        op: Op::Rename,
        path: path(call.args.get(0))?,
        to: path(call.args.get(1))?,
        args: Args::default(),
    })
}

fn renameat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    // An empty path says it: the descriptor's own file.
    let bits = lenient_flags(call.args.get(4)) & !AT_EMPTY_PATH;
    Some(Kind::TwoPaths {
        op: Op::Rename,
        path: path_at(call.args.get(0), call.args.get(1))?,
        to: path_at(call.args.get(2), call.args.get(3))?,
        args: Args {
            flags: (bits != 0).then_some(bits),
            ..Args::default()
        },
    })
}

fn link<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::TwoPaths {
        op: Op::Link,
        path: path(call.args.get(0))?,
        to: path(call.args.get(1))?,
        args: Args::default(),
    })
}

fn linkat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let bits = lenient_flags(call.args.get(4));
    Some(Kind::TwoPaths {
        op: Op::Link,
        path: path_at(call.args.get(0), call.args.get(1))?,
        to: path_at(call.args.get(2), call.args.get(3))?,
        args: Args {
            flags: (bits != 0).then_some(bits),
            ..Args::default()
        },
    })
}

fn symlink<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        text: Some(string(call.args.get(0))?),
        ..Args::default()
    };
    on_path(Op::Symlink, path(call.args.get(1))?, args)
}

fn symlinkat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        text: Some(string(call.args.get(0))?),
        ..Args::default()
    };
    on_path(
        Op::Symlink,
        path_at(call.args.get(1), call.args.get(2))?,
        args,
    )
}

fn truncate<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        size: number(call.args.get(1)),
        ..Args::default()
    };
    on_path(Op::Truncate, path(call.args.get(0))?, args)
}

/// A user or group; -1 stays as it is.
pub(crate) fn owner(text: &[u8]) -> Option<i64> {
    number(text).map(|id| if id == 0xffff_ffff { -1 } else { id })
}

fn chown<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let args = Args {
        uid: owner(call.args.get(1)),
        gid: owner(call.args.get(2)),
        ..Args::default()
    };
    on_path(op, path(call.args.get(0))?, args)
}

fn fchownat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let bits = lenient_flags(call.args.get(4));
    let args = Args {
        uid: owner(call.args.get(2)),
        gid: owner(call.args.get(3)),
        ..Args::default()
    };
    if let Some(file) = own_file(call, bits) {
        return Some(Kind::File {
            op: Op::Fchown,
            file,
            args,
        });
    }
    let op = if bits & AT_SYMLINK_NOFOLLOW != 0 {
        Op::Lchown
    } else {
        Op::Chown
    };
    on_path(op, path_at(call.args.get(0), call.args.get(1))?, args)
}

/// `name, value, size, flags` behind a path or descriptor.
pub(crate) fn xattr_args<'a>(call: &Scanned<'a>) -> Args<'a> {
    let name = string_start(call.args.get(1));
    let is_list = name.as_deref() == Some(b"system.posix_acl_access");
    Args {
        mode: is_list
            .then(|| mode_of_list(&string(call.args.get(2))?))
            .flatten(),
        text: name,
        size: number(call.args.get(3)),
        flags: flags(call.args.get(4)).filter(|&bits| bits != 0),
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

fn xattr<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    on_path(op, path(call.args.get(0))?, xattr_args(call))
}

fn listxattr<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let args = Args {
        size: number(call.args.get(2)),
        ..Args::default()
    };
    on_path(op, path(call.args.get(0))?, args)
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
    let shown = call.args.get(1);
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
    on_path(Op::Utimens, path(call.args.get(0))?, args)
}

fn utimes<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    on_path(
        Op::Utimens,
        path(call.args.get(0))?,
        times(call.args.get(1)),
    )
}

fn futimesat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    on_path(
        Op::Utimens,
        path_at(call.args.get(0), call.args.get(1))?,
        times(call.args.get(2)),
    )
}

fn utimensat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = times(call.args.get(2));
    let bits = lenient_flags(call.args.get(3));
    let own = match call.args.get(1) {
        b"NULL" => Some(file(call.args.get(0))?),
        _ => own_file(call, bits),
    };
    if let Some(file) = own {
        return Some(Kind::File {
            op: Op::Futimens,
            file,
            args,
        });
    }
    let op = if bits & AT_SYMLINK_NOFOLLOW != 0 {
        Op::Lutimens
    } else {
        Op::Utimens
    };
    on_path(op, path_at(call.args.get(0), call.args.get(1))?, args)
}
