//! Calls that name files by descriptor.
#![allow(clippy::unnecessary_wraps, reason = "all decoders have one signature")]

use crate::bytes::{cut, find, from, number, take_digits};
use crate::call::{Args, FileArg, Kind, OnExec};
use crate::constants::{
    CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE, MAP_ANONYMOUS, O_CLOEXEC, flags, lenient_flags,
};
use crate::formats::strace::args::outside_strings;
use crate::formats::strace::decode::path::{owner, xattr_args};
use crate::formats::strace::decode::{Decoder, all_flags, unsupported};
use crate::formats::strace::scan::Scanned;
use crate::formats::strace::value::{field, file, seen};
use replayer_ops::Op;
use std::borrow::Cow;

#[rustfmt::skip]
pub(crate) const DECODERS: &[(&str, Decoder)] = &[
    ("close", |c| Some(Kind::Close(file(c.arg(0))?))), ("close_range", close_range),
    ("fchdir", |c| Some(Kind::Fchdir(file(c.arg(0))?))), ("dup", dup), ("dup2", dup), ("dup3", dup),
    ("read", |c| sized(c, Op::Read)), ("write", |c| sized(c, Op::Write)), ("flistxattr", |c| sized(c, Op::Flistxattr)),
    ("pread64", |c| placed(c, Op::Pread)), ("pread", |c| placed(c, Op::Pread)),
    ("pwrite64", |c| placed(c, Op::Pwrite)), ("pwrite", |c| placed(c, Op::Pwrite)),
    ("readv", |c| vector(c, Op::Readv)), ("writev", |c| vector(c, Op::Writev)),
    ("preadv", |c| vector(c, Op::Preadv)), ("preadv2", |c| vector_2(c, Op::Preadv, Op::Readv)),
    ("pwritev", |c| vector(c, Op::Pwritev)), ("pwritev2", |c| vector_2(c, Op::Pwritev, Op::Writev)),
    ("lseek", |c| on_file(Op::Lseek, c, args!(c, offset = number 1, flags = flags 2))),
    ("_llseek", |c| on_file(Op::Lseek, c, args!(c, offset = number 1, flags = flags 3))),
    ("getdents", getdents), ("getdents64", getdents), ("fstat", fstat), ("fstat64", fstat),
    ("fstatfs", |c| on_file(Op::Fstatfs, c, args!(c))), ("fstatfs64", |c| on_file(Op::Fstatfs, c, args!(c))),
    ("fsync", |c| on_file(Op::Fsync, c, args!(c))), ("fdatasync", |c| on_file(Op::Fdatasync, c, args!(c))),
    ("syncfs", |c| on_file(Op::Syncfs, c, args!(c))),
    ("sync_file_range", |c| ranged(c, Op::SyncFileRange)), ("readahead", |c| ranged(c, Op::Readahead)),
    ("fadvise64", |c| ranged(c, Op::Fadvise)), ("fadvise64_64", |c| ranged(c, Op::Fadvise)),
    ("fallocate", |c| on_file(Op::Fallocate, c, args!(c, flags = flags 1, offset = number 2, size = number 3))),
    ("ftruncate", ftruncate), ("ftruncate64", ftruncate),
    ("fchmod", |c| on_file(Op::Fchmod, c, args!(c, mode = flags 1))), ("fchown", fchown), ("fchown32", fchown),
    ("flock", |c| on_file(Op::Flock, c, args!(c, flags = flags 1))),
    ("fcntl", fcntl), ("fcntl64", fcntl), ("ioctl", ioctl), ("mmap", mmap), ("mmap2", mmap),
    ("fgetxattr", |c| on_file(Op::Fgetxattr, c, xattr_args(c))), ("fsetxattr", |c| on_file(Op::Fsetxattr, c, xattr_args(c))),
    ("fremovexattr", |c| on_file(Op::Fremovexattr, c, xattr_args(c))),
    ("copy_file_range", |c| between(c, Op::CopyFileRange)), ("splice", |c| between(c, Op::Splice)),
    ("sendfile", sendfile), ("sendfile64", sendfile),
];

