//! First halves of calls that have not returned yet.

use crate::call::{Call, Outcome};
use crate::formats::strace::decode::Decoders;
use crate::formats::strace::scan::{Scanned, Shape, scan_call};
use rustc_hash::FxHashMap;

/// The first half of a call.
#[derive(Debug, Default)]
pub(crate) struct Half {
    pub(crate) name: Vec<u8>,
    pub(crate) head: Vec<u8>,
    pub(crate) start_ns: Option<i64>,
    /// Calls of the log that had ended then.
    pub(crate) calls: u64,
    /// It was waited for in vain: nothing waits for it any more.
    given_up: bool,
}

/// A call as it was entered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entered<'a> {
    pub(crate) task: u64,
    pub(crate) name: &'a [u8],
    pub(crate) head: &'a [u8],
    pub(crate) start_ns: Option<i64>,
}

impl Entered<'_> {
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
        Some(using(&Call {
            task: self.task,
            name,
            start_ns: self.start_ns,
            duration_ns: None,
            meanwhile: 0,
            outcome: Outcome::Value(0),
            kind: &kind,
        }))
    }
}

/// Those of all tasks.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    of: FxHashMap<u64, Half>,
    /// Halves that were put together: their room is used again.
    spare: Vec<Half>,
}

/// A half that is longer is not kept whole: arguments of file calls are shorter (chosen).
const LONGEST_HALF_BYTES: usize = 64 << 10;
/// Halves whose room is kept (chosen: more are seldom open at once).
const MOST_SPARE: usize = 16;

impl Half {
    pub(crate) fn entered(&self, task: u64) -> Entered<'_> {
        Entered {
            task,
            name: &self.name,
            head: &self.head,
            start_ns: self.start_ns,
        }
    }
}

impl Halves {
    /// Keep the half of a task. False where another one was never resumed.
    pub(crate) fn begin(
        &mut self,
        task: u64,
        (name, head): (&[u8], &[u8]),
        start_ns: Option<i64>,
        calls: u64,
    ) -> bool {
        let kept = head.get(..LONGEST_HALF_BYTES).unwrap_or(head);
        let mut half = self.spare.pop().unwrap_or_default();
        half.name.clear();
        half.name.extend_from_slice(name);
        half.head.clear();
        half.head.extend_from_slice(kept);
        half.start_ns = start_ns;
        half.calls = calls;
        half.given_up = false;
        self.of.insert(task, half).is_none()
    }

    /// The half of a task's call of this name.
    pub(crate) fn take(&mut self, task: u64, name: &[u8]) -> Option<Half> {
        self.of.remove(&task).filter(|half| half.name == name)
    }

    /// The call has not returned after all.
    pub(crate) fn put_back(&mut self, task: u64, half: Half) {
        self.of.insert(task, half);
    }

    /// The half was put together: its room may be used again.
    pub(crate) fn spare(&mut self, half: Half) {
        if self.spare.len() < MOST_SPARE && half.head.len() <= LONGEST_HALF_BYTES {
            self.spare.push(half);
        }
    }

    /// The task has ended. Whether it was in a call.
    pub(crate) fn end(&mut self, task: u64) -> bool {
        self.of.remove(&task).is_some()
    }

    /// A task goes on under the number of another one, which has ended.
    pub(crate) fn supersede(&mut self, ended: u64, by: u64) {
        self.of.remove(&ended);
        if let Some(half) = self.of.remove(&by) {
            self.of.insert(ended, half);
        }
    }

    pub(crate) fn is_under_way(&self, task: u64) -> bool {
        self.of.contains_key(&task)
    }

    pub(crate) fn give_up(&mut self, task: u64) {
        if let Some(half) = self.of.get_mut(&task) {
            half.given_up = true;
        }
    }

    /// Those that are worth waiting for, by task.
    pub(crate) fn awaitable(&self) -> impl Iterator<Item = (u64, &Half)> {
        let each = self.of.iter().map(|(&task, half)| (task, half));
        each.filter(|(_, half)| !half.given_up)
    }

    pub(crate) fn count(&self) -> usize {
        self.of.len()
    }
}
