//! dbench loadfiles: what one client asked of a file server, as dbench does it on a mounted file system.
//!
//! The root is the first one; `\clients\client1` lies below it. A loadfile has no threads and no times (or one time in
//! front of each line). What it calls Deltree is no call, but a program: it is named and not represented.

mod calls;
mod line;

use crate::bytes::{from, take_seconds, words};
use crate::call::{Args, FileArg, Kind, Outcome};
use crate::error::TraceError;
use crate::formats::dbench::calls::with_mode;
use crate::formats::dbench::line::{Parsed, parse};
use crate::formats::strace::value::NOW;
use crate::formats::{Applicability, Clock, ClockKind, Format, Progress};
use crate::input::Input;
use crate::lines::Line;
use crate::op::Op;
use crate::tracker::Tracker;

pub(crate) const FORMAT: Format = Format {
    name: "dbench",
    is_applicable,
    import,
};

const COMMANDS: [&[u8]; 17] = [
    b"NTCreateX",
    b"Close",
    b"ReadX",
    b"WriteX",
    b"Flush",
    b"Rename",
    b"Unlink",
    b"Deltree",
    b"Rmdir",
    b"Mkdir",
    b"FIND_FIRST",
    b"QUERY_PATH_INFORMATION",
    b"QUERY_FILE_INFORMATION",
    b"QUERY_FS_INFORMATION",
    b"SET_FILE_INFORMATION",
    b"LockX",
    b"UnlockX",
];

fn is_applicable(head: &[u8]) -> Applicability {
    let first = head
        .split(|&byte| byte == b'\n')
        .find(|line| !line.is_empty() && line.first() != Some(&b'#'));
    let Some(line) = first else {
        return Applicability::NeedMore;
    };
    let (_, line) = take_time(line);
    match words(line).next() {
        Some(word) if COMMANDS.contains(&word) => Applicability::Yes,
        _ => Applicability::No,
    }
}

fn take_time(line: &[u8]) -> (Option<i64>, &[u8]) {
    match take_seconds(line) {
        Some((time, rest, _)) if rest.first() == Some(&b' ') => (Some(time), from(rest, 1)),
        _ => (None, line),
    }
}

pub(crate) struct Client {
    pub(crate) root: Vec<u8>,
    pub(crate) time_ns: Option<i64>,
    timed: bool,
}

fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    tracker.events.trust_times();
    let mut root = vec![b'/'];
    root.extend(
        tracker
            .scope
            .roots()
            .next()
            .map(|(root, _)| root.to_vec())
            .unwrap_or_default(),
    );
    let mut client = Client {
        root,
        time_ns: None,
        timed: false,
    };
    for mut input in inputs {
        let name = input.path.display().to_string();
        let mut count = 0_u64;
        loop {
            let kind = input.next_line()?;
            if kind == Line::End {
                break;
            }
            count += 1;
            tracker.counts.lines += 1;
            if kind == Line::TooLong || !client.line(tracker, input.line())? {
                tracker.counts.strange(&name, count, input.line());
            }
            if count.is_multiple_of(1 << 16) && !progress(tracker.counts.lines) {
                return Err(TraceError::Interrupted);
            }
        }
    }
    Ok(if client.timed {
        Clock {
            kind: ClockKind::Relative,
            resolution_ns: 1_000_000,
            durations: false,
        }
    } else {
        Clock::default()
    })
}

impl Client {
    fn line(&mut self, tracker: &mut Tracker, line: &[u8]) -> Result<bool, TraceError> {
        if line.is_empty() || line.first() == Some(&b'#') {
            return Ok(true);
        }
        let (time, line) = take_time(line);
        if time.is_some() {
            self.timed = true;
            self.time_ns = time;
        }
        let Some(parsed) = parse(line) else {
            return Ok(false);
        };
        let outcome = parsed.outcome.map_or(Outcome::Value(0), Outcome::Error);
        match parsed.names.first().map(|name| self.path(name)) {
            Some(path) => self.named(tracker, &parsed, path, outcome),
            None => self.numbered(tracker, &parsed, outcome),
        }
    }

