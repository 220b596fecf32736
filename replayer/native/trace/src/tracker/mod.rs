//! Follows the state of the traced program and turns its calls into events.
//!
//! Calls come in the order of the log and become events in the order in which they took effect: when they returned,
//! except for those that let something go (a close, an unlock), which take effect when they are entered. Events go to the tables and
//! to the order of events; nothing is kept of them here.

pub(crate) mod descriptors;
pub(crate) mod file;
pub(crate) mod foreign_changes;
pub(crate) mod mapped;
pub(crate) mod open;
pub(crate) mod outside;
pub(crate) mod overlap;
pub(crate) mod path;
pub(crate) mod resolve;
pub(crate) mod task;
pub(crate) mod two_paths;
pub(crate) mod waits;

use crate::call::{Args, Call, FileKind, Kind, Outcome};
use crate::constants::{O_DIRECTORY, O_RDWR};
use crate::counts::Counts;
use crate::error::TraceError;
use crate::open_files::OpenFiles;
use crate::order::{EventRef, Order};
use crate::overlaps::Overlaps;
use crate::paths::PathId;
use crate::pipes::Pipes;
use crate::requests::Requests;
use crate::scope::Scope;
use crate::sharing::PathUsage;
use crate::tables::events::{EventWriter, Row};
use crate::tables::small::EdgeWriter;
use crate::tables::times::{AfterWait, GapSample};
use crate::tasks::Tasks;
use crate::tracer_overhead::{Class, LastCall};
pub(crate) use crate::tracker::outside::OutsideFiles;
use crate::tree::{NodeId, Tree};
use replayer_ops::Op;
use rustc_hash::FxHashMap;

/// What a call turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    Event,
    /// Not an event: it still took the tracer's time.
    Other,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Operands {
    pub(crate) path: Option<PathId>,
    pub(crate) to_path: Option<PathId>,
    pub(crate) file: Option<u32>,
    pub(crate) to_file: Option<u32>,
}

impl Operands {
    pub(crate) fn of_file(slot: u32) -> Self {
        Self {
            file: Some(slot),
            ..Self::default()
        }
    }
}

/// A description that was opened before the log began, until an event tells of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingOpen {
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
    pub(crate) files: OpenFiles,
    pub(crate) counts: Counts,
    pub(crate) order: Order,
    pub(crate) overlaps: Overlaps,
    pub(crate) requests: Requests,
    pub(crate) usage: PathUsage,
    pub(crate) events: EventWriter,
    pub(crate) edges: EdgeWriter,
    /// Lookups below this path are markers.
    pub(crate) marker: Vec<u8>,
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: i64,
    /// The traced program's own number of each thread.
    pub(crate) threads: Vec<u64>,
    pub(crate) outside: OutsideFiles,
    pub(crate) pipes: Pipes,
    /// By file: the descriptions that have locks on it.
    pub(crate) holders: FxHashMap<NodeId, Vec<u32>>,
    /// The log tells which pages were touched through mappings, and what is unmapped.
    pub(crate) sees_pages: bool,
    /// The log tells what tasks had open at the begin: what else they use came from elsewhere.
    pub(crate) knows_descriptors: bool,
    /// The recorder holds up who calls, and nobody else.
    pub(crate) holds_up_callers: bool,
    /// Descriptions that were open before: they get an event before the one that uses them.
    pub(crate) adopted: Vec<PendingOpen>,
}

impl Tracker {
    /// Take a call that has returned.
    pub(crate) fn call(&mut self, call: &Call<'_>) -> Result<(), TraceError> {
        self.meet(call.task);
        if !matches!(call.kind, Kind::Touched(_)) {
            self.counts.calls += 1;
            if self.holds_up_callers {
                self.tasks.count_call(call.task);
            }
        }
        if let Some(start) = call.start_ns {
            self.first_ns.get_or_insert(start);
            self.last_ns = self.last_ns.max(call.end_ns().unwrap_or(start));
        }
        if call.outcome == Outcome::Unknown
            && !matches!(call.kind, Kind::Other | Kind::Poll | Kind::Exec { .. })
        {
            self.counts.cut_calls.add(call.name);
            return Ok(());
        }
        self.measure_before(call);
        let disposition = self.dispatch(call)?;
        self.measure_after(call, disposition);
        Ok(())
    }

    fn dispatch(&mut self, call: &Call<'_>) -> Result<Disposition, TraceError> {
        if call.kind.lets_go()
            && let Some(disposition) = self.returned(call)
        {
            return Ok(disposition);
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
            Kind::Touched(touched) => self.touched(call, touched),
            Kind::Unsupported { path, file } => Ok(self.unsupported(call, path.as_ref(), *file)),
            Kind::Mount { from, at } => Ok(self.mounted(call, from.as_ref(), at.as_ref())),
            _ => self.state(call),
        }
    }

    /// Make sure that a task is known; a new one may be the child of a clone that has not returned.
    pub(crate) fn meet(&mut self, task: u64) {
        if self.tasks.get(task).is_some() {
            return;
        }
        self.spawned_early(task, None);
    }

