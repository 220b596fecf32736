//! What statfs says of a target.

use std::io;
use std::os::fd::BorrowedFd;

/// What statfs says of a target.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names are those of statvfs(3)")]
pub struct Space {
    pub bytes_total: u64,
    pub bytes_free: u64,
    pub inodes_total: u64,
    pub inodes_free: u64,
    pub block_bytes: u64,
    pub read_only: bool,
    /// The magic number of the file system's type (statfs(2)).
    pub kind: u64,
}

/// Ask the file system that a descriptor is on.
pub(crate) fn space(folder: BorrowedFd<'_>) -> io::Result<Space> {
    let whole = rustix::fs::fstatvfs(folder)?;
    let kind = rustix::fs::fstatfs(folder)?;
    Ok(Space {
        bytes_total: whole.f_blocks.saturating_mul(whole.f_frsize),
        bytes_free: whole.f_bavail.saturating_mul(whole.f_frsize),
        inodes_total: whole.f_files,
        inodes_free: whole.f_favail,
        block_bytes: whole.f_bsize,
        read_only: whole.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
        kind: u64::try_from(kind.f_type).unwrap_or_default(),
    })
}
