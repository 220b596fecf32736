//! Numbers of processes in a namespace of their own: what calls return is not what strace puts before their lines.

use crate::call::{Kind, Outcome};
use crate::formats::strace::scan::ResultText;
use std::collections::BTreeMap;

/// Children that are remembered until somebody waits for them; of more, those that were made long ago are forgotten (chosen).
const MOST_REMEMBERED: usize = 1 << 16;

/// Strace's numbers of children, by the number that a call returned for them and who made that call. Strace tells of a child that
/// was waited for by the first alone: the process is gone by then.
#[derive(Debug, Default)]
pub(super) struct NamespacePids {
    made: BTreeMap<(i64, u64), i64>,
    /// Those that were made long ago.
    before: BTreeMap<(i64, u64), i64>,
}

/// Of none of strace's processes: wait returns it where it waited for nobody.
const NOBODY: i64 = 0;

impl NamespacePids {
    /// What a task's call returned; processes by strace's numbers.
    pub(super) fn outcome(
        &mut self,
        task: u64,
        kind: &Kind<'_>,
        result: &ResultText<'_>,
    ) -> Outcome {
        let value = match (result.value, result.errno) {
            (_, Some(number)) => return Outcome::Error(number),
            (Some(-1) | None, None) => return Outcome::Unknown,
            (Some(value), None) => value,
        };
        match (kind, result.strace_number) {
            (Kind::Spawn(_), Some(own)) => {
                self.remember((value, task), own);
                Outcome::Value(own)
            }
            (Kind::Joined(told), _) => Outcome::Value(self.take(task, *told)),
            (Kind::Reaped, None) => Outcome::Value(self.take(task, value)),
            (_, own) => Outcome::Value(own.unwrap_or(value)),
        }
    }

    fn remember(&mut self, key: (i64, u64), own: i64) {
        if self.made.len() >= MOST_REMEMBERED / 2 {
            self.before = std::mem::take(&mut self.made);
        }
        self.before.remove(&key);
        self.made.insert(key, own);
    }

    /// The child that a task has waited for: its own one of this number, or that of another thread of its process if only one
    /// task has made one. What none of those is, is a number as strace gives them.
    fn take(&mut self, task: u64, value: i64) -> i64 {
        let of_all = (value, u64::MIN)..=(value, u64::MAX);
        let all = self
            .made
            .range(of_all.clone())
            .chain(self.before.range(of_all));
        let makers: Vec<u64> = all.map(|(&(_, by), _)| by).take(2).collect();
        let is_own = [&self.made, &self.before]
            .iter()
            .any(|one| one.contains_key(&(value, task)));
        let by = match makers[..] {
            _ if is_own => task,
            [] => return value,
            [one] => one,
            _ => return NOBODY,
        };
        let own = self.made.remove(&(value, by));
        own.or_else(|| self.before.remove(&(value, by)))
            .unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Shares;

    const CHILD: Kind<'static> = Kind::Spawn(Shares {
        process: false,
        files: false,
        cwd: false,
        parts_mounts: false,
        memory: false,
        memory_in_turn: false,
    });

    fn result(value: i64, strace_number: Option<i64>) -> ResultText<'static> {
        ResultText {
            value: Some(value),
            strace_number,
            ..ResultText::default()
        }
    }

    #[test]
    fn a_child_is_told_by_who_made_it_or_by_its_number_if_only_one_has_that() {
        let mut numbers = NamespacePids::default();
        let mut made = |by, value, own| numbers.outcome(by, &CHILD, &result(value, Some(own)));
        for (by, value, own) in [(10, 2, 4711), (20, 2, 4712), (10, 3, 4713)] {
            assert_eq!(made(by, value, own), Outcome::Value(own));
        }
        let mut waited = |by, value| numbers.outcome(by, &Kind::Reaped, &result(value, None));
        assert_eq!(waited(30, 2), Outcome::Value(NOBODY));
        assert_eq!(waited(20, 2), Outcome::Value(4712));
        assert_eq!(waited(11, 2), Outcome::Value(4711));
        assert_eq!(waited(11, 3), Outcome::Value(4713));
        assert_eq!(waited(11, 3), Outcome::Value(3));
    }

    #[test]
    fn of_many_children_the_oldest_are_forgotten_and_threads_are_told_by_who_joins_them() {
        let mut numbers = NamespacePids::default();
        let thread = Kind::Spawn(Shares {
            process: true,
            ..Shares::default()
        });
        numbers.outcome(10, &thread, &result(1, Some(9)));
        let joined = numbers.outcome(10, &Kind::Joined(1), &result(0, None));
        assert_eq!(joined, Outcome::Value(9));
        let most = i64::try_from(MOST_REMEMBERED).unwrap();
        for value in 2..2 + most {
            numbers.outcome(10, &CHILD, &result(value, Some(value + most)));
        }
        let remembered = numbers.made.len() + numbers.before.len();
        assert!((MOST_REMEMBERED / 2..=MOST_REMEMBERED).contains(&remembered));
        assert_eq!(numbers.take(10, 1 + most), 1 + 2 * most);
        assert_eq!(numbers.take(10, 1), 1);
    }
}
