//! Follows the state of the traced program and turns its calls into events.
//!
//! Calls come in the order of the log and become events in the order in which they took effect: when they returned,
//! except for those that let something go (a close, an unlock), which take effect when they are entered. Events go to the tables and
//! to the order of events; nothing is kept of them here.

mod copy;
mod file;
mod gauge;
mod held;
mod open;
pub(crate) mod overlap;
mod pair;
mod path;
mod special;
mod task;

use crate::call::{Args, At, Call, FileKind, Kind, Outcome, PathArg};
use crate::constants::{O_DIRECTORY, O_RDWR};
use crate::counts::Counts;
use crate::error::TraceError;
use crate::files::{Description, Files};
use crate::op::Op;
use crate::order::{Order, Reason};
use crate::paths::PathId;
use crate::requests::Requests;
use crate::scope::{Hit, Scope, Spot};
use crate::seat::Seat;
use crate::stretch::Sample;
use crate::tables::edges::EdgeWriter;
use crate::tables::events::{EventWriter, Row};
use crate::tasks::{Held, Tasks};
use crate::tree::{Found, Tree};
use crate::usage::Usage;

/// What a call turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Event,
    /// Not an event: it still took the tracer's time.
    Other,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct On {
    pub(crate) path: Option<PathId>,
    pub(crate) to_path: Option<PathId>,
    pub(crate) file: Option<u32>,
    pub(crate) to_file: Option<u32>,
}

/// A description that was opened before the log began, until an event tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adopted {
    pub(crate) path: PathId,
    pub(crate) slot: u32,
    /// Its flags and position, where they were looked up.
    pub(crate) known: Option<(i64, i64)>,
}

/// State, and where events go.
pub(crate) struct Tracker {
    pub(crate) scope: Scope,
    pub(crate) tree: Tree,
    pub(crate) tasks: Tasks,
    pub(crate) files: Files,
    pub(crate) counts: Counts,
    pub(crate) order: Order,
    pub(crate) requests: Requests,
    pub(crate) usage: Usage,
    pub(crate) events: EventWriter,
    pub(crate) edges: EdgeWriter,
    /// Lookups below this path are markers.
    pub(crate) marker: Vec<u8>,
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: i64,
    /// The traced program's own number of each thread.
    pub(crate) threads: Vec<u64>,
    /// Names of files outside of the roots that were moved or linked in.
    pub(crate) outside: u32,
    /// Descriptions that were open before: they get an event before the one that uses them.
    pub(crate) adopted: Vec<Adopted>,
}

impl Tracker {
    /// Take a call that has returned.
    pub(crate) fn call(&mut self, call: &Call<'_>) -> Result<(), TraceError> {
        self.meet(call.task);
        self.counts.calls += 1;
        if let Some(start) = call.start_ns {
            self.first_ns.get_or_insert(start);
            self.last_ns = self.last_ns.max(call.end_ns().unwrap_or(start));
        }
        if call.outcome == Outcome::Unknown && !matches!(call.kind, Kind::Other | Kind::Exec { .. })
        {
            self.counts.halves.add(call.name);
            return Ok(());
        }
        self.gauge_before(call);
        let fate = self.dispatch(call)?;
        self.gauge_after(call, fate);
        Ok(())
    }

    fn dispatch(&mut self, call: &Call<'_>) -> Result<Fate, TraceError> {
        if call.kind.lets_go()
            && let Some(fate) = self.returned(call)
        {
            return Ok(fate);
        }
        match call.kind {
            Kind::Open { path, args, shown } => self.open(call, path, args, *shown),
            Kind::Path { op, path, args } => self.on_path(call, *op, path, args),
            Kind::TwoPaths { op, path, to, args } => self.on_two_paths(call, *op, [path, to], args),
            Kind::File { op, file, args } => self.on_file(call, *op, *file, args),
            Kind::TwoFiles { op, file, to, args } => {
                self.on_two_files(call, *op, [*file, *to], args)
            }
            Kind::SetOnExec {
                file,
                on_exec,
                args,
            } => {
                if call.outcome.is_ok() {
                    self.tasks.set_on_exec(call.task, file.number, *on_exec);
                }
                self.on_file(call, Op::Fcntl, *file, args)
            }
            Kind::Close(file) => self.close(call, *file),
            Kind::Unsupported { path, file } => Ok(self.unsupported(call, path.as_ref(), *file)),
            _ => self.state(call),
        }
    }

    /// Make sure that a task is known; a new one may be the child of a clone that has not returned.
    pub(crate) fn meet(&mut self, task: u64) {
        if self.tasks.get(task).is_some() {
            return;
        }
        let adopted = self.tasks.adopted(task);
        if let Some(child) = self.tasks.get_mut(task).filter(|_| adopted.is_some()) {
            child.calls_then = self.counts.calls;
        }
        for description in adopted.into_iter().flatten() {
            self.files.hold(description);
        }
    }

