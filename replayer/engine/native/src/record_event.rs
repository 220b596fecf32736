//! Events: what is worth a line of its own in events.jsonl.

/// A slow sample with what made it.
#[derive(Clone, Debug)]
pub(crate) struct SlowSample {
    /// Its end, since the engine's begin.
    pub(crate) t_ns: u64,
    pub(crate) user: u32,
    pub(crate) target: u16,
    pub(crate) transaction: u16,
    pub(crate) op: u8,
    pub(crate) outcome: u8,
    pub(crate) service_ns: u64,
    pub(crate) path: Vec<u8>,
}

/// One line of events.jsonl, but for the slow ones and the phases (the recorder's own).
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// An unexpected outcome; the first 20 of each (transaction, op, outcome) are written.
    Error {
        t_ns: u64,
        user: u32,
        target: u16,
        transaction: u16,
        op: u8,
        outcome: u8,
        path: Vec<u8>,
    },
    /// An op has been in the kernel for longer than the limit.
    Stall {
        t_ns: u64,
        user: u32,
        target: u16,
        op: u8,
        age_ns: u64,
        path: Vec<u8>,
    },
    /// It has returned.
    StallOver {
        t_ns: u64,
        user: u32,
        target: u16,
        op: u8,
        age_ns: u64,
        path: Vec<u8>,
    },
    /// The user was given up on at the end of a segment.
    Abandoned {
        t_ns: u64,
        user: u32,
        target: u16,
        op: u8,
        age_ns: u64,
        path: Vec<u8>,
    },
}
