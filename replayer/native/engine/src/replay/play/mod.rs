//! Plays replay programs: a user's performance of a trace or of one request of it, on the user's own thread and on threads that belong to it.
//!
//! `lane_threads` and `helper` have the threads, `helper_group` and `performance` what they share, `lane_replay` is one lane; `calls*` are the calls, `results`
//! and `check` judge what they returned, `ledger` counts it for the door. The same threads do the stages of pipelines: `line`.

mod batch_queue;
mod calls;
mod calls_data;
mod check;
mod files;
mod helper;
mod helper_group;
mod lane_replay;
mod lane_threads;
mod ledger;
mod line;
mod log;
mod pace;
mod performance;
mod progress;
mod results;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use helper::PreparedThread;
pub(crate) use lane_threads::LaneThreads;
pub(crate) use ledger::{Example, Ledger};
pub(crate) use line::LineStage;
pub(crate) use log::RECORD;
pub(crate) use pace::wait_until;
