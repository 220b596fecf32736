//! Files outside of the roots that are moved or linked in: where they stand in the trace, and which are directories.

use crate::call::{Call, FileKind, PathArg};
use crate::paths::{NameId, PathId};
use crate::scope::Spot;
use crate::tracker::Tracker;
use crate::tree::NodeId;
use rustc_hash::FxHashSet;

/// Where they stand.
pub(crate) const OUTSIDE: &[u8] = b".outside";
/// The deepest directory that is looked for (chosen: paths have 4,096 bytes).
const DEEPEST: usize = 1 << 12;
/// Bytes of paths that are remembered (chosen: some 100,000 directories); beyond, a directory is taken for a file.
const MOST_BYTES: usize = 8 << 20;

/// What is known of files outside of the roots.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// How often one was moved or linked in, or out.
    pub(crate) crossings: u32,
    /// Absolute paths that calls have shown to be directories.
    directories: FxHashSet<Box<[u8]>>,
    bytes: usize,
}

impl Outside {
    pub(crate) fn add(&mut self, absolute: &[u8]) {
        if self.bytes + absolute.len() <= MOST_BYTES && self.directories.insert(absolute.into()) {
            self.bytes += absolute.len();
        }
    }

    pub(crate) fn remove(&mut self, absolute: &[u8]) {
        if self.directories.remove(absolute) {
            self.bytes -= absolute.len();
        }
    }
}

impl Tracker {
    /// A call made or removed a directory outside of the roots.
    pub(crate) fn note_outside(&mut self, call: &Call<'_>, path: &PathArg<'_>, is_there: bool) {
        let Spot::Outside(absolute) = self.outside_of(call, path) else {
            return;
        };
        if is_there {
            self.outside.add(&absolute);
        } else {
            self.outside.remove(&absolute);
        }
    }

    /// What a rename brings in from there is a directory, if that is known: of what is in it nothing is.
    pub(crate) fn arrived(&mut self, call: &Call<'_>, from: &PathArg<'_>, node: NodeId) {
        let Spot::Outside(absolute) = self.outside_of(call, from) else {
            return;
        };
        if !self.outside.directories.contains(&*absolute) {
            return;
        }
        self.outside.remove(&absolute);
        if self.tree.kind(node) == FileKind::Unknown {
            self.tree.set_kind(node, FileKind::Directory);
        }
        self.counts
            .blind
            .add("what was in directories that came from outside of the roots");
    }

    /// Whether a directory that is listed comes from outside of the roots: what is in it no manifest tells.
    pub(crate) fn lists_outside(&mut self, node: Option<NodeId>) -> bool {
        let outside = self.scope.paths.names.intern(OUTSIDE);
        let is_outside = node.and_then(|node| self.top_before(node)) == Some(outside);
        if is_outside {
            self.counts
                .blind
                .add("entries of directories outside of the roots");
        }
        is_outside
    }

    /// The top of the trace below which a file was before the trace began. None if it was not there.
    fn top_before(&self, node: NodeId) -> Option<NameId> {
        let above = |node: NodeId| self.tree.node(node).and_then(|node| node.origin);
        let places = std::iter::successors(above(node), |&(directory, _)| above(directory));
        let (directory, name) = places.take(DEEPEST).last()?;
        (directory == NodeId::TOP).then_some(name)
    }

    /// A place in the trace for a file outside of the roots that is moved or linked in.
    pub(crate) fn outside_place(&mut self, call: &Call<'_>, path: &PathArg<'_>) -> Option<PathId> {
        let Spot::Outside(absolute) = self.outside_of(call, path) else {
            return None;
        };
        let top = self.scope.paths.child(PathId::TOP, OUTSIDE)?;
        let name: Vec<u8> = absolute
            .iter()
            .map(|&byte| if byte == b'/' { b'|' } else { byte })
            .collect();
        // A name may have 255 bytes: the end of the path tells more than its begin.
        let kept = name
            .get(name.len().saturating_sub(200)..)
            .unwrap_or_default()
            .to_vec();
        self.tree.ensure_directory(&self.scope.paths, top);
        self.outside.crossings += 1;
        self.scope.paths.child(top, &kept)
    }
}
