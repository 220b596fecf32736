//! What a user's thread tells others while it works, and what they tell it: atomics only, no locks.

use crate::clock::now_ns;
use crate::health::Waiting;
use crate::lock::hold;
use crate::ops::{Op, op_name};
use crate::program::{Program, SLOTS};
use crate::replay::names::Names;
use crate::sys::{Text, wake_thread};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;

/// Slots of plans, and two for the paths of interactive commands.
pub(crate) const ALL_SLOTS: usize = SLOTS + 2;

/// End after this transaction.
pub(crate) const STOP: u32 = 1;
/// Break off this transaction (and its waiting call), then go on with the next segment.
pub(crate) const CUT: u32 = 2;
/// Given up on: record nothing more, end.
pub(crate) const ABANDONED: u32 = 4;

/// Where an op works, packed: nothing, an entry of the plan, the text of a slot, or a path of the replay under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u64);

const ENTRY: u64 = 1 << 48;
const TEXT: u64 = 2 << 48;
const NAME: u64 = 3 << 48;
const KIND: u64 = 3 << 48;
/// Beside a place: nobody times the call.
const UNTIMED: u64 = 1 << 50;
/// Beside a transaction's number: it came by a schedule.
const SCHEDULED: u32 = 1 << 16;

impl Place {
    pub(crate) const NOWHERE: Place = Place(0);
    /// The run's folder itself.
    pub(crate) const FOLDER: Place = Place(1);

    #[inline]
    pub(crate) fn entry(dataset: u16, entry: u32) -> Place {
        Place(ENTRY | u64::from(dataset) << 32 | u64::from(entry))
    }

    #[inline]
    pub(crate) fn text(slot: u8) -> Place {
        Place(TEXT | u64::from(slot))
    }

    #[inline]
    pub(crate) fn name(path: u32) -> Place {
        Place(NAME | u64::from(path))
    }

    /// Whether it is an entry of a dataset that is shared.
    pub(crate) fn is_entry(self) -> bool {
        self.0 & KIND == ENTRY
    }

    /// The path, for a person.
    pub(crate) fn path(self, program: &Program, thread_state: &ThreadState) -> Vec<u8> {
        let low = usize::try_from(self.0 & 0xFFFF_FFFF).unwrap_or(0);
        if self == Place::FOLDER {
            return b".".to_vec();
        }
        let path = match self.0 & KIND {
            ENTRY => {
                let dataset = usize::try_from((self.0 >> 32) & 0xFFFF).unwrap_or(0);
                let dataset = program.datasets.get(dataset);
                let entry = dataset.and_then(|of| Some(of.full_path(of.entries.get(low)?)));
                entry.map(|path| path.strip_suffix(b"\0").unwrap_or(path).to_vec())
            }
            TEXT => thread_state.texts.get(low).map(Text::copy),
            NAME => thread_state.name_of(low),
            _ => None,
        };
        path.unwrap_or_default()
    }
}

/// A thread that plays for a user beside its own.
#[derive(Debug)]
pub(crate) struct Mate {
    pub(crate) thread_state: Arc<ThreadState>,
    pub(crate) thread: Thread,
}

/// The state of a user's thread as others see it. Two cache lines apart from those of others: processors fetch pairs of lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadState {
    /// The plan's user.
    pub(crate) user: u32,
    /// What tells it from all others: where targets are measured at the same time, each has its own user of the plan.
    pub(crate) number: u32,
    /// The only target that it works on; `None`: that of the open segment.
    pub(crate) home: Option<u16>,
    /// 0 for the user's own thread.
    pub(crate) lane: u32,
    flags: AtomicU32,
    thread: AtomicI32,
    /// Where it is at work.
    target: AtomicU32,
    /// When the call began (monotonic); 0 outside of calls.
    since: AtomicU64,
    /// The op and its place.
    doing: AtomicU64,
    /// The number of the transaction under way, and whether it came by a schedule.
    transaction: AtomicU32,
    /// When that was intended; 0: none is under way.
    intended: AtomicU64,
    began: AtomicU64,
    /// Time since then that is no part of it.
    aside: AtomicU64,
    in_call: AtomicU64,
    /// Time in which a replay worked outside of calls: see [`ThreadState::outside_ns`].
    outside: AtomicU64,
    /// Its time on a run queue, if it is one of the threads that are looked at.
    waiting: OnceLock<Arc<Waiting>>,
    pub(crate) texts: [Text; ALL_SLOTS],
    /// Other threads of the same user.
    mates: Mutex<Vec<Mate>>,
    /// Names of the replay under way.
    names: Mutex<Option<Arc<Names>>>,
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doing {
    pub(crate) since_ns: u64,
    pub(crate) op: u8,
    pub(crate) place: Place,
    /// Whether it is part of what is measured.
    pub(crate) timed: bool,
}

