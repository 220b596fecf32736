//! Plays replay programs: a user's performance of a trace or of one request of it, on the user's own thread and on threads that belong to it.
//!
//! `lane threads`, `helper` and `living` have the threads, `gathering` and `stage` what they share, `player` is one lane; `calls*` are the calls, `results`
//! and `check` judge what they returned, `ledger` counts it for the door. The same threads do the stages of pipelines: `line`.

mod calls;
mod calls_attribute;
mod calls_data;
mod calls_file;
mod calls_others;
mod check;
mod feed;
mod files;
mod gathering;
mod helper;
mod lane;
mod lane_threads;
mod ledger;
mod line;
mod living;
mod log;
mod pace;
mod player;
mod progress;
mod results;
mod slots;
mod stage;
#[cfg(test)]
mod tests;

pub(crate) use lane_threads::LaneThreads;
pub(crate) use ledger::{Example, Ledger};
pub(crate) use line::LineStage;
pub(crate) use pace::wait_until;
