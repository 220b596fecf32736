//! What stands before a call, and lines that strace writes beside those of calls.

use crate::bytes::{cut, from, skip_blanks, split_at_byte, take_digits, take_seconds, words};

/// How a line tells the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    None,
    /// -ttt: since 1970. With the number of digits of its fraction.
    Epoch(i64, u32),
    /// -t, -tt: since midnight.
    Day(i64, u32),
    /// -r: since the line before.
    Relative(i64, u32),
}

/// The front of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) task: Option<u64>,
    pub(crate) stamp: Stamp,
}

/// Seconds from which on a stamp counts from 1970 (chosen: 2001), and below which it is one of -r.
const EPOCH_FROM_NS: i64 = 1_000_000_000_000_000_000;
const EPOCH_FROM_S: u64 = 1_000_000_000;

/// Take the front off a line.
pub(crate) fn take_prefix(line: &[u8]) -> (Prefix, &[u8]) {
    let (task, rest) = take_task(line);
    let (stamp, rest) = take_stamp(rest);
    // -n and -i print the call's number and the instruction pointer in brackets.
    (Prefix { task, stamp }, skip_brackets(rest))
}

fn take_task(line: &[u8]) -> (Option<u64>, &[u8]) {
    if let Some(rest) = line.strip_prefix(b"[pid ") {
        if let Some((task, rest)) = take_digits(skip_blanks(rest)) {
            // strace --decode-pids=comm prints [pid 12<name>].
            if let Some((_, rest)) = split_at_byte(rest, b']') {
                return (Some(task), skip_blanks(rest));
            }
        }
        return (None, line);
    }
    match take_digits(line) {
        // No process has such a number: it is a stamp without a fraction.
        Some((task, _)) if task >= EPOCH_FROM_S => (None, line),
        Some((task, rest)) if rest.first() == Some(&b' ') => (Some(task), skip_blanks(rest)),
        Some((task, rest)) if rest.first() == Some(&b'<') => match split_at_byte(rest, b'>') {
            Some((_, after)) if after.first() == Some(&b' ') => (Some(task), skip_blanks(after)),
            _ => (None, line),
        },
        _ => (None, line),
    }
}

fn take_stamp(line: &[u8]) -> (Stamp, &[u8]) {
    let text = skip_blanks(line);
    if is_day(text)
        && let Some((stamp, rest)) = take_day(text)
    {
        return (stamp, skip_step(rest));
    }
    match take_seconds(text) {
        Some((time, rest, digits))
            if (digits > 0 || time >= EPOCH_FROM_NS) && rest.first() == Some(&b' ') =>
        {
            let stamp = if time >= EPOCH_FROM_NS {
                Stamp::Epoch(time, digits)
            } else {
                Stamp::Relative(time, digits)
            };
            (stamp, skip_step(rest))
        }
        _ => (Stamp::None, text),
    }
}

/// What -r prints behind a stamp of -t: `12:00:00 (+     0.000123) call`.
fn skip_step(rest: &[u8]) -> &[u8] {
    let rest = skip_blanks(rest);
    let step = rest.strip_prefix(b"(+");
    let behind = step.and_then(|step| split_at_byte(step, b')'));
    behind.map_or(rest, |(_, rest)| skip_blanks(rest))
}

/// Whether it can be a time of day: hours of one or two digits, and a colon.
fn is_day(text: &[u8]) -> bool {
    text.get(1) == Some(&b':') || text.get(2) == Some(&b':')
}

fn take_day(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let (hours, rest) = take_digits(text)?;
    let rest = rest.strip_prefix(b":")?;
    let (minutes, rest) = take_digits(rest)?;
    let rest = rest.strip_prefix(b":")?;
    let (seconds, rest, digits) = take_seconds(rest)?;
    if hours > 23 || minutes > 59 || seconds > 61_000_000_000 || rest.first() != Some(&b' ') {
        return None;
    }
    let whole = i64::try_from(hours * 3600 + minutes * 60).ok()? * 1_000_000_000;
    Some((Stamp::Day(whole + seconds, digits), rest))
}

fn skip_brackets(line: &[u8]) -> &[u8] {
    let mut rest = line;
    // At most -n and -i.
    for _ in 0..2 {
        let Some(inner) = rest.strip_prefix(b"[") else {
            break;
        };
        let Some(end) = memchr::memchr(b']', inner) else {
            break;
        };
        let plain = inner
            .iter()
            .take(end)
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b' ' | b'x' | b'?'));
        if !plain || end == 0 {
            break;
        }
        rest = skip_blanks(from(inner, end + 1));
    }
    rest
}

/// Tells them from others.
#[derive(Debug, Default)]
pub(crate) struct SideOutput {
    /// A summary has begun: its rows follow.
    in_summary: bool,
}

/// The words over the columns of a summary (count.c of strace).
const COLUMNS: [&[u8]; 9] = [
    b"%",
    b"time",
    b"seconds",
    b"shortest",
    b"longest",
    b"usecs/call",
    b"calls",
    b"errors",
    b"syscall",
];

impl SideOutput {
    /// Whether the next line of a log is one.
    pub(crate) fn is_next(&mut self, line: &[u8]) -> bool {
        self.in_summary = is_header(line) || self.in_summary && is_row(line);
        self.in_summary || is_of_call(line) || line.starts_with(b"System call usage summary for ")
    }
}

