//! The lines of one log or of several (-ff), in the order in which their calls took effect.

use crate::bytes::{find, from, take_seconds};
use crate::error::TraceError;
use crate::formats::strace::aside::Asides;
use crate::formats::strace::clock::Reading;
use crate::formats::strace::kin;
use crate::formats::strace::prefix::{Prefix, Stamp, take_prefix};
use crate::input::Input;
use crate::lines::Line;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// A line and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLine<'a> {
    /// Of its log.
    pub(crate) name: &'a Rc<str>,
    pub(crate) number: u64,
    /// Whose line it is, where it or the name of its log says so.
    pub(crate) task: Option<u64>,
    /// When it was written: at its entry or, for a resumed half, when it returned.
    pub(crate) time_ns: Option<i64>,
    pub(crate) too_long: bool,
    pub(crate) whole: &'a [u8],
    /// What stands behind the prefix.
    pub(crate) text: &'a [u8],
}

/// A log, and the line of it that was read last.
pub(crate) struct Source {
    input: Input,
    pub(crate) name: Rc<str>,
    /// The process that a file of -ff belongs to.
    task: Option<u64>,
    number: u64,
    too_long: bool,
    time_ns: Option<i64>,
    prefix: Prefix,
    /// Where the line goes on behind its prefix.
    rest: usize,
    pub(crate) reading: Reading,
    asides: Asides,
    /// Lines that were passed over, since no call stands in them.
    pub(crate) passed_over: u64,
}

/// All sources; the next line is that of the first one.
pub(crate) struct Streams {
    sources: Vec<Source>,
    queue: BinaryHeap<Reverse<(i64, usize)>>,
    current: Option<usize>,
}

impl Streams {
    pub(crate) fn open(inputs: Vec<Input>) -> Result<Self, TraceError> {
        let mut streams = Self {
            sources: Vec::new(),
            queue: BinaryHeap::new(),
            current: None,
        };
        for input in inputs {
            streams.sources.push(Source {
                name: input.path.display().to_string().into(),
                task: task_of(&input.path),
                input,
                number: 0,
                too_long: false,
                time_ns: None,
                prefix: Prefix {
                    task: None,
                    stamp: Stamp::None,
                },
                rest: 0,
                reading: Reading::default(),
                asides: Asides::default(),
                passed_over: 0,
            });
        }
        for index in 0..streams.sources.len() {
            streams.queue_next(index)?;
        }
        Ok(streams)
    }

    fn queue_next(&mut self, index: usize) -> Result<(), TraceError> {
        let Some(source) = self.sources.get_mut(index) else {
            return Ok(());
        };
        if source.advance()? {
            self.queue.push(Reverse((source.effect_ns(), index)));
        }
        Ok(())
    }

    /// Go to the next line of all. None after the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<&mut Source>, TraceError> {
        if self.sources.len() == 1 {
            let Some(source) = self.sources.first_mut() else {
                return Ok(None);
            };
            // The first line is there already.
            let more = if self.queue.pop().is_some() {
                true
            } else {
                source.advance()?
            };
            return Ok(more.then_some(source));
        }
        if let Some(index) = self.current.take() {
            self.queue_next(index)?;
        }
        let Some(Reverse((_, index))) = self.queue.pop() else {
            return Ok(None);
        };
        self.current = Some(index);
        Ok(self.sources.get_mut(index))
    }

    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }
}

impl Source {
    fn advance(&mut self) -> Result<bool, TraceError> {
        loop {
            let kind = self.input.next_line()?;
            if kind == Line::End {
                return Ok(false);
            }
            self.number += 1;
            self.too_long = kind == Line::TooLong;
            if self.too_long || !self.asides.is_next(self.input.line()) {
                break;
            }
            self.passed_over += 1;
        }
        let line = self.input.line();
        let (prefix, rest) = take_prefix(line);
        self.rest = line.len() - rest.len();
        self.prefix = prefix;
        self.time_ns = self.reading.read(prefix.stamp);
        Ok(true)
    }

    pub(crate) fn line(&self) -> LogLine<'_> {
        LogLine {
            name: &self.name,
            number: self.number,
            task: self.prefix.task.or(self.task),
            time_ns: self.time_ns,
            too_long: self.too_long,
            whole: self.input.line(),
            text: self.text(),
        }
    }

    fn text(&self) -> &[u8] {
        from(self.input.line(), self.rest)
    }

    /// When the line's call took effect: when it returned, or was entered if it lets something go or makes a task, which
    /// begins before that call has returned. Lines without a time stay behind the one before.
    fn effect_ns(&self) -> i64 {
        let start = self.time_ns.unwrap_or(i64::MIN);
        let text = self.text();
        if lets_go(text) || kin::makes_task(text) {
            return start;
        }
        let duration = text
            .strip_suffix(b">")
            .filter(|_| !text.starts_with(b"<..."))
            .and_then(|inner| Some(from(inner, memchr::memrchr(b'<', inner)? + 1)))
            .and_then(take_seconds)
            .map_or(0, |(time, _, _)| time);
        start.saturating_add(duration)
    }
}

/// Whether others may have what a call lets go before it returns.
fn lets_go(text: &[u8]) -> bool {
    let holds = |word| find(text, word).is_some();
    text.starts_with(b"close(")
        || text.starts_with(b"flock(") && holds(b"LOCK_UN")
        || text.starts_with(b"fcntl(") && holds(b"F_UNLCK")
}

/// `log.1234` holds the calls of task 1234.
fn task_of(path: &std::path::Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let name = [".gz", ".xz", ".zst"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name);
    let (_, number) = name.rsplit_once('.')?;
    number.parse().ok()
}
