//! Writes the trace folder beside its place, and moves it there when it is whole.

use crate::error::TraceError;
use crate::formats::{Clock, Format};
use crate::paths::Paths;
use crate::requests::{PIECES_GUESSED, WINDOWS_WITHOUT, label_name};
use crate::scope::Scope;
use crate::tables;
use crate::tables::small::{write_paths, write_requests};
use crate::tables::tree::{Keep, Needed};
use crate::tables::{FAILED, FORMAT_VERSION, NO_CHECKSUM, TABLES, checksum, document_checksum};
use crate::tracer_overhead::OverheadCosts;
use crate::tracer_overhead::compute_time::ComputeTime;
use crate::tracker::Tracker;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct FolderDraft {
    path: PathBuf,
    target: PathBuf,
}

impl FolderDraft {
    /// Make an empty folder beside the target, which must not exist.
    pub(crate) fn create(target: &Path) -> Result<Self, TraceError> {
        if fs::symlink_metadata(target).is_ok() {
            return Err(TraceError::asked(
                format!("{} exists", target.display()),
                "remove it, or choose another name with -o",
            ));
        }
        let name = target
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name else {
            return Err(TraceError::asked(
                "-o must name a folder",
                "for example -o traces/front",
            ));
        };
        let parent = target
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(parent).map_err(TraceError::io(parent))?;
        let path = parent.join(format!(".{name}.partial-{}", std::process::id()));
        fs::create_dir(&path).map_err(TraceError::io(&path))?;
        Ok(Self {
            path,
            target: target.to_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Put the folder in its place, or remove it where the import failed.
    pub(crate) fn finish(self, result: Result<String, TraceError>) -> Result<String, TraceError> {
        let moved = result.and_then(|text| {
            fs::rename(&self.path, &self.target).map_err(TraceError::io(&self.target))?;
            Ok(text)
        });
        if moved.is_err() {
            // The first error is the one to tell.
            let _ = fs::remove_dir_all(&self.path);
        }
        moved
    }
}

/// What trace.json says about where a trace comes from.
pub(crate) struct Origin<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) note: &'a str,
    pub(crate) keep: Keep,
    pub(crate) format: &'a Format,
    pub(crate) clock: Clock,
    pub(crate) declared: Option<u64>,
}

/// Write the small tables, trace.json and README.md. Returns the text of trace.json.
pub(crate) fn write(
    directory: &Path,
    mut tracker: Tracker,
    origin: &Origin<'_>,
) -> Result<String, TraceError> {
    tracker.order.settle();
    for edge in std::mem::take(&mut tracker.order.ready) {
        tracker.edges.push(edge)?;
    }
    tracker.tree.settle_names();
    let needed = settle_paths(&mut tracker, origin.keep);
    let mut document = Map::new();
    document.insert("format".to_owned(), json!(FORMAT_VERSION));
    document.insert("checksum".to_owned(), json!(NO_CHECKSUM));
    let writer = format!("replayer {}", env!("CARGO_PKG_VERSION"));
    document.insert("writer".to_owned(), json!(writer));
    document.insert("origin".to_owned(), describe_origin(origin));
    document.extend(write_tables(directory, tracker, origin, &needed)?);
    seal_folder(directory, Value::Object(document))
}

/// Write trace.json with the checksums of what is there, and README.md. Returns the text of trace.json.
pub(crate) fn seal_folder(directory: &Path, mut document: Value) -> Result<String, TraceError> {
    if let Some(map) = document.as_object_mut() {
        map.insert("tables".to_owned(), checksums(directory)?);
    }
    let text = seal(&document);
    let place = directory.join("trace.json");
    fs::write(&place, &text).map_err(TraceError::io(&place))?;
    let place = directory.join("README.md");
    fs::write(&place, render_readme(&document)).map_err(TraceError::io(&place))?;
    Ok(text)
}

/// Write what is left of the tables. Returns what trace.json says of them.
fn write_tables(
    directory: &Path,
    mut tracker: Tracker,
    origin: &Origin<'_>,
    needed: &[Needed],
) -> Result<Map<String, Value>, TraceError> {
    let first_ns = tracker.first_ns.unwrap_or(0);
    let events = tracker.events.finish()?;
    let by_reason = std::mem::take(&mut tracker.edges.by_reason);
    let edges = tracker.edges.finish()?;
    let without_events = tracker.requests.without_events;
    let (requests, windows_without) = tracker.requests.into_done();
    let guessed = requests.iter().filter(|request| request.is_guess).count();
    tracker.counts.blind.add_all(PIECES_GUESSED, guessed);
    tracker
        .counts
        .blind
        .add_all(WINDOWS_WITHOUT, windows_without);
    write_requests(directory, &requests, first_ns)?;
    let tree = tables::tree::write(directory, &mut tracker.tree, needed)?;
    let labels = write_paths(directory, &tracker.tree.paths, &tracker.usage)?;
    let totals = json!({
        "events": events.rows,
        "times_rounded": events.rounded,
        "threads": tracker.threads.len(),
        "paths": tracker.tree.paths.rows().len(),
        "open_descriptions": tracker.files.count(),
        "edges": edges,
        "edges_by_reason": by_reason.iter().map(|(reason, count)| (reason.name().to_owned(), json!(count))).collect::<Map<_, _>>(),
        "requests": requests.len(),
        "connections_without_events": without_events,
        "span_ns": tracker.last_ns.saturating_sub(first_ns).max(0),
        "parents_guessed": tracker.tasks.guessed,
        "files_from_outside": tracker.outside.crossings,
        "manifest_rows": origin.declared,
        "tree_repairs": tracker.tree.repairs,
    });
    let told = json!({
        "clock": clock(origin, tracker.first_ns, events.tick_ns),
        "calibration": calibration(&events.costs),
        "roots": roots(&tracker.scope, &tracker.tree.paths),
        "blind_spots": tracker.counts.blind.json(),
        "counts": joined([tracker.counts.json(), totals]),
        "labels": labels,
        "tree": tree,
        "requests": by_label(&requests),
    });
    Ok(joined([told]))
}

/// One object with the keys of all.
pub(crate) fn joined(objects: impl IntoIterator<Item = Value>) -> Map<String, Value> {
    let maps = objects.into_iter().filter_map(|object| match object {
        Value::Object(map) => Some(map),
        _ => None,
    });
    maps.flatten().collect()
}

/// Give every path its row, and tell what of the tree is needed, parents before children.
///
/// Rows are sorted as long as no event has been written: that packs better.
fn settle_paths(tracker: &mut Tracker, keep: Keep) -> Vec<Needed> {
    let mut needed = tables::tree::needed(&mut tracker.tree, keep);
    let paths = &mut tracker.tree.paths;
    if tracker.events.is_whole() {
        let moved = paths.sort_rows();
        tracker.events.renumber_paths(&moved);
        tables::tree::sort_by_row(&mut needed, paths);
    } else {
        tables::tree::sort(&mut needed, paths);
    }
    needed
}

/// The text of trace.json, with its checksum in place.
fn seal(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    let sum = document_checksum(&text);
    text.replacen(NO_CHECKSUM, &sum, 1)
}

/// Requests and their events, by label.
fn by_label(requests: &[crate::requests::Request]) -> Value {
    let mut labels: std::collections::BTreeMap<&str, (std::collections::BTreeSet<u32>, u64)> =
        std::collections::BTreeMap::new();
    for request in requests {
        let label = label_name(&request.label);
        let entry = labels.entry(label).or_default();
        entry.0.insert(request.number);
        entry.1 += request.events;
    }
    labels
        .iter()
        .map(|(label, (numbers, events))| json!({"label": label, "count": numbers.len(), "events": events}))
        .collect()
}

fn clock(origin: &Origin<'_>, begin_ns: Option<i64>, tick_ns: i64) -> Value {
    json!({
        "kind": origin.clock.kind.name(),
        "begin_ns": begin_ns,
        "resolution_ns": origin.clock.resolution_ns,
        "tick_ns": tick_ns,
        "durations": origin.clock.durations,
    })
}

fn roots(scope: &Scope, paths: &Paths) -> Value {
    scope
        .roots()
        .map(|(absolute, top)| {
            json!({
                "directory": format!("/{}", String::from_utf8_lossy(absolute)),
                "name": String::from_utf8_lossy(&paths.text(top)),
            })
        })
        .collect()
}

fn describe_origin(origin: &Origin<'_>) -> Value {
    let names: Vec<String> = origin
        .files
        .iter()
        .filter_map(|file| file.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    json!({
        "format": origin.format.name,
        "files": names,
        "note": origin.note,
    })
}

fn calibration(costs: &OverheadCosts) -> Value {
    let after = costs.each().map(|(op, failed, ns)| {
        let suffix = if failed { FAILED } else { "" };
        (format!("{}{suffix}", op.name()), json!(ns))
    });
    let untraced = costs.computed.and_then(|computed| {
        let runs = computed.untraced?;
        Some(json!({
            "runs": runs.runs,
            "elapsed_ns": runs.elapsed_ns,
            "user_ns": computed.user_ns,
        }))
    });
    json!({
        "call_ns": costs.call_ns,
        "gap_ns": costs.gap_ns,
        "gap_ns_after": after.collect::<Map<_, _>>(),
        "most_owed_ns": costs.most_owed_ns,
        "long_gap_ns": costs.long_gap_ns,
        "proven_ns": costs.computed.and_then(ComputeTime::proven_ns),
        "untraced": untraced,
        "method": costs.method,
        "about": "think times have what the tracer added subtracted; durations are as recorded and contain the call constant",
    })
}

fn checksums(directory: &Path) -> Result<Value, TraceError> {
    let mut tables = Map::new();
    for name in TABLES {
        let path = directory.join(format!("{name}.parquet"));
        let (sum, bytes) = checksum(&path)?;
        tables.insert(name.to_owned(), json!({"bytes": bytes, "sha256": sum}));
    }
    Ok(Value::Object(tables))
}

/// Render the README of a trace from its trace.json: what is in it and how far it can be trusted.
fn render_readme(document: &Value) -> String {
    let at = |pointer: &str| document.pointer(pointer).unwrap_or(&Value::Null);
    let word = |pointer: &str| at(pointer).as_str().unwrap_or("?");
    let number = |pointer: &str| at(pointer).as_u64().unwrap_or(0);
    let sum = |pointer: &str| {
        let counts = at(pointer).as_object();
        counts.map_or(0, |counts| counts.values().filter_map(Value::as_u64).sum())
    };
    let note = at("/origin/note").as_str().unwrap_or_default();
    let note = if note.is_empty() {
        String::new()
    } else {
        format!("{note}\n\n")
    };
    #[allow(clippy::cast_precision_loss, reason = "shown with three digits")]
    let seconds = number("/counts/span_ns") as f64 / 1e9;
    let spots = blind_spots(at("/blind_spots"));
    format!(
        "# Trace

{note}Imported by {writer} from {format} ({lines} lines, {strange} not understood). {events} events of {threads} threads over {seconds:.3} s.

## Tables

Parquet, readable by DuckDB, pandas, polars and pyarrow.

| table | rows | what |
|---|---|---|
| `events.parquet` | {events} | one row a call, in the order in which calls took effect; a negative `result` is an errno |
| `paths.parquet` | {paths} | `path` and `to_path` of events count its rows, from 0; the first component stands for a root |
| `tree.parquet` |  | what must be there before: type, size, mode, link |
| `edges.parquet` | {edges} | which event waits for which event of another thread, and why |
| `requests.parquet` | {requests} | which events of which thread belong to a request |

Backslashes in paths are doubled, and bytes that are not UTF-8 are written `\\xNN`.

## How far it can be trusted

- Times were taken under a tracer. What it added comes from {method}. Order and think times are what to use them for.
- Tree: {inferred} entries come from events instead of a manifest; {least} files have only the least size that reads prove; {unexplained} results are not explained by the tree.
- Calls below the roots: {below}, of which {as_events} are events, {followed} are followed state, {lost} cannot be represented.
{spots}
",
        writer = word("/writer"),
        format = word("/origin/format"),
        lines = number("/counts/lines"),
        strange = number("/counts/lines_not_understood"),
        events = number("/counts/events"),
        threads = number("/counts/threads"),
        paths = number("/counts/paths"),
        edges = number("/counts/edges"),
        requests = number("/counts/requests"),
        method = at("/calibration/method").as_str().unwrap_or_default(),
        inferred = number("/tree/inferred"),
        least = number("/tree/sizes_that_are_least"),
        unexplained = number("/counts/tree_repairs/unexplained"),
        below = number("/counts/calls_below_roots"),
        as_events = number("/counts/calls_as_events"),
        followed = sum("/counts/calls_followed"),
        lost = sum("/counts/calls_not_representable"),
    )
}

fn blind_spots(counts: &Value) -> String {
    let counts = counts.as_object().filter(|counts| !counts.is_empty());
    let Some(counts) = counts else {
        return "- Blind spots: none seen.".to_owned();
    };
    let counts = counts
        .iter()
        .map(|(name, count)| format!("{name} ({count})"));
    let spots = counts.collect::<Vec<_>>().join(", ");
    format!("- Blind spots, which the log (or the table of requests) does not show: {spots}.")
}
