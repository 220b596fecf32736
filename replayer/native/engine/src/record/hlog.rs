//! histograms.hlog: the standard `HdrHistogram` log, V2 compressed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write as _;

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
pub(crate) fn write_line(lines: &mut String, tag: &str, span: Span, max_ns: u64, packed: &[u8]) {
    let length_ns = span.end_ns.saturating_sub(span.start_ns);
    let (start, length) = (seconds(span.start_ns), seconds(length_ns));
    let (millis, micros) = (max_ns / 1_000_000, max_ns / 1000 % 1000);
    // Writing to a String does not fail.
    let _ = write!(lines, "Tag={tag},{start},{length},{millis}.{micros:03},");
    STANDARD.encode_string(packed, lines);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_neither_commas_nor_spaces_nor_stray_slashes() {
        assert_eq!(tag_part("front_page-2.x"), "front_page-2.x");
        assert_eq!(tag_part("GET /a, b"), "GET%20%2Fa%2C%20b");
    }

    #[test]
    fn the_base_time_is_the_engines_begin() {
        let header = header(1_795_230_514_123_456_789);
        assert!(header.contains("#[BaseTime: 1795230514.123 (seconds since epoch)]\n"));
    }
}
