//! Kernel calls of the recording and the layout: thin and safe, everything below a descriptor.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

/// openat2 answers EAGAIN when a rename or mount races with a path walk; it is asked again at most so often.
const RACES: usize = 128;
/// Bytes of one getdents64 (chosen: as plan format 1 has it).
const LISTING_BYTES: usize = 32 << 10;

type Answer<T> = Result<T, Errno>;

/// Open a file of the kernel's own, by an absolute path.
pub(crate) fn open_file(path: &str) -> Answer<OwnedFd> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Read the beginning of a small file into a buffer.
pub(crate) fn read_from(file: &OwnedFd, buffer: &mut [u8]) -> Answer<usize> {
    rustix::io::pread(file, buffer, 0)
}

/// What is on the way of no path here: links of any kind, and mount points, which are EXDEV.
const NEVER: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Open beneath a directory, on the mount that it is on; `O_CLOEXEC` and `O_NOFOLLOW` are added.
fn open(at: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: u32) -> Answer<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let path = if path.is_empty() { b"." } else { path };
    let mut races = 0;
    loop {
        match rustix::fs::openat2(at, path, flags, Mode::from_raw_mode(mode), NEVER) {
            Err(Errno::AGAIN) if races < RACES => races += 1,
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// A directory to name entries in, and nothing else.
pub(crate) fn open_place(at: BorrowedFd<'_>, path: &[u8]) -> Answer<OwnedFd> {
    open(at, path, OFlags::PATH | OFlags::DIRECTORY, 0)
}

/// A directory to list or to empty.
pub(crate) fn open_listing(at: BorrowedFd<'_>, path: &[u8]) -> Answer<OwnedFd> {
    open(at, path, OFlags::RDONLY | OFlags::DIRECTORY, 0)
}

/// A file to read; a FIFO that lies there does not block.
pub(crate) fn open_to_read(at: BorrowedFd<'_>, name: &[u8]) -> Answer<OwnedFd> {
    open(at, name, OFlags::RDONLY | OFlags::NONBLOCK, 0)
}

/// A new file to write.
pub(crate) fn create(at: BorrowedFd<'_>, name: &[u8], mode: u32) -> Answer<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    open(at, name, flags, mode)
}

pub(crate) fn write_all(file: &OwnedFd, bytes: &[u8]) -> Answer<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(file, rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Close and tell: a file system may report a failed write only here (NFS, a quota).
pub(crate) fn close(file: OwnedFd) -> Answer<()> {
    #[expect(unsafe_code, reason = "no safe close tells of its error")]
    // SAFETY: the descriptor was owned, is given up here, and is not used again.
    let closed = unsafe { libc::close(file.into_raw_fd()) };
    match std::io::Error::last_os_error().raw_os_error() {
        // Linux has closed it in any case.
        Some(errno) if closed != 0 && errno != libc::EINTR => Err(Errno::from_raw_os_error(errno)),
        _ => Ok(()),
    }
}

/// One read; 0 at the end.
pub(crate) fn read(file: &OwnedFd, buffer: &mut [u8]) -> Answer<usize> {
    rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *buffer))
}

/// Read until a buffer is full or the file ends; how much was read.
pub(crate) fn read_full(file: &OwnedFd, buffer: &mut [u8]) -> Answer<usize> {
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match read(file, rest)? {
            0 => break,
            more => len += more,
        }
    }
    Ok(len)
}

pub(crate) fn change_mode(file: &OwnedFd, mode: u32) -> Answer<()> {
    rustix::io::retry_on_intr(|| rustix::fs::fchmod(file, Mode::from_raw_mode(mode)))
}

/// Let the owner into a directory that cannot be opened: through /proc, because an `O_PATH` descriptor has no fchmod.
pub(crate) fn let_owner_in(at: BorrowedFd<'_>, name: &[u8]) -> Answer<()> {
    let place = open_place(at, name)?;
    rustix::fs::chmod(format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU)
}

