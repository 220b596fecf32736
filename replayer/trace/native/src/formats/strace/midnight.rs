//! Midnight between the files of -ff: stamps of -t and -tt are times of the day, and no file says on which day it begins.

use crate::error::TraceError;
use crate::formats::Progress;
use crate::formats::strace::clock::DAY_NS;
use crate::formats::strace::kin::makes_one_of;
use rustc_hash::FxHashSet;
use std::path::Path;

/// Where a file begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begin<'a> {
    /// Its place among all files.
    pub(crate) index: usize,
    pub(crate) path: &'a Path,
    pub(crate) task: u64,
    /// Since midnight.
    pub(crate) time_ns: i64,
}

/// The places of the files that begin after a midnight, where the others begin before it.
///
/// As within one file, times that lie more than half a day apart are those of two days. Where a task of an early time has made
/// one of a late time, that was later the same day.
pub(crate) fn of_the_next_day(
    mut begins: Vec<Begin<'_>>,
    progress: Progress<'_>,
) -> Result<Vec<usize>, TraceError> {
    begins.sort_by_key(|begin| begin.time_ns);
    let is_apart = |pair: &[Begin<'_>]| match pair {
        [one, next] => next.time_ns.saturating_sub(one.time_ns) > DAY_NS / 2,
        _ => false,
    };
    let Some(last_early) = begins.windows(2).position(is_apart) else {
        return Ok(Vec::new());
    };
    let late = begins.split_off(last_early + 1);
    let late: FxHashSet<u64> = late.iter().map(|begin| begin.task).collect();
    for early in &begins {
        if makes_one_of(early.path, &late, progress)? {
            return Ok(Vec::new());
        }
    }
    Ok(begins.iter().map(|begin| begin.index).collect())
}
