//! Arguments of a call, split at the commas that separate them and at no others.

use crate::bytes::{cut, from, skip_blanks};

/// More than the six registers: strace prints some arguments as two.
pub(crate) const MOST_ARGS: usize = 12;

/// The arguments, as places in the line: those are half as long as slices, and a list of them is moved again and again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ArgList<'a> {
    text: &'a [u8],
    items: [(u32, u32); MOST_ARGS],
    length: usize,
}

impl<'a> ArgList<'a> {
    /// An argument; empty where there is none.
    pub(crate) fn get(&self, index: usize) -> &'a [u8] {
        let (start, end) = self.items.get(index).copied().unwrap_or_default();
        let place = |at: u32| usize::try_from(at).unwrap_or(usize::MAX);
        cut(self.text, place(start), place(end))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.length).map(|index| self.get(index))
    }

    /// Append what stands between two places, without the blanks around it.
    fn push(&mut self, start: usize, end: usize) {
        let (start, end) = trimmed(self.text, start, end);
        // A line is shorter than 4 GiB.
        if let (Some(place), Ok(start), Ok(end)) = (
            self.items.get_mut(self.length),
            u32::try_from(start),
            u32::try_from(end),
        ) {
            *place = (start, end);
            self.length += 1;
        }
    }
}

/// Bytes at which something begins or ends: strings, lists, comments, what `-y` shows.
const fn is_mark(byte: u8) -> bool {
    const MARKS: [bool; 256] = marks();
    #[expect(clippy::indexing_slicing, reason = "a byte has 256 values")]
    MARKS[byte as usize]
}

const fn marks() -> [bool; 256] {
    let mut marks = [false; 256];
    let mut rest: &[u8] = b"\"()[]{},</";
    while let [byte, more @ ..] = rest {
        #[expect(clippy::indexing_slicing, reason = "a byte has 256 values")]
        {
            marks[*byte as usize] = true;
        }
        rest = more;
    }
    marks
}

/// How many bytes in front are no marks.
fn unmarked_length(text: &[u8]) -> usize {
    let mut rest = text;
    // Eight at a time: names and numbers are that long.
    while let Some((eight, more)) = rest.split_first_chunk::<8>()
        && !eight.iter().fold(false, |any, &byte| any | is_mark(byte))
    {
        rest = more;
    }
    let found = rest.iter().position(|&byte| is_mark(byte));
    text.len() - rest.len() + found.unwrap_or(rest.len())
}

/// The same span of a text without blanks in front and spaces behind.
fn trimmed(text: &[u8], start: usize, end: usize) -> (usize, usize) {
    let item = cut(text, start, end);
    let rest = skip_blanks(item);
    let blanks = rest.iter().rev().take_while(|&&byte| byte == b' ').count();
    (start + (item.len() - rest.len()), end - blanks)
}

/// Split what stands between the brackets of a call; returns what follows the closing one.
///
/// None where the text ends before the bracket closes.
pub(crate) fn split_args<'a>(text: &'a [u8], args: &mut ArgList<'a>) -> Option<&'a [u8]> {
    *args = ArgList {
        text,
        ..ArgList::default()
    };
    let mut depth = 0_u32;
    let mut start = 0;
    let mut at = 0;
    loop {
        at += unmarked_length(from(text, at));
        let byte = *text.get(at)?;
        at += 1;
        match byte {
            b'"' => at += string_length(from(text, at))?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let (first, last) = trimmed(text, start, at - 1);
                if args.length > 0 || first < last {
                    args.push(first, last);
                }
                return Some(from(text, at));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                args.push(start, at - 1);
                start = at;
            }
            b'<' if is_shown(cut(text, 0, at - 1)) => at += shown_length(from(text, at))? + 1,
            b'/' if text.get(at) == Some(&b'*') => {
                at += 3 + crate::bytes::find(from(text, at + 1), b"*/")?;
            }
            _ => {}
        }
    }
}

/// How long a string is whose opening quote has been read, with its closing one.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let step = memchr::memchr2(b'"', b'\\', from(text, at))?;
        at += step + 1;
        if text.get(at - 1) == Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