    /// Write an event. Returns its seat.
    pub(crate) fn emit(
        &mut self,
        call: &Call<'_>,
        op: Op,
        on: On,
        args: &Args<'_>,
    ) -> Result<Seat, TraceError> {
        while let Some(adopted) = self.adopted.pop() {
            self.introduce(call, &adopted)?;
        }
        let row = self.events.next_row();
        let [path, to_path] =
            [on.path, on.to_path].map(|path| path.map(|path| self.scope.paths.row(path)));
        let (seat, sample) = self.take_seat(call, op, row);
        let result = match call.outcome {
            Outcome::Value(_) if op == Op::Open => 0,
            Outcome::Value(value) => value,
            Outcome::Error(number) => -i64::from(number),
            Outcome::Unknown => 0,
        };
        let start_ns = call
            .start_ns
            .unwrap_or(0)
            .saturating_sub(self.first_ns.unwrap_or(0));
        self.counts.event(op, result);
        let event = Row {
            thread: seat.thread,
            start_ns: start_ns.max(0),
            duration_ns: call.duration_ns,
            op,
            path,
            to_path,
            file: on.file,
            to_file: on.to_file,
            args,
            result,
        };
        self.events.push(&event, sample)?;
        let times = (call.start_ns.unwrap_or(0), call.end_ns().unwrap_or(0));
        self.requests.event(call.task, seat.thread, row, times);
        if !self.order.ready.is_empty() {
            for edge in self.order.ready.drain(..) {
                self.edges.push(edge)?;
            }
        }
        Ok(seat)
    }

    /// Write the event that stands for an opening before the trace.
    fn introduce(&mut self, call: &Call<'_>, adopted: &Adopted) -> Result<(), TraceError> {
        let Adopted { path, slot, known } = *adopted;
        let found = self.tree.find(&self.scope.paths, path, true);
        let is_directory =
            matches!(found, Found::Node(node, _) if self.tree.kind(node) == FileKind::Directory);
        let before = Call::implied(call.task, "inherit", call.start_ns);
        let on = On {
            path: Some(path),
            file: Some(slot),
            ..On::default()
        };
        let guess = if is_directory { O_DIRECTORY } else { O_RDWR };
        let args = Args {
            flags: Some(known.map_or(guess, |(flags, _)| flags)),
            offset: known.map(|(_, offset)| offset),
            ..Args::default()
        };
        self.emit(&before, Op::Inherit, on, &args)?;
        self.order.file(slot, crate::order::Access::Write);
        Ok(())
    }

    /// The thread of an event, its raw gap, and its place in the order.
    fn take_seat(&mut self, call: &Call<'_>, op: Op, row: u64) -> (Seat, Sample) {
        let free = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let first_ns = self.first_ns;
        let Some(task) = self.tasks.get_mut(call.task) else {
            return (Seat { row, thread: 0 }, Sample::default());
        };
        let thread = *task.thread.get_or_insert(free);
        let seat = Seat { row, thread };
        let before = task.last_end_ns.or(first_ns);
        let gap_ns = call
            .start_ns
            .zip(before)
            .map(|(start, end)| start.saturating_sub(end));
        let own = u64::from(call.meanwhile) + 1;
        let others = self.counts.calls.saturating_sub(task.calls_then + own);
        let sample = Sample {
            gap_ns: gap_ns.map(|gap| gap.max(0)),
            others: u32::try_from(others).unwrap_or(u32::MAX),
        };
        task.calls_then = self.counts.calls;
        task.last_op = Some(op);
        task.last_end_ns = call.end_ns();
        let mut causes: Vec<(Seat, Reason)> = task
            .reaped
            .drain(..)
            .map(|seat| (seat, Reason::Wait))
            .collect();
        if task.last_event.replace(seat).is_none() {
            causes.extend(task.parent_event.map(|seat| (seat, Reason::Spawn)));
        }
        if thread == free {
            self.threads.push(call.task);
        }
        self.order.begin(seat, &causes);
        (seat, sample)
    }

