//! Whether a trace folder is as it was written: its version, the checksums of its files, and totals that its tables have.

use crate::error::TraceError;
use crate::requests::label_name;
use crate::tables::schema::{RequestPiece, RowCounts, TreeEntry};
use crate::tables::{FORMAT_VERSION, NO_CHECKSUM, TABLES, checksum, document_checksum};
use rustc_hash::FxHashSet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// A longer trace.json is none (chosen).
const LONGEST_DOCUMENT_BYTES: u64 = 16 << 20;

/// The text of trace.json.
pub(super) fn read_document(directory: &Path, place: &Path) -> Result<String, TraceError> {
    let file = File::open(place).map_err(|error| {
        if error.kind() == ErrorKind::NotFound {
            TraceError::damaged(
                directory,
                "is not a trace: it has no trace.json",
                "give a folder that `replayer capture` or `replayer import` created",
            )
        } else {
            TraceError::io(place)(error)
        }
    })?;
    let mut bytes = Vec::new();
    file.take(LONGEST_DOCUMENT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(TraceError::io(place))?;
    String::from_utf8(bytes).map_err(|_| TraceError::broken(place, "is not UTF-8"))
}

/// Parse trace.json, and check its version, its checksum and those of all tables.
pub(super) fn checked_document(directory: &Path, text: &str) -> Result<Value, TraceError> {
    let place = &directory.join("trace.json");
    let document: Value = serde_json::from_str(text)
        .map_err(|error| TraceError::broken(place, format!("is not JSON: {error}")))?;
    match document.get("format").and_then(Value::as_u64) {
        Some(1) => {}
        Some(FORMAT_VERSION) if has_its_checksum(text, &document) => {}
        Some(FORMAT_VERSION) => {
            let message = "has changed since it was written: its checksum differs";
            return Err(TraceError::broken(place, message));
        }
        Some(other) => {
            return Err(TraceError::damaged(
                place,
                format!(
                    "has trace format {other}, this version of replayer reads 1 to {FORMAT_VERSION}"
                ),
                "update replayer, or import the log again",
            ));
        }
        None => return Err(TraceError::broken(place, "has no trace format")),
    }
    for name in TABLES {
        check_table(directory, name, &document)?;
    }
    Ok(document)
}

/// Its checksum is one over its text, with zeros where it stands itself.
fn has_its_checksum(text: &str, document: &Value) -> bool {
    let told = document.get("checksum").and_then(Value::as_str);
    let told = told.filter(|told| told.len() == NO_CHECKSUM.len());
    told.is_some_and(|told| document_checksum(&text.replacen(told, NO_CHECKSUM, 1)) == told)
}

fn check_table(directory: &Path, name: &str, document: &Value) -> Result<(), TraceError> {
    let path = &directory.join(format!("{name}.parquet"));
    let told = |key: &str| document.get("tables")?.get(name)?.get(key);
    let (Some(bytes), Some(sum)) = (
        told("bytes").and_then(Value::as_u64),
        told("sha256").and_then(Value::as_str),
    ) else {
        let message = format!("has no checksum of {name}.parquet");
        return Err(TraceError::broken(directory.join("trace.json"), message));
    };
    if !path.exists() {
        return Err(TraceError::broken(path, "is missing"));
    }
    let (found, length) = checksum(path)?;
    if length != bytes || found != sum {
        let message = format!(
            "has changed since it was written ({length} bytes, {bytes} expected; its checksum differs)"
        );
        return Err(TraceError::broken(path, message));
    }
    Ok(())
}

/// A total of trace.json that the tables do not have: what is checked before a replay is checked of what will be laid out.
pub(super) fn wrong_total(
    document: &Value,
    counts: RowCounts,
    tree: &[TreeEntry],
    requests: &[RequestPiece],
) -> Option<String> {
    let events = ("/counts/events", "events", counts.events);
    for (pointer, table, found) in std::iter::once(events).chain(of_tree(tree)) {
        let told = document.pointer(pointer).and_then(Value::as_u64);
        if told != Some(found) {
            let told = told.map_or("nothing".to_owned(), |told| told.to_string());
            let name = pointer.trim_start_matches('/').replace('/', ".");
            return Some(format!(
                "has {told} as {name}, but {table}.parquet has {found}"
            ));
        }
    }
    let differs = told_requests(document) != Some(requests_by_label(requests));
    differs.then(|| "its request counts differ from requests.parquet".to_owned())
}

type Total = (&'static str, &'static str, u64);

fn of_tree(tree: &[TreeEntry]) -> [Total; 5] {
    /// What a sum of sizes is written as at most.
    const MOST: u64 = i64::MAX.unsigned_abs();
    let (mut files, mut directories, mut links, mut special) = (0, 0, 0, 0);
    let mut bytes = 0_u64;
    for entry in tree {
        *match entry.kind {
            'd' => &mut directories,
            'l' => &mut links,
            'o' => &mut special,
            _ => &mut files,
        } += 1;
        bytes = bytes.saturating_add(entry.size).min(MOST);
    }
    [
        ("/tree/files", "tree", files),
        ("/tree/directories", "tree", directories),
        ("/tree/links", "tree", links),
        ("/tree/special", "tree", special),
        ("/tree/bytes", "tree", bytes),
    ]
}

fn requests_by_label(pieces: &[RequestPiece]) -> BTreeMap<String, u64> {
    let mut seen = FxHashSet::default();
    let mut counts = BTreeMap::new();
    for piece in pieces {
        let label = label_name(&piece.label);
        if seen.insert((label, piece.request)) {
            *counts.entry(label.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn told_requests(document: &Value) -> Option<BTreeMap<String, u64>> {
    let rows = document.get("requests")?.as_array()?;
    let rows = rows.iter().map(|row| {
        let label = row.get("label")?.as_str()?.to_owned();
        Some((label, row.get("count")?.as_u64()?))
    });
    rows.collect()
}
