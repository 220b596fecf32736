//! Records as lines, in the order in which calls were entered and returned.

use super::attached::THREAD;
use super::lanes::Lanes;
use super::pages::Touched;
use super::record::{BEGUN_BEFORE, IN_CALL, Record, RecordKind};
use super::source::Records;
use super::survey::{LONG_NS, Survey};
use super::table::{asks, call_of, executes, executes_at, name_of};
use super::words::{Part, write_args, write_result};
use crate::bytes::from;
use crate::error::TraceError;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Error, Read, Write};

/// So far are records read ahead: one that ended sooner may stand behind (chosen: a processor that was taken away in between).
const AHEAD_NS: u64 = 2 * LONG_NS;

/// A record until its last line is written.
#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    /// Whose line its entry is: before an execve in a thread, not that of the record.
    entered_by: u32,
    /// Other lines came between its entry and its return.
    is_unfinished: bool,
    /// It is told by another one.
    is_void: bool,
    /// Pages that it tells of, with those of later records.
    touched: Option<Touched>,
}

/// The entry or the return of a call, or what is no call: when, its turn among those of one time, whether it is a return, its slot.
type Half = (u64, u64, bool, usize);

/// The lines of a recording, as a stream of text.
pub(super) struct LogText {
    records: Records,
    survey: Survey,
    slots: Vec<Slot>,
    free: Vec<usize>,
    halves: BinaryHeap<Reverse<Half>>,
    /// The latest end that was read.
    newest_ns: u64,
    has_ended: bool,
    turns: u64,
    /// The next one of those that took long.
    long: usize,
    /// Pages that tasks touched last, outside of calls; nothing else came since.
    last_touched: FxHashMap<u32, usize>,
    /// Pages that tasks have touched in the call that they are in.
    touched_in_call: FxHashMap<u32, Vec<Touched>>,
    /// Those whose entry is there, by task.
    open: FxHashMap<u32, usize>,
    /// Tasks that were made in a call that has not returned, by who made them.
    made: FxHashMap<u32, u32>,
    /// What tasks execute, and their numbers before.
    programs: FxHashMap<u32, (u32, Vec<u8>)>,
    lanes: Lanes,
    /// The lanes that are there, by who submits to them.
    live_lanes: FxHashMap<u32, Vec<u32>>,
    /// Lanes whose requests are complete since who submitted them has waited.
    complete: FxHashMap<u32, Vec<u32>>,
    text: Vec<u8>,
    at: usize,
}

impl LogText {
    pub(super) fn of(records: Records, survey: Survey) -> Self {
        let mut text = Self {
            records,
            survey,
            slots: Vec::new(),
            free: Vec::new(),
            halves: BinaryHeap::new(),
            newest_ns: 0,
            has_ended: false,
            turns: 0,
            long: 0,
            last_touched: FxHashMap::default(),
            touched_in_call: FxHashMap::default(),
            open: FxHashMap::default(),
            made: FxHashMap::default(),
            programs: FxHashMap::default(),
            lanes: Lanes::default(),
            live_lanes: FxHashMap::default(),
            complete: FxHashMap::default(),
            text: Vec::new(),
            at: 0,
        };
        text.survey
            .attached
            .write(&mut text.text, text.records.offset_ns);
        text
    }

    fn keep(&mut self, bytes: &[u8], task: u32) -> usize {
        let place = self.free.pop().unwrap_or(self.slots.len());
        if place == self.slots.len() {
            self.slots.push(Slot::default());
        }
        if let Some(slot) = self.slots.get_mut(place) {
            slot.bytes.clear();
            slot.bytes.extend_from_slice(bytes);
            slot.entered_by = task;
            slot.is_unfinished = false;
            slot.is_void = false;
            slot.touched = None;
        }
        place
    }

    fn push(&mut self, time_ns: u64, is_return: bool, slot: usize) {
        self.turns += 1;
        self.halves
            .push(Reverse((time_ns, self.turns, is_return, slot)));
    }

    /// Read records until none that comes can be before the first that is there.
    fn read_ahead(&mut self) -> Result<(), TraceError> {
        loop {
            let first = self.halves.peek().map(|Reverse((time_ns, ..))| *time_ns);
            let is_ahead =
                first.is_some_and(|first| first.saturating_add(AHEAD_NS) < self.newest_ns);
            if self.has_ended || is_ahead {
                return Ok(());
            }
            let Some(bytes) = self.records.next_record()? else {
                self.has_ended = true;
                self.enter_long(u64::MAX);
                return Ok(());
            };
            self.lanes.place(bytes);
            let bytes = bytes.to_vec();
            let Some(record) = Record::read(&bytes) else {
                continue;
            };
            self.newest_ns = self.newest_ns.max(record.end_ns());
            self.enter_long(self.newest_ns);
            self.take(&bytes, &record);
        }
    }

