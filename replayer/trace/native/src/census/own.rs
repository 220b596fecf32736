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
        for entry in trace.tree()? {
            let named = paths.get(super::index(entry.path));
            if named.is_some_and(|named| is_below(&named.path, &own)) {
                entries += 1;
                let size = if entry.kind == 'f' { entry.size } else { 0 };
                bytes = bytes.saturating_add(size);
            }
        }
        Ok(json!({"entries": entries, "bytes": bytes}))
    }
}

/// Whether a path is one of some, or lies below one.
fn is_below(path: &[u8], some: &FxHashSet<&[u8]>) -> bool {
    let slashes = memchr::memchr_iter(b'/', path);
    let mut ends = slashes.chain([path.len()]);
    ends.any(|end| some.contains(crate::bytes::cut(path, 0, end)))
}
