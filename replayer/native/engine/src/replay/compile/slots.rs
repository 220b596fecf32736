//! Slots: where the descriptor of a file of the trace is kept, and who used it. A use waits for its open, a close for every use.

use crate::replay::program::{Lane, Slot};
use std::collections::HashMap;

/// Slots at most (chosen: descriptors of one performance); files beyond are closed as soon as they are opened.
const MOST_SLOTS: Slot = 1 << 16;

/// Why an event cannot be made again.
pub(crate) type Reason = &'static str;
/// An event: its lane and its row.
pub(crate) type LaneRow = (Lane, u64);

pub(crate) const NOT_OPEN: Reason = "file is not open";
pub(crate) const SPECIAL: Reason = "symlink that leads out of the trace";
const TOO_MANY: Reason = "too many files are open";

#[derive(Debug)]
struct Held {
    slot: Slot,
    /// Row of the path it was opened by.
    path: u32,
    /// The open, and the last use of each lane.
    uses: Vec<LaneRow>,
}

/// Files of the trace that are open.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    held: HashMap<u32, Result<Held, Reason>>,
    free: HashMap<Lane, Vec<Slot>>,
    pub(crate) count: Slot,
}

impl Slots {
    pub(crate) fn open(&mut self, file: u32, path: u32, lane_row: LaneRow) -> Option<Slot> {
        let free = self.free.get_mut(&lane_row.0).and_then(Vec::pop);
        let slot = free.or_else(|| {
            (self.count < MOST_SLOTS).then(|| {
                self.count += 1;
                self.count - 1
            })
        });
        let held = slot.ok_or(TOO_MANY).map(|slot| Held {
            slot,
            path,
            uses: vec![lane_row],
        });
        self.held.insert(file, held);
        slot
    }

    /// A file that is not opened again, and why.
    pub(crate) fn lose(&mut self, file: u32, reason: Reason) {
        self.held.insert(file, Err(reason));
    }

    /// The path that a file was opened by.
    pub(crate) fn path(&self, file: u32) -> Option<u32> {
        let held = self.held.get(&file)?.as_ref().ok()?;
        Some(held.path)
    }

    /// Use a file. `waits` gets the open, if another lane has made it.
    pub(crate) fn used(
        &mut self,
        file: u32,
        lane_row: LaneRow,
        waits: &mut Vec<LaneRow>,
    ) -> Result<Slot, Reason> {
        let held = match self.held.get_mut(&file) {
            Some(Ok(held)) => held,
            Some(Err(reason)) => return Err(reason),
            None => return Err(NOT_OPEN),
        };
        let opened = held.uses.first().copied();
        waits.extend(opened.filter(|opened| opened.0 != lane_row.0));
        let of_lane = held
            .uses
            .iter_mut()
            .skip(1)
            .find(|used| used.0 == lane_row.0);
        match of_lane {
            Some(used) => *used = lane_row,
            None => held.uses.push(lane_row),
        }
        Ok(held.slot)
    }

    /// Close a file; its slot is the closing lane's from then on. `waits` gets the uses of other lanes.
    pub(crate) fn close(
        &mut self,
        file: u32,
        lane_row: LaneRow,
        waits: &mut Vec<LaneRow>,
    ) -> Result<Slot, Reason> {
        let held = self.held.remove(&file).unwrap_or(Err(NOT_OPEN))?;
        waits.extend(held.uses.iter().filter(|used| used.0 != lane_row.0));
        self.free.entry(lane_row.0).or_default().push(held.slot);
        Ok(held.slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_given_back_to_the_lane_that_closes() {
        let mut slots = Slots::default();
        let mut waits = Vec::new();
        assert_eq!(slots.open(7, 0, (0, 1)), Some(0));
        assert_eq!(slots.used(7, (1, 2), &mut waits), Ok(0));
        assert_eq!(waits, [(0, 1)]);
        waits.clear();
        assert_eq!(slots.close(7, (2, 3), &mut waits), Ok(0));
        assert_eq!(waits, [(0, 1), (1, 2)]);
        assert_eq!(slots.open(8, 0, (0, 4)), Some(1));
        assert_eq!(slots.open(9, 0, (2, 5)), Some(0));
        assert_eq!(slots.used(7, (0, 6), &mut waits), Err(NOT_OPEN));
        assert_eq!(slots.count, 2);
    }
}
