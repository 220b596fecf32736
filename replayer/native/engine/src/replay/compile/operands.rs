//! Operands of events, bounded: what the kernel would not take, or what no file system should be asked for, is a reason to omit.

use super::slots::Reason;
use crate::replay::program::FAVOURS;
use crate::sys::{ACCESS_LIST, Time, Times};
use replayer_trace::{END_BYTES, Event, MOST_DATA};

/// Larger files are none (as plan format 1 has it).
pub(crate) const MOST_BYTES: u64 = 1 << 50;
/// The most that is mapped at once (chosen: above the largest file that is worth mapping whole).
const MOST_MAPPED: u64 = 1 << 40;

/// `F_SETFL`, a command of fcntl: flags of the description.
pub(super) const SET_STATUS: u32 = 4;

/// `RWF_APPEND`.
pub(super) const AT_END: u32 = 0x10;
/// `RWF_NOAPPEND`.
pub(super) const NOT_AT_END: u32 = 0x20;
/// `RWF_NOWAIT`.
const NO_WAIT: u32 = 8;
/// Flags of vectored calls: `RWF_HIPRI`, `RWF_DSYNC`, `RWF_SYNC`, `RWF_NOWAIT`, `RWF_APPEND`, `RWF_NOAPPEND`, `RWF_ATOMIC` and
/// `RWF_DONTCACHE`.
const VECTOR_FLAGS: u32 = 7 | NO_WAIT | AT_END | NOT_AT_END | FAVOURS;
/// `EAGAIN`, as a result.
pub(super) const AGAIN: i64 = -11;

/// Whether a cache has the data when it is replayed says nothing about files; what the program did instead is an event of its own.
const WOULD_WAIT: Reason = "that would have had to wait (RWF_NOWAIT)";
const NO_SIZE: Reason = "size that no call can have";
const FAILED_OUTSIDE: Reason = "failed transfer to or from outside of the trace";
const NO_OFFSET: Reason = "offset that no call can have";
const NO_FLAGS: Reason = "flags that are not replayed";
/// `AT_STATX_FORCE_SYNC` and `AT_STATX_DONT_SYNC`: how fresh attributes must be.
const SYNC: u32 = 0x6000;

pub(crate) struct Operands<'a>(pub(crate) &'a Event);

