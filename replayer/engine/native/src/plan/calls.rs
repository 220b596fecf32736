//! Timed steps: the operands of every op.

use super::Context;
use super::draws::{LARGEST, draw, highest, slot};
use super::steps::parts;
use super::value::{
    Fault, Fields, Parsed, boolean, choice, integer, list, nullable, refuse, small, text,
};
use crate::ops::{Op, outcome_of_name};
use crate::path;
use crate::program::{Call, Draw, Expect, LinkTarget, LockKind, Mode, Part, SLOTS, Timed};
use serde_json::Value;
use std::ffi::CString;

/// The slots that hold the paths of an interactive command.
pub(crate) const PATH_SLOT: u8 = 16;
const _: () = assert!(SLOTS == 16);
pub(crate) const TO_SLOT: u8 = PATH_SLOT + 1;
/// The largest single read (chosen: buffers of this size are shared by the users).
const READ_BYTES: u64 = 1 << 30;

/// The operands of one call, and what reading them finds out.
pub(crate) struct Operands<'a, 'c, 't> {
    fields: Fields<'a>,
    context: &'c mut Context<'t>,
    /// The paths of an interactive command; a plan has slots instead.
    texts: Option<&'c mut Texts>,
    known: Vec<&'static str>,
}

/// The paths that an interactive command spells out.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) path: Option<String>,
    pub(crate) to: Option<String>,
}

impl<'a, 'c, 't> Operands<'a, 'c, 't> {
    pub(super) fn of_plan(fields: Fields<'a>, context: &'c mut Context<'t>) -> Self {
        let known = vec!["do", "op", "expect"];
        Operands {
            fields,
            context,
            texts: None,
            known,
        }
    }

    pub(super) fn of_command(
        fields: Fields<'a>,
        context: &'c mut Context<'t>,
        texts: &'c mut Texts,
    ) -> Self {
        let known = vec!["do", "op", "expect"];
        Operands {
            fields,
            context,
            texts: Some(texts),
            known,
        }
    }

    fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Parsed<T>,
    ) -> Parsed<T> {
        self.known.push(key);
        self.fields.take(key, read)
    }

    fn file(&mut self) -> Parsed<u8> {
        self.take("file", slot)
    }

    fn path(&mut self) -> Parsed<u8> {
        if self.texts.is_none() {
            return self.take("path", slot);
        }
        let path = self.take("path", spelled)?;
        if let Some(texts) = &mut self.texts {
            texts.path = Some(path);
        }
        Ok(PATH_SLOT)
    }

    fn to(&mut self) -> Parsed<u8> {
        if self.texts.is_none() {
            return self.take("to", slot);
        }
        let path = self.take("to", spelled)?;
        if let Some(texts) = &mut self.texts {
            texts.to = Some(path);
        }
        Ok(TO_SLOT)
    }

    /// The slot that `open` fills: that of its path, in a command one of its own.
    fn opened(&mut self, path: u8) -> Parsed<u8> {
        match self.texts {
            None => Ok(path),
            Some(_) => self.take("slot", slot),
        }
    }

    fn draw(&mut self, key: &'static str) -> Parsed<Draw> {
        self.known.push(key);
        let (context, interactive) = (&*self.context, self.texts.is_some());
        self.fields.take(key, |value| match value {
            Value::Number(_) if interactive => integer(value, 0, LARGEST).map(Draw::Const),
            _ => draw(value, context),
        })
    }

    /// A draw of bytes to read; remembers how large a buffer it needs.
    fn read_size(&mut self) -> Parsed<Draw> {
        let size = self.draw("size")?;
        let most = highest(size, self.context);
        if most > READ_BYTES {
            let message =
                format!("a single read must be at most {READ_BYTES} bytes, this can be {most}");
            return Err(Fault::new(message).at_key("size"));
        }
        self.context.read_bytes = self.context.read_bytes.max(most);
        Ok(size)
    }

    /// A draw of bytes to write at once.
    fn write_size(&mut self) -> Parsed<Draw> {
        let size = self.draw("size")?;
        let most = highest(size, self.context);
        self.context.write_bytes = self.context.write_bytes.max(most);
        Ok(size)
    }

    fn time(&mut self) -> Parsed<Option<Draw>> {
        self.known.push("mtime_ns");
        let context = &*self.context;
        self.fields.take("mtime_ns", |value| {
            nullable(value, |value| draw(value, context))
        })
    }

    fn mode(&mut self) -> Parsed<Mode> {
        let mode = self.take("mode", |value| {
            nullable(value, |value| small(value, 0o7777))
        })?;
        Ok(mode.map_or(Mode::Bound, Mode::Fixed))
    }

    fn number(&mut self, key: &'static str, high: u32) -> Parsed<u32> {
        self.take(key, |value| small(value, high))
    }

    fn align(&mut self) -> Parsed<u64> {
        self.take("align", |value| integer(value, 1, LARGEST))
    }

    fn boolean(&mut self, key: &'static str) -> Parsed<bool> {
        self.take(key, boolean)
    }

    fn owner(&mut self, key: &'static str) -> Parsed<Option<u32>> {
        self.take(key, |value| match value.as_i64() {
            Some(-1) => Ok(None),
            _ => small(value, u32::MAX - 1).map(Some),
        })
    }

    fn lock_kind(&mut self) -> Parsed<LockKind> {
        let kinds = [
            ("shared", LockKind::Shared),
            ("exclusive", LockKind::Exclusive),
            ("unlock", LockKind::Unlock),
        ];
        self.take("kind", |value| choice(value, &kinds))
    }

    fn attribute(&mut self) -> Parsed<CString> {
        self.take("name", |value| {
            let name = text(value)?;
            if !name.starts_with("user.") || name.len() > 255 || name.len() == 5 {
                return refuse(
                    "a name that begins with \"user.\", at most 255 bytes",
                    value,
                );
            }
            CString::new(name).or_else(|_| refuse("a string without NUL", value))
        })
    }

    fn target(&mut self) -> Parsed<LinkTarget> {
        self.known.push("target");
        let context = &*self.context;
        self.fields.take("target", |value| match value {
            Value::Null => Ok(LinkTarget::Bound),
            Value::String(_) => Ok(LinkTarget::Parts(Box::new([Part::Text(
                text(value)?.to_owned(),
            )]))),
            _ => {
                let fields = Fields::of(value)?.only(&["parts"])?;
                fields
                    .take("parts", |value| parts(value, context))
                    .map(LinkTarget::Parts)
            }
        })
    }
}

