//! Tables of a trace folder as Parquet: columns are filled row by row and written a row group at a time.

pub(crate) mod column;
pub(crate) mod edges;
pub(crate) mod events;
pub(crate) mod pages;
pub(crate) mod paths;
pub(crate) mod read;
pub(crate) mod requests;
pub(crate) mod text;
pub(crate) mod times;
pub(crate) mod tree;
pub(crate) mod version_1;
pub(crate) mod write;
