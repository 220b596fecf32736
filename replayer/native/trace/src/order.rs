//! Which event must wait for which: edges between threads, beside the program order of each thread.
//!
//! The rules are those of ROOT (Weiss and others, SOSP 2013): the life of a descriptor, the offset of a description, names
//! made, removed and given anew, and bytes written before they are read, and locks. Edges that follow from others are
//! left out, by what each thread is known to have waited for already (vector clocks).
//!
//! An edge always leads from an earlier row to a later one, so that no cycle can arise.

use crate::access::Access;
use crate::cause::{Cause, Reason};
use crate::knowledge::Knowledge;
use crate::paths::NameId;
use crate::ranges::Ranges;
use crate::seat::{Seat, put};
use crate::tree::NodeId;
use rustc_hash::FxHashMap;

/// `to` waits for `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Resource {
    File(u32),
    Name(NodeId, NameId),
    Directory(NodeId),
    Entries(NodeId),
    Lock(NodeId),
    /// A lock, as one description has it.
    Held(u32),
    /// Who has the locks of a file, as those see it who are refused one.
    Holders(NodeId),
}

/// Who used a resource last, as far as later uses may have to wait.
#[derive(Debug, Default)]
struct Uses {
    write: Option<Seat>,
    readers: Vec<Seat>,
    adders: Vec<Seat>,
}

/// What has been used by whom, as far as later events may have to wait for it.
#[derive(Debug, Default)]
pub(crate) struct Order {
    uses: FxHashMap<Resource, Uses>,
    data: FxHashMap<NodeId, Ranges>,
    knowledge: Knowledge,
    /// The last event of each thread.
    last: Vec<Option<Seat>>,
    /// The last event of the first thread before there was a second one.
    alone: Option<Seat>,
    /// An event after which names may lead elsewhere.
    barrier: Option<Seat>,
    now: Option<Seat>,
    candidates: Vec<(Seat, Reason)>,
    /// Edges that wait to be written.
    pub(crate) ready: Vec<Edge>,
}

impl Order {
    /// Whether there is one thread only: nothing has to wait.
    pub(crate) fn is_solo(&self) -> bool {
        self.last.len() <= 1
    }

