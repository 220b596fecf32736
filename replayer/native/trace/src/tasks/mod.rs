//! Processes and threads: their descriptors and working directories, inherited and shared as the kernel does it.

pub(crate) mod predecessors;

use crate::call::{OnExec, Shares};
use crate::mappings::Mappings;
use crate::order::{EdgeReason, EventRef};
use crate::paths::PathId;
use crate::pipes::PipeEnd;
use crate::scope::Location;
use crate::tracer_overhead::LastCall;
use predecessors::{EndedTask, PollTime, Predecessors, WaitTime};
use replayer_ops::Op;
use rustc_hash::FxHashMap;
use std::cell::{RefCell, RefMut};
use std::rc::Rc;

#[derive(Debug, Clone)]
struct Descriptor {
    held: FdTarget,
    on_exec: OnExec,
}

type FdTable = FxHashMap<i64, Descriptor>;

/// The mounts of tasks that have others than the machine that was recorded.
#[derive(Debug)]
pub(crate) struct Mounted {
    /// Where the names begin that the log shows of them.
    pub(crate) begin: Box<[u8]>,
    /// Places on which they have something else mounted, deeper ones first, and the place that this is, if it is one below a root.
    pub(crate) covers: Vec<(PathId, Option<PathId>)>,
}

/// A working directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cwd {
    pub(crate) location: Location,
    /// Where absolute paths begin, if that is not the root of all (`chroot(2)`).
    pub(crate) root: Option<Location>,
    /// Whose mounts it lies on: those that were there first, or others.
    pub(crate) mounts: u32,
    /// What these are, if its task had others from the begin.
    pub(crate) mounted: Option<Rc<Mounted>>,
    /// The text that `-y` showed for it last.
    pub(crate) shown: Vec<u8>,
    /// What creations leave out of their modes.
    pub(crate) umask: i64,
}

/// Ended tasks that are remembered until somebody waits for them (chosen).
const MOST_ENDED: usize = 1 << 16;
/// Where a log does not say (chosen: what login shells and services have).
const USUAL_UMASK: i64 = 0o022;

/// What a close or an unlock became when it was entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlyResult {
    /// The event of this row.
    Event(u64),
    /// None of the trace's.
    Nothing,
}

/// One thread of the traced program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Task {
    /// Shared by the tasks that were cloned with `CLONE_FILES`.
    files: Rc<RefCell<FdTable>>,
    /// Shared by the tasks that were cloned with `CLONE_FS`.
    cwd: Rc<RefCell<Cwd>>,
    /// Shared by the tasks that were cloned with `CLONE_VM`.
    memory: Rc<RefCell<Mappings>>,
    /// Its number in the trace, once it has an event.
    pub(crate) thread: Option<u32>,
    pub(crate) last_end_ns: Option<i64>,
    pub(crate) last_op: Option<Op>,
    /// Calls of the whole log that had ended when its last event did, or when it was spawned.
    pub(crate) calls_then: u64,
    /// Its own calls since, counted where the recorder holds up nobody else.
    pub(crate) own_calls: u64,
    pub(crate) last_call: Option<LastCall>,
    /// What the call that it has entered became, if that lets something go: its return makes no event of its own.
    pub(crate) early: Option<EarlyResult>,
    /// A clone that has not returned yet.
    pub(crate) spawning: Option<Shares>,
    /// When that was entered.
    pub(crate) spawning_ns: Option<i64>,
    pub(crate) last_event: Option<EventRef>,
    /// What has happened since, or before its first one.
    pub(crate) predecessors: Predecessors,
    /// How long it has waited for other tasks since.
    awaited: WaitTime,
    /// How much of that it has waited since it was told of the last of what is behind it.
    awaited_after: WaitTime,
    /// How long it has waited for descriptors since, and has not used one of a pipe.
    polled: PollTime,
    /// How long its last use of a pipe took, with what looked for it, unless that is awaited already.
    moving: WaitTime,
    /// A call that started it has returned its number.
    told: bool,
    /// Who has waited for it, where the log tells that before it tells of its end.
    awaited_by: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Tasks {
    table: FxHashMap<u64, Task>,
    /// Tasks whose clone has not returned, oldest first.
    spawning: Vec<u64>,
    /// Directories that tasks start in, where the user said so: one, or (None) all others.
    given_cwds: FxHashMap<Option<u64>, Location>,
    /// What creations of tasks leave out of their modes at the begin, in the same way.
    given_umasks: FxHashMap<Option<u64>, i64>,
    /// Where absolute paths of tasks begin that have another root from the begin.
    given_roots: FxHashMap<u64, Location>,
    /// The mounts of tasks that have others from the begin.
    given_mounts: FxHashMap<u64, Rc<Mounted>>,
    /// Any task has another root.
    pub(crate) have_roots: bool,
    /// Mounts of their own that tasks have got so far.
    mounts: u32,
    /// Tasks that were taken for somebody's child by guess.
    pub(crate) guessed: u64,
    /// What is left of tasks that have ended and were not waited for yet.
    ended: FxHashMap<u64, EndedTask>,
}

