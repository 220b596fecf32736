//! What a user's thread can ask of the kernel by path. One implementation a confinement, chosen once for a thread; calls on open files
//! are the same in every confinement (`files`, `data`, `controls`).
#![expect(
    unsafe_code,
    reason = "rustix has no readlinkat for shared buffers, and no truncate"
)]

use super::attributes::Attributed;
use super::files::{close, length, signed, size_of};
use super::folder::Folder;
use super::naming::link_open;
use super::operands::{Answer, At, How, Links, Times};
use super::scratch::Scratch;
use crate::program::Owner;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

/// A directory, and a name in it.
pub(crate) type Name<'a> = (BorrowedFd<'static>, &'a CStr);

/// Flags of faccessat2 that are handed on.
pub(super) const ACCESS_FLAGS: u32 = (libc::AT_EACCESS | libc::AT_SYMLINK_NOFOLLOW).cast_unsigned();

fn mode_of(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

/// Calls by path of one user. Nothing outside of the run's folder is reached, whatever the paths are.
pub(crate) trait Kernel: Sized {
    /// False when nothing is called: every op succeeds at once.
    const REAL: bool = true;

    /// Confine this thread to a run's folder.
    fn enter(folder: &Arc<Folder>) -> Answer<Self>;

    /// Close what the last path call needed beside its result (outside of its timing).
    #[inline]
    fn tidy(&self) {}

    /// Where a call begins that changes what a name means: it follows no link in the last place.
    fn name<'a>(&self, at: At<'a>) -> Answer<Name<'a>>;
    /// The same of a call that changes nothing.
    fn look<'a>(&self, at: At<'a>) -> Answer<Name<'a>>;
    /// Call with a path that leads to the same object and nowhere else.
    fn by_path<T>(
        &self,
        path: &CStr,
        links: Links,
        call: impl FnOnce(&CStr) -> Answer<T>,
    ) -> Answer<T>;
    fn open(&self, at: At<'_>, how: How) -> Answer<RawFd>;
    /// The size of what a path leads to, links followed.
    fn stat(&self, at: At<'_>) -> Answer;
    fn statx(&self, at: At<'_>, links: Links, sync: u32) -> Answer;
    fn access(&self, at: At<'_>, mode: u32, flags: u32) -> Answer;
    fn chown(&self, at: At<'_>, owner: Owner, links: Links) -> Answer;

    /// The size.
    #[inline]
    fn lstat(&self, at: At<'_>) -> Answer {
        let (parent, leaf) = self.look(at)?;
        let facts = rustix::fs::statat(parent, leaf, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(size_of(&facts))
    }
    /// Look a directory up, as chdir does; nobody's working directory changes.
    fn look_up(&self, at: At<'_>) -> Answer {
        let how = How {
            flags: (OFlags::PATH | OFlags::DIRECTORY).bits(),
            mode: 0,
            resolve: 0,
        };
        // Closing is timed with it: a descriptor costs less than a chdir does.
        close(self.open(at, how)?)
    }
    fn statfs(&self, path: &CStr) -> Answer {
        self.by_path(path, Links::Follow, |path| {
            rustix::fs::statfs(path).map(|_| 0)
        })
    }
    fn mkdir(&self, at: At<'_>, mode: u32) -> Answer {
        let (parent, leaf) = self.name(at)?;
        rustix::fs::mkdirat(parent, leaf, mode_of(mode)).map(|()| 0)
    }
    /// An empty regular file.
    fn mknod(&self, at: At<'_>, mode: u32) -> Answer {
        let (parent, leaf) = self.name(at)?;
        rustix::fs::mknodat(parent, leaf, FileType::RegularFile, mode_of(mode), 0).map(|()| 0)
    }
    fn rmdir(&self, at: At<'_>) -> Answer {
        let (parent, leaf) = self.name(at)?;
        rustix::fs::unlinkat(parent, leaf, AtFlags::REMOVEDIR).map(|()| 0)
    }
    #[inline]
    fn unlink(&self, at: At<'_>) -> Answer {
        let (parent, leaf) = self.name(at)?;
        rustix::fs::unlinkat(parent, leaf, AtFlags::empty()).map(|()| 0)
    }
    fn readlink(&self, at: At<'_>, buffer: Scratch) -> Answer {
        let (parent, leaf) = self.look(at)?;
        let (parent, leaf) = (parent.as_raw_fd(), leaf.as_ptr());
        let (address, len) = (buffer.address(), buffer.len());
        // SAFETY: a NUL-terminated path and a writable buffer of this length.
        length(unsafe { libc::syscall(libc::SYS_readlinkat, parent, leaf, address, len) })
    }
    fn rename(&self, from: At<'_>, to: At<'_>, flags: u32) -> Answer {
        let ((from, old), (to, new)) = (self.name(from)?, self.name(to)?);
        let flags = RenameFlags::from_bits_retain(flags);
        rustix::fs::renameat_with(from, old, to, new, flags).map(|()| 0)
    }
    fn link(&self, from: At<'_>, to: At<'_>, links: Links) -> Answer {
        match links {
            Links::Keep => {
                let ((from, old), (to, new)) = (self.name(from)?, self.name(to)?);
                rustix::fs::linkat(from, old, to, new, AtFlags::empty()).map(|()| 0)
            }
            Links::Follow => {
                let (to, new) = self.name(to)?;
                self.by_path(from.whole, links, |old| {
                    rustix::fs::linkat(CWD, old, to, new, AtFlags::SYMLINK_FOLLOW).map(|()| 0)
                })
            }
        }
    }
    /// Give a name to what is open, which may have none.
    fn link_open(&self, file: RawFd, to: At<'_>) -> Answer {
        let (to, new) = self.name(to)?;
        link_open(file, to, new)
    }
    fn symlink(&self, target: &CStr, at: At<'_>) -> Answer {
        let (parent, leaf) = self.name(at)?;
        rustix::fs::symlinkat(target, parent, leaf).map(|()| 0)
    }
    fn truncate(&self, path: &CStr, size: u64) -> Answer {
        let size = signed(size)?;
        self.by_path(path, Links::Follow, |path| {
            // SAFETY: a NUL-terminated path.
            length(unsafe { libc::syscall(libc::SYS_truncate, path.as_ptr(), size) })
        })
    }
    fn chmod(&self, at: At<'_>, mode: u32) -> Answer {
        self.by_path(at.whole, Links::Follow, |path| {
            rustix::fs::chmodat(CWD, path, mode_of(mode), AtFlags::empty()).map(|()| 0)
        })
    }
    fn utimens(&self, at: At<'_>, times: Times, links: Links) -> Answer {
        let (times, flags) = (times.timestamps(), links.at_flags());
        match links {
            Links::Keep => {
                let (parent, leaf) = self.name(at)?;
                rustix::fs::utimensat(parent, leaf, &times, flags).map(|()| 0)
            }
            Links::Follow => self.by_path(at.whole, links, |path| {
                rustix::fs::utimensat(CWD, path, &times, flags).map(|()| 0)
            }),
        }
    }
    fn attributed(
        &self,
        on: Attributed<'_>,
        call: impl FnOnce(Attributed<'_>) -> Answer,
    ) -> Answer {
        match on {
            Attributed::File(_) => call(on),
            Attributed::Path(path, links) => {
                self.by_path(path, links, |path| call(Attributed::Path(path, links)))
            }
        }
    }
    fn getxattr(&self, on: Attributed<'_>, name: &CStr, buffer: Scratch) -> Answer {
        self.attributed(on, |on| on.get(name, buffer))
    }
    fn setxattr(&self, on: Attributed<'_>, name: &CStr, value: (&[u8], u32)) -> Answer {
        self.attributed(on, |on| on.set(name, value))
    }
    fn removexattr(&self, on: Attributed<'_>, name: &CStr) -> Answer {
        self.attributed(on, |on| on.remove(name))
    }
    fn listxattr(&self, on: Attributed<'_>, buffer: Scratch) -> Answer {
        self.attributed(on, |on| on.list(buffer))
    }
}

/// No calls at all: what is left is the engine's own cost.
#[derive(Debug)]
pub(crate) struct Null;

/// Nobody calls where `REAL` is false; who does is told so.
impl Kernel for Null {
    const REAL: bool = false;

    fn enter(_: &Arc<Folder>) -> Answer<Null> {
        Ok(Null)
    }
    fn name<'a>(&self, _: At<'a>) -> Answer<Name<'a>> {
        Err(Errno::NOSYS)
    }
    fn look<'a>(&self, _: At<'a>) -> Answer<Name<'a>> {
        Err(Errno::NOSYS)
    }
    fn by_path<T>(&self, _: &CStr, _: Links, _: impl FnOnce(&CStr) -> Answer<T>) -> Answer<T> {
        Err(Errno::NOSYS)
    }
    fn open(&self, _: At<'_>, _: How) -> Answer<RawFd> {
        Err(Errno::NOSYS)
    }
    fn stat(&self, _: At<'_>) -> Answer {
        Err(Errno::NOSYS)
    }
    fn statx(&self, _: At<'_>, _: Links, _: u32) -> Answer {
        Err(Errno::NOSYS)
    }
    fn access(&self, _: At<'_>, _: u32, _: u32) -> Answer {
        Err(Errno::NOSYS)
    }
    fn chown(&self, _: At<'_>, _: Owner, _: Links) -> Answer {
        Err(Errno::NOSYS)
    }
}