    /// Meet a task that was made by a call that has not returned yet, of a parent that may be known.
    pub(crate) fn spawned_early(&mut self, task: u64, parent: Option<u64>) {
        let adopted = self.tasks.adopted(task, parent);
        if let Some(child) = self.tasks.get_mut(task).filter(|_| adopted.is_some()) {
            child.count_from(self.counts.calls);
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
        operands: Operands,
        args: &Args<'_>,
    ) -> Result<EventRef, TraceError> {
        while let Some(adopted) = self.adopted.pop() {
            self.emit_pending_open(call, &adopted)?;
        }
        let row = self.events.next_row();
        let [path, to_path] = [operands.path, operands.to_path]
            .map(|path| path.map(|path| self.tree.paths.row(path)));
        let (event_ref, sample) = self.place_event(call, op, row);
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
            thread: event_ref.thread,
            start_ns: start_ns.max(0),
            duration_ns: call.duration_ns,
            op,
            path,
            to_path,
            file: operands.file,
            to_file: operands.to_file,
            args,
            result,
        };
        self.events.push(&event, sample)?;
        // The end of a thread is the work of no request.
        if op != Op::Exit {
            let times = (call.start_ns.unwrap_or(0), call.end_ns().unwrap_or(0));
            self.requests.event(call.task, event_ref.thread, row, times);
        }
        if !self.order.ready.is_empty() {
            for edge in self.order.ready.drain(..) {
                self.edges.push(edge)?;
            }
        }
        Ok(event_ref)
    }

    /// Write the event that stands for an opening before the trace.
    fn emit_pending_open(
        &mut self,
        call: &Call<'_>,
        adopted: &PendingOpen,
    ) -> Result<(), TraceError> {
        let PendingOpen { path, slot, known } = *adopted;
        let found = self.tree.find(path, true).node();
        let is_directory = found.is_some_and(|node| self.tree.kind(node) == FileKind::Directory);
        let before = Call::implied(call.task, "inherit", call.start_ns);
        let operands = Operands {
            path: Some(path),
            file: Some(slot),
            ..Operands::default()
        };
        let guess = if is_directory { O_DIRECTORY } else { O_RDWR };
        let args = Args {
            flags: Some(known.map_or(guess, |(flags, _)| flags)),
            offset: known.map(|(_, offset)| offset),
            ..Args::default()
        };
        self.emit(&before, Op::Inherit, operands, &args)?;
        self.order.file(slot, crate::order::Access::Write);
        Ok(())
    }

    /// The thread of an event, its raw gap, and its place in the order.
    fn place_event(&mut self, call: &Call<'_>, op: Op, row: u64) -> (EventRef, GapSample) {
        let free = u32::try_from(self.threads.len()).unwrap_or(u32::MAX);
        let first_ns = self.first_ns;
        let Some(task) = self.tasks.get_mut(call.task) else {
            return (EventRef { row, thread: 0 }, GapSample::default());
        };
        let thread = *task.thread.get_or_insert(free);
        let event_ref = EventRef { row, thread };
        let is_first = task.last_event.is_none();
        let before = task.last_end_ns.or(first_ns);
        let since = |end_ns: Option<i64>| Some(call.start_ns?.saturating_sub(end_ns?).max(0));
        let calls = self.counts.calls;
        let own = u64::from(call.meanwhile) + 1;
        let own_others = (self.holds_up_callers).then(|| task.own_calls.saturating_sub(1));
        let between = |then: u64| {
            let others = calls.saturating_sub(then.saturating_add(own));
            u32::try_from(own_others.unwrap_or(others)).unwrap_or(u32::MAX)
        };
        let (awaited, awaited_after) = task.take_awaited();
        let causes = task.predecessors.take();
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
            Some(AfterWait {
                row: last.event_ref.row,
                gap_ns,
                others,
            })
        });
        let sample = GapSample {
            gap_ns: raw_ns.map(|gap| gap.saturating_sub(awaited.ns).max(0)),
            others: between(task.calls_then.saturating_add(awaited.calls)),
            after,
        };
        task.count_from(self.counts.calls);
        task.last_op = Some(op);
        task.last_end_ns = call.end_ns();
        task.last_event = Some(event_ref);
        if thread == free {
            self.threads.push(call.task);
        }
        self.order.begin(event_ref, &causes);
        (event_ref, sample)
    }
}

impl Tracker {
    /// The gap before a call shows what the tracer needs after the one before.
    pub(crate) fn measure_before(&mut self, call: &Call<'_>) {
        let Some(estimator) = self.events.estimator() else {
            return;
        };
        let last = self
            .tasks
            .get_mut(call.task)
            .and_then(|task| task.last_call.take());
        // Where others' calls came between, the tracer may have been busy with these.
        let calls = self
            .counts
            .calls
            .saturating_sub(u64::from(call.meanwhile) + 1);
        if let (Some(last), Some(start_ns)) =
            (last.filter(|last| last.calls == calls), call.start_ns)
        {
            estimator.after(last.class, start_ns.saturating_sub(last.end_ns));
        }
    }

    pub(crate) fn measure_after(&mut self, call: &Call<'_>, disposition: Disposition) {
        let Some(estimator) = self.events.estimator() else {
            return;
        };
        let Some(task) = self.tasks.get_mut(call.task) else {
            return;
        };
        let class = match (disposition, task.last_op) {
            (Disposition::Event, Some(op)) => {
                estimator.took(op, call.duration_ns);
                Class::of_event(op, !call.outcome.is_ok())
            }
            _ => estimator.class_of_other(call.name),
        };
        task.last_call = call.end_ns().map(|end_ns| LastCall {
            class,
            end_ns,
            calls: self.counts.calls,
        });
    }
}
