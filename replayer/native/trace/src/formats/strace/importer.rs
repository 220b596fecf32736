//! Lines become calls: each line is taken when its turn has come, halves are put together, tasks are told apart.

use crate::bytes::{find, from, take_digits};
use crate::call::{Call, Kind, LockChange, Outcome, TaskEvent};
use crate::error::TraceError;
use crate::formats::strace::decode::file::pointed;
use crate::formats::strace::decode::{Decoders, has_no_path};
use crate::formats::strace::deferred_lines::{Cause, DeferredLine, DeferredLines};
use crate::formats::strace::merged_logs::{LogLine, MergedLogs};
use crate::formats::strace::pid_namespaces::NamespacePids;
use crate::formats::strace::scan::{Scanned, Shape, is_tail, scan, scan_call, without_notice};
use crate::formats::strace::unfinished::{CallEntry, EnteredCall, UnfinishedCalls};
use crate::formats::{Clock, PROGRESS_LINES, Progress};
use crate::input::Input;
use crate::tracker::Tracker;
use crate::tracker::overlap::moves_names;
use rustc_hash::FxHashSet;

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

/// A line that program output or strace itself cut, until the next line tells.
#[derive(Debug)]
struct CutLine {
    text: Vec<u8>,
    at: LinePosition,
    number: u64,
    /// Strace wrote a notice into it: the next line is its rest, however that begins.
    by_notice: bool,
}

/// Who a line belongs to and when it was written.
#[derive(Debug, Clone, Copy)]
struct LinePosition {
    task: u64,
    time_ns: Option<i64>,
    /// Calls of others that have ended since.
    meanwhile: u32,
    /// The line, counted over all logs.
    line: u64,
}

#[derive(Default)]
struct StraceImporter {
    decoders: Decoders,
    unfinished: UnfinishedCalls,
    numbers: NamespacePids,
    /// Lines whose turn has not come.
    waiting: DeferredLines,
    cut: Option<CutLine>,
    /// Tasks that a line said to be children.
    announced: FxHashSet<u64>,
    /// The number that `[pid N]` gives to the task whose lines have none.
    first_number: Option<u64>,
    unnumbered: bool,
    durations: bool,
    /// The line that is being taken may wait for the call of another task: one that was put together from two cannot be taken once more.
    may_wait: bool,
    /// That line, counted over all logs.
    now: u64,
    /// The last line in which a call returned that gave a file another name, or none.
    moved: u64,
}

/// The task of lines that name none.
const UNNUMBERED: u64 = 0;

/// Where `_llseek` of i386 has moved to, which its result does not tell: `_llseek(3, 10, [10], SEEK_SET) = 0`.
fn position_of(call: &Scanned<'_>) -> Option<i64> {
    let has_moved = call.name == b"_llseek" && call.result.value == Some(0);
    has_moved.then(|| pointed(call.arg(2)))?
}

/// System calls that let something go, or make a task, before they return.
#[rustfmt::skip]
const EFFECTIVE_AT_ENTRY: [&[u8]; 11] = [
    b"close", b"clone", b"clone2", b"clone3", b"fork", b"vfork", b"accept", b"accept4", b"flock", b"fcntl", b"fcntl64",
];

impl StraceImporter {
    fn new() -> Self {
        Self {
            may_wait: true,
            ..Self::default()
        }
    }

