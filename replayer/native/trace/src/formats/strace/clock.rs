//! Stamps of lines as one time that goes on, also over midnight.

use crate::error::TraceError;
use crate::formats::strace::lineage::{each_line, ends, made};
use crate::formats::strace::prefix::Stamp;
use crate::formats::{Clock, ClockKind, Progress};
use rustc_hash::FxHashMap;
use std::path::Path;

pub(crate) const DAY_NS: i64 = 86_400_000_000_000;
/// Stamps that are as fine tell calls apart: what makes a task takes longer until that begins (-tt, -ttt).
const FINE_NS: u64 = 1_000;

/// Makes times of stamps.
#[derive(Debug, Default)]
pub(crate) struct StampReader {
    day_ns: i64,
    last_ns: i64,
    /// The time of the stamp before.
    before_ns: i64,
    pub(crate) clock: Clock,
    pub(crate) went_back: u64,
}

impl StampReader {
    /// Whether its stamps tell what came first in files that were written at the same time. Steps of -r do not: strace counts
    /// them from the last line of whichever file.
    pub(crate) fn tells_order(&self) -> bool {
        let is_absolute = matches!(self.clock.kind, ClockKind::Epoch | ClockKind::Day);
        is_absolute && self.clock.resolution_ns <= FINE_NS
    }

    /// Have made the last step from no earlier time, where stamps are steps. Returns by how much that is later.
    pub(crate) fn catch_up(&mut self, time_ns: i64) -> i64 {
        if self.clock.kind != ClockKind::Relative {
            return 0;
        }
        let late_ns = time_ns.saturating_sub(self.before_ns).max(0);
        self.last_ns = self.last_ns.saturating_add(late_ns);
        late_ns
    }

    /// All that was read is later by some days: the first stamp was behind midnights that other files tell of.
    pub(crate) fn begin_later(&mut self, late_ns: i64) {
        self.day_ns = self.day_ns.saturating_add(late_ns);
        self.last_ns = self.last_ns.saturating_add(late_ns);
        self.before_ns = self.before_ns.saturating_add(late_ns);
    }

    /// The time of a stamp, on the log's clock.
    pub(crate) fn read(&mut self, stamp: Stamp) -> Option<i64> {
        let (time, kind, digits) = match stamp {
            Stamp::None => return None,
            Stamp::Epoch(time, digits) => (time, ClockKind::Epoch, digits),
            Stamp::Relative(step, digits) => (
                self.last_ns.saturating_add(step),
                ClockKind::Relative,
                digits,
            ),
            Stamp::Day(time, digits) => {
                let mut time = time.saturating_add(self.day_ns);
                // Midnight, not a clock that was set back.
                if self.clock.kind == ClockKind::Day
                    && time.saturating_add(DAY_NS / 2) < self.last_ns
                {
                    self.day_ns = self.day_ns.saturating_add(DAY_NS);
                    time = time.saturating_add(DAY_NS);
                }
                (time, ClockKind::Day, digits)
            }
        };
        let step = 10_u64.saturating_pow(9_u32.saturating_sub(digits));
        if self.clock.kind == ClockKind::None {
            self.clock.kind = kind;
            self.clock.resolution_ns = step;
        } else if time < self.last_ns {
            self.went_back += 1;
        }
        self.clock.resolution_ns = self.clock.resolution_ns.min(step);
        self.before_ns = self.last_ns;
        self.last_ns = time;
        Some(time)
    }
}

/// Where a file begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogBegin<'a> {
    /// Its place among all files.
    pub(crate) index: usize,
    pub(crate) path: &'a Path,
    pub(crate) task: u64,
    /// Since midnight.
    pub(crate) time_ns: i64,
}

/// On which day files begin.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FileDays {
    /// Places of the files that do not begin on the first day, and how many days later.
    pub(crate) later: Vec<(usize, i64)>,
    /// Files of which nothing says it.
    pub(crate) guessed: usize,
}

/// What a file says of days.
#[derive(Debug, Clone, Copy, Default)]
struct FileSpan {
    begin_ns: i64,
    /// The time of its last line: on a later day, if it goes on over midnight.
    end_ns: i64,
    /// How many tasks that had the number, one after the other, it holds.
    lives: usize,
    first: Option<TaskStart>,
    last: Option<TaskStart>,
}

/// A call that made a task.
#[derive(Debug, Clone, Copy)]
struct TaskStart {
    /// The place of the maker's life.
    by: usize,
    /// Since the midnight before the maker's begin.
    time_ns: i64,
}

