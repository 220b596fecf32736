//! The descriptors of tasks: held, let go, closed at execve.

use crate::call::OnExec;
use crate::tasks::{Cwd, Descriptor, FdTarget, Tasks, inside};

impl Tasks {
    /// Close what is to be closed at execve. Returns the descriptions that lose a descriptor, and those gained by a
    /// table that is no longer shared.
    pub(crate) fn exec(&mut self, number: u64) -> (Vec<u32>, Vec<u32>) {
        let gained = self.part_table(number);
        let Some(files) = self.get_mut(number).map(|task| task.files) else {
            return (Vec::new(), gained);
        };
        (
            self.close_where(files, |_, slot| slot.on_exec == OnExec::Close),
            gained,
        )
    }

    /// Give a task a table of its own. Returns the descriptions that this one holds as well.
    pub(crate) fn part_table(&mut self, number: u64) -> Vec<u32> {
        let Some(files) = self.get_mut(number).map(|task| task.files) else {
            return Vec::new();
        };
        let Some(table) = self.tables.get_mut(files).filter(|table| table.users > 1) else {
            return Vec::new();
        };
        table.users -= 1;
        let copy = table.clone();
        let gained = inside(&copy.slots);
        let own = self.add_table(copy);
        if let Some(table) = self.tables.get_mut(own) {
            table.users = 1;
        }
        if let Some(task) = self.table.get_mut(&number) {
            task.files = own;
        }
        gained
    }

    /// Give a task a working directory of its own.
    pub(crate) fn part_cwd(&mut self, number: u64) {
        let Some(cwd) = self.get_mut(number).map(|task| task.cwd) else {
            return;
        };
        let Some(shared) = self.cwds.get_mut(cwd).filter(|cwd| cwd.users > 1) else {
            return;
        };
        shared.users -= 1;
        let copy = Cwd {
            users: 1,
            ..shared.clone()
        };
        let own = self.add_cwd(copy);
        if let Some(task) = self.table.get_mut(&number) {
            task.cwd = own;
        }
    }

    fn close_where(&mut self, files: usize, closes: impl Fn(i64, &Descriptor) -> bool) -> Vec<u32> {
        let Some(table) = self.tables.get_mut(files) else {
            return Vec::new();
        };
        let mut numbers: Vec<i64> = table
            .slots
            .iter()
            .filter(|&(&number, slot)| closes(number, slot))
            .map(|(&number, _)| number)
            .collect();
        numbers.sort_unstable();
        numbers
            .into_iter()
            .filter_map(|number| table.slots.remove(&number))
            .filter_map(|slot| slot.held.inside())
            .collect()
    }

    /// Close a range of descriptors, or mark it to be closed at execve.
    pub(crate) fn close_range(
        &mut self,
        number: u64,
        first: i64,
        last: i64,
        mark: bool,
    ) -> Vec<u32> {
        let Some(files) = self.get_mut(number).map(|task| task.files) else {
            return Vec::new();
        };
        let last = if last < 0 { i64::MAX } else { last };
        if !mark {
            return self.close_where(files, |fd, _| (first..=last).contains(&fd));
        }
        if let Some(table) = self.tables.get_mut(files) {
            for (fd, slot) in &mut table.slots {
                if (first..=last).contains(fd) {
                    slot.on_exec = OnExec::Close;
                }
            }
        }
        Vec::new()
    }

    /// What a descriptor of a task holds.
    pub(crate) fn held(&mut self, number: u64, fd: i64) -> Option<FdTarget> {
        let files = self.get_mut(number)?.files;
        let table = self.tables.get(files)?;
        table.slots.get(&fd).map(|slot| slot.held.clone())
    }

    /// Let a descriptor hold something. Returns the description that it held before.
    pub(crate) fn hold(
        &mut self,
        number: u64,
        fd: i64,
        held: FdTarget,
        on_exec: OnExec,
    ) -> Option<u32> {
        let files = self.get_mut(number)?.files;
        let table = self.tables.get_mut(files)?;
        let before = table.slots.insert(fd, Descriptor { held, on_exec })?;
        before.held.inside()
    }

    /// Let a descriptor go.
    pub(crate) fn release(&mut self, number: u64, fd: i64) -> Option<FdTarget> {
        let files = self.get_mut(number)?.files;
        let table = self.tables.get_mut(files)?;
        table.slots.remove(&fd).map(|slot| slot.held)
    }

    /// `F_SETFD` and the like.
    pub(crate) fn set_on_exec(&mut self, number: u64, fd: i64, on_exec: OnExec) {
        let files = self.get_mut(number).map(|task| task.files);
        let table = files.and_then(|files| self.tables.get_mut(files));
        if let Some(slot) = table.and_then(|table| table.slots.get_mut(&fd)) {
            slot.on_exec = on_exec;
        }
    }

    /// All working directories, to tell where they are now.
    pub(crate) fn cwds_mut(&mut self) -> impl Iterator<Item = &mut Cwd> {
        self.cwds.iter_mut()
    }

    /// The working directory of a task.
    pub(crate) fn cwd_mut(&mut self, number: u64) -> Option<&mut Cwd> {
        let cwd = self.get_mut(number)?.cwd;
        self.cwds.get_mut(cwd)
    }
}
