//! Takes the lines of logs one after the other, each when its turn has come.

use crate::error::TraceError;
use crate::formats::strace::importer::Importer;
use crate::formats::strace::streams::{LogLine, Streams};
use crate::formats::strace::waiting::KeptLine;
use crate::formats::{Clock, PROGRESS_LINES, Progress};
use crate::input::Input;
use crate::tracker::Tracker;
use rustc_hash::FxHashSet;

/// Import logs into a tracker.
pub(crate) fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    let mut streams = Streams::open(inputs, progress)?;
    let mut importer = Importer::new();
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
                Some(KeptLine::of(&line))
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
    Behind,
}

impl Importer {
    /// The next line that is kept and whose turn has come: while others wait, one of the task that they wait for.
    fn next_kept(&mut self) -> Option<KeptLine> {
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
            return Ok((true, Turn::Behind));
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

    fn keep(&mut self, turn: Turn, line: Option<KeptLine>) {
        let Some(line) = line else { return };
        match turn {
            Turn::Come => {}
            Turn::First => self.waiting.keep_first(line),
            Turn::Behind => self.waiting.keep(line),
        }
    }

    fn has_returned(&self, cause: Option<u64>) -> bool {
        self.cut.is_none() && cause.is_some_and(|cause| !self.halves.is_under_way(cause))
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
        self.halves.give_up(cause, |task| !heard_of.contains(&task));
        self.waiting.end();
        true
    }
}
