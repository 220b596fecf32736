//! What descriptors refer to: as it was followed, and as the log shows it.

use crate::call::{Call, FileArg, FileKind, Gone, OnExec};
use crate::constants::{O_APPEND, O_CLOEXEC, O_TMPFILE};
use crate::open_files::Description;
use crate::paths::PathId;
use crate::scope::Location;
use crate::tasks::FdTarget;
use crate::tracker::{PendingOpen, Tracker};
use crate::tree::{Found, NodeId};

/// Why nothing is made again with a descriptor whose opening the log does not show.
const RECEIVED: &str = "descriptor that was received";
/// Why not with one whose file has no name: nothing tells when it was opened.
const REMOVED: &str = "file that had been removed before";

impl Tracker {
    /// What a descriptor holds; one that the log shows but never opened was open before.
    ///
    /// None where nothing is known.
    pub(crate) fn held(&mut self, task: u64, file: FileArg<'_>) -> Option<FdTarget> {
        let held = self.tasks.held(task, file.number);
        let Some(shown) = file.shown else {
            return match held {
                // Standard input and output are seldom files of a tree.
                None if (0..=2).contains(&file.number) => Some(FdTarget::Outside(None)),
                held => held,
            };
        };
        match held {
            Some(FdTarget::Lost(why)) => Some(FdTarget::Lost(why)),
            Some(FdTarget::Inside(id)) => {
                let same = self
                    .files
                    .get(id)
                    .is_some_and(|description| description.shown == shown);
                if same || self.still_holds(task, id, file, shown) || self.overlaps.names_move {
                    return Some(FdTarget::Inside(id));
                }
                self.counts.files_corrected += 1;
                self.release_silently(id);
                Some(self.adopt(task, file, shown))
            }
            Some(FdTarget::Outside(absolute)) => match self.locate_shown(task, shown) {
                Some(Location::Inside(_)) => Some(self.adopt(task, file, shown)),
                Some(Location::Outside(now)) => Some(FdTarget::Outside(Some(now))),
                _ => Some(FdTarget::Outside(absolute)),
            },
            // A pipe is shown as `pipe:[7]`: the number has been given out again.
            Some(FdTarget::Pipe(_)) if shown.first() == Some(&b'/') => {
                Some(self.adopt(task, file, shown))
            }
            Some(FdTarget::Pipe(end)) => Some(FdTarget::Pipe(end)),
            None => Some(self.adopt(task, file, shown)),
        }
    }

    /// Whether a description may be shown by another text than before: its file was renamed, or has no name any more.
    fn still_holds(&mut self, task: u64, id: u32, file: FileArg<'_>, shown: &[u8]) -> bool {
        let location = self.locate_shown(task, shown);
        let Some(description) = self.files.get(id) else {
            return false;
        };
        let (path, node) = (description.place, description.node);
        let fits = match location {
            // Another file may have the name by now.
            Some(_) if file.deleted => true,
            Some(Location::Inside(place)) if place == path => true,
            Some(Location::Inside(place)) => {
                let found = self.tree.find(place, false).node();
                found.is_some() && node.is_none_or(|node| Some(node) == found)
            }
            // Without -y at the opening, or through a link: nothing was shown before.
            Some(_) => description.shown.is_empty(),
            None => false,
        };
        if fits && let Some(description) = self.files.get_mut(id) {
            description.shown = shown.to_vec();
        }
        fits
    }

    /// Take a descriptor for what the log shows: it was opened before the log began, or was received from another process.
    fn adopt(&mut self, task: u64, file: FileArg<'_>, shown: &[u8]) -> FdTarget {
        let held = match self.locate_shown(task, shown) {
            Some(Location::Inside(path)) => self.adopt_inside(path, file.deleted, shown),
            Some(Location::Outside(absolute)) => FdTarget::Outside(Some(absolute)),
            _ => FdTarget::Outside(None),
        };
        self.tasks
            .hold(task, file.number, held.clone(), OnExec::Keep);
        held
    }

    fn adopt_inside(&mut self, path: PathId, deleted: bool, shown: &[u8]) -> FdTarget {
        let node = self.tree.find(path, true).node();
        if deleted || node.is_some_and(|node| self.tree.was_made(node)) {
            return self.receive((path, node), deleted, shown);
        }
        let placed = self.tree.saw(path, true, FileKind::Unknown);
        let node = placed.map(|(node, _)| node);
        let id = self.files.add(Description {
            offset: None,
            untold: self.tree.is_special(node),
            ..Description::new(path, node, shown)
        });
        self.open_before(id);
        FdTarget::Inside(id)
    }

