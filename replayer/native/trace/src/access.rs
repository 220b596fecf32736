//! How events use what they share.

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
