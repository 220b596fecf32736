//! Sums over events.

use crate::constants::{F_OFD_SETLK, F_OFD_SETLKW, F_SETLK, F_SETLKW, LOCK_UN};
use crate::tables::schema::Event;
use replayer_ops::{Class, Op, errno_name, numbers};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Paths that an event touches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) first: Option<u32>,
    pub(super) second: Option<u32>,
}

impl Places {
    /// Where an event that writes does so.
    pub(super) fn written(self) -> Option<u32> {
        self.second.or(self.first)
    }
}

/// How often an op came, and what it returned.
#[derive(Debug, Default)]
struct OpTally {
    count: u64,
    errors: BTreeMap<u16, u64>,
    bytes: u64,
}

/// Numbers of a part of a trace.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) events: u64,
    ops: BTreeMap<Op, OpTally>,
    failing_lookups: u64,
    fsyncs: u64,
    locks: u64,
    bytes_read: u64,
    bytes_written: u64,
    /// Paths by request, and whether anything of theirs succeeded.
    places: FxHashMap<(u32, u32), bool>,
}

impl Tally {
    pub(super) fn add(&mut self, event: &Event, places: Places, request: u32) {
        self.events += 1;
        let tally = self.ops.entry(event.op).or_default();
        tally.count += 1;
        if let Some(error) = error(event.result) {
            *tally.errors.entry(error).or_default() += 1;
            let looks = event.op.class() == Class::Look;
            self.failing_lookups += u64::from(looks && error == numbers::ENOENT);
        }
        self.fsyncs += u64::from(matches!(event.op, Op::Fsync | Op::Fdatasync | Op::Syncfs));
        self.locks += u64::from(takes_lock(event));
        let moved = u64::try_from(event.result).unwrap_or(0);
        let (read, written) = direction(event);
        tally.bytes += if read || written { moved } else { 0 };
        self.bytes_read += if read { moved } else { 0 };
        self.bytes_written += if written { moved } else { 0 };
        for path in [places.first, places.second].into_iter().flatten() {
            *self.places.entry((request, path)).or_default() |= event.result >= 0;
        }
    }

    /// Distinct paths, and whether anything of theirs succeeded.
    pub(super) fn touched(&self) -> impl Iterator<Item = (u32, bool)> {
        self.places
            .iter()
            .map(|(&(_, path), &touched)| (path, touched))
    }

    pub(super) fn json(&self) -> Value {
        let mut errors: BTreeMap<&str, u64> = BTreeMap::new();
        for (&number, count) in self.ops.values().flat_map(|tally| &tally.errors) {
            *errors.entry(errno_name(number)).or_default() += count;
        }
        json!({
            "events": self.events,
            "ops": self.ops.iter().map(|(op, tally)| (op.name().to_owned(), tally.json())).collect::<Map<_, _>>(),
            "errors": errors,
            "failing_lookups": self.failing_lookups,
            "fsyncs": self.fsyncs,
            "locks": self.locks,
            "bytes": {"read": self.bytes_read, "written": self.bytes_written},
        })
    }

    /// The mean of each number per request.
    pub(super) fn means(&self, requests: usize, kind: impl Fn(u32) -> Option<char>) -> Value {
        #[allow(clippy::cast_precision_loss, reason = "a mean of counts")]
        let mean = |count: u64| count as f64 / requests.max(1) as f64;
        let of_kind = |wanted: char| {
            let found = self
                .touched()
                .filter(|&(path, touched)| touched && kind(path) == Some(wanted));
            mean(u64::try_from(found.count()).unwrap_or(0))
        };
        let ops = self.ops.iter();
        json!({
            "events": mean(self.events),
            "ops": ops.map(|(op, tally)| (op.name().to_owned(), json!(mean(tally.count)))).collect::<Map<_, _>>(),
            "failing_lookups": mean(self.failing_lookups),
            "fsyncs": mean(self.fsyncs),
            "locks": mean(self.locks),
            "bytes": {"read": mean(self.bytes_read), "written": mean(self.bytes_written)},
            "files": of_kind('f'),
            "directories": of_kind('d'),
        })
    }
}

impl OpTally {
    fn json(&self) -> Value {
        let errors = self.errors.iter();
        json!({
            "count": self.count,
            "errors": errors.map(|(&number, &count)| (errno_name(number).to_owned(), json!(count))).collect::<Map<_, _>>(),
            "bytes": self.bytes,
        })
    }
}

fn error(result: i64) -> Option<u16> {
    let number = result.checked_neg().filter(|&number| number > 0)?;
    Some(u16::try_from(number).unwrap_or(u16::MAX))
}

/// Whether what it returns are bytes that were read below the roots, and bytes that were written there.
const fn direction(event: &Event) -> (bool, bool) {
    match event.op {
        Op::Read | Op::Readv | Op::Pread | Op::Preadv => (true, false),
        Op::Write | Op::Writev | Op::Pwrite | Op::Pwritev => (false, true),
        Op::CopyFileRange | Op::Sendfile | Op::Splice => {
            (event.file.is_some(), event.to_file.is_some())
        }
        _ => (false, false),
    }
}

/// Whether it asks for a lock, and not for its end.
fn takes_lock(event: &Event) -> bool {
    /// `mode` of the op `lock` that lets go (FORMAT.md).
    const UNLOCK: i64 = 2;
    match event.op {
        Op::Flock => event.flags.is_some_and(|flags| flags & LOCK_UN == 0),
        Op::Lock => {
            let asks = [F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW];
            event.flags.is_some_and(|command| asks.contains(&command)) && event.mode != Some(UNLOCK)
        }
        _ => false,
    }
}
