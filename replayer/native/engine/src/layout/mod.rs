//! A run's own files: made before the clock starts, checked, warmed, evicted, and removed at the end.

mod files;
mod last;
#[cfg(test)]
mod last_tests;
#[cfg(test)]
mod mount_tests;
#[cfg(test)]
pub(crate) mod mounted;
mod remove;
mod task;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
mod verify;

pub use files::Work;
pub(crate) use files::start;
pub use last::Bound;
pub(crate) use last::read_back;
pub(crate) use remove::{remove, wipe};
pub use task::{Fault, Finding, Task};
