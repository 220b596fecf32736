//! The files of a run folder: appended to, a whole interval with one write, readable after kill -9.
//! histograms.hlog is a standard `HdrHistogram` log, V2 compressed.

use crate::record::model::{Line, LogKey, Phase};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::borrow::Cow;
use std::fmt::{self, Write as _};
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
            histograms: open("histograms.hlog", header(begin_epoch_ns)),
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
        write_line(&mut self.histograms, self.span, line);
        write_row(&mut self.timeline, self.span, self.users, line);
    }
}

/// Of timeline.csv, which has a line per key and interval, for people and spreadsheets.
const TIMELINE_HEADER: &str = "start_s,end_s,target,round,phase,users,transaction,op,outcome,expected,\
     count,bytes,mean_ns,p50_ns,p95_ns,p99_ns,max_ns\n";

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

const EXPECTED: &str = "expected";
const UNEXPECTED: &str = "unexpected";

/// Begin and end of an interval, since the engine's begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// The lines at the head of the file. Start times are seconds since the base time.
pub(crate) fn header(begin_epoch_ns: u64) -> String {
    let (seconds, millis) = (
        begin_epoch_ns / 1_000_000_000,
        begin_epoch_ns / 1_000_000 % 1000,
    );
    format!(
        "#[Histogram log format version 1.3]\n\
         #[BaseTime: {seconds}.{millis:03} (seconds since epoch)]\n\
         #[MaxValueDivisor: 1000000.000]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

pub(crate) fn write_line(lines: &mut String, span: Span, line: &Line<'_>) {
    let length_ns = span.end_ns.saturating_sub(span.start_ns);
    let (start, length) = (seconds(span.start_ns), seconds(length_ns));
    let max_ns = line.times.max();
    let (millis, micros) = (max_ns / 1_000_000, max_ns / 1000 % 1000);
    let key = &line.key;
    // Writing to a String does not fail.
    let _ = write!(lines, "Tag={key},{start},{length},{millis}.{micros:03},");
    STANDARD.encode_string(line.packed, lines);
    lines.push('\n');
}

/// Seconds with six digits, without a detour over floating point.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}

/// A part of a tag: what is neither a letter, a digit nor `_ - .` is percent-encoded, so that tags have no comma,
/// no space, and a slash only between their parts.
pub(crate) fn tag_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"_-.".contains(&byte) {
            part.push(char::from(byte));
        } else {
            let _ = write!(part, "%{byte:02X}");
        }
    }
    part
}

/// The tag: `target/round/phase/transaction/op/outcome/expected|unexpected`.
impl fmt::Display for LogKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (phase, transaction) = (self.phase.name(), tag_part(&self.transaction));
        let word = if self.expected { EXPECTED } else { UNEXPECTED };
        write!(to, "{}/{}/{phase}/{transaction}/", self.target, self.round)?;
        write!(to, "{}/{}/{word}", self.op, self.outcome)
    }
}

impl LogKey {
    /// The key of a tag; None: it is not whole.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        let mut parts = tag.splitn(4, '/');
        let target = parts.next()?.parse().ok()?;
        let round = parts.next()?.parse().ok()?;
        let phase = Phase::of(parts.next()?)?;
        let mut parts = parts.next()?.rsplitn(4, '/');
        let expected = match parts.next()? {
            EXPECTED => true,
            UNEXPECTED => false,
            _ => return None,
        };
        let (outcome, op) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Self {
            target,
            round,
            phase,
            transaction: part_text(parts.next()?).into(),
            op: op.into(),
            outcome: outcome.into(),
            expected,
        })
    }
}

fn part_text(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part;
    while let Some((plain, coded)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        let byte = coded.get(..2).map(|code| u8::from_str_radix(code, 16));
        if let Some(Ok(byte)) = byte {
            bytes.push(byte);
            rest = coded.get(2..).unwrap_or_default();
        } else {
            bytes.push(b'%');
            rest = coded;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(field("front_page"), "front_page");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn tags_have_neither_commas_nor_spaces_nor_stray_slashes() {
        assert_eq!(tag_part("front_page-2.x"), "front_page-2.x");
        assert_eq!(tag_part("GET /a, b"), "GET%20%2Fa%2C%20b");
        for name in ["page/ü, 1 %41%", "50 %", "~"] {
            assert_eq!(part_text(&tag_part(name)), name);
        }
        assert_eq!(part_text("50 %, %zz, %e"), "50 %, %zz, %e");
    }

    #[test]
    fn the_base_time_is_the_engines_begin() {
        let header = header(1_795_230_514_123_456_789);
        assert!(header.contains("#[BaseTime: 1795230514.123 (seconds since epoch)]\n"));
    }
}
