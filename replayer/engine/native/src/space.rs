//! What statfs says of a target.

use pyo3::prelude::*;
use std::io;
use std::os::fd::BorrowedFd;

/// What statfs says of a target.
#[pyclass(
    frozen,
    get_all,
    skip_from_py_object,
    module = "replayer.engine._native"
)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    bytes_total: u64,
    bytes_free: u64,
    inodes_total: u64,
    inodes_free: u64,
    block_bytes: u64,
    read_only: bool,
    kind: u64,
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