/// The days on which files begin, as far as their lines prove it.
///
/// A file whose own times fall by more than half a day goes on over midnight (as all stamps are read), and a task begins behind
/// the call that made it. What else has a time of the day between that midnight and the end of such a file, and would have ended
/// before that file begins, is of the next day as well. For the rest it is a guess where they lie more than half a day apart: that
/// they are of the next day where a midnight is known of, and of the same one where none is.
pub(crate) fn days(
    begins: &[LogBegin<'_>],
    progress: Progress<'_>,
) -> Result<FileDays, TraceError> {
    if begins.len() < 2 {
        return Ok(FileDays::default());
    }
    let lives = look_through(begins, progress)?;
    let above: Vec<(usize, i64)> = (0..lives.len()).map(|at| first_of(at, &lives)).collect();
    let (roots, guessed) = days_of_roots(&lives, &above);
    let all = begins.iter().zip(&above);
    let all = all.map(|(begin, &(root, days))| {
        let of_root = roots.get(root).copied().unwrap_or(0);
        (begin.index, days.saturating_add(of_root))
    });
    Ok(FileDays {
        later: all.filter(|&(_, days)| days > 0).collect(),
        guessed,
    })
}

fn look_through(
    begins: &[LogBegin<'_>],
    progress: Progress<'_>,
) -> Result<Vec<FileSpan>, TraceError> {
    let tasks = begins.iter().enumerate();
    let place_of: FxHashMap<u64, usize> = tasks.map(|(place, begin)| (begin.task, place)).collect();
    let mut lives: Vec<FileSpan> = vec![FileSpan::default(); begins.len()];
    for (by, begin) in begins.iter().enumerate() {
        let mut reading = StampReader::default();
        let (mut time_ns, mut count, mut has_ended) = (begin.time_ns, 0, true);
        each_line(begin.path, progress, |stamp, text| {
            time_ns = reading.read(stamp).unwrap_or(time_ns);
            count += usize::from(has_ended);
            has_ended = ends(text);
            let child = made(text).and_then(|task| place_of.get(&task));
            if let Some(child) = child.and_then(|&child| lives.get_mut(child)) {
                let making = TaskStart { by, time_ns };
                child.first.get_or_insert(making);
                child.last = Some(making);
            }
        })?;
        if let Some(life) = lives.get_mut(by) {
            (life.begin_ns, life.end_ns, life.lives) = (begin.time_ns, time_ns, count);
        }
    }
    Ok(lives)
}

impl FileSpan {
    /// Who made the task that its file begins with: strace begins the file of a number anew, with -A it goes on in it.
    fn making(&self) -> Option<TaskStart> {
        if self.lives > 1 {
            self.first
        } else {
            self.last
        }
    }
}

/// The first of those that made a task and each other, and how many days before the task it began.
fn first_of(at: usize, lives: &[FileSpan]) -> (usize, i64) {
    let (mut root, mut days) = (at, 0_i64);
    for _ in 0..lives.len() {
        let life = lives.get(root).copied().unwrap_or_default();
        let Some(making) = life.making() else {
            return (root, days);
        };
        days = days.saturating_add(days_behind(life.begin_ns, making.time_ns));
        root = making.by;
    }
    (at, 0) // numbers that are used again seem to make each other
}

/// How many days later a time of the day is than what was before it: as within a file, less than half a day back is a clock
/// that was set.
fn days_behind(time_ns: i64, before_ns: i64) -> i64 {
    let back_ns = before_ns.saturating_sub(time_ns);
    back_ns.saturating_add(DAY_NS / 2 - 1).max(0) / DAY_NS
}

/// On which day each of those begin that nobody made, and of how many nothing tells it.
fn days_of_roots(lives: &[FileSpan], above: &[(usize, i64)]) -> (Vec<i64>, usize) {
    // Each with its descendants, from the begin of the first to the last line of all.
    let mut spans: Vec<Option<(i64, i64)>> = vec![None; lives.len()];
    for (life, &(root, days)) in lives.iter().zip(above) {
        let begin_ns = lives.get(root).map_or(0, |root| root.begin_ns);
        let end_ns = life.end_ns.saturating_add(days.saturating_mul(DAY_NS));
        if let Some(place) = spans.get_mut(root) {
            let (_, last_ns) = place.unwrap_or((begin_ns, i64::MIN));
            *place = Some((begin_ns, last_ns.max(end_ns)));
        }
    }
    let known = || spans.iter().flatten();
    let passing = known().filter(|(_, end_ns)| *end_ns >= DAY_NS);
    let first_ns = passing.clone().map(|span| span.0).min();
    let last_ns = passing.map(|span| span.1).max().unwrap_or(0);
    let latest_ns = known().map(|span| span.0).max().unwrap_or(0);
    let mut guessed = 0;
    let day_of = |span: &Option<(i64, i64)>| {
        let Some((begin_ns, end_ns)) = *span else {
            return 0;
        };
        let next_ns = first_ns.unwrap_or(latest_ns);
        let is_before = begin_ns < next_ns && end_ns < next_ns;
        if is_before && begin_ns.saturating_add(DAY_NS) <= last_ns {
            return 1;
        }
        let is_apart = is_before && next_ns.saturating_sub(begin_ns) > DAY_NS / 2;
        guessed += usize::from(is_apart);
        i64::from(is_apart && first_ns.is_some())
    };
    (spans.iter().map(day_of).collect(), guessed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn midnight_is_passed_and_steps_add_up() {
        let mut day = StampReader::default();
        assert_eq!(day.read(Stamp::Day(DAY_NS - 5, 6)), Some(DAY_NS - 5));
        assert_eq!(day.read(Stamp::Day(7, 6)), Some(DAY_NS + 7));
        let mut steps = StampReader::default();
        assert_eq!(steps.read(Stamp::Relative(5, 6)), Some(5));
        assert_eq!(steps.read(Stamp::Relative(5, 6)), Some(10));
        let mut back = StampReader::default();
        back.read(Stamp::Epoch(100, 9));
        back.read(Stamp::Epoch(90, 9));
        assert_eq!((back.went_back, back.clock.resolution_ns), (1, 1));
    }
}
