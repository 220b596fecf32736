//! No calls at all: every op succeeds at once. What is left is the engine's own cost.

use super::answer::{Answer, LockRange};
use super::folder::Folder;
use super::kernel::Kernel;
use super::scratch::Scratch;
use crate::program::LockKind;
use crate::program::Owner;
use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Pretends. Reads until the end find it at once; one descriptor stands for all files.
#[derive(Debug)]
pub(crate) struct Null;

const FILE: RawFd = RawFd::MAX;

macro_rules! succeed {
    ($($name:ident($($operand:ty),*) $(-> $value:literal)?;)+) => {
        $(succeed!(@one $name ($($operand),*) $($value)?);)+
    };
    (@one $name:ident ($a:ty) ) => { #[inline] fn $name(&self, _: $a) -> Answer { Ok(()) } };
    (@one $name:ident ($a:ty, $b:ty) ) => { #[inline] fn $name(&self, _: $a, _: $b) -> Answer { Ok(()) } };
    (@one $name:ident ($a:ty, $b:ty, $c:ty) ) => { #[inline] fn $name(&self, _: $a, _: $b, _: $c) -> Answer { Ok(()) } };
    (@one $name:ident ($a:ty) $v:literal) => { #[inline] fn $name(&self, _: $a) -> Answer<u64> { Ok($v) } };
    (@one $name:ident ($a:ty, $b:ty) $v:literal) => { #[inline] fn $name(&self, _: $a, _: $b) -> Answer<u64> { Ok($v) } };
    (@one $name:ident ($a:ty, $b:ty, $c:ty) $v:literal) => { #[inline] fn $name(&self, _: $a, _: $b, _: $c) -> Answer<u64> { Ok($v) } };
}

impl Kernel for Null {
    const REAL: bool = false;

    fn enter(_: &Arc<Folder>) -> Answer<Null> {
        Ok(Null)
    }
    #[inline]
    fn open(&self, _: &CStr, _: u32, _: u32) -> Answer<RawFd> {
        Ok(FILE)
    }
    #[inline]
    fn write(&self, _: RawFd, bytes: &[u8]) -> Answer<u64> {
        Ok(bytes.len() as u64)
    }
    #[inline]
    fn pwrite(&self, _: RawFd, bytes: &[u8], _: u64) -> Answer<u64> {
        Ok(bytes.len() as u64)
    }

    succeed! {
        stat(&CStr) -> 0;
        lstat(&CStr) -> 0;
        access(&CStr, u32);
        mkdir(&CStr, u32);
        rmdir(&CStr);
        unlink(&CStr);
        rename(&CStr, &CStr, u32);
        link(&CStr, &CStr);
        symlink(&CStr, &CStr);
        readlink(&CStr, Scratch) -> 0;
        truncate(&CStr, u64);
        chmod(&CStr, u32);
        chown(&CStr, Owner);
        utimens(&CStr, Option<u64>);
        getxattr(&CStr, &CStr, Scratch) -> 0;
        setxattr(&CStr, &CStr, &[u8]);
        removexattr(&CStr, &CStr);
        listxattr(&CStr, Scratch) -> 0;
        close(RawFd);
        read(RawFd, Scratch) -> 0;
        pread(RawFd, Scratch, u64) -> 0;
        lseek(RawFd, i64, u32) -> 0;
        fsync(RawFd);
        fdatasync(RawFd);
        fstat(RawFd) -> 0;
        ftruncate(RawFd, u64);
        fallocate(RawFd, u32, (u64, u64));
        fchmod(RawFd, u32);
        fchown(RawFd, Owner);
        futimens(RawFd, Option<u64>);
        flock(RawFd, LockKind, bool);
        fcntl_lock(RawFd, LockRange);
        getdents(RawFd, Scratch) -> 0;
        copy_file_range(RawFd, RawFd, u64) -> 0;
        sendfile(RawFd, RawFd, u64) -> 0;
        mmap_read(RawFd) -> 0;
    }
}
