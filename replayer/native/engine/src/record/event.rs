//! Events: what is worth a line of its own in events.jsonl.

use crate::ops::{op_name, outcome_name};
use crate::record::model::{Phase, Segment};
use crate::record::names::Names;
pub(crate) use crate::record::slow::SlowSample;
use crate::replay::play::Example;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Errors of one kind that get a line each, in the warm-ups and in the measured phases (contract).
const FIRST_ERRORS: u32 = 20;
/// Bytes of lines that wait for the next cut; beyond them lines are counted only (chosen).
const WAITING_BYTES: usize = 4 << 20;

/// What happened to an op of a user, and when: nanoseconds since the engine's begin.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An unexpected outcome; the first 20 of each kind are written.
    Error {
        t_ns: u64,
        user: u32,
        kind: ErrorKind,
        path: Vec<u8>,
    },
    /// It has been in the kernel for longer than the limit.
    Stall(u64, StuckData),
    /// It has come back after that.
    StallOver(u64, StuckData),
    /// Its user was given up on at the end of a segment.
    Abandoned(u64, StuckData),
    /// An event of a replay did not end as recorded.
    Divergence(Box<Divergence>),
    /// From this time on no transaction of a segment began; so many had been due before.
    Ending {
        t_ns: u64,
        target: u16,
        round: u16,
        unbegun: u64,
    },
    /// Something of a replay that is not as it should be.
    Broken {
        t_ns: u64,
        user: u32,
        message: String,
    },
}

/// A result that differs from the recorded one.
#[derive(Clone, Debug)]
pub(crate) struct Divergence {
    pub(crate) t_ns: u64,
    pub(crate) transaction: u16,
    pub(crate) example: Example,
}

/// An op that is in the kernel for long.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the stub of the Python module says it")]
pub struct StuckData {
    pub user: u32,
    pub target: u16,
    pub op: &'static str,
    pub path: Vec<u8>,
    pub age_ns: u64,
}

/// Which errors are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ErrorKind {
    pub(crate) target: u16,
    pub(crate) transaction: u16,
    pub(crate) op: u8,
    pub(crate) outcome: u8,
}

/// Lines on their way to events.jsonl.
#[derive(Default)]
pub(crate) struct Journal {
    lines: String,
    dropped: u64,
    warms_up: bool,
    /// How many of a kind have a line, outside of measured phases (true) and in the measured phases.
    errors: BTreeMap<(bool, ErrorKind), u32>,
}

impl Journal {
    /// Whether an error of this kind would get a line.
    pub(crate) fn error_wanted(&self, kind: ErrorKind) -> bool {
        self.errors
            .get(&(self.warms_up, kind))
            .is_none_or(|count| *count < FIRST_ERRORS)
    }

    pub(crate) fn log(&mut self, event: &Event, names: &Names) {
        match event {
            Event::Error {
                t_ns,
                user,
                kind,
                path,
            } => {
                let count = self.errors.entry((self.warms_up, *kind)).or_default();
                if *count == FIRST_ERRORS {
                    return;
                }
                *count += 1;
                let call = call(*user, kind.target, op_name(kind.op), path);
                let transaction = quoted(&names.name(kind.transaction));
                let outcome = outcome_name(kind.outcome);
                let rest = format!(r#"{call},"transaction":{transaction},"outcome":"{outcome}""#);
                self.line(*t_ns, "error", &rest);
            }
            Event::Stall(t_ns, stuck) => self.stuck(*t_ns, "stall", stuck),
            Event::StallOver(t_ns, stuck) => self.stuck(*t_ns, "stall_over", stuck),
            Event::Abandoned(t_ns, stuck) => self.stuck(*t_ns, "abandoned", stuck),
            Event::Divergence(divergence) => self.divergence(divergence, names),
            Event::Ending {
                t_ns,
                target,
                round,
                unbegun,
            } => {
                let rest = format!(r#""target":{target},"round":{round},"unbegun":{unbegun}"#);
                self.line(*t_ns, "ending", &rest);
            }
            Event::Broken {
                t_ns,
                user,
                message,
            } => {
                let message = quoted(message);
                let rest = format!(r#""user":{user},"message":{message}"#);
                self.line(*t_ns, "warning", &rest);
            }
        }
    }

    fn stuck(&mut self, t_ns: u64, kind: &str, stuck: &StuckData) {
        let call = call(stuck.user, stuck.target, stuck.op, &stuck.path);
        let rest = format!(r#"{call},"age_ns":{}"#, stuck.age_ns);
        self.line(t_ns, kind, &rest);
    }

    fn divergence(&mut self, divergence: &Divergence, names: &Names) {
        let transaction = quoted(&names.name(divergence.transaction));
        let example = divergence.example.json().to_string();
        // Its fields without the braces.
        let fields = example.trim_start_matches('{').trim_end_matches('}');
        let rest = format!(r#""transaction":{transaction},{fields}"#);
        self.line(divergence.t_ns, "divergence", &rest);
    }

    /// Add the line of a slow op.
    pub(crate) fn slow(&mut self, sample: &SlowSample, names: &Names) {
        let op = op_name(sample.op);
        let call = call(sample.user, sample.target, op, &sample.path);
        let (outcome, service_ns) = (outcome_name(sample.outcome), sample.service_ns);
        let transaction = quoted(&names.name(sample.transaction));
        let rest = format!(
            r#"{call},"transaction":{transaction},"outcome":"{outcome}","service_ns":{service_ns}"#
        );
        self.line(sample.t_ns, "slow", &rest);
    }

    /// Add the line of a boundary: `warm-up`, `measured`, `alone`, or `idle` when the segment is over.
    pub(crate) fn phase(&mut self, t_ns: u64, segment: Segment) {
        self.warms_up = segment.phase != Phase::Measured;
        let phase = if segment.open {
            segment.phase.name()
        } else {
            "idle"
        };
        let Segment { target, round, .. } = segment;
        let rest = format!(r#""target":{target},"round":{round},"phase":"{phase}""#);
        self.line(t_ns, "phase", &rest);
    }

    /// Add the line of a file that could not be written.
    pub(crate) fn write_failed(&mut self, t_ns: u64, file: &str, errno: i32) {
        let reason = std::io::Error::from_raw_os_error(errno);
        let message = Value::from(format!("the record is incomplete: {file}: {reason}"));
        self.line(
            t_ns,
            "warning",
            &format!(r#""message":{message},"errno":{errno}"#),
        );
    }

    fn line(&mut self, t_ns: u64, kind: &str, rest: &str) {
        if self.lines.len() + rest.len() > WAITING_BYTES {
            self.dropped += 1;
            return;
        }
        let (seconds, micros) = (t_ns / 1_000_000_000, t_ns / 1000 % 1_000_000);
        // Writing to a String does not fail.
        let _ = writeln!(
            self.lines,
            r#"{{"t_s":{seconds}.{micros:06},"kind":"{kind}",{rest}}}"#
        );
    }

    /// The lines that wait.
    pub(crate) fn take(&mut self) -> String {
        let mut lines = std::mem::take(&mut self.lines);
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let _ = writeln!(lines, r#"{{"kind":"dropped","count":{dropped}}}"#);
        }
        lines
    }
}

fn quoted(text: &str) -> Value {
    Value::from(text)
}

/// Who called what on which path.
fn call(user: u32, target: u16, op: &str, path: &[u8]) -> String {
    let path = quoted(&String::from_utf8_lossy(path));
    format!(r#""user":{user},"target":{target},"op":"{op}","path":{path}"#)
}
