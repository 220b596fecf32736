//! Parts of names.

use super::Context;
use super::draws::{draw, slot};
use super::value::{Fields, Parsed, boolean, integer, list, refuse, text};
use crate::program::Part;
use serde_json::Value;

pub(super) fn parts(value: &Value, context: &Context) -> Parsed<Box<[Part]>> {
    list(value, |value| part(value, context)).map(Vec::into_boxed_slice)
}

fn part(value: &Value, context: &Context) -> Parsed<Part> {
    if value.is_string() {
        return text(value).map(|text| Part::Text(text.to_owned()));
    }
    let fields = Fields::of(value)?;
    let marks = [
        ("user", Part::User),
        ("round", Part::Round),
        ("seq", Part::Seq),
        ("next", Part::Next),
    ];
    for (key, part) in marks {
        if fields.has(key) {
            fields.only(&[key])?;
            return fields.take(key, |value| {
                if boolean(value)? {
                    Ok(part)
                } else {
                    refuse("true", value)
                }
            });
        }
    }
    if fields.has("draw") {
        let fields = fields.only(&["draw"])?;
        return fields
            .take("draw", |value| draw(value, context))
            .map(Part::Number);
    }
    if fields.has("hex") {
        let digits = fields
            .only(&["hex"])?
            .take("hex", |value| integer(value, 1, 16))?;
        return Ok(Part::Hex(u8::try_from(digits).unwrap_or(16)));
    }
    if fields.has("name_of") {
        return fields
            .only(&["name_of"])?
            .take("name_of", slot)
            .map(Part::NameOf);
    }
    fields
        .only(&["path_of"])?
        .take("path_of", slot)
        .map(Part::PathOf)
}
