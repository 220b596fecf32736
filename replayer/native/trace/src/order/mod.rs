//! Which event must wait for which: edges between threads, beside the program order of each thread.
//!
//! The rules are those of ROOT (Weiss and others, SOSP 2013): the life of a descriptor, the offset of a description, names
//! made, removed and given anew, and bytes written before they are read, and locks. Edges that follow from others are
//! left out, by what each thread is known to have waited for already (vector clocks).
//!
//! An edge always leads from an earlier row to a later one, so that no cycle can arise.

pub(crate) mod byte_ranges;
pub(crate) mod vector_clocks;

use crate::order::byte_ranges::ByteRanges;
use crate::order::vector_clocks::VectorClocks;
use crate::paths::NameId;
use crate::tree::NodeId;
use rustc_hash::FxHashMap;

/// `to` waits for `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) reason: EdgeReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Resource {
    File(u32),
    Name(NodeId, NameId),
    Directory(NodeId),
    Entries(NodeId),
    Lock(NodeId),
    /// A lock, as one description has it.
    OwnLock(u32),
    /// Who has the locks of a file, as those see it who are refused one.
    Holders(NodeId),
}

impl Resource {
    const fn reason(self) -> EdgeReason {
        match self {
            Self::File(_) => EdgeReason::Descriptor,
            Self::Name(..) => EdgeReason::Name,
            Self::Directory(_) | Self::Entries(_) => EdgeReason::Directory,
            Self::Lock(_) | Self::OwnLock(_) | Self::Holders(_) => EdgeReason::Lock,
        }
    }
}

/// Who used a resource last, as far as later uses may have to wait.
#[derive(Debug, Default)]
struct Uses {
    write: Option<EventRef>,
    readers: Vec<EventRef>,
    adders: Vec<EventRef>,
}

/// What has been used by whom, as far as later events may have to wait for it.
#[derive(Debug, Default)]
pub(crate) struct Order {
    uses: FxHashMap<Resource, Uses>,
    data: FxHashMap<NodeId, ByteRanges>,
    clocks: VectorClocks,
    /// The last event of each thread.
    last: Vec<Option<EventRef>>,
    /// The last event of the first thread before there was a second one.
    alone: Option<EventRef>,
    /// An event after which names may lead elsewhere.
    barrier: Option<EventRef>,
    now: Option<EventRef>,
    candidates: Vec<(EventRef, EdgeReason)>,
    /// Edges that wait to be written.
    pub(crate) ready: Vec<Edge>,
}

impl Order {
    /// Whether there is one thread only: nothing has to wait.
    pub(crate) fn is_solo(&self) -> bool {
        self.last.len() <= 1
    }

    /// The next event; `causes` are those that let its thread come into being or go on.
    pub(crate) fn begin(&mut self, event_ref: EventRef, causes: &[Predecessor]) {
        self.settle();
        let place = usize::try_from(event_ref.thread).unwrap_or(usize::MAX);
        let is_new = place >= self.last.len();
        if is_new {
            // What the first thread used before there was a second one was not written down.
            if self.is_solo() {
                self.alone = self.last.first().copied().flatten();
            }
            // Whatever came later waits for it already.
            let told = |event_ref: &EventRef| {
                causes
                    .iter()
                    .any(|cause| cause.event_ref.row >= event_ref.row)
            };
            let alone = self.alone.filter(|event_ref| !told(event_ref));
            self.candidates
                .extend(alone.map(|event_ref| (event_ref, EdgeReason::Start)));
            self.last.resize(place + 1, None);
        }
        let before = self.last.get(place).copied().flatten();
        let causes = causes.iter().map(|cause| (cause.event_ref, cause.reason));
        self.candidates.extend(causes);
        if let Some(barrier) = self.barrier
            && before.is_none_or(|before| before.row < barrier.row)
        {
            self.candidates.push((barrier, EdgeReason::Directory));
        }
        self.now = Some(event_ref);
        if let Some(last) = self.last.get_mut(place) {
            *last = Some(event_ref);
        }
    }

    /// Reduce the edges of the event that is done.
    pub(crate) fn settle(&mut self) {
        let Some(now) = self.now.take() else {
            return;
        };
        if self.candidates.is_empty() {
            return;
        }
        self.candidates
            .sort_unstable_by_key(|&(event_ref, reason)| {
                (std::cmp::Reverse(event_ref.row), reason)
            });
        let mut candidates = std::mem::take(&mut self.candidates);
        for (from, reason) in candidates.drain(..) {
            if from.thread != now.thread && from.row < now.row && self.clocks.learn(now, from) {
                self.ready.push(Edge {
                    from: from.row,
                    to: now.row,
                    reason,
                });
            }
        }
        self.clocks.note(now);
        // Its room is used again.
        self.candidates = candidates;
    }

