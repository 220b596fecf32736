//! Replay programs of the requests of a label: all made in two walks along the trace.

use super::batches::{BatchBuilder, Needs};
use super::lanes::Lanes;
use super::own::{Entries, own_of_past, tops};
use super::schedule::{Edges, Part, Schedule};
use super::survey::{Requests, Wanted};
use super::table::Table;
use super::tree_state::{Inherited, TreeState};
use super::{KEPT_EVENTS, Source};
use crate::replay::program::{CallBatch, ReplayProgram};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Make a replay program of every request that has a label, in the order of their first events.
pub(crate) fn compile_requests(source: &Source, label: &str) -> Result<Vec<ReplayProgram>, String> {
    let requests = Requests::find(&source.streams, label)?;
    let befores = befores(source, &requests)?;
    let mut schedules = Vec::with_capacity(befores.len());
    for (wanted, before) in requests.wanted.iter().zip(befores) {
        schedules.push(prepared(source, wanted, before)?);
    }
    let built = build(source, &requests, &schedules)?;
    let mut replay_programs = Vec::with_capacity(schedules.len());
    for (ready, made) in schedules.into_iter().zip(built) {
        let own = (&ready.own, ready.tops);
        replay_programs.push(super::replay_program(
            ready.schedule,
            made.batches,
            made.needs,
            own,
        ));
    }
    Ok(replay_programs)
}

/// What there is when a request begins.
#[derive(Default)]
struct Before {
    own: Entries,
    inherited: Vec<Inherited>,
}

/// Entries of their own that the requests of a label find, all together at most (chosen: 500 MiB).
const MOST_OWN: usize = 4 << 20;

/// Walk along the trace, and look around where requests begin.
fn befores(source: &Source, requests: &Requests) -> Result<Vec<Before>, String> {
    let mut befores = Vec::with_capacity(requests.wanted.len());
    let mut tree_state = TreeState::begin(&source.path_map);
    let mut found = 0;
    let mut events = source.streams.events(0)?;
    // They are in the order of their first rows.
    let mut waiting = requests.wanted.iter().peekable();
    while let Some((row, event)) = events.next_event()? {
        while let Some(wanted) = waiting.next_if(|wanted| wanted.rows().0 <= row) {
            let used = wanted.used.iter();
            let own = own_of_past(&tree_state, &source.path_map, wanted);
            found += own.len();
            if found > MOST_OWN {
                return Err(format!(
                    "its requests find more than {MOST_OWN} files of their own"
                ));
            }
            befores.push(Before {
                own,
                inherited: used
                    .filter_map(|(file, thread)| tree_state.inherited(*file, *thread))
                    .collect(),
            });
        }
        if waiting.peek().is_none() {
            break;
        }
        tree_state.take(&event);
    }
    // Requests beyond the last event: there is nothing in them.
    befores.resize_with(requests.wanted.len(), Before::default);
    Ok(befores)
}

struct Ready {
    schedule: Schedule,
    own: Entries,
    tops: BTreeSet<u32>,
}

fn prepared(source: &Source, wanted: &Wanted, before: Before) -> Result<Ready, String> {
    let path_map = &source.path_map;
    let mut rows: BTreeSet<u32> = wanted.paths.iter().copied().collect();
    rows.extend(before.inherited.iter().map(|held| held.path));
    rows.extend(before.own.values().filter_map(|found| found.row));
    let named = rows.iter().filter_map(|row| path_map.path(*row));
    let tops = tops(path_map, named.chain(before.own.keys().map(|path| &**path)));
    rows.extend(&tops);
    let rows: Vec<u32> = rows.into_iter().collect();
    let unnamed = before.own.iter().filter(|(_, found)| {
        let row = found.row;
        row.is_none_or(|row| rows.binary_search(&row).is_err())
    });
    let unnamed: Vec<Box<[u8]>> = unnamed.map(|(path, _)| path.clone()).collect();
    let schedule = Schedule {
        streams: source.streams.clone(),
        path_map: Arc::clone(path_map),
        table: Table::of_some(path_map, &rows, &unnamed)?,
        lanes: Lanes::deal(&Requests::spans(wanted)),
        part: Part::Pieces(wanted.pieces.clone()),
        rows: wanted.rows(),
        begin_ns: wanted.begin_ns(),
        calibration: source.calibration,
        users: source.users,
        inherited: before.inherited,
        far: Arc::default(),
    };
    Ok(Ready {
        schedule,
        own: before.own,
        tops,
    })
}

/// What became of a request.
#[derive(Default)]
struct Made {
    /// `None` where they would not fit into memory.
    batches: Option<Vec<Arc<CallBatch>>>,
    needs: Needs,
}

/// Make the batches of all requests in one walk.
fn build(source: &Source, requests: &Requests, schedules: &[Ready]) -> Result<Vec<Made>, String> {
    let mut made: Vec<Made> = kept(requests)
        .map(|kept| Made {
            batches: kept.then(Vec::new),
            needs: Needs::default(),
        })
        .collect();
    let mut building: HashMap<usize, BatchBuilder<'_>> = HashMap::new();
    let first = requests.wanted.first().map_or(0, |wanted| wanted.rows().0);
    let mut events = source.streams.events(first)?;
    let mut edges = Edges::new(source.streams.edges()?)?;
    while let Some((row, event)) = events.next_event()? {
        let Some(number) = requests.of(event.thread, row) else {
            continue;
        };
        let (Some(ready), Some(place)) = (schedules.get(number), made.get_mut(number)) else {
            continue;
        };
        let batch_builder = building
            .entry(number)
            .or_insert_with(|| BatchBuilder::new(&ready.schedule));
        batch_builder.push(row, &event, edges.of(row)?);
        let ends = row >= ready.schedule.rows.1;
        if ends || batch_builder.is_full() {
            place.needs = batch_builder.needs();
            let batch = batch_builder.take();
            if let Some(batches) = &mut place.batches {
                batches.extend(batch.map(Arc::new));
            }
        }
        if ends {
            building.remove(&number);
        }
    }
    // Requests whose last event is not in the trace.
    for (number, mut batch_builder) in building {
        let batches = made
            .get_mut(number)
            .and_then(|place| place.batches.as_mut());
        if let Some(batches) = batches {
            batches.extend(batch_builder.take().map(Arc::new));
        }
    }
    Ok(made)
}

/// Which requests are kept in memory: the first ones, as long as there is room.
fn kept(requests: &Requests) -> impl Iterator<Item = bool> {
    let mut left = KEPT_EVENTS;
    requests.wanted.iter().map(move |wanted| {
        let fits = wanted.events <= left;
        if fits {
            left -= wanted.events;
        }
        fits
    })
}
