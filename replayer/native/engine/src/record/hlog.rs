//! histograms.hlog: the standard `HdrHistogram` log, V2 compressed.

use crate::record::model::{Line, LogKey, Phase};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::{self, Write as _};

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

/// Append the line of a histogram.
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
