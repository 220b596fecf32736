//! Steps with which users wait for each other.

use super::Context;
use super::calls::expect;
use super::draws::draw;
use super::value::{Fault, Fields, Parsed, integer, nullable};
use crate::ops::Op;
use crate::program::{Await, Step, Steps, Until};
use crate::signals::SIGNALS;
use serde_json::Value;

pub(super) fn signal(fields: Fields) -> Parsed<Step> {
    let fields = fields.only(&["do", "signal"])?;
    fields.take("signal", number).map(Step::Signal)
}

pub(super) fn wait_for(fields: Fields, context: &Context) -> Parsed<Step> {
    let fields = fields.only(&["do", "signal", "limit", "expect"])?;
    Ok(Step::Await(Box::new(Await {
        signal: fields.take("signal", number)?,
        limit: fields.take("limit", |value| draw(value, context))?,
        expect: fields.take("expect", expect)?,
    })))
}

/// Its steps were read before.
pub(super) fn until(fields: Fields, steps: Steps, context: &Context) -> Parsed<Step> {
    let fields = fields.only(&["do", "steps", "every", "limit", "since", "expect"])?;
    if let Some(step) = steps.iter().find(|step| !may_be_repeated(step)) {
        let what = format!("{step:?}");
        let word = what.split([' ', '(']).next().unwrap_or_default();
        let message = format!("may hold names and calls that do not write only, got {word}");
        return Err(Fault::new(message).at_key("steps"));
    }
    Ok(Step::Until(Box::new(Until {
        steps,
        every: fields.take("every", |value| draw(value, context))?,
        limit: fields.take("limit", |value| draw(value, context))?,
        since: fields.take("since", |value| nullable(value, number))?,
        expect: fields.take("expect", expect)?,
    })))
}

/// Whether doing a step again and again leaves nothing behind that depends on how often: no picked entry, no written data.
fn may_be_repeated(step: &Step) -> bool {
    match step {
        Step::Name { .. } | Step::Root { .. } => true,
        Step::Call(timed) => {
            ![Op::Write, Op::Append, Op::Pwrite, Op::PwriteRandom].contains(&timed.op)
        }
        _ => false,
    }
}

fn number(value: &Value) -> Parsed<u8> {
    let number = integer(value, 0, SIGNALS as u64 - 1)?;
    Ok(u8::try_from(number).unwrap_or(0))
}
