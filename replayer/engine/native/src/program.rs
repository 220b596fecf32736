//! A plan in the form that threads run: everything resolved, nothing left to look up by name.
//! Made by `plan`; read by the interpreter, the pacers and the layout; never changed.

use crate::ops::{OK, Op};
use crate::rng::{Stream, scale};

/// At most this many slots in a plan.
pub(crate) const SLOTS: usize = 16;

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) users: u32,
    pub(crate) written: Content,
    pub(crate) pool_bytes: u64,
    pub(crate) tables: Vec<Box<[u64]>>,
    pub(crate) datasets: Vec<Dataset>,
    pub(crate) pickers: Vec<Picker>,
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) mix: Weights,
    /// Mixes of the first users: (the first user number after the role, its mix), ascending.
    pub(crate) roles: Vec<(u32, Weights)>,
    pub(crate) pace: Pace,
    /// A segment ends for a user after so many transactions.
    pub(crate) transactions_per_user: Option<u64>,
    /// The largest buffer that a reading op needs.
    pub(crate) read_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Random,
    Zeros,
    /// So many percent of every 4 KiB block are zeros.
    Compressible(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Shared,
    /// One copy for each user, below `directory/uN`.
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Link,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Where `directory/path\0` starts in the dataset's text.
    path: u32,
    /// Length of `directory/path` without its NUL.
    path_len: u32,
    /// Where `link\0` starts in the dataset's text; its length.
    link: u32,
    link_len: u32,
}

/// A dataset; the paths of all entries stand in one text, so that a pick copies nothing.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) name: String,
    pub(crate) directory: String,
    pub(crate) laid_out: bool,
    pub(crate) scope: Scope,
    pub(crate) content: Content,
    pub(crate) entries: Vec<Entry>,
    text: Vec<u8>,
}

impl Dataset {
    pub(crate) fn new(name: String, directory: String, scope: Scope, content: Content) -> Dataset {
        let mut text = directory.clone().into_bytes();
        text.push(0);
        Dataset {
            name,
            directory,
            laid_out: false,
            scope,
            content,
            entries: Vec::new(),
            text,
        }
    }

    /// Add an entry; `None` when the texts of a dataset exceed 4 GiB.
    pub(crate) fn push(
        &mut self,
        path: &str,
        kind: EntryKind,
        facts: (u64, u32),
        link: &str,
    ) -> Option<()> {
        let start = u32::try_from(self.text.len()).ok()?;
        self.text.extend_from_slice(self.directory.as_bytes());
        self.text.push(b'/');
        self.text.extend_from_slice(path.as_bytes());
        let path_len = u32::try_from(self.text.len()).ok()? - start;
        self.text.push(0);
        let link_start = u32::try_from(self.text.len()).ok()?;
        self.text.extend_from_slice(link.as_bytes());
        self.text.push(0);
        self.entries.push(Entry {
            kind,
            mode: facts.1,
            size: facts.0,
            path: start,
            path_len,
            link: link_start,
            link_len: u32::try_from(link.len()).ok()?,
        });
        Some(())
    }

    fn slice(&self, start: u32, len: u32) -> &[u8] {
        let start = start as usize;
        self.text
            .get(start..start + len as usize)
            .unwrap_or_default()
    }

    /// `directory/path` with its NUL (for scope `shared`: the path below the run's folder).
    #[inline]
    pub(crate) fn full_path(&self, entry: &Entry) -> &[u8] {
        self.slice(entry.path, entry.path_len + 1)
    }

    /// The path within the dataset, without a NUL.
    pub(crate) fn path<'a>(&'a self, entry: &Entry) -> &'a [u8] {
        self.slice(entry.path, entry.path_len)
            .get(self.directory.len() + 1..)
            .unwrap_or_default()
    }

    /// The target of a link, with its NUL.
    pub(crate) fn link(&self, entry: &Entry) -> &[u8] {
        self.slice(entry.link, entry.link_len + 1)
    }

    /// The directory of the dataset, for scope `user` that of this user, without a NUL.
    pub(crate) fn write_root(&self, user: u32, path: &mut Vec<u8>) {
        path.extend_from_slice(self.directory.as_bytes());
        if self.scope == Scope::User {
            path.extend_from_slice(b"/u");
            write_number(u64::from(user), path);
        }
    }
}

