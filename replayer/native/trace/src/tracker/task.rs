//! Calls that change what a task has: descriptors closed, copied and inherited, directories, children, ends.

use crate::call::{Args, Call, FileArg, Kind, OnExec, Outcome, PathArg, Shares, TaskEvent};
use crate::error::TraceError;
use crate::open_files::Description;
use crate::order::Access;
use crate::scope::Location;
use crate::tasks::{EarlyResult, FdTarget};
use crate::tracker::{Disposition, Operands, Tracker};
use replayer_ops::Op;

impl Tracker {
    /// Take a call that has been entered and has not returned: what it lets go is free from now on.
    pub(crate) fn enter(&mut self, call: &Call<'_>) -> Result<(), TraceError> {
        match call.kind {
            Kind::Spawn(shares) => {
                self.meet(call.task);
                self.tasks.begin_spawn(call.task, *shares, call.start_ns);
            }
            Kind::Accept => self.requests.finish(call.task),
            kind if kind.lets_go() => self.let_go_early(call)?,
            _ => {}
        }
        Ok(())
    }

    /// The call that a task had entered is not told of any more. What it let go stays free.
    pub(crate) fn forget_entered(&mut self, task: u64) {
        // One that was not met yet would begin without what its parent has.
        if let Some(task) = self.tasks.get_known_mut(task) {
            task.early = None;
        }
    }

    /// Take a call that lets something go when it is entered: others may have it before this call returns.
    fn let_go_early(&mut self, call: &Call<'_>) -> Result<(), TraceError> {
        self.meet(call.task);
        if let Some(start) = call.start_ns {
            self.first_ns.get_or_insert(start);
        }
        self.forget_entered(call.task); // or it would be the return of the one before
        let disposition = self.dispatch(call)?;
        // Descriptors from before the log may have been introduced first: its own event is the last one.
        let row = self.events.next_row().saturating_sub(1);
        if let Some(task) = self.tasks.get_mut(call.task) {
            task.early = Some(match disposition {
                Disposition::Event => EarlyResult::Event(row),
                Disposition::Other => EarlyResult::Nothing,
            });
        }
        Ok(())
    }

    /// Take the return of a call that was told when it was entered. None where it was not.
    pub(crate) fn returned(&mut self, call: &Call<'_>) -> Option<Disposition> {
        let task = self.tasks.get_mut(call.task)?;
        let EarlyResult::Event(row) = task.early.take()? else {
            return Some(Disposition::Other);
        };
        task.last_end_ns = call.end_ns();
        task.count_from(self.counts.calls);
        let result = match call.outcome {
            Outcome::Error(number) => -i64::from(number),
            Outcome::Value(_) | Outcome::Unknown => 0,
        };
        self.events.end(row, call.duration_ns, result);
        Some(Disposition::Event)
    }

    pub(crate) fn close(
        &mut self,
        call: &Call<'_>,
        file: FileArg<'_>,
    ) -> Result<Disposition, TraceError> {
        let end_ns = call.end_ns().unwrap_or(0);
        let held = self.held(call.task, file);
        self.tasks.release(call.task, file.number);
        if let Some(FdTarget::Lost(why)) = held {
            return Ok(self.leave_out(call, why));
        }
        let Some(FdTarget::Inside(id)) = held else {
            self.requests.closed(call.task, file.number, end_ns);
            self.counts.out_of_scope.add(call.name);
            return Ok(Disposition::Other);
        };
        let Some((slot, untold)) = self.files.get(id).map(|one| (one.slot, one.untold)) else {
            return Ok(Disposition::Other);
        };
        let gone = self.files.release(id);
        if untold {
            self.counts.followed.add(call.name);
            return Ok(Disposition::Other);
        }
        let op = gone.as_ref().map_or(Op::CloseDup, |_| Op::Close);
        self.emit_close(call, op, slot, gone)?;
        Ok(Disposition::Event)
    }

    fn emit_close(
        &mut self,
        call: &Call<'_>,
        op: Op,
        slot: u32,
        gone: Option<Description>,
    ) -> Result<(), TraceError> {
        let operands = Operands::of_file(slot);
        self.emit(call, op, operands, &Args::default())?;
        let Some(description) = gone else {
            self.order.file(slot, Access::Read);
            return Ok(());
        };
        self.order.file(slot, Access::Write);
        if let (true, Some(node)) = (description.locks, description.node) {
            self.order.unlock(node, slot);
        }
        self.usage.closed(description.path);
        self.order.forget_file(slot);
        Ok(())
    }

