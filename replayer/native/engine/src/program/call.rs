//! Calls of timed steps, in the words of plan format 1: its ops, their operands, and how they may end.

use super::{Draw, Part};
use crate::call::{Call, Operands};
use crate::document::{
    Fault, LARGEST, Object, Parsed, Text, given, integer, read, read_on, refused, text, variant,
};
use crate::ops::{OK, Op, outcome_of_name};
use crate::sys::is_list;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::{Map, Value};
use std::ffi::CString;

/// At most this many slots in a plan.
pub(crate) const SLOTS: usize = 16;

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct SlotId(
    #[serde(deserialize_with = "integer::<_, _, 0, { SLOTS as u64 - 1 }>")] pub(crate) u8,
);

/// A timed step: a call and its allowed outcomes.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) op: Op,
    pub(crate) call: StepCall,
    pub(crate) expect: Expect,
}

impl<'de> Deserialize<'de> for Timed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timed, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        Timed::of(&mut fields).map_err(|fault| fault.handed_on())
    }
}

impl Timed {
    pub(crate) fn of(fields: &mut Map<String, Value>) -> Parsed<Timed> {
        let name = fields.get("op").unwrap_or(&Value::Null);
        let op = name.as_str().and_then(Op::of_plan);
        let op = op.ok_or_else(|| Fault::new(refused("a known op", name)).at(".op"))?;
        let expect = fields.remove("expect");
        let call = StepCall::of(std::mem::take(fields))?;
        let expect = expect.ok_or_else(|| Fault::new("missing field `expect`"))?;
        let expect = read(expect).map_err(|fault| fault.at(".expect"))?;
        Ok(Timed { op, call, expect })
    }
}

/// A set of outcome codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expect([u64; 3]);

impl<'de> Deserialize<'de> for Expect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expect, D::Error> {
        let names = Vec::<Text>::deserialize(deserializer)?;
        if names.is_empty() {
            return Err(D::Error::custom("must be a list of at least one outcome"));
        }
        names.iter().try_fold(Expect::NONE, |expect, Text(name)| {
            match outcome_of_name(name) {
                _ if name == "any" => Ok(Expect::ANY),
                Some(code) => Ok(expect.with(code)),
                None => Err(D::Error::custom(refused(
                    "ok, any or the name of an errno",
                    name,
                ))),
            }
        })
    }
}

impl Expect {
    pub(crate) const ANY: Expect = Expect([u64::MAX; 3]);
    pub(crate) const OK: Expect = Expect([1 << OK, 0, 0]);
    pub(crate) const NONE: Expect = Expect([0; 3]);

    pub(crate) fn with(mut self, outcome: u8) -> Expect {
        if let Some(word) = self.0.get_mut(usize::from(outcome >> 6)) {
            *word |= 1 << (outcome & 63);
        }
        self
    }

    #[inline]
    pub(crate) fn allows(self, outcome: u8) -> bool {
        self.0
            .get(usize::from(outcome >> 6))
            .is_some_and(|word| word & (1 << (outcome & 63)) != 0)
    }
}

/// A mode, or that of the bound entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Fixed(u32),
    Bound,
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Null => Ok(Mode::Bound),
            value => integer::<_, _, 0, 0o7777>(value)
                .map(Mode::Fixed)
                .map_err(D::Error::custom),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LockKind {
    Shared,
    Exclusive,
    #[serde(skip)]
    #[default]
    Unlock,
}

#[derive(Clone, Debug)]
pub(crate) enum LinkTarget {
    Bound,
    Parts(Box<[Part]>),
}

impl<'de> Deserialize<'de> for LinkTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LinkTarget, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Document {
            parts: Box<[Part]>,
        }

        Ok(match Value::deserialize(deserializer)? {
            Value::Null => LinkTarget::Bound,
            value @ Value::String(_) => LinkTarget::Parts(Box::new([read_on(value)?])),
            value => LinkTarget::Parts(read_on::<Object<Document>, _>(value)?.0.parts),
        })
    }
}

/// Operands of plan format 1.
#[derive(Clone, Debug)]
pub(crate) enum Planned {}

impl Operands for Planned {
    type File = SlotId;
    type Place = SlotId;
    type Subject = SlotId;
    type Name = AttributeName;
    type Target = LinkTarget;
    type Number = Draw;
    type Mode = Mode;
    type Id = OwnerId;
    type Times = Mtime;
}

/// Access and modification time; none: now.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Mtime(pub(crate) Option<Draw>);