impl Tasks {
    /// Say where tasks start: one, or all that are not said.
    pub(crate) fn give_cwd(&mut self, task: Option<u64>, location: Location) {
        self.given_cwds.insert(task, location);
    }

    /// Say what tasks leave out of modes at the begin: one, or all that are not said.
    pub(crate) fn give_umask(&mut self, task: Option<u64>, umask: i64) {
        self.given_umasks.insert(task, umask);
    }

    /// Say where absolute paths of a task begin.
    pub(crate) fn give_root(&mut self, task: u64, root: Location) {
        self.have_roots = true;
        self.given_roots.insert(task, root);
    }

    /// Say what a task has mounted.
    pub(crate) fn give_mounts(&mut self, task: u64, mounted: Mounted) {
        let same = self.given_mounts.values();
        let same = same.into_iter().find(|one| one.begin == mounted.begin);
        let mounted = same.map_or_else(|| Rc::new(mounted), Rc::clone);
        self.given_mounts.insert(task, mounted);
    }

    /// What a task has had mounted from the begin, if that is something else than others have.
    pub(crate) fn mounted(&mut self, task: u64) -> Option<Rc<Mounted>> {
        if self.given_mounts.is_empty() {
            return None;
        }
        self.cwd_mut(task)?.mounted.clone()
    }

    pub(crate) fn get(&self, task: u64) -> Option<&Task> {
        self.table.get(&task)
    }

