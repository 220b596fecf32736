//! One call of a traced program, as importers hand it to the tracker: no format is visible any more, and no state is known yet.

use crate::constants::{F_OFD_SETLK, F_OFD_SETLKW, F_SETLK, F_SETLKW, F_UNLCK, LOCK_NB, LOCK_UN};
use replayer_ops::Op;
use std::borrow::Cow;

/// A call with its time and result.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    /// The process or thread, as its log names it.
    pub(crate) task: u64,
    /// Name of the system call, for reports.
    pub(crate) name: &'a str,
    /// When it was entered, on the log's clock.
    pub(crate) start_ns: Option<i64>,
    /// How long it took, if known.
    pub(crate) duration_ns: Option<i64>,
    /// Calls of others that ended while it was under way, where the log tells.
    pub(crate) meanwhile: u32,
    pub(crate) outcome: Outcome,
    pub(crate) kind: &'a Kind<'a>,
}

impl<'a> Call<'a> {
    /// What no call of the log is, but follows from one: it succeeded, and took no time.
    pub(crate) fn implied(task: u64, name: &'a str, start_ns: Option<i64>) -> Self {
        Self {
            task,
            name,
            start_ns,
            duration_ns: Some(0),
            meanwhile: 0,
            outcome: Outcome::Value(0),
            kind: &Kind::Other,
        }
    }

    /// A call of a log that tells neither how long it took nor what others did meanwhile.
    pub(crate) fn at(
        (task, start_ns): (u64, Option<i64>),
        name: &'a str,
        outcome: Outcome,
        kind: &'a Kind<'a>,
    ) -> Self {
        Self {
            outcome,
            kind,
            duration_ns: None,
            ..Self::implied(task, name, start_ns)
        }
    }

    /// When it returned, on the log's clock.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        let start_ns = self.start_ns?;
        Some(start_ns.saturating_add(self.duration_ns.unwrap_or(0)))
    }
}

/// What a call returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Value(i64),
    Error(u16),
    /// The log does not say (the process ended in it).
    Unknown,
}

impl Outcome {
    pub(crate) const fn is_ok(self) -> bool {
        matches!(self, Self::Value(_))
    }

    /// What it returned, if it succeeded.
    pub(crate) const fn value(self) -> Option<i64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Error(_) | Self::Unknown => None,
        }
    }

    /// The task that it returned the number of.
    pub(crate) fn task(self) -> Option<u64> {
        let number = u64::try_from(self.value()?).ok();
        number.filter(|&number| number > 0)
    }
}

/// A descriptor as a log shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileArg<'a> {
    pub(crate) number: i64,
    /// The path or kind that `-y` prints, still escaped.
    pub(crate) shown: Option<&'a [u8]>,
    /// Its file has no name any more.
    pub(crate) deleted: bool,
}

impl FileArg<'_> {
    /// A descriptor that is only a number.
    pub(crate) const fn plain(number: i64) -> Self {
        Self {
            number,
            shown: None,
            deleted: false,
        }
    }
}

/// Where a relative path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At<'a> {
    /// The working directory, shown if `-y` was given.
    Cwd(Option<&'a [u8]>),
    File(FileArg<'a>),
}

/// A path as a call names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathArg<'a> {
    pub(crate) at: At<'a>,
    pub(crate) text: Cow<'a, [u8]>,
}

impl<'a> PathArg<'a> {
    /// A path of a call that has no directory.
    pub(crate) fn plain(text: impl Into<Cow<'a, [u8]>>) -> Self {
        Self {
            at: At::Cwd(None),
            text: text.into(),
        }
    }

    /// How its text ends.
    pub(crate) fn ending(&self) -> Ending {
        let text = self.text.as_ref();
        let kept = text.iter().rposition(|&byte| byte != b'/');
        let trimmed = crate::bytes::cut(text, 0, kept.map_or(0, |last| last + 1));
        match trimmed.rsplit(|&byte| byte == b'/').next() {
            Some(b"." | b"..") => Ending::Dots,
            _ if trimmed.len() < text.len() => Ending::Slash,
            _ => Ending::Name,
        }
    }
}

