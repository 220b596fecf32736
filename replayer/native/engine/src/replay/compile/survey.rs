//! A first look at the events: which threads there are, which paths and files each request uses.

use super::lanes::{self, Spans};
use super::schedule::Piece;
use super::waits::{Far, WINDOW};
use crate::replay::program::Lane;
use replayer_trace::{Event, Op, TraceTables, label_name, solitary_path};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Rows that are waited for from far away, at most (chosen: 256 MiB).
const MOST_FAR: usize = 16 << 20;

/// What a whole trace is made of.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) events: u64,
    pub(crate) spans: Spans,
    /// Rows that are waited for from far away, and the threads of them.
    far: Vec<(u64, u32)>,
}

impl Survey {
    pub(crate) fn of(streams: &TraceTables) -> Result<Survey, String> {
        let mut survey = Survey {
            far: far_rows(streams)?,
            ..Survey::default()
        };
        let mut names = streams.names()?;
        let mut next = 0;
        while let Some((row, event)) = names.next_event()? {
            survey.events = row + 1;
            if !lanes::note(&mut survey.spans, event.thread, row) {
                return Err(too_many("events", row, event.thread));
            }
            while let Some(far) = survey.far.get_mut(next).filter(|far| far.0 <= row) {
                far.1 = event.thread;
                next += 1;
            }
        }
        Ok(survey)
    }

    /// The lanes of the rows that are waited for from far away.
    pub(crate) fn far(&self, lane: impl Fn(u32) -> Option<Lane>) -> Far {
        let far = self.far.iter();
        far.filter_map(|(row, thread)| Some((*row, lane(*thread)?)))
            .collect()
    }
}

fn too_many(table: &str, row: u64, thread: u32) -> String {
    let most = lanes::MOST_THREADS - 1;
    format!(
        "{table}.parquet: row {row}: the number of a thread must be at most {most}, got {thread}"
    )
}

fn far_rows(streams: &TraceTables) -> Result<Vec<(u64, u32)>, String> {
    let mut edges = streams.edges()?;
    let mut far = Vec::new();
    while let Some((event, earlier)) = edges.next_row()? {
        if event - earlier >= WINDOW {
            far.push((earlier, 0));
            if far.len() > MOST_FAR {
                far.sort_unstable();
                far.dedup();
            }
        }
        if far.len() > MOST_FAR {
            return Err(format!(
                "must have at most {MOST_FAR} events that a much later event waits for"
            ));
        }
    }
    far.sort_unstable();
    far.dedup();
    Ok(far)
}

/// Rows of paths that the trace makes or removes in a way that only one can.
pub(crate) fn solitary(streams: &TraceTables) -> Result<HashSet<u32>, String> {
    let mut names = streams.names()?;
    let mut rows = HashSet::new();
    while let Some((_, event)) = names.next_event()? {
        rows.extend(solitary_path(&event));
    }
    Ok(rows)
}

/// What a request uses.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) events: u64,
    /// Rows of all paths that it names.
    pub(crate) paths: HashSet<u32>,
    /// Directories that it lists, by the row of their path.
    pub(crate) listed: HashSet<u32>,
    /// Files that it uses without having opened them, and the thread of the first use.
    pub(crate) used: BTreeMap<u32, u32>,
    /// Files that it opened, with the rows of their paths.
    opened: HashMap<u32, Option<u32>>,
}

impl Wanted {
    /// Its first and last row.
    pub(crate) fn rows(&self) -> (u64, u64) {
        let first = self.pieces.iter().map(|piece| piece.first).min();
        let last = self.pieces.iter().map(|piece| piece.last).max();
        (first.unwrap_or(0), last.unwrap_or(0))
    }

    /// When its work began, on the trace's clock.
    pub(crate) fn begin_ns(&self) -> i64 {
        let begin = self.pieces.iter().map(|piece| piece.start_ns).min();
        i64::try_from(begin.unwrap_or(0)).unwrap_or(i64::MAX)
    }

    fn note(&mut self, event: &Event) {
        self.events += 1;
        self.paths.extend(event.path);
        self.paths.extend(event.to_path);
        if matches!(event.op, Op::Open | Op::Inherit) {
            self.uses(event.to_file, event.thread);
            if let Some(file) = event.file.filter(|_| event.result >= 0) {
                self.opened.insert(file, event.path);
            }
            return;
        }
        self.uses(event.file, event.thread);
        self.uses(event.to_file, event.thread);
        if event.op == Op::Getdents {
            let opened = event.file.and_then(|file| self.opened.get(&file));
            self.listed.extend(opened.copied().flatten());
        }
    }

    fn uses(&mut self, file: Option<u32>, thread: u32) {
        if let Some(file) = file.filter(|file| !self.opened.contains_key(file)) {
            self.used.entry(file).or_insert(thread);
        }
    }
}

/// The requests of a label, in the order of their first events.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) wanted: Vec<Wanted>,
    /// Pieces and the numbers of their requests, in order.
    index: Vec<(Piece, usize)>,
}

impl Requests {
    /// Find the requests of a label, or those that nobody named, and look at what they use.
    pub(crate) fn find(streams: &TraceTables, label: &str) -> Result<Requests, String> {
        let mut rows = streams.requests()?;
        let mut by_number: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
        let mut row = 0;
        while let Some(piece) = rows.next_row()? {
            if piece.thread >= lanes::MOST_THREADS {
                return Err(too_many("requests", row, piece.thread));
            }
            row += 1;
            if piece.label == label || label_name(&piece.label) == label {
                by_number.entry(piece.request).or_default().push(Piece {
                    thread: piece.thread,
                    first: piece.first_event,
                    last: piece.last_event,
                    start_ns: piece.start_ns,
                });
            }
        }
        let mut requests = Requests::default();
        for mut pieces in by_number.into_values() {
            pieces.sort_unstable();
            requests.wanted.push(Wanted {
                pieces,
                ..Wanted::default()
            });
        }
        requests.wanted.sort_by_key(Wanted::rows);
        requests.build_index();
        requests.look(streams)?;
        Ok(requests)
    }

    fn build_index(&mut self) {
        let wanted = self.wanted.iter().enumerate();
        self.index = wanted
            .flat_map(|(number, wanted)| wanted.pieces.iter().map(move |piece| (*piece, number)))
            .collect();
        self.index.sort_unstable();
    }

    /// The request that a row of a thread belongs to.
    pub(crate) fn of(&self, thread: u32, row: u64) -> Option<usize> {
        let after = self
            .index
            .partition_point(|(piece, _)| (piece.thread, piece.first) <= (thread, row));
        let (piece, number) = self.index.get(after.checked_sub(1)?)?;
        (piece.thread == thread && row <= piece.last).then_some(*number)
    }

    fn look(&mut self, streams: &TraceTables) -> Result<(), String> {
        let mut names = streams.names()?;
        while let Some((row, event)) = names.next_event()? {
            let number = self.of(event.thread, row);
            if let Some(wanted) = number.and_then(|number| self.wanted.get_mut(number)) {
                wanted.note(&event);
            }
        }
        for wanted in &mut self.wanted {
            wanted.opened = HashMap::new();
        }
        Ok(())
    }

    /// The lanes' spans of a request.
    pub(crate) fn spans(wanted: &Wanted) -> Spans {
        let mut spans = Spans::new();
        for piece in &wanted.pieces {
            lanes::note(&mut spans, piece.thread, piece.first);
            lanes::note(&mut spans, piece.thread, piece.last);
        }
        spans
    }
}
