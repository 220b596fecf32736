//! A user's part of a segment: which of its transactions begin, and when; those that cannot begin fail.

use crate::clock::now_ns;
use crate::core::Core;
use crate::dispatcher::{ArrivalDispatcher, ArrivalSlot};
use crate::interpreter::{Interpreter, Journal};
use crate::ops::{CANCELLED, FAILED, Op};
use crate::pace::{Paced, Pacer};
use crate::rng::Stream;
use crate::segment::Segment;
use crate::sleep::sleep_until;
use crate::sys::{Answer, Folder, Kernel};
use crate::thread_state::{CUT, Place, STOP, ThreadState};
use rustix::io::Errno;
use std::sync::Arc;
use std::thread::current;

/// A user whose transaction could not begin, and who would begin the next one at once, begins it so long after that (chosen: a hundred
/// a second tell enough, and leave the CPU to those who work).
const BETWEEN_TRIES_NS: u64 = 10_000_000;

/// When transactions are intended: by the user's own pacer, or by the schedule of all.
enum Intent<'a> {
    Own(Pacer),
    Shared(&'a ArrivalDispatcher, ArrivalSlot),
    /// Never.
    None,
}

impl Intent<'_> {
    fn next(&mut self, core: &Core, free_ns: u64) -> Option<u64> {
        let tables = &core.setting.program.tables;
        match self {
            Intent::Own(pacer) => Some(pacer.next(tables, free_ns)),
            Intent::Shared(dispatcher, slot) => Some(dispatcher.deal(tables, slot, free_ns)),
            Intent::None => None,
        }
    }

    /// Whether users begin as soon as they are ready.
    fn is_closed(&self) -> bool {
        matches!(self, Intent::Own(Pacer::Closed { .. }))
    }

    /// When the transaction is intended now that was intended at a time.
    fn held_ns(&self, intended_ns: u64) -> u64 {
        match self {
            Intent::Shared(_, slot) => slot.held_ns(),
            _ => intended_ns,
        }
    }

    /// The same, once and for all.
    fn settle(&self, intended_ns: u64) -> u64 {
        match self {
            Intent::Shared(_, slot) => slot.settle(),
            _ => intended_ns,
        }
    }

    /// No more begin, not even the one that was intended at this time: count those that were due, unless others may begin them.
    fn leave(&mut self, core: &Core, segment: &Segment, intended_ns: u64) {
        let tables = &core.setting.program.tables;
        let (end_ns, now_ns) = (segment.end_ns(), now_ns());
        match self {
            Intent::Own(Pacer::Closed { .. }) | Intent::None => {}
            Intent::Own(pacer) => {
                // A user that leaves sooner than others owes nothing afterwards.
                let end_ns = end_ns.min(now_ns);
                if intended_ns < end_ns {
                    segment.add_unbegun(1 + pacer.due(tables, end_ns));
                }
            }
            Intent::Shared(dispatcher, slot) if end_ns > now_ns => dispatcher.hand_on(slot),
            Intent::Shared(dispatcher, slot) => dispatcher.put_back(slot),
        }
    }
}

/// Who says when a user's transactions are intended in a segment.
fn intent_of<'a>(
    core: &Core,
    thread_state: &ThreadState,
    segment: &'a Segment,
    begin_ns: u64,
) -> Intent<'a> {
    let program = &*core.setting.program;
    let paced = Paced {
        seed: program.draws,
        round: segment.round,
        user: thread_state.user,
        users: program.users,
        begin_ns,
    };
    match (Pacer::new(&program.pace, paced), &segment.dispatcher) {
        (Some(own), _) => Intent::Own(own),
        (None, Some(dispatcher)) => {
            Intent::Shared(dispatcher, ArrivalSlot::new(thread_state.user, current()))
        }
        (None, None) => Intent::None,
    }
}

/// Confine this thread to a run's folder.
pub(crate) fn enter<K: Kernel>(thread_state: &ThreadState, folder: &Arc<Folder>) -> Answer<K> {
    thread_state.show(Op::Chdir, Place::FOLDER, || K::enter(folder))
}

pub(crate) struct UserSegment<'a> {
    core: &'a Core,
    thread_state: &'a ThreadState,
    segment: &'a Segment,
    intent: Intent<'a>,
    /// How many more transactions it may begin.
    rest: u64,
    /// When it was free again.
    free_ns: u64,
    /// When the transaction was intended that is to begin now.
    due_ns: Option<u64>,
    /// Draws which transactions those are that could not begin.
    draws_of_failed: Stream,
}