/// How a path ends: all but a name ask for a directory, and follow the symlink before them (`path_resolution(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Name,
    Slash,
    Dots,
}

/// The other arguments, by meaning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Args<'a> {
    pub(crate) flags: Option<i64>,
    pub(crate) mode: Option<i64>,
    pub(crate) size: Option<i64>,
    pub(crate) offset: Option<i64>,
    pub(crate) entries: Option<i64>,
    pub(crate) uid: Option<i64>,
    pub(crate) gid: Option<i64>,
    pub(crate) atime_ns: Option<i64>,
    pub(crate) mtime_ns: Option<i64>,
    pub(crate) text: Option<Cow<'a, [u8]>>,
    /// What a stat showed.
    pub(crate) seen: Option<Seen>,
}

/// What a call of flock or of fcntl does to a lock, if it succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockChange {
    /// It has it, and waits until it can.
    Wait,
    /// It has it if nobody else does.
    Try,
    Free,
}

impl Args<'_> {
    /// Whether a call of flock or of fcntl lets a lock go.
    pub(crate) fn unlocks(&self, op: Op) -> bool {
        self.change_of_lock(op) == Some(LockChange::Free)
    }

    pub(crate) fn change_of_lock(&self, op: Op) -> Option<LockChange> {
        let flags = self.flags.unwrap_or(0);
        let (frees, tries) = match op {
            Op::Flock => (flags & LOCK_UN != 0, flags & LOCK_NB != 0),
            // Other commands ask who has it.
            Op::Lock => {
                let tries = matches!(flags, F_SETLK | F_OFD_SETLK);
                let sets = tries || matches!(flags, F_SETLKW | F_OFD_SETLKW);
                (sets.then_some(self.mode == Some(F_UNLCK))?, tries)
            }
            _ => return None,
        };
        Some(match (frees, tries) {
            (true, _) => LockChange::Free,
            (false, true) => LockChange::Try,
            (false, false) => LockChange::Wait,
        })
    }
}

/// What a log shows of a file: never replayed, used to infer the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: FileKind,
    pub(crate) mode: Option<u32>,
    pub(crate) size: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum FileKind {
    #[default]
    Unknown,
    Regular,
    Directory,
    Symlink,
    /// Fifo, socket or device.
    Special,
}

