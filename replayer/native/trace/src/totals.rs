//! The totals in trace.json, held against the tables: what is checked before a replay is checked of what will be laid out.

use crate::error::TraceError;
use crate::reader::{AGAIN, Trace};
use crate::requests::label_name;
use rustc_hash::FxHashSet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Refuse totals that the tables do not have.
pub(crate) fn check(trace: &Trace, place: &Path) -> Result<(), TraceError> {
    let mut found = vec![("/counts/events", "events", trace.extent().events)];
    found.extend(of_tree(trace)?);
    for (pointer, table, found) in found {
        let told = trace.told().pointer(pointer).and_then(Value::as_u64);
        if told != Some(found) {
            let told = told.map_or("nothing".to_owned(), |told| told.to_string());
            let name = pointer.trim_start_matches('/').replace('/', ".");
            let message = format!("says {told} of {name}, {table}.parquet holds {found}");
            return Err(TraceError::damaged(place, message, AGAIN));
        }
    }
    if told_requests(trace.told()) == Some(requests(trace)?) {
        return Ok(());
    }
    let message = "counts other requests than requests.parquet holds";
    Err(TraceError::damaged(place, message, AGAIN))
}

type Total = (&'static str, &'static str, u64);

fn of_tree(trace: &Trace) -> Result<[Total; 5], TraceError> {
    /// What a sum of sizes is written as at most.
    const MOST: u64 = i64::MAX.unsigned_abs();
    let (mut files, mut directories, mut links, mut special) = (0, 0, 0, 0);
    let mut bytes = 0_u64;
    for entry in trace.tree()? {
        *match entry.kind {
            'd' => &mut directories,
            'l' => &mut links,
            'o' => &mut special,
            _ => &mut files,
        } += 1;
        bytes = bytes.saturating_add(entry.size).min(MOST);
    }
    Ok([
        ("/tree/files", "tree", files),
        ("/tree/directories", "tree", directories),
        ("/tree/links", "tree", links),
        ("/tree/special", "tree", special),
        ("/tree/bytes", "tree", bytes),
    ])
}

/// How many requests there are, by label.
fn requests(trace: &Trace) -> Result<BTreeMap<String, u64>, TraceError> {
    let mut seen = FxHashSet::default();
    let mut counts = BTreeMap::new();
    for piece in trace.requests()? {
        let label = label_name(&piece.label).to_owned();
        if seen.insert((label.clone(), piece.request)) {
            *counts.entry(label).or_default() += 1;
        }
    }
    Ok(counts)
}

fn told_requests(document: &Value) -> Option<BTreeMap<String, u64>> {
    let rows = document.get("requests")?.as_array()?;
    let rows = rows.iter().map(|row| {
        let label = row.get("label")?.as_str()?.to_owned();
        Some((label, row.get("count")?.as_u64()?))
    });
    rows.collect()
}
