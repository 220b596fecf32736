//! Logs imported into traces: one program, so that it is linked once.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what is wrong by failing, and looks at the files that were written"
)]

mod commands;
mod common;
mod dangling;
mod delays;
mod endings;
mod flavours;
mod formats;
mod fuzz;
mod hostile;
mod linear;
mod listings;
mod midnight;
mod others;
mod overlap;
mod pipes;
mod places;
mod removed;
mod requests;
mod searched_orders;
mod separate;
mod sharing;
mod special;
mod state;
mod statistics;
mod streams;
mod tree;
