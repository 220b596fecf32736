//! Lines become calls: halves are put together, tasks are told apart.

use crate::bytes::{find, from, take_digits};
use crate::call::{Call, Kind, Outcome, Passing};
use crate::error::TraceError;
use crate::formats::strace::decode::{Decoders, has_no_path};
use crate::formats::strace::scan::{Scanned, Shape, is_tail, scan, scan_call, without_notice};
use crate::formats::strace::streams::{Source, Streams};
use crate::formats::{Clock, Progress};
use crate::input::Input;
use crate::tracker::Tracker;
use rustc_hash::{FxHashMap, FxHashSet};

/// The first half of a call.
#[derive(Debug, Default)]
struct Half {
    name: Vec<u8>,
    head: Vec<u8>,
    start_ns: Option<i64>,
    /// Calls of the log that had ended then.
    calls: u64,
}

/// A line that program output or strace itself cut, until the next line tells.
#[derive(Debug)]
struct CutLine {
    text: Vec<u8>,
    at: Moment,
    number: u64,
    /// Strace wrote a notice into it: the next line is its rest, however that begins.
    by_notice: bool,
}

/// Who a line belongs to and when it was written.
#[derive(Debug, Clone, Copy)]
struct Moment {
    task: u64,
    time_ns: Option<i64>,
    /// Calls of others that have ended since.
    meanwhile: u32,
}

struct Importer {
    decoders: Decoders,
    halves: FxHashMap<u64, Half>,
    /// Halves that were put together: their room is used again.
    spare: Vec<Half>,
    cut: Option<CutLine>,
    /// Tasks that a line said to be children.
    announced: FxHashSet<u64>,
    /// The number that `[pid N]` gives to the task whose lines have none.
    first_number: Option<u64>,
    unnumbered: bool,
    durations: bool,
    scratch: Vec<u8>,
}

/// The task of lines that name none.
const UNNUMBERED: u64 = 0;
/// A half that is longer is not kept whole: arguments of file calls are shorter (chosen).
const LONGEST_HALF_BYTES: usize = 64 << 10;
/// Halves whose room is kept (chosen: more are seldom open at once).
const MOST_SPARE: usize = 16;
/// Lines between two looks at whether somebody wants to stop.
const PROGRESS_LINES: u64 = 1 << 16;

/// Import logs into a tracker.
pub(crate) fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    let mut streams = Streams::open(inputs)?;
    let mut importer = Importer {
        decoders: Decoders::all(),
        halves: FxHashMap::default(),
        spare: Vec::new(),
        cut: None,
        announced: FxHashSet::default(),
        first_number: None,
        unnumbered: false,
        durations: false,
        scratch: Vec::new(),
    };
    while let Some(source) = streams.next_line()? {
        tracker.counts.lines += 1;
        if !importer.line(tracker, source)? {
            let counts = &mut tracker.counts;
            counts.strange(&source.name, source.number, source.line());
        }
        if tracker.counts.lines.is_multiple_of(PROGRESS_LINES) && !progress(tracker.counts.lines) {
            return Err(TraceError::Interrupted);
        }
    }
    Ok(importer.finish(tracker, &streams))
}

impl Importer {
    /// Take a line. False where it cannot be understood.
    fn line(&mut self, tracker: &mut Tracker, source: &Source) -> Result<bool, TraceError> {
        if source.too_long {
            return Ok(false);
        }
        if self.cut.is_some() && self.join(tracker, source)? {
            return Ok(true);
        }
        let at = Moment {
            task: self.task(source),
            time_ns: source.time_ns,
            meanwhile: 0,
        };
        let text = source.text();
        let mut scanned = Scanned::default();
        match scan(text, &mut scanned) {
            Shape::Call => return self.call(tracker, &scanned, at, None),
            Shape::Unfinished { name, head } => self.begin(tracker, name, head, at)?,
            Shape::Resumed { name, rest } => return self.resume(tracker, name, rest, at),
            Shape::Exited => {
                tracker.counts.notices += 1;
                if self.halves.remove(&at.task).is_some() {
                    tracker.counts.halves.add("cut by the end of its task");
                }
                tracker.pass(at.task, Passing::Exited, at.time_ns)?;
            }
            Shape::Superseded(by) => {
                tracker.counts.notices += 1;
                self.halves.remove(&at.task);
                if let Some(half) = self.halves.remove(&by) {
                    self.halves.insert(at.task, half);
                }
                tracker.pass(at.task, Passing::Superseded(by), at.time_ns)?;
            }
            Shape::Notice => self.notice(tracker, text),
            Shape::Cut => {
                let (head, notice) = without_notice(text);
                if let Some(notice) = notice {
                    self.notice(tracker, notice);
                }
                self.cut = Some(CutLine {
                    text: head.to_vec(),
                    at,
                    number: source.number,
                    by_notice: notice.is_some(),
                });
            }
            Shape::Strange => return Ok(false),
        }
        Ok(true)
    }