    /// The entries of calls that took long, as far as records were read.
    fn enter_long(&mut self, until_ns: u64) {
        while let Some(call) = self.survey.long.get_mut(self.long) {
            if call.start_ns > until_ns {
                return;
            }
            self.long += 1;
            let (start_ns, bytes) = (call.start_ns, std::mem::take(&mut call.bytes));
            let Some(record) = Record::read(&bytes) else {
                continue;
            };
            let slot = self.keep(&bytes, record.task);
            self.open.insert(record.task, slot);
            self.push(start_ns, false, slot);
        }
    }

    fn take(&mut self, bytes: &[u8], record: &Record<'_>) {
        let task = record.task;
        if record.kind == RecordKind::Page {
            return self.take_page(bytes, record);
        }
        self.last_touched.remove(&task);
        match record.kind {
            RecordKind::Call => {
                let open = self
                    .open
                    .get(&task)
                    .copied()
                    .filter(|_| record.duration_ns >= LONG_NS);
                let slot = open.unwrap_or_else(|| self.keep(bytes, task));
                if open.is_some() {
                    self.open.remove(&task);
                } else if record.flags & BEGUN_BEFORE == 0 {
                    self.push(record.start_ns, false, slot);
                }
                if has_executed(record)
                    && let (Some((before, _)), Some(slot)) =
                        (self.programs.get(&task), self.slots.get_mut(slot))
                {
                    slot.entered_by = *before;
                }
                self.push(record.end_ns(), true, slot);
                self.tell_touched_in_call(bytes, record);
            }
            RecordKind::Exec => {
                let before = u32::try_from(record.number_at(0)).unwrap_or(task);
                if before != task {
                    self.void_exit(task);
                }
                self.programs.insert(task, (before, record.path.to_vec()));
                let slot = self.keep(bytes, task);
                self.push(record.start_ns, false, slot);
            }
            RecordKind::Fork | RecordKind::Exit | RecordKind::Delayed => {
                let slot = self.keep(bytes, task);
                self.push(record.start_ns, false, slot);
            }
            RecordKind::End => self.has_ended = true,
            // A request has become a call.
            RecordKind::Pending
            | RecordKind::Attached
            | RecordKind::File
            | RecordKind::Looked
            | RecordKind::Page
            | RecordKind::Request => {}
        }
    }

    /// Pages that a call touched are told behind it; others when they were touched.
    fn take_page(&mut self, bytes: &[u8], record: &Record<'_>) {
        let (task, touched) = (record.task, Touched::of(record));
        if record.number_at(5) & IN_CALL != 0 {
            let before = self.touched_in_call.entry(task).or_default();
            if !before.last_mut().is_some_and(|last| last.join(&touched)) {
                before.push(touched);
            }
            return;
        }
        let last = self.last_touched.get(&task);
        let last = last.and_then(|&slot| self.slots.get_mut(slot)?.touched.as_mut());
        if !last.is_some_and(|last| last.join(&touched)) {
            let slot = self.tell_touched(bytes, task, touched);
            self.last_touched.insert(task, slot);
        }
    }