pub(crate) fn make_directory(at: BorrowedFd<'_>, name: &[u8], mode: u32) -> Answer<()> {
    rustix::io::retry_on_intr(|| rustix::fs::mkdirat(at, name, Mode::from_raw_mode(mode)))
}

pub(crate) fn make_link(at: BorrowedFd<'_>, name: &[u8], target: &[u8]) -> Answer<()> {
    rustix::io::retry_on_intr(|| rustix::fs::symlinkat(target, at, name))
}

pub(crate) fn read_link(at: BorrowedFd<'_>, name: &[u8]) -> Answer<CString> {
    rustix::io::retry_on_intr(|| rustix::fs::readlinkat(at, name, Vec::new()))
}

pub(crate) fn unlink(at: BorrowedFd<'_>, name: &[u8]) -> Answer<()> {
    rustix::io::retry_on_intr(|| rustix::fs::unlinkat(at, name, AtFlags::empty()))
}

pub(crate) fn remove_directory(at: BorrowedFd<'_>, name: &[u8]) -> Answer<()> {
    rustix::io::retry_on_intr(|| rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR))
}

/// Move an entry to a name in another directory, where nothing of that name is.
pub(crate) fn rename_new(from: (BorrowedFd<'_>, &[u8]), to: (BorrowedFd<'_>, &[u8])) -> Answer<()> {
    if status_of(to.0, to.1) != Err(Errno::NOENT) {
        return Err(Errno::EXIST);
    }
    rustix::io::retry_on_intr(|| rustix::fs::renameat(from.0, from.1, to.0, to.1))
}

/// What an entry is, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) kind: FileType,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// It has more than one name: a hard link, perhaps from outside.
    pub(crate) is_shared: bool,
}

impl From<Stat> for Status {
    fn from(stat: Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mode: stat.st_mode & 0o7777,
            device: stat.st_dev,
            inode: stat.st_ino,
            is_shared: stat.st_nlink > 1,
        }
    }
}

pub(crate) fn status(file: impl AsFd) -> Answer<Status> {
    rustix::io::retry_on_intr(|| rustix::fs::fstat(&file)).map(Status::from)
}

pub(crate) fn status_of(at: BorrowedFd<'_>, name: &[u8]) -> Answer<Status> {
    let stat = || rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
    rustix::io::retry_on_intr(stat).map(Status::from)
}

/// The same of an entry that nothing is mounted over: EXDEV otherwise.
pub(crate) fn status_here(at: BorrowedFd<'_>, name: &[u8]) -> Answer<Status> {
    status(open(at, name, OFlags::PATH, 0)?)
}

/// Bring a file's data to the server or disk, then drop its pages.
pub(crate) fn evict(file: &OwnedFd) -> Answer<()> {
    rustix::io::retry_on_intr(|| rustix::fs::fdatasync(file))?;
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)
}

/// Write out everything dirty of a file system.
pub(crate) fn sync_whole(folder: BorrowedFd<'_>) -> Answer<()> {
    rustix::io::retry_on_intr(|| rustix::fs::syncfs(folder))
}

/// Names and types of a directory's entries, without `.` and `..`; the type is asked for where it is not given.
pub(crate) fn list(directory: BorrowedFd<'_>) -> Answer<Vec<(CString, FileType)>> {
    let mut buffer = vec![MaybeUninit::uninit(); LISTING_BYTES];
    let mut listing = RawDir::new(directory, &mut buffer);
    let mut entries = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = match entry {
            Err(Errno::INTR) => continue,
            entry => entry?,
        };
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => status_of(directory, name.to_bytes())?.kind,
            kind => kind,
        };
        entries.push((name.to_owned(), kind));
    }
    Ok(entries)
}

/// Where a descriptor leads to, for messages only.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> Option<String> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).ok()?;
    Some(String::from_utf8_lossy(path.to_bytes()).into_owned())
}
