//! A first look through a recording: calls that took long, what was open at its begin, and where it ends.

use super::attached::Attachments;
use super::record::{Record, RecordKind};
use super::source::Records;
use crate::error::TraceError;
use rustc_hash::FxHashMap;

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
        while let Some(bytes) = records.next_record()? {
            let Some(record) = Record::read(bytes) else {
                continue;
            };
            if record.kind == RecordKind::End {
                survey.is_whole = true;
                survey.lost = record.number_at(0);
                survey.compat = record.number_at(2);
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
            if let Some(known_ns) = take_turn(&mut turns, &record) {
                survey.lost = survey.lost.max(1);
                survey.end_at(known_ns);
            }
            let is_long = record.duration_ns >= LONG_NS && record.kind == RecordKind::Call;
            if is_long || record.kind == RecordKind::Pending {
                survey.long.push(LongCall {
                    start_ns: record.start_ns,
                    bytes: bytes.to_vec(),
                });
            }
        }
        survey.long.sort_by_key(|call| call.start_ns);
        Ok(survey)
    }

    fn end_at(&mut self, time_ns: u64) {
        self.end_ns = Some(self.end_ns.map_or(time_ns, |before| before.min(time_ns)));
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
