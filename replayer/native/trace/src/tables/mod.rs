//! Tables of a trace folder as Parquet: columns are filled row by row and written a row group at a time, and read row by row.

pub(crate) mod column;
pub(crate) mod events;
pub(crate) mod read;
pub(crate) mod schema;
pub(crate) mod small;
pub(crate) mod text;
pub(crate) mod times;
pub(crate) mod tree;
pub(crate) mod write;

use crate::error::TraceError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::Path;

/// Version of the folder's format.
pub(crate) const FORMAT_VERSION: u64 = 2;
/// The tables, as they are named.
pub(crate) const TABLES: [&str; 5] = ["events", "paths", "tree", "edges", "requests"];
/// What stands in trace.json behind the name of an op that failed.
pub(crate) const FAILED: &str = " failed";
/// Stands for the checksum of trace.json while that is taken.
pub(crate) const NO_CHECKSUM: &str =
    "0000000000000000000000000000000000000000000000000000000000000000";

/// SHA-256 of the text of a trace.json that has zeros for its checksum.
pub(crate) fn document_checksum(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}

/// SHA-256 and length of a file.
pub(crate) fn checksum(path: &Path) -> Result<(String, u64), TraceError> {
    let mut file = File::open(path).map_err(TraceError::io(path))?;
    let mut hash = Sha256::new();
    let bytes = std::io::copy(&mut file, &mut hash).map_err(TraceError::io(path))?;
    Ok((format!("{:x}", hash.finalize()), bytes))
}
