//! Processes and threads: their descriptors and working directories, inherited and shared as the kernel does it.

use crate::call::{OnExec, Shares};
use crate::order::Seat;
use crate::scope::Spot;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// What a descriptor holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    /// An open description of a file below the roots, by number.
    Inside(u32),
    /// Anything else; with the absolute path of a directory that may lead to a root.
    Outside(Option<Rc<[u8]>>),
}

#[derive(Debug, Clone)]
struct Slot {
    held: Held,
    on_exec: OnExec,
}

/// Descriptors, shared by the tasks that were cloned with CLONE_FILES.
#[derive(Debug, Clone, Default)]
struct Table {
    slots: FxHashMap<i64, Slot>,
    users: u32,
}

/// A working directory, shared by the tasks that were cloned with CLONE_FS.
#[derive(Debug, Clone)]
pub(crate) struct Cwd {
    pub(crate) spot: Spot,
    /// The text that `-y` showed for it last.
    pub(crate) shown: Vec<u8>,
    /// What creations leave out of their modes.
    pub(crate) umask: i64,
    users: u32,
}

/// Ended tasks that are remembered until somebody waits for them (chosen).
const MOST_ENDED: usize = 1 << 16;
/// Where a log does not say (chosen: what login shells and services have).
const USUAL_UMASK: i64 = 0o022;

/// One thread of the traced program.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    files: usize,
    cwd: usize,
    /// Its number in the trace, once it has an event.
    pub(crate) thread: Option<u32>,
    /// End of its last event.
    pub(crate) last_end_ns: Option<i64>,
    /// Traced calls since then that are no events.
    pub(crate) others: u32,
    /// A close that was told when it was entered, and its event's row if it became one.
    pub(crate) early: Option<Option<u64>>,
    /// A clone that has not returned yet.
    pub(crate) spawning: Option<Shares>,
    /// The last event of the task that spawned it, before it did.
    pub(crate) parent_event: Option<Seat>,
    /// Its last event.
    pub(crate) last_event: Option<Seat>,
    /// Last events of children that it has waited for since.
    pub(crate) reaped: Vec<Seat>,
}

/// All tasks that live.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    tasks: FxHashMap<u64, Task>,
    tables: Vec<Table>,
    cwds: Vec<Cwd>,
    free_tables: Vec<usize>,
    free_cwds: Vec<usize>,
    /// Tasks whose clone has not returned, oldest first.
    spawning: Vec<u64>,
    /// Directories that tasks start in, where the user said so.
    given: FxHashMap<u64, Spot>,
    default_cwd: Option<Spot>,
    /// Tasks that were taken for somebody's child by guess.
    pub(crate) guessed: u64,
    /// Last events of tasks that have ended and were not waited for yet.
    ended: FxHashMap<u64, Seat>,
}

impl Tasks {
    /// Say where tasks start: one, or all that are not said.
    pub(crate) fn give_cwd(&mut self, task: Option<u64>, spot: Spot) {
        match task {
            Some(task) => {
                self.given.insert(task, spot);
            }
            None => self.default_cwd = Some(spot),
        }
    }

    pub(crate) fn get(&self, task: u64) -> Option<&Task> {
        self.tasks.get(&task)
    }

