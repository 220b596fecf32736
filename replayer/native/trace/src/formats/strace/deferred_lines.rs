//! Lines that wait for a call which returned after them, and yet took effect before.

use crate::formats::strace::merged_logs::LogLine;
use std::collections::VecDeque;
use std::rc::Rc;

/// What lines that are kept until a call returns may take (chosen: some thousand lines; calls that overlap return within a few).
const MOST_BYTES: usize = 512 << 10;
/// The same where an order that was found says that the call is to return (chosen: some 100,000 lines).
const MOST_ORDERED_BYTES: usize = 32 << 20;
/// What a line takes beside its text.
const LINE_BYTES: usize = size_of::<Option<DeferredLine>>();

/// A line, kept.
#[derive(Debug)]
pub(crate) struct DeferredLine {
    name: Rc<str>,
    number: u64,
    turn: u64,
    task: Option<u64>,
    time_ns: Option<i64>,
    too_long: bool,
    whole: Vec<u8>,
    /// Where its text begins.
    rest: usize,
}

impl DeferredLine {
    pub(crate) fn of(line: &LogLine<'_>) -> Self {
        Self {
            name: Rc::clone(line.name),
            number: line.number,
            turn: line.turn,
            task: line.task,
            time_ns: line.time_ns,
            too_long: line.too_long,
            whole: line.whole.to_vec(),
            rest: line.whole.len() - line.text.len(),
        }
    }

    pub(crate) fn line(&self) -> LogLine<'_> {
        LogLine {
            name: &self.name,
            number: self.number,
            turn: self.turn,
            task: self.task,
            time_ns: self.time_ns,
            too_long: self.too_long,
            whole: &self.whole,
            text: crate::bytes::from(&self.whole, self.rest),
        }
    }

    fn bytes(&self) -> usize {
        self.whole.len() + LINE_BYTES
    }
}

/// Whose call a line waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It may explain the result, and may never return.
    Guessed(u64),
    /// It takes effect sooner in the order that was found.
    Ordered(u64),
}

/// Lines whose turn has not come, in their order.
#[derive(Debug, Default)]
pub(crate) struct DeferredLines {
    /// The task whose call must return before the first of them.
    cause: Option<u64>,
    /// What they may take until then.
    most_bytes: usize,
    /// None where one was taken before its turn.
    kept: VecDeque<Option<DeferredLine>>,
    /// The next one to be looked at; those before it wait.
    at: usize,
    bytes: usize,
}

impl DeferredLines {
    pub(crate) fn cause(&self) -> Option<u64> {
        self.cause
    }

    /// A line, and all that are kept already, wait for a call of this task.
    pub(crate) fn begin(&mut self, cause: Cause) {
        let (task, most_bytes) = match cause {
            Cause::Guessed(task) => (task, MOST_BYTES),
            Cause::Ordered(task) => (task, MOST_ORDERED_BYTES),
        };
        self.cause = Some(task);
        self.most_bytes = most_bytes;
    }

    /// Keep the line that began to wait: it comes before those that waited for it. What is waited for may be kept already.
    pub(crate) fn keep_first(&mut self, line: DeferredLine) {
        self.add(&line);
        self.kept.push_front(Some(line));
        self.at = 1;
    }

    /// Keep a line behind those that wait.
    pub(crate) fn keep(&mut self, line: DeferredLine) {
        self.add(&line);
        self.kept.push_back(Some(line));
        self.at = self.kept.len();
    }

    fn add(&mut self, line: &DeferredLine) {
        self.bytes += line.bytes();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Whether they are too many.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.most_bytes
    }

    /// Nothing waits any more.
    pub(crate) fn end(&mut self) {
        self.cause = None;
        self.at = 0;
    }

    /// Take the next line of a task that is meant; the others go on waiting.
    pub(crate) fn next(
        &mut self,
        mut is_meant: impl FnMut(Option<u64>) -> bool,
    ) -> Option<DeferredLine> {
        while let Some(place) = self.kept.get_mut(self.at) {
            self.at += 1;
            if place.as_ref().is_some_and(|line| is_meant(line.task)) {
                let line = place.take();
                self.bytes -= line.as_ref().map_or(0, DeferredLine::bytes);
                self.drop_taken();
                return line;
            }
        }
        None
    }

    fn drop_taken(&mut self) {
        while self.kept.front().is_some_and(Option::is_none) {
            self.kept.pop_front();
            self.at = self.at.saturating_sub(1);
        }
    }

    /// Whose they are.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Option<u64>> {
        self.kept.iter().flatten().map(|line| line.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(task: u64, text: &[u8]) -> DeferredLine {
        DeferredLine::of(&LogLine {
            name: &"log".into(),
            number: 1,
            turn: 1,
            task: Some(task),
            time_ns: None,
            too_long: false,
            whole: text,
            text,
        })
    }

    #[test]
    fn lines_without_a_text_take_room_too() {
        let mut waiting = DeferredLines::default();
        waiting.begin(Cause::Guessed(7));
        let most = (0..).take_while(|_| {
            waiting.keep(line(1, b""));
            !waiting.is_full()
        });
        assert!(most.count() * LINE_BYTES <= MOST_BYTES);
    }

    #[test]
    fn those_of_the_task_that_is_waited_for_come_first_and_the_others_in_their_order() {
        let mut waiting = DeferredLines::default();
        waiting.begin(Cause::Guessed(7));
        for (task, text) in [(1, b"a"), (7, b"b"), (2, b"c"), (7, b"d")] {
            waiting.keep(line(task, text));
        }
        waiting.keep_first(line(3, b"x"));
        let mut taken = |task: Option<u64>| {
            let line = waiting.next(|told| task.is_none() || told == task);
            line.map(|line| line.whole)
        };
        assert_eq!(taken(Some(7)), Some(b"b".to_vec()));
        assert_eq!(taken(Some(7)), Some(b"d".to_vec()));
        assert_eq!(taken(Some(7)), None);
        waiting.end();
        let rest: Vec<u8> = std::iter::from_fn(|| waiting.next(|_| true))
            .flat_map(|line| line.whole)
            .collect();
        assert_eq!((rest.as_slice(), waiting.bytes), (&b"xac"[..], 0));
    }
}
