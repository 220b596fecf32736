//! The files of a performance: laid out just before it and removed just after it, by its user's own thread, beneath the run's folder.

use crate::ops::Op;
use crate::path::split;
use crate::program::EntryKind;
use crate::replay::names::{Names, Ready};
use crate::replay::program::{PathId, ReplayProgram};
use crate::sys::below::{
    change_mode, close, create, list, make_directory, make_link, open_listing, open_place,
    remove_directory, status_of, unlink, write_all,
};
use crate::thread_state::{Place, ThreadState};
use crate::written::Written;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Directories in directories that are removed (chosen: paths of traces have fewer, and each takes a descriptor).
const DEEPEST: usize = 512;

/// Bytes of one write (chosen: between two of them a performance can be broken off).
const PIECE: u64 = 1 << 20;

/// What could not be done, and where.
pub(super) type Fault = (Errno, Vec<u8>);

/// A performance and where it is given.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) folder: BorrowedFd<'a>,
    pub(crate) names: &'a Names,
    pub(crate) replay_program: &'a ReplayProgram,
    pub(crate) thread_state: &'a ThreadState,
}

impl Site<'_> {
    /// Make a call where others see it hanging.
    fn seen<V>(&self, op: Op, path: PathId, call: impl FnOnce() -> V) -> V {
        self.thread_state.show(op, Place::name(path), call)
    }

    /// Whether the performance is not broken off: EINTR where it is.
    fn proceed(&self) -> Result<(), Errno> {
        if self.thread_state.is_cut() {
            return Err(Errno::INTR);
        }
        Ok(())
    }

    /// The directory that a path's last name is in, and that name.
    fn place<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8]), Errno> {
        let (parent, leaf) = split(path);
        Ok((open_place(self.folder, parent)?, leaf))
    }

    /// Whether the plan's own layout has made what a performance finds.
    fn is_laid_out(&self, turn: u64) -> bool {
        let first = self.names.entries(self.replay_program).next();
        let there = first.map(|entry| {
            let status = || self.status(entry.path.to_bytes());
            self.seen(Op::Lstat, entry.id, status).is_ok()
        });
        turn == 0 && self.replay_program.laid_out && there.unwrap_or(true)
    }

    fn status(&self, path: &[u8]) -> Result<FileType, Errno> {
        let (parent, leaf) = self.place(path)?;
        status_of(parent.as_fd(), leaf).map(|status| status.kind)
    }
}

fn at(path: &[u8]) -> impl Fn(Errno) -> Fault + '_ {
    move |errno| (errno, path.to_vec())
}

/// Lay out what the user's performance of this number finds, where that was not done before. EINTR where it is broken off meanwhile.
pub(crate) fn lay_out(site: &Site<'_>, turn: u64, written: &Written) -> Result<(), Fault> {
    if site.is_laid_out(turn) {
        return Ok(());
    }
    for entry in site.names.entries(site.replay_program) {
        let path = entry.path.to_bytes();
        make(site, &entry, written).map_err(at(path))?;
    }
    // Modes of directories come last: they may forbid what was just done.
    for entry in site.names.entries(site.replay_program) {
        if entry.kind == EntryKind::Directory {
            let path = entry.path.to_bytes();
            site.proceed().map_err(at(path))?;
            let change = || {
                let directory = open_listing(site.folder, path)?;
                change_mode(&directory, entry.mode & 0o7777)
            };
            site.seen(Op::Chmod, entry.id, change).map_err(at(path))?;
        }
    }
    Ok(())
}

fn make(site: &Site<'_>, entry: &Ready<'_>, written: &Written) -> Result<(), Errno> {
    site.proceed()?;
    let place = || site.place(entry.path.to_bytes());
    let (parent, leaf) = site.seen(Op::Open, entry.id, place)?;
    let parent = parent.as_fd();
    let made = match entry.kind {
        EntryKind::Directory => {
            site.seen(Op::Mkdir, entry.id, || make_directory(parent, leaf, 0o700))
        }
        EntryKind::Link => site.seen(Op::Symlink, entry.id, || {
            make_link(parent, leaf, &entry.link)
        }),
        EntryKind::File => make_file(site, (parent, leaf), entry, written),
    };
    match made {
        // A performance that was broken off has left it.
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

fn make_file(
    site: &Site<'_>,
    (parent, leaf): (BorrowedFd<'_>, &[u8]),
    entry: &Ready<'_>,
    written: &Written,
) -> Result<(), Errno> {
    let file = site.seen(Op::Open, entry.id, || create(parent, leaf, 0o600))?;
    let mut rest = entry.size;
    while rest > 0 {
        site.proceed()?;
        let bytes = written.first(rest.min(PIECE));
        if bytes.is_empty() {
            return Err(Errno::NOSPC);
        }
        site.seen(Op::Write, entry.id, || write_all(&file, bytes))?;
        rest -= bytes.len() as u64;
    }
    site.seen(Op::Fchmod, entry.id, || {
        change_mode(&file, entry.mode & 0o7777)
    })?;
    site.seen(Op::Close, entry.id, || close(file))
}

/// Remove the topmost paths of a performance with all that is below them; no link is followed and no mount entered.
pub(crate) fn remove(site: &Site<'_>, is_over: &impl Fn() -> bool) -> Result<(), Fault> {
    for (id, path) in site.names.tops(site.replay_program) {
        let path = path.to_bytes();
        match remove_top(site, (id, path), is_over) {
            // It is not there, or neither is where it would be.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => return Err((errno, path.to_vec())),
        }
    }
    Ok(())
}

fn remove_top(
    site: &Site<'_>,
    (id, path): (PathId, &[u8]),
    is_over: &impl Fn() -> bool,
) -> Result<(), Errno> {
    let (parent, leaf) = site.seen(Op::Open, id, || site.place(path))?;
    let parent = parent.as_fd();
    let status = site.seen(Op::Lstat, id, || status_of(parent, leaf))?;
    if status.kind != FileType::Directory {
        return site.seen(Op::Unlink, id, || unlink(parent, leaf));
    }
    let first = || Emptied::open(parent, leaf.to_vec());
    let mut open = vec![site.seen(Op::Getdents, id, first)?];
    while let Some(directory) = open.last_mut() {
        if is_over() {
            return Err(Errno::INTR);
        }
        match directory.entries.pop() {
            Some((name, FileType::Directory)) => {
                let next = || Emptied::open(directory.file.as_fd(), name.into_bytes());
                let inner = site.seen(Op::Getdents, id, next)?;
                if open.len() >= DEEPEST {
                    return Err(Errno::MFILE);
                }
                open.push(inner);
            }
            Some((name, _)) => site.seen(Op::Unlink, id, || {
                unlink(directory.file.as_fd(), name.as_bytes())
            })?,
            None => {
                let Some(emptied) = open.pop() else {
                    return Ok(());
                };
                let outer = open.last().map_or(parent, |outer| outer.file.as_fd());
                site.seen(Op::Rmdir, id, || remove_directory(outer, &emptied.name))?;
            }
        }
    }
    Ok(())
}

struct Emptied {
    file: OwnedFd,
    name: Vec<u8>,
    entries: Vec<(CString, FileType)>,
}

impl Emptied {
    fn open(outer: BorrowedFd<'_>, name: Vec<u8>) -> Result<Emptied, Errno> {
        let file = open_listing(outer, &name)?;
        let entries = list(file.as_fd())?;
        Ok(Emptied {
            file,
            name,
            entries,
        })
    }
}
