//! The table `paths`: every path that an event or the tree names, or that a call made behind a symlink, with its label.

use crate::error::TraceError;
use crate::paths::Paths;
use crate::sharing::{PathUsage, SharingLabel};
use crate::tables::column::{Kind, Layout, Spec};
use crate::tables::text::escaped_whole;
use crate::tables::write::TableWriter;
use parquet::data_type::ByteArray;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) const SPECS: [Spec; 2] = [
    Spec::new("path", Kind::Text, Layout::Delta),
    Spec::new("label", Kind::Text, Layout::Dictionary),
];

/// Write all paths in the order of their rows. Returns how many have each label.
pub(crate) fn write(
    directory: &Path,
    paths: &Paths,
    usage: &PathUsage,
) -> Result<Value, TraceError> {
    let mut table = TableWriter::create(directory, "paths", &SPECS)?;
    let labels = [
        SharingLabel::SharedReadOnly,
        SharingLabel::Private,
        SharingLabel::SharedMutable,
    ];
    let mut counts = [0_u64; 3];
    let mut contended = 0_u64;
    for &place in paths.rows() {
        let label = usage.label(place);
        for (count, _) in counts
            .iter_mut()
            .zip(labels)
            .filter(|&(_, other)| other == label)
        {
            *count += 1;
        }
        contended += u64::from(usage.is_contended(place));
        if let [path, name] = table.columns.as_mut_slice() {
            path.push_text(Some(escaped_whole(paths.text(place))));
            name.push_text(Some(ByteArray::from(label.name())));
        }
        table.end_row()?;
    }
    table.finish()?;
    let [read_only, private, mutable] = counts;
    Ok(json!({
        "shared read-only": read_only,
        "private": private,
        "shared mutable": mutable,
        "open in two threads at once": contended,
    }))
}
