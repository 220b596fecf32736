//! Values as strace prints them: strings, descriptors, structures.

use crate::bytes::{cut, find, from, number, take_number, take_radix};
use crate::call::{At, FileArg, FileKind, PathArg, Seen};
use crate::constants::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, flags};
use crate::formats::strace::args::shown_length;
use std::borrow::Cow;

/// A string between quotes; None for addresses, NULL, and strings that strace has cut.
pub(crate) fn string(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.ends_with(b"\\") && !inner.ends_with(b"\\\\") {
        return None;
    }
    Some(unescape(inner))
}

/// The beginning of a string, cut or not.
pub(crate) fn string_start(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    string(text.strip_suffix(b"...").unwrap_or(text))
}

/// Undo `\n`, `\"`, `\74`, `\x3c`.
pub(crate) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else {
        return Cow::Borrowed(text);
    };
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(at) = next {
        plain.extend_from_slice(cut(rest, 0, at));
        let (byte, used) = escape(from(rest, at + 1));
        plain.push(byte);
        rest = from(rest, at + 1 + used);
        next = memchr::memchr(b'\\', rest);
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

/// The byte that an escape stands for, and how long it is behind its backslash.
fn escape(text: &[u8]) -> (u8, usize) {
    match text.first() {
        Some(b'n') => (b'\n', 1),
        Some(b't') => (b'\t', 1),
        Some(b'r') => (b'\r', 1),
        Some(b'v') => (0x0b, 1),
        Some(b'f') => (0x0c, 1),
        Some(b'x') => {
            digits(from(text, 1), 16, 2).map_or((b'x', 1), |(byte, used)| (byte, used + 1))
        }
        Some(b'0'..=b'7') => digits(text, 8, 3).unwrap_or((b'\\', 0)),
        Some(&other) => (other, 1),
        None => (b'\\', 0),
    }
}

fn digits(text: &[u8], radix: u32, most: usize) -> Option<(u8, usize)> {
    let (value, rest) = take_radix(cut(text, 0, most.min(text.len())), radix)?;
    let used = most.min(text.len()) - rest.len();
    Some((u8::try_from(value).ok()?, used))
}

/// A descriptor: `7`, `0x7`, `7</path>`, `7</path>(deleted)`.
pub(crate) fn file(text: &[u8]) -> Option<FileArg<'_>> {
    let (value, rest) = take_number(text)?;
    let Some(inner) = rest.strip_prefix(b"<") else {
        return Some(FileArg::plain(value));
    };
    let (shown, deleted) = shown_path(inner)?;
    Some(FileArg {
        number: value,
        shown: Some(shown),
        deleted,
    })
}

/// The path behind a `<`, and whether it names nothing any more: strace says so behind the brackets, the kernel inside of them.
fn shown_path(inner: &[u8]) -> Option<(&[u8], bool)> {
    let end = shown_length(inner)?;
    let shown = without_device(cut(inner, 0, end));
    let told = shown.strip_suffix(b" (deleted)");
    let deleted = told.is_some() || from(inner, end + 1).starts_with(b"(deleted)");
    Some((told.unwrap_or(shown), deleted))
}

/// A device is shown twice: `3</dev/null<char 1:3>>`.
fn without_device(shown: &[u8]) -> &[u8] {
    // Its numbers stand last.
    if !matches!(shown, [.., b'0'..=b'9' | b'>']) {
        return shown;
    }
    match memchr::memchr(b'<', shown) {
        Some(at)
            if at > 0
                && [&b"<char "[..], b"<block "]
                    .iter()
                    .any(|kind| from(shown, at).starts_with(kind)) =>
        {
            cut(shown, 0, at)
        }
        _ => shown,
    }
}

/// Where a path begins: `AT_FDCWD`, `AT_FDCWD</cwd>`, `-100` or a descriptor.
pub(crate) fn at(text: &[u8]) -> Option<At<'_>> {
    if let Some(rest) = text.strip_prefix(b"AT_FDCWD") {
        let shown = rest.strip_prefix(b"<").and_then(shown_path);
        // Where the working directory has been removed, its name leads nowhere.
        let named = shown.filter(|&(_, deleted)| !deleted);
        return Some(At::Cwd(named.map(|(shown, _)| shown)));
    }
    let file = file(text)?;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "raw calls print an int as 0xffffff9c"
    )]
    let number = file.number as i32;
    Some(if number == -100 {
        At::Cwd(None)
    } else {
        At::File(file)
    })
}

/// A path beside the directory it is relative to.
pub(crate) fn path_at<'a>(directory: &'a [u8], text: &'a [u8]) -> Option<PathArg<'a>> {
    Some(PathArg {
        at: at(directory)?,
        text: string(text)?,
    })
}

/// A path of a call that has no directory.
pub(crate) fn path(text: &[u8]) -> Option<PathArg<'_>> {
    string(text).map(PathArg::plain)
}

