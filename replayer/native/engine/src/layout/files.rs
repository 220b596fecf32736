//! Laying out, checking, warming and evicting a run's files; removal is in `remove`.
//!
//! Everything is named below an open directory, and nothing follows a symlink.

use super::task::{Crew, Done, Fault, Task};
use super::tree::{Directory, Leaf, Tree};
use super::verify::verify;
use crate::content::Pool;
use crate::program::{EntryKind, Identity, Program};
use crate::sys::below;
use crate::verify::each_stamped;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Leaves that one thread does before it takes others (chosen: some milliseconds of work).
const UNIT_LEAVES: usize = 256;
/// Directories with one parent that one thread makes before it takes others (chosen).
const UNIT_DIRECTORIES: usize = 64;
/// Bytes of one read: whole blocks (chosen).
pub(super) const READ_BYTES: usize = 1 << 20;
/// Set-group-id: a directory made inside one that has it gets it too.
const INHERITED: u32 = 0o2000;
const ALL_OF_OWNER: u32 = 0o700;
/// A server may have a umask of its own, whatever ours is (sshd's sftp-server has that of its user, 022 as a rule).
const OFTEN_MASKED: u32 = 0o022;
/// What an entry may lack of its mode once it is made: writing takes set-id bits away.
const UNSURE: u32 = 0o7000 | OFTEN_MASKED;

/// What is done with the files of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Create every laid-out dataset (and the empty directories of the others) below the run's folder.
    LayOut,
    /// Compare type, size, mode and target of every entry, and look for entries that the plan does not have.
    Verify,
    /// Read every laid-out file once, and stat every entry.
    Warm,
    /// Bring every laid-out file to the server or disk, and drop it from the page cache.
    Evict,
}

pub(crate) fn start(work: Work, folder: OwnedFd, program: &Arc<Program>, threads: usize) -> Task {
    let program = Arc::clone(program);
    Task::start(folder, threads, move |crew| {
        let tree = counted(crew, &program);
        match work {
            Work::LayOut => lay_out(crew, &program, &tree),
            Work::Verify => verify(crew, &tree),
            Work::Warm => warm(crew, &tree),
            Work::Evict => evict(crew, &tree),
        }
    })
}

fn lay_out(crew: &Crew, program: &Program, tree: &Tree<'_>) -> Result<(), Fault> {
    let pool = Pool::new(program.seed, program.pool_bytes);
    let plain = crew.exact_modes && root_mode(crew)? & INHERITED == 0;
    for level in tree.levels.iter().skip(1) {
        make_level(crew, tree, level, plain)?;
    }
    each_part(crew, tree, "create", |place, leaf, buffer| {
        let made = Made {
            place,
            leaf,
            pool: &pool,
            identity: program.verify,
        };
        made.create(crew, buffer)
    })?;
    for level in tree.levels.iter().skip(1).rev() {
        close_level(crew, tree, level, plain)?;
    }
    Ok(())
}

fn warm(crew: &Crew, tree: &Tree<'_>) -> Result<(), Fault> {
    // Written out first: otherwise the clock runs while what was laid out goes to the disk or server.
    crew.job.at("syncfs", b"");
    below::sync_whole(crew.folder()).map_err(Fault::at(b""))?;
    stat_directories(crew, tree)?;
    each_part(crew, tree, "read", |place, leaf, buffer| {
        let fault = place.fault(leaf);
        below::status_of(place.at, &leaf.name).map_err(&fault)?;
        if leaf.entry.kind == EntryKind::File {
            read_whole(crew, place.at, &leaf.name, buffer).map_err(fault)?;
        }
        crew.job.count(done(leaf));
        Ok(())
    })
}

fn evict(crew: &Crew, tree: &Tree<'_>) -> Result<(), Fault> {
    // All at once first: a sync of each dirty file alone would wait for the journal 50,000 times.
    crew.job.at("syncfs", b"");
    below::sync_whole(crew.folder()).map_err(Fault::at(b""))?;
    stat_directories(crew, tree)?;
    each_part(crew, tree, "fsync", |place, leaf, _| {
        if leaf.entry.kind == EntryKind::File {
            let file = below::open_to_read(place.at, &leaf.name);
            file.and_then(|file| below::evict(&file))
                .map_err(place.fault(leaf))?;
            crew.job
                .count_bytes(usize::try_from(leaf.entry.size).unwrap_or(usize::MAX));
        }
        crew.job.count(done(leaf));
        Ok(())
    })
}