/// What stands outside of strings: their text may look like anything.
pub(crate) fn outside_strings(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let before = rest?;
        let end = memchr::memchr(b'"', before);
        rest = end.map(|quote| {
            let inner = from(before, quote + 1);
            from(inner, string_length(inner).unwrap_or(inner.len()))
        });
        Some(cut(before, 0, end.unwrap_or(before.len())))
    })
}

/// Whether a `<` opens what `-y` prints: it follows a descriptor.
fn is_shown(before: &[u8]) -> bool {
    before.last().is_some_and(u8::is_ascii_digit) || before.ends_with(b"AT_FDCWD")
}

/// How long the text that `-y` prints is, without its closing `>`.
///
/// Newer versions escape `<` and `>` in paths; sockets print `->` and devices nest (`<char 1:3>`), so the end is the
/// first `>` that something can follow.
pub(crate) fn shown_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(b'>', from(text, at))?;
        match text.get(at + 1) {
            None | Some(b',' | b')' | b' ' | b']' | b'}' | b'(' | b'<') => return Some(at),
            Some(_) => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        let mut args = ArgList::default();
        let rest = split_args(text.as_bytes(), &mut args).unwrap();
        assert_eq!(rest, b" = 0");
        args.iter()
            .map(|arg| std::str::from_utf8(arg).unwrap())
            .collect()
    }

    #[test]
    fn only_separating_commas_split() {
        let cases: [(&str, &[&str]); 8] = [
            (") = 0", &[]),
            (
                "3</srv/a,b(c)>, \"x,)\\\"y\"..., 8192) = 0",
                &["3</srv/a,b(c)>", "\"x,)\\\"y\"...", "8192"],
            ),
            (
                "[{fd=5<socket:[104395]>, events=POLLIN}], 1, 5000) = 0",
                &["[{fd=5<socket:[104395]>, events=POLLIN}]", "1", "5000"],
            ),
            (
                "24<TCP:[127.0.0.1:80->127.0.0.1:9]>, 1) = 0",
                &["24<TCP:[127.0.0.1:80->127.0.0.1:9]>", "1"],
            ),
            (
                "0</dev/pts/0<char 136:0>>, 1) = 0",
                &["0</dev/pts/0<char 136:0>>", "1"],
            ),
            (
                "3</tmp/.ZendSem.XxypNZ>(deleted), F_SETLK, {l_type=F_RDLCK, l_len=1}) = 0",
                &[
                    "3</tmp/.ZendSem.XxypNZ>(deleted)",
                    "F_SETLK",
                    "{l_type=F_RDLCK, l_len=1}",
                ],
            ),
            (
                "4, NULL, [UTIME_OMIT, {tv_sec=1, tv_nsec=0} /* 2026-11-06T18:15:16+0000, \" */], 0) = 0",
                &[
                    "4",
                    "NULL",
                    "[UTIME_OMIT, {tv_sec=1, tv_nsec=0} /* 2026-11-06T18:15:16+0000, \" */]",
                    "0",
                ],
            ),
            (
                "0x3, 0x7ffe799257f8, 0x340) = 0",
                &["0x3", "0x7ffe799257f8", "0x340"],
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(split(text), expected);
        }
    }

    #[test]
    fn strings_are_passed_over() {
        let parts = |text: &'static str| {
            let parts = outside_strings(text.as_bytes());
            parts.collect::<Vec<_>>().concat()
        };
        assert_eq!(
            parts("[{a=\"x\\\"y\"..., b=1}, {a=\"\"}]"),
            b"[{a=..., b=1}, {a=}]"
        );
        assert_eq!(parts("[{a=\"x, b=1}"), b"[{a=");
        assert_eq!(parts(""), b"");
    }

    #[test]
    fn what_does_not_end_is_no_call() {
        for text in [
            "", "3", "\"abc", "\"abc\\", "3</srv/a", "/* x", "(3)", "3<a>b",
        ] {
            let mut args = ArgList::default();
            assert!(split_args(text.as_bytes(), &mut args).is_none(), "{text}");
        }
    }
}
