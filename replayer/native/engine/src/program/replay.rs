//! Traces of a plan: their place below the run's folder, and the replay programs that its steps play.

use crate::document::{refused, text};
use crate::error::{Error, Result};
use crate::path::plain_path;
use crate::program::{Dataset, Program, Replay, Step};
use crate::replay::compile::{self, Contended, Source};
use crate::replay::program::{Lane, ReplayProgram};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::sync::{Arc, OnceLock};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedTrace {
    #[serde(deserialize_with = "text")]
    pub(crate) name: String,
    /// Its top, below the run's folder.
    #[serde(deserialize_with = "plain_path")]
    pub(crate) directory: String,
    /// Of its trace.json.
    #[serde(deserialize_with = "sha256")]
    pub(crate) sha256: String,
}

fn sha256<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    let sum = text(deserializer)?;
    let fits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if sum.len() != 64 || !sum.bytes().all(fits) {
        let what = "64 hexadecimal digits in lower case";
        return Err(D::Error::custom(refused(what, &sum)));
    }
    Ok(sum)
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReplayPace {
    /// No event waits for a time.
    Asap,
    /// Each event comes its think time after the one before it.
    Closed,
    /// Each event comes at its time since the begin of the performance.
    Timed,
}

/// Who plays the traces of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Audience {
    pub(crate) users: u32,
    pub(crate) performances: Performances,
}

/// How often a trace is played in a segment, by all users together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Performances {
    /// It has the recorded names.
    One,
    /// All but the first have names of their own.
    Many,
}

impl Program {
    /// Who plays its traces: a plan with other steps beside a replay is taken for one that plays often.
    pub(crate) fn audience(&self) -> Audience {
        let once = self.users == 1 && self.transactions_per_user == Some(1);
        let alone = match &*self.transactions {
            [only] => matches!(&*only.steps, [Step::Replay(_)]),
            _ => false,
        };
        Audience {
            users: self.users,
            performances: if once && alone {
                Performances::One
            } else {
                Performances::Many
            },
        }
    }
}

const ONCE: &str = "replay the whole trace once with one user: -u 1 --loops 1, without --requests";

/// The replay programs that a step draws from: none until they are compiled.
#[derive(Debug, Default)]
struct ProgramGroup {
    trace: u16,
    /// The requests that are drawn from; `None`: the whole trace is one replay program.
    label: Option<String>,
    replay_programs: OnceLock<std::result::Result<Box<[Arc<ReplayProgram>]>, String>>,
}

impl ProgramGroup {
    fn replay_programs(&self) -> &[Arc<ReplayProgram>] {
        match self.replay_programs.get() {
            Some(Ok(replay_programs)) => replay_programs,
            _ => &[],
        }
    }
}

/// What the replay programs of a plan need at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) lanes: Lane,
    pub(crate) read_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Replays {
    pub(crate) traces: Vec<NamedTrace>,
    groups: Vec<ProgramGroup>,
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

    /// Note that a step plays a trace, or the requests of a label.
    pub(crate) fn note(&mut self, trace: u16, label: Option<&str>) {
        if self.group(trace, label).is_none() {
            self.groups.push(ProgramGroup {
                trace,
                label: label.map(str::to_owned),
                replay_programs: OnceLock::new(),
            });
        }
    }

    fn group(&self, trace: u16, label: Option<&str>) -> Option<&ProgramGroup> {
        let mut groups = self.groups.iter();
        groups.find(|group| group.trace == trace && group.label.as_deref() == label)
    }

    /// The replay programs that a step draws from: none until they are compiled.
    pub(crate) fn replay_programs(&self, step: &Replay) -> &[Arc<ReplayProgram>] {
        let group = self.group(step.trace, step.request.as_ref().map(|label| &*label.0));
        group.map_or(&[], ProgramGroup::replay_programs)
    }

    /// The same of replay programs that are made already.
    #[cfg(test)]
    pub(crate) fn made(label: &str, replay_programs: Vec<Arc<ReplayProgram>>) -> Replays {
        Replays {
            groups: vec![ProgramGroup {
                trace: 0,
                label: Some(label.to_owned()),
                replay_programs: OnceLock::from(Ok(replay_programs.into())),
            }],
            ..Replays::default()
        }
    }

    /// Open the folders of all traces, in the order of their names.
    pub(crate) fn open(&mut self, folders: &[String], audience: Audience) -> Result<()> {
        if folders.len() != self.traces.len() {
            return Err(Error::value(format!(
                "plan: traces: needs the folders of {} traces, got {}",
                self.traces.len(),
                folders.len()
            )));
        }
        for (number, (trace, folder)) in self.traces.iter().zip(folders).enumerate() {
            let fault = |message| Error::value(format!("plan: traces[{number}]: {message}"));
            let contended = self.contended(u16::try_from(number).unwrap_or(u16::MAX), audience);
            let source = Source::open(folder, &trace.directory, &trace.sha256, contended);
            let source = source.map_err(fault)?;
            if audience.performances == Performances::Many {
                let unfit = |message| Error::hinted(format!("{folder}: {message}"), ONCE);
                source.path_map.check_names().map_err(unfit)?;
            }
            self.sources.push(source.shared_by(audience.users));
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

    /// Who has the contended files of a trace. A request that is played apart goes on with what those before it left.
    fn contended(&self, trace: u16, audience: Audience) -> Contended {
        let is_alone = audience.users == 1 && audience.performances == Performances::Many;
        if is_alone && self.plays_only_whole(trace) {
            Contended::Own
        } else {
            Contended::Shared
        }
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

    /// Make the replay programs of a group, if that is not done yet.
    fn compile<'g>(&self, group: &'g ProgramGroup) -> Result<&'g [Arc<ReplayProgram>]> {
        let made = group.replay_programs.get_or_init(|| {
            let source = self.sources.get(usize::from(group.trace));
            let source = source.ok_or_else(|| "its folder was not given".to_owned())?;
            let laid_out = self.plays_only_whole(group.trace);
            let replay_programs = match &group.label {
                None => vec![compile::compile_whole(source, laid_out)?],
                Some(label) => compile::compile_requests(source, label)?,
            };
            Ok(replay_programs.into_iter().map(Arc::new).collect())
        });
        match made {
            Ok(replay_programs) => Ok(replay_programs),
            Err(message) => {
                let message = format!("plan: traces[{}]: {message}", group.trace);
                Err(Error::value(message))
            }
        }
    }

    /// Make all replay programs. Returns the most that any of them needs.
    pub(crate) fn needs(&self) -> Result<Needs> {
        let mut needs = Needs::default();
        for group in &self.groups {
            for replay_program in self.compile(group)? {
                needs.lanes = needs.lanes.max(replay_program.lanes);
                needs.read_bytes = needs.read_bytes.max(replay_program.read_bytes);
            }
        }
        Ok(needs)
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
