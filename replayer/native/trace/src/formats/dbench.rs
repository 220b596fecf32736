//! dbench loadfiles: what one client asked of a file server, as dbench does it on a mounted file system.
//!
//! The root is the first one; `\clients\client1` lies below it. A loadfile has no threads and no times (or one time in
//! front of each line). What it calls Deltree is no call, but a program: it is named and not represented.

use crate::bytes::{cut, from, number, take_seconds, words};
use crate::call::{Args, Call, FileArg, Kind, Outcome, PathArg};
use crate::constants::{O_CREAT, O_DIRECTORY, O_EXCL, O_RDWR, O_TRUNC};
use crate::error::TraceError;
use crate::formats::strace::value::NOW;
use crate::formats::{Applicability, Clock, ClockKind, Format, Progress, each_line};
use crate::input::Input;
use crate::tracker::Tracker;
use replayer_ops::Op;

pub(crate) const FORMAT: Format = Format {
    name: "dbench",
    is_applicable,
    import,
    is_exact: false,
};

#[rustfmt::skip]
const COMMANDS: [&[u8]; 17] = [
    b"NTCreateX", b"Close", b"ReadX", b"WriteX", b"Flush", b"Rename", b"Unlink", b"Deltree", b"Rmdir", b"Mkdir", b"FIND_FIRST",
    b"QUERY_PATH_INFORMATION", b"QUERY_FILE_INFORMATION", b"QUERY_FS_INFORMATION", b"SET_FILE_INFORMATION", b"LockX", b"UnlockX",
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

struct Client {
    root: Vec<u8>,
    time_ns: Option<i64>,
    timed: bool,
}

fn import(
    inputs: Vec<Input>,
    tracker: &mut Tracker,
    progress: Progress<'_>,
) -> Result<Clock, TraceError> {
    tracker.events.trust_times();
    let first = tracker.scope.roots().next();
    let root = [&b"/"[..], first.map_or(&[], |(root, _)| root)].concat();
    let mut client = Client {
        root,
        time_ns: None,
        timed: false,
    };
    for input in inputs {
        each_line(input, tracker, progress, |tracker, _, line| {
            client.line(tracker, line)
        })?;
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
                let kind = Kind::Close(FileArg::plain(*fnum));
                self.call(tracker, "close", outcome, &kind)?;
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

/// A line split into its command, its quoted paths, its numbers and its status.
struct Parsed<'a> {
    command: &'a [u8],
    names: Vec<&'a [u8]>,
    numbers: Vec<i64>,
    outcome: Option<u16>,
}

/// Parse a line without its time.
fn parse(line: &[u8]) -> Option<Parsed<'_>> {
    let command = words(line).next()?;
    let mut names = Vec::new();
    let mut numbers = Vec::new();
    let mut rest = from(line, command.len());
    let mut status = &[][..];
    loop {
        rest = rest.trim_ascii_start();
        if let Some(inner) = rest.strip_prefix(b"\"") {
            let end = memchr::memchr(b'"', inner)?;
            names.push(cut(inner, 0, end));
            rest = from(inner, end + 1);
            continue;
        }
        let Some(word) = words(rest).next() else {
            break;
        };
        rest = from(rest, word.len());
        match number(word) {
            Some(value) => numbers.push(value),
            None => status = word,
        }
    }
    let outcome = match status {
        b"NT_STATUS_OK" | b"SUCCESS" => None,
        b"NT_STATUS_OBJECT_NAME_NOT_FOUND"
        | b"NT_STATUS_OBJECT_PATH_NOT_FOUND"
        | b"NT_STATUS_NO_SUCH_FILE"
        | b"ERROR" => Some(2),
        b"NT_STATUS_OBJECT_NAME_COLLISION" => Some(17),
        b"NT_STATUS_ACCESS_DENIED" => Some(13),
        b"NT_STATUS_FILE_IS_A_DIRECTORY" => Some(21),
        b"NT_STATUS_NOT_A_DIRECTORY" => Some(20),
        b"NT_STATUS_DIRECTORY_NOT_EMPTY" => Some(39),
        text if text.starts_with(b"NT_STATUS_") => Some(5),
        _ => return None,
    };
    Some(Parsed {
        command,
        names,
        numbers,
        outcome,
    })
}

/// The descriptor of a directory while it is listed: loadfiles number theirs from 1.
const LISTING: i64 = i64::MAX;

impl Client {
    fn rename(
        &self,
        tracker: &mut Tracker,
        parsed: &Parsed<'_>,
        path: Vec<u8>,
        outcome: Outcome,
    ) -> Result<bool, TraceError> {
        let Some(to) = parsed.names.get(1).map(|name| self.path(name)) else {
            return Ok(false);
        };
        let kind = Kind::TwoPaths {
            op: Op::Rename,
            path: PathArg::plain(path),
            to: PathArg::plain(to),
            args: Args::default(),
        };
        self.call(tracker, "rename", outcome, &kind)?;
        Ok(true)
    }

    fn path(&self, name: &[u8]) -> Vec<u8> {
        let mut path = self.root.clone();
        path.push(b'/');
        path.extend(
            name.iter()
                .map(|&byte| if byte == b'\\' { b'/' } else { byte }),
        );
        path
    }

    fn call(
        &self,
        tracker: &mut Tracker,
        name: &'static str,
        outcome: Outcome,
        kind: &Kind<'_>,
    ) -> Result<(), TraceError> {
        tracker.call(&Call::at((1, self.time_ns), name, outcome, kind))
    }

    fn on_path(
        &self,
        tracker: &mut Tracker,
        op: Op,
        path: Vec<u8>,
        args: Args<'_>,
        outcome: Outcome,
    ) -> Result<(), TraceError> {
        let path = PathArg::plain(path);
        self.call(tracker, op.name(), outcome, &Kind::Path { op, path, args })
    }

    fn on_file(
        &self,
        tracker: &mut Tracker,
        op: Op,
        fnum: i64,
        args: Args<'_>,
        outcome: Outcome,
    ) -> Result<(), TraceError> {
        let file = FileArg::plain(fnum);
        self.call(tracker, op.name(), outcome, &Kind::File { op, file, args })
    }

    fn io(
        &self,
        tracker: &mut Tracker,
        op: Op,
        fnum: i64,
        (offset, size, got): (i64, i64, i64),
        outcome: Outcome,
    ) -> Result<(), TraceError> {
        let args = Args {
            offset: Some(offset),
            size: Some(size),
            ..Args::default()
        };
        self.on_file(tracker, op, fnum, args, returning(outcome, got))
    }

    /// `NTCreateX` as dbench does it: mkdir for a new directory, then an open.
    fn create(
        &self,
        tracker: &mut Tracker,
        path: Vec<u8>,
        (options, disposition, fnum): (i64, i64, i64),
        outcome: Outcome,
    ) -> Result<(), TraceError> {
        let directory = options & 1 != 0;
        let creates = match disposition {
            2 => O_CREAT | O_EXCL,
            3 => O_CREAT,
            0 | 5 => O_CREAT | O_TRUNC,
            4 => O_TRUNC,
            _ => 0,
        };
        if directory && creates & O_CREAT != 0 {
            self.on_path(tracker, Op::Mkdir, path.clone(), with_mode(0o777), outcome)?;
            if !outcome.is_ok() {
                return Ok(());
            }
        }
        let flags = if directory {
            O_DIRECTORY
        } else {
            O_RDWR | creates
        };
        let args = Args {
            flags: Some(flags),
            mode: (flags & O_CREAT != 0).then_some(0o600),
            ..Args::default()
        };
        let outcome = returning(outcome, fnum);
        let kind = Kind::open(PathArg::plain(path), args);
        self.call(tracker, "open", outcome, &kind)
    }

    /// `FIND_FIRST` as dbench does it: the whole directory is read. How many bytes that were is not known.
    fn list(&self, tracker: &mut Tracker, mut path: Vec<u8>) -> Result<(), TraceError> {
        let slash = memchr::memrchr(b'/', &path).unwrap_or(0);
        path.truncate(slash);
        let args = Args {
            flags: Some(O_DIRECTORY),
            ..Args::default()
        };
        let kind = Kind::open(PathArg::plain(path), args);
        self.call(tracker, "open", Outcome::Value(LISTING), &kind)?;
        let args = Args {
            size: Some(32 << 10),
            ..Args::default()
        };
        self.on_file(tracker, Op::Getdents, LISTING, args, Outcome::Value(0))?;
        let kind = Kind::Close(FileArg::plain(LISTING));
        self.call(tracker, "close", Outcome::Value(0), &kind)
    }
}

/// The same outcome, with what the call returned if it succeeded.
fn returning(outcome: Outcome, value: i64) -> Outcome {
    outcome.value().map_or(outcome, |_| Outcome::Value(value))
}

/// Arguments of a creation.
fn with_mode<'a>(mode: i64) -> Args<'a> {
    Args {
        mode: Some(mode),
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

    #[test]
    fn a_line_has_command_names_numbers_and_status() {
        let line = b"FIND_FIRST \"\\clients\\client1\\FILLER.*\" 260 1366 0 NT_STATUS_NO_SUCH_FILE";
        let parsed = parse(line).unwrap();
        assert_eq!(parsed.names, [b"\\clients\\client1\\FILLER.*"]);
        assert_eq!(
            (parsed.numbers, parsed.outcome),
            (vec![260, 1366, 0], Some(2))
        );
        assert!(parse(b"Close \"x").is_none());
    }
}
