//! When transactions are intended: pure arithmetic on times that are handed in. Nobody sleeps here.

use crate::program::{Draw, Pace};
use crate::rng::{ARRIVALS_USER, Stream};

type Tables = [Box<[u64]>];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Paced {
    pub(crate) seed: u64,
    pub(crate) round: u16,
    pub(crate) user: u32,
    pub(crate) users: u32,
    /// When this user's part of the segment began.
    pub(crate) begin_ns: u64,
}

/// One user's pacer, for a closed loop or a constant pace.
#[derive(Debug)]
pub(crate) enum Pacer {
    Closed {
        think: Draw,
        stream: Stream,
    },
    Every {
        period: Draw,
        stream: Stream,
        last_ns: Option<u64>,
        paced: Paced,
    },
}

fn time(draw: Draw, tables: &Tables, stream: &mut Stream) -> u64 {
    draw.value(tables, stream, |_| 0)
}

impl Pacer {
    /// `None` when arrivals are shared (see [`Arrivals`]).
    pub(crate) fn new(pace: &Pace, paced: Paced) -> Option<Pacer> {
        let stream = Stream::of_pace(paced.seed, paced.round, paced.user);
        match pace {
            Pace::Closed(think) => Some(Pacer::Closed {
                think: *think,
                stream,
            }),
            Pace::Every(period) => Some(Pacer::Every {
                period: *period,
                stream,
                last_ns: None,
                paced,
            }),
            Pace::Arrivals(_) => None,
        }
    }

    /// When the next transaction is intended, given the end of the previous one (or the begin).
    pub(crate) fn next(&mut self, tables: &Tables, end_ns: u64) -> u64 {
        match self {
            Pacer::Closed { think, stream } => end_ns.saturating_add(time(*think, tables, stream)),
            Pacer::Every {
                period,
                stream,
                last_ns,
                paced,
            } => {
                let period_ns = time(*period, tables, stream);
                let next_ns = match *last_ns {
                    Some(last_ns) => last_ns.saturating_add(period_ns),
                    None => {
                        paced
                            .begin_ns
                            .saturating_add(share(period_ns, paced.user, paced.users))
                    }
                };
                *last_ns = Some(next_ns);
                next_ns
            }
        }
    }

    /// How many more transactions are intended before a time; closed loops owe none.
    pub(crate) fn due(&mut self, tables: &Tables, end_ns: u64) -> u64 {
        match self {
            Pacer::Closed { .. } => 0,
            Pacer::Every { .. } => count_due(|| self.next(tables, end_ns), end_ns),
        }
    }
}

/// No more than this are counted: a tenth of a second's work (chosen). Who is behind by so much knows it.
const MOST_DUE: u64 = 10_000_000;

/// How many times of a schedule are before another time. Takes one that is not.
fn count_due(mut next: impl FnMut() -> u64, end_ns: u64) -> u64 {
    let mut count = 0;
    while count < MOST_DUE && next() < end_ns {
        count += 1;
    }
    count
}

/// The part of a period after which a user starts: user / users of it.
fn share(period_ns: u64, user: u32, users: u32) -> u64 {
    let users = users.max(1);
    let share = u128::from(period_ns) * u128::from(user % users) / u128::from(users);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Which arrivals of the one schedule are an engine's own: every `of`-th from `first` on. Other engines take the others.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The first user.
    pub first: u32,
    /// Every so many users.
    pub of: u32,
}

/// The one schedule of all users together.
#[derive(Debug)]
pub(crate) struct Arrivals {
    gap: Draw,
    stream: Stream,
    last_ns: u64,
    /// How many arrivals on its next own one is, and all that follow.
    steps: u32,
    of: u32,
}

impl Arrivals {
    /// `None` when the pace knows no arrivals.
    pub(crate) fn new(
        pace: &Pace,
        seed: u64,
        round: u16,
        begin_ns: u64,
        turn: Turn,
    ) -> Option<Arrivals> {
        let Pace::Arrivals(gap) = pace else {
            return None;
        };
        let stream = Stream::of_pace(seed, round, ARRIVALS_USER);
        Some(Arrivals {
            gap: *gap,
            stream,
            last_ns: begin_ns,
            steps: turn.first.saturating_add(1),
            of: turn.of,
        })
    }

