//! Records the file calls of running programs: a probe in the kernel (`bpf/probe.bpf.c`) and the thread that empties its ring.
//!
//! The probe tells of calls when they return, and nobody waits for it: the recorded programs never stop. What does not fit into the
//! ring is lost, and counted with its time. Records go to a file as they come; `replayer_trace` reads them. All links to the kernel die with
//! the descriptors of this process.

#![allow(
    clippy::disallowed_methods,
    reason = "recording is no run: its file is written, and its ring looked at, by the clock of the machine"
)]

mod drain;
mod error;
mod flight;
mod kept;
mod probe;
mod recorder;
mod slow;

pub use error::RecorderError;
pub use flight::{Dump, FlightRecorder, Limits, Place, State};
pub use recorder::{Progress, Recorder, make_quick_calls};
pub use slow::{CallLimit, SlowCall};
