//! Signals that users of a segment give each other, each for one of their transactions: so that one begins when another is ready.

use crate::clock::now_ns;
use crate::lock::hold;
use crate::user_threads::NAG;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// At most so many signals in a plan (chosen: two for each pair of users in the shipped scenarios).
pub(crate) const SIGNALS: usize = 16;
/// The times of so many transactions are kept (chosen: users that wait for each other are at most one apart).
const KEPT: usize = 4;

/// A signal of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    pub(crate) number: u8,
    /// The begin of the segment: signals of an earlier one do not count.
    pub(crate) segment_ns: u64,
    pub(crate) seq: u64,
}

/// What is known of one signal.
#[derive(Debug, Default)]
struct Given {
    segment_ns: u64,
    /// The latest transaction that gave it, and one more.
    ahead: u64,
    /// (transaction, when), by the transaction's number.
    times: [Option<(u64, u64)>; KEPT],
}

impl Given {
    fn covers(&self, signal: Signal) -> bool {
        self.segment_ns == signal.segment_ns && self.ahead > signal.seq
    }
}

/// All signals of an engine.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    board: Mutex<[Given; SIGNALS]>,
    given: Condvar,
}

/// Where the time of a transaction is kept.
fn place(seq: u64) -> usize {
    usize::try_from(seq % KEPT as u64).unwrap_or(0)
}

impl Signals {
    pub(crate) fn give(&self, signal: Signal) {
        let mut board = hold(&self.board);
        let Some(given) = board.get_mut(usize::from(signal.number)) else {
            return;
        };
        if given.segment_ns != signal.segment_ns {
            *given = Given {
                segment_ns: signal.segment_ns,
                ..Given::default()
            };
        }
        given.ahead = given.ahead.max(signal.seq + 1);
        if let Some(time) = given.times.get_mut(place(signal.seq)) {
            *time = Some((signal.seq, now_ns()));
        }
        self.given.notify_all();
    }

    /// When the signal of a transaction was given, if it was.
    pub(crate) fn time_of(&self, signal: Signal) -> Option<u64> {
        let board = hold(&self.board);
        let given = board.get(usize::from(signal.number))?;
        let (seq, time_ns) = (*given.times.get(place(signal.seq))?)?;
        (given.covers(signal) && seq == signal.seq).then_some(time_ns)
    }

    /// Wait until a signal is given, for this transaction or a later one; false when the time or the reason to wait is over.
    pub(crate) fn wait(&self, signal: Signal, deadline_ns: u64, woken: impl Fn() -> bool) -> bool {
        let mut board = hold(&self.board);
        loop {
            let given = board.get(usize::from(signal.number));
            if given.is_some_and(|given| given.covers(signal)) {
                return true;
            }
            let now_ns = now_ns();
            if now_ns >= deadline_ns || woken() {
                return false;
            }
            let rest = Duration::from_nanos(deadline_ns - now_ns).min(NAG);
            let waited = self.given.wait_timeout(board, rest);
            board = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn signal(segment_ns: u64, seq: u64) -> Signal {
        Signal {
            number: 3,
            segment_ns,
            seq,
        }
    }

    #[test]
    fn a_signal_is_seen_by_who_waits_for_it() {
        let signals = Signals::default();
        let met = thread::scope(|scope| {
            let waiting =
                scope.spawn(|| signals.wait(signal(1, 0), now_ns() + 10_000_000_000, || false));
            signals.give(signal(1, 0));
            waiting.join().unwrap()
        });
        assert!(met);
        assert!(signals.time_of(signal(1, 0)).unwrap() <= now_ns());
    }

    #[test]
    fn a_signal_counts_for_its_transaction_and_earlier_ones_of_its_segment() {
        let signals = Signals::default();
        signals.give(signal(1, 5));
        let waits = |signal| signals.wait(signal, 0, || false);
        assert!(waits(signal(1, 5)) && waits(signal(1, 4)));
        assert!(!waits(signal(1, 6)) && !waits(signal(2, 0)));
        signals.give(signal(2, 0));
        assert!(waits(signal(2, 0)) && !waits(signal(1, 5)));
    }

    #[test]
    fn the_time_of_another_transaction_is_not_taken() {
        let signals = Signals::default();
        signals.give(signal(1, 1));
        assert_eq!(signals.time_of(signal(1, 0)), None);
        signals.give(signal(1, 1 + KEPT as u64));
        assert_eq!(signals.time_of(signal(1, 1)), None);
    }

    #[test]
    fn nobody_waits_for_longer_than_its_reason() {
        let signals = Signals::default();
        assert!(!signals.wait(signal(1, 0), u64::MAX, || true));
    }
}
