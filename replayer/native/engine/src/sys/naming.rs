//! Names for what is open: `linkat` of a descriptor, also of a file that has no name (`O_TMPFILE`).

use super::files::borrow;
use super::operands::Answer;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::DecInt;
use rustix::process::{Pid, getpid};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// `/proc/self/fd`, which a thread in a jail does not find any more, and the process that it was opened by.
static OWN: OnceLock<Option<(Pid, OwnedFd)>> = OnceLock::new();

/// Open what `link_open` may need later, while this thread can still name it.
pub(super) fn prepare_to_link() {
    OWN.get_or_init(|| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, c"/proc/self/fd", flags, Mode::empty());
        Some((getpid(), opened.ok()?))
    });
}

/// Give what a descriptor is open on a name in a directory.
///
/// `AT_EMPTY_PATH` answers ENOENT to who lacks `CAP_DAC_READ_SEARCH` (since Linux 6.10, only where another one opened the file):
/// then the way is that of open(2), through /proc. Both lead to what is open, and nowhere else.
pub(super) fn link_open(file: RawFd, to: BorrowedFd<'_>, leaf: &CStr) -> Answer {
    let answer = rustix::fs::linkat(borrow(file), c"", to, leaf, AtFlags::EMPTY_PATH);
    let answer = match answer {
        Err(Errno::NOENT) => link_through_proc(file, to, leaf),
        answer => answer,
    };
    answer.map(|()| 0)
}

fn link_through_proc(file: RawFd, to: BorrowedFd<'_>, leaf: &CStr) -> Answer<()> {
    // In a fork the numbers would be those of its parent.
    let own = OWN.get().and_then(Option::as_ref);
    let Some((_, own)) = own.filter(|(process, _)| *process == getpid()) else {
        return Err(Errno::NOENT);
    };
    let number = DecInt::new(file);
    let flags = AtFlags::SYMLINK_FOLLOW;
    rustix::fs::linkat(own.as_fd(), number.as_c_str(), to, leaf, flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn both_ways_give_a_file_without_a_name_one_and_take_none_away() {
        prepare_to_link();
        let folder = tempfile::TempDir::new_in("/dev/shm").unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let directory = rustix::fs::open(folder.path(), flags, Mode::empty()).unwrap();
        let flags = OFlags::WRONLY | OFlags::TMPFILE;
        let file = rustix::fs::open(folder.path(), flags, Mode::RUSR).unwrap();
        let (file, to) = (file.as_raw_fd(), directory.as_fd());
        assert_eq!(link_through_proc(file, to, c"a"), Ok(()));
        assert_eq!(link_through_proc(file, to, c"a"), Err(Errno::EXIST));
        assert_eq!(link_open(file, to, c"b"), Ok(0));
        assert_eq!(link_open(file, to, c"b"), Err(Errno::EXIST));
        assert_eq!(link_open(file, to, c"c/d"), Err(Errno::NOENT));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
