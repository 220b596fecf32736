//! The engine: a plan's users as native threads that make file calls, timed and recorded.
//!
//! Everything outside of this crate uses what is exported here. Nothing in it knows Python.

mod call;
mod clock;
mod content;
mod core;
mod dispatcher;
mod document;
mod engine;
mod error;
mod health;
mod histogram;
mod interactive;
mod interpreter;
mod layout;
mod lock;
mod ops;
mod options;
mod overhead;
mod pace;
mod path;
mod plan;
mod program;
mod record;
mod replay;
mod rng;
mod sandbox;
mod segment;
mod signals;
mod sleep;
mod sys;
mod thread_state;
mod user;
mod user_segment;
mod user_threads;
mod verify;
mod watch;
mod written;

pub use clock::{look_ns, prepare as prepare_clock};
pub use core::{OutcomeData, TransactionData};
pub use engine::{Course, Engine, confinement};
pub use error::{Error, Result};
pub use histogram::Histogram;
pub use layout::{Bound, Fault, Finding, Task, Work};
pub use options::Options;
pub use overhead::overhead_ns;
pub use pace::Turn;
pub use program::Program;
pub use record::event::StuckData;
pub use record::{
    IntervalData, IntervalLines, Line, Log, LogKey, Phase, Recording, RowData, Slices, Slots,
    SpanS, read_log, read_slices,
};
pub use replay::order::{Report, check_order};
pub use sandbox::{RunFolder, Space};
pub use sys::machine_caches_dropped;