/// The tree of a plan, its totals told to those who watch.
fn counted<'a>(crew: &Crew, program: &'a Program) -> Tree<'a> {
    let tree = Tree::of(program);
    let (entries, bytes) = tree.totals();
    crew.job.total_entries.store(entries, Ordering::Relaxed);
    crew.job.total_bytes.store(bytes, Ordering::Relaxed);
    tree
}

pub(crate) fn done(leaf: &Leaf<'_>) -> Done {
    match leaf.entry.kind {
        EntryKind::File => Done::File,
        EntryKind::Directory => Done::Directory,
        EntryKind::Link => Done::Link,
    }
}

/// An open directory of the tree.
struct Place<'a> {
    directory: &'a Directory,
    at: BorrowedFd<'a>,
}

impl Place<'_> {
    fn fault(&self, leaf: &Leaf<'_>) -> impl Fn(Errno) -> Fault + use<> {
        let path = self.directory.path_of(&leaf.name);
        move |errno| Fault::at(&path)(errno)
    }
}

/// Do something with every file and link, spread over the threads by directory.
fn each_part(
    crew: &Crew,
    tree: &Tree<'_>,
    op: &'static str,
    work: impl Fn(&Place<'_>, &Leaf<'_>, &mut Vec<u8>) -> Result<(), Fault> + Sync,
) -> Result<(), Fault> {
    let parts = parts(tree);
    crew.each(parts.len(), |part, buffer| {
        let Some((directory, range)) = parts.get(part) else {
            return Ok(());
        };
        crew.job.at("open", &directory.path);
        let at = below::open_place(crew.folder(), &directory.path);
        let at = at.map_err(Fault::at(&directory.path))?;
        let place = Place {
            directory,
            at: at.as_fd(),
        };
        for leaf in tree.leaves_in(directory, range.clone()) {
            crew.job.proceed()?;
            crew.job.at(op, &directory.path_of(&leaf.name));
            work(&place, &leaf, buffer)?;
        }
        Ok(())
    })
}

/// Directories with leaves, large ones in several parts.
fn parts<'a>(tree: &'a Tree<'_>) -> Vec<(&'a Directory, Range<usize>)> {
    let mut parts = Vec::new();
    for directory in &tree.directories {
        let leaves = tree.leaf_count(directory);
        let starts = (0..leaves).step_by(UNIT_LEAVES);
        parts.extend(starts.map(|start| (directory, start..(start + UNIT_LEAVES).min(leaves))));
    }
    parts
}

/// A file or link in the making.
struct Made<'a> {
    place: &'a Place<'a>,
    leaf: &'a Leaf<'a>,
    pool: &'a Pool,
    /// Whose data they say they are.
    identity: Option<Identity>,
}

impl Made<'_> {
    fn create(&self, crew: &Crew, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        let leaf = self.leaf;
        if leaf.entry.kind == EntryKind::Link {
            let made = below::make_link(self.place.at, &leaf.name, &leaf.link);
            made.map_err(self.place.fault(self.leaf))?;
        } else {
            self.write(crew, buffer)?;
        }
        crew.job.count(done(self.leaf));
        Ok(())
    }

    fn write(&self, crew: &Crew, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        let (name, entry, data) = (&self.leaf.name, self.leaf.entry, &self.leaf.data);
        let file = below::create(self.place.at, name, entry.mode);
        let file = file.map_err(self.place.fault(self.leaf))?;
        let receive = |chunk: &[u8]| {
            crew.job.proceed()?;
            below::write_all(&file, chunk).map_err(self.place.fault(self.leaf))?;
            crew.job.count_bytes(chunk.len());
            Ok(())
        };
        if let Some(identity) = self.identity {
            let path = self.place.directory.path_of(name);
            each_stamped(identity, &path, data.extent(), buffer, receive)?;
        } else {
            data.each_chunk(self.pool, buffer, receive)?;
        }
        if !crew.exact_modes || entry.mode & UNSURE != 0 {
            let changed = below::change_mode(&file, entry.mode);
            changed.map_err(self.place.fault(self.leaf))?;
        }
        below::close(file).map_err(self.place.fault(self.leaf))
    }
}

