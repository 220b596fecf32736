//! What the calls of a trace returned, as replays are compared with it.

use super::denied::is_denied_change;
use crate::replay::program::Recorded;
use replayer_ops::{Contents, Flag};
use replayer_trace::{Event, Op};

/// Errnos end here (errno.h of Linux, `MAX_ERRNO`).
const MOST_ERRNO: i64 = 4095;

/// What the call returned, where a number is, and can be compared.
pub(super) fn returned(event: &Event) -> Recorded {
    if event.op.is(Flag::untimed) {
        return Recorded::Unknown;
    }
    if event.result < 0 {
        return match i32::try_from(-event.result.max(-MOST_ERRNO - 1)) {
            Ok(errno) if is_denied_change(event) => Recorded::Denied(errno),
            Ok(errno) if i64::from(errno) <= MOST_ERRNO => Recorded::Error(errno),
            _ => Recorded::Unknown,
        };
    }
    if event.op == Op::Getdents {
        let entries = event
            .entries
            .and_then(|entries| u64::try_from(entries).ok());
        // Where the log does not say how many there were, it went well all the same.
        return entries.map_or(Recorded::Well, Recorded::Exactly);
    }
    let number = u64::try_from(event.result).unwrap_or(0);
    if returns_a_number(event.op) {
        Recorded::Exactly(number)
    } else {
        Recorded::Well
    }
}

fn returns_a_number(op: Op) -> bool {
    matches!(
        op.contents(),
        Contents::Reads | Contents::Writes | Contents::Copies
    ) || matches!(
        op,
        Op::Lseek | Op::Readlink | Op::Getxattr | Op::Lgetxattr | Op::Fgetxattr
    )
}