    /// The next event; `causes` are those that let its thread come into being or go on.
    pub(crate) fn begin(&mut self, seat: Seat, causes: &[Cause]) {
        self.settle();
        let place = usize::try_from(seat.thread).unwrap_or(usize::MAX);
        let is_new = place >= self.last.len();
        if is_new {
            // What the first thread used before there was a second one was not written down.
            if self.is_solo() {
                self.alone = self.last.first().copied().flatten();
            }
            // Whatever came later waits for it already.
            let told = |seat: &Seat| causes.iter().any(|cause| cause.seat.row >= seat.row);
            let alone = self.alone.filter(|seat| !told(seat));
            self.candidates
                .extend(alone.map(|seat| (seat, Reason::Start)));
            self.last.resize(place + 1, None);
        }
        let before = self.last.get(place).copied().flatten();
        let causes = causes.iter().map(|cause| (cause.seat, cause.reason));
        self.candidates.extend(causes);
        if let Some(barrier) = self.barrier
            && before.is_none_or(|before| before.row < barrier.row)
        {
            self.candidates.push((barrier, Reason::Directory));
        }
        self.now = Some(seat);
        if let Some(last) = self.last.get_mut(place) {
            *last = Some(seat);
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
            .sort_unstable_by_key(|&(seat, reason)| (std::cmp::Reverse(seat.row), reason));
        let mut candidates = std::mem::take(&mut self.candidates);
        for (from, reason) in candidates.drain(..) {
            if from.thread != now.thread && from.row < now.row && self.knowledge.learn(now, from) {
                self.ready.push(Edge {
                    from: from.row,
                    to: now.row,
                    reason,
                });
            }
        }
        self.knowledge.note(now);
        // Its room is used again.
        self.candidates = candidates;
    }

    /// The event opens, uses or closes a description.
    pub(crate) fn file(&mut self, slot: u32, access: Access) {
        self.touch(Resource::File(slot), access, Reason::Descriptor);
    }

    /// A description is gone: nothing can use it any more.
    pub(crate) fn forget_file(&mut self, slot: u32) {
        self.uses.remove(&Resource::File(slot));
        self.uses.remove(&Resource::Held(slot));
    }

    /// The event looks a name up, or changes what it means.
    pub(crate) fn name(&mut self, directory: NodeId, name: NameId, access: Access) {
        self.touch(Resource::Name(directory, name), access, Reason::Name);
        if access == Access::Write {
            self.touch(Resource::Entries(directory), Access::Add, Reason::Directory);
        }
        self.touch(
            Resource::Directory(directory),
            Access::Read,
            Reason::Directory,
        );
    }

    /// The event reads the entries of a directory, or needs it empty: whether they could be read or not.
    pub(crate) fn list(&mut self, directory: NodeId) {
        self.touch(
            Resource::Directory(directory),
            Access::Read,
            Reason::Directory,
        );
        self.touch(
            Resource::Entries(directory),
            Access::Read,
            Reason::Directory,
        );
    }

    /// The event makes or removes a directory.
    pub(crate) fn directory(&mut self, directory: NodeId) {
        self.touch(
            Resource::Directory(directory),
            Access::Write,
            Reason::Directory,
        );
    }

    /// The event takes a lock of a file.
    pub(crate) fn lock(&mut self, node: NodeId, slot: u32, access: Access) {
        self.touch(Resource::Held(slot), Access::Write, Reason::Lock);
        self.touch(Resource::Holders(node), Access::Add, Reason::Lock);
        self.touch(Resource::Lock(node), access, Reason::Lock);
    }

    /// The event is refused a lock that others have: they take it before and let it go after that.
    pub(crate) fn refuse(&mut self, node: NodeId, slot: u32) {
        self.touch(Resource::Held(slot), Access::Write, Reason::Lock);
        self.touch(Resource::Holders(node), Access::Read, Reason::Lock);
    }

    /// The event lets a lock go: whoever takes it next waits for this, and this for nobody but those who took it or were refused it.
    pub(crate) fn unlock(&mut self, node: NodeId, slot: u32) {
        self.touch(Resource::Held(slot), Access::Write, Reason::Lock);
        self.touch(Resource::Holders(node), Access::Add, Reason::Lock);
        if let Some(now) = self.now.filter(|_| !self.is_solo()) {
            put(
                &mut self.uses.entry(Resource::Lock(node)).or_default().adders,
                now,
            );
        }
    }

    /// The event changes where names lead: everything before comes before, everything after comes after.
    pub(crate) fn turn(&mut self) {
        if self.is_solo() {
            return;
        }
        let others = self
            .last
            .iter()
            .flatten()
            .map(|&seat| (seat, Reason::Directory));
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
        ranges.touch(now, span, access, |seat| {
            candidates.push((seat, Reason::Data));
        });
    }

    fn touch(&mut self, resource: Resource, access: Access, reason: Reason) {
        if self.is_solo() {
            return;
        }
        let Some(now) = self.now else {
            return;
        };
        let uses = self.uses.entry(resource).or_default();
        uses.touch(now, access, reason, &mut self.candidates);
    }
}

impl Uses {
    fn touch(
        &mut self,
        now: Seat,
        access: Access,
        reason: Reason,
        found: &mut Vec<(Seat, Reason)>,
    ) {
        found.extend(self.write.map(|seat| (seat, reason)));
        if access != Access::Read {
            found.extend(self.readers.iter().map(|&seat| (seat, reason)));
        }
        if access != Access::Add {
            found.extend(self.adders.iter().map(|&seat| (seat, reason)));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(row: u64, thread: u32) -> Seat {
        Seat { row, thread }
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
        order.begin(seat(0, 0), &[]);
        let spawn = Cause {
            seat: seat(0, 0),
            reason: Reason::Spawn,
            end_ns: None,
            calls: 0,
        };
        order.begin(seat(1, 1), &[spawn]);
        order.begin(seat(2, 0), &[]);
        order.file(9, Access::Write);
        order.begin(seat(3, 1), &[]);
        order.file(9, Access::Write);
        order.begin(seat(4, 1), &[]);
        order.file(9, Access::Read);
        order.begin(seat(5, 0), &[]);
        order.file(9, Access::Write);
        assert_eq!(edges(&mut order), [(0, 1), (2, 3), (4, 5)]);
    }

    #[test]
    fn edges_that_follow_from_others_are_left_out() {
        let mut order = Order::default();
        for thread in 0..3 {
            order.begin(seat(u64::from(thread), thread), &[]);
        }
        let node = NodeId::from_index(4);
        order.begin(seat(3, 0), &[]);
        order.data(node, (0, 10), Access::Write);
        order.begin(seat(4, 1), &[]);
        order.data(node, (0, 10), Access::Write);
        order.begin(seat(5, 2), &[]);
        order.data(node, (0, 10), Access::Read);
        // 3 → 5 follows from 3 → 4 and 4 → 5.
        let edges = edges(&mut order);
        assert!(edges.contains(&(3, 4)) && edges.contains(&(4, 5)) && !edges.contains(&(3, 5)));
    }

    #[test]
    fn adders_do_not_wait_for_each_other_but_a_listing_waits_for_all() {
        let mut order = Order::default();
        for thread in 0..3 {
            order.begin(seat(u64::from(thread), thread), &[]);
        }
        let before = edges(&mut order).len();
        let directory = NodeId::TOP;
        let mut paths = crate::paths::Paths::new();
        for (row, thread, name) in [(3, 0, b"a"), (4, 1, b"b")] {
            let name = paths.names.intern(name);
            order.begin(seat(row, thread), &[]);
            order.name(directory, name, Access::Write);
        }
        order.begin(seat(5, 2), &[]);
        order.list(directory);
        assert_eq!(edges(&mut order)[before..], [(4, 5), (3, 5)]);
    }
}
