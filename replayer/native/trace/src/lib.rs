//! Traces: recordings of an application's file accesses, imported from foreign logs and kept as Parquet.
//!
//! Importers (`formats`) hand calls to the tracker, which follows the state of the traced program and writes events; the
//! folder keeps them beside the tree that was there before. Nothing here touches a mount or replays anything.

#![allow(
    clippy::disallowed_methods,
    reason = "reading and writing files of traces is what this crate is for; it makes no call of a run"
)]

mod access;
mod bytes;
mod call;
mod cause;
mod census;
mod computed;
mod constants;
mod counts;
mod error;
mod events;
mod extent;
mod files;
mod folder;
mod formats;
mod history;
mod import;
mod infer;
mod input;
mod knowledge;
mod labels;
mod lines;
mod links;
mod listings;
mod manifest;
mod op;
mod order;
mod overlaps;
mod paths;
mod pipes;
mod pool;
mod ranges;
mod reader;
mod readme;
mod requests;
mod rows;
mod sample;
mod scope;
mod seat;
mod sizes;
mod streams;
mod stretch;
mod tables;
mod tasks;
mod totals;
mod tracker;
mod tree;
mod usage;
mod windows;

pub use census::{END_BYTES, MOST_DATA, census, solitary_path};
pub use computed::{Computed, Untraced};
pub use error::TraceError;
pub use events::Events;
pub use formats::{Applicability, format_names, is_applicable};
pub use history::history;
pub use import::{Request, import, rehearse};
pub use labels::labels;
pub use op::Op;
pub use reader::{NamedPath, RequestPiece, Trace, TreeEntry, count_rows};
pub use requests::label_name;
pub use streams::{EdgeRows, EventRows, RequestRows, Streams};
pub use stretch::{Probe, Stretch};
pub use tables::events::Event;
pub use tables::tree::Keep;
pub use windows::Window;