/// Append a number in decimal, without allocating.
pub(crate) fn write_number(number: u64, text: &mut Vec<u8>) {
    let first = text.len();
    let mut rest = number;
    loop {
        text.push(b'0' + u8::try_from(rest % 10).unwrap_or(0));
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(digits) = text.get_mut(first..) {
        digits.reverse();
    }
}

#[derive(Debug)]
pub(crate) struct Picker {
    pub(crate) dataset: u16,
    /// Indices of entries, in the order of ranks.
    pub(crate) candidates: Box<[u32]>,
    pub(crate) rule: PickRule,
}

#[derive(Debug)]
pub(crate) enum PickRule {
    Segments {
        weights: Weights,
        /// (first rank, count), one a weight.
        spans: Box<[(u64, u64)]>,
    },
    Sequential,
    Own,
}

#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) name: String,
    pub(crate) steps: Steps,
}

pub(crate) type Steps = Box<[Step]>;

/// Cumulative weights.
#[derive(Clone, Debug)]
pub(crate) struct Weights(pub(crate) Box<[u64]>);

impl Weights {
    /// Draw an index: the first whose cumulative weight is above the draw.
    #[inline]
    pub(crate) fn pick(&self, stream: &mut Stream) -> usize {
        let drawn = stream.below(self.0.last().copied().unwrap_or(0));
        self.0.partition_point(|cumulative| *cumulative <= drawn)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    Const(u64),
    /// low, and how many values there are (0: all 2^64).
    Uniform(u64, u64),
    Table(u16),
    SizeOf(u8),
}

impl Draw {
    /// The value that a stream gives; `size_of` looks up the entry bound to a slot.
    #[inline]
    pub(crate) fn value(
        self,
        tables: &[Box<[u64]>],
        stream: &mut Stream,
        size_of: impl Fn(u8) -> u64,
    ) -> u64 {
        match self {
            Draw::Const(value) => value,
            Draw::Uniform(_, 0) => stream.next(),
            Draw::Uniform(low, count) => low + stream.below(count),
            Draw::Table(index) => {
                let table = tables
                    .get(usize::from(index))
                    .map_or(&[][..], |table| table);
                let rank = scale(stream.next(), table.len() as u64);
                let rank = usize::try_from(rank).unwrap_or(0);
                table.get(rank).copied().unwrap_or(0)
            }
            Draw::SizeOf(slot) => size_of(slot),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Pace {
    Closed(Draw),
    Every(Draw),
    Arrivals(Draw),
}

#[derive(Debug)]
pub(crate) enum Step {
    Pick {
        slot: u8,
        picker: u16,
    },
    Name {
        slot: u8,
        dataset: u16,
        parts: Box<[Part]>,
    },
    Root {
        slot: u8,
        dataset: u16,
    },
    Repeat {
        times: Draw,
        steps: Steps,
    },
    Choose {
        weights: Weights,
        branches: Box<[Steps]>,
    },
    Each(Box<Each>),
    Think(Draw),
    Call(Box<Timed>),
}

#[derive(Debug)]
pub(crate) struct Each {
    pub(crate) dataset: u16,
    pub(crate) slot: u8,
    pub(crate) reverse: bool,
    pub(crate) file: Steps,
    pub(crate) directory: Steps,
    pub(crate) link: Steps,
}

#[derive(Debug)]
pub(crate) enum Part {
    Text(String),
    User,
    Round,
    Seq,
    Next,
    Number(Draw),
    Hex(u8),
    PathOf(u8),
    NameOf(u8),
}

/// A timed step: a call and its allowed outcomes.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) op: Op,
    pub(crate) call: Call,
    pub(crate) expect: Expect,
}

/// A set of outcome codes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expect([u64; 3]);

impl Expect {
    pub(crate) const ANY: Expect = Expect([u64::MAX; 3]);
    pub(crate) const OK: Expect = Expect([1 << OK, 0, 0]);
    pub(crate) const NONE: Expect = Expect([0; 3]);

    pub(crate) fn with(mut self, outcome: u8) -> Expect {
        if let Some(word) = self.0.get_mut(usize::from(outcome >> 6)) {
            *word |= 1 << (outcome & 63);
        }
        self
    }

    pub(crate) fn or(self, other: Expect) -> Expect {
        let ([a, b, c], [d, e, f]) = (self.0, other.0);
        Expect([a | d, b | e, c | f])
    }

    #[inline]
    pub(crate) fn allows(self, outcome: u8) -> bool {
        self.0
            .get(usize::from(outcome >> 6))
            .is_some_and(|word| word & (1 << (outcome & 63)) != 0)
    }
}

/// A mode, or that of the bound entry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    Fixed(u32),
    Bound,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum LockKind {
    Shared,
    Exclusive,
    Unlock,
}

/// Where a symlink points.
#[derive(Debug)]
pub(crate) enum LinkTarget {
    Bound,
    Parts(Box<[Part]>),
}

/// Operands of each op; `path`, `to` and `file` are slots.
#[derive(Debug)]
pub(crate) enum Call {
    Open {
        path: u8,
        file: u8,
        flags: u32,
        mode: Mode,
    },
    Close {
        file: u8,
    },
    Read {
        file: u8,
        size: Draw,
        until_end: bool,
        check_size: bool,
    },
    Pread {
        file: u8,
        size: Draw,
        offset: Draw,
    },
    PreadRandom {
        file: u8,
        size: Draw,
        align: u64,
    },
    /// `write` and `append`.
    Write {
        file: u8,
        total: Draw,
        block: Draw,
    },
    Pwrite {
        file: u8,
        size: Draw,
        offset: Draw,
    },
    PwriteRandom {
        file: u8,
        size: Draw,
        align: u64,
    },
    Lseek {
        file: u8,
        offset: Draw,
        whence: u32,
    },
    Fsync {
        file: u8,
    },
    Fdatasync {
        file: u8,
    },
    Fstat {
        file: u8,
    },
    Ftruncate {
        file: u8,
        size: Draw,
    },
    Fallocate {
        file: u8,
        offset: Draw,
        size: Draw,
        mode: u32,
    },
    Fchmod {
        file: u8,
        mode: Mode,
    },
    Fchown {
        file: u8,
        uid: Option<u32>,
        gid: Option<u32>,
    },
    Futimens {
        file: u8,
        mtime_ns: Option<Draw>,
    },
    Flock {
        file: u8,
        kind: LockKind,
        wait: bool,
    },
    FcntlLock {
        file: u8,
        kind: LockKind,
        wait: bool,
        offset: Draw,
        size: Draw,
    },
    Getdents {
        file: u8,
    },
    CopyFileRange {
        file: u8,
        to: u8,
        size: Draw,
    },
    Sendfile {
        file: u8,
        size: Draw,
    },
    MmapRead {
        file: u8,
    },
    Stat {
        path: u8,
    },
    Lstat {
        path: u8,
    },
    Access {
        path: u8,
        mode: u32,
    },
    Mkdir {
        path: u8,
        mode: Mode,
    },
    Rmdir {
        path: u8,
    },
    Unlink {
        path: u8,
    },
    Rename {
        path: u8,
        to: u8,
        flags: u32,
    },
    Link {
        path: u8,
        to: u8,
    },
    Symlink {
        path: u8,
        target: LinkTarget,
    },
    Readlink {
        path: u8,
    },
    Truncate {
        path: u8,
        size: Draw,
    },
    Chmod {
        path: u8,
        mode: Mode,
    },
    Chown {
        path: u8,
        uid: Option<u32>,
        gid: Option<u32>,
    },
    Utimens {
        path: u8,
        mtime_ns: Option<Draw>,
    },
    Getxattr {
        path: u8,
        name: std::ffi::CString,
    },
    Setxattr {
        path: u8,
        name: std::ffi::CString,
        size: Draw,
    },
    Removexattr {
        path: u8,
        name: std::ffi::CString,
    },
    Listxattr {
        path: u8,
    },
}