    /// Whose line it is. Lines without a number belong to the first task, which may get a number later on.
    fn task(&mut self, source: &Source) -> u64 {
        match source.prefix.task.or(source.task) {
            None => {
                self.unnumbered = true;
                UNNUMBERED
            }
            Some(number) if self.first_number == Some(number) => UNNUMBERED,
            Some(number)
                if self.unnumbered
                    && self.first_number.is_none()
                    && !self.announced.contains(&number) =>
            {
                self.first_number = Some(number);
                UNNUMBERED
            }
            Some(number) => number,
        }
    }

    fn notice(&mut self, tracker: &mut Tracker, text: &[u8]) {
        tracker.counts.notices += 1;
        if let Some(at) = find(text, b"Process ")
            && let Some((number, rest)) = take_digits(from(text, at + 8))
            && rest.starts_with(b" attached")
        {
            self.announced.insert(number);
        }
    }

    /// The line before was cut: it may go on here.
    fn join(&mut self, tracker: &mut Tracker, source: &Source) -> Result<bool, TraceError> {
        let Some(cut) = self.cut.take() else {
            return Ok(false);
        };
        let is_tail = is_tail(source.line());
        if is_tail || cut.by_notice {
            let whole = [&cut.text, source.line()].concat();
            let mut scanned = Scanned::default();
            let understood = match scan(&whole, &mut scanned) {
                Shape::Call => self.call(tracker, &scanned, cut.at, None)?,
                Shape::Unfinished { name, head } => {
                    self.begin(tracker, name, head, cut.at)?;
                    true
                }
                _ => false,
            };
            if understood {
                return Ok(true);
            }
            if is_tail {
                tracker.counts.strange(&source.name, cut.number, &whole);
                return Ok(true);
            }
        }
        tracker.counts.strange(&source.name, cut.number, &cut.text);
        Ok(false)
    }

    fn begin(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        head: &[u8],
        at: Moment,
    ) -> Result<(), TraceError> {
        if matches!(
            name,
            b"close"
                | b"clone"
                | b"clone2"
                | b"clone3"
                | b"fork"
                | b"vfork"
                | b"accept"
                | b"accept4"
                | b"flock"
                | b"fcntl"
                | b"fcntl64"
        ) {
            self.enter(tracker, name, head, at)?;
        }
        let kept = head.get(..LONGEST_HALF_BYTES).unwrap_or(head);
        let mut half = self.spare.pop().unwrap_or_default();
        half.name.clear();
        half.name.extend_from_slice(name);
        half.head.clear();
        half.head.extend_from_slice(kept);
        half.start_ns = at.time_ns;
        half.calls = tracker.counts.calls;
        if self.halves.insert(at.task, half).is_some() {
            tracker.counts.halves.add("never resumed");
        }
        Ok(())
    }

    fn enter(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        head: &[u8],
        at: Moment,
    ) -> Result<(), TraceError> {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        text.extend_from_slice(head);
        text.extend_from_slice(b") = 0");
        let mut scanned = Scanned::default();
        if let Shape::Call = scan_call(name, &text, &mut scanned) {
            let decoder = self.decoders.find(name);
            let kind = decoder.and_then(|(_, decode)| decode(&scanned));
            if let (Some(kind), Ok(name)) = (&kind, std::str::from_utf8(name)) {
                tracker.enter(&Call {
                    task: at.task,
                    name,
                    start_ns: at.time_ns,
                    duration_ns: None,
                    meanwhile: 0,
                    outcome: Outcome::Value(0),
                    kind,
                })?;
            }
        }
        self.scratch = text;
        Ok(())
    }

