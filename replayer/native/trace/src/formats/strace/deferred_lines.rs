//! Takes the lines of logs one after the other; a line waits where another call returned later and took effect before.

use crate::error::TraceError;
use crate::formats::strace::importer::StraceImporter;
use crate::formats::strace::merged_logs::{LogLine, MergedLogs};
use crate::formats::{Clock, PROGRESS_LINES, Progress};
use crate::input::Input;
use crate::tracker::Tracker;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::rc::Rc;

/// Import logs into a tracker.
pub(crate) fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    let mut streams = MergedLogs::open(inputs, progress)?;
    let mut importer = StraceImporter::new();
    loop {
        let kept = importer.next_kept();
        let line = if let Some(kept) = &kept {
            kept.line()
        } else if importer.waiting.is_full() && importer.give_up() {
            continue;
        } else if let Some(source) = streams.next_line()? {
            tracker.counts.lines += 1;
            source.line(tracker.counts.lines)
        } else if importer.give_up() {
            continue;
        } else {
            break;
        };
        let is_new = kept.is_none();
        let (understood, turn) = importer.take(tracker, &line)?;
        if !understood {
            let counts = &mut tracker.counts;
            counts.strange(line.name, line.number, line.whole);
        }
        if turn != Turn::Come {
            let again = if is_new {
                Some(DeferredLine::of(&line))
            } else {
                kept
            };
            importer.keep(turn, again);
        }
        if is_new
            && tracker.counts.lines.is_multiple_of(PROGRESS_LINES)
            && !progress(tracker.counts.lines)
        {
            return Err(TraceError::Interrupted);
        }
    }
    Ok(importer.finish(tracker, &streams))
}

/// How often a line waits, at most (chosen). All else takes a line from the log or from those that are kept: so an import ends, whatever
/// calls are taken to explain each other.
const MOST_WAITS: u8 = 16;

/// Whether the turn of a line has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Come,
    /// It waits for a call, and those that waited for it wait behind it.
    First,
    /// It stands behind lines that wait.
    Predecessors,
}

impl StraceImporter {
    /// The next line that is kept and whose turn has come: while others wait, one of the task that they wait for.
    fn next_kept(&mut self) -> Option<DeferredLine> {
        if self.waiting.is_empty() {
            return None;
        }
        // The rest of a line that was cut is the next one, whosever that is.
        let cause = self.waiting.cause().filter(|_| self.cut.is_none());
        let mut waiting = std::mem::take(&mut self.waiting);
        let line = waiting.next(|task| cause.is_none_or(|cause| self.task(task) == cause));
        self.waiting = waiting;
        line
    }

    /// Take a line if its turn has come. Also false where it cannot be understood.
    fn take(
        &mut self,
        tracker: &mut Tracker,
        line: &LogLine<'_>,
    ) -> Result<(bool, Turn), TraceError> {
        let cause = self.waiting.cause();
        let is_whole = self.cut.is_none();
        self.may_wait = is_whole && line.waits < MOST_WAITS;
        if is_whole && cause.is_some_and(|cause| cause != self.task(line.task)) {
            return Ok((true, Turn::Predecessors));
        }
        let understood = self.line(tracker, line)?;
        if self.waiting.cause() != cause {
            return Ok((understood, Turn::First));
        }
        if self.has_returned(cause) {
            self.waiting.end();
        }
        Ok((understood, Turn::Come))
    }

    fn keep(&mut self, turn: Turn, line: Option<DeferredLine>) {
        let Some(line) = line else { return };
        match turn {
            Turn::Come => {}
            Turn::First => self.waiting.keep_first(line),
            Turn::Predecessors => self.waiting.keep(line),
        }
    }

    fn has_returned(&self, cause: Option<u64>) -> bool {
        self.cut.is_none() && cause.is_some_and(|cause| !self.unfinished.is_under_way(cause))
    }

    /// The call that is waited for does not return: go on without it, and without all others of which no line has come
    /// meanwhile. False where nothing waits.
    fn give_up(&mut self) -> bool {
        let Some(cause) = self.waiting.cause() else {
            return false;
        };
        let waiting = std::mem::take(&mut self.waiting);
        let heard_of: FxHashSet<u64> = waiting.tasks().map(|task| self.task(task)).collect();
        self.waiting = waiting;
        self.unfinished
            .give_up(cause, |task| !heard_of.contains(&task));
        self.waiting.end();
        true
    }
}

/// What lines that are kept until a call returns may take (chosen: some thousand lines; calls that overlap return within a few).
const MOST_BYTES: usize = 512 << 10;
/// What a line takes beside its text.
const LINE_BYTES: usize = size_of::<Option<DeferredLine>>();

/// A line, kept.
#[derive(Debug)]
pub(crate) struct DeferredLine {
    name: Rc<str>,
    number: u64,
    turn: u64,
    waits: u8,
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
            waits: line.waits,
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
            waits: self.waits,
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

/// Lines whose turn has not come, in their order.
#[derive(Debug, Default)]
pub(crate) struct DeferredLines {
    /// The task whose call must return before the first of them.
    cause: Option<u64>,
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
    pub(crate) fn begin(&mut self, cause: u64) {
        self.cause = Some(cause);
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
        self.bytes > MOST_BYTES
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
            waits: 0,
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
        waiting.begin(7);
        let most = (0..).take_while(|_| {
            waiting.keep(line(1, b""));
            !waiting.is_full()
        });
        assert!(most.count() * LINE_BYTES <= MOST_BYTES);
    }

    #[test]
    fn those_of_the_task_that_is_waited_for_come_first_and_the_others_in_their_order() {
        let mut waiting = DeferredLines::default();
        waiting.begin(7);
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
