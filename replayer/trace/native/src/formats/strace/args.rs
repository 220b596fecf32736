//! Arguments of a call, split at the commas that separate them and at no others.

use crate::bytes::{cut, from, skip_blanks};

/// More than the six registers: strace prints some arguments as two.
pub(crate) const MOST_ARGS: usize = 12;

/// The arguments, as slices of the line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ArgList<'a> {
    items: [&'a [u8]; MOST_ARGS],
    length: usize,
}

impl<'a> ArgList<'a> {
    /// An argument; empty where there is none.
    pub(crate) fn get(&self, index: usize) -> &'a [u8] {
        self.items.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.items.iter().copied().take(self.length)
    }

    fn push(&mut self, item: &'a [u8]) {
        let item = trimmed(item);
        if let Some(place) = self.items.get_mut(self.length) {
            *place = item;
            self.length += 1;
        }
    }
}

/// Bytes that names and numbers are made of: nothing begins or ends at them.
const fn is_word(byte: u8) -> bool {
    const WORDS: [bool; 256] = words();
    #[expect(clippy::indexing_slicing, reason = "a byte has 256 values")]
    WORDS[byte as usize]
}

const fn words() -> [bool; 256] {
    let mut words = [false; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        #[expect(clippy::indexing_slicing, reason = "a byte has 256 values")]
        {
            words[byte as usize] =
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ' | b'|' | b'=');
        }
        byte += 1;
    }
    words
}

fn trimmed(item: &[u8]) -> &[u8] {
    let item = skip_blanks(item);
    let blanks = item.iter().rev().take_while(|&&byte| byte == b' ').count();
    cut(item, 0, item.len() - blanks)
}

/// Split what stands between the brackets of a call; also returns what follows the closing one.
///
/// None where the text ends before the bracket closes.
pub(crate) fn split_args(text: &[u8]) -> Option<(ArgList<'_>, &[u8])> {
    let mut args = ArgList::default();
    let mut depth = 0_u32;
    let mut start = 0;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        if is_word(byte) {
            continue;
        }
        match byte {
            b'"' => at += string_length(from(text, at))?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = cut(text, start, at - 1);
                if args.length > 0 || !trimmed(last).is_empty() {
                    args.push(last);
                }
                return Some((args, from(text, at)));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                args.push(cut(text, start, at - 1));
                start = at;
            }
            b'<' if is_shown(cut(text, 0, at - 1)) => at += shown_length(from(text, at))? + 1,
            b'/' if text.get(at) == Some(&b'*') => {
                at += 3 + crate::bytes::find(from(text, at + 1), b"*/")?;
            }
            _ => {}
        }
    }
    None
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
        let (args, rest) = split_args(text.as_bytes()).unwrap();
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
    fn what_does_not_end_is_no_call() {
        for text in [
            "", "3", "\"abc", "\"abc\\", "3</srv/a", "/* x", "(3)", "3<a>b",
        ] {
            assert!(split_args(text.as_bytes()).is_none(), "{text}");
        }
    }
}
