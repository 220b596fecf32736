//! Waits: which lane played an earlier row, and which waits follow from others.

use super::slots::LaneRow;
use crate::replay::program::{Lane, Wait};
use std::collections::HashMap;
use std::sync::Arc;

/// Rows of which lanes and ends are remembered (chosen: 16 MiB); rows further back are looked up in `Far`. Tests have traces that reach beyond.
pub(crate) const WINDOW: u64 = if cfg!(test) { 256 } else { 1 << 20 };
/// Bits of a lane in a remembered row.
const LANE_BITS: u32 = 16;

/// Lanes of rows that events wait for from far away, by row.
pub(crate) type Far = Arc<[(u64, Lane)]>;

/// Lanes of the rows before.
#[derive(Debug)]
enum Recent {
    /// There is one lane: nothing is waited for.
    None,
    /// The last rows: row and lane, and its end, by row modulo the window.
    Ring(Vec<(u64, u64)>),
    /// All rows of a part of the trace, with their ends.
    All(HashMap<u64, (Lane, u64)>),
}

/// Lanes of earlier rows.
#[derive(Debug)]
pub(crate) struct Waits {
    recent: Recent,
    far: Far,
    /// By lane, the last rows of the others that it has waited for.
    waited: Vec<Vec<u64>>,
    found: Vec<Wait>,
}

impl Waits {
    /// For so many lanes that play every row of so many.
    pub(crate) fn of_all(rows: u64, lanes: Lane, far: Far) -> Waits {
        let window = usize::try_from(rows.clamp(1, WINDOW)).unwrap_or(1);
        Waits::new(Recent::Ring(vec![(u64::MAX, 0); window]), lanes, far)
    }

    /// For so many lanes that play some rows.
    pub(crate) fn of_some(lanes: Lane) -> Waits {
        Waits::new(Recent::All(HashMap::new()), lanes, Arc::default())
    }

    fn new(recent: Recent, lanes: Lane, far: Far) -> Waits {
        let lanes = usize::from(lanes);
        Waits {
            recent: if lanes > 1 { recent } else { Recent::None },
            far,
            waited: vec![vec![0; lanes]; lanes],
            found: Vec::new(),
        }
    }

    /// A lane plays a row, until a time since the begin of the replay program.
    pub(crate) fn plays(&mut self, (lane, row): LaneRow, end_ns: u64) {
        match &mut self.recent {
            Recent::None => {}
            Recent::All(rows) => {
                rows.insert(row, (lane, end_ns));
            }
            Recent::Ring(ring) => {
                if let Some(place) = place_of(ring.len(), row).and_then(|at| ring.get_mut(at)) {
                    *place = (row << LANE_BITS | u64::from(lane), end_ns);
                }
            }
        }
    }

    /// Lane and end of a row that is remembered.
    fn recent(&self, row: u64) -> Option<(Lane, u64)> {
        match &self.recent {
            Recent::None => None,
            Recent::All(rows) => rows.get(&row).copied(),
            Recent::Ring(ring) => {
                let (place, end_ns) = *ring.get(place_of(ring.len(), row)?)?;
                let lane = Lane::try_from(place & u64::from(Lane::MAX)).ok()?;
                (place >> LANE_BITS == row).then_some((lane, end_ns))
            }
        }
    }

    fn lane(&self, row: u64) -> Option<Lane> {
        let far = || {
            let at = self.far.binary_search_by_key(&row, |far| far.0).ok()?;
            self.far.get(at).map(|far| far.1)
        };
        self.recent(row).map(|(lane, _)| lane).or_else(far)
    }

    /// When the last of the rows ended that were found last; `None` if there are none, or if one is far back.
    pub(crate) fn found_end_ns(&self) -> Option<u64> {
        let ends = self.found.iter().map(|wait| self.recent(wait.row));
        let ends = ends.map(|found| found.map(|(_, end_ns)| end_ns));
        ends.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    /// Lane and end of an event that kept a thread waiting, if it is one of the replay program and is remembered.
    pub(crate) fn kept_by(&self, row: u64) -> Option<(Lane, u64)> {
        self.recent(row)
    }

    /// What an event has to wait for: the rows that the trace says and the rows that its files say.
    pub(crate) fn of(&mut self, lane_row: LaneRow, earlier: &[u64], files: &[LaneRow]) -> &[Wait] {
        self.found.clear();
        if matches!(self.recent, Recent::None) {
            return &self.found;
        }
        let before = earlier.iter().filter(|row| **row < lane_row.1);
        let told = before.filter_map(|row| Some((self.lane(*row)?, *row)));
        let mut rows: Vec<LaneRow> = told.chain(files.iter().copied()).collect();
        // The last row of each lane first: earlier ones follow from it.
        rows.sort_unstable_by(|one, other| other.cmp(one));
        for (lane, row) in rows {
            let waited = self.waited.get_mut(usize::from(lane_row.0));
            let Some(last) = waited.and_then(|waited| waited.get_mut(usize::from(lane))) else {
                continue;
            };
            if lane != lane_row.0 && *last <= row {
                *last = row + 1;
                self.found.push(Wait { lane, row });
            }
        }
        &self.found
    }
}

/// Where a row is remembered.
fn place_of(window: usize, row: u64) -> Option<usize> {
    usize::try_from(row % window.max(1) as u64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_row_of_another_lane_is_waited_for_and_only_once() {
        let mut waits = Waits::of_some(3);
        for lane_row in [(0, 10), (1, 11), (1, 12)] {
            waits.plays(lane_row, lane_row.1 * 10);
        }
        let both = [Wait { lane: 1, row: 12 }, Wait { lane: 0, row: 10 }];
        assert_eq!(waits.of((2, 13), &[10, 11, 12], &[]), both);
        assert_eq!(waits.found_end_ns(), Some(120));
        assert_eq!(waits.of((2, 14), &[11], &[(0, 10)]), []);
        assert_eq!(waits.found_end_ns(), None);
        assert_eq!(waits.of((1, 15), &[12], &[]), []);
    }

    #[test]
    fn rows_far_back_are_looked_up() {
        let mut waits = Waits::of_all(4, 2, Arc::new([(3, 1)]));
        for row in 0..20 {
            waits.plays((0, row), 0);
        }
        assert_eq!(waits.of((0, 20), &[3, 4], &[]), [Wait { lane: 1, row: 3 }]);
        assert_eq!(waits.found_end_ns(), None);
    }
}
