//! Removing what lies in a run's folder: in parallel, children first, never through a symlink or a mount point.

use super::task::{Crew, Done, Fault, Posts, Task};
use crate::lock::hold;
use crate::path::within;
use crate::sys::below;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

/// The file that says that a folder is ours.
pub(crate) const MARKER: &[u8] = b".replayer-run";
/// The longest note of a marker that is kept (as it is read, see `sandbox`).
const NOTE_BYTES: usize = 1 << 20;
/// Directories deeper than this are first moved up, so that open descriptors stay few (chosen).
const DEEPEST: usize = 24;
/// Entries that one thread removes before it takes others (chosen).
const UNIT_ENTRIES: usize = 512;
/// A directory is listed again as often when it is not empty after all (entries that came, or `.nfs` files that go).
const LISTINGS: usize = 4;

/// Remove everything inside but the marker.
pub(crate) fn wipe(folder: OwnedFd, threads: usize) -> Task {
    Task::start(folder, threads, empty)
}

/// Remove everything inside, the marker, and the folder itself: `name` in `parent`.
pub(crate) fn remove(folder: OwnedFd, parent: OwnedFd, name: &str, threads: usize) -> Task {
    let name = name.as_bytes().to_vec();
    Task::start(folder, threads, move |crew| {
        crew.job.at("stat", MARKER);
        let marker = below::status_of(crew.folder(), MARKER).map_err(Fault::at(MARKER))?;
        if marker.kind != FileType::RegularFile {
            return Err(Fault::at(MARKER)(Errno::INVAL));
        }
        let there = below::status_of(parent.as_fd(), &name).map_err(Fault::at(b""))?;
        let ours = below::status(crew.folder()).map_err(Fault::at(b""))?;
        if (there.device, there.inode) != (ours.device, ours.inode) {
            // Moved, or another one has taken its name.
            return Err(Fault::at(b"")(Errno::STALE));
        }
        let note = read_marker(crew, marker.size);
        for _ in 0..LISTINGS {
            empty(crew)?;
            if take_away(crew, parent.as_fd(), &name, &note)? {
                crew.job.count(Done::Directory);
                return Ok(());
            }
        }
        Err(Fault::at(b"")(Errno::NOTEMPTY))
    })
}

/// What the marker says; nothing if it cannot be read, which keeps nobody from removing the folder.
fn read_marker(crew: &Crew, size: u64) -> Vec<u8> {
    let mut note = vec![0; usize::try_from(size).map_or(NOTE_BYTES, |size| size.min(NOTE_BYTES))];
    let file = below::open_to_read(crew.folder(), MARKER);
    let length = file.and_then(|file| below::read_from(&file, &mut note));
    note.truncate(length.unwrap_or_default());
    note
}

/// Remove the marker and the folder. If that cannot be, the marker is put back, or nobody would find the folder again: false when
/// something has come into it meanwhile.
fn take_away(crew: &Crew, parent: BorrowedFd<'_>, name: &[u8], note: &[u8]) -> Result<bool, Fault> {
    crew.job.at("unlink", MARKER);
    below::unlink(crew.folder(), MARKER).map_err(Fault::at(MARKER))?;
    crew.job.at("rmdir", b"");
    let Err(errno) = below::remove_directory(parent, name) else {
        return Ok(true);
    };
    crew.job.at("create", MARKER);
    let put_back = below::create(crew.folder(), MARKER, 0o600).and_then(|file| {
        below::write_all(&file, note)?;
        below::close(file)
    });
    match errno {
        Errno::NOTEMPTY | Errno::EXIST => put_back.map(|()| false).map_err(Fault::at(MARKER)),
        errno => Err(Fault::at(b"")(errno)),
    }
}

/// A directory that is being emptied.
struct Node {
    parent: Option<Arc<Node>>,
    /// Its name in the parent.
    name: Vec<u8>,
    /// Its path, for messages.
    path: Vec<u8>,
    depth: usize,
    file: OnceLock<OwnedFd>,
    /// Units of work that must end before it can go: inner directories, batches of entries, its own listing.
    waits_for: AtomicUsize,
    listings: AtomicUsize,
}

