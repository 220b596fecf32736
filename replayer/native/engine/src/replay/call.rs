//! The calls that a replay program's events make.

use super::program::{PathId, Place, Slot, Subject, TextId};
use crate::call::{Call, Operands};
use crate::ops::Op;
use crate::sys::Times;

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
    /// Mapped and unmapped again; which pages were touched is not known.
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
