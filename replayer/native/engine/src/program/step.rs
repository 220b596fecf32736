//! Steps: the instructions that an interpreter runs.

use super::replay::ReplayPace;
use super::{Draw, Expect, SlotId, Steps, Timed, Weights};
use crate::document::{
    Object, Text, Weight, given, integer, nullable, read_on, tagged, text, word,
};
use crate::signals::SIGNALS;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use std::sync::Arc;

/// Its discriminant stands apart: found in a field's unused values, it would take five instructions more to read, twice an op.
#[derive(Debug)]
#[repr(u8)]
pub(crate) enum Step {
    Pick {
        slot: u8,
        picker: u16,
    },
    Name {
        slot: u8,
        dataset: u16,
        parts: Box<[Part]>,
    },
    Root {
        slot: u8,
        dataset: u16,
    },
    Repeat {
        times: Draw,
        steps: Steps,
    },
    Choose {
        weights: Weights,
        branches: Box<[Steps]>,
    },
    Each(Box<Each>),
    Pipeline(Arc<Pipeline>),
    Think(Draw),
    Call(Box<Timed>),
    Replay(Box<Replay>),
    Signal(SignalId),
    Await(Box<Await>),
    Until(Box<Until>),
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Step, D::Error> {
        let step = match tagged("do", deserializer)? {
            Document::Bind(bind) => bind.step(),
            Document::Repeat { times, steps } => Ok(Step::Repeat { times, steps }),
            Document::Choose { branches } => {
                let (shares, branches): (Vec<Weight>, Vec<Steps>) = branches.into_iter().unzip();
                Weights::of(shares.iter().map(|share| share.0)).map(|weights| Step::Choose {
                    weights,
                    branches: branches.into(),
                })
            }
            Document::Each(each) => Ok(Step::Each(Box::new(each))),
            Document::Pipeline { steps, batches } => {
                Pipeline::of(steps, batches).map(|pipeline| Step::Pipeline(Arc::new(pipeline)))
            }
            Document::Think { time } => Ok(Step::Think(time)),
            Document::Call(timed) => Ok(Step::Call(Box::new(timed))),
            Document::Replay(replay) => Ok(Step::Replay(Box::new(replay))),
            Document::Signal { signal } => Ok(Step::Signal(signal)),
            Document::Await(step) => Ok(Step::Await(Box::new(step))),
            Document::Until(step) => Ok(Step::Until(Box::new(step))),
        };
        step.map_err(D::Error::custom)
    }
}

/// A step as plans write it, by its key `do`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Document {
    Bind(Bind),
    Repeat {
        times: Draw,
        steps: Steps,
    },
    Choose {
        branches: Vec<(Weight, Steps)>,
    },
    Each(Each),
    Pipeline {
        steps: Vec<Step>,
        #[serde(default, deserialize_with = "given")]
        batches: Option<Vec<BatchSize>>,
    },
    Think {
        time: Draw,
    },
    Call(Timed),
    Replay(Replay),
    Signal {
        signal: SignalId,
    },
    Await(Await),
    Until(Until),
}

/// What a slot is bound to: one of three.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bind {
    slot: SlotId,
    #[serde(default, deserialize_with = "given")]
    pick: Option<u16>,
    #[serde(default, deserialize_with = "given")]
    name: Option<Object<Name>>,
    #[serde(default, deserialize_with = "given")]
    dataset: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    dataset: u16,
    parts: Box<[Part]>,
}

