//! What each user of a replay has for itself of what was there before: it is laid out once for each.

use crate::constants::{O_CREAT, O_EXCL};
use crate::error::TraceError;
use crate::op::Op;
use crate::reader::Trace;
use crate::tables::events::Event;
use crate::usage::Label;
use rustc_hash::FxHashSet;
use serde_json::{Value, json};

/// The row of a path that an event makes or removes in a way that only one can: two performances cannot do that at one place.
#[must_use]
pub fn solitary_path(event: &Event) -> Option<u32> {
    const ONLY_NEW: i64 = O_CREAT | O_EXCL;
    if event.result < 0 {
        return None;
    }
    match event.op {
        Op::Mkdir | Op::Mknod | Op::Symlink | Op::Rmdir | Op::Unlink | Op::Rename => event.path,
        Op::Link => event.to_path,
        Op::Open
            if event
                .flags
                .is_some_and(|flags| flags & ONLY_NEW == ONLY_NEW) =>
        {
            event.path
        }
        _ => None,
    }
}

/// Paths that are each user's own, whatever their labels say.
#[derive(Debug, Default)]
pub(super) struct Own {
    solitary: FxHashSet<u32>,
}

impl Own {
    pub(super) fn follow(&mut self, event: &Event) {
        self.solitary.extend(solitary_path(event));
    }

    /// How much of the tree lies at or below these paths and private ones. A link that leads to one is own too, but takes no room.
    pub(super) fn json(&self, trace: &Trace) -> Result<Value, TraceError> {
        let paths = trace.paths()?;
        let own = (0..).zip(&paths).filter(|(row, named)| {
            named.label == Label::Private.name() || self.solitary.contains(row)
        });
        let own: FxHashSet<&[u8]> = own.map(|(_, named)| named.path.as_slice()).collect();
        let (mut entries, mut bytes) = (0_u64, 0_u64);
        let mut below: FxHashSet<&[u8]> = FxHashSet::default();
        for entry in trace.tree()? {
            let named = paths.get(super::index(entry.path));
            let Some(path) = named.map(|named| named.path.as_slice()) else {
                continue;
            };
            // Parents come before children.
            let is_below = parent(path).is_some_and(|parent| below.contains(parent));
            if is_below || own.contains(path) {
                below.insert(path);
                entries += 1;
                let size = if entry.kind == 'f' { entry.size } else { 0 };
                bytes = bytes.saturating_add(size);
            }
        }
        Ok(json!({"entries": entries, "bytes": bytes}))
    }
}

fn parent(path: &[u8]) -> Option<&[u8]> {
    memchr::memrchr(b'/', path).map(|end| crate::bytes::cut(path, 0, end))
}