    /// The task of a number; one that was never seen starts with nothing.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Task> {
        if !self.table.contains_key(&number) {
            self.meet(number);
        }
        self.table.get_mut(&number)
    }

    /// A task's next call has ended.
    pub(crate) fn count_call(&mut self, number: u64) {
        if let Some(task) = self.table.get_mut(&number) {
            task.own_calls += 1;
        }
    }

    /// The task of a number, if it lives and was seen.
    pub(crate) fn get_known_mut(&mut self, number: u64) -> Option<&mut Task> {
        self.table.get_mut(&number)
    }

    fn meet(&mut self, number: u64) {
        let given = [Some(number), None];
        let location = given.iter().find_map(|task| self.given_cwds.get(task));
        let location = location.cloned().unwrap_or(Location::Unknown);
        let umask = given.iter().find_map(|task| self.given_umasks.get(task));
        let umask = umask.copied().unwrap_or(USUAL_UMASK);
        let cwd = Cwd {
            location,
            root: self.given_roots.get(&number).cloned(),
            mounts: 0,
            mounted: self.given_mounts.get(&number).cloned(),
            shown: Vec::new(),
            umask,
        };
        let task = Task {
            cwd: Rc::new(RefCell::new(cwd)),
            ..Task::default()
        };
        self.table.insert(number, task);
    }

    /// A clone was entered; its child may be heard of before it returns.
    pub(crate) fn begin_spawn(&mut self, parent: u64, shares: Shares, start_ns: Option<i64>) {
        if let Some(task) = self.get_mut(parent) {
            task.spawning = Some(shares);
            task.spawning_ns = start_ns;
            self.spawning.retain(|&other| other != parent);
            self.spawning.push(parent);
        }
    }

    /// A clone returned. Returns the descriptions that the child holds now as well.
    pub(crate) fn end_spawn(
        &mut self,
        parent: u64,
        child: Option<u64>,
        shares: Shares,
    ) -> Vec<u32> {
        self.spawning.retain(|&other| other != parent);
        if let Some(task) = self.get_mut(parent) {
            task.spawning = None;
        }
        let Some(child) = child else {
            return Vec::new();
        };
        let copied = if self.table.contains_key(&child) {
            Vec::new()
        } else {
            self.spawn(parent, child, shares)
        };
        if let Some(task) = self.table.get_mut(&child) {
            task.told = true;
        }
        copied
    }

    /// Whether a task lives that a call has returned the number of.
    pub(crate) fn was_told(&self, number: u64) -> bool {
        self.table.get(&number).is_some_and(|task| task.told)
    }

    fn spawn(&mut self, parent: u64, child: u64, shares: Shares) -> Vec<u32> {
        let Some(task) = self.table.get(&parent) else {
            return Vec::new();
        };
        let mut born = Task {
            files: Rc::clone(&task.files),
            cwd: Rc::clone(&task.cwd),
            memory: Rc::clone(&task.memory),
            predecessors: task
                .predecessors
                .of_child(parent, task.cause(EdgeReason::Spawn)),
            awaited_after: task.awaited_after,
            ..Task::default()
        };
        let mut copied = Vec::new();
        if !shares.files {
            copied = born.part_files();
        }
        if !shares.cwd {
            born.part_cwd();
        }
        if !shares.memory {
            Rc::make_mut(&mut born.memory);
        }
        if shares.parts_mounts {
            self.mounts += 1;
            born.cwd.borrow_mut().mounts = self.mounts;
        }
        self.table.insert(child, born);
        copied
    }

    /// A task that was met before its parent's clone returned took copies: which descriptions it holds. Without its parent's number,
    /// that is a guess where several are in a clone.
    pub(crate) fn adopted(&mut self, number: u64, parent: Option<u64>) -> Option<Vec<u32>> {
        if self.table.contains_key(&number) {
            return None;
        }
        let is_guess = parent.is_none() && self.spawning.len() > 1;
        let parent = parent.or_else(|| self.spawning.first().copied())?;
        let task = self.table.get(&parent)?;
        let (shares, start_ns) = (task.spawning?, task.spawning_ns);
        self.guessed += u64::from(is_guess);
        // Another child of the same clone cannot follow.
        self.spawning.retain(|&other| other != parent);
        let held = self.spawn(parent, number, shares);
        if let Some(task) = self.table.get_mut(&number) {
            task.last_end_ns = start_ns;
        }
        Some(held)
    }

    /// A task is about to end. Returns the descriptions that its table held, if it is the last to use it.
    pub(crate) fn leave(&mut self, number: u64) -> Vec<u32> {
        match self.table.get(&number) {
            Some(task) if Rc::strong_count(&task.files) == 1 => inside(&task.files.take()),
            _ => Vec::new(),
        }
    }

    pub(crate) fn end(&mut self, number: u64) {
        self.spawning.retain(|&other| other != number);
        let Some(task) = self.table.remove(&number) else {
            return;
        };
        if self.ended.len() >= MOST_ENDED {
            self.ended.clear();
        }
        let left = task.predecessors.leave(task.cause(EdgeReason::Wait));
        let waits = task.awaited_by.filter(|by| self.table.contains_key(by));
        self.ended.extend(left.map(|left| (number, left)));
        if let Some(by) = waits {
            self.reap(by, number);
        }
    }

    /// A task has waited for another that had ended. Without durations, logs of each task tell of its end only later.
    ///
    /// Returns whether that had events, or waited for some: so that the wait is one for them.
    pub(crate) fn reap(&mut self, number: u64, child: u64) -> bool {
        if let Some(task) = self.table.get_mut(&child).filter(|_| child != number) {
            task.awaited_by = Some(number);
            return false;
        }
        let left = self.ended.remove(&child);
        self.take_on(number, left)
    }

    /// A task goes on after what another one has left, if that left anything: whether it did.
    fn take_on(&mut self, number: u64, left: Option<EndedTask>) -> bool {
        match (self.get_mut(number), left) {
            (Some(task), Some(left)) => {
                task.predecessors.reap(number, left);
                true
            }
            _ => false,
        }
    }

    /// A task executed a program and took another's number.
    pub(crate) fn take_over(&mut self, leader: u64, from: u64) {
        if let Some(task) = self.table.remove(&from)
            && !self.table.contains_key(&leader)
        {
            self.table.insert(leader, task);
        }
    }
}