/// The transaction under way, or what calls outside of any are recorded under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnderWay {
    pub(crate) transaction: u16,
    pub(crate) scheduled: bool,
    /// `None`: no transaction is under way.
    pub(crate) intended_ns: Option<u64>,
    pub(crate) began_ns: u64,
    /// Time since it began that is no part of it.
    pub(crate) aside_ns: u64,
}

impl Doing {
    pub(crate) fn op_name(self) -> &'static str {
        op_name(self.op)
    }
}

/// Add to a counter that only this thread changes.
#[inline]
fn add(counter: &AtomicU64, ns: u64) {
    let before = counter.load(Ordering::Relaxed);
    counter.store(before.wrapping_add(ns), Ordering::Relaxed);
}

impl ThreadState {
    pub(crate) fn new(user: u32) -> ThreadState {
        ThreadState {
            user,
            number: user,
            ..ThreadState::default()
        }
    }

    /// One of those that are dealt to so many targets, in turn.
    pub(crate) fn dealt(number: u32, targets: u16) -> ThreadState {
        let targets = u32::from(targets.max(1));
        ThreadState {
            user: number / targets,
            number,
            home: u16::try_from(number % targets).ok(),
            ..ThreadState::default()
        }
    }

    /// That of one more thread of this user.
    pub(crate) fn lane(&self, lane: u32) -> ThreadState {
        ThreadState {
            user: self.user,
            number: self.number,
            home: self.home,
            lane,
            ..ThreadState::default()
        }
    }

    /// One more thread works for this user: it is told what the user is told.
    pub(crate) fn add_mate(&self, mate: Mate) {
        let mut mates = hold(&self.mates);
        mate.thread_state.raise(self.flags());
        mates.push(mate);
    }

    pub(crate) fn each_mate(&self, look: impl FnMut(&Mate)) {
        hold(&self.mates).iter().for_each(look);
    }

    /// A call under way on any thread of this user.
    pub(crate) fn doing_of_any(&self) -> Option<Doing> {
        let of_mates = || {
            hold(&self.mates)
                .iter()
                .find_map(|mate| mate.thread_state.doing())
        };
        self.doing().or_else(of_mates)
    }

    pub(crate) fn set_names(&self, names: &Arc<Names>) {
        *hold(&self.names) = Some(Arc::clone(names));
    }

    fn name_of(&self, path: usize) -> Option<Vec<u8>> {
        let path = u32::try_from(path).ok()?;
        let names = hold(&self.names);
        Some(names.as_ref()?.path(path).to_bytes().to_vec())
    }

    #[inline]
    pub(crate) fn enter(&self, op: Op, place: Place, now_ns: u64) {
        self.set_doing(op, place.0, now_ns);
    }

    #[inline]
    fn set_doing(&self, op: Op, place: u64, now_ns: u64) {
        self.doing
            .store(u64::from(op as u8) << 56 | place, Ordering::Relaxed);
        self.since.store(now_ns, Ordering::Relaxed);
    }

