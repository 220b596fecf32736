//! fio's iolog, versions 2 and 3: one job's opens, reads, writes and syncs.
//!
//! Version 3 puts microseconds since the job's start in front of each line; version 2 has `wait` lines instead.
//! The log says what was asked for and not what came of it: every call is taken to have succeeded.

use crate::bytes::{number, words};
use crate::call::{Args, Call, FileArg, Kind, Outcome, PathArg};
use crate::constants::O_RDWR;
use crate::error::TraceError;
use crate::formats::{Applicability, Clock, ClockKind, Format, Progress, each_line};
use crate::input::Input;
use crate::tracker::Tracker;
use replayer_ops::Op;
use rustc_hash::FxHashMap;

pub(crate) const FORMAT: Format = Format {
    name: "fio-iolog",
    is_applicable,
    import,
    is_exact: false,
};

fn is_applicable(head: &[u8]) -> Applicability {
    const BEGIN: &[u8] = b"fio version ";
    if head.starts_with(BEGIN) {
        Applicability::Yes
    } else if BEGIN.starts_with(head) {
        Applicability::NeedMore
    } else {
        Applicability::No
    }
}

#[derive(Debug, Default)]
struct Job {
    task: u64,
    version: i64,
    now_ns: i64,
    files: FxHashMap<Vec<u8>, i64>,
    next_file: i64,
}

fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    tracker.events.trust_times();
    for (index, input) in inputs.into_iter().enumerate() {
        let mut job = Job {
            task: u64::try_from(index).unwrap_or(0),
            next_file: 3,
            ..Job::default()
        };
        each_line(input, tracker, progress, |tracker, number, line| {
            if number == 1 {
                Ok(job.begin(line))
            } else {
                job.line(tracker, line)
            }
        })?;
    }
    Ok(Clock {
        kind: ClockKind::Relative,
        resolution_ns: 1_000,
        durations: false,
    })
}

impl Job {
    fn begin(&mut self, line: &[u8]) -> bool {
        let version = line.strip_prefix(b"fio version ").and_then(number);
        self.version = version.unwrap_or(0);
        line.ends_with(b" iolog") && matches!(version, Some(2 | 3))
    }

    fn line(&mut self, tracker: &mut Tracker, line: &[u8]) -> Result<bool, TraceError> {
        let mut parts = words(line);
        if self.version == 3 {
            let Some(time_us) = parts.next().and_then(number).filter(|&time| time >= 0) else {
                return Ok(false);
            };
            self.now_ns = time_us.saturating_mul(1_000);
        }
        let (Some(name), Some(action)) = (parts.next(), parts.next()) else {
            return Ok(false);
        };
        let offset = parts.next().and_then(number);
        let size = parts.next().and_then(number);
        match (action, offset, size) {
            (b"add", None, None) => Ok(true),
            (b"open", None, None) => self.open(tracker, name).map(|()| true),
            (b"close", None, None) => self.close(tracker, name).map(|()| true),
            (b"wait", Some(time_us), _) => {
                self.now_ns = self
                    .now_ns
                    .saturating_add(time_us.max(0).saturating_mul(1_000));
                Ok(true)
            }
            (_, Some(offset), Some(size)) if offset >= 0 && size >= 0 => {
                self.io(tracker, name, action, (offset, size))
            }
            _ => Ok(false),
        }
    }

    fn call(
        &self,
        tracker: &mut Tracker,
        name: &'static str,
        value: i64,
        kind: &Kind<'_>,
    ) -> Result<(), TraceError> {
        let begin = (self.task, Some(self.now_ns));
        tracker.call(&Call::at(begin, name, Outcome::Value(value), kind))
    }

    fn open(&mut self, tracker: &mut Tracker, name: &[u8]) -> Result<(), TraceError> {
        self.close(tracker, name)?;
        let file = self.next_file;
        self.next_file += 1;
        self.files.insert(name.to_vec(), file);
        let path = PathArg::plain(name);
        let args = Args {
            flags: Some(O_RDWR),
            ..Args::default()
        };
        let kind = Kind::open(path, args);
        self.call(tracker, "open", file, &kind)
    }

    fn close(&mut self, tracker: &mut Tracker, name: &[u8]) -> Result<(), TraceError> {
        match self.files.remove(name) {
            Some(file) => self.call(tracker, "close", 0, &Kind::Close(FileArg::plain(file))),
            None => Ok(()),
        }
    }

    fn io(
        &mut self,
        tracker: &mut Tracker,
        name: &[u8],
        action: &[u8],
        (offset, size): (i64, i64),
    ) -> Result<bool, TraceError> {
        let (op, value, flags) = match action {
            b"read" => (Op::Pread, size, None),
            b"write" => (Op::Pwrite, size, None),
            b"sync" => (Op::Fsync, 0, None),
            b"datasync" => (Op::Fdatasync, 0, None),
            b"sync_file_range" => (Op::SyncFileRange, 0, Some(2)),
            // A discarded range reads as zeros: a hole (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE).
            b"trim" => (Op::Fallocate, 0, Some(3)),
            _ => return Ok(false),
        };
        if !self.files.contains_key(name) {
            self.open(tracker, name)?;
        }
        let file = FileArg::plain(self.files.get(name).copied().unwrap_or(-1));
        let sized = !matches!(op, Op::Fsync | Op::Fdatasync);
        let args = Args {
            flags,
            offset: sized.then_some(offset),
            size: sized.then_some(size),
            ..Args::default()
        };
        self.call(tracker, op.name(), value, &Kind::File { op, file, args })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_known_by_their_first_line() {
        assert_eq!(is_applicable(b"fio version 3 iolog\n"), Applicability::Yes);
        assert_eq!(is_applicable(b"fio ve"), Applicability::NeedMore);
        assert_eq!(is_applicable(b"close(3) = 0\n"), Applicability::No);
        assert!(Job::default().begin(b"fio version 2 iolog"));
        assert!(!Job::default().begin(b"fio version 4 iolog"));
    }
}
