//! Replaying traces: `compile` makes a replay program of a trace or of a request of it, `play` makes its events happen again.

pub(crate) mod compile;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod play;
pub(crate) mod program;