impl Operands<'_> {
    /// Bytes to move.
    pub(crate) fn data(&self) -> Result<u64, Reason> {
        let size = u64::try_from(self.0.size.ok_or(NO_SIZE)?).map_err(|_| NO_SIZE)?;
        Ok(size.min(MOST_DATA))
    }

    /// Flags of a vectored call. One that was served without waiting (`RWF_NOWAIT`) may wait: what a cache held then it need not hold
    /// now, and the same bytes are to be moved.
    pub(crate) fn vector_flags(&self) -> Result<u32, Reason> {
        let flags = self.flags(VECTOR_FLAGS)?;
        match self.0.result {
            AGAIN if flags & NO_WAIT != 0 => Err(WOULD_WAIT),
            0.. => Ok(flags & !NO_WAIT),
            _ => Ok(flags),
        }
    }

    /// Bytes that a vectored call is to move: those that it moved, where it would not wait for more.
    pub(crate) fn vector_data(&self) -> Result<u64, Reason> {
        let size = self.data()?;
        match u64::try_from(self.0.result) {
            Ok(moved @ 1..) if self.lenient_flags(NO_WAIT) != 0 => Ok(size.min(moved)),
            _ => Ok(size),
        }
    }

    /// Bytes that moved between a file and what is outside of the trace. That gave or took as many as it had or had room for;
    /// what was asked for may be without bound (cp asks for 2^63 bytes).
    pub(crate) fn moved(&self) -> Result<u64, Reason> {
        let moved = u64::try_from(self.0.result).map_err(|_| FAILED_OUTSIDE)?;
        Ok(moved.min(MOST_DATA))
    }

    /// Bytes to copy from one file to another: as many as were, and a little more, for what was asked for may be without bound.
    pub(crate) fn copied(&self) -> Result<u64, Reason> {
        let moved = u64::try_from(self.0.result).unwrap_or(0);
        Ok(self.data()?.min(moved.saturating_add(END_BYTES)))
    }

    /// Size of a file or of a range of it.
    pub(crate) fn bytes(&self) -> Result<u64, Reason> {
        let size = u64::try_from(self.0.size.ok_or(NO_SIZE)?).map_err(|_| NO_SIZE)?;
        (size <= MOST_BYTES).then_some(size).ok_or(NO_SIZE)
    }

    /// Size of a buffer, at most so many bytes.
    pub(crate) fn buffer(&self, most: u64) -> Result<u64, Reason> {
        self.data().map(|size| size.min(most))
    }

    pub(crate) fn mapped(&self) -> Result<u64, Reason> {
        let size = self.bytes()?;
        (size <= MOST_MAPPED).then_some(size).ok_or(NO_SIZE)
    }

    /// A position in a file.
    pub(crate) fn offset(&self) -> Result<u64, Reason> {
        position(self.0.offset.ok_or(NO_OFFSET)?)
    }

    /// A position, or the description's own.
    pub(crate) fn some_offset(&self) -> Result<Option<u64>, Reason> {
        self.0.offset.map(position).transpose()
    }

    /// The position in the second file stands as a text.
    pub(crate) fn to_offset(&self) -> Result<Option<u64>, Reason> {
        let Some(text) = &self.0.text else {
            return Ok(None);
        };
        let number = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        position(number.ok_or(NO_OFFSET)?).map(Some)
    }

    /// Flags of which every bit is known; none where there are none.
    pub(crate) fn flags(&self, known: u32) -> Result<u32, Reason> {
        let flags = u32::try_from(self.0.flags.unwrap_or(0)).map_err(|_| NO_FLAGS)?;
        (flags & !known == 0).then_some(flags).ok_or(NO_FLAGS)
    }

    /// Flags without those that are not known.
    pub(crate) fn lenient_flags(&self, known: u32) -> u32 {
        low(self.0.flags) & known
    }

    /// How fresh attributes must be, where that is said.
    pub(crate) fn sync(&self) -> Option<u32> {
        Some(self.lenient_flags(SYNC)).filter(|sync| *sync != 0)
    }

    /// Flags that are a number, not bits.
    pub(crate) fn command(&self, most: u32) -> Result<u32, Reason> {
        let command = u32::try_from(self.0.flags.ok_or(NO_FLAGS)?).map_err(|_| NO_FLAGS)?;
        (command <= most).then_some(command).ok_or(NO_FLAGS)
    }

    /// What may not be on the way of a path that openat2 opens.
    pub(crate) fn resolve(&self) -> u32 {
        low(self.0.size)
    }

    /// Permission bits and the sticky bit: no file gets another's identity.
    pub(crate) fn permissions(&self) -> u32 {
        low(self.0.mode) & 0o1777
    }

    /// The permissions that an access control list sets which says no more than a mode does.
    pub(crate) fn listed_mode(&self) -> Option<u32> {
        let is_list = self.0.text.as_deref() == Some(ACCESS_LIST.to_bytes());
        (is_list && self.0.mode.is_some()).then(|| self.mode_bits(0o777))
    }

    /// The column `mode` where it is no mode of a file.
    pub(crate) fn mode_bits(&self, known: u32) -> u32 {
        low(self.0.mode) & known
    }

    /// Owner and group; all ones: unchanged.
    pub(crate) fn owner(&self) -> (u32, u32) {
        let id = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok()).unwrap_or(u32::MAX);
        (id(self.0.uid), id(self.0.gid))
    }

    pub(crate) fn times(&self) -> Times {
        let flags = self.0.flags.unwrap_or(0);
        let time = |value: Option<i64>, now: i64| {
            if flags & now != 0 {
                Some(Time::Now)
            } else {
                value.map(Time::At)
            }
        };
        Times {
            access: time(self.0.atime_ns, 1),
            modification: time(self.0.mtime_ns, 2),
        }
    }
}

fn position(offset: i64) -> Result<u64, Reason> {
    u64::try_from(offset).map_err(|_| NO_OFFSET)
}

fn low(value: Option<i64>) -> u32 {
    let bits = value.unwrap_or(0) & i64::from(u32::MAX);
    u32::try_from(bits).unwrap_or(0)
}
