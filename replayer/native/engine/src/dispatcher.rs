//! Deals the arrivals of the one schedule to users that are free: each waits for one of its own. What a user that leaves had is
//! another's: of those that wait, each has one that is sooner than all that nobody has.

use crate::lock::hold;
use crate::pace::Arrivals;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;

type Tables = [Box<[u64]>];

/// Set in a card whose user has stopped waiting for it.
const SETTLED: u64 = 1 << 63;

/// The arrival that a user waits for: another one may be put in its place until the user settles.
#[derive(Debug, Default)]
struct Card(AtomicU64);

/// A user's place among those that wait.
#[derive(Debug)]
pub(crate) struct ArrivalSlot {
    user: u32,
    waiter: Waiter,
}

impl ArrivalSlot {
    pub(crate) fn new(user: u32, thread: Thread) -> ArrivalSlot {
        let card = Arc::default();
        ArrivalSlot {
            user,
            waiter: Waiter { thread, card },
        }
    }

    /// The arrival that it has now.
    pub(crate) fn held_ns(&self) -> u64 {
        self.waiter.card.0.load(Ordering::Relaxed) & !SETTLED
    }

    /// Take no other one any more.
    pub(crate) fn settle(&self) -> u64 {
        self.waiter.card.0.fetch_or(SETTLED, Ordering::SeqCst) & !SETTLED
    }
}

#[derive(Clone, Debug)]
struct Waiter {
    thread: Thread,
    card: Arc<Card>,
}

#[derive(Debug)]
struct Hand {
    arrivals: Arrivals,
    /// Given back: later than all that somebody waits for.
    back: BinaryHeap<Reverse<u64>>,
    /// By arrival and user. Who has settled stays until it is dealt another one.
    waiting: BTreeMap<(u64, u32), Waiter>,
}

#[derive(Debug)]
pub(crate) struct ArrivalDispatcher {
    hand: Mutex<Hand>,
}

impl ArrivalDispatcher {
    pub(crate) fn new(arrivals: Arrivals) -> ArrivalDispatcher {
        ArrivalDispatcher {
            hand: Mutex::new(Hand {
                arrivals,
                back: BinaryHeap::new(),
                waiting: BTreeMap::new(),
            }),
        }
    }

    /// Deal a user that was free at a time the next arrival. One that lies after that is waited for.
    pub(crate) fn deal(&self, tables: &Tables, slot: &ArrivalSlot, free_ns: u64) -> u64 {
        let mut hand = hold(&self.hand);
        hand.leave(slot);
        let arrival_ns = hand.next(tables);
        if arrival_ns <= free_ns {
            slot.waiter
                .card
                .0
                .store(arrival_ns | SETTLED, Ordering::SeqCst);
            return arrival_ns;
        }
        slot.waiter.card.0.store(arrival_ns, Ordering::SeqCst);
        let waiter = slot.waiter.clone();
        hand.waiting.insert((arrival_ns, slot.user), waiter);
        arrival_ns
    }

    /// A user leaves before others do, without having begun its arrival: who waits for the latest one gets it instead.
    pub(crate) fn hand_on(&self, slot: &ArrivalSlot) {
        let mut hand = hold(&self.hand);
        let mut arrival_ns = slot.settle();
        hand.leave(slot);
        while let Some(((latest_ns, user), waiter)) = hand.waiting.pop_last() {
            if latest_ns <= arrival_ns {
                hand.waiting.insert((latest_ns, user), waiter);
                break;
            }
            let (order, late) = (Ordering::SeqCst, Ordering::Relaxed);
            let changed = waiter
                .card
                .0
                .compare_exchange(latest_ns, arrival_ns, order, late);
            // One that has settled meanwhile waits no more.
            if changed.is_ok() {
                waiter.thread.unpark();
                hand.waiting.insert((arrival_ns, user), waiter);
                arrival_ns = latest_ns;
                break;
            }
        }
        hand.back.push(Reverse(arrival_ns));
    }

