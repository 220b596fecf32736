//! The time spans that the user named, and which of them a task works in.

/// A time span that the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
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
pub(crate) struct Choice {
    /// Its place among all.
    pub(crate) at: usize,
    /// Another one could be meant as well.
    pub(crate) is_guess: bool,
}

/// All windows, in the order in which they begin.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    all: Vec<Window>,
    /// For each the nearest one before it that ends later: once it has ended, those between them have.
    outlived_by: Vec<Option<usize>>,
    /// Whether some task has worked in it.
    taken: Vec<bool>,
}

impl Windows {
    pub(crate) fn new(mut all: Vec<Window>) -> Self {
        all.sort_by_key(|window| window.start_ns);
        let mut outlived_by: Vec<Option<usize>> = Vec::with_capacity(all.len());
        for (at, window) in all.iter().enumerate() {
            let mut before = at.checked_sub(1);
            while let Some(other) = before
                && all
                    .get(other)
                    .is_some_and(|other| other.end_ns <= window.end_ns)
            {
                before = outlived_by.get(other).copied().flatten();
            }
            outlived_by.push(before);
        }
        Self {
            taken: vec![false; all.len()],
            all,
            outlived_by,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Window> {
        self.all.get(at)
    }

    /// The window that a task works in at a time, after another one or none. None where that goes on, or there is none.
    ///
    /// One that lasts is kept. Of several that have begun the latest is meant that nobody has taken yet: who serves two requests
    /// at once has a task for each. A window that began in the task's last one, and that somebody has taken, is not its own.
    pub(crate) fn follow(&mut self, time_ns: i64, last: Option<Choice>) -> Option<Choice> {
        if last.is_some_and(|last| self.lasts(last.at, time_ns)) {
            return None;
        }
        let latest = self.live(time_ns).next()?;
        let is_free = |at: &usize| self.taken.get(*at) == Some(&false);
        let free = self.live(time_ns).find(is_free);
        let at = free.unwrap_or(latest);
        let is_another = self.live(time_ns).nth(1).is_some();
        let before = last.filter(|last| self.began_within(at, last.at));
        if let (Some(before), None) = (before, free) {
            return Some(Choice {
                is_guess: true,
                ..before
            });
        }
        if let Some(taken) = self.taken.get_mut(at) {
            *taken = true;
        }
        Some(Choice {
            at,
            is_guess: is_another || before.is_some(),
        })
    }

    fn lasts(&self, at: usize, time_ns: i64) -> bool {
        let window = self.all.get(at);
        window.is_some_and(|window| time_ns < window.end_ns)
    }

    /// Whether a window began before another one had ended.
    fn began_within(&self, at: usize, other: usize) -> bool {
        let window = self.all.get(at);
        window.is_some_and(|window| self.lasts(other, window.start_ns))
    }

    /// Those that have begun and not ended, the latest first.
    fn live(&self, time_ns: i64) -> impl Iterator<Item = usize> {
        let begun = self
            .all
            .partition_point(|window| window.start_ns <= time_ns);
        let mut next = begun.checked_sub(1);
        std::iter::from_fn(move || {
            while let Some(at) = next {
                if self.lasts(at, time_ns) {
                    next = at.checked_sub(1);
                    return Some(at);
                }
                next = self.outlived_by.get(at).copied().flatten();
            }
            None
        })
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

    #[test]
    fn the_latest_that_nobody_has_taken_is_meant() {
        let mut windows = windows(&[(0, 100), (50, 60), (55, 120)]);
        let mut follow = |time_ns, last| windows.follow(time_ns, last);
        let choice = |at, is_guess| Some(Choice { at, is_guess });
        let first = follow(5, None);
        assert_eq!(first, choice(0, false));
        assert_eq!(follow(56, first), None);
        assert_eq!(follow(56, None), choice(2, true));
        assert_eq!(follow(56, None), choice(1, true));
        // What is left to do behind the end of its own window is no work for that of another task.
        assert_eq!(follow(110, first), choice(0, true));
        assert_eq!(follow(110, None), choice(2, false));
        assert_eq!(follow(130, first), None);
    }

    proptest! {
        #[test]
        fn live_windows_are_those_that_have_begun_and_not_ended(
            spans in prop::collection::vec((0..40_i64, 0..20_i64), 0..20),
            time_ns in 0..60_i64,
        ) {
            let spans: Vec<_> = spans.iter().map(|(start, length)| (*start, start + length)).collect();
            let windows = windows(&spans);
            let all = windows.all.iter().enumerate();
            let mut expected: Vec<usize> = all
                .filter(|(_, one)| one.start_ns <= time_ns && time_ns < one.end_ns)
                .map(|(at, _)| at)
                .collect();
            expected.reverse();
            prop_assert_eq!(windows.live(time_ns).collect::<Vec<_>>(), expected);
        }
    }
}
