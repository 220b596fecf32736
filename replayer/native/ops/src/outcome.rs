//! The ways a call ends: codes 1 to 133 are errno numbers, the others are ours.

use crate::errno::numbers::{EAGAIN, EEXIST, ENOENT, ESTALE};
use crate::errno::{errno_name, errno_number};

/// It went well.
pub const OK: u8 = 0;
/// The last code that is an errno.
pub const LAST_ERRNO: u8 = crate::errno::LAST;
/// Read less than the entry holds.
pub const SHORT: u8 = 134;
/// A transaction in which an op had an unexpected outcome.
pub const FAILED: u8 = 135;
/// A transaction that was cut off, or a call in it that our own signal interrupted.
pub const CANCELLED: u8 = 136;
/// An errno that Linux does not document for programs.
pub const UNKNOWN: u8 = 137;

/// A call of a replay that went well although it was recorded as an error, or that returned another number.
pub const DIVERGED: u8 = 138;
/// What was waited for did not come within its limit.
pub const UNMET: u8 = 139;

/// A read returned part of a write and not all of it (`verify`).
pub const TORN: u8 = 140;
/// A read returned data of another file, place or run.
pub const SWAPPED: u8 = 141;
/// A read returned nothing where something had been written.
pub const LOST: u8 = 142;
/// A read returned what was there before the last write.
pub const STALE: u8 = 143;

/// A call that moves data went well and moved none: it found the end of the file or of the folder.
pub const END: u8 = 144;

/// Whether a read returned something else than what was written: no step can expect that.
#[must_use]
pub fn is_violation(outcome: u8) -> bool {
    (TORN..=STALE).contains(&outcome)
}

/// Whether an outcome may become another one when the call is made again: names come and go, locks are given back, contents grow.
#[must_use]
pub fn may_change(outcome: u8) -> bool {
    [OK, SHORT].contains(&outcome) || [ENOENT, EAGAIN, EEXIST, ESTALE].contains(&u16::from(outcome))
}

/// The outcome code of an errno.
#[must_use]
pub fn outcome_of_errno(errno: i32) -> u8 {
    u8::try_from(errno)
        .ok()
        .filter(|code| (1..=LAST_ERRNO).contains(code))
        .unwrap_or(UNKNOWN)
}

/// The name of an outcome code.
#[must_use]
pub fn outcome_name(code: u8) -> &'static str {
    OURS.iter()
        .find(|(_, known)| *known == code)
        .map_or_else(|| errno_name(u16::from(code)), |(name, _)| name)
}

/// The outcome code of a name in `expect`.
#[must_use]
pub fn outcome_of_name(name: &str) -> Option<u8> {
    match OURS.iter().find(|(known, _)| *known == name) {
        Some((_, code)) => [OK, SHORT, UNMET].contains(code).then_some(*code),
        None => errno_number(name)
            .and_then(|number| u8::try_from(number).ok())
            .filter(|code| *code <= LAST_ERRNO),
    }
}

/// Outcomes that are no errno.
const OURS: [(&str, u8); 11] = [
    ("ok", OK),
    ("SHORT", SHORT),
    ("failed", FAILED),
    ("cancelled", CANCELLED),
    ("DIVERGED", DIVERGED),
    ("UNMET", UNMET),
    ("TORN", TORN),
    ("SWAPPED", SWAPPED),
    ("LOST", LOST),
    ("STALE", STALE),
    ("END", END),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_agree() {
        for name in ["ok", "SHORT", "ENOENT", "EAGAIN", "EEXIST", "ESTALE"] {
            assert!(outcome_of_name(name).is_some_and(may_change), "{name}");
        }
        assert!(!may_change(5) && !may_change(UNMET));
        assert_eq!(outcome_of_name("ENOENT"), Some(2));
        assert_eq!(outcome_name(116), "ESTALE");
        assert_eq!(outcome_name(outcome_of_errno(524)), "EUNKNOWN");
        assert_eq!(outcome_of_name(""), None);
        assert_eq!(outcome_of_name("TORN"), None);
        for code in 1..=LAST_ERRNO {
            assert_eq!(outcome_of_name(outcome_name(code)), Some(code));
        }
    }
}
