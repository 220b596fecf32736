//! Columns of format 1, where they differ from this one's: times in nanoseconds, and every gap.

use crate::tables::column::{Kind, Layout, Spec};

#[rustfmt::skip]
pub(crate) const EVENTS: [Spec; 20] = [
    Spec::new("thread", Kind::Int32, Layout::Dictionary),
    Spec::new("start_ns", Kind::Int64, Layout::Delta),
    Spec::new("duration_ns", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("gap_ns", Kind::Int64, Layout::Dictionary),
    Spec::new("op", Kind::Text, Layout::Dictionary),
    Spec::new("path", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("to_path", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("file", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("to_file", Kind::Int32, Layout::Delta).or_null(),
    Spec::new("flags", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("mode", Kind::Int64, Layout::Dictionary).or_null(),
    Spec::new("size", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("offset", Kind::Int64, Layout::Delta).or_null(),
    Spec::new("entries", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("uid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("gid", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("atime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("mtime_ns", Kind::Int64, Layout::Plain).or_null(),
    Spec::new("text", Kind::Text, Layout::Dictionary).or_null(),
    Spec::new("result", Kind::Int64, Layout::Plain),
];
