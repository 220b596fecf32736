//! A reel: a trace, or one request of it, in the form that users play. Made by `compile`, played by `play`, never changed.
//!
//! What an event does is a [`Deed`]; what it must wait for, when it was made and what it returned stand beside it in a [`Cue`].

use std::sync::Arc;

/// A path of the reel, by number.
pub(crate) type PathId = u32;
/// A place for an open descriptor of one performance.
pub(crate) type Slot = u32;
/// A thread of one performance: it plays the cues of one or more threads of the trace.
pub(crate) type Lane = u16;

/// Cues of all lanes between two rows of the trace.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// By lane, each in the order of rows.
    pub(crate) lanes: Box<[Box<[Cue]>]>,
    pub(crate) waits: Box<[Wait]>,
    /// Texts of cues that have some (targets of symlinks, names of attributes), NUL at the end of each.
    pub(crate) texts: Box<[u8]>,
}

/// One event, ready to be made.
#[derive(Clone, Debug)]
pub(crate) struct Cue {
    /// Its row in the table `events`.
    pub(crate) row: u64,
    /// Its thread in the trace.
    pub(crate) thread: u32,
    /// When it was made, since the begin of the reel, without what the tracing added.
    pub(crate) start_ns: u64,
    /// Think time before it.
    pub(crate) gap_ns: u64,
    pub(crate) recorded: Recorded,
    /// Its waits in the chunk: first and count.
    pub(crate) waits: (u32, u32),
    pub(crate) deed: Deed,
}

/// It may not begin before the event of this row has ended, which another lane plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) lane: Lane,
    pub(crate) row: u64,
}

/// What the call returned when it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// The number must be met too: bytes, entries, an offset.
    Exactly(u64),
    /// It went well; its number says nothing that could be compared.
    Well,
    /// An errno.
    Error(i32),
    /// No call, or the log does not say.
    Unknown,
}

/// A text of the chunk: where it begins and its length without the NUL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextId {
    pub(crate) start: u32,
    pub(crate) len: u32,
    /// Where (from `start`) the component ends that a performance's own name is given to; 0: nowhere.
    pub(crate) own_end: u32,
}

/// A path, seen from a directory that is open.
/// Where the confinement allows calls relative to a descriptor they are made so; else by the whole path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) path: PathId,
    /// The descriptor of the directory, if the program named one.
    pub(crate) from: Option<Slot>,
    /// With `from`: the byte of the path (as it was recorded) where the part below that directory begins.
    pub(crate) rest: u32,
}

