//! A segment as users see it: where they work, until when transactions begin, and how many were due by then that never began.

use crate::clock::now_ns;
use crate::dispatcher::ArrivalDispatcher;
use crate::pace::Arrivals;
use crate::program::Program;
use crate::record::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where and for how long a segment takes place.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    pub(crate) target: u16,
    pub(crate) round: u16,
    /// What it counts as, after the warm-up.
    pub(crate) phase: Phase,
    /// How long is measured; `None`: until somebody ends it.
    pub(crate) measured_ns: Option<u64>,
    /// Since when that is; 0 in the warm-up. The recorder's: it says where the warm-up ends.
    pub(crate) measured_since_ns: Arc<AtomicU64>,
}

#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) target: u16,
    pub(crate) round: u16,
    pub(crate) begin_ns: u64,
    pub(crate) dispatcher: Option<Arc<ArrivalDispatcher>>,
    course: Arc<Course>,
}

/// What all users of a segment share.
struct Course {
    term: Term,
    stopping: AtomicBool,
    /// When somebody ended it; `u64::MAX` until then.
    stopped_ns: AtomicU64,
    unbegun: AtomicU64,
}

impl Segment {
    pub(crate) fn new(
        number: u64,
        term: Term,
        begin_ns: u64,
        arrivals: Option<Arrivals>,
    ) -> Segment {
        Segment {
            number,
            target: term.target,
            round: term.round,
            begin_ns,
            dispatcher: arrivals.map(|arrivals| Arc::new(ArrivalDispatcher::new(arrivals))),
            course: Arc::new(Course {
                term,
                stopping: AtomicBool::new(false),
                stopped_ns: AtomicU64::new(u64::MAX),
                unbegun: AtomicU64::new(0),
            }),
        }
    }

    /// What it counts as.
    pub(crate) fn phase(&self) -> Phase {
        self.course.term.phase
    }

    /// Somebody has ended it: nobody shall sleep any longer.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.course.stopping.load(Ordering::Relaxed)
    }

    /// The time from which on no transaction begins; `u64::MAX` while that is not known.
    #[inline]
    pub(crate) fn end_ns(&self) -> u64 {
        let term = &self.course.term;
        let stopped_ns = self.course.stopped_ns.load(Ordering::Relaxed);
        match (
            term.measured_since_ns.load(Ordering::Relaxed),
            term.measured_ns,
        ) {
            (0, _) | (_, None) => stopped_ns,
            (since_ns, Some(measured_ns)) => since_ns.saturating_add(measured_ns).min(stopped_ns),
        }
    }

    /// End now, if its time is not over yet. Sleepers are to be woken afterwards.
    pub(crate) fn stop(&self) {
        self.course.stopped_ns.fetch_min(now_ns(), Ordering::SeqCst);
        self.course.stopping.store(true, Ordering::SeqCst);
    }

    /// So many transactions were due for a user that did not begin them.
    pub(crate) fn add_unbegun(&self, count: u64) {
        self.course.unbegun.fetch_add(count, Ordering::SeqCst);
    }

    /// How many transactions were due before a time and never began. To be asked once, when nobody is at work in it any more.
    ///
    /// Users that have a number of transactions to make leave nothing undone.
    pub(crate) fn unbegun(&self, program: &Program, end_ns: u64) -> u64 {
        if program.transactions_per_user.is_some() {
            return 0;
        }
        let left = self
            .dispatcher
            .as_ref()
            .map_or(0, |dispatcher| dispatcher.due(&program.tables, end_ns));
        self.course
            .unbegun
            .load(Ordering::SeqCst)
            .saturating_add(left)
    }
}