    /// Everybody leaves: it is nobody's.
    pub(crate) fn put_back(&self, slot: &ArrivalSlot) {
        let mut hand = hold(&self.hand);
        let arrival_ns = slot.settle();
        hand.leave(slot);
        hand.back.push(Reverse(arrival_ns));
    }

    /// How many arrivals that nobody has are before a time. To be asked once.
    pub(crate) fn due(&self, tables: &Tables, end_ns: u64) -> u64 {
        let mut hand = hold(&self.hand);
        let back = hand.back.drain().filter(|back| back.0 < end_ns).count();
        hand.arrivals.due(tables, end_ns) + back as u64
    }
}

impl Hand {
    fn next(&mut self, tables: &Tables) -> u64 {
        match self.back.pop() {
            Some(Reverse(arrival_ns)) => arrival_ns,
            None => self.arrivals.take(tables),
        }
    }

    fn leave(&mut self, slot: &ArrivalSlot) {
        self.waiting.remove(&(slot.held_ns(), slot.user));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Turn;
    use crate::program::{Draw, Pace};
    use proptest::prelude::*;

    /// An arrival each ten nanoseconds, from 10 on.
    fn dispatcher() -> ArrivalDispatcher {
        let pace = Pace::Arrivals(Draw::Const(10));
        let turn = Turn { first: 0, of: 1 };
        ArrivalDispatcher::new(Arrivals::new(&pace, 1, 0, 0, turn).unwrap())
    }

    fn slot(user: u32) -> ArrivalSlot {
        ArrivalSlot::new(user, std::thread::current())
    }

    #[test]
    fn what_a_user_leaves_is_had_by_who_would_have_waited_longest() {
        let (dispatcher, slots) = (dispatcher(), [slot(0), slot(1), slot(2)]);
        for slot in &slots {
            dispatcher.deal(&[], slot, 0);
        }
        dispatcher.hand_on(&slots[0]);
        assert_eq!([slots[1].settle(), slots[2].settle()], [20, 10]);
        assert_eq!(dispatcher.deal(&[], &slots[2], 15), 30);
        assert_eq!(dispatcher.deal(&[], &slots[1], 25), 40);
    }

    #[test]
    fn who_has_begun_keeps_its_arrival() {
        let (dispatcher, slots) = (dispatcher(), [slot(0), slot(1)]);
        for slot in &slots {
            dispatcher.deal(&[], slot, 0);
        }
        assert_eq!(slots[1].settle(), 20);
        dispatcher.hand_on(&slots[0]);
        assert_eq!(slots[1].held_ns(), 20);
        assert_eq!(dispatcher.deal(&[], &slots[1], 21), 10);
    }

    #[test]
    fn what_nobody_has_is_due() {
        let (dispatcher, slots) = (dispatcher(), [slot(0), slot(1), slot(2)]);
        for slot in &slots {
            dispatcher.deal(&[], slot, 0);
        }
        assert_eq!(slots[0].settle(), 10);
        dispatcher.put_back(&slots[1]);
        dispatcher.put_back(&slots[2]);
        assert_eq!(dispatcher.due(&[], 45), 3);
    }

    proptest! {
        #[test]
        fn none_is_lost_and_those_that_wait_have_the_soonest(
            leaves: Vec<bool>,
            users in 1..6_u32,
        ) {
            let dispatcher = dispatcher();
            let mut slots: Vec<ArrivalSlot> = (0..users).map(slot).collect();
            for slot in &slots {
                dispatcher.deal(&[], slot, 0);
            }
            let mut begun = Vec::new();
            let mut user = users;
            for leave in leaves {
                if leave {
                    dispatcher.hand_on(&slots.remove(0));
                    slots.push(slot(user));
                    dispatcher.deal(&[], &slots[slots.len() - 1], 0);
                    user += 1;
                } else {
                    slots.sort_by_key(ArrivalSlot::held_ns);
                    begun.push(slots[0].settle());
                    dispatcher.deal(&[], &slots[0], 0);
                }
            }
            let mut all: Vec<u64> = slots.iter().map(ArrivalSlot::held_ns).chain(begun).collect();
            all.sort_unstable();
            let expected: Vec<u64> = (1..=all.len() as u64).map(|number| number * 10).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
