//! Who runs, and the gate between segments: users wait there without using the CPU.

use crate::clock::{now_ns, ns};
use crate::lock::hold;
use crate::pace::Arrivals;
use crate::segment::{Segment, Term};
use crate::thread_state::{ABANDONED, CUT, Doing, STOP, ThreadState};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

/// How often waiting calls of users that are cut are interrupted again: a signal that comes just before a call is lost.
pub(crate) const NAG: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not part of segments at all.
    Apart,
    /// At the gate.
    Waiting,
    /// In a segment.
    Busy,
    Abandoned,
}

struct Member {
    thread_state: Arc<ThreadState>,
    thread: Thread,
    state: State,
}

#[derive(Default)]
struct Inner {
    members: HashMap<u32, Member>,
    /// What is open: a segment for each target that is measured now.
    open: Vec<Segment>,
    segments: u64,
    busy: usize,
    interactive: bool,
    abandoned: usize,
    closed: bool,
}

/// A user that is given up on, and what it was doing.
pub(crate) struct GivenUp {
    pub(crate) thread_state: Arc<ThreadState>,
    pub(crate) doing: Option<Doing>,
}

/// All users of an engine whose threads have not ended.
#[derive(Default)]
pub(crate) struct UserThreads {
    inner: Mutex<Inner>,
    /// Notified when nobody is busy and when a thread ends.
    settled: Condvar,
    /// Members that were not given up on. Apart from the lock: the recorder asks while a segment opens.
    running: AtomicUsize,
    /// Since when nobody has more to do in the open segment; 0: somebody has, or might (an interactive user). Changed under the lock,
    /// and apart from it for the same reason.
    rested_ns: AtomicU64,
}

/// What a user finds at the gate.
enum Look {
    Go(Segment),
    End,
    Wait,
}

/// Why a user cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Running,
    GivenUp,
    Closed,
}

impl UserThreads {
    /// Add a user whose thread `spawn` starts; one that is `paced` takes part in segments.
    pub(crate) fn add<E>(
        &self,
        thread_state: &Arc<ThreadState>,
        paced: bool,
        spawn: impl FnOnce() -> Result<Thread, E>,
    ) -> Result<Result<(), Refusal>, E> {
        let mut inner = hold(&self.inner);
        if inner.closed {
            return Ok(Err(Refusal::Closed));
        }
        if let Some(member) = inner.members.get(&thread_state.number) {
            return Ok(Err(match member.state {
                State::Abandoned => Refusal::GivenUp,
                _ => Refusal::Running,
            }));
        }
        let thread = spawn()?;
        let state = match (paced, inner.segment_of(thread_state)) {
            (false, _) => State::Apart,
            (true, None) => State::Waiting,
            (true, Some(_)) => State::Busy,
        };
        inner.busy += usize::from(state == State::Busy);
        inner.interactive |= !paced;
        if inner.busy > 0 || inner.interactive {
            self.rested_ns.store(0, Ordering::SeqCst);
        }
        let thread_state = Arc::clone(thread_state);
        let number = thread_state.number;
        let member = Member {
            thread_state,
            thread,
            state,
        };
        inner.members.insert(number, member);
        self.count_running(&inner);
        Ok(Ok(()))
    }

    /// Open segments, one for each target (announced before anybody runs), and let all of their users run; false when one is open.
    pub(crate) fn open(
        &self,
        announce: impl FnOnce(),
        terms: Vec<Term>,
        arrivals: impl Fn(u64) -> Option<Arrivals>,
    ) -> bool {
        let mut inner = hold(&self.inner);
        if !inner.open.is_empty() || inner.closed {
            return false;
        }
        announce();
        inner.segments += 1;
        self.rested_ns.store(0, Ordering::SeqCst);
        let begin_ns = now_ns();
        let number = inner.segments;
        let open = |term| Segment::new(number, term, begin_ns, arrivals(begin_ns));
        inner.open = terms.into_iter().map(open).collect();
        let mut busy = 0;
        let Inner { members, open, .. } = &mut *inner;
        for member in members.values_mut().filter(|member| {
            member.state == State::Waiting && segment_of(open, &member.thread_state).is_some()
        }) {
            member.state = State::Busy;
            member.thread.unpark();
            busy += 1;
        }
        inner.busy += busy;
        true
    }

