//! What each call is as a call. The frequent ones first: a table of jumps would be mispredicted after every call.

use super::lane_replay::{Act, Ended, LaneReplay, Replayed};
use super::slots::{Held, Taken};
use crate::call::{Executor, execute};
use crate::interpreter::Halt;
use crate::ops::Op;
use crate::path::link_stays_inside;
use crate::program::Owner;
use crate::replay::program::{
    Call, CallBatch, PathId, Place, Recorded, ReplayCall, ScheduledCall, Slot, Subject, TextId,
    Traced,
};
use crate::sys::controls;
use crate::sys::files::{close, duplicate, lseek};
use crate::sys::{Answer, At, Attributed, How, Kernel, Links, Scratch, Times};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::CStr;
use std::os::fd::RawFd;

/// Makes the plain call of an event.
struct EventExecutor<'p, 'a, 'c, K> {
    lane_replay: &'p mut LaneReplay<'a, K>,
    batch: &'c CallBatch,
    scheduled: &'c ScheduledCall,
}

/// Owner and group as the kernel takes them; all ones leave it.
fn identity(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

impl<'a: 'c, 'c, K: Kernel> Executor<'c> for EventExecutor<'_, 'a, 'c, K> {
    type Operands = Traced;
    type Kernel = K;
    type Done = Replayed;

    fn number(&mut self, number: &u64) -> u64 {
        *number
    }
    fn mode_of(&mut self, _: &Slot, mode: &u32) -> u32 {
        *mode
    }
    fn mode_at(&mut self, _: &Place, mode: &u32) -> u32 {
        *mode
    }
    fn owner(&self, uid: &u32, gid: &u32) -> Owner {
        Owner {
            uid: identity(*uid),
            gid: identity(*gid),
        }
    }
    fn times(&mut self, times: &Box<Times>) -> Times {
        **times
    }
    fn buffer(&self, size: u64) -> Scratch {
        self.lane_replay.scratch.first(size)
    }
    fn text(&self, name: &'c TextId) -> Cow<'c, CStr> {
        self.lane_replay.performance.names.text(self.batch, *name)
    }
    fn value(&self, _: &Subject, _: &CStr, size: u64) -> &'c [u8] {
        self.lane_replay.setting.written.first(size)
    }
    #[inline]
    fn on(self, op: Op, slot: &Slot, call: impl FnOnce(RawFd) -> Answer) -> Replayed {
        self.lane_replay.on(self.scheduled, op, *slot, call)
    }
    #[inline]
    fn at(self, op: Op, at: &Place, call: impl FnOnce(&K, At<'_>) -> Answer) -> Replayed {
        self.lane_replay.at(self.scheduled, op, *at, call)
    }
    fn pair(
        self,
        op: Op,
        (from, to): (&Place, &Place),
        call: impl FnOnce(&K, At<'_>, At<'_>) -> Answer,
    ) -> Replayed {
        let (lane_replay, act) = (self.lane_replay, Act::new(op, from.path));
        let ((from, held_from), (to, held_to)) = (lane_replay.seen(*from), lane_replay.seen(*to));
        let ended = lane_replay.measure(act, |kernel| call(kernel, from, to));
        drop((held_from, held_to));
        lane_replay.settle(self.scheduled, act, ended)
    }
    fn attribute(
        self,
        [of_file, of_link, of_path]: [Op; 3],
        on: &Subject,
        call: impl FnOnce(&K, Attributed<'_>) -> Answer,
    ) -> Replayed {
        let lane_replay = self.lane_replay;
        let (path, op, links) = match *on {
            Subject::Path { path, follow: true } => (path, of_path, Links::Follow),
            Subject::Path { path, .. } => (path, of_link, Links::Keep),
            Subject::File(slot) => {
                let kernel = lane_replay.kernel;
                return lane_replay.on(self.scheduled, of_file, slot, |file| {
                    call(kernel, Attributed::File(file))
                });
            }
        };
        let act = Act::new(op, path);
        let whole = lane_replay.performance.names.path(path);
        let ended = lane_replay.measure(act, |kernel| call(kernel, Attributed::Path(whole, links)));
        lane_replay.settle(self.scheduled, act, ended)
    }
    fn open(self, at: &Place, slot: Option<&Slot>, how: How) -> Replayed {
        let place = (*at, slot.copied());
        self.lane_replay.open(self.scheduled, place, how.tamed())
    }
    fn close(self, slot: &Slot) -> Replayed {
        self.lane_replay.close(self.scheduled, *slot)
    }
    /// Links to the outside are not made, although nothing here could follow them there.
    fn symlink(self, at: &Place, target: &TextId) -> Replayed {
        let names = &self.lane_replay.performance.names;
        let target = names.text(self.batch, *target);
        if !link_stays_inside(names.path(at.path).to_bytes(), target.to_bytes()) {
            return (self.lane_replay).omit(self.scheduled, "symlink to the outside");
        }
        self.at(Op::Symlink, at, |k, at| k.symlink(&target, at))
    }
    fn seek(self, slot: &Slot, offset: i64, whence: u32) -> Replayed {
        let (lane_replay, scheduled) = (self.lane_replay, self.scheduled);
        let called = lane_replay.called(Op::Lseek, *slot, |file| lseek(file, offset, whence));
        let Some((act, ended, held)) = called else {
            return lane_replay.no_file(scheduled, Op::Lseek, *slot);
        };
        if offset == 0 && whence == 0 {
            held.rewind();
        }
        let of_data = i32::try_from(whence)
            .is_ok_and(|whence| matches!(whence, libc::SEEK_DATA | libc::SEEK_HOLE));
        if !of_data && !held.is_directory() {
            return lane_replay.settle(scheduled, act, ended);
        }
        let verdict = lane_replay.judged(scheduled.recorded, act, ended, true);
        lane_replay.book_other(scheduled, act, ended, verdict)
    }
    /// One that was refused when it was recorded is given back at once: others are to have it. That is not timed.
    fn lock(
        self,
        op: Op,
        slot: &Slot,
        take: impl FnOnce(RawFd) -> Answer,
        give_back: impl FnOnce(RawFd) -> Answer,
    ) -> Replayed {
        let (lane_replay, scheduled) = (self.lane_replay, self.scheduled);
        let Some((act, ended, held)) = lane_replay.called(op, *slot, take) else {
            return lane_replay.no_file(scheduled, op, *slot);
        };
        let was_refused = matches!(scheduled.recorded, Recorded::Error(_));
        if was_refused && ended.answer.is_ok() && K::REAL {
            // It cannot fail: it takes away, or leaves what was there.
            let _given_back = lane_replay.untimed(act, |_| give_back(held.file));
        }
        drop(held);
        lane_replay.settle(scheduled, act, ended)
    }
}

impl<'a, K: Kernel> LaneReplay<'a, K> {
    #[inline]
    pub(super) fn enact(&mut self, batch: &CallBatch, scheduled: &ScheduledCall) -> Replayed {
        if let ReplayCall::Plain(Call::Stat { at }) = &scheduled.call {
            return self.at(scheduled, Op::Stat, *at, K::stat);
        }
        match &scheduled.call {
            ReplayCall::Read { .. }
            | ReplayCall::ReadMapped { .. }
            | ReplayCall::Write { .. }
            | ReplayCall::List { .. } => self.enact_data(scheduled),
            ReplayCall::Plain(call) => self.enact_plain(batch, scheduled, call),
            other => self.enact_other(batch, scheduled, other),
        }
    }

    #[inline(never)]
    fn enact_plain(
        &mut self,
        batch: &CallBatch,
        scheduled: &ScheduledCall,
        call: &Call<Traced>,
    ) -> Replayed {
        let lane_replay = self;
        execute(
            call,
            EventExecutor {
                lane_replay,
                batch,
                scheduled,
            },
        )
    }

    #[inline(never)]
    fn enact_other(
        &mut self,
        batch: &CallBatch,
        scheduled: &ScheduledCall,
        call: &ReplayCall,
    ) -> Replayed {
        match call {
            ReplayCall::Inherit {
                path,
                slot,
                flags,
                offset,
            } => self.inherit(scheduled, (*path, *slot), *flags, *offset),
            ReplayCall::CloseDuplicate { slot } => self.close_duplicate(scheduled, *slot),
            ReplayCall::CloseSilently { slot } => self.close_silently(scheduled, *slot),
            ReplayCall::End => self.end(scheduled),
            ReplayCall::Omit { reason } => self.omit(scheduled, reason),
            ReplayCall::Grow { path, size } => self.grow(scheduled, *path, *size),
            ReplayCall::Stand { slot, offset } => self.stand(scheduled, *slot, *offset),
            ReplayCall::LetGo(first) => {
                self.let_go(first)?;
                let call = first.then.clone();
                self.enact(batch, &ScheduledCall { call, ..*scheduled })
            }
            ReplayCall::Fcntl { command, .. } if !controls::is_harmless(*command) => {
                self.omit(scheduled, "fcntl")
            }
            ReplayCall::Fcntl {
                slot,
                command,
                argument,
            } => self.fcntl(scheduled, *slot, *command, *argument),
            ReplayCall::Ioctl { command, .. } if !controls::is_asking(*command) => {
                self.omit(scheduled, "ioctl")
            }
            ReplayCall::Ioctl { slot, command } => self.on(scheduled, Op::Ioctl, *slot, |f| {
                controls::ioctl(f, *command)
            }),
            ReplayCall::LinkOpen { slot, to } => self.link_open(scheduled, *slot, *to),
            _ => self.enact_transfer(scheduled),
        }
    }

    /// An event that is not made, counted by its reason.
    pub(super) fn omit(&mut self, scheduled: &ScheduledCall, reason: &'static str) -> Replayed {
        self.tally.omit(reason);
        self.pass(scheduled)
    }

    /// A place as the kernel is told it; the directory stays open while the second part lives.
    #[inline]
    pub(super) fn seen(&self, place: Place) -> (At<'a>, Option<Held<'a>>) {
        let performance = self.performance;
        let held = place.from.and_then(|slot| performance.slots.hold(slot));
        let seen = held.as_ref().map(|held| {
            let rest = performance.names.rest(place);
            (held.file, if rest.is_empty() { c"." } else { rest })
        });
        let whole = performance.names.path(place.path);
        (At { whole, seen }, held)
    }

    /// Call at a place.
    #[inline]
    pub(super) fn at(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        place: Place,
        call: impl FnOnce(&K, At<'_>) -> Answer,
    ) -> Replayed {
        let path = place.path;
        let act = Act::new(op, path);
        let (at, held) = self.seen(place);
        let ended = self.measure(act, |kernel| call(kernel, at));
        drop(held);
        self.settle(scheduled, act, ended)
    }

    /// Call on the descriptor of a slot.
    #[inline]
    pub(super) fn on(
        &mut self,
        scheduled: &ScheduledCall,
        op: Op,
        slot: Slot,
        call: impl FnOnce(RawFd) -> Answer,
    ) -> Replayed {
        match self.called(op, slot, call) {
            Some((act, ended, _)) => self.settle(scheduled, act, ended),
            None => self.no_file(scheduled, op, slot),
        }
    }

    /// The same, to be settled by who calls; `None` when nothing is open there.
    #[inline]
    pub(super) fn called(
        &self,
        op: Op,
        slot: Slot,
        call: impl FnOnce(RawFd) -> Answer,
    ) -> Option<(Act, Ended, Held<'a>)> {
        let held = self.performance.slots.hold(slot)?;
        let path = held.path();
        let act = Act::new(op, path);
        let file = held.file;
        let ended = self.measure(act, |_| call(file));
        Some((act, ended, held))
    }

    /// The file was not opened, although it was recorded to be.
    #[cold]
    pub(super) fn no_file(&mut self, scheduled: &ScheduledCall, op: Op, slot: Slot) -> Replayed {
        let path = self.performance.slots.path_of(slot);
        self.lost(scheduled, Act::new(op, path), Errno::BADF)
    }

    fn fcntl(
        &mut self,
        scheduled: &ScheduledCall,
        slot: Slot,
        command: u32,
        argument: u64,
    ) -> Replayed {
        let called = self.called(Op::Fcntl, slot, |file| {
            controls::fcntl(file, command, argument)
        });
        let Some((act, ended, held)) = called else {
            return self.no_file(scheduled, Op::Fcntl, slot);
        };
        if command == libc::F_SETFL.cast_unsigned() && ended.answer.is_ok() {
            held.mark(u32::try_from(argument).unwrap_or(0));
        }
        self.settle(scheduled, act, ended)
    }

    /// It is told by the name that it gives.
    fn link_open(&mut self, scheduled: &ScheduledCall, slot: Slot, to: Place) -> Replayed {
        let (op, path) = (Op::Link, to.path);
        let Some(held) = self.performance.slots.hold(slot) else {
            return self.no_file(scheduled, op, slot);
        };
        let act = Act::new(op, path);
        let (to, held_to) = self.seen(to);
        let ended = self.measure(act, |kernel| kernel.link_open(held.file, to));
        drop((held, held_to));
        self.settle(scheduled, act, ended)
    }

    fn open(
        &mut self,
        scheduled: &ScheduledCall,
        (place, slot): (Place, Option<Slot>),
        how: How,
    ) -> Replayed {
        let path = place.path;
        let act = Act::new(Op::Open, path);
        let (at, held) = self.seen(place);
        let mut opened = None;
        let ended = self.measure(act, |kernel| {
            let file = kernel.open(at, how)?;
            opened = Some(file);
            Ok(0)
        });
        drop(held);
        match (opened, slot) {
            (Some(file), Some(slot)) => self.keep(slot, file, (path, how.flags)),
            (Some(file), None) => {
                // It was recorded to fail: a divergence, and nobody knows the descriptor.
                let op = Op::Close;
                let _closed = self.untimed(Act::new(op, path), |_| close(file));
            }
            (None, Some(slot)) => self.performance.slots.name(slot, path),
            (None, None) => {}
        }
        self.settle(scheduled, act, ended)
    }

    /// Put what was opened into its slot.
    fn keep(&self, slot: Slot, file: RawFd, (path, flags): (PathId, u32)) {
        let slots = &self.performance.slots;
        slots.put(slot, file, path);
        if flags & libc::O_DIRECT.cast_unsigned() != 0
            && let Some(held) = slots.hold(slot)
        {
            held.mark(flags);
        }
    }

    fn close(&mut self, scheduled: &ScheduledCall, slot: Slot) -> Replayed {
        let op = Op::Close;
        match self.performance.slots.take(slot) {
            Taken::File(file, path) => {
                let act = Act::new(op, path);
                let ended = self.measure(act, |_| close(file));
                self.settle(scheduled, act, ended)
            }
            Taken::Nothing => self.no_file(scheduled, op, slot),
            Taken::Busy => self.omit(scheduled, "close of a file in use"),
        }
    }

    fn close_duplicate(&mut self, scheduled: &ScheduledCall, slot: Slot) -> Replayed {
        let op = Op::Close;
        let Some(held) = self.performance.slots.hold(slot) else {
            return self.no_file(scheduled, op, slot);
        };
        let path = held.path();
        let act = Act::new(op, path);
        match duplicate(held.file) {
            Ok(file) => {
                let ended = self.measure(act, |_| close(file));
                self.settle(scheduled, act, ended)
            }
            Err(errno) => self.lost(scheduled, act, errno),
        }
    }

    fn close_silently(&mut self, scheduled: &ScheduledCall, slot: Slot) -> Replayed {
        if let Taken::File(file, path) = self.performance.slots.take(slot) {
            let act = Act::new(Op::Close, path);
            // No call of the program, so its result is none either.
            let _closed = self.untimed(act, |_| close(file));
        }
        self.pass(scheduled)
    }

    fn inherit(
        &mut self,
        scheduled: &ScheduledCall,
        (path, slot): (PathId, Slot),
        flags: u32,
        offset: u64,
    ) -> Replayed {
        let at = At::whole(self.performance.names.path(path));
        if !K::REAL {
            return self.pass(scheduled);
        }
        let how = How {
            flags: flags & !MAKING,
            mode: 0,
            resolve: 0,
        }
        .tamed();
        let opened = self.untimed(Act::new(Op::Open, path), |kernel| kernel.open(at, how));
        self.kernel.tidy();
        if self.is_broken_off(&opened) {
            return Err(Halt::Cut);
        }
        let Ok(file) = opened else {
            return self.omit(scheduled, "inherited file is not there");
        };
        self.keep(slot, file, (path, flags));
        let offset = i64::try_from(offset).unwrap_or(0);
        if offset > 0 {
            let act = Act::new(Op::Lseek, path);
            let positioned = self.untimed(act, |_| lseek(file, offset, 0));
            if self.is_broken_off(&positioned) {
                return Err(Halt::Cut);
            }
            if positioned.is_err() {
                return self.omit(scheduled, "inherited file cannot be positioned");
            }
        }
        self.pass(scheduled)
    }
}

/// Flags that make or cut a file: not for one that was open before.
const MAKING: u32 = (libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC).cast_unsigned();
