//! Commands of interactive users: a timed step that spells its paths out, or the begin or end of a transaction.

use super::Context;
use super::calls::timed;
use super::operands::{Operands, Texts};
use super::value::{Fault, Fields, Parsed, boolean, text};
use crate::error::{Error, Result};
use crate::program::{Replays, Timed};
use serde_json::Value;

#[derive(Debug)]
pub(crate) enum Command {
    Begin(String),
    End { name: String, failed: bool },
    Call { timed: Box<Timed>, texts: Texts },
}

/// Parse a command; a single write or read may have at most so many bytes.
pub(crate) fn parse_command(document: &[u8], write_bytes: u64, read_bytes: u64) -> Result<Command> {
    let value: Value = serde_json::from_slice(document)
        .map_err(|error| Error::value(format!("command: is no JSON document: {error}")))?;
    let command = command(&value, write_bytes, read_bytes);
    command.map_err(|fault| Error::value(fault.told()))
}

fn command(value: &Value, write_bytes: u64, read_bytes: u64) -> Parsed<Command> {
    let fields = Fields::of(value)?;
    if fields.has("begin") {
        let name = fields.only(&["begin"])?.take("begin", text)?;
        return Ok(Command::Begin(name.to_owned()));
    }
    if fields.has("end") {
        let fields = fields.only(&["end", "failed"])?;
        let name = fields.take("end", text)?.to_owned();
        let failed = fields.take("failed", boolean)?;
        return Ok(Command::End { name, failed });
    }
    let mut context = Context {
        tables: &[],
        datasets: 0,
        pickers: 0,
        replays: Replays::default(),
        largest: 0,
        write_bytes: 0,
        read_bytes: 0,
    };
    let mut texts = Texts::default();
    let timed = Box::new(timed(&mut Operands::of_command(
        fields,
        &mut context,
        &mut texts,
    ))?);
    for (what, bytes, most) in [
        ("write", context.write_bytes, write_bytes),
        ("read", context.read_bytes, read_bytes),
    ] {
        if bytes > most {
            return Err(Fault::new(format!(
                "a single {what} must be at most {most} bytes, got {bytes}"
            )));
        }
    }
    Ok(Command::Call { timed, texts })
}
