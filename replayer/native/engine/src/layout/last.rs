//! Reading back what users have written, once, when they are gone. What is judged of it is the business of `verify`.

use super::files::READ_BYTES;
use super::task::{Crew, Done, Fault, Task};
use crate::sys::{Folder, below, cached_bytes, write_out};
use crate::verify::{Kept, LastReader, Read, Verification};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes that are written out in one go, so that a slow mount is told from one that hangs (chosen).
const WRITTEN_OUT: u64 = 4 << 20;

/// How long is read, and by how many threads.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// How many threads.
    pub threads: usize,
    /// How long.
    pub budget: Duration,
}

/// What the threads of a last reading share.
struct Errand<'a> {
    crew: &'a Crew,
    folders: &'a [Arc<Folder>],
    verification: &'a Verification,
    until: Instant,
}

/// Read what was written on a target, each file through the mount point of whoever wrote it last.
pub(crate) fn read_back(
    folder: OwnedFd,
    folders: Vec<Arc<Folder>>,
    verification: &Arc<Verification>,
    target: u16,
    bound: Bound,
) -> Task {
    let verification = Arc::clone(verification);
    Task::start(folder, bound.threads, move |crew| {
        let kept = verification.kept(target);
        let total = kept.len() as u64;
        crew.job.total_entries.store(total, Ordering::Relaxed);
        verification.last_begins(target, total);
        let errand = Errand {
            crew,
            folders: &folders,
            verification: &verification,
            until: Instant::now() + bound.budget,
        };
        let done = crew.each(kept.len(), |unit, buffer| {
            if let Some(file) = kept.get(unit) {
                errand.run(target, file, buffer);
            }
            Ok(())
        });
        verification.last_ends();
        match done {
            // What was not read by then is told as left.
            Err(Fault::Cancelled) => Ok(()),
            done => done,
        }
    })
}

impl Errand<'_> {
    /// Read a file and count what came of it.
    fn run(&self, target: u16, file: &Kept, buffer: &mut Vec<u8>) {
        if self.is_over() {
            return;
        }
        let Some(mut reader) = self.verification.last_reader(target) else {
            return;
        };
        let read = self.read(file, &mut reader, buffer);
        if read != Read::Left {
            self.crew.job.count(Done::File);
        }
        self.verification
            .last_read((target, &file.path), &reader, read);
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.crew.job.proceed().is_err()
    }

    fn read(&self, file: &Kept, reader: &mut LastReader<'_>, buffer: &mut Vec<u8>) -> Read {
        let mount = file.user as usize % self.folders.len().max(1);
        let Some(folder) = self.folders.get(mount).filter(|_| reader.begin(file)) else {
            return Read::Unclear;
        };
        self.crew.job.at("open", &file.path);
        match below::open_to_read(folder.file.as_fd(), &file.path) {
            Ok(opened) => self.read_open(&opened, file, reader, buffer),
            Err(Errno::NOENT) => match reader.end(0) {
                None => Read::Unclear,
                missing => Read::Whole(missing),
            },
            // It is for others to read, or lies behind a link.
            Err(Errno::ACCESS | Errno::PERM | Errno::LOOP) => Read::Unclear,
            Err(_) => Read::Failed,
        }
    }

    fn read_open(
        &self,
        opened: &OwnedFd,
        file: &Kept,
        reader: &mut LastReader<'_>,
        buffer: &mut Vec<u8>,
    ) -> Read {
        let size = match below::status(opened) {
            Ok(status) if status.kind == FileType::RegularFile => status.size,
            Ok(_) => return Read::Unclear,
            Err(_) => return Read::Failed,
        };
        if !self.drop_pages(opened, file, size) {
            return Read::Left;
        }
        buffer.resize(READ_BYTES, 0);
        let mut offset = 0;
        loop {
            if self.is_over() {
                return Read::Left;
            }
            self.crew.job.at("read", &file.path);
            let Ok(len) = below::read_full(opened, buffer) else {
                return Read::Failed;
            };
            reader.judge(offset, buffer.get(..len).unwrap_or_default());
            self.crew.job.count_bytes(len);
            offset += len as u64;
            if len < buffer.len() {
                return Read::Whole(reader.end(offset));
            }
        }
    }

    /// Have what is read next come from the mount, not from this machine's page cache; false: time is over.
    fn drop_pages(&self, opened: &OwnedFd, file: &Kept, size: u64) -> bool {
        let mut offset = 0;
        while offset < size {
            if self.is_over() {
                return false;
            }
            self.crew.job.at("fsync", &file.path);
            write_out(opened, offset, WRITTEN_OUT);
            offset += WRITTEN_OUT;
        }
        self.crew.job.at("fsync", &file.path);
        // A file that cannot be synced at all has nothing that waits to be written.
        let answers = [Ok(()), Err(Errno::INVAL), Err(Errno::ROFS)];
        let is_synced = answers.contains(&below::evict(opened));
        let cached = cached_bytes(opened, size);
        self.verification.last_prepared(cached, is_synced);
        true
    }
}