    /// Take a line. False where it cannot be understood.
    fn line(&mut self, tracker: &mut Tracker, line: &LogLine<'_>) -> Result<bool, TraceError> {
        self.now = line.turn;
        if line.too_long {
            return Ok(false);
        }
        if self.cut.is_some() && self.join(tracker, line)? {
            return Ok(true);
        }
        let at = LinePosition {
            task: self.task(line.task),
            time_ns: line.time_ns,
            meanwhile: 0,
            line: line.turn,
        };
        let text = line.text;
        let mut scanned = Scanned::default();
        match scan(text, &mut scanned) {
            Shape::Call => {
                self.forget_unfinished(tracker, at.task);
                return self.call(tracker, &scanned, at, None);
            }
            Shape::Unfinished { name, head } => self.begin(tracker, name, head, at)?,
            Shape::Resumed { name, rest } => return self.resume(tracker, name, rest, at),
            Shape::Exited => {
                tracker.counts.notices += 1;
                if self.unfinished.end(at.task) {
                    tracker.counts.cut_calls.add("cut by the end of its task");
                }
                tracker.pass(at.task, TaskEvent::Exited, at.time_ns)?;
            }
            Shape::Superseded(by) => {
                tracker.counts.notices += 1;
                self.unfinished.supersede(at.task, by);
                tracker.pass(at.task, TaskEvent::Superseded(by), at.time_ns)?;
            }
            Shape::Forked(child) => {
                tracker.counts.notices += 1;
                tracker.spawned_early(child, Some(at.task));
            }
            Shape::Delayed(ns) => {
                tracker.counts.notices += 1;
                if let Some(task) = tracker.tasks.get_mut(at.task) {
                    task.was_delayed(i64::try_from(ns).unwrap_or(i64::MAX));
                }
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
                    number: line.number,
                    by_notice: notice.is_some(),
                });
            }
            Shape::Strange => return Ok(false),
        }
        Ok(true)
    }

    /// Whose line it is. Lines without a number belong to the first task, which may get a number later on.
    fn task(&mut self, told: Option<u64>) -> u64 {
        match told {
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
    fn join(&mut self, tracker: &mut Tracker, line: &LogLine<'_>) -> Result<bool, TraceError> {
        let Some(cut) = self.cut.take() else {
            return Ok(false);
        };
        let is_tail = is_tail(line.whole);
        if is_tail || cut.by_notice {
            let whole = [&cut.text, line.whole].concat();
            let mut scanned = Scanned::default();
            let understood = match scan(&whole, &mut scanned) {
                Shape::Call => {
                    self.forget_unfinished(tracker, cut.at.task);
                    self.call(tracker, &scanned, cut.at, None)?
                }
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
                tracker.counts.strange(line.name, cut.number, &whole);
                return Ok(true);
            }
        }
        tracker.counts.strange(line.name, cut.number, &cut.text);
        Ok(false)
    }

    fn begin(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        head: &[u8],
        at: LinePosition,
    ) -> Result<(), TraceError> {
        self.forget_unfinished(tracker, at.task);
        let lock = if EFFECTIVE_AT_ENTRY.contains(&name) {
            self.enter(tracker, name, head, at)?
        } else {
            None
        };
        let entry = CallEntry {
            start_ns: at.time_ns,
            calls: tracker.counts.calls,
            line: at.line,
            tries_lock: lock == Some(LockChange::Try),
        };
        self.unfinished.begin(at.task, (name, head), entry);
        if lock == Some(LockChange::Free) && self.unfinished.try_lock() {
            self.unfinished.defer(at.task);
        }
        Ok(())
    }

    /// A task has a lock: what others let go meanwhile, they let go before.
    fn let_go_of_locks(&mut self, tracker: &mut Tracker) -> Result<(), TraceError> {
        for task in self.unfinished.take_deferred() {
            if let Some(half) = self.unfinished.of(task) {
                half.entered(task)
                    .call(&mut self.decoders, |call| tracker.enter(call))
                    .unwrap_or(Ok(()))?;
            }
        }
        Ok(())
    }

    /// A task makes another call: the return of the one before is missing in the log.
    fn forget_unfinished(&mut self, tracker: &mut Tracker, task: u64) {
        if self.unfinished.end(task) {
            tracker.counts.cut_calls.add("never resumed");
            tracker.forget_entered(task);
        }
    }

    /// Take a call that has been entered, unless it lets a lock go while others try to have one. Returns what it does to a lock.
    fn enter(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        head: &[u8],
        at: LinePosition,
    ) -> Result<Option<LockChange>, TraceError> {
        tracker.overlaps.names_move = self.names_move(at.line);
        let entered = EnteredCall {
            name,
            head,
            task: at.task,
            start_ns: at.time_ns,
        };
        let others_try = self.unfinished.try_lock();
        let taken = entered.call(&mut self.decoders, |call| {
            let lock = call.kind.change_of_lock();
            if lock != Some(LockChange::Free) || !others_try {
                tracker.enter(call)?;
            }
            Ok(lock)
        });
        taken.unwrap_or(Ok(None))
    }

    /// Put two halves together. False where the line cannot be understood.
    fn resume(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        rest: &[u8],
        at: LinePosition,
    ) -> Result<bool, TraceError> {
        let Some(mut half) = self.unfinished.take(at.task, name) else {
            self.forget_unfinished(tracker, at.task);
            return self.orphan(tracker, name, rest, at);
        };
        let cause = self.waiting.cause();
        let length = half.head.len();
        half.head.extend_from_slice(rest);
        let begun = LinePosition {
            task: at.task,
            time_ns: half.start_ns,
            meanwhile: u32::try_from(tracker.counts.calls - half.calls).unwrap_or(u32::MAX),
            line: half.entered,
        };
        let mut scanned = Scanned::default();
        let understood = match scan_call(name, &half.head, &mut scanned) {
            Shape::Call => self.call(tracker, &scanned, begun, at.time_ns)?,
            _ => false,
        };
        if self.waiting.cause() == cause {
            self.unfinished.spare(half);
        } else {
            half.head.truncate(length);
            half.waits = true;
            self.unfinished.put_back(at.task, half);
        }
        Ok(understood)
    }

    /// The first half lies before the log. What it connects is still known.
    fn orphan(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        rest: &[u8],
        at: LinePosition,
    ) -> Result<bool, TraceError> {
        let mut scanned = Scanned::default();
        let Shape::Call = scan_call(name, rest, &mut scanned) else {
            return Ok(false);
        };
        tracker.counts.cut_calls.add("begun before the log");
        // Its time is that of its return: how long it had waited before does not follow.
        scanned.result.duration_ns = None;
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
        at: LinePosition,
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
        let outcome = match position_of(scanned) {
            Some(position) => Outcome::Value(position),
            None => self.numbers.outcome(at.task, kind, result),
        };
        if let (Kind::Spawn(_), Outcome::Value(child)) = (kind, outcome) {
            self.announced.extend(u64::try_from(child));
        }
        let waited = returned_ns
            .zip(at.time_ns)
            .map(|(end, start)| end.saturating_sub(start));
        let call = Call {
            task: at.task,
            name,
            start_ns: at.time_ns,
            duration_ns: result.duration_ns.or(waited).map(|time| time.max(0)),
            meanwhile: at.meanwhile,
            outcome,
            kind,
        };
        tracker.overlaps.names_move = self.names_move(at.line);
        if kind.has_lock() && outcome.is_ok() {
            self.let_go_of_locks(tracker)?;
        }
        if let Some(cause) = self.cause(tracker, &call) {
            self.waiting.begin(cause);
        } else {
            let is_among = self.unfinished.may_show();
            tracker.note_overlap(&call, (at.line, self.now), is_among);
            if moves_names(scanned.name) {
                self.moved = self.moved.max(self.now);
            }
            tracker.call(&call)?;
        }
        Ok(true)
    }

    /// Whether files were given other names when a call was entered in this line.
    fn names_move(&self, entered: u64) -> bool {
        self.unfinished.move_names() || self.moved > entered
    }

    /// The task whose call, under way, must have taken effect before this one.
    fn cause(&mut self, tracker: &mut Tracker, call: &Call<'_>) -> Option<Cause> {
        let is_awaited = |cause| cause == call.task;
        if !self.may_wait || !self.waiting.cause().is_none_or(is_awaited) {
            return None;
        }
        if let Some(sooner) = tracker.overlaps.orders.before(self.now) {
            let mut sooner = sooner.iter();
            let next = sooner.find(|&&(task, entered)| self.unfinished.is_in(task, entered));
            return next.map(|&(task, _)| Cause::Ordered(task));
        }
        let others: Vec<_> = self.unfinished.awaitable().collect();
        others.first()?;
        let wanting = tracker.wanting(call)?;
        others
            .into_iter()
            .find(|(task, half)| {
                let entered = half.entered(*task);
                let explains = |other: &Call<'_>| tracker.explains(other, &wanting);
                entered.call(&mut self.decoders, explains) == Some(true)
            })
            .map(|(task, _)| Cause::Guessed(task))
    }

    fn finish(mut self, tracker: &mut Tracker, streams: &MergedLogs) -> Clock {
        let first = streams.sources().first();
        if let (Some(cut), Some(source)) = (self.cut.take(), first) {
            // The log ends in the middle of a call.
            tracker.counts.strange(&source.name, cut.number, &cut.text);
        }
        let overlaps = &mut tracker.overlaps;
        if let Some(search) = &mut overlaps.search {
            search.end(&tracker.tree.paths);
        }
        let unexplained = overlaps.orders.unexplained;
        for _ in 0..self.unfinished.count() {
            tracker.counts.cut_calls.add("cut by the end of the log");
        }
        for source in streams.sources() {
            tracker.counts.lines += source.passed_over;
            tracker.counts.notices += source.passed_over;
        }
        let blind = &mut tracker.counts.blind;
        blind.add_all(
            "results of overlapping calls that no order explains",
            unexplained,
        );
        blind.add_all("tasks in an order that is a guess", streams.unordered);
        blind.add_all("files of a task whose day is a guess", streams.days_guessed);
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
        self.may_wait = is_whole;
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
