//! Follows the state of the traced program and turns its calls into events.
//!
//! Calls come in the order of the log and become events in the order in which they took effect: when they returned,
//! except for those that let something go (a close, an unlock), which take effect when they are entered. Events go to the tables and
//! to the order of events; nothing is kept of them here.

mod copy;
mod file;
mod gauge;
mod gone;
mod held;
mod naming;
mod open;
mod others;
mod outside;
pub(crate) mod overlap;
mod pair;
mod path;
mod pipe;
mod resolve;
mod special;
mod task;

use crate::call::{Args, Call, FileKind, Kind, Outcome};
use crate::constants::{O_DIRECTORY, O_RDWR};
use crate::counts::Counts;
use crate::error::TraceError;
use crate::files::Files;
use crate::op::Op;
use crate::order::Order;
use crate::overlaps::Overlaps;
use crate::paths::PathId;
use crate::pipes::Pipes;
use crate::requests::Requests;
use crate::sample::{After, Sample};
use crate::scope::Scope;
use crate::seat::Seat;
use crate::tables::edges::EdgeWriter;
use crate::tables::events::{EventWriter, Row};
use crate::tasks::Tasks;
use crate::tree::{Found, Tree};
use crate::usage::Usage;
pub(crate) use outside::Outside;

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
    pub(crate) overlaps: Overlaps,
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
    pub(crate) outside: Outside,
    pub(crate) pipes: Pipes,
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
        if call.outcome == Outcome::Unknown
            && !matches!(call.kind, Kind::Other | Kind::Poll | Kind::Exec { .. })
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
        // The end of a thread is the work of no request.
        if op != Op::Exit {
            let times = (call.start_ns.unwrap_or(0), call.end_ns().unwrap_or(0));
            self.requests.event(call.task, seat.thread, row, times);
        }
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
        self.order.file(slot, crate::access::Access::Write);
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
        let is_first = task.last_event.is_none();
        let before = task.last_end_ns.or(first_ns);
        let since = |end_ns: Option<i64>| Some(call.start_ns?.saturating_sub(end_ns?).max(0));
        let calls = self.counts.calls;
        let own = u64::from(call.meanwhile) + 1;
        let between = |then: u64| {
            let others = calls.saturating_sub(then.saturating_add(own));
            u32::try_from(others).unwrap_or(u32::MAX)
        };
        let (awaited, awaited_after) = task.take_awaited();
        let causes = task.behind.take();
        let raw_ns = since(before);
        // Whatever ended last kept it waiting, unless its own last event ended still later.
        let last = causes.iter().max_by_key(|cause| cause.end_ns);
        let (own_ns, own_calls) = if is_first {
            (i64::MAX, 0)
        } else {
            (raw_ns.unwrap_or(0), task.calls_then)
        };
        let after = last.and_then(|last| {
            let gap_ns = since(last.end_ns)?.min(own_ns);
            let gap_ns = gap_ns.saturating_sub(awaited_after.ns).max(0);
            let then = last.calls.max(own_calls);
            let others = between(then.saturating_add(awaited_after.calls));
            Some(After {
                row: last.seat.row,
                gap_ns,
                others,
            })
        });
        let sample = Sample {
            gap_ns: raw_ns.map(|gap| gap.saturating_sub(awaited.ns).max(0)),
            others: between(task.calls_then.saturating_add(awaited.calls)),
            after,
        };
        task.calls_then = self.counts.calls;
        task.last_op = Some(op);
        task.last_end_ns = call.end_ns();
        task.last_event = Some(seat);
        if thread == free {
            self.threads.push(call.task);
        }
        self.order.begin(seat, &causes);
        (seat, sample)
    }
}