fn root_mode(crew: &Crew) -> Result<u32, Fault> {
    crew.job.at("stat", b"");
    let status = below::status(crew.folder()).map_err(Fault::at(b""))?;
    Ok(status.mode)
}

/// Whether a directory gets its mode when it is made: nothing hinders the work inside it.
fn is_final(directory: &Directory, plain: bool) -> bool {
    plain && directory.mode & UNSURE == 0 && directory.mode & ALL_OF_OWNER == ALL_OF_OWNER
}

/// Make the directories of one depth; those that are there already are taken.
fn make_level(
    crew: &Crew,
    tree: &Tree<'_>,
    level: &Range<usize>,
    plain: bool,
) -> Result<(), Fault> {
    let directories = tree.directories.get(level.clone()).unwrap_or_default();
    let siblings = directories.chunk_by(|one, two| one.split().0 == two.split().0);
    let units: Vec<_> = siblings
        .flat_map(|group| group.chunks(UNIT_DIRECTORIES))
        .collect();
    crew.each(units.len(), |unit, _| {
        let group = units.get(unit).copied().unwrap_or_default();
        let Some((parent, _)) = group.first().map(Directory::split) else {
            return Ok(());
        };
        crew.job.at("open", parent);
        let at = below::open_place(crew.folder(), parent).map_err(Fault::at(parent))?;
        for directory in group {
            crew.job.proceed()?;
            crew.job.at("mkdir", &directory.path);
            let mode = if is_final(directory, plain) {
                directory.mode
            } else {
                ALL_OF_OWNER
            };
            make(at.as_fd(), directory, mode)?;
            crew.job.count(Done::Directory);
        }
        Ok(())
    })
}

fn make(at: BorrowedFd<'_>, directory: &Directory, mode: u32) -> Result<(), Fault> {
    let (_, name) = directory.split();
    match below::make_directory(at, name, mode) {
        Err(Errno::EXIST) => {
            let there = below::status_of(at, name).map_err(Fault::at(&directory.path))?;
            if there.kind != FileType::Directory {
                return Err(Fault::at(&directory.path)(Errno::EXIST));
            }
            let opened = below::open_listing(at, name);
            let changed = opened.and_then(|file| below::change_mode(&file, mode));
            changed.map_err(Fault::at(&directory.path))
        }
        answer => answer.map_err(Fault::at(&directory.path)),
    }
}

/// Give the directories of one depth their modes, now that everything is inside them.
fn close_level(
    crew: &Crew,
    tree: &Tree<'_>,
    level: &Range<usize>,
    plain: bool,
) -> Result<(), Fault> {
    let directories = tree.directories.get(level.clone()).unwrap_or_default();
    let open: Vec<_> = directories
        .iter()
        .filter(|one| !is_final(one, plain))
        .collect();
    crew.each(open.len(), |unit, _| {
        let Some(directory) = open.get(unit) else {
            return Ok(());
        };
        crew.job.at("chmod", &directory.path);
        let opened = below::open_listing(crew.folder(), &directory.path);
        let changed = opened.and_then(|file| below::change_mode(&file, directory.mode));
        changed.map_err(Fault::at(&directory.path))
    })
}

fn stat_directories(crew: &Crew, tree: &Tree<'_>) -> Result<(), Fault> {
    let directories = tree.directories.get(1..).unwrap_or_default();
    crew.each(directories.len(), |unit, _| {
        let Some(directory) = directories.get(unit) else {
            return Ok(());
        };
        crew.job.at("stat", &directory.path);
        let opened = below::open_place(crew.folder(), &directory.path);
        let asked = opened.and_then(below::status);
        asked.map_err(Fault::at(&directory.path))?;
        crew.job.count(Done::Directory);
        Ok(())
    })
}

fn read_whole(
    crew: &Crew,
    at: BorrowedFd<'_>,
    name: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<(), Errno> {
    buffer.resize(READ_BYTES, 0);
    let file = below::open_to_read(at, name)?;
    loop {
        match below::read(&file, buffer)? {
            0 => return Ok(()),
            read => crew.job.count_bytes(read),
        }
        if crew.job.proceed().is_err() {
            return Ok(());
        }
    }
}
