//! What led to an event: the events before it that had to do with the same places or the same open descriptions.

use crate::bytes::parent;
use crate::error::TraceError;
use crate::reader::{Trace, TraceTables};
use crate::tables::schema::{Event, NamedPath};
use replayer_ops::{Class, Op, errno_name};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use std::path::Path;

/// Tell which events before a row touched its paths, changed their parents, or used its descriptions: newest first, at
/// most `limit`. Returns JSON.
///
/// # Errors
/// It is no trace, is damaged, or has no such row.
pub fn history(directory: &Path, row: u64, limit: usize) -> Result<String, TraceError> {
    let trace = Trace::open(directory)?;
    let paths = trace.paths()?;
    let tables = trace.tables();
    let homes = homes(tables, row)?;
    let mut search = None;
    let mut found = Vec::new();
    for bounds in tables.event_groups()?.windows(2).rev() {
        let &[begin, end] = bounds else { continue };
        if begin > row || found.len() >= limit && search.is_some() {
            continue;
        }
        let group = events_between(tables, begin, end.min(row.saturating_add(1)))?;
        for (at, event) in group.iter().rev() {
            match &mut search {
                None if *at == row => search = Some(Search::new(event, &homes, &paths)),
                Some(search) if found.len() < limit => {
                    if let Some(why) = search.meets(event, &homes) {
                        found.push(describe(event, *at, why, &paths));
                    }
                }
                _ => {}
            }
        }
    }
    if search.is_none() {
        return Err(TraceError::asked(
            format!("{} has no event {row}", directory.display()),
            "rows of events count from 0",
        ));
    }
    Ok(Value::Array(found).to_string())
}

fn events_between(
    tables: &TraceTables,
    begin: u64,
    end: u64,
) -> Result<Vec<(u64, Event)>, TraceError> {
    let mut events = tables.events(begin)?;
    let events = std::iter::from_fn(|| events.next_event().transpose());
    let events = events.take_while(|event| event.as_ref().map_or(true, |(at, _)| *at < end));
    events.collect()
}

/// The paths of open descriptions, by their numbers.
type Homes = FxHashMap<u32, u32>;

fn homes(tables: &TraceTables, row: u64) -> Result<Homes, TraceError> {
    let mut homes = FxHashMap::default();
    let mut events = tables.names()?;
    while let Some((at, event)) = events.next_event()? {
        if at > row {
            break;
        }
        homes.extend(event.opens());
    }
    Ok(homes)
}

/// What is looked for.
struct Search {
    places: FxHashSet<u32>,
    parents: FxHashSet<u32>,
    files: FxHashSet<u32>,
}

impl Search {
    fn new(event: &Event, homes: &Homes, paths: &[NamedPath]) -> Self {
        let files: FxHashSet<u32> = files(event).collect();
        let places: FxHashSet<u32> = places(event, homes).collect();
        let by_name: FxHashMap<&[u8], u32> = paths
            .iter()
            .zip(0..)
            .map(|(row, number)| (row.path.as_slice(), number))
            .collect();
        let names = places
            .iter()
            .filter_map(|&place| paths.get(usize::try_from(place).ok()?));
        let parents = names
            .flat_map(|row| above(&row.path))
            .filter_map(|path| by_name.get(path).copied())
            .collect();
        Self {
            places,
            parents,
            files,
        }
    }

    /// Why an event belongs to the history, if it does.
    fn meets(&mut self, event: &Event, homes: &Homes) -> Option<&'static str> {
        if files(event).any(|file| self.files.contains(&file)) {
            return Some("description");
        }
        if places(event, homes).any(|place| self.places.contains(&place)) {
            if event.op == Op::Rename && event.result >= 0 {
                // Before it, what is here now had the other name.
                self.places.extend(places(event, homes));
            }
            return Some("path");
        }
        let changes = matches!(
            event.op.class(),
            Class::Alter | Class::Attribute | Class::Mark
        );
        let parent = places(event, homes).any(|place| self.parents.contains(&place));
        (changes && parent).then_some("parent")
    }
}

/// The directories above a path, from its own to the top's.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(parent(path), |path| parent(path))
}

/// The open descriptions of an event; those that a relative path began at are not meant.
fn files(event: &Event) -> impl Iterator<Item = u32> + use<> {
    let opens = matches!(event.op, Op::Open | Op::Inherit);
    let begins_only = event.path.is_some() && !opens || event.op == Op::Link;
    let second = if event.path.is_some() {
        None
    } else {
        event.to_file
    };
    let first = if begins_only { None } else { event.file };
    first.into_iter().chain(second)
}

fn places(event: &Event, homes: &Homes) -> impl Iterator<Item = u32> + use<> {
    let named = [event.path, event.to_path];
    // What a link names by its descriptor may have been opened by its directory.
    let held: Vec<u32> = files(event)
        .filter(|_| event.op != Op::Link)
        .filter_map(|file| homes.get(&file).copied())
        .collect();
    named.into_iter().flatten().chain(held)
}

fn error_name(result: i64) -> Option<&'static str> {
    let number = u16::try_from(result.checked_neg()?).ok()?;
    (number > 0).then(|| errno_name(number))
}

fn describe(event: &Event, row: u64, why: &str, paths: &[NamedPath]) -> Value {
    let path = |number: Option<u32>| {
        let row = paths.get(usize::try_from(number?).ok()?)?;
        Some(String::from_utf8_lossy(&row.path).into_owned())
    };
    json!({
        "row": row,
        "why": why,
        "thread": event.thread,
        "start_ns": event.start_ns,
        "op": event.op.name(),
        "path": path(event.path),
        "to_path": path(event.to_path),
        "file": event.file,
        "to_file": event.to_file,
        "flags": event.flags,
        "size": event.size,
        "offset": event.offset,
        "result": event.result,
        "error": error_name(event.result),
    })
}
