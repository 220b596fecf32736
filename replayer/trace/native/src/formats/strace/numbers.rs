//! Numbers of processes in a namespace of their own: what calls return is not what strace puts before their lines.

use crate::call::{Kind, Outcome};
use crate::formats::strace::scan::ResultText;
use rustc_hash::FxHashMap;

/// Children that are remembered until somebody waits for them (chosen).
const MOST_REMEMBERED: usize = 1 << 16;

/// Strace's numbers of children, by who made them and the number that it got for them. Strace tells of a child that was
/// waited for by the second alone: the process is gone by then.
#[derive(Debug, Default)]
pub(super) struct Numbers(FxHashMap<(u64, i64), i64>);

impl Numbers {
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
                if self.0.len() >= MOST_REMEMBERED {
                    self.0.clear();
                }
                self.0.insert((task, value), own);
                Outcome::Value(own)
            }
            (Kind::Reaped, None) if !self.0.is_empty() => {
                Outcome::Value(self.0.remove(&(task, value)).unwrap_or(value))
            }
            (_, own) => Outcome::Value(own.unwrap_or(value)),
        }
    }
}
