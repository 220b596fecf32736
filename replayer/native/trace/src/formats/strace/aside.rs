//! Lines that strace writes beside those of calls, without their prefix: stacks (-k), dumps (-e read, -e write), summaries (-C).

use crate::bytes::{cut, from, skip_blanks, take_digits, words};

/// Tells them from others.
#[derive(Debug, Default)]
pub(crate) struct Asides {
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

impl Asides {
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

    #[test]
    fn stacks_and_dumps_are_told_from_calls_and_output() {
        let mut asides = Asides::default();
        for line in [
            " > /usr/lib/x86_64-linux-gnu/libc.so.6(__vfork+0x8) [0xd43b8]",
            " > Unexpected_backtracing_error [0x0]",
            " | 00000  68 69 0a                                          hi.              |",
            " * 5 bytes in buffer 0",
            "System call usage summary for 32 bit mode:",
        ] {
            assert!(asides.is_next(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            " | hello",
            " * 5 apples",
            "calls",
            "9 close(3) = 0",
            "time flies",
        ] {
            assert!(!asides.is_next(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn a_summary_lasts_as_long_as_its_rows() {
        let mut asides = Asides::default();
        let row = b"100.00    0.000258           1       194        27 total";
        assert!(!asides.is_next(row));
        for line in [
            "% time     seconds  usecs/call     calls    errors syscall",
            "------ ----------- ----------- --------- --------- ----------------",
            "  0.00    0.000000           0         2           prlimit64",
            "------ ----------- ----------- --------- --------- ----------------",
        ] {
            assert!(asides.is_next(line.as_bytes()), "{line}");
        }
        assert!(asides.is_next(row));
        assert!(!asides.is_next(b"9 close(3) = 0"));
        assert!(!asides.is_next(row));
    }
}
