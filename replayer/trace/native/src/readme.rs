//! The README.md of a trace folder: what is in it and how far it can be trusted.

use serde_json::Value;

/// Render the README of a trace from its trace.json.
pub(crate) fn render(document: &Value) -> String {
    String::from("# Trace\n")
}
