//! A run's own folder and its marker: the only place that anything is created, changed or removed in.

use crate::error::{Error, Result, errno_of};
use crate::layout::{self, Task, Work};
use crate::program::Program;
use crate::sys::Folder;
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Holds the note; a folder without it is not ours.
pub(crate) const MARKER: &CStr = c".replayer-run";
/// The longest note that is read back.
const NOTE_BYTES: usize = 1 << 20;

/// A run's own folder, seen through one mount point.
#[derive(Debug)]
pub struct RunFolder {
    pub(crate) folder: Arc<Folder>,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) note: String,
}

impl RunFolder {
    /// Make the folder `parent/replayer-RUN` with its marker.
    ///
    /// # Errors
    /// The name or the note does not fit, or the kernel refuses.
    pub fn create(parent: &str, run: &str, note: &str) -> Result<RunFolder> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if run.is_empty() || run.len() > 200 || !run.bytes().all(fits) {
            return Err(Error::value(format!(
                "run must be 1 to 200 of A-Z a-z 0-9 _ -, got {run:?}"
            )));
        }
        if note.len() > NOTE_BYTES {
            return Err(Error::value(format!(
                "note must be at most {NOTE_BYTES} bytes, got {}",
                note.len()
            )));
        }
        let name = format!("replayer-{run}");
        let path = format!("{}/{name}", parent.trim_end_matches('/'));
        let at = if parent.trim_end_matches('/').is_empty() {
            "/"
        } else {
            parent
        };
        let folder = Folder::make(at, &name).map_err(|errno| no_openat2(errno, &path))?;
        if let Err(errno) = folder.write_new(MARKER, note.as_bytes()) {
            folder.discard(&name, MARKER);
            return Err(Error::os(errno, path));
        }
        Ok(RunFolder {
            folder: Arc::new(folder),
            path,
            name,
            note: note.to_owned(),
        })
    }

    /// Open a folder that `create` made.
    ///
    /// # Errors
    /// It is none, or the kernel refuses.
    pub fn open(path: &str) -> Result<RunFolder> {
        let path = path.trim_end_matches('/');
        let (parent, name) = match path.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((parent, name)) => (parent, name),
            None => (".", path),
        };
        if matches!(name, "" | "." | "..") {
            return Err(Error::value(format!(
                "{path:?} does not name a run's folder"
            )));
        }
        let folder = Folder::open(parent, name).map_err(|errno| no_openat2(errno, path))?;
        let note = folder
            .read_small(MARKER, NOTE_BYTES)
            .map_err(|errno| Error::os(errno, path))?;
        let Some(note) = note else {
            let message = format!(
                "{path}: is not a run's folder: it has no marker file .replayer-run (a regular file)"
            );
            return Err(Error::value(message));
        };
        let note = String::from_utf8(note)
            .map_err(|_| Error::value(format!("{path}: the marker is not UTF-8")))?;
        Ok(RunFolder {
            folder: Arc::new(folder),
            path: path.to_owned(),
            name: name.to_owned(),
            note,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What its marker says.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    /// The device that it is on.
    #[must_use]
    pub fn device(&self) -> u64 {
        self.folder.device
    }

    /// Ask the file system that it is on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn space(&self) -> Result<Space> {
        space(self.folder.file.as_fd()).map_err(|error| self.refused(&error))
    }

    /// Start work on the files of a plan in it.
    ///
    /// # Errors
    /// The kernel gives no further descriptor.
    pub fn start(&self, work: Work, program: &Arc<Program>, threads: usize) -> Result<Task> {
        Ok(layout::start(work, self.duplicate()?, program, threads))
    }

    /// Remove everything in it.
    ///
    /// # Errors
    /// The kernel gives no further descriptor.
    pub fn wipe(&self, threads: usize) -> Result<Task> {
        Ok(layout::wipe(self.duplicate()?, threads))
    }

    /// Remove it with everything in it.
    ///
    /// # Errors
    /// The kernel gives no further descriptor.
    pub fn remove(&self, threads: usize) -> Result<Task> {
        let parent = self.folder.parent.try_clone();
        let parent = parent.map_err(|error| self.refused(&error))?;
        Ok(layout::remove(
            self.duplicate()?,
            parent,
            &self.name,
            threads,
        ))
    }

    /// Its descriptor, for a task that may outlive this object.
    fn duplicate(&self) -> Result<OwnedFd> {
        let copy = self.folder.file.try_clone();
        copy.map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &std::io::Error) -> Error {
        Error::os(errno_of(error), self.path.as_str())
    }
}

fn no_openat2(errno: Errno, path: &str) -> Error {
    if errno == Errno::NOSYS {
        let message = "this kernel (or its seccomp filter) has no openat2, which confinement needs: Linux 5.6 or later";
        return Error::state(message);
    }
    Error::os(errno, path)
}

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
