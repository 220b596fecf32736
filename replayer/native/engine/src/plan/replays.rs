//! Traces of a plan and the steps that replay them.

use super::Context;
use super::datasets::plain_path;
use super::draws::index;
use super::value::{Fields, Parsed, choice, integer, nullable, refuse, text};
use crate::program::{NamedTrace, Replay, ReplayPace, ReplayPart, Step};
use serde_json::Value;

/// Times as fast, in percent, at most (as plan format 1 has it).
const MOST_SPEED: u64 = 1_000_000;
const SHA256_DIGITS: usize = 64;

pub(super) fn trace(value: &Value) -> Parsed<NamedTrace> {
    let fields = Fields::of(value)?.only(&["name", "directory", "sha256"])?;
    Ok(NamedTrace {
        name: fields.take("name", text)?.to_owned(),
        directory: fields.take("directory", plain_path)?.to_owned(),
        sha256: fields.take("sha256", sha256)?.to_owned(),
    })
}

fn sha256(value: &Value) -> Parsed<&str> {
    let sum = text(value)?;
    let fits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if sum.len() != SHA256_DIGITS || !sum.bytes().all(fits) {
        return refuse("64 hexadecimal digits in lower case", value);
    }
    Ok(sum)
}

const PACES: [(&str, ReplayPace); 3] = [
    ("asap", ReplayPace::Asap),
    ("closed", ReplayPace::Closed),
    ("timed", ReplayPace::Timed),
];

/// Read a step that replays a trace or a request of it.
pub(super) fn replay(fields: Fields, context: &mut Context) -> Parsed<Step> {
    let fields = fields.only(&["do", "trace", "request", "pace", "speed_percent"])?;
    let traces = context.replays.traces.len();
    let trace = fields.take("trace", |value| index(value, traces, "trace"))?;
    let label = fields.take("request", |value| nullable(value, text))?;
    let pace = fields.take("pace", |value| choice(value, &PACES))?;
    let speed = fields.take("speed_percent", |value| integer(value, 1, MOST_SPEED))?;
    Ok(Step::Replay(Box::new(Replay {
        trace,
        reels: context.replays.group(trace, label),
        part: if label.is_some() {
            ReplayPart::Request
        } else {
            ReplayPart::Whole
        },
        pace,
        speed_percent: u32::try_from(speed).unwrap_or(u32::MAX),
    })))
}