/// What a timed step does. The names of the variants are those of the ops, their operands those of plan format 1.
/// Those here move data: many are series of calls.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[rustfmt::skip]
pub(crate) enum StepCall {
    #[serde(skip)]
    Plain(Call<Planned>),
    Read { file: SlotId, size: Draw, until_end: bool, check_size: bool },
    Pread { file: SlotId, size: Draw, offset: Draw },
    PreadRandom { file: SlotId, size: Draw, #[serde(deserialize_with = "integer::<_, _, 1, LARGEST>")] align: u64 },
    Write(Pieces),
    Append(Pieces),
    Pwrite { file: SlotId, size: Draw, offset: Draw },
    PwriteRandom { file: SlotId, size: Draw, #[serde(deserialize_with = "integer::<_, _, 1, LARGEST>")] align: u64 },
    Getdents { file: SlotId },
    /// `once`: one call; else calls until one returns 0.
    CopyFileRange { file: SlotId, to: SlotId, size: Draw, #[serde(default)] once: bool },
    Sendfile { file: SlotId, size: Draw, #[serde(default)] once: bool },
    MmapRead { file: SlotId },
}

/// Writing so many bytes in pieces.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pieces {
    pub(crate) file: SlotId,
    pub(crate) total: Draw,
    /// The first piece, where it is cut otherwise than those after it.
    #[serde(default, deserialize_with = "given")]
    pub(crate) first: Option<Draw>,
    pub(crate) block: Draw,
}

impl StepCall {
    fn of(fields: Map<String, Value>) -> Parsed<StepCall> {
        match variant("op", fields.clone()) {
            Err(fault) if fault.is_of_variant("op") => variant("op", fields),
            call => call.map(StepCall::Plain),
        }
    }

    /// The slots of its paths, where it has some.
    pub(crate) fn paths(&mut self) -> [Option<&mut SlotId>; 2] {
        match self {
            StepCall::Plain(
                Call::Getxattr { on, .. }
                | Call::Setxattr { on, .. }
                | Call::Removexattr { on, .. }
                | Call::Listxattr { on, .. },
            ) => [Some(on), None],
            StepCall::Plain(call) => call.places(),
            _ => [None, None],
        }
    }

    pub(crate) fn draws(&self) -> Vec<Draw> {
        match self {
            StepCall::Plain(Call::Symlink { target, .. }) => match target {
                LinkTarget::Parts(parts) => parts.iter().filter_map(Part::draw).collect(),
                LinkTarget::Bound => Vec::new(),
            },
            StepCall::Plain(call) => {
                let numbers = call.numbers().into_iter().flatten().copied();
                numbers
                    .chain(call.times().and_then(|time| time.0))
                    .collect()
            }
            StepCall::Read { size, .. }
            | StepCall::PreadRandom { size, .. }
            | StepCall::PwriteRandom { size, .. }
            | StepCall::CopyFileRange { size, .. }
            | StepCall::Sendfile { size, .. } => vec![*size],
            StepCall::Pread { size, offset, .. } | StepCall::Pwrite { size, offset, .. } => {
                vec![*size, *offset]
            }
            StepCall::Write(pieces) | StepCall::Append(pieces) => {
                let some = [Some(pieces.total), pieces.first, Some(pieces.block)];
                some.into_iter().flatten().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Who shall own a file; `None` leaves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

impl Owner {
    pub(crate) fn of(OwnerId(uid): OwnerId, OwnerId(gid): OwnerId) -> Owner {
        Owner { uid, gid }
    }
}

/// A user or a group, −1 in plans for `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnerId(pub(crate) Option<u32>);

impl<'de> Deserialize<'de> for OwnerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OwnerId, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.as_i64() == Some(-1) {
            return Ok(OwnerId(None));
        }
        let number = integer::<_, _, 0, { u32::MAX as u64 - 1 }>(value);
        number.map(|id| OwnerId(Some(id))).map_err(D::Error::custom)
    }
}

/// Flags that `open` may have (Linux, x86-64): those that are handed on, and `O_LARGEFILE`, which is always so.
pub(crate) const OPEN_FLAGS: u32 = crate::sys::OPEN_FLAGS | 0o100_000;

pub(crate) fn open_flags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let flags: u32 = integer::<_, _, 0, { u32::MAX as u64 }>(deserializer)?;
    if flags & !OPEN_FLAGS != 0 || flags & 3 == 3 {
        let known = format_args!("a sum of known open flags (within {OPEN_FLAGS:#o})").to_string();
        return Err(D::Error::custom(refused(known, &flags)));
    }
    Ok(flags)
}

/// The name of an attribute that a plan may set.
#[derive(Clone, Debug)]
pub(crate) struct AttributeName(pub(crate) CString);

impl<'de> Deserialize<'de> for AttributeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AttributeName, D::Error> {
        let name = text(deserializer)?;
        let is_own = name.starts_with("user.") && (6..=255).contains(&name.len());
        if !is_own && !is_list(name.as_bytes()) {
            let what = "a name that begins with \"user.\", at most 255 bytes, or that of an access control list";
            return Err(D::Error::custom(refused(what, &name)));
        }
        CString::new(name)
            .map(AttributeName)
            .map_err(D::Error::custom)
    }
}
