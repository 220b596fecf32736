//! Traces: recordings of an application's file accesses, imported from foreign logs and kept as Parquet.
//!
//! Importers (`formats`) hand calls to the tracker, which follows the state of the traced program and writes events; the
//! folder keeps them beside the tree that was there before. Nothing here touches a mount or replays anything.

#![allow(
    clippy::disallowed_methods,
    reason = "reading and writing files of traces is what this crate is for; it makes no call of a run"
)]

mod bytes;
mod call;
mod columns;
mod constants;
mod counts;
mod error;
mod folder;
mod formats;
mod history;
mod import;
mod input;
mod manifest;
mod mappings;
mod open_files;
mod order;
mod overlaps;
mod paths;
mod pipes;
mod reader;
mod requests;
mod rewrite;
mod scope;
mod sharing;
mod statistics;
mod tables;
mod tasks;
mod tracer_overhead;
mod tracker;
mod tree;

pub use columns::{CallColumns, EventColumns, call_columns, event_columns};
pub use error::TraceError;
pub use formats::bpf;
pub use formats::{Applicability, format_names, is_applicable};
pub use history::history;
pub use import::{Request, import};
pub use reader::events::EventRows;
pub use reader::{TableRows, Trace, TraceTables};
pub use replayer_ops::Op;
pub use requests::label_name;
pub use requests::windows::Window;
pub use rewrite::{EventText, Link, Names, NewNames, names, rewrite};
pub use statistics::space::{END_BYTES, MOST_DATA, solitary_path};
pub use statistics::statistics;
pub use tables::schema::{Event, NamedPath, RequestPiece, TreeEntry};
pub use tables::tree::Keep;
pub use tracer_overhead::compute_time::{ComputeTime, Untraced};
pub use tracer_overhead::{Probe, TracerOverhead};
