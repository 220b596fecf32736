//! Mounts for tests, where these run as root.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something mounted, until it is dropped.
pub(crate) struct Mounted {
    place: PathBuf,
    holder: Option<tempfile::TempDir>,
}

impl Mounted {
    /// A tmpfs of a few bytes. None where mounting is not permitted, which is said.
    pub(crate) fn small_disk(bytes: u64) -> Option<Self> {
        let holder = tempfile::tempdir().unwrap();
        let mut disk = Self::small_disk_at(holder.path(), bytes)?;
        disk.holder = Some(holder);
        Some(disk)
    }

    /// The same at a place.
    pub(crate) fn small_disk_at(place: &Path, bytes: u64) -> Option<Self> {
        let size = format!("size={bytes}");
        let source = Path::new("small-disk");
        Self::at(place, &["-t", "tmpfs", "-o", &size], source)
    }

    /// A file or directory that is shown at another place too, or at its own.
    pub(crate) fn bound(source: &Path, place: &Path) -> Option<Self> {
        Self::at(place, &["--bind"], source)
    }

    fn at(place: &Path, words: &[&str], source: &Path) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(words).arg(source).arg(place);
        let status = command.stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            skipped("mounting is not permitted");
            return None;
        }
        Some(Self {
            place: place.to_owned(),
            holder: None,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.place
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let mut command = Command::new("umount");
        let _ = command.arg("-l").arg(&self.place).status();
    }
}

/// Say why the test of this thread proves nothing here; past libtest, which shows what a test says only if it fails.
fn skipped(why: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    let told = writeln!(std::io::stderr(), "{name} is skipped: {why}");
    told.unwrap();
}
