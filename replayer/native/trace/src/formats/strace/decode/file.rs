//! Calls that name files by descriptor.
#![allow(clippy::unnecessary_wraps, reason = "all decoders have one signature")]

use crate::bytes::{cut, find, from, number, take_digits};
use crate::call::{Args, FileArg, Kind, OnExec};
use crate::constants::{
    CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE, MAP_ANONYMOUS, O_CLOEXEC, flags, lenient_flags,
};
use crate::formats::strace::args::outside_strings;
use crate::formats::strace::decode::Decoder;
use crate::formats::strace::decode::path::{owner, xattr_args};
use crate::formats::strace::scan::Scanned;
use crate::formats::strace::value::{field, file, seen};
use replayer_ops::Op;
use std::borrow::Cow;

#[rustfmt::skip]
pub(crate) const DECODERS: &[(&str, Decoder)] = &[
    ("close", close), ("close_range", close_range), ("dup", dup), ("dup2", dup), ("dup3", dup), ("fchdir", fchdir),
    ("read", |call| sized(call, Op::Read)), ("write", |call| sized(call, Op::Write)),
    ("pread64", |call| placed(call, Op::Pread)), ("pread", |call| placed(call, Op::Pread)),
    ("pwrite64", |call| placed(call, Op::Pwrite)), ("pwrite", |call| placed(call, Op::Pwrite)),
    ("readv", |call| vector(call, Op::Readv)), ("writev", |call| vector(call, Op::Writev)),
    ("preadv", |call| vector(call, Op::Preadv)), ("preadv2", |call| vector_2(call, Op::Preadv, Op::Readv)),
    ("pwritev", |call| vector(call, Op::Pwritev)), ("pwritev2", |call| vector_2(call, Op::Pwritev, Op::Writev)),
    ("lseek", lseek), ("_llseek", llseek),
    ("getdents", getdents), ("getdents64", getdents),
    ("fstat", fstat), ("fstat64", fstat),
    ("fstatfs", |call| bare(call, Op::Fstatfs)), ("fstatfs64", |call| bare(call, Op::Fstatfs)),
    ("fsync", |call| bare(call, Op::Fsync)), ("fdatasync", |call| bare(call, Op::Fdatasync)),
    ("syncfs", |call| bare(call, Op::Syncfs)),
    ("sync_file_range", sync_file_range), ("fallocate", fallocate), ("fadvise64", fadvise), ("fadvise64_64", fadvise),
    ("readahead", readahead), ("ftruncate", ftruncate), ("ftruncate64", ftruncate),
    ("fchmod", fchmod), ("fchown", fchown), ("fchown32", fchown), ("flock", flock),
    ("fcntl", fcntl), ("fcntl64", fcntl), ("ioctl", ioctl), ("mmap", mmap), ("mmap2", mmap),
    ("fgetxattr", |call| xattr(call, Op::Fgetxattr)), ("fsetxattr", |call| xattr(call, Op::Fsetxattr)),
    ("fremovexattr", |call| xattr(call, Op::Fremovexattr)), ("flistxattr", flistxattr),
    ("copy_file_range", |call| between(call, Op::CopyFileRange)), ("splice", |call| between(call, Op::Splice)),
    ("sendfile", sendfile), ("sendfile64", sendfile),
];

fn on_file<'a>(op: Op, call: &Scanned<'a>, args: Args<'a>) -> Option<Kind<'a>> {
    Some(Kind::File {
        op,
        file: file(call.args.get(0))?,
        args,
    })
}

fn bare<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    on_file(op, call, Args::default())
}

fn close<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Close(file(call.args.get(0))?))
}

fn close_range<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::CloseRange {
        first: number(call.args.get(0))?,
        last: number(call.args.get(1))?,
        only_mark: lenient_flags(call.args.get(2)) & CLOSE_RANGE_CLOEXEC != 0,
        parts: lenient_flags(call.args.get(2)) & CLOSE_RANGE_UNSHARE != 0,
    })
}

fn on_exec(closes: bool) -> OnExec {
    if closes { OnExec::Close } else { OnExec::Keep }
}

fn dup<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Dup {
        file: file(call.args.get(0))?,
        on_exec: on_exec(lenient_flags(call.args.get(2)) & O_CLOEXEC != 0),
    })
}

fn fchdir<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::Fchdir(file(call.args.get(0))?))
}

fn sized<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let args = Args {
        size: number(call.args.get(2)),
        ..Args::default()
    };
    on_file(op, call, args)
}

fn placed<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let args = Args {
        size: number(call.args.get(2)),
        offset: number(call.args.get(3)),
        ..Args::default()
    };
    on_file(op, call, args)
}

fn vector<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let positioned = matches!(op, Op::Preadv | Op::Pwritev);
    let asked = vector_bytes(call.args.get(1)).max(call.result.value.unwrap_or(0));
    let args = Args {
        size: Some(asked),
        offset: number(call.args.get(3)).filter(|_| positioned),
        ..Args::default()
    };
    on_file(op, call, args)
}

/// The v2 calls take an offset of -1 for the position of the description, which moves on (preadv2(2)).
fn vector_2<'a>(call: &Scanned<'a>, placed: Op, at_position: Op) -> Option<Kind<'a>> {
    let is_placed = number(call.args.get(3)) != Some(-1);
    let mut kind = vector(call, if is_placed { placed } else { at_position })?;
    let bits = vector_flags(call);
    if let Kind::File { args, .. } = &mut kind {
        args.flags = (bits != 0).then_some(bits);
    }
    Some(kind)
}

