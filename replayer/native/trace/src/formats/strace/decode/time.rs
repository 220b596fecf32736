//! Calls that set times of files.
#![allow(clippy::unnecessary_wraps, reason = "all decoders have one signature")]

use crate::bytes::{find, from, number};
use crate::call::{Args, Kind};
use crate::constants::{AT_SYMLINK_NOFOLLOW, lenient_flags};
use crate::formats::strace::decode::Decoder;
use crate::formats::strace::decode::path::{on_path, own_file};
use crate::formats::strace::scan::Scanned;
use crate::formats::strace::value::{NOW, field, file, path, path_at, time_ns};
use crate::op::Op;

#[rustfmt::skip]
pub(crate) const DECODERS: &[(&str, Decoder)] = &[
    ("utime", utime), ("utimes", utimes), ("utimensat", utimensat), ("futimesat", futimesat),
];

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