/// What a clone shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags of clone(2), each of which can be set without the others"
)]
pub(crate) struct Shares {
    /// A thread: nobody waits for it.
    pub(crate) process: bool,
    pub(crate) files: bool,
    pub(crate) cwd: bool,
    /// It gets mounts of its own instead.
    pub(crate) parts_mounts: bool,
    /// The memory: what is mapped.
    pub(crate) memory: bool,
    /// The memory, while the parent waits for the child's execve or end (vfork).
    pub(crate) memory_in_turn: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind<'a> {
    Open {
        path: PathArg<'a>,
        args: Args<'a>,
        /// What `-y` prints beside the new descriptor.
        shown: Option<&'a [u8]>,
    },
    Path {
        op: Op,
        path: PathArg<'a>,
        args: Args<'a>,
    },
    TwoPaths {
        op: Op,
        path: PathArg<'a>,
        to: PathArg<'a>,
        args: Args<'a>,
    },
    File {
        op: Op,
        file: FileArg<'a>,
        args: Args<'a>,
    },
    TwoFiles {
        op: Op,
        file: FileArg<'a>,
        to: FileArg<'a>,
        args: Args<'a>,
    },
    Close(FileArg<'a>),
    CloseRange {
        first: i64,
        last: i64,
        only_mark: bool,
        /// The task gets a table of its own first, and only that one loses them.
        parts: bool,
    },
    /// The new descriptor is the outcome.
    Dup {
        file: FileArg<'a>,
        on_exec: OnExec,
    },
    /// It was open before the log began: no call, but what a capture has seen of the process.
    Inherited {
        file: FileArg<'a>,
        flags: i64,
        offset: i64,
        /// Of a file that had been removed: its size, and which one it was.
        gone: Option<Gone>,
        /// Which open description it is, where that is known: several descriptors may share it.
        description: Option<i64>,
    },
    /// `F_SETFD`, FIOCLEX and the like: an op, and state.
    SetOnExec {
        file: FileArg<'a>,
        on_exec: OnExec,
        args: Args<'a>,
    },
    Fchdir(FileArg<'a>),
    /// Pages were touched through a mapping.
    Touched(TouchedPages),
    /// Addresses and sizes: of what was mapped, and of what is mapped instead, if anything is.
    Unmap {
        from: (i64, i64),
        to: Option<(i64, i64)>,
    },
    /// Absolute paths begin elsewhere from now on.
    Chroot(PathArg<'a>),
    /// The same, for all tasks that share the mounts.
    PivotRoot(PathArg<'a>),
    Umask(i64),
    Getcwd(Cow<'a, [u8]>),
    Spawn(Shares),
    /// What the task has for itself from now on.
    Unshare {
        files: bool,
        cwd: bool,
        mounts: bool,
        /// It gets something that a log of calls cannot show: other mounts, other users…
        unseen: bool,
    },
    Exec {
        path: Option<PathArg<'a>>,
    },
    /// The outcome is a task that has ended.
    Reaped,
    /// The same of a thread: its number, as the call has it.
    Joined(i64),
    /// It goes on after what another task has done.
    Follows(u64),
    /// The new connection is the outcome.
    Accept,
    /// The two ends of a pipe, the one to read from first, or of a pair of sockets, which goes both ways.
    Pair {
        ends: [i64; 2],
        both_ways: bool,
        on_exec: OnExec,
    },
    /// It waited until descriptors could be used.
    Poll,
    /// New descriptors that are no files of a tree.
    Foreign(Vec<i64>),
    /// Work that a log of calls cannot show.
    Blind(&'static str),
    /// Something is mounted on a name, or (without `from`) a mount is taken away; from where, if that is a name.
    Mount {
        from: Option<PathArg<'a>>,
        at: Option<PathArg<'a>>,
    },
    /// Touches paths or descriptors in a way that cannot be replayed.
    Unsupported {
        path: Option<PathArg<'a>>,
        file: Option<FileArg<'a>>,
    },
    /// Understood, and of no consequence.
    Other,
}

impl<'a> Kind<'a> {
    pub(crate) fn file(op: Op, file: FileArg<'a>, args: Args<'a>) -> Self {
        Self::File { op, file, args }
    }

    /// An open of which the log shows no more than the path and the arguments.
    pub(crate) fn open(path: PathArg<'a>, args: Args<'a>) -> Self {
        let shown = None;
        Self::Open { path, args, shown }
    }

    /// What it does to a lock, if it succeeds.
    pub(crate) fn change_of_lock(&self) -> Option<LockChange> {
        match self {
            Self::File { op, args, .. } => args.change_of_lock(*op),
            _ => None,
        }
    }

    /// Whether it has a lock if it succeeds.
    pub(crate) fn has_lock(&self) -> bool {
        let change = self.change_of_lock();
        change.is_some_and(|change| change != LockChange::Free)
    }

    /// Whether others may have what it lets go before it returns.
    pub(crate) fn lets_go(&self) -> bool {
        match self {
            Self::Close(_) => true,
            Self::File { op, args, .. } => args.unlocks(*op),
            _ => false,
        }
    }
}

/// A file that had no name any more when a capture looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) size: i64,
    /// Tells apart those that had one name after another.
    pub(crate) inode: i64,
}

/// Pages that a task touched, as far as that made faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TouchedPages {
    pub(crate) address: i64,
    /// To the end of the last page.
    pub(crate) size: i64,
    /// The pages of the file that the first of them may be.
    pub(crate) pages: (i64, i64),
    /// Bytes of the file then.
    pub(crate) file_size: i64,
    pub(crate) faults: u64,
    /// How many of these were to write.
    pub(crate) writes: u64,
}

/// What happens to a descriptor at execve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnExec {
    Keep,
    Close,
}

/// Something that happened to a task outside of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskEvent {
    Exited,
    /// It must have ended, for its number is used again; the log does not say when.
    Replaced,
    /// Another thread of its process executed a program and took its number.
    Superseded(u64),
}
