//! Stamps of lines as one time that goes on.

use crate::formats::strace::prefix::Stamp;
use crate::formats::{Clock, ClockKind};

pub(crate) const DAY_NS: i64 = 86_400_000_000_000;
/// Stamps that are as fine tell calls apart: what makes a task takes longer until that begins (-tt, -ttt).
const FINE_NS: u64 = 1_000;

/// Makes times of stamps.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    day_ns: i64,
    last_ns: i64,
    /// The time of the stamp before.
    before_ns: i64,
    pub(crate) clock: Clock,
    pub(crate) went_back: u64,
}

impl Reading {
    /// Whether its stamps tell what came first in files that were written at the same time. Steps of -r do not: strace counts
    /// them from the last line of whichever file.
    pub(crate) fn tells_order(&self) -> bool {
        let is_absolute = matches!(self.clock.kind, ClockKind::Epoch | ClockKind::Day);
        is_absolute && self.clock.resolution_ns <= FINE_NS
    }

    /// Have made the last step from no earlier time, where stamps are steps. Returns by how much that is later.
    pub(crate) fn catch_up(&mut self, time_ns: i64) -> i64 {
        if self.clock.kind != ClockKind::Relative {
            return 0;
        }
        let late_ns = time_ns.saturating_sub(self.before_ns).max(0);
        self.last_ns = self.last_ns.saturating_add(late_ns);
        late_ns
    }

    /// All that was read is later by some days: the first stamp was behind midnights that other files tell of.
    pub(crate) fn begin_later(&mut self, late_ns: i64) {
        self.day_ns = self.day_ns.saturating_add(late_ns);
        self.last_ns = self.last_ns.saturating_add(late_ns);
        self.before_ns = self.before_ns.saturating_add(late_ns);
    }

    /// The time of a stamp, on the log's clock.
    pub(crate) fn read(&mut self, stamp: Stamp) -> Option<i64> {
        let (time, kind, digits) = match stamp {
            Stamp::None => return None,
            Stamp::Epoch(time, digits) => (time, ClockKind::Epoch, digits),
            Stamp::Relative(step, digits) => (
                self.last_ns.saturating_add(step),
                ClockKind::Relative,
                digits,
            ),
            Stamp::Day(time, digits) => {
                let mut time = time.saturating_add(self.day_ns);
                // Midnight, not a clock that was set back.
                if self.clock.kind == ClockKind::Day
                    && time.saturating_add(DAY_NS / 2) < self.last_ns
                {
                    self.day_ns = self.day_ns.saturating_add(DAY_NS);
                    time = time.saturating_add(DAY_NS);
                }
                (time, ClockKind::Day, digits)
            }
        };
        let step = 10_u64.saturating_pow(9_u32.saturating_sub(digits));
        if self.clock.kind == ClockKind::None {
            self.clock.kind = kind;
            self.clock.resolution_ns = step;
        } else if time < self.last_ns {
            self.went_back += 1;
        }
        self.clock.resolution_ns = self.clock.resolution_ns.min(step);
        self.before_ns = self.last_ns;
        self.last_ns = time;
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn midnight_is_passed_and_steps_add_up() {
        let mut day = Reading::default();
        assert_eq!(day.read(Stamp::Day(DAY_NS - 5, 6)), Some(DAY_NS - 5));
        assert_eq!(day.read(Stamp::Day(7, 6)), Some(DAY_NS + 7));
        let mut steps = Reading::default();
        assert_eq!(steps.read(Stamp::Relative(5, 6)), Some(5));
        assert_eq!(steps.read(Stamp::Relative(5, 6)), Some(10));
        let mut back = Reading::default();
        back.read(Stamp::Epoch(100, 9));
        back.read(Stamp::Epoch(90, 9));
        assert_eq!((back.went_back, back.clock.resolution_ns), (1, 1));
    }
}
