//! Reading histograms.hlog, whole or cut short: added up per key, or apart by time.
//!
//! Format: `HdrHistogram`'s HistogramLogWriter.java, version 1.3. A log whose writer was killed ends in the middle of a line: what is
//! whole is read, what is not is counted.

use crate::histogram::Histogram;
use crate::record::model::{LogKey, Phase};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// The longest line: a histogram in base64 is below 800 kB.
const LONGEST_LINE: u64 = 1 << 20;
const LEGEND: &[u8] = b"\"StartTimestamp\"";
/// Older logs have their times in milliseconds; those of the slots are in microseconds.
const ROUNDED_S: f64 = 0.0015;

/// Begin and end of an interval, in seconds since the begin.
pub type SpanS = (f64, f64);

/// Everything that a log holds, added up.
#[derive(Debug, Default)]
pub struct Log {
    /// By key, over all intervals.
    pub histograms: BTreeMap<LogKey, Histogram>,
    /// When each transaction of a target, round and phase was recorded: one for each interval.
    pub intervals: BTreeMap<(u16, u16, Phase, Arc<str>), Vec<SpanS>>,
    /// Lines that are cut short or damaged.
    pub damaged: u64,
}

/// Read a log and add up its intervals; one that is missing holds nothing.
///
/// # Errors
/// The file cannot be read.
pub fn read_log(path: &Path) -> io::Result<Log> {
    let mut log = Log::default();
    for_each_line(path, |raw| {
        if log.take(raw).is_none() {
            log.damaged += 1;
        }
    })?;
    Ok(log)
}

impl Log {
    /// Add a line; None: it is not whole.
    fn take(&mut self, raw: &[u8]) -> Option<()> {
        let line = LogLine::parse(raw)?;
        let (key, span, times) = (line.key()?, line.span()?, line.times()?);
        let transaction = Arc::clone(&key.transaction);
        let place = (key.target, key.round, key.phase, transaction);
        let spans = self.intervals.entry(place).or_default();
        if spans.last() != Some(&span) {
            spans.push(span);
        }
        self.histograms.entry(key).or_default().add(&times);
        Some(())
    }
}

/// How intervals are kept apart.
#[derive(Debug)]
pub struct Slots {
    /// When each slot begins, ascending; an interval belongs to that in which it began.
    pub begins_s: Vec<f64>,
    /// Latency bins for each doubling.
    pub bins_per_octave: u32,
    /// The last bin, which holds all that is longer.
    pub last_bin: u32,
}

impl Slots {
    fn slot(&self, start_s: f64) -> usize {
        let begun = |begin: &f64| *begin <= start_s + ROUNDED_S;
        self.begins_s.partition_point(begun).saturating_sub(1)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a logarithm is 0 to 64"
    )]
    fn bin(&self, ns: u64) -> u32 {
        let octaves = (ns.max(1) as f64).log2();
        let bin = octaves * f64::from(self.bins_per_octave);
        (bin as u32).min(self.last_bin)
    }
}

/// One key's counts by slot and latency bin.
pub type Slices = BTreeMap<(usize, u32), u64>;

/// Read a log, keeping the intervals of some keys apart; what is damaged is left out, `read_log` has counted it.
///
/// # Errors
/// The file cannot be read.
pub fn read_slices(path: &Path, slots: &Slots, keys: &[LogKey]) -> io::Result<Vec<Slices>> {
    let places: BTreeMap<_, _> = keys.iter().zip(0..).collect();
    let mut found = vec![Slices::new(); keys.len()];
    for_each_line(path, |raw| {
        let slices = LogLine::parse(raw).and_then(|line| {
            let place: usize = *places.get(&line.key()?)?;
            let slot = slots.slot(line.span()?.0);
            Some((found.get_mut(place)?, slot, line.times()?))
        });
        let Some((slices, slot, times)) = slices else {
            return;
        };
        for (value, count) in times.buckets() {
            *slices.entry((slot, slots.bin(value))).or_default() += count;
        }
    })?;
    Ok(found)
}

/// Hand on the lines that say something, each with its end if it has one.
fn for_each_line(path: &Path, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => File::from(opened?),
    };
    let (mut reader, mut raw) = (BufReader::new(file), Vec::new());
    loop {
        raw.clear();
        let mut limited = reader.by_ref().take(LONGEST_LINE);
        if limited.read_until(b'\n', &mut raw)? == 0 {
            return Ok(());
        }
        if !raw.starts_with(b"#") && !raw.starts_with(LEGEND) && !raw.trim_ascii().is_empty() {
            take(&raw);
        }
    }
}

/// A line that is whole: tag, start, length, maximum, histogram.
struct LogLine<'a>([&'a str; 5]);

impl<'a> LogLine<'a> {
    fn parse(raw: &'a [u8]) -> Option<Self> {
        let line = str::from_utf8(raw.strip_suffix(b"\n")?).ok()?;
        let mut fields = line.trim().split(',');
        let mut next = || fields.next();
        let parts = [next()?, next()?, next()?, next()?, next()?];
        fields.next().is_none().then_some(Self(parts))
    }

    fn key(&self) -> Option<LogKey> {
        let Self([tag, ..]) = self;
        LogKey::of_tag(tag.strip_prefix("Tag=").unwrap_or(tag))
    }

    fn span(&self) -> Option<SpanS> {
        let Self([_, start, length, ..]) = self;
        let start_s: f64 = start.parse().ok()?;
        let length_s: f64 = length.parse().ok()?;
        Some((start_s, start_s + length_s))
    }

    fn times(&self) -> Option<Histogram> {
        let Self([.., blob]) = self;
        Histogram::from_v2(&STANDARD.decode(blob).ok()?).ok()
    }
}