/// What an event does. Flags and modes are those of Linux x86-64, already bounded to what is safe.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Open {
        at: Place,
        slot: Option<Slot>,
        flags: u32,
        mode: u32,
    },
    /// No call of the program: the file was open before. Not timed.
    Inherit {
        path: PathId,
        slot: Slot,
        flags: u32,
        offset: u64,
    },
    Close {
        slot: Slot,
    },
    /// A duplicate is closed, the description stays: dup (not timed), then close.
    CloseDuplicate {
        slot: Slot,
    },
    /// No call of the program (the end of a process): closed, not timed.
    CloseSilently {
        slot: Slot,
    },
    Read {
        slot: Slot,
        size: u64,
        offset: Option<u64>,
        vector: bool,
    },
    Write {
        slot: Slot,
        size: u64,
        offset: Option<u64>,
        vector: bool,
    },
    Seek {
        slot: Slot,
        offset: i64,
        whence: u32,
    },
    /// `entries`: how many it returned.
    List {
        slot: Slot,
        size: u64,
    },
    Fstat {
        slot: Slot,
    },
    Fstatfs {
        slot: Slot,
    },
    Fsync {
        slot: Slot,
    },
    Fdatasync {
        slot: Slot,
    },
    Syncfs {
        slot: Slot,
    },
    SyncRange {
        slot: Slot,
        offset: u64,
        size: u64,
        flags: u32,
    },
    Ftruncate {
        slot: Slot,
        size: u64,
    },
    Fallocate {
        slot: Slot,
        offset: u64,
        size: u64,
        mode: u32,
    },
    Advise {
        slot: Slot,
        offset: u64,
        size: u64,
        advice: u32,
    },
    Readahead {
        slot: Slot,
        offset: u64,
        size: u64,
    },
    Fchmod {
        slot: Slot,
        mode: u32,
    },
    Fchown {
        slot: Slot,
        uid: u32,
        gid: u32,
    },
    Futimens {
        slot: Slot,
        times: Times,
    },
    Flock {
        slot: Slot,
        operation: u32,
    },
    Lock {
        slot: Slot,
        wait: bool,
        kind: u32,
        offset: i64,
        size: i64,
        whence: u32,
    },
    Fcntl {
        slot: Slot,
        command: u32,
        argument: u64,
    },
    Ioctl {
        slot: Slot,
        command: u32,
    },
    /// Mapped and unmapped again; which pages were touched is not known.
    Map {
        slot: Slot,
        offset: u64,
        size: u64,
        protection: u32,
        flags: u32,
    },
    /// A side outside of the trace is null: then the other one is read or written.
    CopyRange {
        from: Option<Slot>,
        to: Option<Slot>,
        size: u32,
        from_offset: Option<u64>,
        to_offset: Option<u64>,
    },
    Clone {
        from: Option<Slot>,
        to: Slot,
    },
    Splice {
        from: Option<Slot>,
        to: Option<Slot>,
        size: u32,
        from_offset: Option<u64>,
        to_offset: Option<u64>,
    },
    Sendfile {
        from: Slot,
        to: Option<Slot>,
        size: u64,
        offset: Option<u64>,
    },
    Stat {
        at: Place,
    },
    Lstat {
        at: Place,
    },
    Access {
        at: Place,
        mode: u32,
        flags: u32,
    },
    /// A look-up of a directory: nobody's working directory changes.
    Chdir {
        at: Place,
    },
    Statfs {
        path: PathId,
    },
    Mkdir {
        at: Place,
        mode: u32,
    },
    /// Regular files only (`mode` has no type bits).
    Mknod {
        at: Place,
        mode: u32,
    },
    Rmdir {
        at: Place,
    },
    Unlink {
        at: Place,
    },
    Readlink {
        at: Place,
        size: u64,
    },
    Rename {
        at: Place,
        to: Place,
        flags: u32,
    },
    Link {
        at: Place,
        to: Place,
        flags: u32,
    },
    Symlink {
        at: Place,
        target: TextId,
    },
    Truncate {
        path: PathId,
        size: u64,
    },
    Chmod {
        at: Place,
        mode: u32,
    },
    Chown {
        at: Place,
        uid: u32,
        gid: u32,
        follow: bool,
    },
    Utimens {
        at: Place,
        times: Times,
        follow: bool,
    },
    Getxattr {
        on: Subject,
        name: TextId,
        size: u64,
    },
    Setxattr {
        on: Subject,
        name: TextId,
        size: u64,
        flags: u32,
    },
    Removexattr {
        on: Subject,
        name: TextId,
    },
    Listxattr {
        on: Subject,
        size: u64,
    },
    /// An event that cannot be made again (a device, a fifo, an unknown ioctl): counted by `reason`, no call.
    Omit {
        reason: &'static str,
    },
}

/// What an attribute belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    Path { path: PathId, follow: bool },
    File(Slot),
}

/// Access and modification time; `None` leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) access: Option<Time>,
    pub(crate) modification: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    Now,
    At(i64),
}

/// Where chunks come from: all in memory, or read as they are needed.
pub(crate) trait Script: Send + Sync + std::fmt::Debug {
    /// A way through the chunks for one performance, from the first to the last, each once.
    fn play(&self) -> Box<dyn Chunks>;
}

/// Chunks in their order. Called by one lane at a time.
pub(crate) trait Chunks: Send {
    /// The next chunk, `Ok(None)` after the last; an error in words ends the performance.
    fn next(&mut self) -> Result<Option<Arc<Chunk>>, String>;
}

/// A trace, or one request of it, ready to be played as often as one likes.
#[derive(Debug)]
pub(crate) struct Reel {
    pub(crate) script: Box<dyn Script>,
    pub(crate) lanes: Lane,
    /// Slots that are open at once, at most.
    pub(crate) slots: Slot,
    pub(crate) paths: Arc<Paths>,
    /// What is laid out for each performance of its own, not timed: parents before children.
    pub(crate) own: Box<[Entry]>,
    /// Topmost paths of its own, that are removed after a performance with all that is below them.
    pub(crate) tops: Box<[PathId]>,
    /// The own entries of every user's first performance are laid out before the run begins.
    pub(crate) laid_out: bool,
    /// The largest buffer that reads need.
    pub(crate) read_bytes: u64,
}

/// A file, directory or symlink that a performance finds.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) path: PathId,
    pub(crate) kind: crate::program::EntryKind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    /// Target of a symlink, without a NUL.
    pub(crate) link: Box<[u8]>,
    /// As in a `TextId`.
    pub(crate) link_own_end: u32,
}

/// The paths of a reel, relative to the run's folder, in one text with a NUL after each.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) text: Box<[u8]>,
    /// Own paths first.
    pub(crate) spans: Box<[Span]>,
    /// How many paths are own.
    pub(crate) own: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u32,
    /// Without the NUL.
    pub(crate) len: u32,
    /// Where (from `start`) the component ends that a performance's own name is given to; 0: shared by all.
    pub(crate) own_end: u32,
}