fn on_file<'a>(op: Op, call: &Scanned<'a>, args: Args<'a>) -> Option<Kind<'a>> {
    Some(Kind::file(op, file(call.arg(0))?, args))
}

fn close_range<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::CloseRange {
        first: number(call.arg(0))?,
        last: number(call.arg(1))?,
        only_mark: lenient_flags(call.arg(2)) & CLOSE_RANGE_CLOEXEC != 0,
        parts: lenient_flags(call.arg(2)) & CLOSE_RANGE_UNSHARE != 0,
    })
}

fn on_exec(closes: bool) -> OnExec {
    if closes { OnExec::Close } else { OnExec::Keep }
}

fn dup<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Dup {
        file: file(call.arg(0))?,
        on_exec: on_exec(lenient_flags(call.arg(2)) & O_CLOEXEC != 0),
    })
}

fn sized<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    on_file(op, call, args!(call, size = number 2))
}

fn placed<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    on_file(op, call, args!(call, size = number 2, offset = number 3))
}

fn ranged<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    on_file(
        op,
        call,
        args!(call, offset = number 1, size = number 2, flags = flags 3),
    )
}

fn getdents<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    on_file(
        Op::Getdents,
        call,
        args!(call, entries = entries 1, size = number 2),
    )
}

fn fstat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    on_file(Op::Fstat, call, args!(call, seen = seen 1))
}

fn ftruncate<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    on_file(Op::Ftruncate, call, args!(call, size = number 1))
}

fn fchown<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    on_file(Op::Fchown, call, args!(call, uid = owner 1, gid = owner 2))
}

fn sendfile<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::TwoFiles {
        op: Op::Sendfile,
        file: file(call.arg(1))?,
        to: file(call.arg(0))?,
        args: args!(call, offset = pointed 2, size = number 3),
    })
}

fn vector<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let positioned = matches!(op, Op::Preadv | Op::Pwritev);
    let asked = vector_bytes(call.arg(1)).max(call.result.value.unwrap_or(0));
    let args = Args {
        size: Some(asked),
        offset: number(call.arg(3)).filter(|_| positioned),
        ..Args::default()
    };
    on_file(op, call, args)
}

/// The v2 calls take an offset of -1 for the position of the description, which moves on (preadv2(2)).
fn vector_2<'a>(call: &Scanned<'a>, placed: Op, at_position: Op) -> Option<Kind<'a>> {
    let is_placed = number(call.arg(3)) != Some(-1);
    let mut kind = vector(call, if is_placed { placed } else { at_position })?;
    let bits = vector_flags(call);
    if let Kind::File { args, .. } = &mut kind {
        args.flags = (bits != 0).then_some(bits);
    }
    Some(kind)
}

/// They stand last: behind the offset, or behind its two halves where the call is not decoded (`-e raw=`).
fn vector_flags(call: &Scanned<'_>) -> i64 {
    let mut ends = [5, 4].into_iter().map(|at| call.arg(at));
    lenient_flags(ends.find(|text| !text.is_empty()).unwrap_or_default())
}

/// The sum of `iov_len=…`; strace may leave some out behind `...`.
fn vector_bytes(text: &[u8]) -> i64 {
    let lengths = outside_strings(text).flat_map(|part| {
        let places = memchr::memmem::find_iter(part, b"iov_len=");
        places.filter_map(|at| number(from(part, at + 8)))
    });
    lengths.fold(0, i64::saturating_add)
}

/// `0x55d /* 12 entries */`, or the list that -v prints.
fn entries(text: &[u8]) -> Option<i64> {
    if text.first() == Some(&b'[') {
        let names =
            outside_strings(text).flat_map(|part| memchr::memmem::find_iter(part, b"d_ino="));
        return i64::try_from(names.count()).ok();
    }
    if let Some(at) = find(text, b"/* ") {
        let (count, rest) = take_digits(from(text, at + 3))?;
        return rest
            .starts_with(b" entr")
            .then(|| i64::try_from(count).ok())
            .flatten();
    }
    None
}

