//! Reading JSON values with errors that name place, value and bound.

use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A fault in a plan, with the way to it (innermost first).
#[derive(Debug)]
pub(crate) struct Fault {
    message: String,
    way: Vec<Stage>,
}

#[derive(Debug)]
enum Stage {
    Key(String),
    Index(usize),
}

pub(crate) type Parsed<T> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Fault {
        Fault {
            message: message.into(),
            way: Vec::new(),
        }
    }

    pub(crate) fn at_key(mut self, key: &str) -> Fault {
        self.way.push(Stage::Key(key.to_owned()));
        self
    }

    pub(crate) fn at_index(mut self, index: usize) -> Fault {
        self.way.push(Stage::Index(index));
        self
    }

    /// `size must be …, got …`: of a command, whose keys are what a person has given.
    pub(crate) fn told(&self) -> String {
        let keys = self.way.iter().rev().filter_map(|stage| match stage {
            Stage::Key(key) if key != "const" => Some(key.as_str()),
            _ => None,
        });
        match keys.collect::<Vec<_>>().join(".") {
            key if !key.is_empty() && self.message.starts_with("must be ") => {
                format!("{key} {}", self.message)
            }
            _ => self.message.clone(),
        }
    }

    /// `transactions[0].steps[2].size: must be …, got …`.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        for stage in self.way.iter().rev() {
            let written = match stage {
                Stage::Key(key) if text.is_empty() => write!(text, "{key}"),
                Stage::Key(key) => write!(text, ".{key}"),
                Stage::Index(index) => write!(text, "[{index}]"),
            };
            debug_assert!(written.is_ok());
        }
        if text.is_empty() {
            return format!("plan: {}", self.message);
        }
        format!("plan: {text}: {}", self.message)
    }
}

/// A value as it is quoted in an error: at most 80 characters.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 {
        return text;
    }
    text.chars().take(77).chain("...".chars()).collect()
}

/// Refuse a value: `must be WHAT, got VALUE`.
pub(crate) fn refuse<T>(what: &str, value: &Value) -> Parsed<T> {
    Err(Fault::new(format!("must be {what}, got {}", shown(value))))
}

/// The keys of an object, of which none is unknown.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Read an object without looking at its keys yet.
    pub(crate) fn of(value: &'a Value) -> Parsed<Fields<'a>> {
        value
            .as_object()
            .map_or_else(|| refuse("an object", value), |map| Ok(Fields(map)))
    }

    /// Refuse keys that are not known.
    pub(crate) fn only(self, known: &[&str]) -> Parsed<Fields<'a>> {
        for key in self.0.keys() {
            if !known.contains(&key.as_str()) {
                let known = known.join(", ");
                return Err(Fault::new(format!(
                    "unknown key {key:?}; known here: {known}"
                )));
            }
        }
        Ok(self)
    }

    pub(crate) fn has(self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Read a key that must be there.
    pub(crate) fn take<T>(self, key: &str, read: impl FnOnce(&'a Value) -> Parsed<T>) -> Parsed<T> {
        match self.0.get(key) {
            Some(value) => read(value).map_err(|fault| fault.at_key(key)),
            None => Err(Fault::new(format!("{key:?} is missing"))),
        }
    }
}

/// Read every item of a list.
pub(crate) fn list<'a, T>(
    value: &'a Value,
    mut read: impl FnMut(&'a Value) -> Parsed<T>,
) -> Parsed<Vec<T>> {
    let Some(items) = value.as_array() else {
        return refuse("a list", value);
    };
    let items = items.iter().enumerate();
    items
        .map(|(index, item)| read(item).map_err(|fault| fault.at_index(index)))
        .collect()
}

/// Read a list of exactly N values.
pub(crate) fn tuple<const N: usize>(value: &Value) -> Parsed<&[Value; N]> {
    let items = value
        .as_array()
        .and_then(|items| items.as_slice().try_into().ok());
    items.map_or_else(|| refuse(&format!("a list of {N}"), value), Ok)
}

/// Read an integer within bounds.
pub(crate) fn integer(value: &Value, low: u64, high: u64) -> Parsed<u64> {
    let number = value
        .as_u64()
        .filter(|number| (low..=high).contains(number));
    number.map_or_else(
        || refuse(&format!("an integer from {low} to {high}"), value),
        Ok,
    )
}

/// Read an integer that may be below 0.
pub(crate) fn signed(value: &Value) -> Parsed<i64> {
    let bounds = || format!("an integer from {} to {}", i64::MIN, i64::MAX);
    value.as_i64().map_or_else(|| refuse(&bounds(), value), Ok)
}

pub(crate) fn small(value: &Value, high: u32) -> Parsed<u32> {
    let number = integer(value, 0, u64::from(high))?;
    u32::try_from(number).or_else(|_| refuse("smaller", value))
}

pub(crate) fn boolean(value: &Value) -> Parsed<bool> {
    value
        .as_bool()
        .map_or_else(|| refuse("true or false", value), Ok)
}

/// Read a string without NUL.
pub(crate) fn text(value: &Value) -> Parsed<&str> {
    let text = value.as_str().filter(|text| !text.contains('\0'));
    text.map_or_else(|| refuse("a string without NUL", value), Ok)
}

/// Read null as `None`, anything else as it is.
pub(crate) fn nullable<'a, T>(
    value: &'a Value,
    read: impl FnOnce(&'a Value) -> Parsed<T>,
) -> Parsed<Option<T>> {
    if value.is_null() {
        return Ok(None);
    }
    read(value).map(Some)
}

/// Read one of some words.
pub(crate) fn choice<T: Copy>(value: &Value, words: &[(&str, T)]) -> Parsed<T> {
    let found = words.iter().find(|(word, _)| value.as_str() == Some(word));
    let Some((_, meaning)) = found else {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        return refuse(&format!("one of {}", words.join(", ")), value);
    };
    Ok(*meaning)
}
