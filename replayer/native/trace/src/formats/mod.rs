//! Foreign formats, one importer per file, with one contract.

pub mod bpf;
pub(crate) mod dbench;
pub(crate) mod fio_iolog;
pub(crate) mod strace;

use crate::error::TraceError;
use crate::input::{Input, Line};
use crate::tracker::Tracker;

/// Whether an importer can read what begins like this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applicability {
    /// It is this format.
    Yes,
    /// It is not.
    No,
    /// The beginning does not tell: give more, or ask the user.
    NeedMore,
}

impl Applicability {
    /// Its name for Python.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::NeedMore => "need more",
        }
    }
}

/// Names of the formats that can be imported.
#[must_use]
pub fn format_names() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// Told the number of lines; false stops the import.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64) -> bool;
/// Lines between two looks at whether somebody wants to stop.
pub(crate) const PROGRESS_LINES: u64 = 1 << 16;

/// Hand each line of an input to an importer with its number; those that it does not understand are counted.
pub(crate) fn each_line(
    mut input: Input,
    tracker: &mut Tracker,
    progress: Progress<'_>,
    mut take: impl FnMut(&mut Tracker, u64, &[u8]) -> Result<bool, TraceError>,
) -> Result<(), TraceError> {
    let name = input.path.display().to_string();
    for number in 1.. {
        let kind = input.next_line()?;
        if kind == Line::End {
            break;
        }
        tracker.counts.lines += 1;
        if kind == Line::TooLong || !take(tracker, number, input.line())? {
            tracker.counts.strange(&name, number, input.line());
        }
        if number.is_multiple_of(PROGRESS_LINES) && !progress(tracker.counts.lines) {
            return Err(TraceError::Interrupted);
        }
    }
    Ok(())
}

/// Reads inputs of one capture into a tracker.
pub(crate) type Import = fn(Vec<Input>, &mut Tracker, Progress<'_>) -> Result<Clock, TraceError>;

/// One importer.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) is_applicable: fn(&[u8]) -> Applicability,
    pub(crate) import: Import,
    /// Whether its recorder stops no program: times hold no more of it than it measured itself.
    pub(crate) is_exact: bool,
}

/// What a log says about time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Clock {
    /// `epoch`, `day`, `relative` or `none`.
    pub(crate) kind: ClockKind,
    /// Smallest step that its stamps can show.
    pub(crate) resolution_ns: u64,
    /// Whether it says how long calls took.
    pub(crate) durations: bool,
}

/// Where a clock begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ClockKind {
    #[default]
    None,
    Epoch,
    Day,
    Relative,
}

impl ClockKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Epoch => "epoch",
            Self::Day => "day",
            Self::Relative => "relative",
        }
    }
}

/// All importers, in the order in which they are asked.
pub(crate) const FORMATS: [Format; 4] = [
    bpf::FORMAT,
    fio_iolog::FORMAT,
    dbench::FORMAT,
    strace::FORMAT,
];

/// Bytes of a file that decide about its format (chosen).
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// Ask an importer about the beginning of a file.
#[must_use]
pub fn is_applicable(format: &str, head: &[u8]) -> Option<Applicability> {
    FORMATS
        .iter()
        .find(|other| other.name == format)
        .map(|format| (format.is_applicable)(head))
}
