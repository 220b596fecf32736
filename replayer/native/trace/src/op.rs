//! The ops that events are made of.

use crate::constants::{O_CREAT, O_EXCL, O_NOFOLLOW};

pub(crate) use replayer_ops::Class;
pub use replayer_ops::Op;

/// Whether an open follows a symlink in the last place (`open(2)`).
pub(crate) fn follows_to_open(flags: i64) -> bool {
    let makes_anew = flags & O_CREAT != 0 && flags & O_EXCL != 0;
    flags & O_NOFOLLOW == 0 && !makes_anew
}