    /// A line that names a path.
    fn named(
        &self,
        tracker: &mut Tracker,
        parsed: &Parsed<'_>,
        path: Vec<u8>,
        outcome: Outcome,
    ) -> Result<bool, TraceError> {
        let (op, args) = match (parsed.command, parsed.numbers.as_slice()) {
            (b"NTCreateX", [options, disposition, fnum, ..]) => {
                self.create(tracker, path, (*options, *disposition, *fnum), outcome)?;
                return Ok(true);
            }
            (b"FIND_FIRST", _) => {
                self.list(tracker, path)?;
                return Ok(true);
            }
            (b"Rename", _) => return self.rename(tracker, parsed, path, outcome),
            (b"Deltree", _) => {
                tracker.counts.not_representable.add("Deltree");
                return Ok(true);
            }
            (b"QUERY_PATH_INFORMATION", _) => (Op::Stat, Args::default()),
            (b"Unlink", _) => (Op::Unlink, Args::default()),
            (b"Rmdir", _) => (Op::Rmdir, Args::default()),
            (b"Mkdir", _) => (Op::Mkdir, with_mode(0o777)),
            _ => return Ok(false),
        };
        self.on_path(tracker, op, path, args, outcome)?;
        Ok(true)
    }

    /// A line that names an open file by its number.
    fn numbered(
        &self,
        tracker: &mut Tracker,
        parsed: &Parsed<'_>,
        outcome: Outcome,
    ) -> Result<bool, TraceError> {
        match (parsed.command, parsed.numbers.as_slice()) {
            (b"Close", [fnum, ..]) => {
                self.call(
                    tracker,
                    "close",
                    outcome,
                    &Kind::Close(FileArg::plain(*fnum)),
                )?;
            }
            (b"ReadX", [fnum, offset, size, got, ..]) => {
                self.io(tracker, Op::Pread, *fnum, (*offset, *size, *got), outcome)?;
            }
            (b"WriteX", [fnum, offset, size, got, ..]) => {
                self.io(tracker, Op::Pwrite, *fnum, (*offset, *size, *got), outcome)?;
            }
            (b"LockX" | b"UnlockX", [fnum, offset, size, ..]) => {
                let args = Args {
                    flags: Some(6),
                    mode: Some(if parsed.command == b"LockX" { 1 } else { 2 }),
                    offset: Some(*offset),
                    size: Some(*size),
                    ..Args::default()
                };
                self.on_file(tracker, Op::Lock, *fnum, args, outcome)?;
            }
            (b"QUERY_FS_INFORMATION", _) => {
                let path = self.path(b"\\");
                self.on_path(tracker, Op::Statfs, path, Args::default(), outcome)?;
            }
            (command, [fnum, ..]) => {
                let (op, args) = match command {
                    b"Flush" => (Op::Fsync, Args::default()),
                    b"QUERY_FILE_INFORMATION" => (Op::Fstat, Args::default()),
                    b"SET_FILE_INFORMATION" => (Op::Futimens, touched()),
                    _ => return Ok(false),
                };
                self.on_file(tracker, op, *fnum, args, outcome)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn touched<'a>() -> Args<'a> {
    Args {
        atime_ns: Some(NOW),
        mtime_ns: Some(NOW),
        ..Args::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loadfiles_are_known_by_their_first_command() {
        assert_eq!(
            is_applicable(b"Deltree \"\\clients\\client1\" NT_STATUS_OK\n"),
            Applicability::Yes
        );
        assert_eq!(
            is_applicable(b"0.001 Close 7 NT_STATUS_OK\n"),
            Applicability::Yes
        );
        assert_eq!(is_applicable(b"# only words\n"), Applicability::NeedMore);
        assert_eq!(is_applicable(b"close(3) = 0\n"), Applicability::No);
    }
}
