//! dbench loadfiles: what one client asked of a file server, as dbench does it on a mounted file system.
//!
//! The root is the first one; `\clients\client1` lies below it. A loadfile has no threads and no times (or one time in
//! front of each line). What it calls Deltree is no call, but a program: it is named and not represented.

use crate::bytes::{cut, from, number, take_seconds, words};
use crate::call::{Args, At, Call, FileArg, Kind, Outcome, PathArg};
use crate::constants::{O_CREAT, O_DIRECTORY, O_EXCL, O_RDWR, O_TRUNC};
use crate::error::TraceError;
use crate::formats::{Applicability, Clock, ClockKind, Format};
use crate::input::{Input, Line};
use crate::op::Op;
use crate::tracker::Tracker;
use std::borrow::Cow;

pub(crate) const FORMAT: Format = Format {
    name: "dbench",
    is_applicable,
    import,
};

const COMMANDS: [&[u8]; 17] = [
    b"NTCreateX", b"Close", b"ReadX", b"WriteX", b"Flush", b"Rename", b"Unlink", b"Deltree", b"Rmdir", b"Mkdir",
    b"FIND_FIRST", b"QUERY_PATH_INFORMATION", b"QUERY_FILE_INFORMATION", b"QUERY_FS_INFORMATION",
    b"SET_FILE_INFORMATION", b"LockX", b"UnlockX",
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
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Clock, TraceError> {
    let mut root = vec![b'/'];
    root.extend(tracker.scope.roots().next().map(|(root, _)| root.to_vec()).unwrap_or_default());
    let mut client = Client {
        root,
        time_ns: None,
        timed: false,
    };
    for mut input in inputs {
        let name = input.path.display().to_string();
        let mut line = Vec::new();
        let mut count = 0_u64;
        loop {
            let kind = input.read_line(&mut line)?;
            if kind == Line::End {
                break;
            }
            count += 1;
            tracker.counts.lines += 1;
            if kind == Line::TooLong || !client.line(tracker, &line)? {
                tracker.counts.strange(&name, count, &line);
            }
            if count % (1 << 16) == 0 && !progress(tracker.counts.lines) {
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

/// A line split into its command, its quoted paths, its numbers and its status.
struct Parsed<'a> {
    command: &'a [u8],
    names: Vec<&'a [u8]>,
    numbers: Vec<i64>,
    outcome: Option<u16>,
}

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
        b"NT_STATUS_OBJECT_NAME_NOT_FOUND" | b"NT_STATUS_OBJECT_PATH_NOT_FOUND" | b"NT_STATUS_NO_SUCH_FILE"
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
        let path = parsed.names.first().map(|name| self.path(name));
        let numbers = parsed.numbers.as_slice();
        match (parsed.command, path, numbers) {
            (b"NTCreateX", Some(path), [options, disposition, fnum, ..]) => {
                self.create(tracker, path, (*options, *disposition, *fnum), outcome)?;
            }
            (b"Close", _, [fnum, ..]) => self.call(tracker, "close", outcome, Kind::Close(plain(*fnum)))?,
            (b"ReadX", _, [fnum, offset, size, got, ..]) => {
                self.io(tracker, Op::Pread, *fnum, (*offset, *size, *got), outcome)?;
            }
            (b"WriteX", _, [fnum, offset, size, got, ..]) => {
                self.io(tracker, Op::Pwrite, *fnum, (*offset, *size, *got), outcome)?;
            }
            (b"Flush", _, [fnum, ..]) => self.on_file(tracker, Op::Fsync, *fnum, Args::default(), outcome)?,
            (b"QUERY_FILE_INFORMATION", _, [fnum, ..]) => {
                self.on_file(tracker, Op::Fstat, *fnum, Args::default(), outcome)?;
            }
            (b"SET_FILE_INFORMATION", _, [fnum, ..]) => {
                let now = crate::formats::strace::value::NOW;
                let args = Args {
                    atime_ns: Some(now),
                    mtime_ns: Some(now),
                    ..Args::default()
                };
                self.on_file(tracker, Op::Futimens, *fnum, args, outcome)?;
            }
            (b"LockX" | b"UnlockX", _, [fnum, offset, size, ..]) => {
                let args = Args {
                    flags: Some(6),
                    mode: Some(if parsed.command == b"LockX" { 1 } else { 2 }),
                    offset: Some(*offset),
                    size: Some(*size),
                    ..Args::default()
                };
                self.on_file(tracker, Op::Lock, *fnum, args, outcome)?;
            }
            (b"FIND_FIRST", Some(path), _) => self.list(tracker, path)?,
            (b"QUERY_FS_INFORMATION", _, _) => {
                let path = self.path(b"\\");
                self.on_path(tracker, Op::Statfs, path, Args::default(), outcome)?;
            }
            (b"QUERY_PATH_INFORMATION", Some(path), _) => {
                self.on_path(tracker, Op::Stat, path, Args::default(), outcome)?;
            }
            (b"Unlink", Some(path), _) => self.on_path(tracker, Op::Unlink, path, Args::default(), outcome)?,
            (b"Rmdir", Some(path), _) => self.on_path(tracker, Op::Rmdir, path, Args::default(), outcome)?,
            (b"Mkdir", Some(path), _) => self.on_path(tracker, Op::Mkdir, path, with_mode(0o777), outcome)?,
            (b"Rename", Some(path), _) => {
                let Some(to) = parsed.names.get(1).map(|name| self.path(name)) else {
                    return Ok(false);
                };
                let kind = Kind::TwoPaths {
                    op: Op::Rename,
                    path: path_arg(path),
                    to: path_arg(to),
                    args: Args::default(),
                };
                self.call(tracker, "rename", outcome, kind)?;
            }
            (b"Deltree", Some(_), _) => tracker.counts.not_representable.add("Deltree"),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn path(&self, name: &[u8]) -> Vec<u8> {
        let mut path = self.root.clone();
        path.push(b'/');
        path.extend(name.iter().map(|&byte| if byte == b'\\' { b'/' } else { byte }));
        path
    }

    fn call(
        &self,
        tracker: &mut Tracker,
        name: &'static str,
        outcome: Outcome,
        kind: Kind<'_>,
    ) -> Result<(), TraceError> {
        tracker.call(&Call {
            task: 1,
            name,
            start_ns: self.time_ns,
            duration_ns: None,
            outcome,
            kind,
        })
    }

    fn on_path(
        &self,
        tracker: &mut Tracker,
        op: Op,
        path: Vec<u8>,
        args: Args<'_>,
        outcome: Outcome,
    ) -> Result<(), TraceError> {
        let path = path_arg(path);
        self.call(tracker, op.name(), outcome, Kind::Path { op, path, args })
    }

    fn on_file(
        &self,
        tracker: &mut Tracker,
        op: Op,
        fnum: i64,
        args: Args<'_>,
        outcome: Outcome,
    ) -> Result<(), TraceError> {
        let file = plain(fnum);
        self.call(tracker, op.name(), outcome, Kind::File { op, file, args })
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
        let outcome = if outcome.is_ok() { Outcome::Value(got) } else { outcome };
        self.on_file(tracker, op, fnum, args, outcome)
    }

    /// NTCreateX as dbench does it: mkdir for a new directory, then an open.
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
        let flags = if directory { O_DIRECTORY } else { O_RDWR | creates };
        let args = Args {
            flags: Some(flags),
            mode: (flags & O_CREAT != 0).then_some(0o600),
            ..Args::default()
        };
        let outcome = if outcome.is_ok() { Outcome::Value(fnum) } else { outcome };
        let kind = Kind::Open {
            path: path_arg(path),
            args,
            shown: None,
        };
        self.call(tracker, "open", outcome, kind)
    }

    /// FIND_FIRST as dbench does it: the whole directory is read. How many bytes that were is not known.
    fn list(&self, tracker: &mut Tracker, mut path: Vec<u8>) -> Result<(), TraceError> {
        let slash = memchr::memrchr(b'/', &path).unwrap_or(0);
        path.truncate(slash);
        const LISTING: i64 = i64::MAX;
        let args = Args {
            flags: Some(O_DIRECTORY),
            ..Args::default()
        };
        let kind = Kind::Open {
            path: path_arg(path),
            args,
            shown: None,
        };
        self.call(tracker, "open", Outcome::Value(LISTING), kind)?;
        let args = Args {
            size: Some(32 << 10),
            ..Args::default()
        };
        self.on_file(tracker, Op::Getdents, LISTING, args, Outcome::Value(0))?;
        self.call(tracker, "close", Outcome::Value(0), Kind::Close(plain(LISTING)))
    }
}

fn with_mode<'a>(mode: i64) -> Args<'a> {
    Args {
        mode: Some(mode),
        ..Args::default()
    }
}

fn path_arg<'a>(text: Vec<u8>) -> PathArg<'a> {
    PathArg {
        at: At::Cwd(None),
        text: Cow::Owned(text),
    }
}

fn plain<'a>(number: i64) -> FileArg<'a> {
    FileArg {
        number,
        shown: None,
        deleted: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loadfiles_are_known_by_their_first_command() {
        assert_eq!(is_applicable(b"Deltree \"\\clients\\client1\" NT_STATUS_OK\n"), Applicability::Yes);
        assert_eq!(is_applicable(b"0.001 Close 7 NT_STATUS_OK\n"), Applicability::Yes);
        assert_eq!(is_applicable(b"# only words\n"), Applicability::NeedMore);
        assert_eq!(is_applicable(b"close(3) = 0\n"), Applicability::No);
    }

    #[test]
    fn a_line_has_command_names_numbers_and_status() {
        let line = b"FIND_FIRST \"\\clients\\client1\\FILLER.*\" 260 1366 0 NT_STATUS_NO_SUCH_FILE";
        let parsed = parse(line).unwrap();
        assert_eq!(parsed.names, [b"\\clients\\client1\\FILLER.*"]);
        assert_eq!((parsed.numbers, parsed.outcome), (vec![260, 1366, 0], Some(2)));
        assert!(parse(b"Close \"x").is_none());
    }
}
