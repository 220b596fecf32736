//! The batches of a performance, handed to its lanes: the fastest lane is only a few ahead of the slowest.

use crate::lock::hold;
use crate::replay::program::{CallBatch, CallBatches};
use crate::user_threads::NAG;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread::{Thread, current, park_timeout};

/// Batches in memory at a time (chosen: what bounds it is a lane that thinks while the others play).
const CHUNKS: usize = 8;

struct State {
    batches: Box<dyn CallBatches>,
    ready: VecDeque<Arc<CallBatch>>,
    /// The number of the first that is ready.
    first: u64,
    ended: bool,
    /// Which batch each lane is in.
    lanes: Box<[u64]>,
    sleepers: Vec<Thread>,
}

pub(crate) struct BatchQueue {
    state: Mutex<State>,
}

/// Why there is no batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoBatch {
    Over,
    Broken(String),
}

enum Look {
    Found(Arc<CallBatch>),
    End,
    Wait,
}

impl State {
    /// A lane wants a batch, and none before it any more.
    fn look(&mut self, lane: usize, number: u64) -> Result<Look, String> {
        if let Some(at) = self.lanes.get_mut(lane) {
            *at = number;
        }
        self.forget();
        loop {
            let index = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
            if let Some(batch) = self.ready.get(index) {
                return Ok(Look::Found(Arc::clone(batch)));
            }
            if self.ended {
                return Ok(Look::End);
            }
            if self.ready.len() >= CHUNKS {
                return Ok(Look::Wait);
            }
            match self.batches.next()? {
                Some(batch) => self.ready.push_back(batch),
                None => self.ended = true,
            }
        }
    }

    /// Drop batches that every lane has left behind.
    fn forget(&mut self) {
        let slowest = self.lanes.iter().copied().min().unwrap_or(0);
        while self.first < slowest && self.ready.pop_front().is_some() {
            self.first += 1;
            self.sleepers.drain(..).for_each(|thread| thread.unpark());
        }
    }
}

impl BatchQueue {
    pub(crate) fn new(batches: Box<dyn CallBatches>, lanes: usize) -> BatchQueue {
        BatchQueue {
            state: Mutex::new(State {
                batches,
                ready: VecDeque::new(),
                first: 0,
                ended: false,
                lanes: vec![0; lanes].into(),
                sleepers: Vec::new(),
            }),
        }
    }

    /// A batch by its number, which rises by one from call to call; `None` after the last.
    pub(crate) fn take(
        &self,
        lane: usize,
        number: u64,
        is_over: &impl Fn() -> bool,
    ) -> Result<Option<Arc<CallBatch>>, NoBatch> {
        loop {
            let mut state = hold(&self.state);
            match state.look(lane, number).map_err(NoBatch::Broken)? {
                Look::Found(batch) => return Ok(Some(batch)),
                Look::End => return Ok(None),
                Look::Wait => state.sleepers.push(current()),
            }
            drop(state);
            park_timeout(NAG);
            if is_over() {
                return Err(NoBatch::Over);
            }
        }
    }

    /// A lane wants nothing more.
    pub(crate) fn leave(&self, lane: usize) {
        let mut state = hold(&self.state);
        if let Some(at) = state.lanes.get_mut(lane) {
            *at = u64::MAX;
        }
        state.forget();
    }
}

impl std::fmt::Debug for BatchQueue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BatchQueue").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counted(u64, u64);

    impl CallBatches for Counted {
        fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String> {
            if self.0 == self.1 {
                return Ok(None);
            }
            self.0 += 1;
            Ok(Some(Arc::new(CallBatch {
                lanes: Box::default(),
                waits: Box::default(),
                texts: vec![u8::try_from(self.0).unwrap_or(0)].into(),
            })))
        }
    }

    #[test]
    fn a_fast_lane_waits_for_the_slowest() {
        let batch_queue = BatchQueue::new(Box::new(Counted(0, 100)), 2);
        let taken = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            let fast = scope.spawn(|| {
                let mut number = 0;
                while let Some(batch) = batch_queue.take(0, number, &|| false).unwrap() {
                    number += 1;
                    assert_eq!(u64::from(batch.texts[0]), number);
                    taken.store(number, std::sync::atomic::Ordering::SeqCst);
                }
                batch_queue.leave(0);
                number
            });
            let mut number = 0;
            while batch_queue.take(1, number, &|| false).unwrap().is_some() {
                let ahead = taken.load(std::sync::atomic::Ordering::SeqCst);
                assert!(ahead <= number + CHUNKS as u64 + 1);
                number += 1;
            }
            batch_queue.leave(1);
            assert_eq!((number, fast.join().unwrap()), (100, 100));
        });
    }

    #[test]
    fn a_lane_that_waits_ends_with_the_performance() {
        let batch_queue = BatchQueue::new(Box::new(Counted(0, 100)), 2);
        for number in 0..8 {
            assert!(batch_queue.take(0, number, &|| true).unwrap().is_some());
        }
        assert_eq!(batch_queue.take(0, 8, &|| true).unwrap_err(), NoBatch::Over);
    }
}
