//! Calls by path, but for the most frequent.

use super::calls_file::owner;
use super::player::{Act, Played, Player};
use crate::ops::Op;
use crate::path::link_stays_inside;
use crate::replay::program::{CallBatch, PathId, Place, ReplayCall, ScheduledCall, Slot, TextId};
use crate::sys::{Answer, At, Kernel, Links, Times};
use std::ffi::CStr;

/// Flags of renameat2 that are handed on: NOREPLACE and EXCHANGE.
const RENAME_FLAGS: u32 = 3;

/// Whether linkat follows a symlink.
fn follows(flags: u32) -> Links {
    if flags & libc::AT_SYMLINK_FOLLOW.cast_unsigned() == 0 {
        Links::Keep
    } else {
        Links::Follow
    }
}

impl<K: Kernel> Player<'_, K> {
    #[inline(never)]
    pub(super) fn enact_path(&mut self, batch: &CallBatch, scheduled: &ScheduledCall) -> Played {
        match &scheduled.call {
            ReplayCall::Chdir { at } => self.at(scheduled, Op::Chdir, *at, K::look_up),
            ReplayCall::Statfs { path } => self.by_path(scheduled, Op::Statfs, *path, K::statfs),
            ReplayCall::Mkdir { at, mode } => {
                self.at(scheduled, Op::Mkdir, *at, |k, at| k.mkdir(at, *mode))
            }
            ReplayCall::Mknod { at, mode } => {
                self.at(scheduled, Op::Mknod, *at, |k, at| k.mknod(at, *mode))
            }
            ReplayCall::Rmdir { at } => self.at(scheduled, Op::Rmdir, *at, K::rmdir),
            ReplayCall::Unlink { at } => self.at(scheduled, Op::Unlink, *at, K::unlink),
            ReplayCall::Readlink { at, size } => {
                let buffer = self.scratch.first(*size);
                self.at(scheduled, Op::Readlink, *at, |k, at| k.readlink(at, buffer))
            }
            ReplayCall::Rename { at, to, flags } => {
                let flags = *flags & RENAME_FLAGS;
                self.pair(scheduled, Op::Rename, (*at, *to), |k, (at, to)| {
                    k.rename(at, to, flags)
                })
            }
            ReplayCall::Link { at, to, flags } => {
                self.pair(scheduled, Op::Link, (*at, *to), |k, (at, to)| {
                    k.link(at, to, follows(*flags))
                })
            }
            ReplayCall::LinkOpen { slot, to } => self.link_open(scheduled, *slot, *to),
            ReplayCall::Symlink { at, target } => self.symlink(scheduled, *at, (batch, *target)),
            ReplayCall::Truncate { path, size } => {
                self.by_path(scheduled, Op::Truncate, *path, |k, path| {
                    k.truncate(path, *size)
                })
            }
            other => self.enact_marking(scheduled, other),
        }
    }

    fn enact_marking(&mut self, scheduled: &ScheduledCall, call: &ReplayCall) -> Played {
        match call {
            ReplayCall::Statx { at, follow, sync } => {
                let (op, links) = if *follow {
                    (Op::Stat, Links::Follow)
                } else {
                    (Op::Lstat, Links::Keep)
                };
                self.at(scheduled, op, *at, |k, at| k.statx(at, links, *sync))
            }
            ReplayCall::Chmod { at, mode } => {
                self.at(scheduled, Op::Chmod, *at, |k, at| k.chmod(at, *mode))
            }
            ReplayCall::Chown {
                at,
                uid,
                gid,
                follow,
            } => {
                let owner = owner(*uid, *gid);
                let (op, links) = if *follow {
                    (Op::Chown, Links::Follow)
                } else {
                    (Op::Lchown, Links::Keep)
                };
                self.at(scheduled, op, *at, |k, at| k.chown(at, owner, links))
            }
            ReplayCall::Utimens { at, times, follow } => {
                self.utimens(scheduled, *at, *times, *follow)
            }
            _ => Ok(()),
        }
    }

    fn by_path(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        path: PathId,
        call: impl FnOnce(&K, &CStr) -> Answer,
    ) -> Played {
        let act = Act { op, path };
        let whole = self.stage.names.path(path);
        let ended = self.measure(act, |kernel| call(kernel, whole));
        self.settle(scheduled, act, ended)
    }

    fn pair(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        (from, to): (Place, Place),
        call: impl FnOnce(&K, (At<'_>, At<'_>)) -> Answer,
    ) -> Played {
        let path = from.path;
        let act = Act { op, path };
        let ((from, held_from), (to, held_to)) = (self.seen(from), self.seen(to));
        let ended = self.measure(act, |kernel| call(kernel, (from, to)));
        drop((held_from, held_to));
        self.settle(scheduled, act, ended)
    }

    /// It is told by the name that it gives.
    fn link_open(&mut self, scheduled: &ScheduledCall, slot: Slot, to: Place) -> Played {
        let (op, path) = (Op::Link, to.path);
        let Some(held) = self.stage.slots.hold(slot) else {
            return self.no_file(scheduled, op, slot);
        };
        let act = Act { op, path };
        let (to, held_to) = self.seen(to);
        let ended = self.measure(act, |kernel| kernel.link_open(held.file, to));
        drop((held, held_to));
        self.settle(scheduled, act, ended)
    }

    /// Links to the outside are not made, although nothing here could follow them there.
    fn symlink(
        &mut self,
        scheduled: &ScheduledCall,
        at: Place,
        (batch, target): (&CallBatch, TextId),
    ) -> Played {
        let names = &self.stage.names;
        let target = names.text(batch, target);
        let path = names.path(at.path);
        if !link_stays_inside(path.to_bytes(), target.to_bytes()) {
            self.omit(scheduled, "symlink to the outside");
            return Ok(());
        }
        self.at(scheduled, Op::Symlink, at, |k, at| k.symlink(&target, at))
    }

    fn utimens(
        &mut self,
        scheduled: &ScheduledCall,
        at: Place,
        times: Times,
        follow: bool,
    ) -> Played {
        let (op, links) = if follow {
            (Op::Utimens, Links::Follow)
        } else {
            (Op::Lutimens, Links::Keep)
        };
        self.at(scheduled, op, at, |k, at| k.utimens(at, times, links))
    }
}
