//! Open file descriptions below the roots: what dup and fork share.

use crate::paths::PathId;
use crate::tree::NodeId;
use crate::tree::listings::Listing;
use rustc_hash::FxHashMap;

#[derive(Debug, Clone)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, not states"
)]
pub(crate) struct Description {
    /// Its number in the tables, never given out again.
    pub(crate) slot: u32,
    /// Descriptors that hold it.
    pub(crate) refs: u32,
    /// Where it was opened.
    pub(crate) path: PathId,
    /// Where that is now: directories that are renamed take along what lies below them.
    pub(crate) place: PathId,
    pub(crate) node: Option<NodeId>,
    /// Where the next read begins, as far as that is known.
    pub(crate) offset: Option<i64>,
    pub(crate) appends: bool,
    /// The listing of it that is under way.
    pub(crate) listing: Option<Listing>,
    /// It was opened without a name (`O_TMPFILE`): its path is that of a directory.
    pub(crate) nameless: bool,
    /// No event says that it was opened: it is one of a fifo, socket or device.
    pub(crate) untold: bool,
    /// It holds, or held, a lock that its end lets go.
    pub(crate) locks: bool,
    /// The text that `-y` showed for it last.
    pub(crate) shown: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    open: Vec<Option<Description>>,
    free: Vec<u32>,
    next_slot: u32,
    /// Those that were open before the log, by the numbers that it gives to descriptions.
    pub(crate) inherited: FxHashMap<i64, u32>,
}

impl Description {
    /// One that stands at its begin, and that one descriptor holds.
    pub(crate) fn new(path: PathId, node: Option<NodeId>, shown: &[u8]) -> Self {
        Self {
            slot: 0,
            refs: 1,
            path,
            place: path,
            node,
            offset: Some(0),
            appends: false,
            listing: None,
            nameless: false,
            untold: false,
            locks: false,
            shown: shown.to_vec(),
        }
    }
}

impl OpenFiles {
    /// Number of descriptions so far.
    pub(crate) fn count(&self) -> u32 {
        self.next_slot
    }

    /// A new description. Returns its number.
    pub(crate) fn add(&mut self, mut description: Description) -> u32 {
        description.slot = self.next_slot;
        self.next_slot = self.next_slot.saturating_add(1);
        if let Some(id) = self.free.pop()
            && let Some(place) = self.get_place(id)
        {
            *place = Some(description);
            return id;
        }
        self.open.push(Some(description));
        u32::try_from(self.open.len() - 1).unwrap_or(u32::MAX)
    }

    fn get_place(&mut self, id: u32) -> Option<&mut Option<Description>> {
        self.open.get_mut(usize::try_from(id).ok()?)
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Description> {
        self.open.get(usize::try_from(id).ok()?)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Description> {
        self.get_place(id)?.as_mut()
    }

    /// The description that was opened last of those that fit.
    pub(crate) fn newest(&self, fits: impl Fn(&Description) -> bool) -> Option<u32> {
        let open = (0..).zip(&self.open);
        let fitting = open.filter_map(|(id, place)| Some((place.as_ref()?, id)));
        let newest = fitting.filter(|(description, _)| fits(description));
        let newest = newest.max_by_key(|(description, _)| description.slot);
        newest.map(|(_, id)| id)
    }

    /// All of them, to tell where they are now.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Description> {
        self.open.iter_mut().flatten()
    }

    /// One more descriptor holds it.
    pub(crate) fn hold(&mut self, id: u32) {
        if let Some(description) = self.get_mut(id) {
            description.refs += 1;
        }
    }

    /// One descriptor lets it go; the last one returns it.
    pub(crate) fn release(&mut self, id: u32) -> Option<Description> {
        let place = self.get_place(id)?;
        let description = place.as_mut()?;
        description.refs = description.refs.saturating_sub(1);
        if description.refs > 0 {
            return None;
        }
        let description = place.take();
        self.free.push(id);
        description
    }
}
