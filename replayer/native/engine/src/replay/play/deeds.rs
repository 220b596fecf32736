//! What each deed is as a call. The frequent ones first: a table of jumps would be mispredicted after every call.

use super::player::{Act, Ended, Played, Player};
use super::slots::{Held, Taken};
use crate::interpreter::Halt;
use crate::ops::Op;
use crate::replay::reel::{Chunk, Cue, Deed, PathId, Place, Slot};
use crate::sys::replayed::{close, duplicate, seek};
use crate::sys::{Answer, At, How, Links, Places};
use rustix::io::Errno;
use std::os::fd::RawFd;

impl<'a, K: Places> Player<'a, K> {
    #[inline]
    pub(super) fn enact(&mut self, chunk: &Chunk, cue: &Cue) -> Played {
        if let Deed::Stat { at } = &cue.deed {
            return self.at(cue, Op::Stat, *at, |k, at| k.stat_at(at, Links::Follow));
        }
        match &cue.deed {
            Deed::Open {
                at,
                slot,
                flags,
                mode,
                resolve,
            } => {
                let how = How {
                    flags: *flags,
                    mode: *mode,
                    resolve: *resolve,
                };
                self.open(cue, (*at, *slot), how)
            }
            Deed::Close { slot } => self.close(cue, *slot),
            Deed::Read { .. } | Deed::Write { .. } | Deed::List { .. } => self.enact_data(cue),
            Deed::Lstat { at } => self.at(cue, Op::Lstat, *at, |k, at| k.stat_at(at, Links::Keep)),
            Deed::Access { at, mode, flags } => {
                self.at(cue, Op::Access, *at, |k, at| k.access_at(at, *mode, *flags))
            }
            Deed::Fstat { slot } => self.on(cue, Op::Fstat, *slot, K::fstat),
            other => self.enact_other(chunk, cue, other),
        }
    }

    #[inline(never)]
    fn enact_other(&mut self, chunk: &Chunk, cue: &Cue, deed: &Deed) -> Played {
        match deed {
            Deed::Inherit {
                path,
                slot,
                flags,
                offset,
            } => self.inherit(cue, (*path, *slot), *flags, *offset),
            Deed::CloseDuplicate { slot } => self.close_duplicate(cue, *slot),
            Deed::CloseSilently { slot } => {
                self.close_silently(cue, *slot);
                Ok(())
            }
            Deed::End => {
                self.end(cue);
                Ok(())
            }
            Deed::Omit { reason } => {
                self.omit(cue, reason);
                Ok(())
            }
            Deed::Grow { path, size } => self.grow(cue, *path, *size),
            Deed::Stand { slot, offset } => self.stand(cue, *slot, *offset),
            Deed::LetGo(first) => {
                self.let_go(first)?;
                let deed = first.then.clone();
                self.enact(chunk, &Cue { deed, ..*cue })
            }
            Deed::CopyRange { .. }
            | Deed::Clone { .. }
            | Deed::Splice { .. }
            | Deed::Sendfile { .. }
            | Deed::Map { .. } => self.enact_transfer(cue),
            Deed::Getxattr { .. }
            | Deed::Setxattr { .. }
            | Deed::SetList { .. }
            | Deed::Removexattr { .. }
            | Deed::Listxattr { .. } => self.enact_attribute(chunk, cue),
            Deed::Statx { .. }
            | Deed::Chdir { .. }
            | Deed::Statfs { .. }
            | Deed::Mkdir { .. }
            | Deed::Mknod { .. }
            | Deed::Rmdir { .. }
            | Deed::Unlink { .. }
            | Deed::Readlink { .. }
            | Deed::Rename { .. }
            | Deed::Link { .. }
            | Deed::LinkOpen { .. }
            | Deed::Symlink { .. }
            | Deed::Truncate { .. }
            | Deed::Chmod { .. }
            | Deed::Chown { .. }
            | Deed::Utimens { .. } => self.enact_path(chunk, cue),
            _ => self.enact_file(cue),
        }
    }

    /// An event that is not made, counted by its reason.
    pub(super) fn omit(&mut self, cue: &Cue, reason: &'static str) {
        self.tally.omit(reason);
        self.pass(cue);
    }

    /// A place as the kernel is told it; the directory stays open while the second part lives.
    #[inline]
    pub(super) fn seen(&self, place: Place) -> (At<'a>, Option<Held<'a>>) {
        let stage = self.stage;
        let held = place.from.and_then(|slot| stage.slots.hold(slot));
        let seen = held.as_ref().map(|held| {
            let rest = stage.names.rest(place);
            (held.file, if rest.is_empty() { c"." } else { rest })
        });
        let whole = stage.names.path(place.path);
        (At { whole, seen }, held)
    }

