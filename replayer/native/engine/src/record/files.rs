//! The files of a run folder: appended to, a whole interval with one write, readable after kill -9.

use crate::record::hlog::{self, Span, seconds};
use crate::record::model::Line;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Bytes that wait while a file cannot be written (a full disk); beyond them whole intervals are left out (chosen).
const WAITING_BYTES: usize = 16 << 20;

struct Appended {
    path: PathBuf,
    /// What a new file begins with.
    header: String,
    file: Option<OwnedFd>,
    /// What could not be written yet.
    waiting: Vec<u8>,
    error: Option<Errno>,
}

impl Appended {
    fn open(path: PathBuf, header: String) -> Self {
        let mut appended = Self {
            path,
            header,
            file: None,
            waiting: Vec::new(),
            error: None,
        };
        appended.append("");
        appended
    }

    /// Append whole lines, after those that wait.
    fn append(&mut self, lines: &str) {
        if self.waiting.len() + lines.len() <= WAITING_BYTES {
            self.waiting.extend_from_slice(lines.as_bytes());
        }
        if let Err(errno) = self.write() {
            self.error.get_or_insert(errno);
        }
    }

    fn write(&mut self) -> Result<(), Errno> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.make()?,
        };
        let file = self.file.insert(file);
        while !self.waiting.is_empty() {
            match rustix::io::write(&*file, &self.waiting) {
                Ok(written) => drop(self.waiting.drain(..written)),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Open or make it, and let a new one begin with its header.
    fn make(&mut self) -> Result<OwnedFd, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&self.path, flags, Mode::from_raw_mode(0o644))?;
        if rustix::fs::fstat(&file)?.st_size == 0 {
            self.waiting.splice(..0, self.header.bytes());
        }
        Ok(file)
    }
}

/// histograms.hlog, timeline.csv and events.jsonl. No call fails: what a file does not take waits.
pub struct Recording {
    histograms: Appended,
    timeline: Appended,
    events: Appended,
    told: bool,
}

impl Recording {
    /// Make, or go on with, the files of a run folder.
    #[must_use]
    pub fn open(folder: &Path, begin_epoch_ns: u64) -> Self {
        let open = |name: &str, header: String| Appended::open(folder.join(name), header);
        Self {
            histograms: open("histograms.hlog", hlog::header(begin_epoch_ns)),
            timeline: open("timeline.csv", TIMELINE_HEADER.to_owned()),
            events: open("events.jsonl", String::new()),
            told: false,
        }
    }

    /// Append an interval: one write for each file.
    pub fn append(&mut self, interval: &IntervalLines) {
        self.histograms.append(&interval.histograms);
        self.timeline.append(&interval.timeline);
    }

    /// Append lines of events.
    pub fn append_events(&mut self, lines: &str) {
        self.events.append(lines);
    }

    /// Append what waits.
    pub fn finish(&mut self) {
        for file in [&mut self.histograms, &mut self.timeline, &mut self.events] {
            file.append("");
        }
    }

    /// The first file that did not take everything at once: its name and the errno.
    #[must_use]
    pub fn error(&self) -> Option<(&'static str, i32)> {
        let errno = |file: &Appended| Some(file.error?.raw_os_error());
        let named = [
            ("histograms.hlog", &self.histograms),
            ("timeline.csv", &self.timeline),
            ("events.jsonl", &self.events),
        ];
        named
            .into_iter()
            .find_map(|(name, file)| Some((name, errno(file)?)))
    }

    /// The same, once.
    pub(crate) fn news(&mut self) -> Option<(&'static str, i32)> {
        let error = self.error().filter(|_| !self.told);
        self.told |= error.is_some();
        error
    }
}

/// The lines of one interval, as histograms.hlog and timeline.csv have them.
pub struct IntervalLines {
    span: Span,
    users: u32,
    histograms: String,
    timeline: String,
}

impl IntervalLines {
    /// Of an interval, in nanoseconds since the begin, with so many users at its end.
    #[must_use]
    pub fn new(start_ns: u64, end_ns: u64, users: u32) -> Self {
        Self {
            span: Span { start_ns, end_ns },
            users,
            histograms: String::new(),
            timeline: String::new(),
        }
    }

    /// Add the lines of a key.
    pub fn push(&mut self, line: &Line<'_>) {
        hlog::write_line(&mut self.histograms, self.span, line);
        write_row(&mut self.timeline, self.span, self.users, line);
    }
}

/// Of timeline.csv, which has a line per key and interval, for people and spreadsheets.
const TIMELINE_HEADER: &str = "start_s,end_s,target,round,phase,users,transaction,op,outcome,expected,\
     count,bytes,mean_ns,p50_ns,p95_ns,p99_ns,max_ns\n";

/// Append the line of a key to it.
fn write_row(lines: &mut String, span: Span, users: u32, line: &Line<'_>) {
    let (key, bytes, times) = (line.key, line.bytes, line.times);
    let (target, round, phase, expected) = (key.target, key.round, key.phase.name(), key.expected);
    let (start, end) = (seconds(span.start_ns), seconds(span.end_ns));
    let (transaction, op, outcome) = (field(&key.transaction), &key.op, &key.outcome);
    let (count, mean, max) = (times.count(), times.mean(), times.max());
    let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| times.percentile(percent));
    // Writing to a String does not fail.
    let _ = writeln!(
        lines,
        "{start},{end},{target},{round},{phase},{users},{transaction},{op},{outcome},{expected},\
         {count},{bytes},{mean:.1},{p50},{p95},{p99},{max}"
    );
}

/// A field as RFC 4180 has it.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(field("front_page"), "front_page");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
