//! Calls that take and let go locks, and what other descriptors of the process lose by them.

use super::locks::{ALL, Lock, Owner, Span, span};
use super::operands::{AGAIN, Operands};
use super::slots::{NOT_OPEN, Reason};
use super::translator::{Translator, UNKNOWN};
use crate::program::LockKind;
use crate::replay::program::{Call, LetGo, ReplayCall, Slot};
use replayer_trace::Event;

/// `LOCK_NB`.
const NOT_BLOCKING: u32 = 4;
/// `EACCES` and `EDEADLK`, as results.
const ACCESS: i64 = -13;
const DEADLOCK: i64 = -35;
/// Locks of descriptions know no deadlock (fcntl(2)).
const IN_A_RING: Reason = "lock that was refused because of a deadlock";
/// Nothing refuses it to the description that the replay has of theirs.
const SAME_DESCRIPTION: Reason = "lock that another process had through the same description";

/// To share, to exclude or to unlock, with or without `LOCK_NB`; what was not given is not waited for.
pub(super) fn whole_lock(slot: Slot, operands: &Operands<'_>) -> Result<ReplayCall, Reason> {
    let operation = operands.command(0xF)?;
    let kind = match operation & !NOT_BLOCKING {
        1 => LockKind::Shared,
        2 => LockKind::Exclusive,
        8 => LockKind::Unlock,
        _ => return Err(UNKNOWN),
    };
    let wait = operation & NOT_BLOCKING == 0 && operands.0.result >= 0;
    Ok(ReplayCall::Plain(Call::Flock { slot, kind, wait }))
}

/// Whether a command of fcntl waits for its lock, and whose that is.
fn command(event: &Event) -> Result<(bool, Owner), Reason> {
    let process = Owner::Process {
        thread: event.thread,
    };
    match Operands(event).command(u32::MAX)? {
        // F_SETLK, F_SETLKW, their 64-bit forms and those of open descriptions.
        6 | 0xD => Ok((false, process)),
        7 | 0xE => Ok((true, process)),
        0x25 => Ok((false, Owner::Description)),
        0x26 => Ok((true, Owner::Description)),
        _ => Err("lock that is only asked for"),
    }
}

impl Translator<'_> {
    pub(super) fn record_lock(&mut self, slot: Slot, event: &Event) -> Result<ReplayCall, Reason> {
        let (wait, owner) = command(event)?;
        if event.result == DEADLOCK {
            return Err(IN_A_RING);
        }
        let whence = u32::try_from(event.entries.unwrap_or(0)).ok();
        let whence = whence.filter(|whence| *whence <= 2).ok_or(UNKNOWN)?;
        let kind = match Operands(event).mode_bits(3) {
            0 => LockKind::Shared,
            1 => LockKind::Exclusive,
            _ => LockKind::Unlock,
        };
        let (offset, size) = (event.offset.unwrap_or(0), event.size.unwrap_or(0));
        let file = event.file.ok_or(NOT_OPEN)?;
        let path = self.slots.path(file).ok_or(NOT_OPEN)?;
        // Within the performance it is free by then: it comes after what let it go, also after a close of another descriptor (see
        // below). Only another user may still have it.
        let wait = wait && event.result >= 0 && self.is_for_all(path);
        let call = |before| {
            ReplayCall::Plain(Call::FcntlLock {
                slot,
                wait,
                kind,
                before,
                offset: offset.cast_unsigned(),
                size: size.cast_unsigned(),
                whence,
            })
        };
        let is_refused = matches!(event.result, AGAIN | ACCESS);
        if is_refused {
            self.locks.note_refused(path, self.lane_row);
        } else if event.result >= 0 && kind != LockKind::Unlock {
            self.locks.note_given(path, self.lane_row, &mut self.waits);
        }
        let Some(span) = span(whence, offset, size) else {
            return Ok(call(LockKind::Unlock));
        };
        let lock = Lock {
            file,
            owner,
            span,
            kind,
        };
        if is_refused && self.locks.is_shared_hindrance(path, lock) {
            return Err(SAME_DESCRIPTION);
        }
        let call = call(self.locks.of(path, file, span));
        if event.result < 0 {
            return Ok(call);
        }
        let gone = self.locks.gone_for(path, lock);
        self.locks.set(path, lock);
        Ok(self.letting_go(&gone, span, call))
    }

    /// What closing a descriptor of a file is: all locks that the process had on the file end with it.
    pub(super) fn closing(
        &mut self,
        path: Option<u32>,
        thread: u32,
        call: ReplayCall,
    ) -> ReplayCall {
        let Some(path) = path else {
            return call;
        };
        let gone = self.locks.gone_by_close(path, thread);
        if !gone.is_empty() {
            self.locks.note_close(path, self.lane_row, &mut self.waits);
        }
        self.letting_go(&gone, ALL, call)
    }

    /// A call before which other files' locks of a range are let go.
    fn letting_go(&mut self, files: &[u32], span: Span, then: ReplayCall) -> ReplayCall {
        let slots = files
            .iter()
            .map(|file| self.slots.used(*file, self.lane_row, &mut self.waits));
        let slots: Box<[Slot]> = slots.filter_map(Result::ok).collect();
        if slots.is_empty() {
            return then;
        }
        let size = match span.1 {
            i64::MAX => 0,
            end => end - span.0,
        };
        ReplayCall::LetGo(Box::new(LetGo {
            slots,
            offset: span.0,
            size,
            then,
        }))
    }
}
