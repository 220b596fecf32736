//! Timed steps: the operands of every op.

use super::draws::slot;
use super::operands::Operands;
use super::value::{Fault, Parsed, list, refuse, small, text};
use crate::ops::{Op, outcome_of_name};
use crate::program::{Call, DataCall, Expect, FileCall, LockKind, PairCall, PathCall, Timed};
use serde_json::Value;

/// Flags that `open` may have (Linux, x86-64).
pub(crate) const OPEN_FLAGS: u32 = 0o3 // access mode
    | 0o100 // CREAT
    | 0o200 // EXCL
    | 0o400 // NOCTTY
    | 0o1000 // TRUNC
    | 0o2000 // APPEND
    | 0o4000 // NONBLOCK
    | 0o10000 // DSYNC
    | 0o40000 // DIRECT
    | 0o100_000 // LARGEFILE
    | 0o200_000 // DIRECTORY
    | 0o400_000 // NOFOLLOW
    | 0o1_000_000 // NOATIME
    | 0o2_000_000 // CLOEXEC
    | 0o4_010_000 // SYNC
    | 0o10_000_000 // PATH
    | 0o20_200_000; // TMPFILE

fn open_flags(value: &Value) -> Parsed<u32> {
    let flags = small(value, u32::MAX)?;
    if flags & !OPEN_FLAGS != 0 || flags & 3 == 3 {
        return refuse(
            &format!("a sum of known open flags (within {OPEN_FLAGS:#o})"),
            value,
        );
    }
    Ok(flags)
}

/// Read a timed step.
pub(super) fn timed(operands: &mut Operands) -> Parsed<Timed> {
    let op = operands.fields.take("op", |value| {
        let op = text(value).ok().and_then(Op::of_plan);
        op.map_or_else(|| refuse("a known op", value), Ok)
    })?;
    let call = call(op, operands)?;
    operands.no_others()?;
    let expect = operands.fields.take("expect", expect)?;
    Ok(Timed { op, call, expect })
}

pub(super) fn expect(value: &Value) -> Parsed<Expect> {
    let names = list(value, |value| {
        let name = text(value)?;
        if name == "any" {
            return Ok(Expect::ANY);
        }
        let outcome = outcome_of_name(name);
        outcome.map_or_else(
            || refuse("ok, any or the name of an errno", value),
            |code| Ok(Expect::NONE.with(code)),
        )
    })?;
    if names.is_empty() {
        return refuse("a list of at least one outcome", value);
    }
    Ok(names.into_iter().fold(Expect::NONE, Expect::or))
}

fn call(op: Op, take: &mut Operands) -> Parsed<Call> {
    if let Some(call) = path_call(op, take)? {
        return Ok(call);
    }
    if let Some((file, call)) = data_call(op, take)? {
        return Ok(Call::Data { file, call });
    }
    if op == Op::Close {
        return Ok(Call::Close { file: take.file()? });
    }
    let file = take.file()?;
    let call = file_call(op, take)?;
    Ok(Call::File { file, call })
}

fn path_call(op: Op, take: &mut Operands) -> Parsed<Option<Call>> {
    let call = match op {
        Op::Open => {
            let path = take.path()?;
            return Ok(Some(Call::Open {
                path,
                file: take.opened(path)?,
                flags: take.take("flags", open_flags)?,
                mode: take.mode()?,
            }));
        }
        Op::Symlink => {
            let (path, target) = (take.path()?, take.target()?);
            return Ok(Some(Call::Symlink { path, target }));
        }
        Op::Rename | Op::Link => {
            let (path, to) = (take.path()?, take.to()?);
            let call = pair_call(op, take)?;
            return Ok(Some(Call::Pair { path, to, call }));
        }
        Op::Stat => PathCall::Stat,
        Op::Lstat => PathCall::Lstat,
        Op::Access => PathCall::Access(take.number("mode", 7)?),
        Op::Mkdir => PathCall::Mkdir(take.mode()?),
        Op::Rmdir => PathCall::Rmdir,
        Op::Unlink => PathCall::Unlink,
        Op::Readlink => PathCall::Readlink,
        Op::Truncate => PathCall::Truncate(take.draw("size")?),
        Op::Chmod => PathCall::Chmod(take.mode()?),
        Op::Chown => PathCall::Chown(take.owner()?),
        Op::Utimens => PathCall::Utimens(take.time()?),
        Op::Getxattr => PathCall::Getxattr(take.attribute()?),
        Op::Setxattr => PathCall::Setxattr(take.attribute()?, take.write_size()?),
        Op::Removexattr => PathCall::Removexattr(take.attribute()?),
        Op::Listxattr => PathCall::Listxattr,
        _ => return Ok(None),
    };
    let path = take.path()?;
    Ok(Some(Call::Path { path, call }))
}

