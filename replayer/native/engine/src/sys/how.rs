//! Opening, in the words of openat2.

/// How a file is opened, as openat2 is told it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) flags: u32,
    pub(crate) mode: u32,
    /// What may not be on the way of its path (`RESOLVE_NO_SYMLINKS`…).
    pub(crate) resolve: u32,
}
