//! What a user's thread can ask of the kernel. One implementation a confinement, chosen once for a thread.

use super::answer::{Answer, LockRange};
use super::files;
use super::folder::Folder;
use super::scratch::Scratch;
use crate::program::{LockKind, Owner};
use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Calls of one user. Paths are relative to the run's folder; descriptors are those that `open` returned.
pub(crate) trait Kernel {
    /// False when nothing is called: contents cannot be checked then.
    const REAL: bool = true;

    /// Confine this thread to a run's folder.
    fn enter(folder: &Arc<Folder>) -> Answer<Self>
    where
        Self: Sized;

    /// Close what the last path call needed beside its result (outside of its timing).
    #[inline]
    fn tidy(&self) {}

    fn open(&self, path: &CStr, flags: u32, mode: u32) -> Answer<RawFd>;
    /// The size.
    fn stat(&self, path: &CStr) -> Answer<u64>;
    /// The size.
    fn lstat(&self, path: &CStr) -> Answer<u64>;
    fn access(&self, path: &CStr, mode: u32) -> Answer;
    fn mkdir(&self, path: &CStr, mode: u32) -> Answer;
    fn rmdir(&self, path: &CStr) -> Answer;
    fn unlink(&self, path: &CStr) -> Answer;
    fn rename(&self, from: &CStr, to: &CStr, flags: u32) -> Answer;
    fn link(&self, from: &CStr, to: &CStr) -> Answer;
    fn symlink(&self, target: &CStr, path: &CStr) -> Answer;
    fn readlink(&self, path: &CStr, buffer: Scratch) -> Answer<u64>;
    fn truncate(&self, path: &CStr, size: u64) -> Answer;
    fn chmod(&self, path: &CStr, mode: u32) -> Answer;
    fn chown(&self, path: &CStr, owner: Owner) -> Answer;
    /// `None`: now.
    fn utimens(&self, path: &CStr, mtime_ns: Option<u64>) -> Answer;
    fn getxattr(&self, path: &CStr, name: &CStr, buffer: Scratch) -> Answer<u64>;
    fn setxattr(&self, path: &CStr, name: &CStr, value: &[u8]) -> Answer;
    fn removexattr(&self, path: &CStr, name: &CStr) -> Answer;
    fn listxattr(&self, path: &CStr, buffer: Scratch) -> Answer<u64>;

    #[inline]
    fn close(&self, file: RawFd) -> Answer {
        files::close(file)
    }
    #[inline]
    fn read(&self, file: RawFd, buffer: Scratch) -> Answer<u64> {
        files::read(file, buffer)
    }
    #[inline]
    fn pread(&self, file: RawFd, buffer: Scratch, offset: u64) -> Answer<u64> {
        files::pread(file, buffer, offset)
    }
    #[inline]
    fn write(&self, file: RawFd, bytes: &[u8]) -> Answer<u64> {
        files::write(file, bytes)
    }
    #[inline]
    fn pwrite(&self, file: RawFd, bytes: &[u8], offset: u64) -> Answer<u64> {
        files::pwrite(file, bytes, offset)
    }
    fn lseek(&self, file: RawFd, offset: i64, whence: u32) -> Answer<u64> {
        files::lseek(file, offset, whence)
    }
    fn fsync(&self, file: RawFd) -> Answer {
        files::fsync(file)
    }
    fn fdatasync(&self, file: RawFd) -> Answer {
        files::fdatasync(file)
    }
    /// The size.
    fn fstat(&self, file: RawFd) -> Answer<u64> {
        files::fstat(file)
    }
    fn ftruncate(&self, file: RawFd, size: u64) -> Answer {
        files::ftruncate(file, size)
    }
    fn fallocate(&self, file: RawFd, mode: u32, range: (u64, u64)) -> Answer {
        files::fallocate(file, mode, range)
    }
    fn fchmod(&self, file: RawFd, mode: u32) -> Answer {
        files::fchmod(file, mode)
    }
    fn fchown(&self, file: RawFd, owner: Owner) -> Answer {
        files::fchown(file, owner)
    }
    fn futimens(&self, file: RawFd, mtime_ns: Option<u64>) -> Answer {
        files::futimens(file, mtime_ns)
    }
    fn flock(&self, file: RawFd, kind: LockKind, wait: bool) -> Answer {
        files::flock(file, kind, wait)
    }
    fn fcntl_lock(&self, file: RawFd, range: LockRange) -> Answer {
        files::fcntl_lock(file, range)
    }
    fn getdents(&self, file: RawFd, buffer: Scratch) -> Answer<u64> {
        files::getdents(file, buffer)
    }
    fn copy_file_range(&self, from: RawFd, to: RawFd, size: u64) -> Answer<u64> {
        files::copy_file_range(from, to, size)
    }
    fn sendfile(&self, from: RawFd, sink: RawFd, size: u64) -> Answer<u64> {
        files::sendfile(from, sink, size)
    }
    /// Returns the size of the file.
    fn mmap_read(&self, file: RawFd) -> Answer<u64> {
        files::mmap_read(file)
    }
}
