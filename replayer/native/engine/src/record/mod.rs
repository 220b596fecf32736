//! The recording: what the users' threads hand over, and the thread that cuts, counts and writes it.
//!
//! Samples go from a user's batch into a shard; the recorder's thread merges the shards into intervals
//! and totals, writes them into the record directory and queues them for who reads them live.

pub(crate) mod event;
mod files;
mod model;
pub(crate) mod names;
mod reading;
pub(crate) mod shard;
pub(crate) mod slow;
pub(crate) mod state;
mod unfinished;

pub use files::{IntervalLines, Recording};
pub use model::{IntervalData, Line, LogKey, Phase, RowData};
pub(crate) use model::{Sample, Segment};
pub use reading::{Log, Slices, Slots, SpanS, read_log, read_slices};

use crate::clock;
use crate::lock::hold;
use event::{ErrorKind, Event, Journal};
use names::Names;
use shard::Shard;
use slow::SlowBoard;
use state::State;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Intervals that wait to be drained: ten minutes of seconds (contract).
const QUEUED_INTERVALS: usize = 600;
/// The thread looks at the shards at least this often, so that a long interval overflows no count.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;

/// What a recorder needs to know and to call.
pub(crate) struct RecorderConfig {
    /// Names of the plan's transactions, in order.
    pub(crate) transactions: Vec<String>,
    pub(crate) interval_ns: u64,
    /// Targets that users are dealt to, each with records of its own; 0: all work on that of the open segment.
    pub(crate) homes: usize,
    pub(crate) directory: Option<PathBuf>,
    /// The engine's begin on `clock::now_ns`, and the same moment on the wall clock.
    pub(crate) begin_ns: u64,
    pub(crate) begin_epoch_ns: u64,
    /// Users running now.
    pub(crate) users: Box<dyn Fn() -> u32 + Send + Sync>,
    /// Since when (of `clock::now_ns`) nobody has more to do in the open segment, if that is so.
    pub(crate) rested: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    /// Called (by the recorder's thread or a boundary's caller) when an interval was queued.
    pub(crate) doorbell: Box<dyn Fn() + Send + Sync>,
}

/// What the recorder's thread and its callers share.
pub(crate) struct Shared {
    pub(crate) config: RecorderConfig,
    pub(crate) names: Names,
    pub(crate) journal: Mutex<Journal>,
    pub(crate) slow: SlowBoard,
    pub(crate) shards: Vec<Arc<Shard>>,
    /// Of users that are dealt to targets, by target.
    home_shards: Vec<Vec<Arc<Shard>>>,
    home_boards: Vec<SlowBoard>,
    pub(crate) own_shards: Mutex<Vec<Arc<Shard>>>,
    /// Since when (of `clock::now_ns`) the running phase is a measured one; 0: it is none.
    measured_since_ns: Arc<AtomicU64>,
    queue: Mutex<VecDeque<IntervalData>>,
    state: Mutex<State>,
    wake: Condvar,
}

