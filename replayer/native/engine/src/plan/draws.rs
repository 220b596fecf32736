//! Numbers of a plan: draws, tables and weights.

use super::Context;
use super::value::{Fault, Fields, Parsed, integer, list, refuse, tuple};
use crate::program::{Draw, SLOTS, Weights};
use serde_json::Value;

/// The largest number of a draw.
pub(super) const LARGEST: u64 = i64::MAX.cast_unsigned();

pub(super) fn table(value: &Value) -> Parsed<Box<[u64]>> {
    let numbers = list(value, |value| integer(value, 0, LARGEST))?;
    if numbers.is_empty() {
        return refuse("a list of at least one number", value);
    }
    Ok(numbers.into_boxed_slice())
}

pub(super) fn weights(weights: &[u64]) -> Parsed<Weights> {
    let mut sum = 0_u64;
    let mut cumulative = Vec::with_capacity(weights.len());
    for weight in weights {
        sum = sum.saturating_add(*weight);
        cumulative.push(sum);
    }
    if sum == 0 || sum == u64::MAX {
        return Err(Fault::new(format!(
            "the sum of the weights must be from 1 to 2^64 - 2, got {sum}"
        )));
    }
    Ok(Weights(cumulative.into_boxed_slice()))
}

pub(super) fn slot(value: &Value) -> Parsed<u8> {
    let number = integer(value, 0, SLOTS as u64 - 1)?;
    Ok(u8::try_from(number).unwrap_or(0))
}

/// Read the number of something that exists.
pub(super) fn index(value: &Value, count: usize, what: &str) -> Parsed<u16> {
    let number = value.as_u64().filter(|number| *number < count as u64);
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.map_or_else(
        || {
            refuse(
                &format!("the number of a {what} (there are {count})"),
                value,
            )
        },
        Ok,
    )
}

pub(super) fn draw(value: &Value, context: &Context) -> Parsed<Draw> {
    let fields = Fields::of(value)?.only(&["const", "uniform", "table", "size_of"])?;
    if fields.has("const") {
        let fields = fields.only(&["const"])?;
        return fields.take("const", |value| integer(value, 0, LARGEST).map(Draw::Const));
    }
    if fields.has("uniform") {
        return fields.only(&["uniform"])?.take("uniform", uniform);
    }
    if fields.has("table") {
        let tables = context.tables.len();
        let fields = fields.only(&["table"])?;
        return fields.take("table", |value| {
            index(value, tables, "table").map(Draw::Table)
        });
    }
    fields.take("size_of", |value| slot(value).map(Draw::SizeOf))
}

fn uniform(value: &Value) -> Parsed<Draw> {
    let [low, high] = tuple(value)?;
    let low = integer(low, 0, LARGEST).map_err(|fault| fault.at_index(0))?;
    let high = integer(high, low, LARGEST).map_err(|fault| fault.at_index(1))?;
    Ok(Draw::Uniform(low, high - low + 1))
}

/// The largest value that a draw can take.
pub(super) fn highest(draw: Draw, context: &Context) -> u64 {
    match draw {
        Draw::Const(value) => value,
        Draw::Uniform(_, 0) => u64::MAX,
        Draw::Uniform(low, count) => low + (count - 1),
        Draw::Table(index) => {
            let table = context.tables.get(usize::from(index));
            table
                .and_then(|table| table.iter().copied().max())
                .unwrap_or(0)
        }
        Draw::SizeOf(_) => context.largest,
    }
}
