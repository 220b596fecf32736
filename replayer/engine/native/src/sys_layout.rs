//! Kernel calls of the recording and the layout: thin, and safe.

use rustix::fs::{Mode, OFlags};
use std::io;

/// Read the beginning of a small file into a buffer.
pub(crate) fn read_file(path: &str, buffer: &mut [u8]) -> io::Result<usize> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::io::read(&file, buffer)?)
}
