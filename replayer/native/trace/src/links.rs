//! Symlinks: where they lead inside the trace, and the text that leads there wherever the trace is laid out.

use crate::paths::PathId;
use crate::scope::{Spot, normal};
use crate::tracker::Tracker;
use crate::tree::NodeId;

impl Tracker {
    /// Where a symlink's text leads, and a text that leads to the same place below the tops of the trace.
    ///
    /// A relative text that stays is kept; an absolute one becomes relative; one that leads outside of the roots leads to
    /// a place of its own below `.outside`.
    pub(crate) fn link_target(&mut self, link: PathId, text: &[u8]) -> (Option<PathId>, Vec<u8>) {
        let directory = self.scope.paths.parent(link);
        match self.locate(&Spot::Inside(directory), text) {
            Spot::Inside(target) => {
                let text = self.portable(directory, target, text);
                (Some(target), text)
            }
            Spot::Outside(absolute) => match self.outside_link(&absolute) {
                Some(target) => (Some(target), self.upwards(directory, target)),
                None => (None, b".outside".to_vec()),
            },
            Spot::Unknown => (None, b".outside".to_vec()),
        }
    }

    /// Remember where a symlink leads.
    pub(crate) fn set_link(&mut self, node: NodeId, link: PathId, text: &[u8]) {
        let (target, text) = self.link_target(link, text);
        let outside =
            target.is_some_and(|target| self.scope.paths.text(target).starts_with(b".outside/"));
        self.counts.links_out += u64::from(outside);
        if let Some(node) = self.tree.node_mut(node) {
            node.link = target.map(|target| (target, text.into_boxed_slice()));
        }
        self.tree.forget_walks();
    }

    fn portable(&self, directory: PathId, target: PathId, text: &[u8]) -> Vec<u8> {
        let paths = &self.scope.paths;
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
        let paths = &self.scope.paths;
        let mut text = Vec::new();
        for _ in 0..paths.depth(directory) {
            text.extend_from_slice(b"../");
        }
        text.extend_from_slice(&paths.text(target));
        text
    }

    fn outside_link(&mut self, absolute: &[u8]) -> Option<PathId> {
        let paths = &mut self.scope.paths;
        let top = paths.child(PathId::TOP, b".outside")?;
        let mut name: Vec<u8> = absolute
            .iter()
            .map(|&byte| if byte == b'/' { b'|' } else { byte })
            .collect();
        if name.is_empty() {
            name.push(b'|');
        }
        let kept = name
            .get(name.len().saturating_sub(200)..)
            .unwrap_or_default();
        paths.child(top, kept)
    }
}
