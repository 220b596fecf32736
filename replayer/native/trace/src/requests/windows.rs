//! The time spans that the user named, and which of them a task works in.

use serde::Deserialize;

/// A time span that the user named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Window {
    /// On the log's clock.
    pub start_ns: i64,
    /// On the log's clock; excluded.
    pub end_ns: i64,
    /// What to call it.
    pub label: String,
}

/// The window that a task works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowChoice {
    /// Its place among all.
    pub(crate) at: usize,
    /// What the task does may be for another one: several had begun, or its own has ended.
    pub(crate) is_guess: bool,
    /// Somebody had it already, and there was none that nobody had: two tasks may serve one request, but the task leaves it for
    /// the first window that is free.
    is_shared: bool,
}

/// All windows, in the order in which they begin.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    all: Vec<Window>,
    ends: EndTree,
    /// The ends of those in which no task has worked.
    free: EndTree,
}

impl Windows {
    pub(crate) fn new(mut all: Vec<Window>) -> Self {
        all.sort_by_key(|window| window.start_ns);
        let ends = EndTree::of(&all);
        Self {
            free: ends.clone(),
            ends,
            all,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Window> {
        self.all.get(at)
    }

    /// The window that a task works in at a time, where it has worked in another one or none before. None where it has worked in none
    /// and none lasts.
    ///
    /// One that lasts is kept. Of several that have begun the latest is meant that nobody has taken yet: who serves two requests
    /// at once has a task for each. A window that began in the task's last one, and that somebody has taken, is not its own. One that
    /// somebody had before is left for one that nobody has, if that begins by `own_until_ns`.
    pub(crate) fn follow(
        &mut self,
        time_ns: i64,
        last: Option<WindowChoice>,
        own_until_ns: i64,
    ) -> Option<WindowChoice> {
        let begun = self
            .all
            .partition_point(|window| window.start_ns <= time_ns);
        let free = self.free.latest(begun, time_ns);
        if let Some(last) = last.filter(|last| self.lasts(last.at, time_ns))
            && !(last.is_shared && free.is_some_and(|free| self.has_begun(free, own_until_ns)))
        {
            // It may be for the one that nobody has.
            let is_guess = last.is_guess || free.is_some();
            return Some(WindowChoice { is_guess, ..last });
        }
        let Some(latest) = self.ends.latest(begun, time_ns) else {
            return last; // what is left to do behind its end
        };
        let at = free.unwrap_or(latest);
        let before = last.filter(|last| self.began_within(at, last.at));
        if let (Some(before), None) = (before, free) {
            return Some(WindowChoice {
                is_guess: true,
                ..before
            });
        }
        self.free.set(at, i64::MIN);
        let is_another = self.ends.latest(latest, time_ns).is_some();
        Some(WindowChoice {
            at,
            is_guess: is_another || before.is_some(),
            is_shared: free.is_none(),
        })
    }

    pub(crate) fn lasts(&self, at: usize, time_ns: i64) -> bool {
        let window = self.all.get(at);
        window.is_some_and(|window| time_ns < window.end_ns)
    }

    fn has_begun(&self, at: usize, time_ns: i64) -> bool {
        let window = self.all.get(at);
        window.is_some_and(|window| window.start_ns <= time_ns)
    }

    /// Whether a window began before another one had ended.
    fn began_within(&self, at: usize, other: usize) -> bool {
        let window = self.all.get(at);
        window.is_some_and(|window| self.lasts(other, window.start_ns))
    }
}

/// Ends of windows, as a tree of maxima: the latest that lasts is found without looking at those that have ended.
#[derive(Debug, Default, Clone)]
struct EndTree {
    /// The first half are those of pairs in the second: place 1 is the latest of all, the children of `n` are `2n` and `2n + 1`.
    nodes: Vec<i64>,
}

impl EndTree {
    fn of(windows: &[Window]) -> Self {
        // One more than there are windows: all of them never make a whole tree, which has no place behind it.
        let leaves = (windows.len() + 1).next_power_of_two();
        let mut ends = Self {
            nodes: vec![i64::MIN; 2 * leaves],
        };
        for (at, window) in windows.iter().enumerate() {
            ends.set(at, window.end_ns);
        }
        ends
    }

    fn end(&self, node: usize) -> i64 {
        self.nodes.get(node).copied().unwrap_or(i64::MIN)
    }

    fn set(&mut self, at: usize, end_ns: i64) {
        let mut node = self.nodes.len() / 2 + at;
        let mut latest = end_ns;
        while let Some(place) = self.nodes.get_mut(node).filter(|_| node > 0) {
            *place = latest;
            latest = latest.max(self.end(node ^ 1));
            node /= 2;
        }
    }

    /// The last of the windows before a place that has not ended.
    fn latest(&self, before: usize, time_ns: i64) -> Option<usize> {
        let leaves = self.nodes.len() / 2;
        let mut node = leaves + before;
        // Those before it are covered by the left neighbours of the nodes above it, the nearest first.
        while node > 1 {
            if node % 2 == 1 && self.end(node - 1) > time_ns {
                node -= 1;
                while node < leaves {
                    node = 2 * node + usize::from(self.end(2 * node + 1) > time_ns);
                }
                return Some(node - leaves);
            }
            node /= 2;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn windows(spans: &[(i64, i64)]) -> Windows {
        let window = |&(start_ns, end_ns)| Window {
            start_ns,
            end_ns,
            label: "a".to_owned(),
        };
        Windows::new(spans.iter().map(window).collect())
    }

    fn short(choice: Option<WindowChoice>) -> Option<(usize, bool)> {
        choice.map(|choice| (choice.at, choice.is_guess))
    }

    #[test]
    fn the_latest_that_nobody_has_taken_is_meant() {
        let mut windows = windows(&[(0, 100), (50, 60), (55, 120)]);
        let mut follow = |time_ns, last| windows.follow(time_ns, last, i64::MAX);
        let first = follow(5, None);
        assert_eq!(short(first), Some((0, false)));
        assert_eq!(follow(40, first), first);
        assert_eq!(short(follow(56, first)), Some((0, true)));
        assert_eq!(short(follow(56, None)), Some((2, true)));
        assert_eq!(short(follow(56, None)), Some((1, true)));
        assert_eq!(follow(56, first), first);
        // What is left to do behind the end of its own window is no work for that of another task.
        assert_eq!(short(follow(110, first)), Some((0, true)));
        assert_eq!(short(follow(110, None)), Some((2, false)));
        assert_eq!(follow(130, first), first);
        assert_eq!(follow(130, None), None);
    }

    #[test]
    fn one_that_somebody_has_is_left_for_the_next_that_nobody_has() {
        let mut windows = windows(&[(0, 100), (50, 60)]);
        let mut follow = |time_ns, last| windows.follow(time_ns, last, i64::MAX);
        let first = follow(10, None);
        let other = follow(49, None);
        assert_eq!(short(other), Some((0, false)));
        assert_eq!(follow(49, other), other);
        let own = follow(52, other);
        assert_eq!(short(own), Some((1, true)));
        assert_eq!(follow(55, own), own);
        assert_eq!(follow(55, first), first);
    }

    proptest! {
        #[test]
        fn the_latest_of_those_that_last_is_found(
            spans in prop::collection::vec((0..40_i64, 0..20_i64), 0..20),
            taken in prop::collection::vec(any::<bool>(), 20),
            before in 0..20_usize,
            time_ns in 0..60_i64,
        ) {
            let spans: Vec<_> = spans.iter().map(|(start, length)| (*start, start + length)).collect();
            let mut windows = windows(&spans);
            let before = before.min(spans.len());
            for at in (0..spans.len()).filter(|&at| taken[at]) {
                windows.free.set(at, i64::MIN);
            }
            let lasts = |at: &usize| time_ns < windows.all[*at].end_ns;
            let latest = (0..before).rev().find(lasts);
            prop_assert_eq!(windows.ends.latest(before, time_ns), latest);
            let free = (0..before).rev().find(|at| lasts(at) && !taken[*at]);
            prop_assert_eq!(windows.free.latest(before, time_ns), free);
        }

        /// Of as many tasks as there are windows each has an event in its own: all of them are somebody's.
        #[test]
        fn every_window_that_has_a_task_of_its_own_is_taken(
            spans in prop::collection::vec((0..40_i64, 1..20_i64), 1..10),
        ) {
            let spans: Vec<_> = spans.iter().map(|(start, length)| (*start, start + length)).collect();
            let mut windows = windows(&spans);
            let starts: Vec<i64> = windows.all.iter().map(|window| window.start_ns).collect();
            for start_ns in starts {
                windows.follow(start_ns, None, i64::MAX);
            }
            prop_assert_eq!(windows.free.latest(spans.len(), 0), None);
        }
    }
}
