//! Checks event logs against a trace: every event began after what it waits for had ended, and threads kept their order.

use crate::error::{Error, Result};
use crate::replay::play::RECORD;
use replayer_trace::Trace;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, Default, PartialEq)]
pub struct Report {
    pub(crate) performances: u64,
    pub(crate) events: u64,
    /// Edges both of whose events were played.
    pub(crate) edges: u64,
    pub(crate) violated: u64,
    pub(crate) first: Option<Value>,
}

impl Report {
    /// It as JSON.
    #[must_use]
    pub fn json(&self) -> String {
        json!({
            "performances": self.performances, "events": self.events, "edges": self.edges,
            "violated": self.violated, "first": self.first,
        })
        .to_string()
    }
}

/// When an event of a performance began and ended.
type Times = (u64, u64);

/// Check every performance of an event log against the edges and threads of a trace.
///
/// # Errors
/// The trace or the log cannot be read.
pub fn check_order(trace: &str, log: &str) -> Result<Report> {
    let fault = |error: replayer_trace::TraceError| Error::value(error.to_string());
    let opened = Trace::open(Path::new(trace)).map_err(fault)?;
    let edges = opened.edges().map_err(fault)?;
    let mut threads = Vec::new();
    let mut events = opened.tables().names().map_err(fault)?;
    while let Some((_, event)) = events.next_event().map_err(fault)? {
        threads.push(event.thread);
    }
    check_pairs(&edges, &threads, Path::new(log))
}

/// The same, with edges as pairs of (event, what it waits for) and the thread of every row.
pub(crate) fn check_pairs(edges: &[(u64, u64)], threads: &[u32], log: &Path) -> Result<Report> {
    let mut report = Report::default();
    for ((user, performance), files) in performances(log)? {
        let mut times: Vec<Option<Times>> = vec![None; threads.len()];
        for file in files {
            report.events += load(&file, &mut times)?;
        }
        report.performances += 1;
        let check = Check {
            times: &times,
            place: (user, performance),
        };
        check.edges(edges, &mut report);
        check.threads(threads, &mut report);
    }
    Ok(report)
}

fn os(path: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |error| Error::os(crate::error::errno_of(&error), path.display().to_string())
}

/// The logs of each performance, by user and number.
fn performances(log: &Path) -> Result<BTreeMap<(u32, u64), Vec<PathBuf>>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for entry in std::fs::read_dir(log).map_err(os(log))? {
        let path = entry.map_err(os(log))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(key) = name.and_then(parse_name) {
            found.entry(key).or_default().push(path);
        }
    }
    Ok(found)
}

/// User and performance of `u<user>-p<performance>-l<lane>.events`.
fn parse_name(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_suffix(".events")?.split('-');
    let user = parts.next()?.strip_prefix('u')?.parse().ok()?;
    let performance = parts.next()?.strip_prefix('p')?.parse().ok()?;
    Some((user, performance))
}

/// Read a lane's log; how many events it holds.
fn load(path: &Path, times: &mut [Option<Times>]) -> Result<u64> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .open(path)
        .map_err(os(path))?;
    let mut file = BufReader::new(file);
    let mut record = [0; RECORD];
    let mut events = 0;
    while read_record(&mut file, &mut record).map_err(os(path))? {
        let (words, _) = record.as_chunks::<8>();
        let mut numbers = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || numbers.next().unwrap_or(0);
        let (row, start_ns, end_ns) = (next(), next(), next());
        let place = usize::try_from(row).ok().and_then(|row| times.get_mut(row));
        let Some(place) = place else {
            return Err(Error::value(format!(
                "{}: row {row} is not in the trace",
                path.display()
            )));
        };
        *place = Some((start_ns, end_ns));
        events += 1;
    }
    Ok(events)
}

/// False at the end; a record that was not written whole is none.
fn read_record(file: &mut impl Read, record: &mut [u8; RECORD]) -> std::io::Result<bool> {
    match file.read_exact(record) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// One performance.
struct Check<'a> {
    times: &'a [Option<Times>],
    place: (u32, u64),
}

impl Check<'_> {
    fn times_of(&self, row: u64) -> Option<Times> {
        let row = usize::try_from(row).ok()?;
        self.times.get(row).copied().flatten()
    }

    fn edges(&self, edges: &[(u64, u64)], report: &mut Report) {
        for (event, waits_for) in edges {
            let (Some(after), Some(before)) = (self.times_of(*event), self.times_of(*waits_for))
            else {
                continue;
            };
            report.edges += 1;
            if before.1 > after.0 {
                self.violate((*event, after.0), (*waits_for, before.1), report);
            }
        }
    }

    fn threads(&self, threads: &[u32], report: &mut Report) {
        let mut last: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for ((row, thread), times) in (0_u64..).zip(threads).zip(self.times) {
            let Some((start_ns, end_ns)) = times else {
                continue;
            };
            if let Some(before) = last.insert(*thread, (row, *end_ns))
                && before.1 > *start_ns
            {
                self.violate((row, *start_ns), before, report);
            }
        }
    }

    fn violate(&self, event: (u64, u64), waits_for: (u64, u64), report: &mut Report) {
        report.violated += 1;
        let (user, performance) = self.place;
        report.first.get_or_insert_with(|| {
            json!({
                "user": user, "performance": performance, "event": event.0,
                "start_ns": event.1, "waits_for": waits_for.0, "end_ns": waits_for.1,
            })
        });
    }
}
