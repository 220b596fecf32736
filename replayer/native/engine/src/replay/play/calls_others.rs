//! What others than the recorded program did meanwhile: made between the timed calls.

use super::lane_replay::{Act, LaneReplay, Replayed};
use crate::interpreter::Halt;
use crate::ops::Op;
use crate::program::LockKind;
use crate::replay::program::{LetGo, PathId, ScheduledCall, Slot};
use crate::sys::controls::{LockRange, lock};
use crate::sys::files::lseek;
use crate::sys::{Answer, Kernel};

impl<K: Kernel> LaneReplay<'_, K> {
    /// End locks that other descriptors of the process have: calls that nobody times, but on some file systems one to the server each.
    pub(super) fn let_go(&self, locks: &LetGo) -> Replayed {
        let range = LockRange {
            kind: LockKind::Unlock,
            whence: 0,
            offset: locks.offset,
            size: locks.size,
        };
        for slot in locks.slots.iter().filter(|_| K::REAL) {
            if let Some(held) = self.performance.slots.hold(*slot) {
                let act = Act::new(Op::Lock, held.path());
                let let_go = self.untimed(act, |_| lock(held.file, range, false));
                // No call of the program, and where nothing is locked nothing is let go.
                if self.is_broken_off(&let_go) {
                    return Err(Halt::Cut);
                }
            }
        }
        Ok(())
    }

    pub(super) fn grow(&mut self, scheduled: &ScheduledCall, path: PathId, size: u64) -> Replayed {
        let act = Act::new(Op::Truncate, path);
        let whole = self.performance.names.path(path);
        let grown = self.untimed(act, |kernel| kernel.truncate(whole, size));
        self.kernel.tidy();
        self.done(
            scheduled,
            &grown,
            "file that others made longer is not there",
        )
    }

    pub(super) fn stand(&mut self, scheduled: &ScheduledCall, slot: Slot, offset: u64) -> Replayed {
        let Some(held) = self.performance.slots.hold(slot) else {
            return self.omit(scheduled, "file that was never open is to be positioned");
        };
        let act = Act::new(Op::Lseek, held.path());
        let (file, offset) = (held.file, i64::try_from(offset).unwrap_or(i64::MAX));
        let stands = self.untimed(act, |_| lseek(file, offset, 0));
        drop(held);
        self.done(scheduled, &stands, "open file cannot be positioned")
    }

    fn done<V>(
        &mut self,
        scheduled: &ScheduledCall,
        answer: &Answer<V>,
        reason: &'static str,
    ) -> Replayed {
        if self.is_broken_off(answer) {
            return Err(Halt::Cut);
        }
        if answer.is_ok() {
            self.pass(scheduled)
        } else {
            self.omit(scheduled, reason)
        }
    }
}