    /// The event opens, uses or closes a description.
    pub(crate) fn file(&mut self, slot: u32, access: Access) {
        self.touch(Resource::File(slot), access);
    }

    /// A description is gone: nothing can use it any more.
    pub(crate) fn forget_file(&mut self, slot: u32) {
        self.uses.remove(&Resource::File(slot));
        self.uses.remove(&Resource::OwnLock(slot));
    }

    /// The event looks a name up, or changes what it means.
    pub(crate) fn name(&mut self, directory: NodeId, name: NameId, access: Access) {
        self.touch(Resource::Name(directory, name), access);
        if access == Access::Write {
            self.touch(Resource::Entries(directory), Access::Add);
        }
        self.touch(Resource::Directory(directory), Access::Read);
    }

    /// The event reads the entries of a directory, or needs it empty: whether they could be read or not.
    pub(crate) fn list(&mut self, directory: NodeId) {
        self.touch(Resource::Directory(directory), Access::Read);
        self.touch(Resource::Entries(directory), Access::Read);
    }

    /// The event makes or removes a directory.
    pub(crate) fn directory(&mut self, directory: NodeId) {
        self.touch(Resource::Directory(directory), Access::Write);
    }

    /// The event takes a lock of a file.
    pub(crate) fn lock(&mut self, node: NodeId, slot: u32, access: Access) {
        self.touch(Resource::OwnLock(slot), Access::Write);
        self.touch(Resource::Holders(node), Access::Add);
        self.touch(Resource::Lock(node), access);
    }

    /// The event is refused a lock that others have: they take it before and let it go after that.
    pub(crate) fn refuse(&mut self, node: NodeId, slot: u32) {
        self.touch(Resource::OwnLock(slot), Access::Write);
        self.touch(Resource::Holders(node), Access::Read);
    }

    /// The event lets a lock go: whoever takes it next waits for this, and this for nobody but those who took it or were refused it.
    pub(crate) fn unlock(&mut self, node: NodeId, slot: u32) {
        self.touch(Resource::OwnLock(slot), Access::Write);
        self.touch(Resource::Holders(node), Access::Add);
        if let Some(now) = self.now.filter(|_| !self.is_solo()) {
            put(
                &mut self.uses.entry(Resource::Lock(node)).or_default().adders,
                now,
            );
        }
    }

    /// The event changes where names lead: everything before comes before, everything after comes after.
    pub(crate) fn add_barrier(&mut self) {
        if self.is_solo() {
            return;
        }
        let others = self
            .last
            .iter()
            .flatten()
            .map(|&event_ref| (event_ref, EdgeReason::Directory));
        self.candidates.extend(others);
        self.barrier = self.now;
    }

    /// The event reads or writes bytes of a file, or adds some at its end.
    pub(crate) fn data(&mut self, node: NodeId, span: (i64, i64), access: Access) {
        if self.is_solo() {
            return;
        }
        let Some(now) = self.now else {
            return;
        };
        let ranges = self.data.entry(node).or_default();
        let candidates = &mut self.candidates;
        ranges.touch(now, span, access, |event_ref| {
            candidates.push((event_ref, EdgeReason::Data));
        });
    }

    fn touch(&mut self, resource: Resource, access: Access) {
        if self.is_solo() {
            return;
        }
        let Some(now) = self.now else {
            return;
        };
        let uses = self.uses.entry(resource).or_default();
        uses.touch(now, access, resource.reason(), &mut self.candidates);
    }
}

impl Uses {
    fn touch(
        &mut self,
        now: EventRef,
        access: Access,
        reason: EdgeReason,
        found: &mut Vec<(EventRef, EdgeReason)>,
    ) {
        found.extend(self.write.map(|event_ref| (event_ref, reason)));
        if access != Access::Read {
            found.extend(self.readers.iter().map(|&event_ref| (event_ref, reason)));
        }
        if access != Access::Add {
            found.extend(self.adders.iter().map(|&event_ref| (event_ref, reason)));
        }
        match access {
            Access::Read => put(&mut self.readers, now),
            Access::Add => put(&mut self.adders, now),
            Access::Write => {
                self.readers.clear();
                self.adders.clear();
                self.write = Some(now);
            }
        }
    }
}