    /// Wait at the gate for a segment after `last`; `None` when the user shall end. Before it rests it says that it is `idle`.
    pub(crate) fn wait(
        &self,
        thread_state: &ThreadState,
        last: Option<&Segment>,
        idle: impl Fn(),
    ) -> Option<Segment> {
        let last = last.map_or(0, |segment| segment.number);
        loop {
            match self.look(thread_state, last) {
                Look::Go(segment) => return Some(segment),
                Look::End => return None,
                Look::Wait => {
                    idle();
                    std::thread::park();
                }
            }
        }
    }

    /// One look at the gate; a user that has nothing to do is no longer busy.
    fn look(&self, thread_state: &ThreadState, last: u64) -> Look {
        let mut inner = hold(&self.inner);
        if inner.closed || thread_state.flags() & (STOP | ABANDONED) != 0 {
            return Look::End;
        }
        if let Some(segment) = inner
            .segment_of(thread_state)
            .filter(|segment| segment.number > last)
        {
            return Look::Go(segment.clone());
        }
        thread_state.lower(CUT);
        self.settle(&mut inner, thread_state.number, State::Waiting);
        let may_rest = inner.busy == 0 && !inner.open.is_empty() && !inner.interactive;
        if may_rest && self.rested_ns().is_none() {
            self.rested_ns.store(now_ns(), Ordering::SeqCst);
        }
        Look::Wait
    }

    fn settle(&self, inner: &mut Inner, number: u32, state: State) {
        let Some(member) = inner.members.get_mut(&number) else {
            return;
        };
        if member.state == State::Busy {
            member.state = state;
            inner.busy -= 1;
        }
        if inner.busy == 0 {
            self.settled.notify_all();
        }
    }

    /// A user's thread ends; `report` it before it stops counting as running, unless it was given up on (and reported then).
    pub(crate) fn leave(&self, thread_state: &ThreadState, report: impl FnOnce()) {
        let mut inner = hold(&self.inner);
        self.settle(&mut inner, thread_state.number, State::Waiting);
        let member = inner.members.remove(&thread_state.number);
        if member.is_some_and(|member| member.state == State::Abandoned) {
            inner.abandoned -= 1;
        } else {
            report();
        }
        self.count_running(&inner);
        self.settled.notify_all();
    }

    /// Tell a user something and wake it.
    pub(crate) fn tell(&self, number: u32, flags: u32) {
        if let Some(member) = hold(&self.inner).members.get(&number) {
            member.tell(flags);
        }
    }

    /// Tell everybody something and wake them.
    pub(crate) fn tell_all(&self, flags: u32) {
        hold(&self.inner)
            .members
            .values()
            .for_each(|member| member.tell(flags));
    }

    pub(crate) fn wake(&self, number: u32) {
        self.tell(number, 0);
    }