    /// Call at a place.
    #[inline]
    pub(super) fn at(
        &mut self,
        cue: &Cue,
        op: Op,
        place: Place,
        call: impl FnOnce(&K, At<'_>) -> Answer<u64>,
    ) -> Played {
        let path = place.path;
        let act = Act { op, path };
        let (at, held) = self.seen(place);
        let ended = self.measure(act, |kernel| call(kernel, at));
        drop(held);
        self.settle(cue, act, ended)
    }

    /// Call on the descriptor of a slot.
    #[inline]
    pub(super) fn on(
        &mut self,
        cue: &Cue,
        op: Op,
        slot: Slot,
        call: impl FnOnce(&K, RawFd) -> Answer<u64>,
    ) -> Played {
        match self.called(op, slot, call) {
            Some((act, ended, _)) => self.settle(cue, act, ended),
            None => self.no_file(cue, op, slot),
        }
    }

    /// The same, to be settled by who calls; `None` when nothing is open there.
    #[inline]
    pub(super) fn called(
        &self,
        op: Op,
        slot: Slot,
        call: impl FnOnce(&K, RawFd) -> Answer<u64>,
    ) -> Option<(Act, Ended, Held<'a>)> {
        let held = self.stage.slots.hold(slot)?;
        let path = held.path();
        let act = Act { op, path };
        let file = held.file;
        let ended = self.measure(act, |kernel| call(kernel, file));
        Some((act, ended, held))
    }

    /// The file was not opened, although it was recorded to be.
    #[cold]
    pub(super) fn no_file(&mut self, cue: &Cue, op: Op, slot: Slot) -> Played {
        let path = self.stage.slots.path_of(slot);
        self.lost(cue, Act { op, path }, Errno::BADF)
    }

    fn open(&mut self, cue: &Cue, (place, slot): (Place, Option<Slot>), how: How) -> Played {
        let path = place.path;
        let act = Act { op: Op::Open, path };
        let (at, held) = self.seen(place);
        let mut opened = None;
        let ended = self.measure(act, |kernel| {
            let file = kernel.open_at(at, how)?;
            opened = Some(file);
            Ok(0)
        });
        drop(held);
        match (opened, slot) {
            (Some(file), Some(slot)) => self.keep(slot, file, (path, how.flags)),
            (Some(file), None) => {
                // It was recorded to fail: a divergence, and nobody knows the descriptor.
                let op = Op::Close;
                let _closed = self.untimed(Act { op, path }, |_| close(file));
            }
            (None, Some(slot)) => self.stage.slots.name(slot, path),
            (None, None) => {}
        }
        self.settle(cue, act, ended)
    }

    /// Put what was opened into its slot.
    fn keep(&self, slot: Slot, file: RawFd, (path, flags): (PathId, u32)) {
        let slots = &self.stage.slots;
        slots.put(slot, file, path);
        if flags & libc::O_DIRECT.cast_unsigned() != 0
            && let Some(held) = slots.hold(slot)
        {
            held.mark(flags);
        }
    }

    fn close(&mut self, cue: &Cue, slot: Slot) -> Played {
        let op = Op::Close;
        match self.stage.slots.take(slot) {
            Taken::File(file, path) => {
                let act = Act { op, path };
                let ended = self.measure(act, |kernel| kernel.close(file).map(|()| 0));
                self.settle(cue, act, ended)
            }
            Taken::Nothing => self.no_file(cue, op, slot),
            Taken::Busy => {
                self.omit(cue, "close of a file in use");
                Ok(())
            }
        }
    }

    fn close_duplicate(&mut self, cue: &Cue, slot: Slot) -> Played {
        let op = Op::Close;
        let Some(held) = self.stage.slots.hold(slot) else {
            return self.no_file(cue, op, slot);
        };
        let path = held.path();
        let act = Act { op, path };
        match duplicate(held.file) {
            Ok(file) => {
                let ended = self.measure(act, |_| close(file).map(|()| 0));
                self.settle(cue, act, ended)
            }
            Err(errno) => self.lost(cue, act, errno),
        }
    }

    fn close_silently(&mut self, cue: &Cue, slot: Slot) {
        if let Taken::File(file, path) = self.stage.slots.take(slot) {
            let act = Act {
                op: Op::Close,
                path,
            };
            // No call of the program, so its result is none either.
            let _closed = self.untimed(act, |_| close(file));
        }
        self.pass(cue);
    }

    /// Open what was open before.
    fn inherit(
        &mut self,
        cue: &Cue,
        (path, slot): (PathId, Slot),
        flags: u32,
        offset: u64,
    ) -> Played {
        let whole = self.stage.names.path(path);
        let at = At { whole, seen: None };
        if !K::REAL {
            self.pass(cue);
            return Ok(());
        }
        let how = How {
            flags: flags & !MAKING,
            mode: 0,
            resolve: 0,
        };
        let opened = self.untimed(Act { op: Op::Open, path }, |kernel| kernel.open_at(at, how));
        self.kernel.tidy();
        if self.is_broken_off(&opened) {
            return Err(Halt::Cut);
        }
        let Ok(file) = opened else {
            self.omit(cue, "inherited file is not there");
            return Ok(());
        };
        self.keep(slot, file, (path, flags));
        let offset = i64::try_from(offset).unwrap_or(0);
        if offset > 0 {
            let act = Act {
                op: Op::Lseek,
                path,
            };
            let positioned = self.untimed(act, |_| seek(file, offset, 0));
            if self.is_broken_off(&positioned) {
                return Err(Halt::Cut);
            }
            if positioned.is_err() {
                self.omit(cue, "inherited file cannot be positioned");
                return Ok(());
            }
        }
        self.pass(cue);
        Ok(())
    }
}

/// Flags that make or cut a file: not for one that was open before.
const MAKING: u32 = (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC).cast_unsigned();