    /// Descriptions lose a descriptor without a close: those that lose their last one end.
    pub(crate) fn let_go(&mut self, call: &Call<'_>, ids: Vec<u32>) -> Result<(), TraceError> {
        for id in ids {
            if let Some(description) = self.files.release(id).filter(|one| !one.untold) {
                let silent = Call::implied(call.task, call.name, call.start_ns);
                self.emit_close(&silent, Op::CloseExit, description.slot, Some(description))?;
            }
        }
        Ok(())
    }

    /// Take a call that is state and no event.
    pub(crate) fn state(&mut self, call: &Call<'_>) -> Result<Disposition, TraceError> {
        let value = call.outcome.value();
        match call.kind {
            Kind::Dup { file, on_exec } => return self.dup(call, *file, *on_exec),
            Kind::Inherited {
                file,
                flags,
                offset,
                gone,
                description,
            } => match description.and_then(|one| self.files.inherited.get(&one).copied()) {
                Some(id) => self.inherited_once_more(call, *file, id, *flags),
                None => self.inherited(call, *file, (*flags, *offset), (*gone, *description)),
            },
            Kind::CloseRange { .. } | Kind::Unshare { .. } if value.is_some() => {
                self.parted(call)?;
            }
            Kind::Fchdir(file) => self.fchdir(call, *file),
            Kind::Chroot(path) | Kind::PivotRoot(path) if value.is_some() => {
                self.change_root(call, path);
            }
            Kind::Umask(mask) => {
                if let Some(mut cwd) = self.tasks.cwd_mut(call.task) {
                    cwd.umask = mask & 0o777;
                }
            }
            Kind::Getcwd(text) if value.is_some() && self.cwd(call.task) == Location::Unknown => {
                self.learn_cwd(call.task, text);
            }
            Kind::Spawn(shares) => self.spawned(call, *shares)?,
            Kind::Exec { path } => return self.exec(call, path.as_ref()),
            Kind::Reaped | Kind::Joined(_) => {
                if let Some(ended) = call.outcome.task() {
                    self.reaped(call, ended);
                }
            }
            Kind::Follows(other) => self.follows(call, *other),
            Kind::Accept => self.accepted(call),
            Kind::Pair {
                ends,
                both_ways,
                on_exec,
            } if value.is_some() => self.paired(call.task, *ends, *both_ways, *on_exec),
            // After a time without a descriptor it has slept.
            Kind::Poll if value.is_some_and(|ready| ready > 0) => {
                if let Some(task) = self.tasks.get_mut(call.task) {
                    task.has_polled(call);
                }
            }
            Kind::Foreign(numbers) if value.is_some() => {
                for &number in numbers {
                    self.hold_new(call.task, number, FdTarget::Outside(None), OnExec::Keep);
                }
            }
            Kind::Blind(what) => self.counts.blind.add(what),
            Kind::Unmap { from, to } if value.is_some() => self.unmapped(call, *from, *to)?,
            _ => {}
        }
        Ok(Disposition::Other)
    }

    /// A task that does not know where it is has asked.
    fn learn_cwd(&mut self, task: u64, text: &[u8]) {
        let (base, rest) = self.below_root(task, text);
        let location = self.locate(&base, rest);
        let cwd = self.tasks.cwd_mut(task);
        if let Some(mut cwd) = cwd.filter(|_| text.first() == Some(&b'/')) {
            cwd.location = location;
        }
    }