/// A path that an interactive command spells out.
fn spelled(value: &Value) -> Parsed<String> {
    let path = text(value)?;
    match path::fault(path.as_bytes()) {
        _ if path == "." => Ok(path.to_owned()),
        Some(fault) => Err(Fault::new(format!("the path {path:?} {fault}"))),
        None => Ok(path.to_owned()),
    }
}

/// Flags that `open` may have (Linux, x86-64).
const OPEN_FLAGS: u32 = 0o3 // access mode
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
        let op = text(value).ok().and_then(Op::of_name);
        op.map_or_else(|| refuse("a known op", value), Ok)
    })?;
    let call = match on_file(op, operands)? {
        Some(call) => call,
        None => on_path(op, operands)?,
    };
    operands.fields.only(&operands.known)?;
    let expect = operands.fields.take("expect", expect)?;
    Ok(Timed { op, call, expect })
}

fn expect(value: &Value) -> Parsed<Expect> {
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

fn on_file(op: Op, take: &mut Operands) -> Parsed<Option<Call>> {
    Ok(Some(match op {
        Op::Close => Call::Close { file: take.file()? },
        Op::Read => Call::Read {
            file: take.file()?,
            size: take.read_size()?,
            until_end: take.boolean("until_end")?,
            check_size: take.boolean("check_size")?,
        },
        Op::Pread => Call::Pread {
            file: take.file()?,
            size: take.read_size()?,
            offset: take.draw("offset")?,
        },
        Op::PreadRandom => Call::PreadRandom {
            file: take.file()?,
            size: take.read_size()?,
            align: take.align()?,
        },
        Op::Write | Op::Append => written(take)?,
        Op::Pwrite => Call::Pwrite {
            file: take.file()?,
            size: take.write_size()?,
            offset: take.draw("offset")?,
        },
        Op::PwriteRandom => Call::PwriteRandom {
            file: take.file()?,
            size: take.write_size()?,
            align: take.align()?,
        },
        Op::Lseek => Call::Lseek {
            file: take.file()?,
            offset: take.draw("offset")?,
            whence: take.number("whence", 2)?,
        },
        Op::Fsync => Call::Fsync { file: take.file()? },
        Op::Fdatasync => Call::Fdatasync { file: take.file()? },
        Op::Fstat => Call::Fstat { file: take.file()? },
        Op::Ftruncate => Call::Ftruncate {
            file: take.file()?,
            size: take.draw("size")?,
        },
        Op::Fallocate => Call::Fallocate {
            file: take.file()?,
            offset: take.draw("offset")?,
            size: take.draw("size")?,
            mode: take.number("mode", 0x7F)?,
        },
        Op::Fchmod => Call::Fchmod {
            file: take.file()?,
            mode: take.mode()?,
        },
        Op::Fchown => Call::Fchown {
            file: take.file()?,
            uid: take.owner("uid")?,
            gid: take.owner("gid")?,
        },
        Op::Futimens => Call::Futimens {
            file: take.file()?,
            mtime_ns: take.time()?,
        },
        Op::Flock => Call::Flock {
            file: take.file()?,
            kind: take.lock_kind()?,
            wait: take.boolean("wait")?,
        },
        Op::FcntlLock => Call::FcntlLock {
            file: take.file()?,
            kind: take.lock_kind()?,
            wait: take.boolean("wait")?,
            offset: take.draw("offset")?,
            size: take.draw("size")?,
        },
        Op::Getdents => Call::Getdents { file: take.file()? },
        Op::CopyFileRange => Call::CopyFileRange {
            file: take.file()?,
            to: take.take("to", slot)?,
            size: take.draw("size")?,
        },
        Op::Sendfile => Call::Sendfile {
            file: take.file()?,
            size: take.draw("size")?,
        },
        Op::MmapRead => Call::MmapRead { file: take.file()? },
        _ => return Ok(None),
    }))
}

fn written(take: &mut Operands) -> Parsed<Call> {
    let (file, total, block) = (take.file()?, take.draw("total")?, take.draw("block")?);
    let most = highest(total, take.context).min(highest(block, take.context));
    take.context.write_bytes = take.context.write_bytes.max(most);
    Ok(Call::Write { file, total, block })
}

fn on_path(op: Op, take: &mut Operands) -> Parsed<Call> {
    Ok(match op {
        Op::Open => {
            let path = take.path()?;
            Call::Open {
                path,
                file: take.opened(path)?,
                flags: take.take("flags", open_flags)?,
                mode: take.mode()?,
            }
        }
        Op::Stat => Call::Stat { path: take.path()? },
        Op::Lstat => Call::Lstat { path: take.path()? },
        Op::Access => Call::Access {
            path: take.path()?,
            mode: take.number("mode", 7)?,
        },
        Op::Mkdir => Call::Mkdir {
            path: take.path()?,
            mode: take.mode()?,
        },
        Op::Rmdir => Call::Rmdir { path: take.path()? },
        Op::Unlink => Call::Unlink { path: take.path()? },
        Op::Rename => Call::Rename {
            path: take.path()?,
            to: take.to()?,
            flags: take.number("flags", 2)?,
        },
        Op::Link => Call::Link {
            path: take.path()?,
            to: take.to()?,
        },
        Op::Symlink => Call::Symlink {
            path: take.path()?,
            target: take.target()?,
        },
        Op::Readlink => Call::Readlink { path: take.path()? },
        Op::Truncate => Call::Truncate {
            path: take.path()?,
            size: take.draw("size")?,
        },
        Op::Chmod => Call::Chmod {
            path: take.path()?,
            mode: take.mode()?,
        },
        Op::Chown => Call::Chown {
            path: take.path()?,
            uid: take.owner("uid")?,
            gid: take.owner("gid")?,
        },
        Op::Utimens => Call::Utimens {
            path: take.path()?,
            mtime_ns: take.time()?,
        },
        Op::Getxattr => Call::Getxattr {
            path: take.path()?,
            name: take.attribute()?,
        },
        Op::Setxattr => Call::Setxattr {
            path: take.path()?,
            name: take.attribute()?,
            size: take.write_size()?,
        },
        Op::Removexattr => Call::Removexattr {
            path: take.path()?,
            name: take.attribute()?,
        },
        Op::Listxattr => Call::Listxattr { path: take.path()? },
        _ => return Err(Fault::new("this op has no operands here")),
    })
}
