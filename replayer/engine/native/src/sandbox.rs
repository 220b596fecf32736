//! A run's own folder and its marker: the only place that anything is created, changed or removed in.

use crate::error::{Error, Result};
use crate::sys::Folder;
use rustix::io::Errno;
use std::ffi::CStr;
use std::sync::Arc;

/// Holds the note; a folder without it is not ours.
pub(crate) const MARKER: &CStr = c".replayer-run";
/// The longest note that is read back.
const NOTE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct RunFolder {
    pub(crate) folder: Arc<Folder>,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) note: String,
}

/// Make the folder `parent/replayer-RUN` with its marker.
pub(crate) fn create(parent: &str, run: &str, note: &str) -> Result<RunFolder> {
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
pub(crate) fn open(path: &str) -> Result<RunFolder> {
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
            "{path}: is no folder of a run: it has no marker file .replayer-run (a regular file)"
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

fn no_openat2(errno: Errno, path: &str) -> Error {
    if errno == Errno::NOSYS {
        let message = "this kernel (or its seccomp filter) has no openat2, which confinement needs: Linux 5.6 or later";
        return Error::state(message);
    }
    Error::os(errno, path)
}
