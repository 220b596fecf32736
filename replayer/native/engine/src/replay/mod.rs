//! Replaying traces: `compile` makes a reel of a trace or of a request of it, `play` makes its events happen again.

pub(crate) mod compile;
pub(crate) mod deed;
pub(crate) mod names;
pub(crate) mod order;
pub(crate) mod play;
pub(crate) mod reel;
