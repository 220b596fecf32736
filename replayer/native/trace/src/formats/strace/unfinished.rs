//! Calls that have been entered and have not returned yet.

use crate::call::{Call, Outcome};
use crate::formats::strace::decode::Decoders;
use crate::formats::strace::scan::{Scanned, Shape, scan_call};
use crate::tracker::overlap::{may_show, moves_names};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The first half of a call.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedCall {
    pub(crate) name: Vec<u8>,
    pub(crate) head: Vec<u8>,
    pub(crate) start_ns: Option<i64>,
    /// Calls of the log that had ended then.
    pub(crate) calls: u64,
    /// The line of its entry, counted over all logs.
    pub(crate) entered: u64,
    /// Its number among those that are worth waiting for.
    turn: Option<u64>,
    /// It tries to lock something, and does not wait for it.
    tries_lock: bool,
    /// It has returned, and its line waits for another call.
    pub(crate) waits: bool,
    /// It was waited for in vain.
    given_up: bool,
}

/// When a call was entered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallEntry {
    pub(crate) start_ns: Option<i64>,
    /// Calls of the log that had ended then.
    pub(crate) calls: u64,
    /// The line, counted over all logs.
    pub(crate) line: u64,
    /// It tries to lock something, and does not wait for it.
    pub(crate) tries_lock: bool,
}

/// A call as it was entered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnteredCall<'a> {
    pub(crate) task: u64,
    pub(crate) name: &'a [u8],
    pub(crate) head: &'a [u8],
    pub(crate) start_ns: Option<i64>,
}

impl EnteredCall<'_> {
    /// Use the call as if it had returned 0. None where its arguments cannot be understood.
    pub(crate) fn call<R>(
        &self,
        decoders: &mut Decoders,
        using: impl FnOnce(&Call<'_>) -> R,
    ) -> Option<R> {
        let text = [self.head, b") = 0"].concat();
        let mut scanned = Scanned::default();
        let Shape::Call = scan_call(self.name, &text, &mut scanned) else {
            return None;
        };
        let (name, decode) = decoders.find(self.name)?;
        let kind = decode(&scanned)?;
        let begin = (self.task, self.start_ns);
        Some(using(&Call::at(begin, name, Outcome::Value(0), &kind)))
    }
}

/// Those of all tasks.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedCalls {
    of: FxHashMap<u64, UnfinishedCall>,
    /// Tasks of those that are worth waiting for, in the order in which they were entered: what they do, results of others may
    /// show, and nobody has waited for them in vain.
    awaitable: BTreeMap<u64, u64>,
    turns: u64,
    /// How many of them give files other names, or none.
    moves: usize,
    /// How many of them try to lock something, and do not wait for it.
    tries: usize,
    /// Tasks that let a lock go while others tried to have one: whether before these, their results tell.
    unlocking: Vec<u64>,
    /// Halves that were put together: their room is used again.
    spare: Vec<UnfinishedCall>,
}

/// A half that is longer is not kept whole: arguments of file calls are shorter (chosen).
const LONGEST_HALF_BYTES: usize = 64 << 10;
/// Halves whose room is kept (chosen: more are seldom open at once).
const MOST_SPARE: usize = 16;
/// Those that a result is held against, the latest ones (chosen: far more than there are processors to make calls).
const MOST_LOOKED_AT: usize = 128;

impl UnfinishedCall {
    pub(crate) fn entered(&self, task: u64) -> EnteredCall<'_> {
        EnteredCall {
            task,
            name: &self.name,
            head: &self.head,
            start_ns: self.start_ns,
        }
    }
}

impl UnfinishedCalls {
    /// Keep the half of a task, in the place of another one.
    pub(crate) fn begin(&mut self, task: u64, (name, head): (&[u8], &[u8]), entry: CallEntry) {
        let kept = head.get(..LONGEST_HALF_BYTES).unwrap_or(head);
        let mut half = self.spare.pop().unwrap_or_default();
        half.name.clear();
        half.name.extend_from_slice(name);
        half.head.clear();
        half.head.extend_from_slice(kept);
        half.start_ns = entry.start_ns;
        half.calls = entry.calls;
        half.entered = entry.line;
        half.tries_lock = entry.tries_lock;
        half.waits = false;
        half.given_up = false;
        half.turn = may_show(name).then_some(self.turns);
        self.turns += 1;
        self.remove(task);
        self.put_back(task, half);
    }

    fn remove(&mut self, task: u64) -> Option<UnfinishedCall> {
        let half = self.of.remove(&task)?;
        if let Some(turn) = half.turn {
            self.awaitable.remove(&turn);
        }
        self.moves -= usize::from(moves_names(&half.name));
        self.tries -= usize::from(half.tries_lock);
        self.unlocking.retain(|&other| other != task);
        Some(half)
    }

