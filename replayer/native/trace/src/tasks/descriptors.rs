//! The descriptors of tasks: held, let go, closed at execve.

use crate::call::OnExec;
use crate::tasks::{Cwd, Descriptor, FdTable, FdTarget, Task, Tasks, inside};
use rustc_hash::FxHashMap;
use std::cell::RefMut;
use std::rc::Rc;

impl Task {
    /// Have a table of its own. Returns the descriptions that the one it shared holds as well.
    pub(super) fn part_files(&mut self) -> Vec<u32> {
        if Rc::strong_count(&self.files) == 1 {
            return Vec::new();
        }
        inside(Rc::make_mut(&mut self.files).get_mut())
    }

    /// Have a working directory of its own.
    pub(super) fn part_cwd(&mut self) {
        Rc::make_mut(&mut self.cwd);
    }
}

impl Tasks {
    fn files(&mut self, number: u64) -> Option<RefMut<'_, FdTable>> {
        Some(self.get_mut(number)?.files.borrow_mut())
    }

    /// Close what is to be closed at execve. Returns the descriptions that lose a descriptor, and those gained by a
    /// table that is no longer shared.
    pub(crate) fn exec(&mut self, number: u64) -> (Vec<u32>, Vec<u32>) {
        let gained = self.part_table(number);
        let closed = self.close_where(number, |_, slot| slot.on_exec == OnExec::Close);
        (closed, gained)
    }

    /// Give a task a table of its own. Returns the descriptions that this one holds as well.
    pub(crate) fn part_table(&mut self, number: u64) -> Vec<u32> {
        let task = self.get_mut(number);
        task.map(Task::part_files).unwrap_or_default()
    }

    pub(crate) fn part_cwd(&mut self, number: u64) {
        if let Some(task) = self.get_mut(number) {
            task.part_cwd();
        }
    }

    fn close_where(&mut self, number: u64, closes: impl Fn(i64, &Descriptor) -> bool) -> Vec<u32> {
        let Some(mut files) = self.files(number) else {
            return Vec::new();
        };
        let closed = files.extract_if(|&fd, slot| closes(fd, slot)).collect();
        inside(&closed)
    }

    /// Close a range of descriptors, or mark it to be closed at execve.
    pub(crate) fn close_range(
        &mut self,
        number: u64,
        first: i64,
        last: i64,
        mark: bool,
    ) -> Vec<u32> {
        let last = if last < 0 { i64::MAX } else { last };
        if !mark {
            return self.close_where(number, |fd, _| (first..=last).contains(&fd));
        }
        for (fd, slot) in self
            .files(number)
            .iter_mut()
            .flat_map(|files| files.iter_mut())
        {
            if (first..=last).contains(fd) {
                slot.on_exec = OnExec::Close;
            }
        }
        Vec::new()
    }

    /// What a descriptor of a task holds.
    pub(crate) fn held(&mut self, number: u64, fd: i64) -> Option<FdTarget> {
        let files = self.files(number)?;
        files.get(&fd).map(|slot| slot.held.clone())
    }

    /// Let a descriptor hold something. Returns the description that it held before.
    pub(crate) fn hold(
        &mut self,
        number: u64,
        fd: i64,
        held: FdTarget,
        on_exec: OnExec,
    ) -> Option<u32> {
        let before = self.files(number)?.insert(fd, Descriptor { held, on_exec });
        before?.held.inside()
    }

    /// Let a descriptor go.
    pub(crate) fn release(&mut self, number: u64, fd: i64) -> Option<FdTarget> {
        let slot = self.files(number)?.remove(&fd);
        slot.map(|slot| slot.held)
    }

    /// `F_SETFD` and the like.
    pub(crate) fn set_on_exec(&mut self, number: u64, fd: i64, on_exec: OnExec) {
        if let Some(mut files) = self.files(number)
            && let Some(slot) = files.get_mut(&fd)
        {
            slot.on_exec = on_exec;
        }
    }

    /// All working directories, to tell where they are now.
    pub(crate) fn cwds_mut(&mut self) -> impl Iterator<Item = RefMut<'_, Cwd>> {
        // Each of them once, however many tasks share it.
        let cwds = self.table.values().map(|task| &task.cwd);
        let cwds: FxHashMap<_, _> = cwds.map(|cwd| (Rc::as_ptr(cwd), cwd)).collect();
        cwds.into_values().map(|cwd| cwd.borrow_mut())
    }

    /// The working directory of a task.
    pub(crate) fn cwd_mut(&mut self, number: u64) -> Option<RefMut<'_, Cwd>> {
        Some(self.get_mut(number)?.cwd.borrow_mut())
    }
}
