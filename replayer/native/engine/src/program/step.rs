//! Steps: the instructions that an interpreter runs.

use super::replay::{ReelGroup, ReplayPace};
use super::{Draw, Steps, Weights};
use crate::ops::{OK, Op};
use std::ffi::CString;
use std::sync::Arc;

/// Its discriminant stands apart: found in a field's unused values, it would take five instructions more to read, twice an op.
#[derive(Debug)]
#[repr(u8)]
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
    Pipeline(Arc<Pipeline>),
    Think(Draw),
    Call(Box<Timed>),
    Replay(Box<Replay>),
    Signal(u8),
    Await(Box<Await>),
    Until(Box<Until>),
}

/// Waiting for a signal of another user.
#[derive(Debug)]
pub(crate) struct Await {
    pub(crate) signal: u8,
    pub(crate) limit: Draw,
    pub(crate) expect: Expect,
}

/// Steps that are repeated until their calls come out as they should.
#[derive(Debug)]
pub(crate) struct Until {
    pub(crate) steps: Steps,
    pub(crate) every: Draw,
    pub(crate) limit: Draw,
    /// The signal from which time counts; otherwise from the step's begin.
    pub(crate) since: Option<u8>,
    pub(crate) expect: Expect,
}

/// A performance of a trace or of one request of it.
#[derive(Debug)]
pub(crate) struct Replay {
    pub(crate) trace: u16,
    /// The whole trace, or every request of a label.
    pub(crate) reels: Arc<ReelGroup>,
    pub(crate) part: ReplayPart,
    pub(crate) pace: ReplayPace,
    /// 100: as recorded.
    pub(crate) speed_percent: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayPart {
    Whole,
    /// One of the requests, drawn.
    Request,
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

impl Each {
    fn blocks(&self) -> impl Iterator<Item = &[Step]> {
        [&self.file, &self.directory, &self.link]
            .into_iter()
            .map(AsRef::as_ref)
    }
}

impl Step {
    /// The lists of steps inside it.
    pub(crate) fn blocks(&self) -> Vec<&[Step]> {
        match self {
            Step::Repeat { steps, .. } => vec![steps],
            Step::Choose { branches, .. } => branches.iter().map(AsRef::as_ref).collect(),
            Step::Each(each) => each.blocks().collect(),
            Step::Pipeline(pipeline) => pipeline.stages.iter().flat_map(Each::blocks).collect(),
            Step::Until(until) => vec![&until.steps],
            _ => Vec::new(),
        }
    }
}

/// A pipeline has at most so many stages.
pub(crate) const STAGES: u64 = 8;

/// Stages that go through the same entries in the same order, side by side: each begins with an entry once the one before it has done
/// with that.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) stages: Box<[Each]>,
    /// How many entries each stage but the last hands on at a time, 1 or more.
    pub(crate) batches: Box<[u64]>,
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
        let mut union = self;
        for (word, more) in union.0.iter_mut().zip(other.0) {
            *word |= more;
        }
        union
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

/// What is called; `path`, `to` and `file` are slots.
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
    Symlink {
        path: u8,
        target: LinkTarget,
    },
    Pair {
        path: u8,
        to: u8,
        call: PairCall,
    },
    Path {
        path: u8,
        call: PathCall,
    },
    File {
        file: u8,
        call: FileCall,
    },
    Data {
        file: u8,
        call: DataCall,
    },
}

/// A call on two paths.
#[derive(Debug)]
pub(crate) enum PairCall {
    Rename { flags: u32 },
    Link,
}

/// A call on one path.
#[derive(Debug)]
pub(crate) enum PathCall {
    Stat,
    Lstat,
    Access(u32),
    Mkdir(Mode),
    Rmdir,
    Unlink,
    Readlink,
    Truncate(Draw),
    Chmod(Mode),
    Chown(Owner),
    Utimens(Option<Draw>),
    Getxattr(CString),
    Setxattr(CString, Draw),
    Removexattr(CString),
    Listxattr,
}

/// A call on an open file that moves no data.
#[derive(Debug)]
pub(crate) enum FileCall {
    Lseek {
        /// The bits of a signed number; a plan's are not below 0.
        offset: Draw,
        whence: u32,
    },
    Fsync,
    Fdatasync,
    Fstat,
    Ftruncate(Draw),
    Fallocate {
        offset: Draw,
        size: Draw,
        mode: u32,
    },
    Fchmod(Mode),
    Fchown(Owner),
    Futimens(Option<Draw>),
    Flock {
        kind: LockKind,
        wait: bool,
    },
    FcntlLock {
        kind: LockKind,
        wait: bool,
        offset: Draw,
        size: Draw,
    },
}

/// A call, or a series of calls, that moves data of an open file.
#[derive(Debug)]
pub(crate) enum DataCall {
    Read {
        size: Draw,
        until_end: bool,
        check_size: bool,
    },
    Pread {
        size: Draw,
        offset: Draw,
    },
    PreadRandom {
        size: Draw,
        align: u64,
    },
    /// `write` and `append`.
    Write {
        total: Draw,
        /// The first piece, where it is cut otherwise than those after it.
        first: Option<Draw>,
        block: Draw,
    },
    Pwrite {
        size: Draw,
        offset: Draw,
    },
    PwriteRandom {
        size: Draw,
        align: u64,
    },
    Getdents,
    CopyFileRange {
        to: u8,
        size: Draw,
        /// One call; else calls until one returns 0.
        once: bool,
    },
    Sendfile {
        size: Draw,
        once: bool,
    },
    MmapRead,
}

/// Who shall own a file; `None` leaves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}
