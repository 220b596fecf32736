//! Writes the trace folder beside its place, and moves it there when it is whole.

use crate::error::TraceError;
use crate::events::FAILED;
use crate::formats::{Clock, Format};
use crate::order::EdgeReason;
use crate::requests::{PIECES_GUESSED, WINDOWS_WITHOUT, label_name};
use crate::scope::Scope;
use crate::tables;
use crate::tables::tree::{Keep, Needed};
use crate::tracer_overhead::OverheadCosts;
use crate::tracer_overhead::compute_time::ComputeTime;
use crate::tracker::Tracker;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Version of the folder's format.
pub(crate) const FORMAT_VERSION: u64 = 2;
/// The tables, as they are named.
pub(crate) const TABLES: [&str; 5] = ["events", "paths", "tree", "edges", "requests"];

/// A folder that is being made.
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
    tracker
        .tree
        .settle_names(&mut tracker.scope.paths, &mut tracker.counts.repairs);
    let needed = settle_paths(&mut tracker, origin.keep);
    let mut document = Map::new();
    document.insert("format".to_owned(), json!(FORMAT_VERSION));
    document.insert("checksum".to_owned(), json!(NO_CHECKSUM));
    let writer = format!("replayer {}", env!("CARGO_PKG_VERSION"));
    document.insert("writer".to_owned(), json!(writer));
    document.insert("origin".to_owned(), describe_origin(origin));
    document.extend(write_tables(directory, tracker, origin, &needed)?);
    document.insert("tables".to_owned(), checksums(directory)?);
    let document = Value::Object(document);
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
    tables::requests::write(directory, &requests, first_ns)?;
    let tree = tables::tree::write(directory, &tracker.tree, &mut tracker.scope.paths, needed)?;
    let labels = tables::paths::write(directory, &tracker.scope.paths, &tracker.usage)?;
    let totals = json!({
        "events": events.rows,
        "times_rounded": events.rounded,
        "threads": tracker.threads.len(),
        "paths": tracker.scope.paths.rows().len(),
        "open_descriptions": tracker.files.count(),
        "edges": edges,
        "edges_by_reason": reasons(&by_reason),
        "requests": requests.len(),
        "connections_without_events": without_events,
        "span_ns": tracker.last_ns.saturating_sub(first_ns).max(0),
        "parents_guessed": tracker.tasks.guessed,
        "files_from_outside": tracker.outside.crossings,
        "manifest_rows": origin.declared,
    });
    let told = json!({
        "clock": clock(origin, tracker.first_ns, events.tick_ns),
        "calibration": calibration(&events.costs),
        "roots": roots(&tracker.scope),
        "blind_spots": tracker.counts.blind.json(),
        "counts": joined(tracker.counts.json(), totals),
        "labels": labels,
        "tree": tree,
        "requests": by_label(&requests),
    });
    Ok(map(told))
}

/// Two objects as one.
fn joined(one: Value, other: Value) -> Value {
    let mut all = map(one);
    all.extend(map(other));
    Value::Object(all)
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Give every path its row, and tell what of the tree is needed, parents before children.
///
/// Rows are sorted as long as no event has been written: that packs better.
fn settle_paths(tracker: &mut Tracker, keep: Keep) -> Vec<Needed> {
    let paths = &mut tracker.scope.paths;
    let mut needed = tables::tree::needed(&tracker.tree, paths, keep);
    if tracker.events.is_whole() {
        let moved = paths.sort_rows();
        tracker.events.renumber_paths(&moved);
        tables::tree::sort_by_row(&mut needed, paths);
    } else {
        tables::tree::sort(&mut needed, paths);
    }
    needed
}

/// Stands for the checksum of trace.json while that is taken.
pub(crate) const NO_CHECKSUM: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// The text of trace.json, with its checksum in place.
fn seal(document: &Value) -> String {
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    let sum = document_checksum(&text);
    text.replacen(NO_CHECKSUM, &sum, 1)
}

/// SHA-256 of the text of a trace.json that has zeros for its checksum.
pub(crate) fn document_checksum(text: &str) -> String {
    hexadecimal(&Sha256::digest(text.as_bytes()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
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

fn reasons(by_reason: &std::collections::BTreeMap<EdgeReason, u64>) -> Value {
    let map: Map<String, Value> = by_reason
        .iter()
        .map(|(reason, count)| (reason.name().to_owned(), json!(count)))
        .collect();
    Value::Object(map)
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

fn roots(scope: &Scope) -> Value {
    scope
        .roots()
        .map(|(absolute, top)| {
            json!({
                "directory": format!("/{}", String::from_utf8_lossy(absolute)),
                "name": String::from_utf8_lossy(&scope.paths.text(top)),
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

/// SHA-256 and length of a file.
pub(crate) fn checksum(path: &Path) -> Result<(String, u64), TraceError> {
    let mut file = fs::File::open(path).map_err(TraceError::io(path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0_u8; 1 << 16];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut buffer).map_err(TraceError::io(path))?;
        if count == 0 {
            break;
        }
        hash.update(buffer.get(..count).unwrap_or_default());
        bytes += u64::try_from(count).unwrap_or(0);
    }
    Ok((hexadecimal(&hash.finalize()), bytes))
}

/// Render the README of a trace from its trace.json.
fn render_readme(document: &Value) -> String {
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
