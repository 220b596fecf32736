//! timeline.csv: one line per key and interval, for people and spreadsheets.

use crate::record::hlog::{Span, seconds};
use crate::record::model::{Line, LogKey};
use std::borrow::Cow;
use std::fmt::Write as _;

pub(crate) const HEADER: &str = "start_s,end_s,target,round,phase,users,transaction,op,outcome,expected,\
     count,bytes,mean_ns,p50_ns,p95_ns,p99_ns,max_ns\n";

/// Append the line of a key.
pub(crate) fn write_line(lines: &mut String, span: Span, users: u32, line: &Line<'_>) {
    let Line {
        key, bytes, times, ..
    } = line;
    let LogKey {
        target,
        round,
        op,
        outcome,
        expected,
        ..
    } = key;
    let (start, end, phase) = (
        seconds(span.start_ns),
        seconds(span.end_ns),
        key.phase.name(),
    );
    let transaction = field(&key.transaction);
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
