//! What replays of an engine found: counts, divergences, examples. Filled once a lane and performance, told as JSON.

use super::check::{Allowance, Got};
use crate::document::joined;
use crate::lock::hold;
use crate::ops::{op_name, outcome_name};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Divergences that are kept with all that is known of them.
const EXAMPLES: usize = 20;

/// What diverged, but for where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) op: u8,
    /// An outcome code.
    pub(crate) recorded: u8,
    pub(crate) got: Got,
}

/// Counts of one lane's part of a performance.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    pub(crate) compared: u64,
    pub(crate) matched: u64,
    pub(crate) allowed: [u64; Allowance::NAMES.len()],
    /// By reason: few.
    pub(crate) omitted: Vec<(&'static str, u64)>,
    /// Few kinds.
    pub(crate) diverged: Vec<(Kind, u64)>,
    /// From when the lane's last event was due by the recorded clock to its end.
    pub(crate) drift_ns: u64,
}

impl Tally {
    pub(crate) fn omit(&mut self, reason: &'static str) {
        count(&mut self.omitted, reason);
    }

    pub(crate) fn diverge(&mut self, kind: Kind) {
        count(&mut self.diverged, kind);
    }
}

fn count<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K) {
    match counts.iter_mut().find(|(known, _)| *known == key) {
        Some((_, count)) => *count += 1,
        None => counts.push((key, 1)),
    }
}

/// One divergence with all that is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Example {
    pub(crate) target: u16,
    pub(crate) user: u32,
    pub(crate) performance: u64,
    pub(crate) trace: u16,
    pub(crate) row: u64,
    pub(crate) thread: u32,
    pub(crate) path: Vec<u8>,
    pub(crate) kind: Kind,
    /// Numbers, where the call was recorded to go well or went well.
    pub(crate) result_recorded: Option<u64>,
    pub(crate) result_got: Option<u64>,
}

impl Example {
    pub(crate) fn json(&self) -> Value {
        json!({
            "target": self.target, "user": self.user, "performance": self.performance,
            "trace": self.trace, "row": self.row, "thread": self.thread,
            "op": op_name(self.kind.op), "path": String::from_utf8_lossy(&self.path),
            "recorded": outcome_name(self.kind.recorded), "got": self.kind.got.name(),
            "result_recorded": self.result_recorded, "result_got": self.result_got,
        })
    }
}

#[derive(Debug, Default)]
struct Totals {
    performances: u64,
    events: u64,
    compared: u64,
    matched: u64,
    diverged: u64,
    /// The longest of a lane.
    drift_ns: u64,
    allowed: [u64; Allowance::NAMES.len()],
    omitted: BTreeMap<&'static str, u64>,
}

impl Totals {
    fn add(&mut self, tally: &Tally) {
        self.events += tally.events;
        self.compared += tally.compared;
        self.matched += tally.matched;
        self.drift_ns = self.drift_ns.max(tally.drift_ns);
        self.diverged += tally.diverged.iter().map(|(_, count)| count).sum::<u64>();
        for (sum, more) in self.allowed.iter_mut().zip(tally.allowed) {
            *sum += more;
        }
        for (reason, count) in &tally.omitted {
            *self.omitted.entry(reason).or_default() += count;
        }
    }

    fn allowed_json(&self) -> Value {
        let counted = Allowance::NAMES.iter().zip(self.allowed);
        let counted = counted.filter(|(_, count)| *count > 0);
        counted
            .map(|(name, count)| ((*name).to_owned(), Value::from(count)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }

    fn json(&self) -> Value {
        json!({
            "performances": self.performances, "events": self.events, "compared": self.compared,
            "matched": self.matched, "drift_ns": self.drift_ns, "omitted": self.omitted, "allowed": self.allowed_json(),
        })
    }
}

#[derive(Debug, Default)]
struct Book {
    all: Totals,
    targets: BTreeMap<u16, Totals>,
    diverged: BTreeMap<(u16, u16, Kind), u64>,
    examples: Vec<Example>,
    /// Targets that have an example.
    seen: BTreeSet<u16>,
}

impl Book {
    fn each_sum(&mut self, target: u16, add: impl Fn(&mut Totals)) {
        add(&mut self.all);
        add(self.targets.entry(target).or_default());
    }
}

/// Of one engine.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    book: Mutex<Book>,
}

impl Ledger {
    pub(crate) fn count_performance(&self, target: u16) {
        hold(&self.book).each_sum(target, |totals| totals.performances += 1);
    }

