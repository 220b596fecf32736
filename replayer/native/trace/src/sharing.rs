//! How each path was used: what users of a replay share, and what each must have for itself.

use crate::paths::{PathId, Paths};

/// What copies of a path many users need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharingLabel {
    SharedReadOnly,
    Private,
    SharedMutable,
}

impl SharingLabel {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SharedReadOnly => "shared read-only",
            Self::Private => "private",
            Self::SharedMutable => "shared mutable",
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, not states"
)]
struct Use {
    changed: bool,
    entries_changed: bool,
    made: bool,
    contended: bool,
    open: u32,
    opener: u32,
}

/// Uses by place.
#[derive(Debug, Default)]
pub(crate) struct PathUsage {
    uses: Vec<Use>,
}

impl PathUsage {
    fn alter(&mut self, path: PathId, alter: impl FnOnce(&mut Use)) {
        let index = path.index();
        if self.uses.len() <= index {
            self.uses.resize(index + 1, Use::default());
        }
        if let Some(place) = self.uses.get_mut(index) {
            alter(place);
        }
    }

    /// A thread opened it; two at a time contend for it.
    pub(crate) fn opened(&mut self, path: PathId, thread: u32) {
        self.alter(path, |place| {
            place.contended |= place.open > 0 && place.opener != thread;
            place.open = place.open.saturating_add(1);
            place.opener = thread;
        });
    }

    pub(crate) fn closed(&mut self, path: PathId) {
        self.alter(path, |place| place.open = place.open.saturating_sub(1));
    }

    /// Its content or attributes were changed.
    pub(crate) fn changed(&mut self, path: PathId) {
        self.alter(path, |place| place.changed = true);
    }

    /// It was made or removed, which changes its directory too.
    pub(crate) fn renewed(&mut self, paths: &Paths, path: PathId, made: bool) {
        self.alter(path, |place| {
            place.changed = true;
            place.made |= made;
        });
        self.alter(paths.parent(path), |place| place.entries_changed = true);
    }

    pub(crate) fn label(&self, path: PathId) -> SharingLabel {
        let place = self.uses.get(path.index()).copied().unwrap_or_default();
        if place.entries_changed && !place.made || place.changed && place.contended {
            SharingLabel::SharedMutable
        } else if place.changed || place.entries_changed {
            SharingLabel::Private
        } else {
            SharingLabel::SharedReadOnly
        }
    }

    /// Whether two threads had it open at once.
    pub(crate) fn is_contended(&self, path: PathId) -> bool {
        self.uses
            .get(path.index())
            .is_some_and(|place| place.contended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_use() {
        let mut paths = Paths::new();
        let directory = paths.child(PathId::TOP, b"d").unwrap();
        let [read, own, shared] =
            [b"r", b"o", b"s"].map(|name| paths.child(directory, name).unwrap());
        let mut usage = PathUsage::default();
        usage.opened(read, 0);
        usage.opened(read, 1);
        usage.renewed(&paths, own, true);
        usage.changed(shared);
        usage.opened(shared, 0);
        usage.opened(shared, 1);
        assert_eq!(usage.label(read), SharingLabel::SharedReadOnly);
        assert_eq!(usage.label(own), SharingLabel::Private);
        assert_eq!(usage.label(shared), SharingLabel::SharedMutable);
        assert_eq!(usage.label(directory), SharingLabel::SharedMutable);
    }
}
