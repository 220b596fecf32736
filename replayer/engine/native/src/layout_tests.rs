use std::path::Path;

/// A tmpfs of a few bytes, mounted where the tests run as root.
pub(crate) struct SmallDisk {
    place: tempfile::TempDir,
}

impl SmallDisk {
    /// None where mounting is not permitted; the test says so and ends.
    pub(crate) fn mount(bytes: u64) -> Option<Self> {
        Self::mount_at(tempfile::tempdir().unwrap(), bytes)
    }

    pub(crate) fn mount_at(place: tempfile::TempDir, bytes: u64) -> Option<Self> {
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "small-disk"])
            .arg(place.path())
            .status();
        let disk = Self { place };
        mounted.is_ok_and(|status| status.success()).then_some(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.place.path())
            .status();
    }
}