    fn tell_touched(&mut self, bytes: &[u8], task: u32, touched: Touched) -> usize {
        let slot = self.keep(bytes, task);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.touched = Some(touched);
        }
        self.push(touched.start_ns, false, slot);
        slot
    }

    /// The time is the call's. An mmap that touches its pages is replayed as one that does.
    fn tell_touched_in_call(&mut self, bytes: &[u8], record: &Record<'_>) {
        let touched = self.touched_in_call.remove(&record.task);
        let maps = call_of(record).is_some_and(|call| matches!(call.name, "mmap" | "mmap2"));
        for touched in touched.into_iter().flatten().filter(|_| !maps) {
            self.tell_touched(bytes, record.task, touched.at(record.end_ns()));
        }
    }

    /// A thread takes the number of the first one of its process, which has not ended for those who look at processes.
    fn void_exit(&mut self, task: u32) {
        let slots = self.halves.iter().map(|Reverse((.., slot))| *slot);
        let ended = slots.filter(|&slot| {
            let record = self
                .slots
                .get(slot)
                .and_then(|slot| Record::read(&slot.bytes));
            record.is_some_and(|record| record.kind == RecordKind::Exit && record.task == task)
        });
        let ended: Vec<usize> = ended.collect();
        for slot in ended {
            if let Some(slot) = self.slots.get_mut(slot) {
                slot.is_void = true;
            }
        }
    }

    /// Write the next lines. False behind the last.
    fn write(&mut self) -> Result<bool, TraceError> {
        self.read_ahead()?;
        let Some(Reverse((time_ns, _, is_return, place))) = self.halves.pop() else {
            return Ok(false);
        };
        if self.survey.end_ns.is_some_and(|end_ns| time_ns >= end_ns) {
            return Ok(false);
        }
        let Some(slot) = self.slots.get_mut(place).map(std::mem::take) else {
            return Ok(true);
        };
        let mut is_done = true;
        if let Some(record) = Record::read(&slot.bytes).filter(|_| !slot.is_void) {
            is_done = match (record.kind, &slot.touched) {
                (_, Some(touched)) => {
                    self.write_touched(record.task, touched, place);
                    true
                }
                (RecordKind::Call | RecordKind::Pending, None) if is_return => {
                    self.write_return(&record, &slot, time_ns);
                    true
                }
                (RecordKind::Call | RecordKind::Pending, None) => {
                    self.write_entry(&record, &slot, time_ns, place)
                }
                _ => {
                    self.write_passing(&record, time_ns);
                    true
                }
            };
        }
        if is_done {
            self.free.push(place);
        }
        if let Some(kept) = self.slots.get_mut(place) {
            *kept = Slot {
                is_unfinished: !is_done,
                ..slot
            };
        }
        Ok(true)
    }

    fn write_front(&mut self, task: u32, time_ns: u64) {
        let wall_ns = i64::try_from(time_ns)
            .unwrap_or(i64::MAX)
            .saturating_add(self.records.offset_ns);
        let (seconds, part) = (wall_ns / 1_000_000_000, wall_ns % 1_000_000_000);
        let _ = write!(self.text, "{task} {seconds}.{part:09} ");
    }

    fn write_touched(&mut self, task: u32, touched: &Touched, place: usize) {
        if self.last_touched.get(&task) == Some(&place) {
            self.last_touched.remove(&task);
        }
        self.write_front(task, touched.start_ns);
        touched.write(&mut self.text);
    }

    /// Write a call from its entry on. Whether all of it is written.
    fn write_entry(
        &mut self,
        record: &Record<'_>,
        slot: &Slot,
        time_ns: u64,
        place: usize,
    ) -> bool {
        self.make_lanes(slot.entered_by, time_ns);
        if let Some(submitter) = self.lanes.submitter(record.task) {
            self.write_front(record.task, time_ns);
            let _ = writeln!(self.text, "follows({submitter}) = 0 <0.000000000>");
        }
        if record.probe_ns > 0 {
            self.write_delay(slot.entered_by, time_ns, record.probe_ns.into());
        }
        self.write_front(slot.entered_by, time_ns);
        let next = self.halves.peek();
        let is_whole = next
            .is_some_and(|Reverse((.., is_return, next))| *is_return && *next == place)
            && slot.entered_by == record.task;
        let Some(call) = call_of(record) else {
            let _ = writeln!(self.text, "unknown( <unfinished ...>");
            return false;
        };
        let _ = write!(self.text, "{}(", name_of(call, record));
        if !is_whole {
            if record.kind == RecordKind::Call {
                write_args(&mut self.text, call, record, Part::Entry);
            }
            let _ = writeln!(self.text, " <unfinished ...>");
            return false;
        }
        self.halves.pop();
        self.write_rest(record, Part::All);
        true
    }

    fn write_return(&mut self, record: &Record<'_>, slot: &Slot, time_ns: u64) {
        self.write_front(record.task, time_ns);
        let Some(call) = call_of(record) else {
            return;
        };
        if record.flags & BEGUN_BEFORE != 0 {
            // All of it is there but its begin.
            let _ = write!(self.text, "{}(", name_of(call, record));
            self.write_rest(record, Part::All);
            return;
        }
        let _ = write!(self.text, "<... {} resumed>", name_of(call, record));
        let part = if slot.is_unfinished {
            Part::Return
        } else {
            Part::All
        };
        self.write_rest(record, part);
    }

    /// The arguments and the result.
    fn write_rest(&mut self, record: &Record<'_>, part: Part) {
        let Some(call) = call_of(record) else {
            return;
        };
        let program = has_executed(record)
            .then(|| self.programs.remove(&record.task))
            .flatten();
        match &program {
            Some((_, path)) => {
                let flags = 0;
                let known = Record {
                    path: path_in(path, record.number),
                    flags,
                    ..*record
                };
                write_args(&mut self.text, call, &known, part);
            }
            None => write_args(&mut self.text, call, record, part),
        }
        let makes = matches!(call.name, "clone" | "clone3" | "fork" | "vfork");
        let made = makes.then(|| self.made.remove(&record.task)).flatten();
        write_result(&mut self.text, record, made.filter(|_| record.result > 0));
        if let Some(submitter) = self.lanes.submitter(record.task) {
            let complete = self.complete.entry(submitter).or_default();
            complete.retain(|&lane| lane != record.task);
            complete.push(record.task);
        } else if asks(call) {
            self.reap(record);
        }
    }

    /// Write which requests are complete when a call that waits for some returns: the first of them takes its time.
    fn reap(&mut self, record: &Record<'_>) {
        let mut duration_ns = record.duration_ns;
        for lane in self.complete.remove(&record.task).unwrap_or_default() {
            self.write_front(record.task, record.end_ns());
            let (seconds, part) = (duration_ns / 1_000_000_000, duration_ns % 1_000_000_000);
            let _ = writeln!(self.text, "follows({lane}) = 0 <{seconds}.{part:09}>");
            duration_ns = 0;
        }
    }

    /// Write that a task has lanes, before its first call.
    fn make_lanes(&mut self, task: u32, time_ns: u64) {
        while let Some(lanes) = self.survey.lanes.get_mut(&task)
            && let Some(&(since_ns, lane)) = lanes.front()
            && since_ns <= time_ns
        {
            lanes.pop_front();
            self.write_front(task, time_ns);
            let _ = writeln!(self.text, "clone(0x{THREAD:x}) = {lane} <0.000000000>");
            self.live_lanes.entry(task).or_default().push(lane);
        }
    }

    /// Write that the lanes of a task have ended.
    fn end_lanes(&mut self, task: u32, time_ns: u64) {
        for lane in self.live_lanes.remove(&task).unwrap_or_default() {
            self.write_front(lane, time_ns);
            let _ = writeln!(self.text, "+++ exited with 0 +++");
        }
        self.complete.remove(&task);
    }

    /// Write that so much of the time since a task's last call was no pause of its own.
    fn write_delay(&mut self, task: u32, time_ns: u64, ns: u64) {
        self.write_front(task, time_ns);
        let _ = writeln!(self.text, "+++ delayed {ns} +++");
    }

    /// Write what happened to a task.
    fn write_passing(&mut self, record: &Record<'_>, time_ns: u64) {
        match record.kind {
            RecordKind::Fork => {
                let child = u32::try_from(record.number_at(0)).unwrap_or(0);
                self.made.insert(record.task, child);
                self.write_front(record.task, time_ns);
                let _ = writeln!(self.text, "+++ forked {child} +++");
            }
            RecordKind::Delayed => {
                let again_ns = self
                    .survey
                    .cpu_use
                    .comes_again(record.number_at(0), time_ns);
                self.write_delay(record.task, time_ns, again_ns);
            }
            RecordKind::Exit => {
                self.end_lanes(record.task, time_ns);
                self.write_front(record.task, time_ns);
                let (signal, code) = (record.result & 0x7f, record.result >> 8 & 0xff);
                let _ = match signal {
                    0 => writeln!(self.text, "+++ exited with {code} +++"),
                    _ => writeln!(self.text, "+++ killed by signal {signal} +++"),
                };
                self.made.remove(&record.task);
                self.programs.remove(&record.task);
            }
            RecordKind::Exec => {
                let before = record.number_at(0);
                self.end_lanes(record.task, time_ns);
                if before != u64::from(record.task) {
                    self.write_front(record.task, time_ns);
                    let _ = writeln!(self.text, "+++ superseded by execve in pid {before} +++");
                }
            }
            _ => {}
        }
    }
}

/// Whether a call has put another program in its caller's place.
fn has_executed(record: &Record<'_>) -> bool {
    executes(record.number) && record.result == 0
}

/// The path of a program that was executed: behind a descriptor, the kernel names it `/dev/fd/N/PATH`.
fn path_in(path: &[u8], number: u16) -> &[u8] {
    let relative = path
        .strip_prefix(b"/dev/fd/")
        .filter(|_| executes_at(number));
    match relative {
        Some(rest) => memchr::memchr(b'/', rest).map_or(&[], |at| from(rest, at + 1)),
        None => path,
    }
}

impl Read for LogText {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        const AT_ONCE: usize = 64 << 10;
        while self.at == self.text.len() {
            self.text.clear();
            self.at = 0;
            while self.text.len() < AT_ONCE {
                if !self.write().map_err(Error::other)? {
                    break;
                }
            }
            if self.text.is_empty() {
                return Ok(0);
            }
        }
        let rest = from(&self.text, self.at);
        let count = rest.len().min(buffer.len());
        for (to, byte) in buffer.iter_mut().zip(rest) {
            *to = *byte;
        }
        self.at += count;
        Ok(count)
    }
}
