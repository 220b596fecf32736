//! Deeds by path, but for the most frequent.

use super::deeds_file::owner;
use super::player::{Act, Played, Player};
use crate::ops::Op;
use crate::path::link_stays_inside;
use crate::replay::reel::{Chunk, Cue, Deed, PathId, Place, Slot, TextId, Times};
use crate::sys::{Answer, At, Links, Places};
use std::ffi::CStr;

/// Flags of renameat2 that are handed on: NOREPLACE and EXCHANGE.
const RENAME_FLAGS: u32 = 3;

impl<K: Places> Player<'_, K> {
    #[inline(never)]
    pub(super) fn enact_path(&mut self, chunk: &Chunk, cue: &Cue) -> Played {
        match &cue.deed {
            Deed::Chdir { at } => self.at(cue, Op::Chdir, *at, K::look_up),
            Deed::Statfs { path } => self.by_path(cue, Op::Statfs, *path, K::statfs),
            Deed::Mkdir { at, mode } => self.at(cue, Op::Mkdir, *at, |k, at| k.mkdir_at(at, *mode)),
            Deed::Mknod { at, mode } => self.at(cue, Op::Mknod, *at, |k, at| k.mknod_at(at, *mode)),
            Deed::Rmdir { at } => self.at(cue, Op::Rmdir, *at, K::rmdir_at),
            Deed::Unlink { at } => self.at(cue, Op::Unlink, *at, K::unlink_at),
            Deed::Readlink { at, size } => {
                let buffer = self.scratch.first(*size);
                self.at(cue, Op::Readlink, *at, |k, at| k.readlink_at(at, buffer))
            }
            Deed::Rename { at, to, flags } => {
                let flags = *flags & RENAME_FLAGS;
                self.pair(cue, Op::Rename, (*at, *to), |k, (at, to)| {
                    k.rename_at(at, to, flags)
                })
            }
            Deed::Link { at, to, flags } => self.pair(cue, Op::Link, (*at, *to), |k, (at, to)| {
                k.link_at(at, to, *flags)
            }),
            Deed::LinkOpen { slot, to } => self.link_open(cue, *slot, *to),
            Deed::Symlink { at, target } => self.symlink(cue, *at, (chunk, *target)),
            Deed::Truncate { path, size } => self.by_path(cue, Op::Truncate, *path, |k, path| {
                k.truncate(path, *size).map(|()| 0)
            }),
            other => self.enact_marking(cue, other),
        }
    }

    fn enact_marking(&mut self, cue: &Cue, deed: &Deed) -> Played {
        match deed {
            Deed::Statx { at, follow, sync } => {
                let (op, links) = if *follow {
                    (Op::Stat, Links::Follow)
                } else {
                    (Op::Lstat, Links::Keep)
                };
                self.at(cue, op, *at, |k, at| k.statx_at(at, links, *sync))
            }
            Deed::Chmod { at, mode } => self.at(cue, Op::Chmod, *at, |k, at| k.chmod_at(at, *mode)),
            Deed::Chown {
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
                self.at(cue, op, *at, |k, at| k.chown_at(at, owner, links))
            }
            Deed::Utimens { at, times, follow } => self.utimens(cue, *at, *times, *follow),
            _ => Ok(()),
        }
    }

    fn by_path(
        &mut self,
        cue: &Cue,
        op: Op,
        path: PathId,
        call: impl FnOnce(&K, &CStr) -> Answer<u64>,
    ) -> Played {
        let act = Act { op, path };
        let whole = self.stage.names.path(path);
        let ended = self.measure(act, |kernel| call(kernel, whole));
        self.settle(cue, act, ended)
    }

    fn pair(
        &mut self,
        cue: &Cue,
        op: Op,
        (from, to): (Place, Place),
        call: impl FnOnce(&K, (At<'_>, At<'_>)) -> Answer<u64>,
    ) -> Played {
        let path = from.path;
        let act = Act { op, path };
        let ((from, held_from), (to, held_to)) = (self.seen(from), self.seen(to));
        let ended = self.measure(act, |kernel| call(kernel, (from, to)));
        drop((held_from, held_to));
        self.settle(cue, act, ended)
    }

    /// It is told by the name that it gives.
    fn link_open(&mut self, cue: &Cue, slot: Slot, to: Place) -> Played {
        let (op, path) = (Op::Link, to.path);
        let Some(held) = self.stage.slots.hold(slot) else {
            return self.no_file(cue, op, slot);
        };
        let act = Act { op, path };
        let (to, held_to) = self.seen(to);
        let ended = self.measure(act, |kernel| kernel.link_open(held.file, to));
        drop((held, held_to));
        self.settle(cue, act, ended)
    }

    /// Links to the outside are not made, although nothing here could follow them there.
    fn symlink(&mut self, cue: &Cue, at: Place, (chunk, target): (&Chunk, TextId)) -> Played {
        let names = &self.stage.names;
        let target = names.text(chunk, target);
        let path = names.path(at.path);
        if !link_stays_inside(path.to_bytes(), target.to_bytes()) {
            self.omit(cue, "symlink to the outside");
            return Ok(());
        }
        self.at(cue, Op::Symlink, at, |k, at| k.symlink_at(&target, at))
    }

    fn utimens(&mut self, cue: &Cue, at: Place, times: Times, follow: bool) -> Played {
        let (op, links) = if follow {
            (Op::Utimens, Links::Follow)
        } else {
            (Op::Lutimens, Links::Keep)
        };
        self.at(cue, op, at, |k, at| k.utimens_at(at, times, links))
    }
}