    pub(crate) fn add(&self, (target, transaction): (u16, u16), tally: &Tally) {
        let mut book = hold(&self.book);
        book.each_sum(target, |totals| totals.add(tally));
        for (kind, count) in &tally.diverged {
            let key = (target, transaction, *kind);
            *book.diverged.entry(key).or_default() += count;
        }
    }

    /// Keep a divergence if it is the first of its target or one of the first twenty; whether it was kept.
    pub(crate) fn keep(&self, example: &Example) -> bool {
        let mut book = hold(&self.book);
        let is_first = book.seen.insert(example.target);
        let is_kept = is_first || book.examples.len() < EXAMPLES;
        if is_kept {
            book.examples.push(example.clone());
        }
        is_kept
    }

    /// All of it, as the door tells it.
    pub(crate) fn json(&self, transactions: &[impl AsRef<str>]) -> String {
        let book = hold(&self.book);
        let name = |transaction: &u16| {
            transactions
                .get(usize::from(*transaction))
                .map_or("-", AsRef::as_ref)
        };
        let diverged = book
            .diverged
            .iter()
            .map(|((target, transaction, kind), count)| {
                json!({
                    "target": target, "transaction": name(transaction), "op": op_name(kind.op),
                    "recorded": outcome_name(kind.recorded), "got": kind.got.name(), "count": count,
                })
            });
        let targets = book.targets.iter().map(|(target, totals)| {
            let more = json!({"target": target, "diverged": totals.diverged});
            joined(totals.json(), more)
        });
        let examples = book.examples.iter().map(Example::json);
        let lists = json!({
            "diverged": diverged.collect::<Value>(), "examples": examples.collect::<Value>(),
            "targets": targets.collect::<Value>(),
        });
        joined(book.all.json(), lists).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_and_the_first_of_each_target_is_kept() {
        let ledger = Ledger::default();
        let kind = Kind {
            op: 0,
            recorded: 0,
            got: Got::Outcome(2),
        };
        let example = |target| Example {
            target,
            user: 1,
            performance: 2,
            trace: 0,
            row: 3,
            thread: 4,
            path: b"t/a".to_vec(),
            kind,
            result_recorded: Some(7),
            result_got: None,
        };
        let kept = (0..100).filter(|_| ledger.keep(&example(0)));
        assert_eq!(kept.count(), 20);
        assert!(ledger.keep(&example(1)));
        let mut tally = Tally {
            events: 5,
            compared: 4,
            matched: 2,
            drift_ns: 9,
            ..Tally::default()
        };
        tally.diverge(kind);
        tally.diverge(kind);
        tally.omit("special file");
        tally.allowed[Allowance::NfsNames as usize] = 1;
        ledger.add((0, 0), &tally);
        ledger.add((1, 0), &tally);
        let json: Value = serde_json::from_str(&ledger.json(&["front"])).unwrap();
        assert_eq!(json["events"], 10);
        assert_eq!(json["omitted"]["special file"], 2);
        assert_eq!(
            (&json["drift_ns"], &json["matched"]),
            (&Value::from(9), &Value::from(4))
        );
        assert_eq!(json["allowed"], json!({"nfs-names": 2}));
        let first = json!({"target": 0, "transaction": "front", "op": "open", "recorded": "ok",
            "got": "ENOENT", "count": 2});
        assert_eq!(json["diverged"][0], first);
        assert_eq!(json["examples"].as_array().unwrap().len(), 21);
        assert_eq!(json["targets"][1]["matched"], 2);
    }
}
