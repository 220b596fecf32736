//! Real recordings: one program, so that it is linked once.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and says why it is left out"
)]

mod attached;
mod common;
mod crowds;
mod mapped;
mod oracle;
