//! The files of the record directory: appended to, a whole interval with one write, readable after kill -9.

use crate::record::{hlog, timeline};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes that wait while a file cannot be written (a full disk); beyond them whole intervals are left out (chosen).
const WAITING_BYTES: usize = 16 << 20;

struct Appended {
    name: &'static str,
    file: OwnedFd,
    /// What could not be written yet.
    waiting: Vec<u8>,
    error: Option<Errno>,
}

impl Appended {
    fn open(directory: &OwnedFd, name: &'static str, header: &str) -> io::Result<Self> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o644))?;
        let is_new = rustix::fs::fstat(&file)?.st_size == 0;
        let mut appended = Self {
            name,
            file,
            waiting: Vec::new(),
            error: None,
        };
        if is_new {
            appended.append(header.as_bytes());
        }
        Ok(appended)
    }

    /// Append whole lines, after those that wait.
    fn append(&mut self, lines: &[u8]) {
        if self.waiting.len() + lines.len() <= WAITING_BYTES {
            self.waiting.extend_from_slice(lines);
        }
        while !self.waiting.is_empty() {
            match rustix::io::write(&self.file, &self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(Errno::INTR) => {}
                Err(errno) => {
                    self.error.get_or_insert(errno);
                    return;
                }
            }
        }
    }
}

/// histograms.hlog, timeline.csv and events.jsonl; none of them without a record directory.
pub(crate) struct Files {
    files: Option<[Appended; 3]>,
    told: bool,
}

impl Files {
    pub(crate) fn open(directory: Option<OwnedFd>, begin_epoch_ns: u64) -> io::Result<Self> {
        let open = |directory: OwnedFd| {
            Ok::<_, io::Error>([
                Appended::open(&directory, "histograms.hlog", &hlog::header(begin_epoch_ns))?,
                Appended::open(&directory, "timeline.csv", timeline::HEADER)?,
                Appended::open(&directory, "events.jsonl", "")?,
            ])
        };
        Ok(Self {
            files: directory.map(open).transpose()?,
            told: false,
        })
    }

    /// Whether anything is written at all.
    pub(crate) fn wanted(&self) -> bool {
        self.files.is_some()
    }

    /// Append the lines of an interval.
    pub(crate) fn append(&mut self, histograms: &str, timeline: &str) {
        if let Some([hlog, csv, _]) = &mut self.files {
            hlog.append(histograms.as_bytes());
            csv.append(timeline.as_bytes());
        }
    }

    pub(crate) fn append_events(&mut self, lines: &str) {
        if let Some([_, _, events]) = &mut self.files {
            events.append(lines.as_bytes());
        }
    }

    /// The first write that failed: the file's name and the errno.
    pub(crate) fn write_error(&self) -> Option<(&'static str, i32)> {
        let mut files = self.files.iter().flatten();
        files.find_map(|file| Some((file.name, file.error?.raw_os_error())))
    }

    /// The same, once.
    pub(crate) fn news(&mut self) -> Option<(&'static str, i32)> {
        let error = self.write_error().filter(|_| !self.told);
        self.told |= error.is_some();
        error
    }
}