/// ` > libc.so(read+0xe) [0xf7]`, ` | 00000  68 69 0a …`, ` * 3 bytes in buffer 0`: what belongs to the call before.
fn is_of_call(line: &[u8]) -> bool {
    match cut(line, 0, 3) {
        b" > " => true,
        b" | " => from(line, 3).iter().take(5).all(u8::is_ascii_hexdigit),
        b" * " => take_digits(from(line, 3))
            .is_some_and(|(_, rest)| rest.starts_with(b" bytes in buffer ")),
        _ => false,
    }
}

fn is_header(line: &[u8]) -> bool {
    // Most lines begin with a number.
    if line.first().is_none_or(u8::is_ascii_digit) {
        return false;
    }
    words(line).count() > 1 && words(line).all(|word| COLUMNS.contains(&word))
}

/// Numbers and one name, in any order, or dashes.
fn is_row(line: &[u8]) -> bool {
    if skip_blanks(line).starts_with(b"--") {
        return words(line).all(|word| word.iter().all(|&byte| byte == b'-'));
    }
    let is_number = |word: &&[u8]| {
        word.iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    words(line).filter(is_number).count() + 1 == words(line).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(line: &str) -> (Option<u64>, Stamp, String) {
        let (prefix, rest) = take_prefix(line.as_bytes());
        (
            prefix.task,
            prefix.stamp,
            String::from_utf8(rest.to_vec()).unwrap(),
        )
    }

    #[test]
    fn every_flavour_of_prefix_comes_off() {
        let call = "close(3) = 0";
        let noon = 43_200_000_000_000;
        let cases = [
            ("", None, Stamp::None),
            ("909190 ", Some(909_190), Stamp::None),
            ("[pid  1234] ", Some(1234), Stamp::None),
            ("[pid 12<nginx>] ", Some(12), Stamp::None),
            ("12<nginx> ", Some(12), Stamp::None),
            ("12:00:00 ", None, Stamp::Day(noon, 0)),
            (
                "7387  12:00:00.789648 ",
                Some(7387),
                Stamp::Day(noon + 789_648_000, 6),
            ),
            (
                "1795222977.875185 ",
                None,
                Stamp::Epoch(1_795_222_977_875_185_000, 6),
            ),
            (
                "676   1795224641.901361137 ",
                Some(676),
                Stamp::Epoch(1_795_224_641_901_361_137, 9),
            ),
            (
                "9 1795222977 ",
                Some(9),
                Stamp::Epoch(1_795_222_977_000_000_000, 0),
            ),
            ("     0.000123 ", None, Stamp::Relative(123_000, 6)),
            ("99      0.000123 ", Some(99), Stamp::Relative(123_000, 6)),
            ("12:00:00 (+     0.000123) ", None, Stamp::Day(noon, 0)),
            (
                "7584  1795374988.941622 (+     0.000000) ",
                Some(7584),
                Stamp::Epoch(1_795_374_988_941_622_000, 6),
            ),
            ("9 [????????????????] ", Some(9), Stamp::None),
            (
                "9 12:00:00 [ 257] [00007f3b2c1d5e37] ",
                Some(9),
                Stamp::Day(noon, 0),
            ),
        ];
        for (front, task, stamp) in cases {
            assert_eq!(
                taken(&format!("{front}{call}")),
                (task, stamp, call.to_owned()),
                "{front}"
            );
        }
    }

    #[test]
    fn what_is_no_prefix_stays() {
        for line in [
            "--- SIGCHLD {} ---",
            "hello world",
            "25:00:00 x",
            "[pid x] y",
            "",
        ] {
            assert_eq!(taken(line), (None, Stamp::None, line.to_owned()));
        }
    }

    #[test]
    fn stacks_and_dumps_are_told_from_calls_and_output() {
        let mut side_output = SideOutput::default();
        for line in [
            " > /usr/lib/x86_64-linux-gnu/libc.so.6(__vfork+0x8) [0xd43b8]",
            " > Unexpected_backtracing_error [0x0]",
            " | 00000  68 69 0a                                          hi.              |",
            " * 5 bytes in buffer 0",
            "System call usage summary for 32 bit mode:",
        ] {
            assert!(side_output.is_next(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            " | hello",
            " * 5 apples",
            "calls",
            "9 close(3) = 0",
            "time flies",
        ] {
            assert!(!side_output.is_next(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_summary_lasts_as_long_as_its_rows() {
        let mut side_output = SideOutput::default();
        let row = b"100.00    0.000258           1       194        27 total";
        assert!(!side_output.is_next(row));
        for line in [
            "% time     seconds  usecs/call     calls    errors syscall",
            "------ ----------- ----------- --------- --------- ----------------",
            "  0.00    0.000000           0         2           prlimit64",
            "------ ----------- ----------- --------- --------- ----------------",
        ] {
            assert!(side_output.is_next(line.as_bytes()), "{line}");
        }
        assert!(side_output.is_next(row));
        assert!(!side_output.is_next(b"9 close(3) = 0"));
        assert!(!side_output.is_next(row));
    }
}
