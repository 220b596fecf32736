//! Calls of a thread that may not change its root: each path is resolved beneath the run's folder first, as a whole.

use super::files::{access, borrow, chown_of, close, fstat, statx_of};
use super::folder::{Folder, open_beneath, open_so};
use super::kernel::{ACCESS_FLAGS, Kernel, Name};
use super::naming::prepare_to_link;
use super::operands::{Answer, At, How, Links};
use crate::program::Owner;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::path::DecInt;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Resolves with openat2, then calls by descriptor. Resolving is part of the op, closing what it took is not.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// The run's folder.
    root: Arc<Folder>,
    /// Descriptors to close after the op.
    taken: [Cell<Option<RawFd>>; 2],
    /// A path or a part of one, with its NUL.
    text: RefCell<Vec<u8>>,
}

impl Guarded {
    /// Remember a descriptor until the op is over.
    fn keep(&self, file: OwnedFd) -> RawFd {
        let file = file.into_raw_fd();
        match &self.taken {
            [first, _] if first.get().is_none() => first.set(Some(file)),
            [_, second] => second.set(Some(file)),
        }
        file
    }

    fn resolve(&self, path: &CStr, flags: OFlags) -> Answer<RawFd> {
        open_beneath(self.root.file.as_fd(), path, flags.bits(), 0).map(|file| self.keep(file))
    }

    /// The object that a path leads to, opened without access to its contents: the link itself where links are kept.
    fn object(&self, path: &CStr, links: Links) -> Answer<RawFd> {
        match links {
            Links::Follow => self.resolve(path, OFlags::PATH),
            Links::Keep => self.resolve(path, OFlags::PATH | OFlags::NOFOLLOW),
        }
    }

    /// The directory that a path's last name is in, and that name, which does not lead out of it.
    fn parent<'a>(&self, path: &'a CStr) -> Answer<(RawFd, &'a CStr)> {
        let bytes = path.to_bytes_with_nul();
        let slash = bytes.iter().rposition(|byte| *byte == b'/');
        let (directory, leaf) = slash.map_or((None, path), |slash| {
            let (directory, leaf) = bytes.split_at(slash);
            let leaf = CStr::from_bytes_with_nul(leaf.get(1..).unwrap_or_default());
            (Some(directory), leaf.unwrap_or_default())
        });
        if leaf == c".." {
            return Err(Errno::XDEV);
        }
        let Some(directory) = directory else {
            return Ok((self.root.file.as_raw_fd(), leaf));
        };
        let parent = self.with_text(&[directory], |directory| {
            self.resolve(directory, OFlags::PATH | OFlags::DIRECTORY)
        })?;
        Ok((parent, leaf))
    }

    /// Call with a text that is put together.
    fn with_text<T>(&self, parts: &[&[u8]], call: impl FnOnce(&CStr) -> Answer<T>) -> Answer<T> {
        let mut text = self.text.borrow_mut();
        text.clear();
        for part in parts {
            text.extend_from_slice(part);
        }
        text.push(0);
        call(CStr::from_bytes_with_nul(&text).map_err(|_| Errno::INVAL)?)
    }

    /// Call with the path through /proc of what is open, or of a name in it.
    fn through_proc<T>(
        &self,
        file: RawFd,
        name: &CStr,
        call: impl FnOnce(&CStr) -> Answer<T>,
    ) -> Answer<T> {
        let slash: &[u8] = if name.is_empty() { b"" } else { b"/" };
        let number = DecInt::new(file);
        let parts = [b"/proc/self/fd/", number.as_bytes(), slash, name.to_bytes()];
        self.with_text(&parts, call)
    }
}

impl Kernel for Guarded {
    fn enter(folder: &Arc<Folder>) -> Answer<Guarded> {
        prepare_to_link();
        Ok(Guarded {
            root: Arc::clone(folder),
            taken: [Cell::new(None), Cell::new(None)],
            text: RefCell::default(),
        })
    }
    fn tidy(&self) {
        for taken in &self.taken {
            if let Some(file) = taken.take() {
                let closed = close(file);
                debug_assert!(closed.is_ok());
            }
        }
    }
    fn name<'a>(&self, at: At<'a>) -> Answer<Name<'a>> {
        let (parent, leaf) = self.parent(at.whole)?;
        Ok((borrow(parent), leaf))
    }
    fn look<'a>(&self, at: At<'a>) -> Answer<Name<'a>> {
        self.name(at)
    }
    fn by_path<T>(
        &self,
        path: &CStr,
        links: Links,
        call: impl FnOnce(&CStr) -> Answer<T>,
    ) -> Answer<T> {
        let (file, name) = match links {
            Links::Follow => (self.object(path, links)?, c""),
            Links::Keep => self.parent(path)?,
        };
        self.through_proc(file, name, call)
    }
    fn open(&self, at: At<'_>, how: How) -> Answer<RawFd> {
        let mut how = how;
        if at.seen.is_some() {
            // Said of the way from that directory, not of the one to it.
            how.resolve = 0;
        }
        open_so(self.root.file.as_fd(), at.whole, how).map(IntoRawFd::into_raw_fd)
    }
    fn stat(&self, at: At<'_>) -> Answer {
        fstat(self.object(at.whole, Links::Follow)?)
    }
    /// What it opens is closed after the timing, as all that resolving takes.
    fn look_up(&self, at: At<'_>) -> Answer {
        let directory = OFlags::PATH | OFlags::DIRECTORY;
        self.resolve(at.whole, directory).map(|_| 0)
    }
    fn statx(&self, at: At<'_>, links: Links, sync: u32) -> Answer {
        statx_of(self.object(at.whole, links)?, sync)
    }
    /// Linux before 5.8 has no call for what is open; there it is asked for by its name in /proc.
    fn access(&self, at: At<'_>, mode: u32, flags: u32) -> Answer {
        let flags = flags & ACCESS_FLAGS;
        let links = if flags & libc::AT_SYMLINK_NOFOLLOW.cast_unsigned() == 0 {
            Links::Follow
        } else {
            Links::Keep
        };
        let file = self.object(at.whole, links)?;
        let itself = flags | libc::AT_EMPTY_PATH.cast_unsigned();
        match access(file, c"", mode, itself) {
            Err(Errno::NOSYS) => {
                self.through_proc(file, c"", |path| access(libc::AT_FDCWD, path, mode, 0))
            }
            answer => answer,
        }
    }
    fn chown(&self, at: At<'_>, owner: Owner, links: Links) -> Answer {
        chown_of(self.object(at.whole, links)?, owner)
    }
}
