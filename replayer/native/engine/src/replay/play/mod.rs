//! Plays reels: a user's performance of a trace or of one request of it, on the user's own thread and on threads that belong to it.
//!
//! `band`, `companion` and `living` have the threads, `gathering` and `stage` what they share, `player` is one lane; `deeds*` are the calls, `results`
//! and `check` judge what they returned, `ledger` counts it for the door. The same threads do the stages of pipelines: `line`.

mod band;
mod check;
mod companion;
mod deeds;
mod deeds_attribute;
mod deeds_data;
mod deeds_file;
mod deeds_others;
mod deeds_path;
mod feed;
mod files;
mod gathering;
mod lane;
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

pub(crate) use band::Band;
pub(crate) use ledger::{Example, Ledger};
pub(crate) use line::LineStage;
pub(crate) use pace::wait_until;
