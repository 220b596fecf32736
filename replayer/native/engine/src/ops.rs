//! What samples are of: an op, or one of the times of a transaction.

pub(crate) use replayer_ops::{
    CANCELLED, DIVERGED, END, FAILED, Flag, LOST, OK, Op, SHORT, STALE, SWAPPED, TORN, UNMET,
    is_violation, may_change, outcome_name, outcome_of_errno, outcome_of_name,
};

/// Latency of a transaction: end − intended.
pub(crate) const TRANSACTION: u8 = Op::Meanwhile as u8 + 1;
/// Service time of a transaction: end − start.
pub(crate) const SERVICE: u8 = TRANSACTION + 1;
/// Lag of a transaction: start − intended.
pub(crate) const LAG: u8 = TRANSACTION + 2;
/// Lag of an event of a replay at its recorded time: begin − intended.
pub(crate) const EVENT_LAG: u8 = TRANSACTION + 3;
/// How many different values `Sample::op` has.
pub(crate) const KINDS: usize = Op::ALL.len() + 4;
const _: () = assert!(TRANSACTION as usize == Op::ALL.len());

/// The name of a sample's `op`.
pub(crate) fn op_name(op: u8) -> &'static str {
    match op {
        TRANSACTION => "transaction",
        SERVICE => "transaction.service",
        LAG => "transaction.lag",
        EVENT_LAG => "event.lag",
        other => Op::ALL
            .get(usize::from(other))
            .map_or("unknown", |op| op.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(op_name(Op::Listxattr as u8), "listxattr");
        assert_eq!(op_name(Op::Until as u8), "until");
        assert_eq!(op_name(LAG), "transaction.lag");
        assert_eq!(op_name(EVENT_LAG), "event.lag");
        assert_eq!(op_name(EVENT_LAG + 1), "unknown");
    }
}
