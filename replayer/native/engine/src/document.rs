//! Reading JSON documents with serde: errors name the place, the value and the bound.

use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, value::StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The largest number of a plan.
pub(crate) const LARGEST: u64 = i64::MAX.cast_unsigned();

/// A fault in a document, with the way to it.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    /// `.steps[2].size`; empty at the top.
    way: String,
    message: String,
}

pub(crate) type Parsed<T> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Fault {
        Fault {
            way: String::new(),
            message: message.into(),
        }
    }

    /// The same, found further inside.
    pub(crate) fn at(mut self, stage: impl fmt::Display) -> Fault {
        self.way = format!("{stage}{}", self.way);
        self
    }

    /// Whether the name of a variant, which stands under a key, is not known.
    pub(crate) fn is_of_variant(&self, key: &str) -> bool {
        self.way.strip_prefix('.') == Some(key) && self.message.starts_with("unknown variant")
    }

    /// As serde's error, its way first.
    pub(crate) fn handed_on<E: Error>(&self) -> E {
        match &*self.way {
            "" => E::custom(&self.message),
            way => E::custom(format_args!("{way}: {}", self.message)),
        }
    }

    /// `size must be …, got …`: of a command, whose keys are what a person has given.
    pub(crate) fn told(&self) -> String {
        let key = self.way.trim_start_matches('.').trim_end_matches(".const");
        if self.message.starts_with("must be ") && !key.is_empty() {
            return format!("{key} {}", self.message);
        }
        self.message.clone()
    }
}

/// `transactions[0].steps[2].size: must be …, got …`.
impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way.trim_start_matches('.') {
            "" => write!(out, "{}", self.message),
            way => write!(out, "{way}: {}", self.message),
        }
    }
}

pub(crate) fn joined(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut all), Value::Object(more)) => {
            all.extend(more);
            Value::Object(all)
        }
        (one, _) => one,
    }
}

pub(crate) fn json(text: &[u8]) -> Parsed<Value> {
    serde_json::from_slice(text)
        .map_err(|error| Fault::new(format!("is no JSON document: {error}")))
}

pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Parsed<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let way = match error.path().to_string() {
            way if way == "." => String::new(),
            way if way.starts_with('[') => way,
            way => format!(".{way}"),
        };
        // What `tagged` has read goes on where this way ends.
        let message = error.inner().to_string();
        match message.split_once(": ") {
            Some((inner, message)) if inner.starts_with(['.', '[']) => {
                Fault::new(message).at(inner).at(way)
            }
            _ => Fault::new(message).at(way),
        }
    })
}

/// The same, on behalf of another value that is read.
pub(crate) fn read_on<T: DeserializeOwned, E: Error>(value: Value) -> Result<T, E> {
    read(value).map_err(|fault| fault.handed_on())
}

/// Refuse a value: `must be WHAT, got VALUE`, of which at most 80 characters are quoted.
pub(crate) fn refused(what: impl fmt::Display, value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    let shown: String = match text.char_indices().nth(80) {
        None => text,
        Some(_) => text.chars().take(77).chain("...".chars()).collect(),
    };
    format!("must be {what}, got {shown}")
}

/// Read an enum whose variant stands under a key of its own: `{KEY: NAME, …}` is what serde knows as `{NAME: {…}}`.
pub(crate) fn tagged<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    key: &str,
    deserializer: D,
) -> Result<T, D::Error> {
    let fields = Map::deserialize(deserializer)?;
    variant(key, fields).map_err(|fault| fault.handed_on())
}

/// The same of fields that were read already.
pub(crate) fn variant<T: DeserializeOwned>(key: &str, mut fields: Map<String, Value>) -> Parsed<T> {
    let name: Name = take(&mut fields, key)?;
    let way = format!(".{}", name.0);
    let named = Map::from_iter([(name.0, Value::Object(fields))]);
    read(Value::Object(named)).map_err(|fault: Fault| {
        if let Some(rest) = fault.way.strip_prefix(&way) {
            return Fault {
                way: rest.to_owned(),
                ..fault
            };
        }
        let is_name = fault.way.is_empty() && fault.message.starts_with("unknown variant");
        fault.at(if is_name {
            format!(".{key}")
        } else {
            String::new()
        })
    })
}

#[derive(Deserialize)]
struct Name(#[serde(deserialize_with = "text")] String);

/// Read and remove a field that must be there.
pub(crate) fn take<T: DeserializeOwned>(fields: &mut Map<String, Value>, key: &str) -> Parsed<T> {
    match fields.remove(key) {
        Some(value) => read(value).map_err(|fault: Fault| fault.at(format_args!(".{key}"))),
        None => Err(Fault::new(format!("missing field `{key}`"))),
    }
}

/// Read an integer within bounds.
pub(crate) fn integer<'de, D, T, const LOW: u64, const HIGH: u64>(
    deserializer: D,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let value = Value::deserialize(deserializer)?;
    let number = value
        .as_u64()
        .filter(|number| (LOW..=HIGH).contains(number));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            D::Error::custom(refused(
                format_args!("an integer from {LOW} to {HIGH}"),
                &value,
            ))
        })
}

/// Read a string without NUL.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) if !text.contains('\0') => Ok(text),
        value => Err(D::Error::custom(refused("a string without NUL", &value))),
    }
}

/// Read a word that names a variant.
pub(crate) fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let text = text(deserializer)?;
    let words: StrDeserializer<'_, D::Error> = text.as_str().into_deserializer();
    T::deserialize(words)
}

/// Read a field that must be there, and may be null.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// Read a field that may be left out, but is not null.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A number of a table or a draw.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Number(#[serde(deserialize_with = "integer::<_, _, 0, LARGEST>")] pub(crate) u64);

/// A text without NUL.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Text(#[serde(deserialize_with = "text")] pub(crate) String);

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Weight(
    #[serde(deserialize_with = "integer::<_, _, 0, { 1 << 62 }>")] pub(crate) u64,
);

/// What is written as an object. (serde would take a list of the fields as well.)
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        read_on(Value::Object(fields)).map(Object)
    }
}
