//! Batches: scheduled calls of events, dealt to lanes, with what they wait for and what they returned when they were recorded.

use super::clock::{Clock, Stamp, Timed, positive};
use super::schedule::Schedule;
use super::slots::LaneRow;
use super::translator::{Translator, is_denied_change};
use super::tree_state::Inherited;
use super::waits::Waits;
use crate::replay::program::{CallBatch, Lane, Recorded, ReplayCall, ScheduledCall, Slot, Wait};
use replayer_ops::{Contents, Flag};
use replayer_trace::{Event, Op};

/// Scheduled calls of a batch (chosen: 3.5 MiB).
const BATCH_CALLS: usize = 32 << 10;
/// Waits and bytes of texts after which a batch ends, whatever it holds (chosen).
const CHUNK_WAITS: usize = 256 << 10;
const CHUNK_TEXTS: usize = 4 << 20;

/// Takes the events of a replay program in the order of rows, and gives batches.
pub(crate) struct BatchBuilder<'a> {
    schedule: &'a Schedule,
    translator: Translator<'a>,
    clock: Clock,
    waits: Waits,
    lanes: Vec<Vec<ScheduledCall>>,
    /// Lanes that have had a scheduled call.
    begun: Vec<bool>,
    /// When the last event of each lane ends.
    ends: Vec<Option<u64>>,
    scheduled: usize,
    batch_waits: Vec<Wait>,
}

/// The event that kept a thread waiting.
#[derive(Clone, Copy)]
struct Kept {
    by: Wait,
    end_ns: u64,
    /// The think time since.
    after_ns: u64,
}

/// What the whole replay program needs, known when all its events have been seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    pub(crate) slots: Slot,
    pub(crate) read_bytes: u64,
}

impl<'a> BatchBuilder<'a> {
    pub(crate) fn new(schedule: &'a Schedule) -> Self {
        let mut translator = Translator::new(&schedule.path_map, &schedule.table, schedule.users);
        translator.begin_special();
        let lanes = usize::from(schedule.lanes.count);
        Self {
            translator,
            clock: Clock::new(schedule.begin_ns, schedule.calibration.call_ns),
            waits: schedule.waits(),
            lanes: vec![Vec::new(); lanes],
            begun: vec![false; lanes],
            ends: vec![None; lanes],
            scheduled: 0,
            batch_waits: Vec::new(),
            schedule,
        }
    }

    /// Take an event and the rows that the trace says it waits for; it is left out if it is none of the replay program's.
    pub(crate) fn push(&mut self, row: u64, event: &Event, earlier: &[u64]) {
        let kept = self.kept(event);
        // By what is none of the replay program, or far back, it is kept as long as it was.
        let unknown_ns = event.after_ns.filter(|_| kept.is_none());
        let pause_ns = event.gap_ns.max(unknown_ns.unwrap_or(0));
        let (Some(lane), Some(gap_ns)) = (
            self.schedule.lanes.of(event.thread),
            self.schedule.part.pause(row, event, pause_ns),
        ) else {
            return;
        };
        self.begin(lane, row);
        self.translator.waits.clear();
        let call = self.translator.call((lane, row), event);
        let stamp = Stamp {
            start: event.start_ns,
            duration: event.duration_ns,
            gap: gap_ns,
            kept_until: kept.map(|kept| kept.end_ns.saturating_add(kept.after_ns)),
        };
        let timed = self.clock.time(event.thread, stamp);
        let last_ns = self.ends.get(usize::from(lane)).copied().flatten();
        // What ended before the lane's own last event is not waited for: the pause counts from there.
        let waited = kept.filter(|kept| last_ns.is_none_or(|last_ns| kept.end_ns > last_ns));
        let first = waited.map(|kept| kept.by);
        let waits = self.wait((lane, row), earlier, first);
        let gap_ns = match (kept, waited, last_ns) {
            (None, ..) => self.gap_after_waits(gap_ns, timed),
            (_, None, Some(last_ns)) => timed.start_ns.saturating_sub(last_ns),
            _ if timed.is_first => 0,
            _ => gap_ns,
        };
        if let Some(end) = self.ends.get_mut(usize::from(lane)) {
            *end = Some(timed.end_ns);
        }
        let (recorded, calibration) = (self.recorded(event), self.schedule.calibration);
        self.waits.plays((lane, row), timed.end_ns);
        self.put(
            lane,
            ScheduledCall {
                row,
                thread: event.thread,
                start_ns: timed.start_ns,
                gap_ns: calibration.pause(gap_ns),
                after_ns: calibration.pause(waited.map_or(0, |kept| kept.after_ns)),
                recorded,
                waits,
                call,
            },
        );
    }

    /// The think time before an event whose waits were just found, and of which the trace does not say what of it came after these. That of a thread's first one may count from before what it waits
    /// for: what comes after that is left of it.
    fn gap_after_waits(&self, gap_ns: u64, timed: Timed) -> u64 {
        let waited = timed.is_first.then(|| self.waits.found_end_ns()).flatten();
        waited.map_or(gap_ns, |end_ns| {
            gap_ns.min(timed.start_ns.saturating_sub(end_ns))
        })
    }

