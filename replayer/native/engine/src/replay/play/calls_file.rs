//! Calls on open files that move no data.

use super::lane_replay::{Act, LaneReplay, Replayed};
use crate::interpreter::Halt;
use crate::ops::Op;
use crate::replay::program::{LetGo, Recorded, ReplayCall, ScheduledCall, Slot};
use crate::sys::controls::{LockRange, fcntl, flock, ioctl, is_asking, is_harmless, lock};
use crate::sys::files::lseek;
use crate::sys::{Answer, Kernel};
use std::os::fd::RawFd;

const UNLOCK: u32 = libc::LOCK_UN.cast_unsigned();

impl<K: Kernel> LaneReplay<'_, K> {
    #[inline(never)]
    pub(super) fn enact_file(&mut self, scheduled: &ScheduledCall) -> Replayed {
        match &scheduled.call {
            ReplayCall::Seek {
                slot,
                offset,
                whence,
            } => self.seek(scheduled, *slot, *offset, *whence),
            other => self.enact_control(scheduled, other),
        }
    }

    fn enact_control(&mut self, scheduled: &ScheduledCall, call: &ReplayCall) -> Replayed {
        match call {
            ReplayCall::Flock { .. } | ReplayCall::Lock { .. } => self.enact_lock(scheduled, call),
            ReplayCall::Fcntl { command, .. } if !is_harmless(*command) => {
                self.omit(scheduled, "fcntl");
                Ok(())
            }
            ReplayCall::Fcntl {
                slot,
                command,
                argument,
            } => self.fcntl(scheduled, *slot, *command, *argument),
            ReplayCall::Ioctl { command, .. } if !is_asking(*command) => {
                self.omit(scheduled, "ioctl");
                Ok(())
            }
            ReplayCall::Ioctl { slot, command } => {
                self.on(scheduled, Op::Ioctl, *slot, |f| ioctl(f, *command))
            }
            _ => {
                self.omit(scheduled, "unknown");
                Ok(())
            }
        }
    }

    fn enact_lock(&mut self, scheduled: &ScheduledCall, call: &ReplayCall) -> Replayed {
        match call {
            ReplayCall::Flock { slot, operation } => {
                let take = |file| flock(file, *operation);
                // A lock that is changed and refused is lost (flock(2)).
                self.lock(scheduled, (Op::Flock, *slot), take, |file| {
                    flock(file, UNLOCK)
                })
            }
            ReplayCall::Lock {
                slot,
                wait,
                kind,
                before,
                offset,
                size,
                whence,
            } => {
                let range = LockRange {
                    kind: *kind,
                    whence: *whence,
                    offset: *offset,
                    size: *size,
                };
                let kept = LockRange {
                    kind: *before,
                    ..range
                };
                let take = |file| lock(file, range, *wait);
                self.lock(scheduled, (Op::Lock, *slot), take, |file| {
                    lock(file, kept, false)
                })
            }
            _ => Ok(()),
        }
    }

    /// End locks that other descriptors of the process have: calls that nobody times, but on some file systems one to the server each.
    pub(super) fn let_go(&self, locks: &LetGo) -> Replayed {
        let range = LockRange {
            kind: libc::F_UNLCK.cast_unsigned(),
            whence: 0,
            offset: locks.offset,
            size: locks.size,
        };
        for slot in locks.slots.iter().filter(|_| K::REAL) {
            if let Some(held) = self.performance.slots.hold(*slot) {
                let act = Act {
                    op: Op::Lock,
                    path: held.path(),
                };
                let let_go = self.untimed(act, |_| lock(held.file, range, false));
                // No call of the program, and where nothing is locked nothing is let go.
                if self.is_broken_off(&let_go) {
                    return Err(Halt::Cut);
                }
            }
        }
        Ok(())
    }

    /// Take a lock. One that was refused when it was recorded is given back at once: others are to have it. That is not timed.
    fn lock(
        &mut self,
        scheduled: &ScheduledCall,
        (op, slot): (Op, Slot),
        take: impl FnOnce(RawFd) -> Answer,
        give_back: impl FnOnce(RawFd) -> Answer,
    ) -> Replayed {
        let Some((act, ended, held)) = self.called(op, slot, take) else {
            return self.no_file(scheduled, op, slot);
        };
        let was_refused = matches!(scheduled.recorded, Recorded::Error(_));
        if was_refused && ended.answer.is_ok() && K::REAL {
            // It cannot fail: it takes away, or leaves what was there.
            let _given_back = self.untimed(act, |_| give_back(held.file));
        }
        drop(held);
        self.settle(scheduled, act, ended)
    }

    fn fcntl(
        &mut self,
        scheduled: &ScheduledCall,
        slot: Slot,
        command: u32,
        argument: u64,
    ) -> Replayed {
        let called = self.called(Op::Fcntl, slot, |f| fcntl(f, command, argument));
        let Some((act, ended, held)) = called else {
            return self.no_file(scheduled, Op::Fcntl, slot);
        };
        if command == libc::F_SETFL.cast_unsigned() && ended.answer.is_ok() {
            held.mark(u32::try_from(argument).unwrap_or(0));
        }
        self.settle(scheduled, act, ended)
    }

    fn seek(
        &mut self,
        scheduled: &ScheduledCall,
        slot: Slot,
        offset: i64,
        whence: u32,
    ) -> Replayed {
        let called = self.called(Op::Lseek, slot, |file| lseek(file, offset, whence));
        let Some((act, ended, held)) = called else {
            return self.no_file(scheduled, Op::Lseek, slot);
        };
        if offset == 0 && whence == 0 {
            held.rewind();
        }
        let of_data = i32::try_from(whence)
            .is_ok_and(|whence| matches!(whence, libc::SEEK_DATA | libc::SEEK_HOLE));
        if !of_data && !held.is_directory() {
            return self.settle(scheduled, act, ended);
        }
        let verdict = self.judged(scheduled.recorded, act, ended, true);
        self.book_other(scheduled, act, ended, verdict)
    }
}