fn inside(slots: &FdTable) -> Vec<u32> {
    let mut held: Vec<(i64, u32)> = slots
        .iter()
        .filter_map(|(&fd, slot)| Some((fd, slot.held.inside()?)))
        .collect();
    held.sort_unstable();
    held.into_iter()
        .map(|(_, description)| description)
        .collect()
}

/// What a descriptor holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FdTarget {
    /// An open description of a file below the roots, by number.
    Inside(u32),
    /// Anything else; with its absolute path, where that is known.
    Outside(Option<Rc<[u8]>>),
    /// A pipe, or one of a pair of sockets.
    Pipe(PipeEnd),
    /// A file below the roots that cannot be opened again, and why: no event stands for what is done with it.
    Lost(&'static str),
}

impl FdTarget {
    /// The open description, if it is one of a file below the roots that events stand for.
    pub(crate) fn inside(&self) -> Option<u32> {
        match self {
            Self::Inside(description) => Some(*description),
            Self::Outside(_) | Self::Pipe(_) | Self::Lost(_) => None,
        }
    }

    /// Why no event stands for what is done with it, if none does.
    pub(crate) fn lost(&self) -> Option<&'static str> {
        match self {
            Self::Lost(why) => Some(why),
            Self::Inside(_) | Self::Outside(_) | Self::Pipe(_) => None,
        }
    }
}

impl Task {
    /// Have a table of its own. Returns the descriptions that the one it shared holds as well.
    fn part_files(&mut self) -> Vec<u32> {
        if Rc::strong_count(&self.files) == 1 {
            return Vec::new();
        }
        inside(Rc::make_mut(&mut self.files).get_mut())
    }

    /// Have a working directory of its own.
    fn part_cwd(&mut self) {
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

    /// A task has mounts for itself from now on.
    pub(crate) fn part_mounts(&mut self, number: u64) {
        self.mounts += 1;
        let mounts = self.mounts;
        if let Some(mut cwd) = self.cwd_mut(number) {
            cwd.mounts = mounts;
        }
    }

    fn close_where(&mut self, number: u64, closes: impl Fn(i64, &Descriptor) -> bool) -> Vec<u32> {
        let Some(mut files) = self.files(number) else {
            return Vec::new();
        };
        let gone = files.extract_if(|&fd, slot| closes(fd, slot)).collect();
        inside(&gone)
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

    /// What a task has mapped.
    pub(crate) fn mappings(&mut self, number: u64) -> Option<RefMut<'_, Mappings>> {
        Some(self.get_mut(number)?.memory.borrow_mut())
    }

    /// A task has nothing mapped any more. Returns the descriptions that nobody else maps.
    pub(crate) fn leave_memory(&mut self, number: u64) -> Vec<u32> {
        let task = self.table.get_mut(&number);
        let left = task.and_then(|task| Rc::into_inner(std::mem::take(&mut task.memory)));
        left.map_or_else(Vec::new, |memory| memory.into_inner().unmap((0, i64::MAX)))
    }

    /// The working directory of a task.
    pub(crate) fn cwd_mut(&mut self, number: u64) -> Option<RefMut<'_, Cwd>> {
        Some(self.get_mut(number)?.cwd.borrow_mut())
    }
}
