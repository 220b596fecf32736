//! Paths of replays for a thread that may not change its root: each is resolved beneath the run's folder first, as a whole.

use super::answer::Answer;
use super::attributes;
use super::files::{borrow, fstat};
use super::folder::{open_beneath, open_so};
use super::guarded::Guarded;
use super::how::How;
use super::kernel::Kernel;
use super::naming::link_open;
use super::places::{ACCESS_FLAGS, At, Links, Places, follows, tamed};
use super::replayed::{statx_of, timestamps};
use super::scratch::Scratch;
use crate::program::Owner;
use crate::replay::program::Times;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use std::ffi::CStr;
use std::os::fd::{IntoRawFd, RawFd};

impl Guarded {
    /// The object that a path leads to, opened without access to its contents: the link itself where links are kept.
    fn object(&self, path: &CStr, links: Links) -> Answer<RawFd> {
        let links = match links {
            Links::Follow => OFlags::empty(),
            Links::Keep => OFlags::NOFOLLOW,
        };
        let flags = (OFlags::PATH | links).bits();
        open_beneath(borrow(self.root()), path, flags, 0).map(|file| self.keep(file))
    }

    /// Call with a path through /proc that leads to the same object and nowhere else.
    fn by_proc<T>(
        &self,
        path: &CStr,
        links: Links,
        call: impl FnOnce(&CStr) -> Answer<T>,
    ) -> Answer<T> {
        match links {
            Links::Follow => self.through_proc(path, call),
            Links::Keep => {
                let place = self.parent(path)?;
                let path = [
                    format!("/proc/self/fd/{}/", place.parent).as_bytes(),
                    place.leaf.to_bytes_with_nul(),
                ]
                .concat();
                call(super::text::c_path(&path))
            }
        }
    }
}

impl Places for Guarded {
    fn open_at(&self, at: At<'_>, how: How) -> Answer<RawFd> {
        let mut how = tamed(how);
        if at.seen.is_some() {
            // Said of the way from that directory, not of the one to it.
            how.resolve = 0;
        }
        open_so(borrow(self.root()), at.whole, how).map(IntoRawFd::into_raw_fd)
    }
    fn stat_at(&self, at: At<'_>, links: Links) -> Answer<u64> {
        fstat(self.object(at.whole, links)?).map(|_| 0)
    }
    fn statx_at(&self, at: At<'_>, links: Links, sync: u32) -> Answer<u64> {
        statx_of(self.object(at.whole, links)?, sync)
    }
    fn access_at(&self, at: At<'_>, mode: u32, flags: u32) -> Answer<u64> {
        let flags = flags & ACCESS_FLAGS;
        let links = if flags & libc::AT_SYMLINK_NOFOLLOW.cast_unsigned() == 0 {
            Links::Follow
        } else {
            Links::Keep
        };
        let file = self.object(at.whole, links)?;
        self.may_use(file, mode, flags)
    }
    fn look_up(&self, at: At<'_>) -> Answer<u64> {
        let flags = (OFlags::PATH | OFlags::DIRECTORY).bits();
        let file = open_beneath(borrow(self.root()), at.whole, flags, 0)?;
        self.keep(file);
        Ok(0)
    }
    fn statfs(&self, path: &CStr) -> Answer<u64> {
        let file = self.object(path, Links::Follow)?;
        rustix::fs::fstatfs(borrow(file)).map(|_| 0)
    }
    fn mkdir_at(&self, at: At<'_>, mode: u32) -> Answer<u64> {
        self.mkdir(at.whole, mode & 0o7777).map(|()| 0)
    }
    fn mknod_at(&self, at: At<'_>, mode: u32) -> Answer<u64> {
        let place = self.parent(at.whole)?;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        let parent = borrow(place.parent);
        rustix::fs::mknodat(parent, place.leaf, FileType::RegularFile, mode, 0).map(|()| 0)
    }
    fn rmdir_at(&self, at: At<'_>) -> Answer<u64> {
        self.rmdir(at.whole).map(|()| 0)
    }
    fn unlink_at(&self, at: At<'_>) -> Answer<u64> {
        self.unlink(at.whole).map(|()| 0)
    }
    fn readlink_at(&self, at: At<'_>, buffer: Scratch) -> Answer<u64> {
        self.readlink(at.whole, buffer)
    }
    fn rename_at(&self, from: At<'_>, to: At<'_>, flags: u32) -> Answer<u64> {
        let flags = RenameFlags::from_bits_retain(flags).bits();
        self.rename(from.whole, to.whole, flags).map(|()| 0)
    }
    fn link_at(&self, from: At<'_>, to: At<'_>, flags: u32) -> Answer<u64> {
        if follows(flags) == Links::Keep {
            return self.link(from.whole, to.whole).map(|()| 0);
        }
        let to = self.parent(to.whole)?;
        self.through_proc(from.whole, |from| {
            let (parent, leaf) = (borrow(to.parent), to.leaf);
            rustix::fs::linkat(CWD, from, parent, leaf, AtFlags::SYMLINK_FOLLOW).map(|()| 0)
        })
    }
    fn link_open(&self, file: RawFd, to: At<'_>) -> Answer<u64> {
        let to = self.parent(to.whole)?;
        link_open(file, borrow(to.parent), to.leaf)
    }
    fn symlink_at(&self, target: &CStr, at: At<'_>) -> Answer<u64> {
        self.symlink(target, at.whole).map(|()| 0)
    }
    fn chmod_at(&self, at: At<'_>, mode: u32) -> Answer<u64> {
        self.chmod(at.whole, mode & 0o7777).map(|()| 0)
    }
    fn chown_at(&self, at: At<'_>, owner: Owner, links: Links) -> Answer<u64> {
        let file = self.object(at.whole, links)?;
        let (uid, gid) = (owner.uid.map(Uid::from_raw), owner.gid.map(Gid::from_raw));
        rustix::fs::chownat(borrow(file), c"", uid, gid, AtFlags::EMPTY_PATH).map(|()| 0)
    }
    fn utimens_at(&self, at: At<'_>, times: Times, links: Links) -> Answer<u64> {
        self.by_proc(at.whole, links, |path| {
            rustix::fs::utimensat(CWD, path, &timestamps(times), links.at_flags()).map(|()| 0)
        })
    }
    fn get_attribute(&self, on: (&CStr, Links), name: &CStr, buffer: Scratch) -> Answer<u64> {
        let (path, links) = on;
        self.by_proc(path, links, |path| {
            attributes::get((path, links), name, buffer)
        })
    }
    fn set_attribute(&self, on: (&CStr, Links), name: &CStr, value: (&[u8], u32)) -> Answer<u64> {
        let (path, links) = on;
        self.by_proc(path, links, |path| {
            attributes::set((path, links), name, value)
        })
    }
    fn remove_attribute(&self, on: (&CStr, Links), name: &CStr) -> Answer<u64> {
        let (path, links) = on;
        self.by_proc(path, links, |path| attributes::remove((path, links), name))
    }
    fn list_attributes(&self, on: (&CStr, Links), buffer: Scratch) -> Answer<u64> {
        let (path, links) = on;
        self.by_proc(path, links, |path| attributes::list((path, links), buffer))
    }
}
