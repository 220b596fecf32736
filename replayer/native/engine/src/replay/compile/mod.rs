//! From a trace folder to replay programs: a whole trace is one, each request of a label is one.
//! Nothing that a trace says is trusted: what cannot be, or may not be, becomes an omission or an error in words.

mod batches;
mod clock;
mod lanes;
mod locks;
mod operands;
mod own;
mod path_map;
mod requests;
mod schedule;
mod slots;
mod survey;
mod table;
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
mod translator;
mod translator_file;
mod translator_lock;
mod translator_path;
mod tree_state;
mod tree_state_events;
mod waits;

pub(crate) use path_map::{Contended, PathMap};
pub(crate) use requests::compile_requests;

use super::program::{CallBatch, CallBatches, ReplayProgram, Script};
use crate::program::{Content, Dataset, Own, Scope};
use batches::Needs;
use clock::Calibration;
use lanes::Lanes;
use own::{Entries, numbered, own_of_tree, shared_of_tree, tops};
use replayer_trace::{Trace, TraceTables, label_name};
use schedule::{Part, Schedule};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
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
        let place = Path::new(folder);
        let trace = Trace::open(place)?;
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

    pub(crate) fn shared_by(self, users: u32) -> Source {
        Source { users, ..self }
    }
}

impl Source {
    /// The labels of its requests; those that nobody named have one together.
    pub(crate) fn labels(&self) -> Result<BTreeSet<String>, String> {
        let mut rows = self.streams.requests()?;
        let mut labels = BTreeSet::new();
        while let Some(piece) = rows.next_row()? {
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

/// The datasets of a trace of this name and directory; with each user's first own entries where only `whole` traces are played.
/// `None` when their texts exceed 4 GiB.
pub(crate) fn datasets(
    source: &Source,
    (name, directory): (&str, &str),
    whole: bool,
) -> Option<Vec<Dataset>> {
    let mut shared = laid_out(name, directory, Scope::Shared);
    fill(&mut shared, &shared_of_tree(&source.path_map), |_, _| None)?;
    let mut own = laid_out(name, directory, Scope::Own);
    if whole {
        let path_map = &source.path_map;
        let prefix = directory.len() + 1;
        fill(&mut own, &own_of_tree(path_map), |path, link| {
            let end = path_map.own_end_of(path).saturating_sub(prefix);
            Some(Own {
                path: u32::try_from(end).unwrap_or(0),
                link: path_map.link_mark(path, link).unwrap_or(0),
            })
        })?;
    }
    Some(vec![shared, own])
}

fn laid_out(name: &str, directory: &str, scope: Scope) -> Dataset {
    let (name, directory) = (name.to_owned(), directory.to_owned());
    let mut dataset = Dataset::new(name, directory, scope, Content::Random);
    dataset.laid_out = true;
    dataset
}

fn fill(
    dataset: &mut Dataset,
    entries: &Entries,
    own: impl Fn(&[u8], &[u8]) -> Option<Own>,
) -> Option<()> {
    let prefix = dataset.directory.len() + 1;
    for (path, found) in entries {
        let within = path.get(prefix..)?;
        let facts = (found.size, found.mode);
        dataset.push(within, found.kind, facts, &found.link)?;
        if let Some(own) = own(path, &found.link) {
            dataset.mark(own);
        }
    }
    Some(())
}

/// Batches that wait for the players (chosen: with those being made and played about 20 MiB a performance).
const AHEAD: usize = 2;

/// All batches in memory, shared by all performances.
#[derive(Debug)]
pub(crate) struct Kept(pub(crate) Arc<[Arc<CallBatch>]>);

impl Script for Kept {
    fn play(&self) -> Box<dyn CallBatches> {
        Box::new(KeptBatches {
            batches: Arc::clone(&self.0),
            next: 0,
        })
    }
}

struct KeptBatches {
    batches: Arc<[Arc<CallBatch>]>,
    next: usize,
}

impl CallBatches for KeptBatches {
    fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String> {
        let batch = self.batches.get(self.next).cloned();
        self.next += 1;
        Ok(batch)
    }
}

/// Batches that are made anew for each performance, from a trace whose files are open.
#[derive(Debug)]
pub(crate) struct Streamed(pub(crate) Arc<Schedule>);

impl Script for Streamed {
    fn play(&self) -> Box<dyn CallBatches> {
        let (give, take) = sync_channel(AHEAD);
        let schedule = Arc::clone(&self.0);
        let build = move || {
            // A failed send says that the performance is over.
            let built = schedule.build(|batch| give.send(Ok(Some(Arc::new(batch)))).is_ok());
            let _ = give.send(built.map(|_| None));
        };
        let thread = std::thread::Builder::new().name("trace".to_owned());
        Box::new(match thread.spawn(build) {
            Ok(_) => StreamedBatches::Coming(take),
            Err(error) => StreamedBatches::Failed(format!("a thread to read the trace: {error}")),
        })
    }
}

enum StreamedBatches {
    Coming(Receiver<Result<Option<Arc<CallBatch>>, String>>),
    Failed(String),
}

impl CallBatches for StreamedBatches {
    fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String> {
        match self {
            StreamedBatches::Coming(take) => take
                .recv()
                .unwrap_or_else(|_| Err("reading the trace broke off".to_owned())),
            StreamedBatches::Failed(message) => Err(message.clone()),
        }
    }
}