/// How an event uses a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Any number at a time.
    Read,
    /// Alone.
    Write,
    /// With others of its kind, apart from reads.
    Add,
}

impl Access {
    pub(crate) fn of_call(alters: bool) -> Self {
        if alters { Self::Write } else { Self::Read }
    }
}

/// An event's thread and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EventRef {
    pub(crate) row: u64,
    pub(crate) thread: u32,
}

/// Keep the last event of each thread.
pub(crate) fn put(event_refs: &mut Vec<EventRef>, now: EventRef) {
    match event_refs
        .iter_mut()
        .find(|event_ref| event_ref.thread == now.thread)
    {
        Some(event_ref) => *event_ref = now,
        None => event_refs.push(now),
    }
}

/// Why an event waits for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum EdgeReason {
    /// What the first thread of a log did while it was the only one may have been for every other.
    Start,
    Spawn,
    Wait,
    /// Something was read from a pipe that was written after it.
    Pipe,
    Descriptor,
    Name,
    Directory,
    Data,
    Lock,
}

impl EdgeReason {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Spawn => "spawn",
            Self::Wait => "wait",
            Self::Pipe => "pipe",
            Self::Descriptor => "descriptor",
            Self::Name => "name",
            Self::Directory => "directory",
            Self::Data => "data",
            Self::Lock => "lock",
        }
    }
}

/// An event that let a thread come into being, or go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Predecessor {
    pub(crate) event_ref: EventRef,
    pub(crate) reason: EdgeReason,
    /// When it ended, on the log's clock.
    pub(crate) end_ns: Option<i64>,
    /// Calls of the whole log that had ended then.
    pub(crate) calls: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_ref(row: u64, thread: u32) -> EventRef {
        EventRef { row, thread }
    }

    fn edges(order: &mut Order) -> Vec<(u64, u64)> {
        order.settle();
        order
            .ready
            .iter()
            .map(|edge| (edge.from, edge.to))
            .collect()
    }

    #[test]
    fn a_descriptor_hands_its_offset_on() {
        let mut order = Order::default();
        order.begin(event_ref(0, 0), &[]);
        let spawn = Predecessor {
            event_ref: event_ref(0, 0),
            reason: EdgeReason::Spawn,
            end_ns: None,
            calls: 0,
        };
        order.begin(event_ref(1, 1), &[spawn]);
        order.begin(event_ref(2, 0), &[]);
        order.file(9, Access::Write);
        order.begin(event_ref(3, 1), &[]);
        order.file(9, Access::Write);
        order.begin(event_ref(4, 1), &[]);
        order.file(9, Access::Read);
        order.begin(event_ref(5, 0), &[]);
        order.file(9, Access::Write);
        assert_eq!(edges(&mut order), [(0, 1), (2, 3), (4, 5)]);
    }

    #[test]
    fn edges_that_follow_from_others_are_left_out() {
        let mut order = Order::default();
        for thread in 0..3 {
            order.begin(event_ref(u64::from(thread), thread), &[]);
        }
        let node = NodeId::from_index(4);
        order.begin(event_ref(3, 0), &[]);
        order.data(node, (0, 10), Access::Write);
        order.begin(event_ref(4, 1), &[]);
        order.data(node, (0, 10), Access::Write);
        order.begin(event_ref(5, 2), &[]);
        order.data(node, (0, 10), Access::Read);
        // 3 → 5 follows from 3 → 4 and 4 → 5.
        let edges = edges(&mut order);
        assert!(edges.contains(&(3, 4)) && edges.contains(&(4, 5)) && !edges.contains(&(3, 5)));
    }

    #[test]
    fn adders_do_not_wait_for_each_other_but_a_listing_waits_for_all() {
        let mut order = Order::default();
        for thread in 0..3 {
            order.begin(event_ref(u64::from(thread), thread), &[]);
        }
        let before = edges(&mut order).len();
        let directory = NodeId::TOP;
        let mut paths = crate::paths::Paths::new();
        for (row, thread, name) in [(3, 0, b"a"), (4, 1, b"b")] {
            let name = paths.names.intern(name);
            order.begin(event_ref(row, thread), &[]);
            order.name(directory, name, Access::Write);
        }
        order.begin(event_ref(5, 2), &[]);
        order.list(directory);
        assert_eq!(edges(&mut order)[before..], [(4, 5), (3, 5)]);
    }
}