    /// Take a call by which a task lets descriptors go, or no more shares what it has.
    fn parted(&mut self, call: &Call<'_>) -> Result<(), TraceError> {
        match *call.kind {
            Kind::CloseRange {
                first,
                last,
                only_mark,
                parts,
            } => {
                if parts {
                    self.hold_parted(call.task);
                }
                let ids = self.tasks.close_range(call.task, first, last, only_mark);
                if !ids.is_empty() {
                    self.counts.followed.add(call.name);
                }
                self.let_go(call, ids)?;
            }
            Kind::Unshare {
                files,
                cwd,
                mounts,
                unseen,
            } => {
                if files {
                    self.hold_parted(call.task);
                }
                if cwd {
                    self.tasks.part_cwd(call.task);
                }
                if mounts {
                    self.tasks.part_mounts(call.task);
                }
                if unseen {
                    self.counts.blind.add("unshare");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A task has its descriptors for itself from now on, and holds what they hold.
    fn hold_parted(&mut self, task: u64) {
        for description in self.tasks.part_table(task) {
            self.files.hold(description);
        }
    }

    fn accepted(&mut self, call: &Call<'_>) {
        let Some(fd) = call.outcome.value() else {
            return;
        };
        let end_ns = call.end_ns().unwrap_or(0);
        self.requests.accepted(call.task, fd, end_ns);
        self.hold_new(call.task, fd, FdTarget::Outside(None), OnExec::Keep);
    }

    fn dup(
        &mut self,
        call: &Call<'_>,
        file: FileArg<'_>,
        on_exec: OnExec,
    ) -> Result<Disposition, TraceError> {
        let held = self.held(call.task, file);
        let inside = matches!(held, Some(FdTarget::Inside(_) | FdTarget::Lost(_)));
        if inside {
            self.counts.followed.add(call.name);
        } else {
            self.counts.out_of_scope.add(call.name);
        }
        let Some(new) = call.outcome.value().filter(|&new| new != file.number) else {
            return Ok(Disposition::Other);
        };
        if held.is_none() && self.knows_descriptors {
            // It is not known either.
            let before = self.tasks.release(call.task, new);
            let before = before.and_then(|before| before.inside());
            self.let_go(call, before.into_iter().collect())?;
            return Ok(Disposition::Other);
        }
        let held = held.unwrap_or(FdTarget::Outside(None));
        if let FdTarget::Inside(id) = held {
            self.files.hold(id);
        }
        if let Some(before) = self.tasks.hold(call.task, new, held, on_exec) {
            self.let_go(call, vec![before])?;
        }
        Ok(Disposition::Other)
    }

    fn fchdir(&mut self, call: &Call<'_>, file: FileArg<'_>) {
        let location = match self.held(call.task, file) {
            Some(FdTarget::Inside(id)) => {
                self.counts.followed.add(call.name);
                self.files
                    .get(id)
                    .map(|description| Location::Inside(description.place))
            }
            Some(FdTarget::Outside(Some(absolute))) => Some(Location::Outside(absolute)),
            _ => file
                .shown
                .and_then(|shown| self.locate_shown(call.task, shown)),
        };
        if let (true, Some(mut cwd)) = (call.outcome.is_ok(), self.tasks.cwd_mut(call.task)) {
            cwd.location = location.unwrap_or(Location::Unknown);
            cwd.shown.clear();
        }
    }

    fn spawned(&mut self, call: &Call<'_>, shares: Shares) -> Result<(), TraceError> {
        let child = call.outcome.task();
        if let Some(child) = child.filter(|&child| self.tasks.was_told(child)) {
            // The number is used again: the log does not say that the task which had it has ended.
            self.pass(child, TaskEvent::Replaced, call.start_ns)?;
        }
        for description in self.tasks.end_spawn(call.task, child, shares) {
            self.files.hold(description);
        }
        // The parent's call ends when a child that it lent its memory to has gone on for long.
        let begin = if shares.memory_in_turn {
            call.start_ns
        } else {
            call.end_ns()
        };
        let task = child.and_then(|child| self.tasks.get_mut(child));
        if let Some(task) = task.filter(|task| task.last_end_ns.is_none()) {
            task.last_end_ns = begin;
            task.count_from(self.counts.calls);
        }
        Ok(())
    }

    fn exec(
        &mut self,
        call: &Call<'_>,
        path: Option<&PathArg<'_>>,
    ) -> Result<Disposition, TraceError> {
        if path.is_some_and(|path| self.is_below_roots(call, path)) {
            self.counts.followed.add(call.name);
            self.counts
                .blind
                .add("programs executed from below the roots");
        } else {
            self.counts.out_of_scope.add(call.name);
        }
        if call.outcome.is_ok() {
            let (mut closed, gained) = self.tasks.exec(call.task);
            closed.extend(self.tasks.leave_memory(call.task));
            for description in gained {
                self.files.hold(description);
            }
            self.let_go(call, closed)?;
        }
        Ok(Disposition::Other)
    }

    /// A thread that had events has ended: what it did since the last one took time, too.
    fn exited(&mut self, call: &Call<'_>) -> Result<(), TraceError> {
        let task = self.tasks.get(call.task);
        if task.is_some_and(|task| task.last_event.is_some()) {
            self.emit(call, Op::Exit, Operands::default(), &Args::default())?;
        }
        Ok(())
    }

    pub(crate) fn pass(
        &mut self,
        task: u64,
        passing: TaskEvent,
        time_ns: Option<i64>,
    ) -> Result<(), TraceError> {
        if self.tasks.get(task).is_none() && !matches!(passing, TaskEvent::Superseded(_)) {
            return Ok(());
        }
        let call = Call::implied(task, "exit", time_ns);
        let mut held = self.tasks.leave(task);
        held.extend(self.tasks.leave_memory(task));
        self.let_go(&call, held)?;
        self.requests.finish(task);
        if passing == TaskEvent::Exited {
            self.exited(&call)?;
        }
        self.tasks.end(task);
        if let TaskEvent::Superseded(by) = passing {
            self.tasks.take_over(task, by);
        }
        Ok(())
    }
}