    /// The half of a task's call, if it is one of this name.
    pub(crate) fn take(&mut self, task: u64, name: &[u8]) -> Option<UnfinishedCall> {
        let is_of_it = self.of.get(&task).is_some_and(|half| half.name == name);
        is_of_it.then(|| self.remove(task))?
    }

    /// The call has not returned after all.
    pub(crate) fn put_back(&mut self, task: u64, half: UnfinishedCall) {
        if let Some(turn) = half.turn {
            self.awaitable.insert(turn, task);
        }
        self.moves += usize::from(moves_names(&half.name));
        self.tries += usize::from(half.tries_lock);
        self.of.insert(task, half);
    }

    /// The half was put together: its room may be used again.
    pub(crate) fn spare(&mut self, half: UnfinishedCall) {
        if self.spare.len() < MOST_SPARE && half.head.len() <= LONGEST_HALF_BYTES {
            self.spare.push(half);
        }
    }

    /// The task has ended. Whether it was in a call.
    pub(crate) fn end(&mut self, task: u64) -> bool {
        self.remove(task).is_some()
    }

    /// A task goes on under the number of another one, which has ended.
    pub(crate) fn supersede(&mut self, ended: u64, by: u64) {
        self.remove(ended);
        if let Some(half) = self.remove(by) {
            self.put_back(ended, half);
        }
    }

    pub(crate) fn is_under_way(&self, task: u64) -> bool {
        self.of.contains_key(&task)
    }

    /// Whether a call that was entered in this line has not returned, and can be waited for.
    pub(crate) fn is_in(&self, task: u64, entered: u64) -> bool {
        let half = self.of.get(&task);
        half.is_some_and(|half| half.entered == entered && !half.waits && !half.given_up)
    }

    /// Whether a call is under way whose effect results of others may show.
    pub(crate) fn may_show(&self) -> bool {
        !self.awaitable.is_empty()
    }

    /// Whether a call is under way that gives a file another name, or none.
    pub(crate) fn move_names(&self) -> bool {
        self.moves > 0
    }

    /// Whether a call is under way that tries to lock something, and does not wait for it.
    pub(crate) fn try_lock(&self) -> bool {
        self.tries > 0
    }

    /// The call of a task lets a lock go later than it was entered.
    pub(crate) fn defer(&mut self, task: u64) {
        self.unlocking.push(task);
    }

    /// Calls that let locks go, of which nobody was told yet: from now on they are.
    pub(crate) fn take_deferred(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.unlocking)
    }

    /// The call that a task is in.
    pub(crate) fn of(&self, task: u64) -> Option<&UnfinishedCall> {
        self.of.get(&task)
    }

    /// Wait no more for the call of a task, and for those of some others.
    pub(crate) fn give_up(&mut self, cause: u64, is_meant: impl Fn(u64) -> bool) {
        let of = &mut self.of;
        if let Some(half) = of.get_mut(&cause) {
            half.given_up = true;
        }
        self.awaitable.retain(|_, task| {
            let given_up = of.get_mut(task).filter(|_| is_meant(*task));
            given_up.map(|half| half.turn = None).is_none()
        });
    }

    /// The latest of those that are worth waiting for, by task.
    pub(crate) fn awaitable(&self) -> impl Iterator<Item = (u64, &UnfinishedCall)> {
        let latest = self.awaitable.values().rev().take(MOST_LOOKED_AT);
        let latest = latest.filter_map(|&task| Some((task, self.of.get(&task)?)));
        // What has returned and waits itself is not waited for: two would wait for each other.
        latest.filter(|(_, half)| !half.waits)
    }

    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_of_many_halves_are_looked_at_and_none_that_was_given_up() {
        let mut unfinished = UnfinishedCalls::default();
        for task in 0..10_000 {
            let entry = |line| CallEntry {
                start_ns: None,
                calls: 0,
                line,
                tries_lock: false,
            };
            unfinished.begin(task, (b"mkdir", b"\"/r/a\", 0777"), entry(2 * task));
            unfinished.begin(20_000 + task, (b"accept", b"3"), entry(2 * task + 1));
        }
        let looked: Vec<u64> = unfinished.awaitable().map(|(task, _)| task).collect();
        assert_eq!(
            (looked.len(), looked.first()),
            (MOST_LOOKED_AT, Some(&9_999))
        );
        unfinished.give_up(11, |task| task > 10);
        let half = unfinished.take(9_999, b"mkdir").unwrap();
        unfinished.put_back(9_999, half);
        unfinished.supersede(5, 6);
        let looked: Vec<u64> = unfinished.awaitable().map(|(task, _)| task).collect();
        assert_eq!(looked, [10, 9, 8, 7, 5, 4, 3, 2, 1, 0]);
    }
}
