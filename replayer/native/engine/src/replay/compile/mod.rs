//! From a trace folder to replay programs: a whole trace is one, each request of a label is one.
//! Nothing that a trace says is trusted: what cannot be, or may not be, becomes an omission or an error in words.

mod batches;
mod calibration;
mod clock;
mod denied;
mod laid;
mod lanes;
mod locks;
mod operands;
mod own;
mod path_map;
mod recorded;
mod requests;
mod schedule;
mod script;
mod slots;
mod survey;
mod table;
mod translator;
mod translator_file;
mod translator_lock;
mod translator_path;
mod tree_state;
mod tree_state_events;
mod waits;

pub(crate) use laid::datasets;
pub(crate) use path_map::{Contended, PathMap};
pub(crate) use requests::compile_requests;

use super::program::{CallBatch, ReplayProgram, Script};
use batches::Needs;
use calibration::Calibration;
use lanes::Lanes;
use own::{Entries, numbered, own_of_tree, tops};
use replayer_trace::{Trace, TraceTables, label_name};
use schedule::{Part, Schedule};
use script::{Kept, Streamed};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use survey::{Survey, solitary};
use table::Table;

/// Events that are kept in memory (chosen: 224 MiB); more are read anew for each performance.
const KEPT_EVENTS: u64 = 2_000_000;

/// A trace that was opened and checked.
#[derive(Debug)]
pub(crate) struct Source {
    streams: TraceTables,
    pub(crate) path_map: Arc<PathMap>,
    calibration: Calibration,
    /// Users that share its directories.
    users: u32,
}

impl Source {
    /// Open a trace folder that is to lie in a directory of the run's folder; its trace.json must have this checksum.
    pub(crate) fn open(
        folder: &str,
        directory: &str,
        sha256: &str,
        contended: Contended,
    ) -> Result<Source, String> {
        let told = |error: replayer_trace::TraceError| error.to_string();
        let place = Path::new(folder);
        let trace = Trace::open(place).map_err(told)?;
        let found = trace.sha256();
        if found != sha256 {
            return Err(format!(
                "{folder}: the SHA-256 of its trace.json must be {sha256}, got {found}"
            ));
        }
        let streams = trace.tables().clone();
        let solitary = solitary(&streams)?;
        let path_map = PathMap::load(&trace, directory, &solitary, contended);
        let path_map = path_map.map_err(|error| format!("{folder}: {error}"))?;
        Ok(Source {
            streams,
            path_map: Arc::new(path_map),
            calibration: Calibration::of(trace.document()),
            users: 1,
        })
    }

    /// The same for so many users.
    pub(crate) fn shared_by(self, users: u32) -> Source {
        Source { users, ..self }
    }
}

impl Source {
    /// The labels of its requests; those that nobody named have one together.
    pub(crate) fn labels(&self) -> Result<BTreeSet<String>, String> {
        let told = |error: replayer_trace::TraceError| error.to_string();
        let mut rows = self.streams.requests().map_err(told)?;
        let mut labels = BTreeSet::new();
        while let Some(piece) = rows.next_row().map_err(told)? {
            labels.insert(label_name(&piece.label).to_owned());
        }
        Ok(labels)
    }
}

/// Make a replay program of a whole trace. `laid_out`: users' first own entries are made by the layout.
pub(crate) fn compile_whole(source: &Source, laid_out: bool) -> Result<ReplayProgram, String> {
    let survey = Survey::of(&source.streams)?;
    let lanes = Lanes::deal(&survey.spans);
    let schedule = Schedule {
        streams: source.streams.clone(),
        path_map: Arc::clone(&source.path_map),
        table: Table::of_all(&source.path_map)?,
        far: survey.far(|thread| lanes.of(thread)),
        lanes,
        part: Part::Whole,
        rows: (0, survey.events.saturating_sub(1)),
        begin_ns: 0,
        calibration: source.calibration,
        users: source.users,
        inherited: Vec::new(),
    };
    let path_map = &source.path_map;
    let own = own_of_tree(path_map);
    let paths = (0..path_map.rows()).filter_map(|row| path_map.path(row));
    let top_rows = tops(path_map, paths);
    let (batches, needs) = if survey.events <= KEPT_EVENTS {
        let mut batches = Vec::new();
        let needs = schedule.build(|batch| {
            batches.push(Arc::new(batch));
            true
        })?;
        (Some(batches), needs)
    } else {
        (None, schedule.build(|_| true)?)
    };
    Ok(ReplayProgram {
        laid_out,
        ..replay_program(schedule, batches, needs, (&own, top_rows))
    })
}

/// Put a replay program together; without batches it makes them for each performance.
fn replay_program(
    schedule: Schedule,
    batches: Option<Vec<Arc<CallBatch>>>,
    needs: Needs,
    (own, tops): (&Entries, impl IntoIterator<Item = u32>),
) -> ReplayProgram {
    let tops = tops.into_iter();
    ReplayProgram {
        lanes: schedule.lanes.count,
        slots: needs.slots,
        paths: Arc::clone(&schedule.table.paths),
        own: numbered(own, &schedule.path_map, &schedule.table),
        tops: tops.filter_map(|row| schedule.table.number(row)).collect(),
        laid_out: false,
        read_bytes: needs.read_bytes,
        script: script(schedule, batches),
    }
}

fn script(schedule: Schedule, batches: Option<Vec<Arc<CallBatch>>>) -> Box<dyn Script> {
    match batches {
        Some(batches) => Box::new(Kept(batches.into())),
        None => Box::new(Streamed(Arc::new(schedule))),
    }
}

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod tests_contended;
#[cfg(test)]
mod tests_flags;
#[cfg(test)]
mod tests_links;
#[cfg(test)]
mod tests_lists;
#[cfg(test)]
mod tests_locks;
#[cfg(test)]
mod tests_nameless;
#[cfg(test)]
mod tests_odd;
#[cfg(test)]
mod tests_order;
#[cfg(test)]
mod tests_refused;
