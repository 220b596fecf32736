//! Reading operands, and what they tell of buffers.

use super::Context;
use super::draws::{LARGEST, draw, highest, slot};
use super::parts::parts;
use super::value::{
    Fault, Fields, Parsed, boolean, choice, integer, nullable, refuse, signed, small, text,
};
use crate::path;
use crate::program::{DataCall, Draw, LinkTarget, LockKind, Mode, Owner, Part, SLOTS};
use crate::sys::is_list;
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
    pub(super) fields: Fields<'a>,
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

    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Parsed<T>,
    ) -> Parsed<T> {
        self.known.push(key);
        self.fields.take(key, read)
    }

    pub(super) fn file(&mut self) -> Parsed<u8> {
        self.take("file", slot)
    }

    pub(super) fn path(&mut self) -> Parsed<u8> {
        if self.texts.is_none() {
            return self.take("path", slot);
        }
        let path = self.take("path", spelled)?;
        if let Some(texts) = &mut self.texts {
            texts.path = Some(path);
        }
        Ok(PATH_SLOT)
    }

    pub(super) fn to(&mut self) -> Parsed<u8> {
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
    pub(super) fn opened(&mut self, path: u8) -> Parsed<u8> {
        match self.texts {
            None => Ok(path),
            Some(_) => self.take("slot", slot),
        }
    }

    pub(super) fn draw(&mut self, key: &'static str) -> Parsed<Draw> {
        self.draw_or(key, |value| integer(value, 0, LARGEST))
    }

    /// A draw of how far to go; in a command also a number below 0, which leads back.
    pub(super) fn relative(&mut self, key: &'static str) -> Parsed<Draw> {
        self.draw_or(key, |value| signed(value).map(i64::cast_unsigned))
    }

    /// A draw, or in a command a number.
    fn draw_or(
        &mut self,
        key: &'static str,
        number: impl FnOnce(&Value) -> Parsed<u64>,
    ) -> Parsed<Draw> {
        self.known.push(key);
        let (context, interactive) = (&*self.context, self.texts.is_some());
        self.fields.take(key, |value| match value {
            Value::Number(_) if interactive => number(value).map(Draw::Const),
            _ => draw(value, context),
        })
    }

    /// A draw of bytes to read; remembers how large a buffer it needs.
    pub(super) fn read_size(&mut self) -> Parsed<Draw> {
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
    pub(super) fn write_size(&mut self) -> Parsed<Draw> {
        let size = self.draw("size")?;
        let most = highest(size, self.context);
        self.context.write_bytes = self.context.write_bytes.max(most);
        Ok(size)
    }

    pub(super) fn time(&mut self) -> Parsed<Option<Draw>> {
        self.known.push("mtime_ns");
        let context = &*self.context;
        self.fields.take("mtime_ns", |value| {
            nullable(value, |value| draw(value, context))
        })
    }

    pub(super) fn mode(&mut self) -> Parsed<Mode> {
        let mode = self.take("mode", |value| {
            nullable(value, |value| small(value, 0o7777))
        })?;
        Ok(mode.map_or(Mode::Bound, Mode::Fixed))
    }

    pub(super) fn number(&mut self, key: &'static str, high: u32) -> Parsed<u32> {
        self.take(key, |value| small(value, high))
    }

    pub(super) fn align(&mut self) -> Parsed<u64> {
        self.take("align", |value| integer(value, 1, LARGEST))
    }

    /// A flag that may be left out: false.
    pub(super) fn flag(&mut self, key: &'static str) -> Parsed<bool> {
        Ok(self.fields.has(key) && self.boolean(key)?)
    }

    pub(super) fn boolean(&mut self, key: &'static str) -> Parsed<bool> {
        self.take(key, boolean)
    }

    fn owner_id(&mut self, key: &'static str) -> Parsed<Option<u32>> {
        self.take(key, |value| match value.as_i64() {
            Some(-1) => Ok(None),
            _ => small(value, u32::MAX - 1).map(Some),
        })
    }

    pub(super) fn owner(&mut self) -> Parsed<Owner> {
        let (uid, gid) = (self.owner_id("uid")?, self.owner_id("gid")?);
        Ok(Owner { uid, gid })
    }

    /// The operands of `write`: how much, and in which pieces.
    pub(super) fn written(&mut self) -> Parsed<DataCall> {
        let total = self.draw("total")?;
        let first = if self.fields.has("first") {
            Some(self.draw("first")?)
        } else {
            None
        };
        let block = self.draw("block")?;
        let piece = first.map_or(0, |first| highest(first, self.context));
        let piece = piece.max(highest(block, self.context));
        let most = highest(total, self.context).min(piece);
        self.context.write_bytes = self.context.write_bytes.max(most);
        Ok(DataCall::Write {
            total,
            first,
            block,
        })
    }

    /// Refuse operands that no one asked for.
    pub(super) fn no_others(&self) -> Parsed<()> {
        self.fields.only(&self.known).map(|_| ())
    }

    pub(super) fn lock_kind(&mut self) -> Parsed<LockKind> {
        let kinds = [
            ("shared", LockKind::Shared),
            ("exclusive", LockKind::Exclusive),
        ];
        self.take("kind", |value| choice(value, &kinds))
    }

    pub(super) fn attribute(&mut self) -> Parsed<CString> {
        self.take("name", |value| {
            let name = text(value)?;
            let is_own = name.starts_with("user.") && (6..=255).contains(&name.len());
            if !is_own && !is_list(name.as_bytes()) {
                return refuse(
                    "a name that begins with \"user.\", at most 255 bytes, or that of an access control list",
                    value,
                );
            }
            CString::new(name).or_else(|_| refuse("a string without NUL", value))
        })
    }

    pub(super) fn target(&mut self) -> Parsed<LinkTarget> {
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
