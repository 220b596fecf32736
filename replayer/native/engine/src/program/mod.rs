//! A plan in the form that threads run: everything resolved, nothing left to look up by name.
//! Made by `plan`; read by the interpreter, the pacers and the layout; never changed.

mod call;
mod dataset;
pub(crate) mod replay;
mod step;

pub(crate) use call::{
    AttributeName, Expect, LinkTarget, LockKind, Mode, Mtime, OPEN_FLAGS, Owner, OwnerId, Pieces,
    Planned, SLOTS, SlotId, StepCall, Timed, open_flags,
};
pub(crate) use dataset::{Content, Dataset, Entry, EntryKind, Own, Scope};
pub(crate) use replay::{NamedTrace, ReplayPace, Replays};
pub(crate) use step::{Await, Each, Part, Pipeline, Replay, STAGES, SignalId, Step, Until};

use crate::clock::epoch_ns;
use crate::document::{LARGEST, Number, integer, refused, tagged, text};
use crate::error::Result;
use crate::rng::{GOLDEN, Stream, mix64, scale};
use rustix::path::DecInt;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// A plan of format 1, checked and ready to run.
#[derive(Debug)]
pub struct Program {
    /// What files contain.
    pub(crate) seed: u64,
    /// What users draw from while they run.
    pub(crate) draws: u64,
    pub(crate) users: u32,
    pub(crate) written: Content,
    pub(crate) pool_bytes: u64,
    /// Data say whose they are, and reads are checked.
    pub(crate) verify: Option<Identity>,
    pub(crate) tables: Vec<Box<[u64]>>,
    pub(crate) datasets: Vec<Dataset>,
    pub(crate) replays: Replays,
    pub(crate) pickers: Vec<Picker>,
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) mix: Weights,
    /// Mixes of the first users: (the first user number after the role, its mix), ascending.
    pub(crate) roles: Vec<(u32, Weights)>,
    pub(crate) pace: Pace,
    /// A segment ends for a user after so many transactions.
    pub(crate) transactions_per_user: Option<u64>,
    /// The largest buffer that a reading op needs.
    pub(crate) read_bytes: u64,
}

impl Program {
    /// The names of its transactions.
    #[must_use]
    pub fn transaction_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.transactions.iter().map(|each| each.name.as_str())
    }

    /// The names of its datasets.
    #[must_use]
    pub fn dataset_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.datasets.iter().map(|each| each.name.as_str())
    }

    /// Threads that its replays need at the same time.
    ///
    /// # Errors
    /// A trace cannot be replayed.
    pub fn replay_lanes(&self) -> Result<u16> {
        Ok(self.replays.needs()?.lanes)
    }

    pub(crate) fn mix_of(&self, user: u32) -> &Weights {
        let role = self.roles.iter().find(|(end, _)| user < *end);
        role.map_or(&self.mix, |(_, mix)| mix)
    }
}

/// Append a number in decimal, without allocating.
pub(crate) fn write_number(number: u64, text: &mut Vec<u8>) {
    text.extend_from_slice(DecInt::new(number).as_bytes());
}

#[derive(Debug)]
pub(crate) struct Picker {
    pub(crate) dataset: u16,
    /// Indices of entries, in the order of ranks.
    pub(crate) candidates: Box<[u32]>,
    pub(crate) rule: PickRule,
}

impl Picker {
    /// The rank at which a user starts when it takes the candidates in order.
    pub(crate) fn first_of(&self, user: u32, users: u32) -> usize {
        let (user, users) = (user as usize, users.max(1) as usize);
        user % users * self.candidates.len() / users
    }
}

#[derive(Debug)]
pub(crate) enum PickRule {
    Segments {
        weights: Weights,
        /// (first rank, count), one a weight.
        spans: Box<[(u64, u64)]>,
    },
    Sequential,
    Own,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transaction {
    #[serde(deserialize_with = "text")]
    pub(crate) name: String,
    pub(crate) steps: Steps,
}

pub(crate) type Steps = Box<[Step]>;

/// Cumulative weights.
#[derive(Clone, Debug)]
pub(crate) struct Weights(pub(crate) Box<[u64]>);

impl Weights {
    pub(crate) fn of(
        weights: impl IntoIterator<Item = u64>,
    ) -> std::result::Result<Weights, String> {
        let mut sum = 0_u64;
        let mut cumulative = Vec::new();
        for weight in weights {
            sum = sum.saturating_add(weight);
            cumulative.push(sum);
        }
        if sum == 0 || sum == u64::MAX {
            return Err(format!(
                "the sum of the weights must be from 1 to 2^64 - 2, got {sum}"
            ));
        }
        Ok(Weights(cumulative.into_boxed_slice()))
    }