/// They stand last: behind the offset, or behind its two halves where the call is not decoded (`-e raw=`).
fn vector_flags(call: &Scanned<'_>) -> i64 {
    let mut ends = [5, 4].into_iter().map(|at| call.args.get(at));
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

fn lseek<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        offset: number(call.args.get(1)),
        flags: flags(call.args.get(2)),
        ..Args::default()
    };
    on_file(Op::Lseek, call, args)
}

fn llseek<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        offset: number(call.args.get(1)),
        flags: flags(call.args.get(3)),
        ..Args::default()
    };
    on_file(Op::Lseek, call, args)
}

fn getdents<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        size: number(call.args.get(2)),
        entries: entries(call.args.get(1)),
        ..Args::default()
    };
    on_file(Op::Getdents, call, args)
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

fn fstat<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        seen: seen(call.args.get(1)),
        ..Args::default()
    };
    on_file(Op::Fstat, call, args)
}

fn ranged<'a>(call: &Scanned<'a>, op: Op, places: [usize; 3]) -> Option<Kind<'a>> {
    let [offset, size, bits] = places;
    let args = Args {
        offset: number(call.args.get(offset)),
        size: number(call.args.get(size)),
        flags: flags(call.args.get(bits)),
        ..Args::default()
    };
    on_file(op, call, args)
}

fn sync_file_range<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    ranged(call, Op::SyncFileRange, [1, 2, 3])
}

fn fallocate<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    ranged(call, Op::Fallocate, [2, 3, 1])
}

fn fadvise<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    ranged(call, Op::Fadvise, [1, 2, 3])
}

fn readahead<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    ranged(call, Op::Readahead, [1, 2, 3])
}

fn ftruncate<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        size: number(call.args.get(1)),
        ..Args::default()
    };
    on_file(Op::Ftruncate, call, args)
}

fn fchmod<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        mode: flags(call.args.get(1)),
        ..Args::default()
    };
    on_file(Op::Fchmod, call, args)
}

fn fchown<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        uid: owner(call.args.get(1)),
        gid: owner(call.args.get(2)),
        ..Args::default()
    };
    on_file(Op::Fchown, call, args)
}

fn flock<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let args = Args {
        flags: flags(call.args.get(1)),
        ..Args::default()
    };
    on_file(Op::Flock, call, args)
}

fn fcntl<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let file = file(call.args.get(0))?;
    let command = flags(call.args.get(1));
    let third = call.args.get(2);
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
        Some(5..=7 | 12..=14 | 36..=38) => lock(file, command, third),
        Some(_) => Kind::File {
            op: Op::Fcntl,
            file,
            args: Args {
                flags: command,
                size: flags(third),
                ..Args::default()
            },
        },
        None => Kind::Unsupported {
            path: None,
            file: Some(file),
        },
    })
}

/// A lock of a range: `{l_type=F_RDLCK, l_whence=SEEK_SET, l_start=1, l_len=1}`.
fn lock<'a>(file: FileArg<'a>, command: Option<i64>, text: &'a [u8]) -> Kind<'a> {
    let Some(kind) = field(text, b"l_type").and_then(flags) else {
        return Kind::Unsupported {
            path: None,
            file: Some(file),
        };
    };
    let whence = field(text, b"l_whence").and_then(flags);
    Kind::File {
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
    }
}

fn ioctl<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    let target = file(call.args.get(0))?;
    let command = call.args.get(1);
    if find(command, b"FICLONE").is_some()
        && find(command, b"FICLONERANGE").is_none()
        && let Some(source) = file(call.args.get(2))
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
    let mapped = lenient_flags(call.args.get(3));
    let file = file(call.args.get(4))?;
    if mapped & MAP_ANONYMOUS != 0 || file.number < 0 || file.number == 0xffff_ffff {
        return Some(Kind::Other);
    }
    Some(Kind::File {
        op: Op::Mmap,
        file,
        args: Args {
            size: number(call.args.get(1)),
            mode: flags(call.args.get(2)),
            flags: Some(mapped),
            offset: number(call.args.get(5)),
            ..Args::default()
        },
    })
}

fn xattr<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    on_file(op, call, xattr_args(call))
}

fn flistxattr<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    sized(call, Op::Flistxattr)
}

/// An offset that is passed by address: `[4096]`, `[0 => 1096]`; None for NULL.
fn pointed(text: &[u8]) -> Option<i64> {
    number(text.strip_prefix(b"[")?)
}

/// `copy_file_range` and splice: from, its offset, to, its offset, size.
fn between<'a>(call: &Scanned<'a>, op: Op) -> Option<Kind<'a>> {
    let target = call.args.get(3);
    Some(Kind::TwoFiles {
        op,
        file: file(call.args.get(0))?,
        to: file(call.args.get(2))?,
        args: Args {
            offset: pointed(call.args.get(1)),
            size: number(call.args.get(4)),
            text: target
                .strip_prefix(b"[")
                .and_then(|inner| take_digits(inner).map(|(_, rest)| inner.len() - rest.len()))
                .map(|length| Cow::Borrowed(cut(target, 1, 1 + length))),
            ..Args::default()
        },
    })
}

fn sendfile<'a>(call: &Scanned<'a>) -> Option<Kind<'a>> {
    Some(Kind::TwoFiles {
        op: Op::Sendfile,
        file: file(call.args.get(1))?,
        to: file(call.args.get(0))?,
        args: Args {
            offset: pointed(call.args.get(2)),
            size: number(call.args.get(3)),
            ..Args::default()
        },
    })
}
