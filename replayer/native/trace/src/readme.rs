//! The README.md of a trace folder: what is in it and how far it can be trusted.

use serde_json::Value;
use std::fmt::Write;

/// Render the README of a trace from its trace.json.
pub(crate) fn render(document: &Value) -> String {
    let mut text = String::from("# Trace\n\n");
    let note = at(document, "/origin/note").as_str().unwrap_or_default();
    if !note.is_empty() {
        line(&mut text, &format!("{note}\n"));
    }
    line(
        &mut text,
        &format!(
            "Imported by {} from {} ({} lines, {} not understood). {} events of {} threads over {:.3} s.",
            word(document, "/writer"),
            word(document, "/origin/format"),
            number(document, "/counts/lines"),
            number(document, "/counts/lines_not_understood"),
            number(document, "/counts/events"),
            number(document, "/counts/threads"),
            seconds(document, "/counts/span_ns"),
        ),
    );
    tables(&mut text, document);
    trust(&mut text, document);
    text
}

fn tables(text: &mut String, document: &Value) {
    line(
        text,
        "\n## Tables\n\nParquet, readable by DuckDB, pandas, polars and pyarrow.\n",
    );
    line(text, "| table | rows | what |\n|---|---|---|");
    for (name, rows, what) in [
        (
            "events",
            "/counts/events",
            "one row a call, in the order in which calls took effect; a negative `result` is an errno",
        ),
        (
            "paths",
            "/counts/paths",
            "`path` and `to_path` of events count its rows, from 0; the first component stands for a root",
        ),
        (
            "tree",
            "",
            "what must be there before: type, size, mode, link",
        ),
        (
            "edges",
            "/counts/edges",
            "which event waits for which event of another thread, and why",
        ),
        (
            "requests",
            "/counts/requests",
            "which events of which thread belong to a request",
        ),
    ] {
        let rows = if rows.is_empty() {
            String::new()
        } else {
            number(document, rows).to_string()
        };
        line(text, &format!("| `{name}.parquet` | {rows} | {what} |"));
    }
    line(
        text,
        "\nBackslashes in paths are doubled, and bytes that are not UTF-8 are written `\\xNN`.",
    );
}

fn trust(text: &mut String, document: &Value) {
    line(text, "\n## How far it can be trusted\n");
    let times = at(document, "/calibration/method")
        .as_str()
        .unwrap_or_default();
    line(
        text,
        &format!(
            "- Times were taken under a tracer. What it added comes from {times}. Order and think times are what to use them for."
        ),
    );
    line(
        text,
        &format!(
            "- Tree: {} entries come from events instead of a manifest; {} files have only the least size that reads prove; {} results are not explained by the tree.",
            number(document, "/tree/inferred"),
            number(document, "/tree/sizes_that_are_least"),
            number(document, "/counts/tree_repairs/unexplained"),
        ),
    );
    line(
        text,
        &format!(
            "- Calls below the roots: {}, of which {} are events, {} are followed state, {} cannot be represented.",
            number(document, "/counts/calls_below_roots"),
            number(document, "/counts/calls_as_events"),
            sum(document, "/counts/calls_followed"),
            sum(document, "/counts/calls_not_representable"),
        ),
    );
    let blind = at(document, "/blind_spots")
        .as_object()
        .filter(|spots| !spots.is_empty());
    match blind {
        None => line(text, "- Blind spots: none seen."),
        Some(spots) => {
            let spots: Vec<String> = spots
                .iter()
                .map(|(name, count)| format!("{name} ({count})"))
                .collect();
            line(
                text,
                &format!(
                    "- Blind spots, which the log (or the table of requests) does not show: {}.",
                    spots.join(", ")
                ),
            );
        }
    }
}

fn at<'a>(document: &'a Value, pointer: &str) -> &'a Value {
    document.pointer(pointer).unwrap_or(&Value::Null)
}

fn word<'a>(document: &'a Value, pointer: &str) -> &'a str {
    at(document, pointer).as_str().unwrap_or("?")
}

fn number(document: &Value, pointer: &str) -> u64 {
    at(document, pointer).as_u64().unwrap_or(0)
}

fn sum(document: &Value, pointer: &str) -> u64 {
    let counts = at(document, pointer).as_object();
    counts.map_or(0, |counts| counts.values().filter_map(Value::as_u64).sum())
}

#[allow(clippy::cast_precision_loss, reason = "shown with three digits")]
fn seconds(document: &Value, pointer: &str) -> f64 {
    number(document, pointer) as f64 / 1e9
}

fn line(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}
