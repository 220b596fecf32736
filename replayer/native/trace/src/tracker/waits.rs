//! Calls by which tasks wait for each other.

use crate::call::{Call, Kind, OnExec};
use crate::order::EdgeReason;
use crate::pipes::{PipeEnd, PipeSpace};
use crate::tasks::FdTarget;
use crate::tracker::Tracker;
use replayer_ops::Op;

impl Tracker {
    /// Take a new pipe or pair of sockets.
    pub(crate) fn paired(&mut self, task: u64, ends: [i64; 2], both_ways: bool, on_exec: OnExec) {
        let held = self.pipes.pair(both_ways);
        for (number, end) in ends.into_iter().zip(held) {
            self.hold_new(task, number, FdTarget::Pipe(end), on_exec);
        }
    }

    /// Take a call that moves bytes through a pipe: who reads waits for who has written, and who writes for room.
    pub(crate) fn through_pipe(&mut self, call: &Call<'_>, op: Op, end: PipeEnd) {
        let moved = call.outcome.value().and_then(|value| value.try_into().ok());
        let Some(count) = moved.filter(|&count| count > 0) else {
            return;
        };
        match op {
            Op::Read | Op::Readv => self.read_pipe(call, end, count),
            Op::Write | Op::Writev => self.write_pipe(call, end, count),
            _ => {}
        }
    }

    /// Take a call that moves bytes between two descriptors, of which one or both may be of pipes.
    pub(crate) fn between_pipes(&mut self, call: &Call<'_>, held: &[Option<FdTarget>; 2]) {
        // Where it is an event its time is its own, and where both are pipes it is counted once.
        let timeless = Call {
            duration_ns: Some(0),
            meanwhile: 0,
            ..call.clone()
        };
        let is_event = held.iter().flatten().any(|held| held.inside().is_some());
        let [from, to] = held.each_ref().map(|held| match held {
            Some(FdTarget::Pipe(end)) => Some(*end),
            _ => None,
        });
        if let Some(from) = from {
            let call = if is_event { &timeless } else { call };
            self.through_pipe(call, Op::Read, from);
        }
        if let Some(to) = to {
            let is_counted = is_event || from.is_some();
            let call = if is_counted { &timeless } else { call };
            self.through_pipe(call, Op::Write, to);
        }
    }

    fn read_pipe(&mut self, call: &Call<'_>, end: PipeEnd, count: u64) {
        let causes = self.pipes.read(end, count, call.task);
        let Some(task) = self.tasks.get_mut(call.task) else {
            return;
        };
        let room = PipeSpace {
            end_ns: call.end_ns(),
            causes: task.causes(EdgeReason::Pipe),
        };
        self.pipes.made(end, room);
        // From somebody without events it waits for what no event stands for: that is a pause.
        task.uses_pipe(call);
        if !causes.is_empty() {
            task.was_kept_waiting();
            task.learn(causes);
        }
    }

    fn write_pipe(&mut self, call: &Call<'_>, end: PipeEnd, count: u64) {
        let reader = self.pipes.reader(end);
        let reader = reader.and_then(|reader| self.tasks.get(reader));
        let reader_has_events = reader.is_some_and(|reader| reader.last_event.is_some());
        let Some(task) = self.tasks.get_mut(call.task) else {
            return;
        };
        let causes = task.causes(EdgeReason::Pipe);
        let since_ns = task.wants_room_since(call);
        let room = since_ns.map_or(&[][..], |since_ns| self.pipes.room(end, since_ns));
        if !room.is_empty() {
            task.uses_pipe(call);
            task.was_kept_waiting();
            task.learn(room.iter().copied());
        } else if reader_has_events {
            // Whose read made room is told later: its events take as long as they take.
            task.has_waited(call);
        }
        let late = self.pipes.write(end, count, &causes);
        if let Some(reader) = late.and_then(|reader| self.tasks.get_known_mut(reader)) {
            reader.was_kept_waiting();
            reader.learn(causes);
        }
    }

    /// A task goes on after what another one has done.
    pub(crate) fn follows(&mut self, call: &Call<'_>, other: u64) {
        let other = self.tasks.get(other);
        let causes = other.map_or_else(Vec::new, |other| other.causes(EdgeReason::Wait));
        if let Some(task) = self.tasks.get_mut(call.task).filter(|_| !causes.is_empty()) {
            task.has_waited(call);
            task.learn(causes);
        }
    }

    /// A task has waited for another that had ended, or for a thread of its own that was about to.
    pub(crate) fn reaped(&mut self, call: &Call<'_>, ended: u64) {
        let had_events = match call.kind {
            Kind::Joined(_) => self.tasks.join(call.task, ended),
            _ => self.tasks.reap(call.task, ended),
        };
        if let Some(task) = self.tasks.get_mut(call.task).filter(|_| had_events) {
            task.has_waited(call);
            task.learn([]); // what is predecessors it was learned from what the child has left
        }
    }
}
