//! Takes the lines of logs one after the other, each when its turn has come.

use crate::error::TraceError;
use crate::formats::strace::importer::Importer;
use crate::formats::strace::streams::{LogLine, Streams};
use crate::formats::{Clock, Progress};
use crate::input::Input;
use crate::tracker::Tracker;

/// Lines between two looks at whether somebody wants to stop.
const PROGRESS_LINES: u64 = 1 << 16;

/// Import logs into a tracker.
pub(crate) fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    let mut streams = Streams::open(inputs)?;
    let mut importer = Importer::new();
    loop {
        let kept = importer.waiting.next();
        let line = if let Some(kept) = &kept {
            kept.line()
        } else if let Some(source) = streams.next_line()? {
            tracker.counts.lines += 1;
            source.line()
        } else if importer.give_up() {
            continue;
        } else {
            break;
        };
        if !importer.take(tracker, &line)? {
            let counts = &mut tracker.counts;
            counts.strange(line.name, line.number, line.whole);
        }
        if kept.is_none()
            && tracker.counts.lines.is_multiple_of(PROGRESS_LINES)
            && !progress(tracker.counts.lines)
        {
            return Err(TraceError::Interrupted);
        }
    }
    Ok(importer.finish(tracker, &streams))
}

impl Importer {
    /// Take a line when its turn has come. False where it cannot be understood.
    fn take(&mut self, tracker: &mut Tracker, line: &LogLine<'_>) -> Result<bool, TraceError> {
        let cause = self.waiting.cause();
        self.is_whole = self.cut.is_none();
        let mut understood = true;
        if self.is_whole && cause.is_some_and(|cause| cause != self.task(line)) {
            self.waiting.keep(line);
        } else {
            understood = self.line(tracker, line)?;
            if self.waiting.cause() != cause {
                self.waiting.keep_first(line);
            } else if self.has_returned(cause) {
                self.waiting.end();
            }
        }
        if self.waiting.is_full() {
            self.give_up();
        }
        Ok(understood)
    }

    fn has_returned(&self, cause: Option<u64>) -> bool {
        self.cut.is_none() && cause.is_some_and(|cause| !self.halves.is_under_way(cause))
    }

    /// The call that is waited for does not return: go on without it. False where none is.
    fn give_up(&mut self) -> bool {
        let cause = self.waiting.cause();
        if let Some(cause) = cause {
            self.halves.give_up(cause);
            self.waiting.end();
        }
        cause.is_some()
    }
}
