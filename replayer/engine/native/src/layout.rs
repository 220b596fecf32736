//! Laying out, checking, warming, evicting and removing a run's files.

use crate::layout_task::Task;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Link,
}

/// An entry of a dataset, as in the plan.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) link: String,
}

/// Content of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Random,
    Zeros,
    /// Percent of every 4096-byte block that is zeros.
    Compressible(u8),
}

/// A dataset: what of it matters to the layout.
#[derive(Clone, Debug)]
pub(crate) struct DatasetLayout {
    pub(crate) directory: String,
    pub(crate) laid_out: bool,
    /// Scope `user`: a copy for each user below `directory/uN`.
    pub(crate) per_user: bool,
    pub(crate) content: Content,
    pub(crate) entries: Arc<[Entry]>,
}

/// All of a plan that matters to the layout.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) seed: u64,
    pub(crate) users: u32,
    pub(crate) pool_bytes: u64,
    pub(crate) datasets: Vec<DatasetLayout>,
}

/// Create every laid-out dataset (and the empty directories of the others) below the run's folder.
pub(crate) fn lay_out(_folder: OwnedFd, _plan: &Arc<Layout>, _threads: usize) -> Task {
    Task {}
}
/// Compare what is there with the plan.
pub(crate) fn verify(_folder: OwnedFd, _plan: &Arc<Layout>, _threads: usize) -> Task {
    Task {}
}
/// Read every laid-out file once, and stat every entry.
pub(crate) fn warm(_folder: OwnedFd, _plan: &Arc<Layout>, _threads: usize) -> Task {
    Task {}
}
/// fsync and drop from the page cache every laid-out file.
pub(crate) fn evict(_folder: OwnedFd, _plan: &Arc<Layout>, _threads: usize) -> Task {
    Task {}
}
/// Remove everything inside but the marker.
pub(crate) fn wipe(_folder: OwnedFd, _threads: usize) -> Task {
    Task {}
}
/// Remove everything inside, the marker, and the folder itself: `name` in `parent`.
pub(crate) fn remove(_folder: OwnedFd, _parent: OwnedFd, _name: &str, _threads: usize) -> Task {
    Task {}
}
