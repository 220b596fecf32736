//! What verifying has found, counted over all users.

use crate::ops;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a user has found since it was last told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) reads: u64,
    pub(crate) verified: u64,
    pub(crate) unverified: u64,
    /// Bytes that somebody wrote while they were read.
    pub(crate) mixed: u64,
    /// Blocks that are not as they should be, a number each kind.
    pub(crate) blocks: [u64; KINDS],
}

impl Count {
    /// A block is not as it should be.
    pub(super) fn block(&mut self, kind: Violation) {
        if let Some(number) = self.blocks.get_mut(kind as usize) {
            *number += 1;
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    reads: AtomicU64,
    verified: AtomicU64,
    unverified: AtomicU64,
    mixed: AtomicU64,
    ns: AtomicU64,
    blocks: [AtomicU64; KINDS],
}

impl Tally {
    /// Add what a user has found, and the time that it took.
    pub(crate) fn add(&self, count: &Count, ns: u64) {
        let sums = [
            (&self.reads, count.reads),
            (&self.verified, count.verified),
            (&self.unverified, count.unverified),
            (&self.mixed, count.mixed),
            (&self.ns, ns),
        ];
        let blocks = self.blocks.iter().zip(count.blocks);
        for (sum, more) in sums.into_iter().chain(blocks) {
            sum.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(super) fn sums(&self) -> Value {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        let blocks: Map<String, Value> = Violation::ALL
            .iter()
            .zip(&self.blocks)
            .map(|(kind, sum)| (kind.name().to_owned(), json!(read(sum))))
            .collect();
        json!({
            "reads": read(&self.reads), "verified_bytes": read(&self.verified),
            "unverified_bytes": read(&self.unverified), "mixed_bytes": read(&self.mixed),
            "ns": read(&self.ns), "blocks": blocks,
        })
    }
}

/// How many kinds of violations there are.
pub(crate) const KINDS: usize = 4;

/// What can be wrong with data, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// Part of a write is there, part of it is not.
    Torn,
    /// Data of another file, another place or another run.
    Swapped,
    /// Nothing where something was written, or laid out.
    Lost,
    /// What was there before the last write.
    Stale,
}

impl Violation {
    pub(crate) const ALL: [Violation; KINDS] = [
        Violation::Torn,
        Violation::Swapped,
        Violation::Lost,
        Violation::Stale,
    ];

    /// The outcome of an op that finds it.
    pub(crate) fn outcome(self) -> u8 {
        match self {
            Violation::Torn => ops::TORN,
            Violation::Swapped => ops::SWAPPED,
            Violation::Lost => ops::LOST,
            Violation::Stale => ops::STALE,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        ops::outcome_name(self.outcome())
    }
}
