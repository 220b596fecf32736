//! A replay program: a trace, or one request of it, in the form that users play. Made by `compile`, played by `play`, never changed.
//!
//! What an event does is a [`ReplayCall`]; what it must wait for, when it was made and what it returned stand beside it in a [`ScheduledCall`].

pub(crate) use crate::call::Call;

use crate::call::Operands;
use crate::ops::Op;
use crate::sys::Times;
use std::sync::Arc;

/// A path of the replay program, by number.
pub(crate) type PathId = u32;
/// A place for an open descriptor of one performance.
pub(crate) type Slot = u32;
/// A thread of one performance: it plays the scheduled calls of one or more threads of the trace.
pub(crate) type Lane = u16;

/// Scheduled calls of all lanes between two rows of the trace.
#[derive(Debug)]
pub(crate) struct CallBatch {
    /// By lane, each in the order of rows.
    pub(crate) lanes: Box<[Box<[ScheduledCall]>]>,
    pub(crate) waits: Box<[Wait]>,
    /// Texts of scheduled calls that have some (targets of symlinks, names of attributes), NUL at the end of each.
    pub(crate) texts: Box<[u8]>,
}

/// One event, ready to be made.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledCall {
    /// Its row in the table `events`.
    pub(crate) row: u64,
    /// Its thread in the trace.
    pub(crate) thread: u32,
    /// When it was made, since the begin of the replay program, without what the tracing added.
    pub(crate) start_ns: u64,
    /// Think time since its lane's last event.
    pub(crate) gap_ns: u64,
    /// Think time since the first of its waits was over, if that kept its thread waiting; 0 too where nothing did.
    pub(crate) after_ns: u64,
    pub(crate) recorded: Recorded,
    /// Its waits in the batch: first and count.
    pub(crate) waits: (u32, u32),
    pub(crate) call: ReplayCall,
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
    Error(i32),
    /// The program was not allowed to change something: only the look-up of its name is made.
    Denied(i32),
    /// No call, or the log does not say.
    Unknown,
}

/// A text of the batch: where it begins and its length without the NUL.
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

#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    Path { path: PathId, follow: bool },
    File(Slot),
}

/// Where batches come from: all in memory, or read as they are needed.
pub(crate) trait Script: Send + Sync + std::fmt::Debug {
    /// A way through the batches for one performance, from the first to the last, each once.
    fn play(&self) -> Box<dyn CallBatches>;
}

/// Batches in their order. Called by one lane at a time.
pub(crate) trait CallBatches: Send {
    /// The next batch, `Ok(None)` after the last; an error in words ends the performance.
    fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String>;
}

/// A trace, or one request of it, ready to be played as often as one likes.
#[derive(Debug)]
pub(crate) struct ReplayProgram {
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

/// Paths relative to the run's folder, in one text with a NUL after each.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) text: Vec<u8>,
    /// Own paths of a replay program first.
    pub(crate) spans: Vec<Span>,
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

/// Flags of vectored calls that a file system need not have, and without which the same bytes move: `RWF_ATOMIC` and `RWF_DONTCACHE`
/// (preadv2(2)).
pub(crate) const FAVOURS: u32 = 0xC0;

/// Operands of a replay program.
#[derive(Clone, Debug)]
pub(crate) enum Traced {}

impl Operands for Traced {
    type File = Slot;
    type Place = Place;
    type Subject = Subject;
    type Name = TextId;
    type Target = TextId;
    type Number = u64;
    type Mode = u32;
    /// All ones: it is left (`(uid_t) -1`).
    type Id = u32;
    /// In a box: they are rare, and the largest operands.
    type Times = Box<Times>;
}

/// What an event does. Flags and modes are those of Linux x86-64, already bounded to what is safe.
#[derive(Clone, Debug)]
pub(crate) enum ReplayCall {
    Plain(Call<Traced>),
    /// No call of the program: the file was open before. Not timed.
    Inherit {
        path: PathId,
        slot: Slot,
        flags: u32,
        offset: u64,
    },
    /// A duplicate is closed, the description stays: dup (not timed), then close.
    CloseDuplicate {
        slot: Slot,
    },
    /// No call of the program (the end of a process): closed, not timed.
    CloseSilently {
        slot: Slot,
    },
    /// No call of the program: its thread has ended. What it did by itself before that is the pause before this call.
    End,
    Read(DataCall),
    /// Read through a mapping of these pages, which ends with it.
    ReadMapped(DataCall),
    Write(DataCall),
    /// `entries`: how many it returned.
    List {
        slot: Slot,
        size: u64,
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
    /// Mapped and unmapped again: pages that were touched follow.
    Map {
        slot: Slot,
        offset: u64,
        size: u64,
        protection: u32,
        flags: u32,
    },
    /// A copy (`copy_file_range`), a splice or a sendfile. A side outside of the trace is null: then the other one is read or written.
    Transfer {
        op: Op,
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
    /// What is open gets a name; it may have none (`O_TMPFILE`).
    LinkOpen {
        slot: Slot,
        to: Place,
    },
    /// Others made a file longer: not timed.
    Grow {
        path: PathId,
        size: u64,
    },
    /// The description stood there, wherever it stands now: not timed.
    Stand {
        slot: Slot,
        offset: u64,
    },
    /// What other descriptors of the process had locked goes with the call: let go before it, not timed.
    LetGo(Box<LetGo>),
    /// An event that cannot be made again (a device, a fifo, an unknown ioctl): counted by `reason`, no call.
    Omit {
        reason: &'static str,
    },
}

/// Where data is read or written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataCall {
    pub(crate) slot: Slot,
    pub(crate) size: u64,
    pub(crate) offset: Option<u64>,
    /// Flags of a vectored call; none: it has one buffer.
    pub(crate) vector: Option<u32>,
}

/// Locks of a range that end with a call. No size: to the end of the file.
#[derive(Clone, Debug)]
pub(crate) struct LetGo {
    pub(crate) slots: Box<[Slot]>,
    pub(crate) offset: i64,
    pub(crate) size: i64,
    pub(crate) then: ReplayCall,
}