/// The recorder and its thread.
pub(crate) struct Recorder {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Recorder {
    /// Open (create, append to) the files of the record directory, and start the thread.
    pub(crate) fn start(config: RecorderConfig) -> io::Result<Arc<Self>> {
        let directory = config.directory.as_ref();
        let files = directory.map(|path| Recording::open(path, config.begin_epoch_ns));
        if let Some((_, errno)) = files.as_ref().and_then(Recording::error) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let transactions = config.transactions.len();
        let shared = Arc::new(Shared {
            names: Names::new(&config.transactions),
            journal: Mutex::default(),
            slow: SlowBoard::new(transactions + Names::FREE),
            home_boards: (0..config.homes)
                .map(|_| SlowBoard::new(transactions + Names::FREE))
                .collect(),
            shards: (0..shard_count())
                .map(|_| Arc::new(Shard::new(None)))
                .collect(),
            home_shards: (0..config.homes).map(shards_of).collect(),
            own_shards: Mutex::default(),
            measured_since_ns: Arc::default(),
            queue: Mutex::default(),
            state: Mutex::new(State::new(files, config.interval_ns)),
            wake: Condvar::new(),
            config,
        });
        hold(&shared.state).restart(shared.now());
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || of_thread.run())?;
        Ok(Arc::new(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        }))
    }

    /// The shard of a user; its samples belong to the target of the open segment.
    pub(crate) fn shard(&self, user: u32) -> Arc<Shard> {
        let shards = &self.shared.shards;
        let shard = shards.get(user as usize % shards.len().max(1));
        shard.map_or_else(|| Arc::new(Shard::new(None)), Arc::clone)
    }

    /// The shard of a user that works on one target alone; `None`: on that of the open segment.
    pub(crate) fn shard_at(&self, home: Option<u16>, user: u32) -> Arc<Shard> {
        let shards = home.and_then(|home| self.shared.home_shards.get(usize::from(home)));
        let shard = shards.and_then(|shards| shards.get(user as usize % shards.len().max(1)));
        shard.map_or_else(|| self.shard(user), Arc::clone)
    }

    /// The shard of the interactive users of a target.
    pub(crate) fn shard_on(&self, target: u16) -> Arc<Shard> {
        let mut shards = hold(&self.shared.own_shards);
        if let Some(shard) = shards.iter().find(|shard| shard.target == Some(target)) {
            return Arc::clone(shard);
        }
        let shard = Arc::new(Shard::new(Some(target)));
        shards.push(Arc::clone(&shard));
        shard
    }

    /// What comes from now on belongs to this target and round; recorded as warm-up for so long (0: not at all).
    pub(crate) fn begin_segment(&self, target: u16, round: u16, warm_up_ns: u64) {
        self.begin_phase((target, round), warm_up_ns, Phase::Measured);
    }

    /// The same, with the phase that follows the warm-up.
    pub(crate) fn begin_phase(&self, (target, round): (u16, u16), warm_up_ns: u64, then: Phase) {
        let phase = if warm_up_ns == 0 { then } else { Phase::WarmUp };
        let segment = Segment {
            target,
            round,
            phase,
            then,
            open: true,
        };
        self.shared.enter(segment, Some(warm_up_ns), None);
    }

    /// End the warm-up now. Does nothing in the measured phase or without a segment.
    pub(crate) fn measure(&self) {
        let mut state = hold(&self.shared.state);
        self.shared.measure(&mut state);
    }

    /// Whether what began at a time (of `clock::now_ns`) began before the measured phase that runs now.
    #[inline]
    pub(crate) fn began_before_measured(&self, start_ns: u64) -> bool {
        start_ns < self.shared.measured_since_ns.load(Ordering::Relaxed)
    }

    /// Since when the running phase is a measured one, for those who end it; 0: it is none.
    pub(crate) fn measured_since_ns(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared.measured_since_ns)
    }

    /// Cut, and close the segment; what comes later is still counted under it. It has ended now, or at a time (of `clock::now_ns`)
    /// since which there was nothing to do.
    pub(crate) fn end_segment(&self, rested_ns: Option<u64>) {
        let mut segment = hold(&self.shared.state).segment;
        segment.open = false;
        self.shared.enter(segment, None, rested_ns);
    }

    /// Intervals since the last call, oldest first.
    pub(crate) fn drain_intervals(&self) -> Vec<IntervalData> {
        std::mem::take(&mut *hold(&self.shared.queue)).into()
    }

    /// Everything that was cut so far, per key.
    pub(crate) fn totals(&self) -> Vec<RowData> {
        hold(&self.shared.state).totals(&self.shared.names)
    }

    /// The number of a transaction by name; a new name gets a new one, up to 256 beside the plan's.
    pub(crate) fn transaction_id(&self, name: &str) -> Option<u16> {
        self.shared.names.number(name)
    }

    /// Whether an error of this kind would still be written (the first 20 are): ask before composing one.
    pub(crate) fn error_wanted(&self, kind: ErrorKind) -> bool {
        hold(&self.shared.journal).error_wanted(kind)
    }

    /// Queue a line of events.jsonl.
    pub(crate) fn log(&self, event: &Event) {
        hold(&self.shared.journal).log(event, &self.shared.names);
    }

    /// The slowest ops of each (target, transaction, op), of users that are dealt to a target or not.
    #[inline]
    pub(crate) fn slow(&self, home: Option<u16>) -> &SlowBoard {
        let board = home.and_then(|home| self.shared.home_boards.get(usize::from(home)));
        board.unwrap_or(&self.shared.slow)
    }

    /// The first write that failed: the file's name and the errno.
    pub(crate) fn write_error(&self) -> Option<(&'static str, i32)> {
        hold(&self.shared.state).files.as_ref()?.error()
    }

    /// Cut and write what is left, end the thread. Idempotent.
    pub(crate) fn close(&self) {
        let Some(thread) = hold(&self.thread).take() else {
            return;
        };
        let mut state = hold(&self.shared.state);
        state.segment.open = false;
        self.shared.cut(&mut state);
        state.closed = true;
        drop(state);
        self.shared.wake.notify_all();
        // It can only have ended by a panic of its own, which has been shown already.
        let _ = thread.join();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Nanoseconds since the engine's begin.
    pub(crate) fn now(&self) -> u64 {
        self.since_begin(clock::now_ns())
    }

    fn since_begin(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.config.begin_ns)
    }

    /// Cut, now or at an earlier time, then go on under another segment.
    fn enter(&self, segment: Segment, warm_up_ns: Option<u64>, at_ns: Option<u64>) {
        let mut state = hold(&self.state);
        self.drain(&mut state);
        let now = at_ns.map_or_else(|| self.now(), |ns| self.since_begin(ns));
        self.close_interval(&mut state, now);
        state.freeze(&self.names);
        state.segment = segment;
        state.warm_up_end = match segment.phase {
            Phase::WarmUp => warm_up_ns.map(|length| now.saturating_add(length)),
            Phase::Measured | Phase::Alone => None,
        };
        state.restart(now);
        self.tell_measured(segment, now);
        self.enter_boards(segment);
        hold(&self.journal).phase(now, segment);
        drop(state);
        self.wake.notify_all();
    }

    /// From warm-up to measured, if that is where the state is.
    fn measure(&self, state: &mut State) {
        if !state.segment.open || state.segment.phase != Phase::WarmUp {
            return;
        }
        // What users have handed over is merged first, so that there is little left between the boundary and what follows.
        self.drain(state);
        let now = self.now();
        let measured = Segment {
            phase: state.segment.then,
            ..state.segment
        };
        // From now on they keep to themselves what ended before; what came until then is the warm-up's.
        self.tell_measured(measured, now);
        self.drain(state);
        self.close_interval(state, now);
        state.freeze(&self.names);
        state.segment = measured;
        state.warm_up_end = None;
        state.restart(now);
        self.enter_boards(state.segment);
        hold(&self.journal).phase(now, state.segment);
        self.wake.notify_all();
    }

    fn enter_boards(&self, segment: Segment) {
        self.slow.enter(segment);
        for (target, slow) in (0_u16..).zip(&self.home_boards) {
            slow.enter(Segment { target, ..segment });
        }
    }

    fn tell_measured(&self, segment: Segment, now: u64) {
        let since_ns = match segment.phase {
            Phase::WarmUp => 0,
            Phase::Measured | Phase::Alone => self.config.begin_ns.saturating_add(now),
        };
        if segment.open {
            self.measured_since_ns.store(since_ns, Ordering::Relaxed);
        }
    }

    /// Close the running interval with all that was handed over: now, or when there was no more to do.
    fn cut(&self, state: &mut State) {
        // Asked first: who rests has handed everything over.
        let rested_ns = (self.config.rested)().filter(|_| state.segment.open);
        self.drain(state);
        let now = self.now();
        let rested = rested_ns.map_or(now, |ns| self.since_begin(ns));
        self.close_interval(state, now.min(rested).max(state.interval_start));
    }

    /// Write and queue the running interval.
    fn close_interval(&self, state: &mut State, now: u64) {
        if let Some(interval) = state.cut(now, (self.config.users)(), &self.names) {
            self.queue(state, interval);
        }
        self.write_events(state);
    }

    /// Merge the shards into the running interval.
    fn drain(&self, state: &mut State) {
        let own = hold(&self.own_shards).clone();
        let homes = self.home_shards.iter().flatten();
        for shard in self.shards.iter().chain(homes).chain(&own) {
            state.take(shard);
        }
    }

    fn write_events(&self, state: &mut State) {
        let mut journal = hold(&self.journal);
        for slow in self.home_boards.iter().chain([&self.slow]) {
            slow.tell(|sample| journal.slow(sample, &self.names));
        }
        let news = state.files.as_mut().and_then(Recording::news);
        if let Some((name, errno)) = news {
            journal.write_failed(self.now(), name, errno);
        }
        let lines = journal.take();
        drop(journal);
        if let Some(files) = &mut state.files {
            files.append_events(&lines);
        }
    }

    /// Queue an interval; when too many wait, the two oldest that belong together become one.
    fn queue(&self, state: &mut State, interval: IntervalData) {
        let mut queue = hold(&self.queue);
        queue.push_back(interval);
        if queue.len() > QUEUED_INTERVALS {
            state.merge_oldest(&mut queue);
        }
        drop(queue);
        (self.config.doorbell)();
    }

    /// The thread: cut on an absolute schedule until closed.
    fn run(&self) {
        let mut state = hold(&self.state);
        while !state.closed {
            let now = self.now();
            if state.warm_up_end.is_some_and(|end| end <= now) {
                self.measure(&mut state);
            } else if state.next_cut <= now {
                self.cut(&mut state);
                state.schedule(self.now());
            } else {
                self.drain(&mut state);
            }
            let due = state.next_cut.min(state.warm_up_end.unwrap_or(u64::MAX));
            let wait = due.saturating_sub(self.now()).clamp(1, LONGEST_WAIT_NS);
            let waited = self.wake.wait_timeout(state, Duration::from_nanos(wait));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The shards of users that are dealt to a target.
fn shards_of(target: usize) -> Vec<Arc<Shard>> {
    let target = u16::try_from(target).ok();
    (0..shard_count())
        .map(|_| Arc::new(Shard::new(target)))
        .collect()
}

/// Enough that users seldom meet, few enough to merge: four a CPU, 8 to 64 (chosen).
fn shard_count() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (4 * processors).clamp(8, 64)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod files_tests;
