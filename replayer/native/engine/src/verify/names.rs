//! What a user's calls do to names: which file is meant by one afterwards, and what is still known of it.

use super::file::Fate;
use super::memory::Change;
use super::verifier::Verifier;
use crate::program::{Naming, file_of};

impl Verifier<'_> {
    pub(crate) fn change(&self, path: &[u8]) -> Change {
        self.memory.change(self.key(path))
    }

    /// The same for the file of a slot.
    pub(crate) fn change_open(&self, slot: u8) -> Option<Change> {
        Some(self.memory.change(self.file(slot)?.key))
    }

    /// A name was removed, if the call succeeded.
    pub(crate) fn removed(&self, change: Change, gone: bool) {
        if gone {
            self.forget(change, Fate::Replaced);
        }
        self.memory.changed(change);
    }

    /// A file was cut: what is still there is as it was.
    pub(crate) fn cut(&self, change: Change) {
        self.memory.changed(change);
    }

    /// A file may go by several names, or by another one than is known.
    pub(crate) fn haunted(&self, change: Change) {
        self.memory.impose(change.key, |file| file.haunted = true);
        self.memory.changed(change);
    }

    /// Contents were moved or copied: nothing is known of them.
    pub(crate) fn blurred(&self, change: Change) {
        let noted = self.memory.impose(change.key, |file| file.opaque = true);
        self.or_missed(change.key, noted);
        self.memory.changed(change);
    }

    /// A name became a link.
    pub(crate) fn linked(&self, change: Change) {
        self.memory.impose(change.key, |file| file.linked = true);
        self.memory.changed(change);
    }

    /// A file got another name, and replaced what had it.
    pub(crate) fn renamed(&self, from: Change, to: Change, path: &[u8]) {
        let (contents, source) = (self.memory.contents(from.key), file_of(from.key));
        let changed = self.memory.changed_at(from.key);
        if self.memory.look(from.key, |file| file.linked) == Some(true) {
            self.memory.blind();
        }
        self.forget(to, Fate::Replaced);
        self.memory.impose(to.key, |file| {
            file.inherit(&contents);
            file.derive(source);
        });
        if !contents.is_haunted() {
            // Of two names of one file rename(2) leaves both.
            self.forget(from, Fate::Replaced);
        }
        let ((_, from_alone), (tick, to_alone)) =
            (self.memory.returned(from), self.memory.returned(to));
        let certain = from_alone && to_alone && from.key != to.key;
        let noted = self.memory.impose(to.key, |file| {
            file.haunted |= !certain;
            let records = contents.certain(changed).filter(|_| certain);
            file.arrive((path, self.user, tick), records);
        });
        self.or_missed(to.key, noted);
        // Not before all is noted: whoever changes, or opens and reads, after this relies on it.
        self.memory.changed(from);
        self.memory.settle(to, tick);
    }

    /// A whole directory changed its name: nothing is claimed any more, unless files go by their last names.
    pub(crate) fn directory_moved(&self) {
        if self.shared.identity.naming == Naming::Paths {
            self.memory.blind();
        }
    }
}