    /// Where a relative path of a call begins, and the description of that directory.
    fn base(&mut self, task: u64, at: &At<'_>) -> (Spot, Option<u32>) {
        match at {
            At::Cwd(None) => (self.cwd(task), None),
            At::Cwd(Some(shown)) => {
                let known = self.tasks.cwd_mut(task);
                if let Some(cwd) = known.filter(|cwd| cwd.shown == *shown) {
                    return (cwd.spot.clone(), None);
                }
                let spot = self.locate_shown(shown).unwrap_or(Spot::Unknown);
                if let Some(cwd) = self.tasks.cwd_mut(task) {
                    cwd.shown = shown.to_vec();
                    cwd.spot = spot.clone();
                }
                (spot, None)
            }
            At::File(file) => match self.held(task, *file) {
                Some(Held::Inside(id)) => match self.files.get(id) {
                    Some(description) => {
                        let (path, slot) = (description.place, description.slot);
                        if let Some(node) = description.node {
                            self.tree.set_kind(node, FileKind::Directory);
                        }
                        (Spot::Inside(path), Some(slot))
                    }
                    None => (Spot::Unknown, None),
                },
                Some(Held::Outside(Some(absolute))) => (Spot::Outside(absolute), None),
                Some(Held::Outside(None)) => {
                    match file.shown.and_then(|shown| self.locate_shown(shown)) {
                        Some(spot) => (spot, None),
                        // No directory that leads to a root: those are kept.
                        None => (Spot::Outside(std::rc::Rc::from(&b"-"[..])), None),
                    }
                }
                None => (Spot::Unknown, None),
            },
        }
    }

    pub(crate) fn cwd(&mut self, task: u64) -> Spot {
        self.tasks
            .cwd_mut(task)
            .map_or(Spot::Unknown, |cwd| cwd.spot.clone())
    }

    /// The spot of a path that `-y` shows; None where it shows no path.
    pub(crate) fn locate_shown(&mut self, shown: &[u8]) -> Option<Spot> {
        let text = crate::formats::strace::value::unescape(shown);
        if text.first() != Some(&b'/') {
            return None;
        }
        Some(self.locate(&Spot::Unknown, &text))
    }

    pub(crate) fn locate(&mut self, base: &Spot, text: &[u8]) -> Spot {
        let tree = &mut self.tree;
        self.scope
            .locate(base, text, &mut |paths, path| tree.link_target(paths, path))
    }

    /// Where a path of a call leads, and the description of the directory it begins at.
    pub(crate) fn resolve(&mut self, task: u64, path: &PathArg<'_>) -> (Hit, Option<u32>) {
        if let Some(hit) = self.through_proc(task, &path.text) {
            return (hit, None);
        }
        let absolute = path.text.first() == Some(&b'/');
        let (base, slot) = if absolute {
            (Spot::Unknown, None)
        } else {
            self.base(task, &path.at)
        };
        let tree = &mut self.tree;
        let hit = self.scope.resolve(&base, &path.text, &mut |paths, path| {
            tree.link_target(paths, path)
        });
        (hit, slot.filter(|_| !absolute))
    }

    /// `/proc/self/fd/7` names what the descriptor holds.
    fn through_proc(&mut self, task: u64, text: &[u8]) -> Option<Hit> {
        match self.held_through_proc(task, text)? {
            Held::Inside(id) => self.files.get(id).map(Description::hit),
            Held::Outside(_) => Some(Hit::Outside),
        }
    }

    pub(crate) fn held_through_proc(&mut self, task: u64, text: &[u8]) -> Option<Held> {
        let rest = text
            .strip_prefix(b"/proc/self/fd/")
            .or_else(|| text.strip_prefix(b"/dev/fd/"))?;
        let (number, rest) = crate::bytes::take_digits(rest)?;
        if !rest.is_empty() {
            return None;
        }
        self.tasks.held(task, i64::try_from(number).ok()?)
    }

    /// Count a call that is none of the trace's.
    pub(crate) fn drop_call(&mut self, call: &Call<'_>, hit: Hit) -> Fate {
        let counts = &mut self.counts;
        match hit {
            Hit::Outside | Hit::Inside(_) => counts.out_of_scope.add(call.name),
            Hit::Unknown => counts.unknown_directory.add(call.name),
            Hit::Nameless => counts
                .not_representable
                .add(&format!("{} (file without a name)", call.name)),
            Hit::TooLong => counts
                .not_representable
                .add(&format!("{} (path too long)", call.name)),
        }
        Fate::Other
    }

    fn unsupported(
        &mut self,
        call: &Call<'_>,
        path: Option<&PathArg<'_>>,
        file: Option<crate::call::FileArg<'_>>,
    ) -> Fate {
        let inside = path
            .is_some_and(|path| matches!(self.resolve(call.task, path).0, Hit::Inside(_)))
            || file.is_some_and(|file| matches!(self.held(call.task, file), Some(Held::Inside(_))));
        if inside {
            self.counts.not_representable.add(call.name);
        } else {
            self.counts.out_of_scope.add(call.name);
        }
        Fate::Other
    }
}