    /// A description was open before: an event will tell, before the first that uses it.
    pub(crate) fn open_before(&mut self, id: u32) {
        self.counts.inherited += 1;
        let told = self.files.get(id).filter(|open| !open.untold);
        self.adopted.extend(told.map(|open| PendingOpen {
            path: open.path,
            slot: open.slot,
            known: None,
        }));
    }

    /// Take a descriptor that cannot have been open at the begin of the trace for one that was received (`SCM_RIGHTS`,
    /// `pidfd_getfd`): it shares the description that is open elsewhere, the newest if there are several.
    fn receive(
        &mut self,
        (path, node): (PathId, Option<NodeId>),
        deleted: bool,
        shown: &[u8],
    ) -> FdTarget {
        let id = self.files.newest(|description| {
            description.place == path && (description.node == node) != deleted
        });
        let Some(id) = id else {
            let before = deleted && self.was_never_met(path);
            return FdTarget::Lost(if before { REMOVED } else { RECEIVED });
        };
        self.files.hold(id);
        if let Some(description) = self.files.get_mut(id) {
            description.shown = shown.to_vec();
        }
        FdTarget::Inside(id)
    }

    /// Whether no event has made, found or removed a name.
    fn was_never_met(&mut self, path: PathId) -> bool {
        match self.tree.find(path, false) {
            Found::Absent(directory, name) | Found::Unknown(directory, name) => {
                self.tree.entry(directory, name).is_none()
            }
            Found::NoDirectory { known, .. } => !known,
            Found::Node(..) | Found::NotDirectory | Found::Loop => false,
        }
    }

    /// A descriptor was open before the log began, with these flags and at this position.
    pub(crate) fn inherited(
        &mut self,
        call: &Call<'_>,
        file: FileArg<'_>,
        (flags, offset): (i64, i64),
        (gone, number): (Option<Gone>, Option<i64>),
    ) {
        if let Some(gone) = gone {
            self.hold_stand_in(call.task, file, gone);
        }
        let Some(FdTarget::Inside(id)) = self.held(call.task, file) else {
            self.counts.out_of_scope.add(call.name);
            return;
        };
        self.counts.followed.add(call.name);
        self.files
            .inherited
            .extend(number.map(|number| (number, id)));
        let Some(description) = self.files.get_mut(id) else {
            return;
        };
        // Its stand-in has a name, whatever it was opened with.
        let flags = if flags & O_TMPFILE == O_TMPFILE {
            flags & !O_TMPFILE
        } else {
            flags
        };
        description.offset = Some(offset);
        description.appends = flags & O_APPEND != 0;
        let slot = description.slot;
        let mut adopted = self.adopted.iter_mut().rev();
        if let Some(adopted) = adopted.find(|adopted| adopted.slot == slot) {
            adopted.known = Some((flags, offset));
        }
        if flags & O_CLOEXEC != 0 {
            self.tasks
                .set_on_exec(call.task, file.number, OnExec::Close);
        }
    }

    /// A descriptor of a description that was inherited already: of the same process or another.
    pub(crate) fn inherited_once_more(
        &mut self,
        call: &Call<'_>,
        file: FileArg<'_>,
        id: u32,
        flags: i64,
    ) {
        self.counts.followed.add(call.name);
        self.files.hold(id);
        let on_exec = if flags & O_CLOEXEC != 0 {
            OnExec::Close
        } else {
            OnExec::Keep
        };
        self.hold_new(call.task, file.number, FdTarget::Inside(id), on_exec);
    }

    /// A descriptor was given out. If it was thought to be in use, its end was not seen.
    pub(crate) fn hold_new(&mut self, task: u64, fd: i64, held: FdTarget, on_exec: OnExec) {
        if let Some(before) = self.tasks.hold(task, fd, held, on_exec) {
            self.counts.files_corrected += 1;
            self.release_silently(before);
        }
    }

    pub(crate) fn release_silently(&mut self, id: u32) {
        if let Some(description) = self.files.release(id) {
            self.usage.closed(description.path);
            self.order.forget_file(description.slot);
        }
    }
}
