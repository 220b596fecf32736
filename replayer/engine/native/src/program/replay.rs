//! Traces of a plan: their place below the run's folder, and the reels that its steps play.

use crate::error::{Error, Result};
use crate::program::Dataset;
use crate::replay::compile::{self, Source};
use crate::replay::reel::{Lane, Reel, Slot};
use std::sync::{Arc, OnceLock};

/// A trace that a plan names.
#[derive(Debug)]
pub(crate) struct NamedTrace {
    pub(crate) name: String,
    /// Its top, below the run's folder.
    pub(crate) directory: String,
    /// Of its trace.json.
    pub(crate) sha256: String,
}

/// How a replay takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayPace {
    /// No event waits for a time.
    Asap,
    /// Each event comes its think time after the one before it.
    Closed,
    /// Each event comes at its time since the begin of the performance.
    Timed,
}

/// The reels that a step draws from.
#[derive(Debug)]
pub(crate) struct ReelGroup {
    /// Number of the trace.
    pub(crate) trace: u16,
    /// The requests that are drawn from; `None`: the whole trace is one reel.
    pub(crate) label: Option<String>,
    reels: OnceLock<std::result::Result<Arc<[Arc<Reel>]>, String>>,
}

impl ReelGroup {
    pub(crate) fn new(trace: u16, label: Option<String>) -> ReelGroup {
        ReelGroup {
            trace,
            label,
            reels: OnceLock::new(),
        }
    }
}

/// What the reels of a plan need at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) lanes: Lane,
    pub(crate) slots: Slot,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

/// All that a plan replays.
#[derive(Debug, Default)]
pub(crate) struct Replays {
    pub(crate) traces: Vec<NamedTrace>,
    pub(crate) groups: Vec<ReelGroup>,
    /// Opened traces, in the order of their names.
    sources: Vec<Source>,
    /// What they need below the run's folder.
    pub(crate) datasets: Vec<Dataset>,
}

impl Replays {
    pub(crate) fn of(traces: Vec<NamedTrace>) -> Replays {
        Replays {
            traces,
            ..Replays::default()
        }
    }

    /// The group of a trace and a label, made where there is none yet; `None` when there are too many.
    pub(crate) fn group_of(&mut self, trace: u16, label: Option<&str>) -> Option<u16> {
        let same = |group: &ReelGroup| group.trace == trace && group.label.as_deref() == label;
        let known = self.groups.iter().position(same);
        let number = u16::try_from(known.unwrap_or(self.groups.len())).ok()?;
        if known.is_none() {
            let group = ReelGroup::new(trace, label.map(str::to_owned));
            self.groups.push(group);
        }
        Some(number)
    }

    /// Open the folders of all traces, in the order of their names.
    pub(crate) fn open(&mut self, folders: &[String]) -> Result<()> {
        if folders.len() != self.traces.len() {
            return Err(Error::value(format!(
                "plan: traces: needs the folders of {} traces, got {}",
                self.traces.len(),
                folders.len()
            )));
        }
        for (number, (trace, folder)) in self.traces.iter().zip(folders).enumerate() {
            let fault = |message| Error::value(format!("plan: traces[{number}]: {message}"));
            let source = Source::open(folder, &trace.directory, &trace.sha256).map_err(fault)?;
            self.sources.push(source);
        }
        self.check_labels()?;
        for (number, (trace, source)) in (0_u16..).zip(self.traces.iter().zip(&self.sources)) {
            let whole = self.plays_only_whole(number);
            let laid = compile::datasets(source, (&trace.name, &trace.directory), whole);
            let laid = laid.ok_or_else(|| {
                Error::value(format!("plan: traces[{number}]: its paths exceed 4 GiB"))
            })?;
            self.datasets.extend(laid);
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<()> {
        for group in &self.groups {
            let source = self.sources.get(usize::from(group.trace));
            if let (Some(label), Some(source)) = (&group.label, source) {
                let labels = source.labels().map_err(Error::value)?;
                if !labels.contains(label) {
                    let known: Vec<&str> = labels.iter().map(String::as_str).take(20).collect();
                    return Err(Error::value(format!(
                        "plan: traces[{}]: has no request {label:?}; it has: {}",
                        group.trace,
                        known.join(", ")
                    )));
                }
            }
        }
        Ok(())
    }

    /// Whether every step that plays a trace plays all of it: then its first own entries are known before the run.
    fn plays_only_whole(&self, trace: u16) -> bool {
        let mut groups = self.groups.iter().filter(|group| group.trace == trace);
        groups.all(|group| group.label.is_none())
    }

    pub(crate) fn group(&self, number: u16) -> Option<&ReelGroup> {
        self.groups.get(usize::from(number))
    }

    /// The reels of a group: made when they are asked for the first time.
    pub(crate) fn reels(&self, group: u16) -> Result<Arc<[Arc<Reel>]>> {
        let group = self
            .group(group)
            .ok_or_else(|| Error::state(format!("there is no group {group} of reels")))?;
        let made = group.reels.get_or_init(|| {
            let number = usize::from(group.trace);
            let source = self.sources.get(number);
            let source = source.ok_or_else(|| "its folder was not given".to_owned())?;
            let laid_out = self.plays_only_whole(group.trace);
            let reels = match &group.label {
                None => vec![compile::compile_whole(source, laid_out)?],
                Some(label) => compile::compile_requests(source, label)?,
            };
            Ok(reels.into_iter().map(Arc::new).collect())
        });
        made.clone()
            .map_err(|message| Error::value(format!("plan: traces[{}]: {message}", group.trace)))
    }

    /// The most that any reel needs; makes all of them.
    pub(crate) fn needs(&self) -> Result<Needs> {
        let mut needs = Needs::default();
        for number in 0..self.groups.len() {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            for reel in &*self.reels(number)? {
                needs.lanes = needs.lanes.max(reel.lanes);
                needs.slots = needs.slots.max(reel.slots);
                needs.read_bytes = needs.read_bytes.max(reel.read_bytes);
                needs.write_bytes = needs.write_bytes.max(reel.write_bytes);
            }
        }
        Ok(needs)
    }
}
