//! A first look through a recording: calls that took long, what was open at its begin, and where it ends.

use super::attached::Attachments;
use super::delays::CpuUse;
use super::lanes::Lanes;
use super::record::{Record, RecordKind};
use super::source::Records;
use super::table::{call_of, has_requests};
use crate::error::TraceError;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// From here on a call's begin may lie further back than records are kept (chosen).
pub(super) const LONG_NS: u64 = 25_000_000;

/// What no record says by itself.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Calls that took long, and those that have not returned, by their begin.
    pub(super) long: Vec<LongCall>,
    /// Nothing counts from here on: a record was lost, or the recorder was ended before the recording.
    pub(super) end_ns: Option<u64>,
    pub(super) lost: u64,
    /// Calls of 32-bit programs that are not recorded.
    pub(super) compat: u64,
    /// The recorder has ended the recording itself.
    pub(super) is_whole: bool,
    pub(super) attached: Attachments,
    /// Pages that were touched through mappings are recorded.
    pub(super) sees_pages: bool,
    /// The lanes of each task, and since when it is the task that has them.
    pub(super) lanes: FxHashMap<u32, VecDeque<(u64, u32)>>,
    pub(super) requests: Requests,
    pub(super) cpu_use: CpuUse,
}

/// What is known of requests of `io_uring` and libaio.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Calls that submitted some, of each, which tell nothing of them.
    pub(super) submissions: [usize; 2],
    /// Whether they are recorded, of each.
    pub(super) are_recorded: [bool; 2],
    /// Those that are not, although others are.
    pub(super) unknown: u64,
    pub(super) known: usize,
}

/// A call whose begin was long before its record.
#[derive(Debug)]
pub(super) struct LongCall {
    pub(super) start_ns: u64,
    pub(super) bytes: Vec<u8>,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy)]
struct TaskTurn {
    next: u16,
    /// The end of its last record.
    known_ns: u64,
}

impl Survey {
    pub(super) fn of(mut records: Records) -> Result<Self, TraceError> {
        let mut survey = Self::default();
        let mut turns: FxHashMap<u32, TaskTurn> = FxHashMap::default();
        let mut lanes = Lanes::default();
        let mut births: FxHashMap<u32, u64> = FxHashMap::default();
        while let Some(bytes) = records.next_record()? {
            let placed = lanes.place(bytes);
            let Some(record) = Record::read(bytes) else {
                continue;
            };
            if record.kind == RecordKind::End {
                survey.is_whole = true;
                survey.lost = record.number_at(0);
                survey.compat = record.number_at(2);
                survey.requests.end(&record);
                if survey.lost > 0 {
                    survey.end_at(record.number_at(1));
                }
                break;
            }
            survey.attached.take(&record);
            survey.sees_pages |= record.kind == RecordKind::Page;
            if matches!(record.kind, RecordKind::File | RecordKind::Looked) {
                continue;
            }
            if let Some((submitter, new)) = placed {
                survey.requests.known += 1;
                survey.add_lane(&births, submitter, new);
            } else if let Some(known_ns) = take_turn(&mut turns, &record) {
                survey.lost = survey.lost.max(1);
                survey.end_at(known_ns);
            }
            note_birth(&mut births, &record);
            survey.requests.note(&record);
            survey.cpu_use.take(&record);
            let is_long = record.duration_ns >= LONG_NS && record.kind == RecordKind::Call;
            if is_long || record.kind == RecordKind::Pending {
                survey.long.push(LongCall {
                    start_ns: record.start_ns,
                    bytes: bytes.to_vec(),
                });
            }
        }
        survey.requests.are_recorded = survey
            .requests
            .are_recorded
            .map(|is| is || survey.requests.known > 0);
        survey.cpu_use.sum_up();
        survey.long.sort_by_key(|call| call.start_ns);
        Ok(survey)
    }

    /// A lane is made before the first call of its task, or with the recording.
    fn add_lane(&mut self, births: &FxHashMap<u32, u64>, submitter: u32, new: Option<u32>) {
        let Some(lane) = new else {
            return;
        };
        let since_ns = births.get(&submitter).copied().unwrap_or(0);
        let lanes = self.lanes.entry(submitter).or_default();
        lanes.push_back((since_ns, lane));
    }

    fn end_at(&mut self, time_ns: u64) {
        self.end_ns = Some(self.end_ns.map_or(time_ns, |before| before.min(time_ns)));
    }
}

impl Requests {
    fn note(&mut self, record: &Record<'_>) {
        let call = call_of(record).filter(|_| record.kind == RecordKind::Call);
        match call.map(|call| call.name) {
            Some("io_uring_enter") => self.submissions[0] += 1,
            Some("io_submit") => self.submissions[1] += 1,
            _ => {}
        }
    }

    fn end(&mut self, record: &Record<'_>) {
        self.are_recorded = has_requests(record.number_at(3));
        self.unknown = record.number_at(4);
    }
}

/// Since when a task is what it is.
fn note_birth(births: &mut FxHashMap<u32, u64>, record: &Record<'_>) {
    match record.kind {
        RecordKind::Fork => {
            if let Ok(child) = u32::try_from(record.number_at(0)) {
                births.insert(child, record.start_ns);
            }
        }
        RecordKind::Exec => {
            births.insert(record.task, record.start_ns);
        }
        _ => {}
    }
}

/// Hold a record against the one before of its task. Returns since when records of it are missing.
fn take_turn(turns: &mut FxHashMap<u32, TaskTurn>, record: &Record<'_>) -> Option<u64> {
    let now = record.end_ns();
    let first = TaskTurn {
        next: 0,
        known_ns: now,
    };
    if record.kind == RecordKind::Exec
        && let Ok(before) = u32::try_from(record.number_at(0))
        && before != record.task
        && let Some(own) = turns.remove(&before)
    {
        turns.insert(record.task, own);
    }
    let turn = turns.entry(record.task).or_insert(first);
    let missing = (turn.next != record.turn).then_some(turn.known_ns.min(now));
    *turn = TaskTurn {
        next: record.turn.wrapping_add(1),
        known_ns: now,
    };
    match record.kind {
        RecordKind::Fork => {
            if let Ok(child) = u32::try_from(record.number_at(0)) {
                turns.insert(child, first);
            }
        }
        RecordKind::Exit => {
            turns.remove(&record.task);
        }
        _ => {}
    }
    missing
}
