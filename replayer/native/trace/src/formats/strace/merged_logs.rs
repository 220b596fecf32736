//! The lines of one log or of several (-ff), in the order in which their calls took effect.

use crate::bytes::{find, from, take_seconds};
use crate::error::TraceError;
use crate::formats::strace::clock::{DAY_NS, LogBegin, StampReader, days};
use crate::formats::strace::lineage::{Released, TaskLineage, WaitsFor, makes_task};
use crate::formats::strace::prefix::{Prefix, SideOutput, Stamp, take_prefix};
use crate::formats::{ClockKind, Progress};
use crate::input::{Input, Line};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// A line and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogLine<'a> {
    /// Of its log.
    pub(crate) name: &'a Rc<str>,
    pub(crate) number: u64,
    /// Its number among the lines of all logs, as they are taken.
    pub(crate) turn: u64,
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
pub(crate) struct LogFile {
    input: Input,
    pub(crate) name: Rc<str>,
    /// The task that a file of -ff belongs to.
    task: Option<u64>,
    number: u64,
    too_long: bool,
    time_ns: Option<i64>,
    prefix: Prefix,
    /// Where the line goes on behind its prefix.
    rest: usize,
    /// The place of its task among those that were begun.
    begun: u64,
    pub(crate) reading: StampReader,
    side_output: SideOutput,
    /// Lines that were passed over, since no call stands in them.
    pub(crate) passed_over: u64,
}

/// When a line's call took effect, when its task began, and its source.
type Turn = (i64, Reverse<u64>, usize);

/// All sources; the next line is that of the first one.
#[derive(Default)]
pub(crate) struct MergedLogs {
    sources: Vec<LogFile>,
    /// By time. Of one time those of the task that began last: who makes a task needs what that does more often than it that
    /// of the other.
    queue: BinaryHeap<Reverse<Turn>>,
    current: Option<usize>,
    /// What proves the order where stamps do not tell it.
    lineage: Option<TaskLineage>,
    /// What sources wait for that are not in the queue.
    gates: Vec<Option<WaitsFor>>,
    begun: u64,
    /// How many tasks have a file each whose stamps do not tell the order between them.
    pub(crate) unordered: usize,
    /// How many of them may begin on another day.
    pub(crate) days_guessed: usize,
}

impl MergedLogs {
    pub(crate) fn open(inputs: Vec<Input>, progress: Progress<'_>) -> Result<Self, TraceError> {
        let mut streams = Self {
            gates: vec![None; inputs.len()],
            ..Self::default()
        };
        for input in inputs {
            streams.sources.push(LogFile::of(input));
        }
        let mut first_lines = Vec::new();
        for source in &mut streams.sources {
            first_lines.push(source.advance()?);
        }
        streams.pass_midnight(progress)?;
        streams.unordered = unordered(&streams.sources);
        if streams.unordered > 0 {
            let files = streams.sources.iter();
            let files: Vec<_> = files
                .map(|source| (source.input.path.as_path(), source.task))
                .collect();
            streams.lineage = Some(TaskLineage::of(&files, progress)?);
        }
        for (index, is_there) in first_lines.into_iter().enumerate() {
            streams.queue(index, is_there);
        }
        Ok(streams)
    }

    /// Have the files that begin after a midnight do so.
    fn pass_midnight(&mut self, progress: Progress<'_>) -> Result<(), TraceError> {
        let sources = self.sources.iter().enumerate();
        let begins = sources.filter_map(|(index, source)| source.begin(index));
        let begins: Vec<LogBegin<'_>> = begins.collect();
        let days = days(&begins, progress)?;
        self.days_guessed = days.guessed;
        for (index, days) in days.later {
            if let Some(source) = self.sources.get_mut(index) {
                let late_ns = DAY_NS.saturating_mul(days);
                source.reading.begin_later(late_ns);
                source.time_ns = source.time_ns.map(|time| time.saturating_add(late_ns));
            }
        }
        Ok(())
    }

    /// Have a source wait for its turn, or for what must come before its line.
    fn queue(&mut self, index: usize, is_there: bool) {
        let Some(source) = self.sources.get(index) else {
            return;
        };
        if !is_there {
            if let Some(lineage) = &mut self.lineage {
                lineage.end(index);
                self.pass_on(Released::End, index);
            }
            return;
        }
        let lineage = self.lineage.as_mut();
        let gate = lineage.and_then(|lineage| lineage.gate(index, source.text()));
        if let (Some(_), Some(place)) = (gate, self.gates.get_mut(index)) {
            *place = gate;
            return;
        }
        let turn = self.turn_of(source, index);
        self.queue.push(Reverse(turn));
    }

    fn turn_of(&self, source: &LogFile, index: usize) -> Turn {
        // Between files, steps of -r say nothing.
        let is_step = source.reading.clock.kind == ClockKind::Relative;
        let time_ns = if self.lineage.is_some() && is_step {
            i64::MIN
        } else {
            source.effect_ns()
        };
        (time_ns, Reverse(source.begun), index)
    }

