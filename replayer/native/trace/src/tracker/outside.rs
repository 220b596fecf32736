//! Where files stand in the trace that lie outside of the roots, that symlinks lead to, or that had been removed before it.

use crate::call::{Call, FileArg, FileKind, Gone, OnExec, PathArg};
use crate::open_files::Description;
use crate::paths::{NameId, PathId};
use crate::scope::{Location, normal};
use crate::tasks::FdTarget;
use crate::tracker::Tracker;
use crate::tree::NodeId;
use rustc_hash::FxHashSet;

/// Where those from outside stand.
const OUTSIDE: &[u8] = b".outside";
/// Where those stand that had been removed; no root is called so.
const REMOVED: &[u8] = b".removed";
/// Bytes of a path that its stand-in's name keeps: a name has 255, and a number may stand behind it.
const KEPT_BYTES: usize = 200;
/// The deepest directory that is looked for (chosen: paths have 4,096 bytes).
const DEEPEST: usize = 1 << 12;
/// Bytes of paths that are remembered (chosen: some 100,000 directories); beyond, a directory is taken for a file.
const MOST_BYTES: usize = 8 << 20;

#[derive(Debug, Default)]
pub(crate) struct OutsideFiles {
    /// How often one was moved or linked in, or out.
    pub(crate) crossings: u32,
    /// Absolute paths that calls have shown to be directories.
    directories: FxHashSet<Box<[u8]>>,
    bytes: usize,
}

impl OutsideFiles {
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
        let Location::Outside(absolute) = self.outside_of(call, path) else {
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
        let Location::Outside(absolute) = self.outside_of(call, from) else {
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
        let outside = self.tree.paths.names.intern(OUTSIDE);
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
        let Location::Outside(absolute) = self.outside_of(call, path) else {
            return None;
        };
        let place = self.stand_in(OUTSIDE, &absolute, "")?;
        self.tree.ensure_directory(self.tree.paths.parent(place));
        self.outside.crossings += 1;
        Some(place)
    }

    /// The place below a top of the trace that stands for a file, whose path is its name there, with something behind it.
    fn stand_in(&mut self, top: &[u8], path: &[u8], behind: &str) -> Option<PathId> {
        let paths = &mut self.tree.paths;
        let top = paths.child(PathId::TOP, top)?;
        // The end of the path tells more than its begin.
        let kept = path.get(path.len().saturating_sub(KEPT_BYTES)..)?;
        let flat = |&byte: &u8| if byte == b'/' { b'|' } else { byte };
        let name = kept.iter().map(flat).chain(behind.bytes());
        paths.child(top, &name.collect::<Vec<u8>>())
    }

    /// Where a symlink's text leads, and a text that leads to the same place below the tops of the trace.
    ///
    /// A relative text that stays is kept; an absolute one becomes relative; one that leads outside of the roots leads to
    /// a place of its own below `.outside`.
    pub(crate) fn link_target(&mut self, link: PathId, text: &[u8]) -> (Option<PathId>, Vec<u8>) {
        let directory = self.tree.paths.parent(link);
        match self.locate(&Location::Inside(directory), text) {
            Location::Inside(target) => {
                let text = self.portable(directory, target, text);
                (Some(target), text)
            }
            Location::Outside(absolute) => {
                // The text of the root is empty.
                let absolute = if absolute.is_empty() {
                    b"/"
                } else {
                    &*absolute
                };
                match self.stand_in(OUTSIDE, absolute, "") {
                    Some(target) => (Some(target), self.upwards(directory, target)),
                    None => (None, OUTSIDE.to_vec()),
                }
            }
            Location::Unknown => (None, OUTSIDE.to_vec()),
        }
    }

    /// Remember where a symlink leads.
    pub(crate) fn set_link(&mut self, node: NodeId, link: PathId, text: &[u8]) {
        let (target, text) = self.link_target(link, text);
        let outside =
            target.is_some_and(|target| self.tree.paths.text(target).starts_with(b".outside/"));
        self.counts.links_out += u64::from(outside);
        if let Some(node) = self.tree.node_mut(node) {
            node.link = target.map(|target| (target, text.into_boxed_slice()));
        }
        self.tree.forget_walks();
    }

    fn portable(&self, directory: PathId, target: PathId, text: &[u8]) -> Vec<u8> {
        let paths = &self.tree.paths;
        let mut joined = paths.text(directory);
        joined.push(b'/');
        joined.extend_from_slice(text);
        let stays = text.first() != Some(&b'/')
            && normal(&joined).is_some_and(|text| text == paths.text(target));
        if stays {
            text.to_vec()
        } else {
            self.upwards(directory, target)
        }
    }

    fn upwards(&self, directory: PathId, target: PathId) -> Vec<u8> {
        let paths = &self.tree.paths;
        let mut text = Vec::new();
        for _ in 0..paths.depth(directory) {
            text.extend_from_slice(b"../");
        }
        text.extend_from_slice(&paths.text(target));
        text
    }

    /// Let a descriptor hold the stand-in of a removed file, if that was below a root.
    pub(crate) fn hold_stand_in(&mut self, task: u64, file: FileArg<'_>, gone: Gone) {
        let Some(shown) = file.shown.filter(|_| file.deleted) else {
            return;
        };
        let Some(Location::Inside(former)) = self.locate_shown(task, shown) else {
            return;
        };
        // One file has one stand-in, however many have it open.
        let former = self.tree.paths.text(former);
        let Some(place) = self.stand_in(REMOVED, &former, &format!("#{}", gone.inode)) else {
            return;
        };
        let Some(node) = self.file_that_stands_in(place, gone.size) else {
            return;
        };
        let id = self.files.add(Description {
            offset: None,
            ..Description::new(place, Some(node), shown)
        });
        self.open_before(id);
        self.hold_new(task, file.number, FdTarget::Inside(id), OnExec::Keep);
    }

    fn file_that_stands_in(&mut self, place: PathId, size: i64) -> Option<NodeId> {
        let found = self.tree.find(place, false).node();
        if found.is_some() {
            return found;
        }
        let parent = self.tree.paths.parent(place);
        let directory = self.tree.ensure_directory(parent)?;
        let name = self.tree.paths.name(place);
        let id = self.tree.add_before(directory, name, FileKind::Regular);
        let node = self.tree.node_mut(id)?;
        node.confirmed = true;
        self.tree.saw_size(id, size);
        Some(id)
    }
}
