//! What dbench does on a mounted file system for each command of a loadfile.

use crate::call::{Args, Call, FileArg, Kind, Outcome, PathArg};
use crate::constants::{O_CREAT, O_DIRECTORY, O_EXCL, O_RDWR, O_TRUNC};
use crate::error::TraceError;
use crate::formats::dbench::Client;
use crate::formats::dbench::line::Parsed;
use crate::op::Op;
use crate::tracker::Tracker;

/// The descriptor of a directory while it is listed: loadfiles number theirs from 1.
const LISTING: i64 = i64::MAX;

impl Client {
    pub(crate) fn rename(
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

    pub(crate) fn path(&self, name: &[u8]) -> Vec<u8> {
        let mut path = self.root.clone();
        path.push(b'/');
        path.extend(
            name.iter()
                .map(|&byte| if byte == b'\\' { b'/' } else { byte }),
        );
        path
    }

    pub(crate) fn call(
        &self,
        tracker: &mut Tracker,
        name: &'static str,
        outcome: Outcome,
        kind: &Kind<'_>,
    ) -> Result<(), TraceError> {
        tracker.call(&Call {
            task: 1,
            name,
            start_ns: self.time_ns,
            duration_ns: None,
            meanwhile: 0,
            outcome,
            kind,
        })
    }

    pub(crate) fn on_path(
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

    pub(crate) fn on_file(
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

    pub(crate) fn io(
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
        let outcome = if outcome.is_ok() {
            Outcome::Value(got)
        } else {
            outcome
        };
        self.on_file(tracker, op, fnum, args, outcome)
    }

    /// `NTCreateX` as dbench does it: mkdir for a new directory, then an open.
    pub(crate) fn create(
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
        let outcome = if outcome.is_ok() {
            Outcome::Value(fnum)
        } else {
            outcome
        };
        let kind = Kind::Open {
            path: PathArg::plain(path),
            args,
            shown: None,
        };
        self.call(tracker, "open", outcome, &kind)
    }

    /// `FIND_FIRST` as dbench does it: the whole directory is read. How many bytes that were is not known.
    pub(crate) fn list(&self, tracker: &mut Tracker, mut path: Vec<u8>) -> Result<(), TraceError> {
        let slash = memchr::memrchr(b'/', &path).unwrap_or(0);
        path.truncate(slash);
        let args = Args {
            flags: Some(O_DIRECTORY),
            ..Args::default()
        };
        let kind = Kind::Open {
            path: PathArg::plain(path),
            args,
            shown: None,
        };
        self.call(tracker, "open", Outcome::Value(LISTING), &kind)?;
        let args = Args {
            size: Some(32 << 10),
            ..Args::default()
        };
        self.on_file(tracker, Op::Getdents, LISTING, args, Outcome::Value(0))?;
        self.call(
            tracker,
            "close",
            Outcome::Value(0),
            &Kind::Close(FileArg::plain(LISTING)),
        )
    }
}

/// Arguments of a creation.
pub(crate) fn with_mode<'a>(mode: i64) -> Args<'a> {
    Args {
        mode: Some(mode),
        ..Args::default()
    }
}