    /// A line was handled: what waited for it has its turn.
    fn pass_on(&mut self, passed: Released, index: usize) {
        let time_ns = self.sources.get(index).and_then(|source| source.time_ns);
        match passed {
            Released::Nothing => {}
            Released::Birth(child) => self.open_gate(child, WaitsFor::Birth, time_ns),
            Released::End => {
                for other in 0..self.gates.len() {
                    self.open_gate(other, WaitsFor::End(index), time_ns);
                }
            }
        }
    }

    fn open_gate(&mut self, index: usize, gate: WaitsFor, time_ns: Option<i64>) {
        let place = self.gates.get_mut(index);
        let Some(place) = place.filter(|place| **place == Some(gate)) else {
            return;
        };
        *place = None;
        if let Some(source) = self.sources.get_mut(index) {
            if gate == WaitsFor::Birth {
                self.begun += 1;
                source.begun = self.begun;
            }
            source.catch_up(time_ns);
        }
        // It may be born and wait for the end of another one at once.
        self.queue(index, true);
    }

    /// What is waited for does not come: let one go on without it. False where none waits.
    fn give_up(&mut self) -> bool {
        let waiting = self.gates.iter().enumerate();
        let waiting = waiting.filter_map(|(index, gate)| Some(((*gate)?, index)));
        let Some((gate, index)) = waiting.min() else {
            return false;
        };
        if let Some(place) = self.gates.get_mut(index) {
            *place = None;
        }
        match (gate, &mut self.lineage, self.sources.get(index)) {
            (WaitsFor::Birth, Some(lineage), _) => {
                lineage.give_up(index);
                self.queue(index, true);
            }
            (_, _, Some(source)) => {
                let turn = self.turn_of(source, index);
                self.queue.push(Reverse(turn));
            }
            _ => {}
        }
        true
    }

    /// Go to the next line of all. None after the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<&mut LogFile>, TraceError> {
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
            self.go_on(index)?;
        }
        let index = loop {
            if let Some(Reverse((_, _, index))) = self.queue.pop() {
                break index;
            }
            if !self.give_up() {
                return Ok(None);
            }
        };
        self.current = Some(index);
        Ok(self.sources.get_mut(index))
    }

    /// The line of a source was handled: go to its next one.
    fn go_on(&mut self, index: usize) -> Result<(), TraceError> {
        let Some(source) = self.sources.get_mut(index) else {
            return Ok(());
        };
        if let Some(lineage) = &mut self.lineage {
            let passed = lineage.pass(index, source.text());
            self.pass_on(passed, index);
        }
        let Some(source) = self.sources.get_mut(index) else {
            return Ok(());
        };
        let is_there = source.advance()?;
        self.queue(index, is_there);
        Ok(())
    }

    pub(crate) fn sources(&self) -> &[LogFile] {
        &self.sources
    }
}

/// How many tasks have a file each whose stamps do not tell the order between them.
fn unordered(sources: &[LogFile]) -> usize {
    let separate = sources.iter().filter(|source| source.is_of_one_task());
    let count = separate.clone().count();
    let mut readings = separate.map(|source| &source.reading);
    let is_told = readings.any(StampReader::tells_order);
    if is_told || count < 2 { 0 } else { count }
}

impl LogFile {
    fn of(input: Input) -> Self {
        Self {
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
            begun: 0,
            reading: StampReader::default(),
            side_output: SideOutput::default(),
            passed_over: 0,
        }
    }

    /// Whether it is a file of -ff: its name says whose lines it holds, and they do not.
    fn is_of_one_task(&self) -> bool {
        self.task.is_some() && self.prefix.task.is_none()
    }

    /// Where it begins, if it is a file of -ff with times of the day.
    fn begin(&self, index: usize) -> Option<LogBegin<'_>> {
        let is_day = self.reading.clock.kind == ClockKind::Day;
        Some(LogBegin {
            index,
            path: &self.input.path,
            task: self.task.filter(|_| is_day && self.is_of_one_task())?,
            time_ns: self.time_ns?,
        })
    }

    /// What its line waited for was at this time.
    fn catch_up(&mut self, time_ns: Option<i64>) {
        let late_ns = time_ns.map_or(0, |time_ns| self.reading.catch_up(time_ns));
        self.time_ns = self.time_ns.map(|time_ns| time_ns.saturating_add(late_ns));
    }

    fn advance(&mut self) -> Result<bool, TraceError> {
        loop {
            let kind = self.input.next_line()?;
            if kind == Line::End {
                return Ok(false);
            }
            self.number += 1;
            self.too_long = kind == Line::TooLong;
            if self.too_long || !self.side_output.is_next(self.input.line()) {
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

    pub(crate) fn line(&self, turn: u64) -> LogLine<'_> {
        LogLine {
            name: &self.name,
            number: self.number,
            turn,
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
        let Some(start) = self.time_ns else {
            return i64::MIN;
        };
        let text = self.text();
        if lets_go(text) || makes_task(text) {
            return start;
        }
        let duration = text
            .strip_suffix(b">")
            .filter(|_| !text.starts_with(b"<..."))
            .and_then(|inner| Some(from(inner, memchr::memrchr(b'<', inner)? + 1)))
            .and_then(take_seconds)
            .map_or(0, |(time, _, _)| time);
        // What is shorter than the steps of the stamps says nothing.
        let step = i64::try_from(self.reading.clock.resolution_ns).unwrap_or(1);
        start.saturating_add(duration - duration % step.max(1))
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
