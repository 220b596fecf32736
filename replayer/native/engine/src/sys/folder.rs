//! Folders from outside: opening and making a run's folder, its marker, limits and caches of the machine.

use super::below::{read_full, write_all};
use super::operands::How;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// openat2 answers EAGAIN when a rename or mount races with a path walk; it is asked again at most so often.
const RACES: usize = 128;

/// What is on the way of no path: `..` above the folder, magic links, and mount points, which are EXDEV. The folder itself may be on
/// any mount; subvolumes of btrfs and the layers of overlayfs are no mount points.
const NEVER: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Open a path that must stay beneath a folder and on its mount, following no magic links. `O_CLOEXEC` is added.
#[inline]
pub(crate) fn open_beneath(
    folder: BorrowedFd<'_>,
    path: &CStr,
    flags: u32,
    mode: u32,
) -> Result<OwnedFd, Errno> {
    let how = How {
        flags,
        mode,
        resolve: 0,
    };
    open_so(folder, path, how)
}

/// The same with what openat2 may be told about the way of a path beside that.
#[inline]
pub(super) fn open_so(folder: BorrowedFd<'_>, path: &CStr, how: How) -> Result<OwnedFd, Errno> {
    let flags = OFlags::from_bits_retain(how.flags) | OFlags::CLOEXEC;
    let creates = flags.contains(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
    let mode = if creates {
        Mode::from_raw_mode(how.mode)
    } else {
        Mode::empty()
    };
    let resolve = NEVER | ResolveFlags::from_bits_retain(how.resolve.into());
    let mut answer = rustix::fs::openat2(folder, path, flags, mode, resolve);
    for _ in 0..RACES {
        if !matches!(answer, Err(Errno::AGAIN)) {
            break;
        }
        answer = rustix::fs::openat2(folder, path, flags, mode, resolve);
    }
    answer
}

/// Open a directory by a path of the user's, without following a link at its end.
pub(crate) fn open_directory(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// Open what `sendfile` sends to.
pub(crate) fn open_sink() -> Result<OwnedFd, Errno> {
    rustix::fs::openat(
        CWD,
        "/dev/null",
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// A folder of ours, opened.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) file: OwnedFd,
    pub(crate) parent: OwnedFd,
    pub(crate) device: u64,
}

impl Folder {
    /// Make a folder (mode 0700) in a directory that a path leads to.
    pub(crate) fn make(parent: &str, name: &str) -> Result<Folder, Errno> {
        let parent = open_parent(parent)?;
        rustix::fs::mkdirat(&parent, name, Mode::RWXU)?;
        let entered = enter(parent.as_fd(), name).and_then(|(file, device)| {
            rustix::fs::fchmod(&file, Mode::RWXU)?;
            Ok((file, device))
        });
        match entered {
            Ok((file, device)) => Ok(Folder {
                file,
                parent,
                device,
            }),
            Err(errno) => {
                // Nobody else knows of it. If that fails too, the first error is the one to tell.
                let _removed = rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR);
                Err(errno)
            }
        }
    }

    /// Open a folder in a directory that a path leads to.
    pub(crate) fn open(parent: &str, name: &str) -> Result<Folder, Errno> {
        let parent = open_parent(parent)?;
        let (file, device) = enter(parent.as_fd(), name)?;
        Ok(Folder {
            file,
            parent,
            device,
        })
    }

    /// Remove what `make` and `write_new` made, as far as that goes.
    pub(crate) fn discard(&self, name: &str, marker: &CStr) {
        let unlinked = rustix::fs::unlinkat(&self.file, marker, AtFlags::empty());
        let removed = rustix::fs::unlinkat(&self.parent, name, AtFlags::REMOVEDIR);
        debug_assert!(unlinked.is_ok() && removed.is_ok());
    }

    /// Write a new small file and bring it to the disk.
    pub(crate) fn write_new(&self, name: &CStr, bytes: &[u8]) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = open_beneath(self.file.as_fd(), name, flags.bits(), 0o600)?;
        write_all(&file, bytes)?;
        rustix::fs::fsync(&file)
    }

    /// Read a small regular file; `None` when there is none of this name or it is something else.
    pub(crate) fn read_small(&self, name: &CStr, most: usize) -> Result<Option<Vec<u8>>, Errno> {
        let facts = match rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            facts => facts?,
        };
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = open_beneath(self.file.as_fd(), name, flags.bits(), 0)?;
        let mut bytes = vec![0; most];
        let len = read_full(&file, &mut bytes)?;
        bytes.truncate(len);
        Ok(Some(bytes))
    }
}

fn open_parent(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// Open a folder in a directory, not following links; it, and its device.
fn enter(parent: BorrowedFd<'_>, name: &str) -> Result<(OwnedFd, u64), Errno> {
    // O_NOFOLLOW with O_DIRECTORY answers ENOTDIR to a link; say ELOOP.
    let facts = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(facts.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let device = rustix::fs::fstat(&file)?.st_dev;
    open_beneath(file.as_fd(), c".", OFlags::PATH.bits(), 0)?;
    Ok((file, device))
}

/// Raise the soft limit of open files to the hard one.
pub(crate) fn file_limit_raised() {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // Not permitted is no error: users that find no descriptor say EMFILE.
        let raised = setrlimit(Resource::Nofile, limit);
        debug_assert!(raised.is_ok());
    }
}

/// Sync and drop the machine's page, dentry and inode caches; false when that is not permitted.
#[must_use]
pub fn machine_caches_dropped() -> bool {
    rustix::fs::sync();
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(CWD, "/proc/sys/vm/drop_caches", flags, Mode::empty()) else {
        return false;
    };
    rustix::io::write(&file, b"3\n").is_ok()
}
