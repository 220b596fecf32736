//! Lanes: requests of `io_uring` and libaio are under way side by side, and the calls of a thread are not.
//!
//! So each request becomes the call of a thread that does not exist: of one task's there are as many as it had requests under way at once.
//! The kernel's own threads for such requests (`iou-wrk`) are made in the same way.

use super::record::{Record, RecordKind, make_call};
use rustc_hash::FxHashMap;

/// Above all numbers of tasks (`PID_MAX_LIMIT`, 2^22).
const FIRST: u32 = 1 << 22 | 1;

/// One lane, and until when it is in use.
#[derive(Debug, Clone, Copy)]
struct Lane {
    number: u32,
    end_ns: u64,
}

/// The lanes of all tasks: records go through it in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    of: FxHashMap<u32, Vec<Lane>>,
    /// Who submits to each.
    submitters: Vec<u32>,
}

impl Lanes {
    /// Have a request be a call of a lane. Returns who submitted it, and the lane if it is a new one.
    pub(super) fn place(&mut self, bytes: &mut [u8]) -> Option<(u32, Option<u32>)> {
        let record = Record::read(bytes)?;
        let task = record.task;
        match record.kind {
            RecordKind::Request => {}
            RecordKind::Exit => {
                self.of.remove(&task);
                return None;
            }
            RecordKind::Exec => {
                self.of.remove(&task);
                let before = u32::try_from(record.number_at(0)).ok();
                before.map(|before| self.of.remove(&before));
                return None;
            }
            _ => return None,
        }
        let lanes = self.of.entry(task).or_default();
        // The one that was in use last leaves the others to requests that were under way for longer.
        let free = lanes
            .iter_mut()
            .filter(|lane| lane.end_ns <= record.start_ns);
        let end_ns = record.end_ns();
        let (number, is_new) = if let Some(lane) = free.max_by_key(|lane| lane.end_ns) {
            lane.end_ns = end_ns;
            (lane.number, false)
        } else {
            let count = u32::try_from(self.submitters.len()).unwrap_or(u32::MAX);
            let number = FIRST.saturating_add(count);
            self.submitters.push(task);
            lanes.push(Lane { number, end_ns });
            (number, true)
        };
        make_call(bytes, number);
        Some((task, is_new.then_some(number)))
    }

    /// Who submits to a lane: None where the task is a real one.
    pub(super) fn submitter(&self, task: u32) -> Option<u32> {
        let place = usize::try_from(task.checked_sub(FIRST)?).ok()?;
        self.submitters.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::bpf::attached_record;

    /// A record of a kind, of a task, from one time until another.
    fn record(kind: u8, task: u32, start_ns: u64, end_ns: u64) -> Vec<u8> {
        let mut bytes = attached_record(task, task, start_ns);
        bytes[4] = kind;
        bytes[24..32].copy_from_slice(&(end_ns - start_ns).to_le_bytes());
        bytes
    }

    fn lane_of(lanes: &mut Lanes, task: u32, start_ns: u64, end_ns: u64) -> u32 {
        let mut bytes = record(10, task, start_ns, end_ns);
        let (submitter, _) = lanes.place(&mut bytes).unwrap();
        let call = Record::read(&bytes).unwrap();
        assert_eq!((submitter, call.kind), (task, RecordKind::Call));
        assert_eq!(lanes.submitter(call.task), Some(task));
        call.task
    }

    #[test]
    fn there_are_as_many_lanes_as_requests_were_under_way_at_once() {
        let mut lanes = Lanes::default();
        // Three at a time, of which one takes as long as many others.
        let mut found = vec![lane_of(&mut lanes, 7, 0, 10), lane_of(&mut lanes, 7, 5, 12)];
        for begin in (10..90).step_by(10) {
            found.push(lane_of(&mut lanes, 7, begin, begin + 10));
            found.push(lane_of(&mut lanes, 7, begin + 2, begin + 12));
        }
        found.push(lane_of(&mut lanes, 7, 3, 103));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [FIRST, FIRST + 1, FIRST + 2]);
        assert_eq!(lanes.submitter(7), None);
    }

    #[test]
    fn lanes_are_those_of_one_task_and_end_with_it_or_its_program() {
        let mut lanes = Lanes::default();
        let first = lane_of(&mut lanes, 7, 0, 10);
        assert_eq!(lane_of(&mut lanes, 7, 10, 20), first);
        let other = lane_of(&mut lanes, 8, 10, 20);
        assert_ne!(other, first);
        for (kind, begin) in [(2, 30), (3, 50)] {
            assert!(lanes.place(&mut record(kind, 7, begin, begin)).is_none());
            assert!(lane_of(&mut lanes, 7, begin, begin + 10) > other);
        }
        assert_eq!(lane_of(&mut lanes, 8, 60, 70), other);
    }
}