impl Node {
    fn at(&self) -> Option<BorrowedFd<'_>> {
        self.file.get().map(AsFd::as_fd)
    }

    fn path_of(&self, name: &[u8]) -> Vec<u8> {
        within(&self.path, name)
    }
}

enum Work {
    Open(Arc<Node>),
    Unlink(Arc<Node>, Vec<(Vec<u8>, Done)>),
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Work>,
    /// Threads that may still bring more.
    busy: usize,
}

struct Emptying<'a> {
    crew: &'a Crew,
    device: u64,
    top: Arc<Node>,
    moved: AtomicUsize,
    waiting: Mutex<Waiting>,
    news: Condvar,
}

/// Remove everything inside the run's folder but the marker.
fn empty(crew: &Crew) -> Result<(), Fault> {
    let at = crew.folder();
    crew.job.at("list", b"");
    let device = below::status(at).map_err(Fault::at(b""))?.device;
    // A listing of its own: the folder's descriptor may be shared, and so would be its position.
    let file = below::open_listing(at, b"").map_err(Fault::at(b""))?;
    let top = Arc::new(node(None, b"", b"".to_vec(), 0));
    let known = top.file.set(file);
    debug_assert!(known.is_ok());
    let emptying = Emptying {
        crew,
        device,
        top: Arc::clone(&top),
        moved: AtomicUsize::new(0),
        waiting: Mutex::default(),
        news: Condvar::new(),
    };
    emptying.push(Work::Open(top));
    crew.together(crew.threads, || emptying.take_part())
}

fn node(parent: Option<Arc<Node>>, name: &[u8], path: Vec<u8>, depth: usize) -> Node {
    Node {
        parent,
        name: name.to_vec(),
        path,
        depth,
        file: OnceLock::new(),
        waits_for: AtomicUsize::new(1),
        listings: AtomicUsize::new(0),
    }
}