    /// Users whose thread has not ended, but for those given up on.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    fn count_running(&self, inner: &Inner) {
        self.running
            .store(inner.members.len() - inner.abandoned, Ordering::SeqCst);
    }

    pub(crate) fn busy(&self) -> usize {
        hold(&self.inner).busy
    }

    /// What is open.
    pub(crate) fn open_segments(&self) -> Vec<Segment> {
        hold(&self.inner).open.clone()
    }

    /// Since when everybody has done all that there was to do in the open segment; `None` while somebody has not, or might do more.
    pub(crate) fn rested_ns(&self) -> Option<u64> {
        Some(self.rested_ns.load(Ordering::SeqCst)).filter(|rested_ns| *rested_ns != 0)
    }

    pub(crate) fn thread_states(&self) -> Vec<Arc<ThreadState>> {
        let thread_state = |member: &Member| Arc::clone(&member.thread_state);
        hold(&self.inner)
            .members
            .values()
            .map(thread_state)
            .collect()
    }

    /// The thread states of everybody's threads.
    pub(crate) fn threads(&self) -> Vec<Arc<ThreadState>> {
        let mut threads = self.thread_states();
        for index in 0..threads.len() {
            if let Some(user) = threads.get(index).map(Arc::clone) {
                user.each_mate(|mate| threads.push(Arc::clone(&mate.thread_state)));
            }
        }
        threads
    }

    /// Close what is open: let transactions finish within the grace, break them off, give up on the rest after `patience`.
    pub(crate) fn stop(&self, grace: Duration, patience: Duration) -> Vec<GivenUp> {
        let mut inner = hold(&self.inner);
        let open = std::mem::take(&mut inner.open);
        if open.is_empty() {
            return Vec::new();
        }
        open.iter().for_each(Segment::stop);
        inner
            .busy_members()
            .for_each(|member| member.thread.unpark());
        let until = |inner: &mut Inner| inner.busy > 0;
        let waited = self.settled.wait_timeout_while(inner, grace, until);
        inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        inner
            .busy_members()
            .for_each(|member| member.thread_state.raise(CUT));
        let deadline_ns = deadline(patience);
        while inner.busy > 0 && now_ns() < deadline_ns {
            inner.busy_members().for_each(Member::interrupt);
            let waited = self.settled.wait_timeout_while(inner, NAG, until);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.give_up(&mut inner, |member| member.state == State::Busy)
    }

    /// End everybody: break off what is under way, give up on the rest after `patience`.
    pub(crate) fn close(&self, patience: Duration) -> Vec<GivenUp> {
        let mut inner = hold(&self.inner);
        inner.closed = true;
        let open = std::mem::take(&mut inner.open);
        open.iter().for_each(Segment::stop);
        inner
            .members
            .values()
            .for_each(|member| member.tell(STOP | CUT));
        let deadline_ns = deadline(patience);
        while inner.members.len() > inner.abandoned && now_ns() < deadline_ns {
            inner.members.values().for_each(Member::interrupt);
            let until = |inner: &mut Inner| inner.members.len() > inner.abandoned;
            let waited = self.settled.wait_timeout_while(inner, NAG, until);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.give_up(&mut inner, |member| member.state != State::Abandoned)
    }

    fn give_up(&self, inner: &mut Inner, chosen: impl Fn(&Member) -> bool) -> Vec<GivenUp> {
        let mut given_up = Vec::new();
        for member in inner.members.values_mut().filter(|member| chosen(member)) {
            member.thread_state.raise(ABANDONED | STOP | CUT);
            inner.busy -= usize::from(member.state == State::Busy);
            member.state = State::Abandoned;
            inner.abandoned += 1;
            let thread_state = Arc::clone(&member.thread_state);
            given_up.push(GivenUp {
                doing: thread_state.doing_of_any(),
                thread_state,
            });
        }
        self.count_running(inner);
        self.settled.notify_all();
        given_up
    }
}

/// Wake a thread, and interrupt the call that it is in.
pub(crate) fn interrupt(thread_state: &ThreadState, thread: &Thread) {
    thread.unpark();
    thread_state.interrupt();
}

fn deadline(patience: Duration) -> u64 {
    now_ns().saturating_add(ns(patience))
}

/// The segment in which a user works, if there is one.
fn segment_of<'a>(open: &'a [Segment], thread_state: &ThreadState) -> Option<&'a Segment> {
    open.iter()
        .find(|segment| thread_state.home.is_none_or(|home| segment.target == home))
}

impl Inner {
    fn segment_of(&self, thread_state: &ThreadState) -> Option<&Segment> {
        segment_of(&self.open, thread_state)
    }

    fn busy_members(&self) -> impl Iterator<Item = &Member> {
        self.members
            .values()
            .filter(|member| member.state == State::Busy)
    }
}

impl Member {
    fn tell(&self, flags: u32) {
        self.thread_state.raise(flags);
        self.thread.unpark();
        if flags & CUT != 0 {
            self.interrupt();
        }
    }

    /// Wake its threads, and interrupt the calls that they are in.
    fn interrupt(&self) {
        interrupt(&self.thread_state, &self.thread);
        self.thread_state
            .each_mate(|mate| interrupt(&mate.thread_state, &mate.thread));
    }
}