    fn recorded(&self, event: &Event) -> Recorded {
        let recorded = returned(event);
        let rewritten =
            self.translator.rewrites || self.schedule.path_map.rewrites || event.text.is_some();
        let listed = event.file.and_then(|file| self.translator.slots.path(file));
        match recorded {
            // Other users' entries come and go there.
            Recorded::Exactly(_) if event.op == Op::Getdents && self.schedule.users > 1 => {
                let crowded = listed.is_some_and(|row| self.schedule.path_map.is_crowded(row));
                if crowded { Recorded::Well } else { recorded }
            }
            // The suffix makes the text longer, and so may what leads to its target inside of the trace.
            Recorded::Exactly(_) if rewritten && event.op == Op::Readlink => Recorded::Well,
            recorded => recorded,
        }
    }

    /// What an event waits for; first of all, if there is one, that from whose end on its pause counts.
    fn wait(&mut self, lane_row: LaneRow, earlier: &[u64], first: Option<Wait>) -> (u32, u32) {
        let found = self.waits.of(lane_row, earlier, &self.translator.waits);
        let begin = self.batch_waits.len();
        self.batch_waits.extend(first);
        let others = found.iter().filter(|wait| Some(**wait) != first);
        self.batch_waits.extend(others);
        let count = self.batch_waits.len() - begin;
        (
            u32::try_from(begin).unwrap_or(0),
            u32::try_from(count).unwrap_or(0),
        )
    }

    /// What kept an event's thread waiting, if that is one of the replay program's.
    fn kept(&self, event: &Event) -> Option<Kept> {
        let row = event.after?;
        let (lane, end_ns) = self.waits.kept_by(row)?;
        Some(Kept {
            by: Wait { lane, row },
            end_ns,
            after_ns: event.after_ns.map_or(0, positive),
        })
    }

    /// The first scheduled calls of a lane open what it was open before.
    fn begin(&mut self, lane: Lane, row: u64) {
        let Some(begun) = self.begun.get_mut(usize::from(lane)) else {
            return;
        };
        if std::mem::replace(begun, true) {
            return;
        }
        let schedule = self.schedule;
        let of_lane = |held: &&Inherited| schedule.lanes.of(held.thread) == Some(lane);
        for held in schedule.inherited.iter().filter(of_lane) {
            // The row before is another's, or an earlier one of this lane: a wait for it does not end too early.
            let lane_row = (lane, row.saturating_sub(1));
            let call = self.translator.inherit(lane_row, held);
            self.put(lane, silent(lane_row.1, held.thread, call));
        }
    }

    fn put(&mut self, lane: Lane, scheduled: ScheduledCall) {
        if let Some(calls) = self.lanes.get_mut(usize::from(lane)) {
            calls.push(scheduled);
            self.scheduled += 1;
        }
    }

    /// Whether it is time to take a batch.
    pub(crate) fn is_full(&self) -> bool {
        self.scheduled >= BATCH_CALLS
            || self.batch_waits.len() >= CHUNK_WAITS
            || self.translator.texts.len() >= CHUNK_TEXTS
    }

    /// What has been gathered since the last batch; `None` if that is nothing.
    pub(crate) fn take(&mut self) -> Option<CallBatch> {
        if self.scheduled == 0 {
            return None;
        }
        self.scheduled = 0;
        let lanes = self.lanes.iter_mut();
        Some(CallBatch {
            lanes: lanes
                .map(|scheduled| std::mem::take(scheduled).into_boxed_slice())
                .collect(),
            waits: std::mem::take(&mut self.batch_waits).into_boxed_slice(),
            texts: std::mem::take(&mut self.translator.texts).into_boxed_slice(),
        })
    }

    pub(crate) fn needs(&self) -> Needs {
        Needs {
            slots: self.translator.slots.count,
            read_bytes: self.translator.read_bytes,
        }
    }
}

fn silent(row: u64, thread: u32, call: ReplayCall) -> ScheduledCall {
    ScheduledCall {
        row,
        thread,
        start_ns: 0,
        gap_ns: 0,
        after_ns: 0,
        recorded: Recorded::Unknown,
        waits: (0, 0),
        call,
    }
}

/// Errnos end here (errno.h of Linux, `MAX_ERRNO`).
const MOST_ERRNO: i64 = 4095;

/// What the call returned, where a number is, and can be compared.
pub(super) fn returned(event: &Event) -> Recorded {
    if event.op.is(Flag::untimed) {
        return Recorded::Unknown;
    }
    if event.result < 0 {
        return match i32::try_from(-event.result.max(-MOST_ERRNO - 1)) {
            Ok(errno) if is_denied_change(event) => Recorded::Denied(errno),
            Ok(errno) if i64::from(errno) <= MOST_ERRNO => Recorded::Error(errno),
            _ => Recorded::Unknown,
        };
    }
    if event.op == Op::Getdents {
        let entries = event
            .entries
            .and_then(|entries| u64::try_from(entries).ok());
        // Where the log does not say how many there were, it went well all the same.
        return entries.map_or(Recorded::Well, Recorded::Exactly);
    }
    let number = u64::try_from(event.result).unwrap_or(0);
    if returns_a_number(event.op) {
        Recorded::Exactly(number)
    } else {
        Recorded::Well
    }
}

fn returns_a_number(op: Op) -> bool {
    matches!(
        op.contents(),
        Contents::Reads | Contents::Writes | Contents::Copies
    ) || matches!(
        op,
        Op::Lseek | Op::Readlink | Op::Getxattr | Op::Lgetxattr | Op::Fgetxattr
    )
}
