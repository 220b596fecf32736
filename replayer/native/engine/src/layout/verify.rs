//! Comparing what is there with what a plan wants.

use super::files::done;
use super::task::{Crew, Done, Fault};
use super::tree::{Directory, Leaf, Tree};
use crate::program::EntryKind;
use crate::sys::below::{self, Status};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};

pub(super) fn verify(crew: &Crew, tree: &Tree<'_>) -> Result<(), Fault> {
    crew.each(tree.directories.len(), |unit, _| {
        let Some(directory) = tree.directories.get(unit) else {
            return Ok(());
        };
        crew.job.at("list", &directory.path);
        match below::open_listing(crew.folder(), &directory.path) {
            Ok(file) => compare(crew, tree, directory, file.as_fd()),
            // Its parent tells of the directory; here all that should be in it is told of.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => {
                all_missing(crew, tree, directory);
                Ok(())
            }
            Err(errno) => Err(Fault::at(&directory.path)(errno)),
        }
    })
}

fn all_missing(crew: &Crew, tree: &Tree<'_>, directory: &Directory) {
    for leaf in tree.leaves(directory) {
        crew.job
            .mismatch(&directory.path_of(&leaf.name), "is missing");
        crew.job.count(done(&leaf));
    }
    for inner in inner(tree, directory) {
        crew.job.mismatch(&inner.path, "is missing");
        crew.job.count(Done::Directory);
    }
}

fn inner<'a>(tree: &'a Tree<'_>, directory: &Directory) -> &'a [Directory] {
    tree.directories
        .get(directory.inner.clone())
        .unwrap_or_default()
}

fn compare(
    crew: &Crew,
    tree: &Tree<'_>,
    directory: &Directory,
    at: BorrowedFd<'_>,
) -> Result<(), Fault> {
    let listing = below::list(at).map_err(Fault::at(&directory.path))?;
    let mut names: BTreeSet<&[u8]> = listing.iter().map(|(name, _)| name.to_bytes()).collect();
    if directory.path.is_empty() {
        names.remove(super::remove::MARKER);
    }
    for leaf in tree.leaves(directory) {
        crew.job.proceed()?;
        names.remove(&*leaf.name);
        let path = directory.path_of(&leaf.name);
        crew.job.at("stat", &path);
        if let Some(reason) = difference(at, &leaf).map_err(Fault::at(&path))? {
            crew.job.mismatch(&path, &reason);
        }
        crew.job.count(done(&leaf));
    }
    for inner in inner(tree, directory) {
        crew.job.proceed()?;
        let (_, name) = inner.split();
        names.remove(name);
        crew.job.at("stat", &inner.path);
        let status = found(at, name).map_err(Fault::at(&inner.path))?;
        if let Some(reason) = status_difference(status, FileType::Directory, inner.mode) {
            crew.job.mismatch(&inner.path, &reason);
        }
        crew.job.count(Done::Directory);
    }
    for name in names {
        crew.job
            .mismatch(&directory.path_of(name), "is not in the plan");
    }
    Ok(())
}

/// What is there of an entry, or why nothing of ours is.
type Found = Result<Status, &'static str>;

fn found(at: BorrowedFd<'_>, name: &[u8]) -> Result<Found, Errno> {
    match below::status_here(at, name) {
        Err(Errno::NOENT) => Ok(Err("is missing")),
        // What users did there would be done elsewhere.
        Err(Errno::XDEV) => Ok(Err("is a mount point")),
        status => status.map(Ok),
    }
}

/// What is wrong with a file or link.
fn difference(at: BorrowedFd<'_>, leaf: &Leaf<'_>) -> Result<Option<String>, Errno> {
    let status = found(at, &leaf.name)?;
    let is_link = leaf.entry.kind == EntryKind::Link;
    let kind = if is_link {
        FileType::Symlink
    } else {
        FileType::RegularFile
    };
    let mode = if is_link {
        status.map_or(0, |status| status.mode)
    } else {
        leaf.entry.mode
    };
    if let Some(reason) = status_difference(status, kind, mode) {
        return Ok(Some(reason));
    }
    if is_link {
        let target = below::read_link(at, &leaf.name)?;
        let same = target.to_bytes() == &*leaf.link;
        return Ok((!same).then(|| {
            let wanted = String::from_utf8_lossy(&leaf.link);
            format!("must point to {wanted:?}, points to {target:?}")
        }));
    }
    if status.is_ok_and(|status| status.is_shared) {
        // Writing to it would write to whatever else bears a name of it.
        return Ok(Some("must have one name, has more (hard links)".to_owned()));
    }
    let (wanted, size) = (leaf.entry.size, status.map_or(0, |status| status.size));
    Ok((size != wanted).then(|| format!("must have {wanted} bytes, has {size}")))
}

/// What is wrong with an entry's type or mode.
fn status_difference(found: Found, kind: FileType, mode: u32) -> Option<String> {
    let status = match found {
        Ok(status) => status,
        Err(reason) => return Some(reason.to_owned()),
    };
    if status.kind != kind {
        return Some(format!(
            "must be a {}, is a {}",
            word(kind),
            word(status.kind)
        ));
    }
    let differs = status.mode != mode;
    differs.then(|| format!("must have mode {mode:04o}, has {:04o}", status.mode))
}

fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        _ => "special file",
    }
}
