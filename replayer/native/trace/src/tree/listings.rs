//! How many names directories had before the trace: what listings prove that no call names.
//!
//! A listing tells how many entries there are, and not which. Where it had more than are known, some are made up; where it had fewer,
//! a manifest is wrong about files that nothing has touched.

use crate::call::FileKind;
use crate::tree::{Entry, Names, NodeId, Tree};

/// Entries that each listing has and that are no names: `.` and `..`.
pub(crate) const DOTS: i64 = 2;
/// The most names made up for a trace: a log may say anything (chosen).
const MOST_UNNAMED: i64 = 100_000;

/// A listing that is under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing {
    /// `Names::added` when it began.
    added: i64,
    entries: i64,
}

impl Listing {
    pub(crate) fn plus(self, entries: i64) -> Self {
        Self {
            entries: self.entries.saturating_add(entries),
            ..self
        }
    }
}

impl Tree {
    /// A name of a directory means something else than before.
    pub(crate) fn count_names(
        &mut self,
        directory: NodeId,
        before: Option<Entry>,
        now: Option<Entry>,
    ) {
        let count = |entry| i64::from(matches!(entry, Some(Entry::Present(_))));
        if let Some(node) = self.node_mut(directory) {
            node.names.added += count(now) - count(before);
        }
    }

    pub(crate) fn begin_listing(&self, directory: NodeId) -> Listing {
        Listing {
            added: self.names(directory).added,
            entries: 0,
        }
    }

    fn names(&self, directory: NodeId) -> Names {
        self.node(directory)
            .map_or_else(Names::default, |node| node.names)
    }

    /// A listing has come to its end. The first one counts: later ones may see what others than the traced program did.
    pub(crate) fn was_listed(&mut self, directory: NodeId, listing: Listing) {
        let Names { added, before, .. } = self.names(directory);
        // What is made or removed during a listing may be in it or not.
        if before.is_none() && added == listing.added && listing.entries >= DOTS {
            self.had_names(
                directory,
                listing.entries.saturating_sub(DOTS).saturating_sub(added),
            );
        }
    }

    /// A directory was removed. That proves more than a listing: whatever was in it had gone.
    pub(crate) fn was_empty(&mut self, directory: NodeId) {
        self.had_names(directory, 0_i64.saturating_sub(self.names(directory).added));
    }

    fn had_names(&mut self, directory: NodeId, count: i64) {
        if let Some(node) = self.node_mut(directory) {
            node.names.before = Some(count);
        }
    }

    /// A name of a directory means something else from now on, whether events did that or results have told of it.
    pub(crate) fn count_known(&mut self, directory: NodeId, before: Option<Entry>, now: Entry) {
        let count = |entry| i64::from(matches!(entry, Some(Entry::Present(_))));
        if let Some(node) = self.node_mut(directory) {
            node.names.known += count(Some(now)) - count(before);
        }
    }

    /// How many names a directory has now, where that is known.
    pub(crate) fn count_of_names(&self, directory: NodeId) -> Option<i64> {
        let node = self.node(directory)?;
        let names = node.names;
        let proven = (names.before).map(|before| before.saturating_add(names.added));
        node.complete.then_some(names.known).or(proven)
    }

    /// Have as many names before the trace as listings prove.
    pub(crate) fn settle_names(&mut self) {
        let mut missing = self.missing_names();
        for index in 0..self.nodes.len() {
            self.drop_one_too_many(NodeId::from_index(index), &mut missing);
        }
        let mut room = MOST_UNNAMED;
        let mut texts = (1_u64..).map(|number| format!("unnamed-{number}"));
        for (index, &count) in missing.iter().enumerate() {
            if count > room {
                continue;
            }
            for _ in 0..count {
                room -= 1;
                let name = self.paths.names.intern_new(&mut texts);
                let directory = NodeId::from_index(index);
                name.map(|name| self.add_before(directory, name, FileKind::Regular));
                self.repairs.unnamed += 1;
            }
        }
    }

    /// By file: how many names are missing in it; below zero: how many are too many.
    fn missing_names(&self) -> Vec<i64> {
        let proven = |(index, before): (usize, Option<i64>)| {
            let was_made = self.was_made(NodeId::from_index(index));
            before.filter(|_| !was_made)
        };
        let before = self.nodes.iter().map(|node| node.names.before).enumerate();
        let proven: Vec<_> = before.map(proven).collect();
        let mut missing: Vec<_> = proven.iter().map(|count| count.unwrap_or(0)).collect();
        for (directory, _) in self.nodes.iter().filter_map(|node| node.origin) {
            let place = missing.get_mut(directory.index());
            let is_proven = proven.get(directory.index()).is_some_and(Option::is_some);
            if let (Some(place), true) = (place, is_proven) {
                *place -= 1;
            }
        }
        missing
    }

    /// Drop a file of the manifest that nothing has touched from a directory that had fewer.
    fn drop_one_too_many(&mut self, id: NodeId, missing: &mut [i64]) {
        let Some(node) = self.nodes.get_mut(id.index()) else {
            return;
        };
        let untouched = node.declared && !node.confirmed && !node.walked && !node.listed;
        if let (Some((directory, _)), true) = (node.origin, untouched)
            && let Some(count) = missing
                .get_mut(directory.index())
                .filter(|count| **count < 0)
        {
            *count += 1;
            node.origin = None;
            self.repairs.not_there += 1;
        }
    }
}
