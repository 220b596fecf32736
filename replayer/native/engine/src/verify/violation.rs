//! What can be wrong with data.

use crate::ops;

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