impl Bind {
    fn step(self) -> Result<Step, String> {
        let slot = self.slot.0;
        match (self.pick, self.name, self.dataset) {
            (Some(picker), None, None) => Ok(Step::Pick { slot, picker }),
            (None, Some(Object(Name { dataset, parts })), None) => Ok(Step::Name {
                slot,
                dataset,
                parts,
            }),
            (None, None, Some(dataset)) => Ok(Step::Root { slot, dataset }),
            _ => Err("must have one of `pick`, `name` and `dataset`".to_owned()),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct SignalId(
    #[serde(deserialize_with = "integer::<_, _, 0, { SIGNALS as u64 - 1 }>")] pub(crate) u8,
);

/// Waiting for a signal of another user.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Await {
    pub(crate) signal: SignalId,
    pub(crate) limit: Draw,
    pub(crate) expect: Expect,
}

/// Steps that are repeated until their calls come out as they should.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Until {
    pub(crate) steps: Steps,
    pub(crate) every: Draw,
    pub(crate) limit: Draw,
    /// The signal from which time counts; otherwise from the step's begin.
    #[serde(deserialize_with = "nullable")]
    pub(crate) since: Option<SignalId>,
    pub(crate) expect: Expect,
}

/// Times as fast, in percent, at most (as plan format 1 has it).
const MOST_SPEED: u64 = 1_000_000;

/// A performance of a trace or of one request of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replay {
    pub(crate) trace: u16,
    /// One of the requests of this label, drawn; else the whole trace.
    #[serde(deserialize_with = "nullable")]
    pub(crate) request: Option<Text>,
    #[serde(deserialize_with = "word")]
    pub(crate) pace: ReplayPace,
    /// 100: as recorded.
    #[serde(deserialize_with = "integer::<_, _, 1, MOST_SPEED>")]
    pub(crate) speed_percent: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Each {
    pub(crate) dataset: u16,
    pub(crate) slot: SlotId,
    pub(crate) reverse: bool,
    #[serde(rename = "f")]
    pub(crate) file: Steps,
    #[serde(rename = "d")]
    pub(crate) directory: Steps,
    #[serde(rename = "l")]
    pub(crate) link: Steps,
}

impl Each {
    fn blocks(&self) -> impl Iterator<Item = &[Step]> {
        [&self.file, &self.directory, &self.link]
            .into_iter()
            .map(AsRef::as_ref)
    }
}

impl Step {
    /// The lists of steps inside it.
    pub(crate) fn blocks(&self) -> Vec<&[Step]> {
        match self {
            Step::Repeat { steps, .. } => vec![steps],
            Step::Choose { branches, .. } => branches.iter().map(AsRef::as_ref).collect(),
            Step::Each(each) => each.blocks().collect(),
            Step::Pipeline(pipeline) => pipeline.stages.iter().flat_map(Each::blocks).collect(),
            Step::Until(until) => vec![&until.steps],
            _ => Vec::new(),
        }
    }
}

/// A pipeline has at most so many stages.
pub(crate) const STAGES: u64 = 8;

/// Stages that go through the same entries in the same order, side by side: each begins with an entry once the one before it has done
/// with that.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) stages: Box<[Each]>,
    /// How many entries each stage but the last hands on at a time, 1 or more.
    pub(crate) batches: Box<[u64]>,
}

/// Entries that a stage hands on at a time (chosen: more than a buffer between two programs holds).
#[derive(Clone, Copy, Deserialize)]
struct BatchSize(#[serde(deserialize_with = "integer::<_, _, 1, 1_000_000>")] u64);

impl Pipeline {
    fn of(steps: Vec<Step>, batches: Option<Vec<BatchSize>>) -> Result<Pipeline, String> {
        let stages = steps.into_iter().map(stage);
        let stages = stages.collect::<Result<Box<[Each]>, _>>()?;
        let Some(first) = stages
            .first()
            .filter(|_| (2..=STAGES).contains(&(stages.len() as u64)))
        else {
            return Err(format!("a pipeline must have 2 to {STAGES} stages"));
        };
        let way = |each: &Each| (each.dataset, each.reverse);
        if stages.iter().any(|stage| way(stage) != way(first)) {
            return Err("stages must go through one dataset in one order".to_owned());
        }
        let batches: Box<[u64]> = match batches {
            Some(batches) => batches.iter().map(|batch| batch.0).collect(),
            None => vec![1; stages.len() - 1].into(),
        };
        if batches.len() + 1 != stages.len() {
            return Err("every stage but the last must have a batch".to_owned());
        }
        Ok(Pipeline { stages, batches })
    }
}

fn stage(step: Step) -> Result<Each, String> {
    match step {
        Step::Each(_) if step.needs_helpers() => {
            Err("a stage may hold neither replays nor other pipelines".to_owned())
        }
        Step::Each(each) => Ok(*each),
        _ => Err("a stage must be an each step".to_owned()),
    }
}

impl Step {
    /// Whether it needs other threads of its user. Nesting is bounded by the JSON parser.
    fn needs_helpers(&self) -> bool {
        let is_itself = matches!(self, Step::Replay(_) | Step::Pipeline(_));
        is_itself || self.blocks().into_iter().flatten().any(Step::needs_helpers)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    User,
    Round,
    Seq,
    Next,
    Number(Draw),
    Hex(u8),
    PathOf(u8),
    NameOf(u8),
}

impl Part {
    pub(crate) fn draw(&self) -> Option<Draw> {
        match self {
            Part::Number(draw) => Some(*draw),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Part, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Document {
            User(bool),
            Round(bool),
            Seq(bool),
            Next(bool),
            Draw(Draw),
            Hex(#[serde(deserialize_with = "integer::<_, _, 1, 16>")] u8),
            PathOf(SlotId),
            NameOf(SlotId),
        }

        let value = Value::deserialize(deserializer)?;
        if value.is_string() {
            return text(value).map(Part::Text).map_err(D::Error::custom);
        }
        Ok(match read_on(value)? {
            Document::User(true) => Part::User,
            Document::Round(true) => Part::Round,
            Document::Seq(true) => Part::Seq,
            Document::Next(true) => Part::Next,
            Document::User(_) | Document::Round(_) | Document::Seq(_) | Document::Next(_) => {
                return Err(D::Error::custom("must be true, got false"));
            }
            Document::Draw(draw) => Part::Number(draw),
            Document::Hex(digits) => Part::Hex(digits),
            Document::PathOf(slot) => Part::PathOf(slot.0),
            Document::NameOf(slot) => Part::NameOf(slot.0),
        })
    }
}