impl Emptying<'_> {
    /// Last in, first out: the deepest is done first, so that few directories are open at a time.
    fn push(&self, work: Work) {
        hold(&self.waiting).work.push_back(work);
        self.news.notify_one();
    }

    /// Work until nothing is left or something failed.
    fn take_part(&self) -> Result<(), Fault> {
        while let Some(work) = self.next() {
            let done = self.crew.job.proceed().and_then(|()| self.do_work(work));
            hold(&self.waiting).busy -= 1;
            self.news.notify_all();
            done?;
        }
        Ok(())
    }

    fn next(&self) -> Option<Work> {
        Posts::away();
        let mut waiting = hold(&self.waiting);
        loop {
            if self.crew.job.failed() {
                return None;
            }
            if let Some(work) = waiting.work.pop_back() {
                waiting.busy += 1;
                return Some(work);
            }
            if waiting.busy == 0 {
                return None;
            }
            waiting = self
                .news
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn do_work(&self, work: Work) -> Result<(), Fault> {
        match work {
            Work::Open(node) => {
                self.open(&node)?;
                self.list(&node)?;
                self.release(node)
            }
            Work::Unlink(node, names) => {
                self.unlink(&node, &names)?;
                self.release(node)
            }
        }
    }

    /// Open a directory from its parent's descriptor; a mount point or another device is EXDEV.
    fn open(&self, node: &Node) -> Result<(), Fault> {
        let Some(at) = node.parent.as_ref().and_then(|parent| parent.at()) else {
            return Ok(());
        };
        self.crew.job.at("open", &node.path);
        let mut opened = below::open_listing(at, &node.name);
        if opened.as_ref().is_err_and(|errno| *errno == Errno::ACCESS) {
            let allowed = below::let_owner_in(at, &node.name);
            allowed.map_err(Fault::at(&node.path))?;
            opened = below::open_listing(at, &node.name);
        }
        let file = opened.map_err(Fault::at(&node.path))?;
        let status = below::status(&file).map_err(Fault::at(&node.path))?;
        if status.device != self.device {
            return Err(Fault::at(&node.path)(Errno::XDEV));
        }
        if status.mode & 0o700 != 0o700 {
            // Not permitted: then removing from it is not either, and says so.
            let _ = below::change_mode(&file, 0o700);
        }
        let known = node.file.set(file);
        debug_assert!(known.is_ok(), "a directory is opened once");
        Ok(())
    }

    /// Hand out what is in a directory.
    fn list(&self, node: &Arc<Node>) -> Result<(), Fault> {
        let Some(at) = node.at() else { return Ok(()) };
        self.crew.job.at("list", &node.path);
        let mut leaves = Vec::new();
        for (name, kind) in below::list(at).map_err(Fault::at(&node.path))? {
            let name = name.to_bytes();
            if kind == FileType::Directory {
                self.hand_out_directory(node, name)?;
            } else if node.parent.is_some() || name != MARKER {
                let done = if kind == FileType::Symlink {
                    Done::Link
                } else {
                    Done::File
                };
                leaves.push((name.to_vec(), done));
            }
        }
        for batch in leaves.chunks(UNIT_ENTRIES).skip(1) {
            node.waits_for.fetch_add(1, Ordering::Relaxed);
            self.push(Work::Unlink(Arc::clone(node), batch.to_vec()));
        }
        let own = leaves.chunks(UNIT_ENTRIES).next().unwrap_or_default();
        self.unlink(node, own)
    }

    fn hand_out_directory(&self, node: &Arc<Node>, name: &[u8]) -> Result<(), Fault> {
        let path = node.path_of(name);
        let inner = if node.depth < DEEPEST {
            self::node(Some(Arc::clone(node)), name, path, node.depth + 1)
        } else {
            let moved = self.move_up(node, name).map_err(Fault::at(&path))?;
            self::node(Some(Arc::clone(&self.top)), &moved, path, 1)
        };
        if let Some(parent) = &inner.parent {
            parent.waits_for.fetch_add(1, Ordering::Relaxed);
        }
        self.push(Work::Open(Arc::new(inner)));
        Ok(())
    }

    /// Move a deep directory into the run's folder, under a name that is free there.
    fn move_up(&self, node: &Node, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let (Some(from), Some(to)) = (node.at(), self.top.at()) else {
            return Err(Errno::BADF);
        };
        let mut let_in = false;
        loop {
            let number = self.moved.fetch_add(1, Ordering::Relaxed);
            let moved = format!(".replayer-removing-{number}").into_bytes();
            match below::rename_new((from, name), (to, &moved)) {
                Err(Errno::EXIST) => {}
                // A directory's own mode must allow that its `..` changes.
                Err(Errno::ACCESS) if !let_in => {
                    let_in = true;
                    below::let_owner_in(from, name)?;
                }
                Err(errno) => return Err(errno),
                Ok(()) => return Ok(moved),
            }
        }
    }

    fn unlink(&self, node: &Node, names: &[(Vec<u8>, Done)]) -> Result<(), Fault> {
        let Some(at) = node.at() else { return Ok(()) };
        for (name, done) in names {
            self.crew.job.proceed()?;
            self.crew.job.at("unlink", &node.path_of(name));
            match below::unlink(at, name) {
                // Somebody else was faster, or an `.nfs` file has gone.
                Ok(()) | Err(Errno::NOENT) => self.crew.job.count(*done),
                Err(errno) => return Err(Fault::at(&node.path_of(name))(errno)),
            }
        }
        Ok(())
    }

    /// A unit of a directory's work is done; after the last one it goes, which is a unit of its parent's.
    fn release(&self, node: Arc<Node>) -> Result<(), Fault> {
        let mut node = node;
        while node.waits_for.fetch_sub(1, Ordering::AcqRel) == 1 {
            let Some(parent) = node.parent.clone() else {
                return Ok(());
            };
            let Some(at) = parent.at() else { return Ok(()) };
            self.crew.job.at("rmdir", &node.path);
            match below::remove_directory(at, &node.name) {
                Ok(()) => self.crew.job.count(Done::Directory),
                Err(Errno::NOTEMPTY | Errno::EXIST) if self.list_again(&node) => {
                    node.waits_for.fetch_add(1, Ordering::Relaxed);
                    self.list(&node)?;
                    continue;
                }
                Err(errno) => return Err(Fault::at(&node.path)(errno)),
            }
            node = parent;
        }
        Ok(())
    }

    fn list_again(&self, node: &Node) -> bool {
        node.listings.fetch_add(1, Ordering::Relaxed) < LISTINGS && !self.crew.job.failed()
    }
}

#[cfg(test)]
#[path = "remove_tests.rs"]
mod tests;