    /// Put two halves together. False where the line cannot be understood.
    fn resume(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        rest: &[u8],
        at: Moment,
    ) -> Result<bool, TraceError> {
        let Some(mut half) = self
            .halves
            .remove(&at.task)
            .filter(|half| half.name == name)
        else {
            return self.orphan(tracker, name, rest, at);
        };
        half.head.extend_from_slice(rest);
        let begun = Moment {
            task: at.task,
            time_ns: half.start_ns,
            meanwhile: u32::try_from(tracker.counts.calls - half.calls).unwrap_or(u32::MAX),
        };
        let mut scanned = Scanned::default();
        let understood = match scan_call(name, &half.head, &mut scanned) {
            Shape::Call => self.call(tracker, &scanned, begun, at.time_ns)?,
            _ => false,
        };
        if self.spare.len() < MOST_SPARE && half.head.len() <= LONGEST_HALF_BYTES {
            self.spare.push(half);
        }
        Ok(understood)
    }

    /// The first half lies before the log. What it connects is still known.
    fn orphan(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        rest: &[u8],
        at: Moment,
    ) -> Result<bool, TraceError> {
        let mut scanned = Scanned::default();
        let Shape::Call = scan_call(name, rest, &mut scanned) else {
            return Ok(false);
        };
        tracker.counts.halves.add("begun before the log");
        match name {
            b"accept" | b"accept4" => self.call(tracker, &scanned, at, None),
            _ => Ok(true),
        }
    }

    /// Hand a whole call over. False where its arguments cannot be understood.
    fn call(
        &mut self,
        tracker: &mut Tracker,
        scanned: &Scanned<'_>,
        at: Moment,
        returned_ns: Option<i64>,
    ) -> Result<bool, TraceError> {
        let result = &scanned.result;
        if result.restarts {
            tracker.counts.restarted += 1;
            return Ok(true);
        }
        self.durations |= result.duration_ns.is_some();
        let (name, decoded) = match self.decoders.find(scanned.name) {
            None => (
                std::str::from_utf8(scanned.name).unwrap_or_default(),
                Some(Kind::Other),
            ),
            Some((name, decode)) => (name, decode(scanned)),
        };
        // It is long: nothing moves it.
        let Some(kind) = &decoded else {
            let is_no_fault = has_no_path(scanned) || result.errno == Some(14);
            if is_no_fault {
                tracker.counts.no_path.add(name);
            }
            return Ok(is_no_fault);
        };
        let outcome = match (result.value, result.errno) {
            (_, Some(number)) => Outcome::Error(number),
            (Some(-1) | None, None) => Outcome::Unknown,
            (Some(value), None) => Outcome::Value(value),
        };
        if let (Kind::Spawn(_), Outcome::Value(child)) = (kind, outcome) {
            self.announced.extend(u64::try_from(child));
        }
        let waited = returned_ns
            .zip(at.time_ns)
            .map(|(end, start)| end.saturating_sub(start));
        tracker.call(&Call {
            task: at.task,
            name,
            start_ns: at.time_ns,
            duration_ns: result.duration_ns.or(waited).map(|time| time.max(0)),
            meanwhile: at.meanwhile,
            outcome,
            kind,
        })?;
        Ok(true)
    }

    fn finish(mut self, tracker: &mut Tracker, streams: &Streams) -> Clock {
        let first = streams.sources().first();
        if let (Some(cut), Some(source)) = (self.cut.take(), first) {
            // The log ends in the middle of a call.
            tracker.counts.strange(&source.name, cut.number, &cut.text);
        }
        for _ in self.halves.drain() {
            tracker.counts.halves.add("cut by the end of the log");
        }
        let mut clock = first.map(|source| source.reading.clock).unwrap_or_default();
        clock.durations = self.durations;
        tracker.counts.time_went_back = streams
            .sources()
            .iter()
            .map(|source| source.reading.went_back)
            .sum();
        clock
    }
}