fn fcntl<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let file = file(call.arg(0))?;
    let command = flags(call.arg(1));
    let third = call.arg(2);
    Some(match command {
        Some(0 | 1030) => Kind::Dup {
            file,
            on_exec: on_exec(command == Some(1030)),
        },
        Some(2) => Kind::SetOnExec {
            file,
            on_exec: on_exec(lenient_flags(third) & 1 != 0),
            args: Args {
                flags: command,
                size: Some(lenient_flags(third)),
                ..Args::default()
            },
        },
        Some(5..=7 | 12..=14 | 36..=38) => return lock(file, command, third),
        Some(_) => Kind::File {
            op: Op::Fcntl,
            file,
            args: Args {
                flags: command,
                size: flags(third),
                ..Args::default()
            },
        },
        None => return unsupported(None, Some(file)),
    })
}

/// A lock of a range: `{l_type=F_RDLCK, l_whence=SEEK_SET, l_start=1, l_len=1}`.
fn lock<'a>(file: FileArg<'a>, command: Option<i64>, text: &'a [u8]) -> Option<Kind<'a>> {
    let Some(kind) = field(text, b"l_type").and_then(flags) else {
        return unsupported(None, Some(file));
    };
    let whence = field(text, b"l_whence").and_then(flags);
    Some(Kind::File {
        op: Op::Lock,
        file,
        args: Args {
            flags: command,
            mode: Some(kind),
            offset: field(text, b"l_start").and_then(number),
            size: field(text, b"l_len").and_then(number),
            entries: whence.filter(|&whence| whence != 0),
            ..Args::default()
        },
    })
}

fn ioctl<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let target = file(call.arg(0))?;
    let command = call.arg(1);
    if find(command, b"FICLONE").is_some()
        && find(command, b"FICLONERANGE").is_none()
        && let Some(source) = file(call.arg(2))
    {
        return Some(Kind::TwoFiles {
            op: Op::Clone,
            file: source,
            to: target,
            args: Args::default(),
        });
    }
    let args = Args {
        text: Some(Cow::Borrowed(command)),
        ..Args::default()
    };
    match command {
        b"FS_IOC_FIEMAP" => on_file(Op::Fiemap, call, Args::default()),
        b"FIOCLEX" | b"FIONCLEX" => Some(Kind::SetOnExec {
            file: target,
            on_exec: on_exec(command == b"FIOCLEX"),
            args: Args {
                flags: Some(2),
                size: Some(i64::from(command == b"FIOCLEX")),
                ..Args::default()
            },
        }),
        _ => on_file(Op::Ioctl, call, args),
    }
}

fn mmap<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let mapped = lenient_flags(call.arg(3));
    let file = file(call.arg(4))?;
    if mapped & MAP_ANONYMOUS != 0 || file.number < 0 || file.number == 0xffff_ffff {
        return Some(Kind::Other);
    }
    Some(Kind::File {
        op: Op::Mmap,
        file,
        args: args!(call, size = number 1, mode = flags 2, flags = all_flags 3, offset = number 5),
    })
}

/// An offset that is passed by address: `[4096]`, `[0 => 1096]`; None for NULL.
pub(crate) fn pointed(text: &[u8]) -> Option<i64> {
    number(text.strip_prefix(b"[")?)
}

/// `copy_file_range` and splice: from, its offset, to, its offset, size.
fn between<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let target = call.arg(3);
    Some(Kind::TwoFiles {
        op,
        file: file(call.arg(0))?,
        to: file(call.arg(2))?,
        args: Args {
            offset: pointed(call.arg(1)),
            size: number(call.arg(4)),
            text: target
                .strip_prefix(b"[")
                .and_then(|inner| take_digits(inner).map(|(_, rest)| inner.len() - rest.len()))
                .map(|length| Cow::Borrowed(cut(target, 1, 1 + length))),
            ..Args::default()
        },
    })
}