    /// Take the next arrival of this engine's own.
    pub(crate) fn take(&mut self, tables: &Tables) -> u64 {
        for _ in 0..std::mem::replace(&mut self.steps, self.of) {
            let gap_ns = time(self.gap, tables, &mut self.stream);
            self.last_ns = self.last_ns.saturating_add(gap_ns);
        }
        self.last_ns
    }

    /// How many more arrivals of this engine's own are before a time.
    pub(crate) fn due(&mut self, tables: &Tables, end_ns: u64) -> u64 {
        count_due(|| self.take(tables), end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An engine that has the schedule for itself.
    const ALL: Turn = Turn { first: 0, of: 1 };

    fn paced(user: u32, users: u32) -> Paced {
        Paced {
            seed: 1,
            round: 0,
            user,
            users,
            begin_ns: 1000,
        }
    }

    #[test]
    fn a_closed_loop_waits_after_the_end() {
        let mut pacer = Pacer::new(&Pace::Closed(Draw::Const(5)), paced(0, 1)).unwrap();
        assert_eq!(pacer.next(&[], 1000), 1005);
        assert_eq!(pacer.next(&[], 9000), 9005);
    }

    #[test]
    fn a_closed_loop_owes_nothing() {
        let mut pacer = Pacer::new(&Pace::Closed(Draw::Const(5)), paced(0, 1)).unwrap();
        assert_eq!(pacer.due(&[], u64::MAX), 0);
    }

    proptest! {
        #[test]
        fn a_constant_pace_never_accumulates_lateness(user in 0..8_u32, late: Vec<u32>) {
            let mut pacer = Pacer::new(&Pace::Every(Draw::Const(80)), paced(user, 8)).unwrap();
            for (turn, late) in (0_u64..).zip(late) {
                let intended = 1000 + u64::from(user) * 10 + 80 * turn;
                prop_assert_eq!(pacer.next(&[], intended + u64::from(late)), intended);
            }
        }

        #[test]
        fn engines_that_take_turns_have_the_schedule_of_one(seed: u64, of in 1..5_u32) {
            let pace = Pace::Arrivals(Draw::Uniform(1, 100));
            let take = |turn, count| -> Vec<u64> {
                let mut arrivals = Arrivals::new(&pace, seed, 0, 7, turn).unwrap();
                (0..count).map(|_| arrivals.take(&[])).collect()
            };
            let mut dealt: Vec<u64> = (0..of).flat_map(|first| take(Turn { first, of }, 20)).collect();
            dealt.sort_unstable();
            prop_assert_eq!(dealt, take(ALL, 20 * of));
        }

        #[test]
        fn what_is_taken_and_what_is_due_are_the_whole_schedule(seed: u64, taken in 0..20_u64) {
            let pace = Pace::Arrivals(Draw::Uniform(1, 100));
            let all = Arrivals::new(&pace, seed, 0, 7, ALL).unwrap().due(&[], 5_000);
            let mut arrivals = Arrivals::new(&pace, seed, 0, 7, ALL).unwrap();
            for _ in 0..taken {
                arrivals.take(&[]);
            }
            prop_assert_eq!(arrivals.due(&[], 5_000), all - taken);
        }

        #[test]
        fn periods_that_pass_while_a_user_is_busy_are_due(user in 0..8_u32, begun in 0..10_u64) {
            let mut pacer = Pacer::new(&Pace::Every(Draw::Const(80)), paced(user, 8)).unwrap();
            for _ in 0..begun {
                pacer.next(&[], 0);
            }
            prop_assert_eq!(pacer.due(&[], 1000 + 80 * 20), 20 - begun);
        }

        #[test]
        fn arrivals_are_the_same_whoever_takes_them(seed: u64) {
            let pace = Pace::Arrivals(Draw::Uniform(1, 100));
            let take = |mut arrivals: Arrivals| -> Vec<u64> { (0..50).map(|_| arrivals.take(&[])).collect() };
            let one = take(Arrivals::new(&pace, seed, 2, 7, ALL).unwrap());
            prop_assert!(one.is_sorted());
            prop_assert_eq!(one, take(Arrivals::new(&pace, seed, 2, 7, ALL).unwrap()));
        }
    }
}
