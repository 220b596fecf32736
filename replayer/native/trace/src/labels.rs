//! The labels of a trace's paths, for those who ask what users of a replay share.

use crate::error::TraceError;
use crate::reader::Trace;
use serde_json::{Map, Value};
use std::path::Path;

/// Tell the label of each path: a JSON object. Bytes of names that are no text are replaced.
///
/// # Errors
/// It is no trace, or is damaged.
pub fn labels(directory: &Path) -> Result<String, TraceError> {
    let paths = Trace::open(directory)?.paths()?;
    let named = paths.into_iter().map(|named| {
        let path = String::from_utf8_lossy(&named.path).into_owned();
        (path, Value::from(named.label))
    });
    Ok(Value::Object(named.collect::<Map<_, _>>()).to_string())
}