/// A field of a structure: `st_size=1096` in `{st_mode=S_IFREG|0644, st_size=1096, ...}`.
pub(crate) fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        let at = find(rest, name)?;
        let clean = at == 0
            || rest
                .get(at - 1)
                .is_some_and(|byte| matches!(byte, b'{' | b' ' | b','));
        let after = from(rest, at + name.len());
        if let (true, Some(value)) = (clean, after.strip_prefix(b"=")) {
            let end = value
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b' ' | b']'))
                .unwrap_or(value.len());
            return Some(cut(value, 0, end));
        }
        rest = after;
    }
}

/// What a stat structure shows.
pub(crate) fn seen(text: &[u8]) -> Option<Seen> {
    if text.first() != Some(&b'{') {
        return None;
    }
    let mode = field(text, b"st_mode").or_else(|| field(text, b"stx_mode"));
    let mode = mode.and_then(flags)?;
    let size = field(text, b"st_size").or_else(|| field(text, b"stx_size"));
    Some(Seen {
        kind: kind_of(mode),
        mode: u32::try_from(mode & 0o7777).ok(),
        size: size.and_then(number),
    })
}

fn kind_of(mode: i64) -> FileKind {
    match mode & S_IFMT {
        S_IFREG => FileKind::Regular,
        S_IFDIR => FileKind::Directory,
        S_IFLNK => FileKind::Symlink,
        0 => FileKind::Unknown,
        _ => FileKind::Special,
    }
}

/// A time of utimensat: None for `UTIME_OMIT`, `now` for `UTIME_NOW`.
pub(crate) fn time_ns(text: &[u8]) -> Option<i64> {
    if text.starts_with(b"UTIME_OMIT") {
        return None;
    }
    if text.starts_with(b"UTIME_NOW") {
        return Some(NOW);
    }
    let seconds = field(text, b"tv_sec").and_then(number)?;
    let nanos = field(text, b"tv_nsec")
        .and_then(number)
        .or_else(|| field(text, b"tv_usec").and_then(number)?.checked_mul(1000))
        .unwrap_or(0);
    match nanos {
        0x3fff_ffff => Some(NOW),
        0x3fff_fffe => None,
        _ => seconds.checked_mul(1_000_000_000)?.checked_add(nanos),
    }
}

/// The current time, where a time is meant.
pub(crate) const NOW: i64 = i64::MIN;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_every_kind_are_undone() {
        let cases: [(&[u8], &[u8]); 7] = [
            (br"plain", b"plain"),
            (br"\74a\76", b"<a>"),
            (br"L\303\274ssing", b"L\xc3\xbcssing"),
            (br#"a\"b\\c"#, b"a\"b\\c"),
            (br"\x01\x23E", b"\x01#E"),
            (br"\0001", b"\x001"),
            (br"\", b"\\"),
        ];
        for (text, plain) in cases {
            assert_eq!(unescape(text).as_ref(), plain);
        }
    }

    #[test]
    fn cut_strings_and_addresses_are_no_paths() {
        assert_eq!(string(b"\"/a\"").as_deref(), Some(&b"/a"[..]));
        assert_eq!(string(b"\"/a\"..."), None);
        assert_eq!(string(b"0x7ffedd8a27c0"), None);
        assert_eq!(string(b"NULL"), None);
        assert_eq!(string_start(b"\"/a\"...").as_deref(), Some(&b"/a"[..]));
    }

    #[test]
    fn descriptors_keep_what_is_shown() {
        let deleted = file(b"3</tmp/.ZendSem.XxypNZ>(deleted)").unwrap();
        assert_eq!(deleted.shown, Some(&b"/tmp/.ZendSem.XxypNZ"[..]));
        assert!(deleted.deleted);
        assert_eq!(
            file(b"0</dev/pts/0<char 136:0>>").unwrap().shown,
            Some(&b"/dev/pts/0"[..])
        );
        assert_eq!(file(b"0x3").unwrap().number, 3);
        assert_eq!(at(b"AT_FDCWD</srv>"), Some(At::Cwd(Some(b"/srv"))));
        assert_eq!(at(b"0xffffff9c"), Some(At::Cwd(None)));
        assert_eq!(at(b"AT_FDCWD</srv>(deleted)"), Some(At::Cwd(None)));
        assert_eq!(at(b"AT_FDCWD</srv (deleted)>"), Some(At::Cwd(None)));
    }

    #[test]
    fn structures_give_their_fields() {
        let stat = seen(b"{st_mode=S_IFREG|0644, st_size=1096, ...}").unwrap();
        assert_eq!(
            (stat.kind, stat.mode, stat.size),
            (FileKind::Regular, Some(0o644), Some(1096))
        );
        let statx =
            b"{stx_mask=STATX_ALL, stx_attributes=0, stx_mode=S_IFDIR|0755, stx_size=4096, ...}";
        assert_eq!(seen(statx).unwrap().kind, FileKind::Directory);
        assert_eq!(
            seen(b"{st_mode=S_IFCHR|0620, st_rdev=makedev(0x88, 0), ...}")
                .unwrap()
                .kind,
            FileKind::Special
        );
        assert!(seen(b"0x7ffd").is_none());
        assert_eq!(
            time_ns(b"{tv_sec=1793988916, tv_nsec=5} /* 2026 */"),
            Some(1_793_988_916_000_000_005)
        );
        assert_eq!(time_ns(b"UTIME_OMIT"), None);
    }
}