    /// Draw an index: the first whose cumulative weight is above the draw.
    #[inline]
    pub(crate) fn pick(&self, stream: &mut Stream) -> usize {
        let drawn = stream.below(self.0.last().copied().unwrap_or(0));
        if self.0.len() == 1 {
            return 0;
        }
        self.0.partition_point(|cumulative| *cumulative <= drawn)
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Draw {
    Const(#[serde(deserialize_with = "integer::<_, _, 0, LARGEST>")] u64),
    /// low, and how many values there are (0: all 2^64).
    #[serde(deserialize_with = "uniform")]
    Uniform(u64, u64),
    Table(u16),
    SizeOf(#[serde(deserialize_with = "integer::<_, _, 0, { SLOTS as u64 - 1 }>")] u8),
}

fn uniform<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<(u64, u64), D::Error> {
    let (Number(low), Number(high)) = Deserialize::deserialize(deserializer)?;
    if high < low {
        return Err(D::Error::custom(refused(
            "a low and a high number",
            &[low, high],
        )));
    }
    Ok((low, high - low + 1))
}

impl Draw {
    /// The value that a stream gives; `size_of` looks up the entry bound to a slot.
    #[inline]
    pub(crate) fn value(
        self,
        tables: &[Box<[u64]>],
        stream: &mut Stream,
        size_of: impl Fn(u8) -> u64,
    ) -> u64 {
        match self {
            Draw::Const(value) => value,
            Draw::Uniform(_, 0) => stream.next(),
            Draw::Uniform(low, count) => low + stream.below(count),
            Draw::Table(index) => {
                let table = tables
                    .get(usize::from(index))
                    .map_or(&[][..], |table| table);
                let rank = scale(stream.next(), table.len() as u64);
                let rank = usize::try_from(rank).unwrap_or(0);
                table.get(rank).copied().unwrap_or(0)
            }
            Draw::SizeOf(slot) => size_of(slot),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    Closed(Draw),
    Every(Draw),
    Arrivals(Draw),
}

impl Pace {
    pub(crate) fn draw(self) -> Draw {
        match self {
            Pace::Closed(draw) | Pace::Every(draw) | Pace::Arrivals(draw) => draw,
        }
    }
}

impl<'de> Deserialize<'de> for Pace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Pace, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        enum Document {
            Closed { think: Draw },
            Every { period: Draw },
            Arrivals { gap: Draw },
        }

        let pace = match tagged("kind", deserializer)? {
            Document::Closed { think } => Pace::Closed(think),
            Document::Every { period } => Pace::Every(period),
            Document::Arrivals { gap } => Pace::Arrivals(gap),
        };
        match pace.draw() {
            Draw::SizeOf(_) => Err(D::Error::custom("a size of an entry is no time")),
            _ => Ok(pace),
        }
    }
}

/// Chosen: keeps these numbers apart from others of the same seed.
pub(crate) const SALT: u64 = 0x7E57_5741_4D50_C311;

/// How the files of a run are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    Paths,
    /// By the last component: directories may be moved, or have several names.
    Names,
}

/// Whose data they are: drawn anew for each run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) run: u32,
    pub(crate) naming: Naming,
}

impl Identity {
    /// The same of a run that is told apart from all others.
    pub(crate) fn drawn(self) -> Identity {
        let now = epoch_ns() ^ u64::from(std::process::id()).rotate_left(32);
        let run = file_of(mix64(now));
        Identity { run, ..self }
    }

    /// The number of a file below the run's folder.
    pub(crate) fn key(self, path: &[u8]) -> u64 {
        let name = match self.naming {
            Naming::Paths => path,
            Naming::Names => path.rsplit(|byte| *byte == b'/').next().unwrap_or_default(),
        };
        name.chunks(8).fold(SALT, |sum, word| {
            let mut bytes = [0; 8];
            bytes
                .iter_mut()
                .zip(word)
                .for_each(|(to, from)| *to = *from);
            mix64(sum.wrapping_add(GOLDEN) ^ u64::from_le_bytes(bytes))
        })
    }
}

/// The part of a key that stamps bear.
pub(crate) fn file_of(key: u64) -> u32 {
    u32::try_from(key >> 32).unwrap_or(0)
}
