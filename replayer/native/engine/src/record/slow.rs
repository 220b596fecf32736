//! The ten slowest ops of every (target, transaction, op) within the measured phase.

use crate::lock::hold;
use crate::ops::KINDS;
use crate::record::model::{Phase, Segment};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const SLOWEST: usize = 10;

/// A slow op with what made it.
#[derive(Clone, Debug)]
pub(crate) struct SlowSample {
    /// Its end, since the engine's begin.
    pub(crate) t_ns: u64,
    pub(crate) user: u32,
    pub(crate) target: u16,
    pub(crate) transaction: u16,
    pub(crate) op: u8,
    pub(crate) outcome: u8,
    pub(crate) service_ns: u64,
    pub(crate) path: Vec<u8>,
}

#[derive(Default)]
struct Entry {
    service_ns: u64,
    /// Until it has been told.
    news: Option<SlowSample>,
}

/// Slowest first.
type Ranking = Vec<Entry>;

#[derive(Default)]
struct Board {
    target: u16,
    measured: bool,
    rankings: BTreeMap<(u16, u16, u8), Ranking>,
}

/// All rankings, and for the users' threads a floor for each (transaction, op) of the running segment.
pub(crate) struct SlowBoard {
    floors: Vec<AtomicU64>,
    board: Mutex<Board>,
}

impl SlowBoard {
    pub(crate) fn new(transactions: usize) -> Self {
        let floors = (0..transactions * KINDS)
            .map(|_| AtomicU64::new(0))
            .collect();
        Self {
            floors,
            board: Mutex::new(Board {
                measured: true,
                ..Board::default()
            }),
        }
    }

    pub(crate) fn floors(&self) -> &[AtomicU64] {
        &self.floors
    }

    fn floor_of(&self, transaction: u16, op: u8) -> Option<&AtomicU64> {
        self.floors
            .get(usize::from(transaction) * KINDS + usize::from(op))
    }

    /// Ops up to this need not be kept.
    #[inline]
    pub(crate) fn floor(&self, transaction: u16, op: u8) -> u64 {
        self.floor_of(transaction, op)
            .map_or(u64::MAX, |floor| floor.load(Ordering::Relaxed))
    }

    /// Set the floors of a segment: nothing is slow while warming up.
    pub(crate) fn enter(&self, segment: Segment) {
        let mut board = hold(&self.board);
        board.target = segment.target;
        board.measured = segment.phase == Phase::Measured;
        let floor = if board.measured { 0 } else { u64::MAX };
        self.floors
            .iter()
            .for_each(|place| place.store(floor, Ordering::Relaxed));
        if !board.measured {
            return;
        }
        for ((target, transaction, op), ranking) in &board.rankings {
            if *target == segment.target {
                self.raise(*transaction, *op, ranking);
            }
        }
    }

    fn raise(&self, transaction: u16, op: u8, ranking: &Ranking) {
        let last = ranking.get(SLOWEST - 1);
        if let (Some(floor), Some(last)) = (self.floor_of(transaction, op), last) {
            floor.store(last.service_ns, Ordering::Relaxed);
        }
    }

    /// Rank a sample.
    pub(crate) fn keep(&self, sample: SlowSample) {
        let mut board = hold(&self.board);
        if !board.measured {
            return;
        }
        let (transaction, op, service_ns) = (sample.transaction, sample.op, sample.service_ns);
        let of_segment = sample.target == board.target;
        let place = (sample.target, transaction, op);
        let ranking = board.rankings.entry(place).or_default();
        let place = ranking.partition_point(|entry| entry.service_ns >= service_ns);
        let news = Some(sample);
        ranking.insert(place, Entry { service_ns, news });
        ranking.truncate(SLOWEST);
        if of_segment {
            self.raise(transaction, op, ranking);
        }
    }

    /// Tell of every sample that has entered since the last time and is still there.
    pub(crate) fn tell(&self, mut listen: impl FnMut(&SlowSample)) {
        let mut board = hold(&self.board);
        let entries = board.rankings.values_mut().flatten();
        entries
            .filter_map(|entry| entry.news.take())
            .for_each(|sample| listen(&sample));
    }
}