    /// The task of a number; one that was never seen starts with nothing.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Task> {
        if !self.tasks.contains_key(&number) {
            self.meet(number);
        }
        self.tasks.get_mut(&number)
    }

    fn meet(&mut self, number: u64) {
        let spot = self.given.get(&number).or(self.default_cwd.as_ref());
        let spot = spot.cloned().unwrap_or(Spot::Unknown);
        let files = self.add_table(Table::default());
        let cwd = self.add_cwd(Cwd {
            spot,
            shown: Vec::new(),
            umask: USUAL_UMASK,
            users: 0,
        });
        self.insert(number, files, cwd, None);
    }

    fn insert(&mut self, number: u64, files: usize, cwd: usize, parent_event: Option<Seat>) {
        if let Some(table) = self.tables.get_mut(files) {
            table.users += 1;
        }
        if let Some(cwd) = self.cwds.get_mut(cwd) {
            cwd.users += 1;
        }
        self.tasks.insert(
            number,
            Task {
                files,
                cwd,
                thread: None,
                last_end_ns: None,
                others: 0,
                early: None,
                spawning: None,
                parent_event,
                last_event: None,
                reaped: Vec::new(),
            },
        );
    }

    fn add_table(&mut self, table: Table) -> usize {
        let table = Table { users: 0, ..table };
        if let Some(free) = self.free_tables.pop() {
            if let Some(place) = self.tables.get_mut(free) {
                *place = table;
                return free;
            }
        }
        self.tables.push(table);
        self.tables.len() - 1
    }

    fn add_cwd(&mut self, cwd: Cwd) -> usize {
        if let Some(free) = self.free_cwds.pop() {
            if let Some(place) = self.cwds.get_mut(free) {
                *place = cwd;
                return free;
            }
        }
        self.cwds.push(cwd);
        self.cwds.len() - 1
    }

    /// A clone was entered; its child may be heard of before it returns.
    pub(crate) fn begin_spawn(&mut self, parent: u64, shares: Shares) {
        if let Some(task) = self.get_mut(parent) {
            task.spawning = Some(shares);
            self.spawning.retain(|&other| other != parent);
            self.spawning.push(parent);
        }
    }

    /// A clone returned. Returns the descriptions that the child holds now as well.
    pub(crate) fn end_spawn(&mut self, parent: u64, child: Option<u64>, shares: Shares) -> Vec<u32> {
        self.spawning.retain(|&other| other != parent);
        if let Some(task) = self.get_mut(parent) {
            task.spawning = None;
        }
        match child {
            Some(child) if !self.tasks.contains_key(&child) => self.spawn(parent, child, shares),
            _ => Vec::new(),
        }
    }

    fn spawn(&mut self, parent: u64, child: u64, shares: Shares) -> Vec<u32> {
        let Some(task) = self.tasks.get(&parent) else {
            return Vec::new();
        };
        let (mut files, mut cwd, event) = (task.files, task.cwd, task.last_event.or(task.parent_event));
        let mut copied = Vec::new();
        if !shares.files {
            let table = self.tables.get(files).cloned().unwrap_or_default();
            copied = inside(&table.slots);
            files = self.add_table(table);
        }
        if !shares.cwd {
            if let Some(copy) = self.cwds.get(cwd).cloned() {
                cwd = self.add_cwd(Cwd { users: 0, ..copy });
            }
        }
        self.insert(child, files, cwd, event);
        copied
    }

    /// A task that was met before its parent's clone returned took copies: which descriptions it holds.
    pub(crate) fn adopted(&mut self, number: u64) -> Option<Vec<u32>> {
        if self.tasks.contains_key(&number) || self.spawning.is_empty() {
            return None;
        }
        let parent = *self.spawning.first()?;
        let shares = self.tasks.get(&parent).and_then(|task| task.spawning)?;
        self.guessed += u64::from(self.spawning.len() > 1);
        // Another child of the same clone cannot follow.
        self.spawning.retain(|&other| other != parent);
        Some(self.spawn(parent, number, shares))
    }

    /// A task is about to end. Returns the descriptions that its table held, if it is the last to use it.
    pub(crate) fn leave(&mut self, number: u64) -> Vec<u32> {
        let Some(files) = self.tasks.get(&number).map(|task| task.files) else {
            return Vec::new();
        };
        match self.tables.get_mut(files) {
            Some(table) if table.users <= 1 => inside(&std::mem::take(&mut table.slots)),
            _ => Vec::new(),
        }
    }

    /// A task ended.
    pub(crate) fn end(&mut self, number: u64) {
        self.spawning.retain(|&other| other != number);
        let Some(task) = self.tasks.remove(&number) else {
            return;
        };
        if self.ended.len() >= MOST_ENDED {
            self.ended.clear();
        }
        self.ended.extend(task.last_event.map(|seat| (number, seat)));
        if let Some(table) = self.tables.get_mut(task.files) {
            table.users = table.users.saturating_sub(1);
            if table.users == 0 {
                *table = Table::default();
                self.free_tables.push(task.files);
            }
        }
        if let Some(cwd) = self.cwds.get_mut(task.cwd) {
            cwd.users = cwd.users.saturating_sub(1);
            if cwd.users == 0 {
                self.free_cwds.push(task.cwd);
            }
        }
    }

    /// A task has waited for another that had ended.
    pub(crate) fn reap(&mut self, number: u64, child: u64) {
        let seat = self.ended.remove(&child);
        if let (Some(task), Some(seat)) = (self.get_mut(number), seat) {
            task.reaped.push(seat);
        }
    }

    /// A task executed a program and took another's number.
    pub(crate) fn take_over(&mut self, leader: u64, from: u64) {
        if let Some(task) = self.tasks.remove(&from) {
            self.tasks.entry(leader).or_insert(task);
        }
    }

    /// Close what is to be closed at execve. Returns the descriptions that lose a descriptor, and those gained by a
    /// table that is no longer shared.
    pub(crate) fn exec(&mut self, number: u64) -> (Vec<u32>, Vec<u32>) {
        let Some(files) = self.get_mut(number).map(|task| task.files) else {
            return (Vec::new(), Vec::new());
        };
        let mut gained = Vec::new();
        let mut files = files;
        if self.tables.get(files).is_some_and(|table| table.users > 1) {
            let copy = self.tables.get(files).cloned().unwrap_or_default();
            gained = inside(&copy.slots);
            if let Some(table) = self.tables.get_mut(files) {
                table.users -= 1;
            }
            files = self.add_table(copy);
            if let Some(table) = self.tables.get_mut(files) {
                table.users = 1;
            }
            if let Some(task) = self.tasks.get_mut(&number) {
                task.files = files;
            }
        }
        (self.close_where(files, |_, slot| slot.on_exec == OnExec::Close), gained)
    }

    fn close_where(&mut self, files: usize, closes: impl Fn(i64, &Slot) -> bool) -> Vec<u32> {
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
            .filter_map(|slot| match slot.held {
                Held::Inside(description) => Some(description),
                Held::Outside(_) => None,
            })
            .collect()
    }

    /// Close a range of descriptors, or mark it to be closed at execve.
    pub(crate) fn close_range(&mut self, number: u64, first: i64, last: i64, mark: bool) -> Vec<u32> {
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
    pub(crate) fn held(&mut self, number: u64, fd: i64) -> Option<Held> {
        let files = self.get_mut(number)?.files;
        let table = self.tables.get(files)?;
        table.slots.get(&fd).map(|slot| slot.held.clone())
    }

    /// Let a descriptor hold something. Returns the description that it held before.
    pub(crate) fn hold(&mut self, number: u64, fd: i64, held: Held, on_exec: OnExec) -> Option<u32> {
        let files = self.get_mut(number)?.files;
        let table = self.tables.get_mut(files)?;
        let before = table.slots.insert(fd, Slot { held, on_exec })?;
        match before.held {
            Held::Inside(description) => Some(description),
            Held::Outside(_) => None,
        }
    }

    /// Let a descriptor go.
    pub(crate) fn release(&mut self, number: u64, fd: i64) -> Option<Held> {
        let files = self.get_mut(number)?.files;
        let table = self.tables.get_mut(files)?;
        table.slots.remove(&fd).map(|slot| slot.held)
    }

    /// F_SETFD and the like.
    pub(crate) fn set_on_exec(&mut self, number: u64, fd: i64, on_exec: OnExec) {
        let files = self.get_mut(number).map(|task| task.files);
        let table = files.and_then(|files| self.tables.get_mut(files));
        if let Some(slot) = table.and_then(|table| table.slots.get_mut(&fd)) {
            slot.on_exec = on_exec;
        }
    }

    /// The working directory of a task.
    pub(crate) fn cwd_mut(&mut self, number: u64) -> Option<&mut Cwd> {
        let cwd = self.get_mut(number)?.cwd;
        self.cwds.get_mut(cwd)
    }
}

fn inside(slots: &FxHashMap<i64, Slot>) -> Vec<u32> {
    let mut held: Vec<(i64, u32)> = slots
        .iter()
        .filter_map(|(&fd, slot)| match slot.held {
            Held::Inside(description) => Some((fd, description)),
            Held::Outside(_) => None,
        })
        .collect();
    held.sort_unstable();
    held.into_iter().map(|(_, description)| description).collect()
}
