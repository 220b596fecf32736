//! Lines that wait for a call which returned after them, and yet took effect before.

use crate::formats::strace::streams::LogLine;
use std::collections::VecDeque;

/// Lines that are kept until a call returns (chosen: some thousand; calls that overlap return within a few lines).
const MOST_BYTES: usize = 256 << 10;

/// A line, kept.
#[derive(Debug)]
pub(crate) struct KeptLine {
    name: String,
    number: u64,
    task: Option<u64>,
    time_ns: Option<i64>,
    too_long: bool,
    whole: Vec<u8>,
    /// Where its text begins.
    rest: usize,
}

impl KeptLine {
    fn of(line: &LogLine<'_>) -> Self {
        Self {
            name: line.name.to_owned(),
            number: line.number,
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
            task: self.task,
            time_ns: self.time_ns,
            too_long: self.too_long,
            whole: &self.whole,
            text: crate::bytes::from(&self.whole, self.rest),
        }
    }
}

/// Lines whose turn has not come, in their order.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The task whose call must return first.
    cause: Option<u64>,
    kept: VecDeque<KeptLine>,
    bytes: usize,
    /// Lines that wait no more.
    ready: VecDeque<KeptLine>,
}

impl Waiting {
    pub(crate) fn cause(&self) -> Option<u64> {
        self.cause
    }

    /// A line, and all that are kept already, wait for a call of this task.
    pub(crate) fn begin(&mut self, cause: u64) {
        self.cause = Some(cause);
    }

    /// Keep the line that began to wait: it comes before those that waited for it.
    pub(crate) fn keep_first(&mut self, line: &LogLine<'_>) {
        self.bytes += line.whole.len();
        self.kept.push_front(KeptLine::of(line));
    }

    /// Keep a line behind those that wait.
    pub(crate) fn keep(&mut self, line: &LogLine<'_>) {
        self.bytes += line.whole.len();
        self.kept.push_back(KeptLine::of(line));
    }

    /// Whether they are too many.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Nothing waits any more.
    pub(crate) fn end(&mut self) {
        self.cause = None;
        self.bytes = 0;
        self.kept.append(&mut self.ready);
        std::mem::swap(&mut self.kept, &mut self.ready);
    }

    /// The next line whose turn has come again.
    pub(crate) fn next(&mut self) -> Option<KeptLine> {
        self.ready.pop_front()
    }
}