impl<'a> UserSegment<'a> {
    pub(crate) fn new(
        core: &'a Core,
        thread_state: &'a ThreadState,
        segment: &'a Segment,
        ready_ns: u64,
    ) -> UserSegment<'a> {
        let program = &*core.setting.program;
        let begin_ns = segment.begin_ns.max(ready_ns);
        UserSegment {
            core,
            thread_state,
            segment,
            intent: intent_of(core, thread_state, segment, begin_ns),
            rest: program.transactions_per_user.unwrap_or(u64::MAX),
            free_ns: begin_ns,
            due_ns: None,
            draws_of_failed: Stream::of_ops(program.draws, segment.round, thread_state.user),
        }
    }

    /// Confine this thread to where the segment takes place. While that fails, so do the transactions whose time comes: it is
    /// tried again for each. `None` when no more begin.
    pub(crate) fn enter<K: Kernel>(
        &mut self,
        folder: &Arc<Folder>,
        journal: &mut Journal,
    ) -> Option<K> {
        if let Ok(kernel) = enter(self.thread_state, folder) {
            return Some(kernel);
        }
        let mut tried_ns = 0;
        loop {
            let intended_ns = self.come(journal, tried_ns)?;
            let start_ns = now_ns();
            tried_ns = start_ns;
            match enter(self.thread_state, folder) {
                Ok(kernel) => {
                    self.due_ns = Some(intended_ns);
                    return Some(kernel);
                }
                Err(errno) => self.fail(journal, (intended_ns, start_ns), (Op::Chdir, errno)),
            }
        }
    }

    /// Do one transaction after the other until no more begin.
    pub(crate) fn work<K: Kernel>(&mut self, interpreter: &mut Interpreter<'_, K>) {
        let mut tried_ns = 0;
        while let Err(errno) = interpreter.verify(self.segment.target) {
            let Some(intended_ns) = self.come(&mut interpreter.journal, tried_ns) else {
                return;
            };
            tried_ns = now_ns();
            // Buffers are mapped.
            let times = (intended_ns, tried_ns);
            self.fail(&mut interpreter.journal, times, (Op::Mmap, errno));
        }
        while let Some(intended_ns) = self.come(&mut interpreter.journal, 0) {
            interpreter.transact(intended_ns);
            self.end(&mut interpreter.journal);
        }
    }

    /// Wait for the time of the next transaction: when it was intended. `None` when no more begin.
    ///
    /// After a try that failed, begun at a time; 0: there was none.
    #[inline]
    fn come(&mut self, journal: &mut Journal, tried_ns: u64) -> Option<u64> {
        if let Some(due_ns) = self.due_ns.take() {
            return Some(due_ns);
        }
        if self.rest == 0 {
            return None;
        }
        let mut intended_ns = self.intent.next(self.core, self.free_ns)?;
        if tried_ns != 0 && self.intent.is_closed() {
            intended_ns = intended_ns.max(tried_ns.saturating_add(BETWEEN_TRIES_NS));
        }
        if intended_ns > self.free_ns {
            journal.flush();
            intended_ns = self.sleep(intended_ns);
        }
        let is_told_to_end = self.thread_state.flags() & (STOP | CUT) != 0;
        // Who was to begin before the end does, though it was woken after it.
        if is_told_to_end || intended_ns.max(self.free_ns) >= self.segment.end_ns() {
            self.intent.leave(self.core, self.segment, intended_ns);
            return None;
        }
        self.rest -= 1;
        Some(intended_ns)
    }

    /// Sleep until the time of a transaction, or of the one that takes its place: when that was intended.
    fn sleep(&self, mut intended_ns: u64) -> u64 {
        let (thread_state, segment, intent) = (self.thread_state, self.segment, &self.intent);
        loop {
            let woken = || {
                let is_other = intent.held_ns(intended_ns) != intended_ns;
                is_other || segment.is_stopping() || thread_state.flags() & (STOP | CUT) != 0
            };
            // Not longer than transactions begin; whoever ends them sooner wakes this thread.
            thread_state.rest(|| sleep_until(intended_ns.min(segment.end_ns()), woken));
            let held_ns = intent.held_ns(intended_ns);
            if held_ns == intended_ns {
                return intent.settle(intended_ns);
            }
            intended_ns = held_ns;
        }
    }

    /// The transaction that is to begin cannot: what it needs was refused.
    #[cold]
    fn fail(
        &mut self,
        journal: &mut Journal,
        (intended_ns, start_ns): (u64, u64),
        (op, errno): (Op, Errno),
    ) {
        let mix = self.core.setting.program.mix_of(self.thread_state.user);
        let transaction = u16::try_from(mix.pick(&mut self.draws_of_failed)).unwrap_or(0);
        journal.begin(transaction, intended_ns, start_ns);
        if self.thread_state.is_cut() && errno == Errno::INTR {
            journal.end(CANCELLED, now_ns());
        } else {
            journal.record_refusal(op, errno, start_ns);
            journal.end(FAILED, journal.latest_ns());
        }
        self.end(journal);
    }

    /// A transaction has ended: tell whoever listens.
    fn end(&mut self, journal: &mut Journal) {
        let Some(finished) = journal.finished.take() else {
            return;
        };
        self.free_ns = finished.free_ns;
        let core = self.core;
        if let Some(name) = core.names.get(usize::from(finished.transaction)) {
            let failed = journal.failed.take();
            core.publish(
                self.thread_state.number,
                self.segment.target,
                name,
                finished,
                failed,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Confinement;
    use crate::histogram::unpack;
    use crate::overhead::{PLAN, setting};
    use crate::record::Phase;
    use crate::segment::Term;
    use crate::sys::{Doorbell, Null};

    fn core() -> Core {
        let doorbell = Arc::new(Doorbell::new().unwrap());
        let setting = setting(PLAN).unwrap();
        setting.recorder.begin_segment(0, 0, 0);
        Core::new(setting, vec![Vec::new()], Confinement::Null, doorbell)
    }

    /// One that lasts until somebody ends it.
    fn segment() -> Segment {
        let term = Term {
            target: 0,
            round: 0,
            phase: Phase::Measured,
            measured_ns: None,
            measured_since_ns: Arc::default(),
        };
        Segment::new(1, term, now_ns(), None)
    }

    fn journal(core: &Core, thread_state: &Arc<ThreadState>) -> Journal {
        let recorder = &core.setting.recorder;
        let shard = recorder.shard(0);
        let begin_ns = core.setting.begin_ns;
        Journal::new(
            Arc::clone(recorder),
            shard,
            Arc::clone(thread_state),
            0,
            begin_ns,
        )
    }

    #[test]
    fn who_is_told_to_end_begins_what_it_was_let_in_for_and_no_more() {
        let (core, segment) = (core(), segment());
        let thread_state = Arc::new(ThreadState::new(0));
        let mut user_segment = UserSegment::new(&core, &thread_state, &segment, 0);
        user_segment.due_ns = Some(now_ns());
        thread_state.raise(STOP);
        let journal = journal(&core, &thread_state);
        let mut interpreter = Interpreter::new(&core.setting, &thread_state, Null, journal, 0);
        user_segment.work(&mut interpreter);
        interpreter.journal.flush();
        core.setting.recorder.end_segment(None);
        let totals = core.setting.recorder.totals();
        let counts = totals.iter().filter(|row| row.key.op == "transaction");
        let counts = counts.map(|row| unpack(&row.histogram).unwrap().count());
        assert_eq!(counts.collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn who_could_not_begin_is_ready_again_after_a_pause() {
        let (core, segment) = (core(), segment());
        let thread_state = Arc::new(ThreadState::new(0));
        let mut user_segment = UserSegment::new(&core, &thread_state, &segment, 0);
        let mut journal = journal(&core, &thread_state);
        let first_ns = user_segment.come(&mut journal, 0).unwrap();
        let tried_ns = now_ns();
        assert!(first_ns <= tried_ns);
        let again_ns = user_segment.come(&mut journal, tried_ns).unwrap();
        assert_eq!(again_ns, tried_ns + BETWEEN_TRIES_NS);
        assert!(now_ns() >= again_ns);
        assert!(user_segment.come(&mut journal, 0).unwrap() < again_ns);
        thread_state.raise(STOP);
        assert_eq!(user_segment.come(&mut journal, u64::MAX / 2), None);
    }
}