    /// It has returned.
    #[inline]
    pub(crate) fn leave(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// Make a call that nobody times, but that others may see hanging.
    pub(crate) fn show<V>(&self, op: Op, place: Place, call: impl FnOnce() -> V) -> V {
        self.set_doing(op, place.0 | UNTIMED, now_ns());
        let answer = call();
        self.leave();
        answer
    }

    #[inline]
    pub(crate) fn begin_transaction(&self, begun: UnderWay) {
        let scheduled = if begun.scheduled { SCHEDULED } else { 0 };
        self.transaction
            .store(u32::from(begun.transaction) | scheduled, Ordering::Relaxed);
        self.began.store(begun.began_ns, Ordering::Relaxed);
        self.aside.store(begun.aside_ns, Ordering::Relaxed);
        let intended_ns = begun.intended_ns.unwrap_or(0);
        self.intended.store(intended_ns, Ordering::Relaxed);
    }

    /// So much time is no part of the transaction.
    pub(crate) fn put_aside(&self, ns: u64) {
        add(&self.aside, ns);
    }

    #[inline]
    pub(crate) fn end_transaction(&self) {
        self.intended.store(0, Ordering::Relaxed);
    }

    pub(crate) fn transaction(&self) -> UnderWay {
        let number = self.transaction.load(Ordering::Relaxed);
        let intended_ns = self.intended.load(Ordering::Relaxed);
        UnderWay {
            transaction: u16::try_from(number & !SCHEDULED).unwrap_or(u16::MAX),
            scheduled: number & SCHEDULED != 0,
            intended_ns: Some(intended_ns).filter(|intended_ns| *intended_ns != 0),
            began_ns: self.began.load(Ordering::Relaxed),
            aside_ns: self.aside.load(Ordering::Relaxed),
        }
    }

    /// The call under way, if there is one.
    pub(crate) fn doing(&self) -> Option<Doing> {
        let since_ns = self.since.load(Ordering::Relaxed);
        let doing = self.doing.load(Ordering::Relaxed);
        (since_ns != 0).then(|| Doing {
            since_ns,
            op: u8::try_from(doing >> 56).unwrap_or(u8::MAX),
            place: Place(doing & (KIND | 0xFFFF_FFFF_FFFF)),
            timed: doing & UNTIMED == 0,
        })
    }

    pub(crate) fn add_in_call(&self, ns: u64) {
        add(&self.in_call, ns);
    }

    /// Time in calls of all threads of this user.
    pub(crate) fn in_call_ns(&self) -> u64 {
        self.sum(|thread_state| &thread_state.in_call)
    }

    fn sum(&self, counter: fn(&ThreadState) -> &AtomicU64) -> u64 {
        let own = counter(self).load(Ordering::Relaxed);
        let mates = hold(&self.mates);
        let of_mates = mates.iter().map(|mate| mate.thread_state.sum(counter));
        of_mates.fold(own, u64::saturating_add)
    }

    pub(crate) fn add_outside(&self, ns: u64) {
        add(&self.outside, ns);
    }

    /// Time in which threads of this user worked for replays outside of calls: looking at the clock until an event was due, and
    /// on files of a performance before and after it.
    pub(crate) fn outside_ns(&self) -> u64 {
        self.sum(|thread_state| &thread_state.outside)
    }

    pub(crate) fn set_waiting(&self, waiting: Arc<Waiting>) {
        self.waiting.get_or_init(|| waiting);
    }

    pub(crate) fn waiting(&self) -> Option<&Arc<Waiting>> {
        self.waiting.get()
    }

    /// Sleep between transactions or inside one.
    pub(crate) fn rest<R>(&self, sleep: impl FnOnce() -> R) -> R {
        match self.waiting.get() {
            Some(waiting) => waiting.rest(sleep),
            None => sleep(),
        }
    }

    #[inline]
    pub(crate) fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Tell all threads of this user.
    pub(crate) fn raise(&self, flags: u32) {
        self.flags.fetch_or(flags, Ordering::SeqCst);
        self.each_mate(|mate| mate.thread_state.raise(flags));
    }

    pub(crate) fn lower(&self, flags: u32) {
        self.flags.fetch_and(!flags, Ordering::SeqCst);
        self.each_mate(|mate| mate.thread_state.lower(flags));
    }

    /// Break off what is under way.
    #[inline]
    pub(crate) fn is_cut(&self) -> bool {
        self.flags() & CUT != 0
    }

    /// 0: it is over.
    pub(crate) fn set_thread(&self, thread: i32) {
        self.thread.store(thread, Ordering::SeqCst);
    }

    pub(crate) fn set_target(&self, target: u16) {
        self.target.store(u32::from(target), Ordering::Relaxed);
    }

    pub(crate) fn target(&self) -> u16 {
        u16::try_from(self.target.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Interrupt the call under way, if there is one.
    pub(crate) fn interrupt(&self) {
        if let (Some(thread), Some(_)) = (self.thread(), self.doing()) {
            wake_thread(thread);
        }
    }

    /// The kernel's number of the thread while it lives.
    pub(crate) fn thread(&self) -> Option<i32> {
        let thread = self.thread.load(Ordering::SeqCst);
        (thread != 0).then_some(thread)
    }
}
