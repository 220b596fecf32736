//! Calls that would have changed something if the program had been allowed to: here they are allowed, so they are never made.

use super::operands::{Operands, SET_STATUS};
use super::slots::Reason;
use replayer_ops::Class;
use replayer_trace::{Event, Op};

pub(super) const DENIED: Reason = "change of an open file that was denied";
/// `EPERM` and `EACCES` (errno(3)), as results.
const REFUSALS: [i64; 2] = [-1, -13];
/// `O_ACCMODE`, `O_CREAT`, `O_TRUNC` and the bit of `O_TMPFILE`: an open without them reads.
const OPENS_TO_CHANGE: u32 = 0o3 | 0o100 | 0o1000 | 0o20_000_000;
/// Neither makes nor cuts, whatever stands beside it.
const PATH: u32 = 0o10_000_000;
const NO_FOLLOW: u32 = 0o400_000;
/// `O_CREAT` and `O_EXCL`: a link in the last place is not followed.
const ONLY_NEW: u32 = 0o300;

/// Whether a call was denied that would have changed something.
pub(super) fn is_denied_change(event: &Event) -> bool {
    REFUSALS.contains(&event.result) && changes(event)
}

fn changes(event: &Event) -> bool {
    let operands = Operands(event);
    match event.op {
        Op::Open => {
            let flags = operands.lenient_flags(OPENS_TO_CHANGE | PATH);
            flags != 0 && flags & PATH == 0
        }
        Op::Fcntl => operands.command(u32::MAX) == Ok(SET_STATUS),
        Op::Sendfile | Op::Splice => true,
        op => matches!(
            op.class(),
            Class::Alter | Class::Attribute | Class::Mark | Class::Write
        ),
    }
}

/// Whether a symlink in the last place is followed.
pub(super) fn follows(event: &Event) -> bool {
    match event.op {
        Op::Open => {
            let flags = Operands(event).lenient_flags(NO_FOLLOW | ONLY_NEW);
            flags & NO_FOLLOW == 0 && flags & ONLY_NEW != ONLY_NEW
        }
        op => op.class() == Class::Attribute && op.follows(),
    }
}