fn pair_call(op: Op, take: &mut Operands) -> Parsed<PairCall> {
    if op == Op::Link {
        return Ok(PairCall::Link);
    }
    let flags = take.number("flags", 2)?;
    Ok(PairCall::Rename { flags })
}

fn file_call(op: Op, take: &mut Operands) -> Parsed<FileCall> {
    Ok(match op {
        Op::Lseek => FileCall::Lseek {
            offset: take.relative("offset")?,
            whence: take.number("whence", 2)?,
        },
        Op::Fsync => FileCall::Fsync,
        Op::Fdatasync => FileCall::Fdatasync,
        Op::Fstat => FileCall::Fstat,
        Op::Ftruncate => FileCall::Ftruncate(take.draw("size")?),
        Op::Fallocate => FileCall::Fallocate {
            offset: take.draw("offset")?,
            size: take.draw("size")?,
            mode: take.number("mode", 0x7F)?,
        },
        Op::Fchmod => FileCall::Fchmod(take.mode()?),
        Op::Fchown => FileCall::Fchown(take.owner()?),
        Op::Futimens => FileCall::Futimens(take.time()?),
        Op::Flock => FileCall::Flock {
            kind: take.lock_kind()?,
            wait: take.boolean("wait")?,
        },
        Op::FlockUnlock => FileCall::Flock {
            kind: LockKind::Unlock,
            wait: true,
        },
        Op::FcntlLock => FileCall::FcntlLock {
            kind: take.lock_kind()?,
            wait: take.boolean("wait")?,
            offset: take.draw("offset")?,
            size: take.draw("size")?,
        },
        Op::FcntlUnlock => FileCall::FcntlLock {
            kind: LockKind::Unlock,
            wait: false,
            offset: take.draw("offset")?,
            size: take.draw("size")?,
        },
        _ => return Err(Fault::new("this op has no operands here")),
    })
}

fn data_call(op: Op, take: &mut Operands) -> Parsed<Option<(u8, DataCall)>> {
    let call = match op {
        Op::Read => DataCall::Read {
            size: take.read_size()?,
            until_end: take.boolean("until_end")?,
            check_size: take.boolean("check_size")?,
        },
        Op::Pread => DataCall::Pread {
            size: take.read_size()?,
            offset: take.draw("offset")?,
        },
        Op::PreadRandom => DataCall::PreadRandom {
            size: take.read_size()?,
            align: take.align()?,
        },
        Op::Write | Op::Append => take.written()?,
        Op::Pwrite => DataCall::Pwrite {
            size: take.write_size()?,
            offset: take.draw("offset")?,
        },
        Op::PwriteRandom => DataCall::PwriteRandom {
            size: take.write_size()?,
            align: take.align()?,
        },
        Op::Getdents => DataCall::Getdents,
        Op::CopyFileRange => DataCall::CopyFileRange {
            to: take.take("to", slot)?,
            size: take.draw("size")?,
            once: take.flag("once")?,
        },
        Op::Sendfile => DataCall::Sendfile {
            size: take.draw("size")?,
            once: take.flag("once")?,
        },
        Op::MmapRead => DataCall::MmapRead,
        _ => return Ok(None),
    };
    Ok(Some((take.file()?, call)))
}
