//! Commands of interactive users: a timed step that spells its paths out, or the begin or end of a transaction.

use super::check::Check;
use crate::call::Call;
use crate::document::{Fault, Parsed, json, read, refused, take, text};
use crate::error::{Error, Result};
use crate::path::plain_path;
use crate::program::{Draw, Replays, SLOTS, SlotId, StepCall, Timed};
use serde::Deserialize;
use serde_json::{Map, Value, json as value};

/// The slots that hold the paths of an interactive command.
pub(crate) const PATH_SLOT: u8 = 16;
const _: () = assert!(SLOTS == 16);
pub(crate) const TO_SLOT: u8 = PATH_SLOT + 1;

/// Operands that a command may give as plain numbers, where a plan has draws.
const NUMBERS: [&str; 5] = ["size", "offset", "total", "first", "block"];

#[derive(Debug)]
pub(crate) enum Command {
    Begin(String),
    End { name: String, failed: bool },
    Call { timed: Box<Timed>, texts: Texts },
}

/// The paths that an interactive command spells out.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) path: Option<String>,
    pub(crate) to: Option<String>,
}

/// Parse a command; a single write or read may have at most so many bytes.
pub(crate) fn parse_command(document: &[u8], write_bytes: u64, read_bytes: u64) -> Result<Command> {
    let command = json(document).map_err(|fault| Error::value(format!("command: {fault}")))?;
    let command = command_of(command, write_bytes, read_bytes);
    command.map_err(|fault| Error::value(fault.told()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    #[serde(deserialize_with = "text")]
    begin: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    #[serde(deserialize_with = "text")]
    end: String,
    failed: bool,
}

#[derive(Deserialize)]
struct Path(#[serde(deserialize_with = "spelled")] String);

/// A path that an interactive command spells out.
fn spelled<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(path) if path == "." => Ok(path),
        path => plain_path(path).map_err(serde::de::Error::custom),
    }
}

fn command_of(command: Value, write_bytes: u64, read_bytes: u64) -> Parsed<Command> {
    if command.get("begin").is_some() {
        return read(command).map(|Begin { begin }| Command::Begin(begin));
    }
    if command.get("end").is_some() {
        return read(command).map(|End { end: name, failed }| Command::End { name, failed });
    }
    let (timed, texts) = call(read(command)?)?;
    let mut check = Check::new(&[], &[], 0, Replays::default());
    check.read_bytes = 0;
    check.operands(&timed.call)?;
    for (what, bytes, most) in [
        ("write", check.write_bytes, write_bytes),
        ("read", check.read_bytes, read_bytes),
    ] {
        if bytes > most {
            return Err(Fault::new(format!(
                "a single {what} must be at most {most} bytes, got {bytes}"
            )));
        }
    }
    let timed = Box::new(timed);
    Ok(Command::Call { timed, texts })
}

/// Read a call as a plan has it, with slots for its paths and draws for its numbers.
fn call(mut fields: Map<String, Value>) -> Parsed<(Timed, Texts)> {
    fields.remove("do");
    let texts = Texts {
        path: spell(&mut fields, "path")?,
        to: spell(&mut fields, "to")?,
    };
    let is_seek = fields.get("op").is_some_and(|op| op == "lseek");
    let mut back = None;
    for key in NUMBERS {
        if let Some(given) = fields.get(key).filter(|given| given.is_number()) {
            let least = if is_seek { i64::MIN } else { 0 };
            let number = given.as_i64().filter(|number| *number >= least);
            let number = number.ok_or_else(|| {
                let what = format!("an integer from {least} to {}", i64::MAX);
                Fault::new(refused(what, given)).at(format_args!(".{key}"))
            })?;
            if number < 0 {
                back = Some(Draw::Const(number.cast_unsigned()));
            }
            fields.insert(key.to_owned(), value!({"const": number.max(0)}));
        }
    }
    let mut timed = Timed::of(&mut fields)?;
    match (&mut timed.call, back) {
        (StepCall::Plain(Call::Open { slot: None, .. }), _) => {
            return Err(Fault::new("missing field `slot`"));
        }
        (StepCall::Plain(Call::Lseek { offset, .. }), Some(back)) => *offset = back,
        _ => {}
    }
    let paths = timed.call.paths().into_iter().flatten();
    for (slot, number) in paths.zip([PATH_SLOT, TO_SLOT]) {
        *slot = SlotId(number);
    }
    Ok((timed, texts))
}

/// Take a path that is spelled out, and leave a slot in its place. (The `to` of a copy is a slot.)
fn spell(fields: &mut Map<String, Value>, key: &str) -> Parsed<Option<String>> {
    if !fields.contains_key(key) || fields.contains_key("file") {
        return Ok(None);
    }
    let Path(path) = take(fields, key)?;
    fields.insert(key.to_owned(), Value::from(0));
    Ok(Some(path))
}
