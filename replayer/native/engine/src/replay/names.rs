//! Names of a performance: its own paths with its suffix, composed once and read by all its lanes. Nothing is looked up.

use super::program::{CallBatch, Entry, PathId, Paths, Place, ReplayProgram, Span, TextId};
use crate::program::{EntryKind, write_number};
use crate::sys::c_path;
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// The longest name of a Linux file system (limits.h, `NAME_MAX`).
pub(crate) const NAME_BYTES: usize = 255;

/// Append what is put behind the own names of a user's performance: nothing for the very first.
pub(crate) fn write_suffix(user: u32, performance: u64, text: &mut Vec<u8>) {
    if user == 0 && performance == 0 {
        return;
    }
    text.push(b'~');
    write_number(u64::from(user), text);
    if performance > 0 {
        text.push(b'.');
        write_number(performance, text);
    }
}

/// Append a text whose component that ends at `own_end` gets a suffix; a name that became too long is cut before it.
pub(crate) fn write_own(bytes: &[u8], own_end: usize, suffix: &[u8], text: &mut Vec<u8>) {
    let own_end = own_end.min(bytes.len());
    let (before, after) = bytes.split_at(own_end);
    if own_end == 0 || suffix.is_empty() {
        text.extend_from_slice(bytes);
        return;
    }
    let slash = before.iter().rposition(|byte| *byte == b'/');
    let name = before.len() - slash.map_or(0, |slash| slash + 1);
    let cut = (name + suffix.len()).saturating_sub(NAME_BYTES).min(name);
    text.extend_from_slice(before.get(..before.len() - cut).unwrap_or_default());
    text.extend_from_slice(suffix);
    text.extend_from_slice(after);
}

/// The same, as it is where nothing of it gets one.
pub(crate) fn own_text<'a>(bytes: &'a [u8], own_end: usize, suffix: &[u8]) -> Cow<'a, [u8]> {
    if own_end == 0 || suffix.is_empty() {
        return Cow::Borrowed(bytes);
    }
    let mut text = Vec::with_capacity(bytes.len() + suffix.len());
    write_own(bytes, own_end, suffix, &mut text);
    Cow::Owned(text)
}

#[derive(Debug)]
pub(crate) struct Names {
    paths: Arc<Paths>,
    suffix: Box<[u8]>,
    arena: Box<[u8]>,
    /// Where each own path begins in the arena, and the end of the last; empty where nothing gets a suffix.
    starts: Box<[usize]>,
}

/// An entry to be made before a performance, with its names.
#[derive(Debug)]
pub(crate) struct Ready<'a> {
    pub(crate) id: PathId,
    pub(crate) path: &'a CStr,
    pub(crate) kind: EntryKind,
    pub(crate) size: u64,
    pub(crate) mode: u32,
    /// Target of a symlink, without a NUL.
    pub(crate) link: Cow<'a, [u8]>,
}

impl Names {
    /// Compose the names of a user's performance (both from 0).
    pub(crate) fn new(paths: &Arc<Paths>, user: u32, performance: u64) -> Names {
        let mut suffix = Vec::new();
        write_suffix(user, performance, &mut suffix);
        let (arena, starts) = if suffix.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            composed(paths, &suffix)
        };
        Names {
            paths: Arc::clone(paths),
            suffix: suffix.into_boxed_slice(),
            arena: arena.into_boxed_slice(),
            starts: starts.into_boxed_slice(),
        }
    }

    /// A path below the run's folder; "" where there is none of this number.
    #[inline]
    pub(crate) fn path(&self, path: PathId) -> &CStr {
        c_path(self.bytes(path))
    }

    #[inline]
    fn bytes(&self, path: PathId) -> &[u8] {
        let path = path as usize;
        if let (Some(start), Some(end)) = (self.starts.get(path), self.starts.get(path + 1)) {
            return self.arena.get(*start..*end).unwrap_or_default();
        }
        let span = self.paths.spans.get(path);
        span.map_or(b"\0", |span| self.paths.bytes_with_nul(*span))
    }

    /// The part of a place's path below the directory that it is seen from.
    #[inline]
    pub(crate) fn rest(&self, place: Place) -> &CStr {
        let bytes = self.bytes(place.path);
        let Some(span) = self.paths.spans.get(place.path as usize) else {
            return c"";
        };
        let rest = place.rest as usize;
        // A suffix before the rest moves it.
        let moved = if span.own_end > 0 && span.own_end < place.rest {
            (rest + bytes.len()).saturating_sub(span.len as usize + 1)
        } else {
            rest
        };
        c_path(bytes.get(moved..).unwrap_or(b"\0"))
    }

    /// A text of a batch, rewritten where it leads to something of the performance's own.
    pub(crate) fn text<'a>(&self, batch: &'a CallBatch, text: TextId) -> Cow<'a, CStr> {
        let start = text.start as usize;
        let with_nul = start..start + text.len as usize + 1;
        let bytes = batch.texts.get(with_nul).unwrap_or(b"\0");
        if text.own_end == 0 || self.suffix.is_empty() {
            return Cow::Borrowed(c_path(bytes));
        }
        let plain = bytes.strip_suffix(b"\0").unwrap_or_default();
        let composed = own_text(plain, text.own_end as usize, &self.suffix);
        CString::new(composed).map_or(Cow::Borrowed(c_path(bytes)), Cow::Owned)
    }

    /// What has to be there before the performance, parents before children.
    pub(crate) fn entries<'a>(
        &'a self,
        replay_program: &'a ReplayProgram,
    ) -> impl Iterator<Item = Ready<'a>> {
        replay_program.own.iter().map(|entry: &Entry| Ready {
            id: entry.path,
            path: self.path(entry.path),
            kind: entry.kind,
            size: entry.size,
            mode: entry.mode,
            link: own_text(&entry.link, entry.link_own_end as usize, &self.suffix),
        })
    }

    /// What is removed after the performance, each with all that is below it.
    pub(crate) fn tops<'a>(
        &'a self,
        replay_program: &'a ReplayProgram,
    ) -> impl Iterator<Item = (PathId, &'a CStr)> {
        replay_program
            .tops
            .iter()
            .map(|top| (*top, self.path(*top)))
    }
}

fn composed(paths: &Paths, suffix: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let own = paths.spans.get(..paths.own as usize).unwrap_or_default();
    let longest: usize = own
        .iter()
        .map(|span| span.len as usize + 1 + suffix.len())
        .sum();
    let mut arena = Vec::with_capacity(longest);
    let mut starts = Vec::with_capacity(own.len() + 1);
    for span in own {
        starts.push(arena.len());
        write_own(
            paths.bytes(*span),
            span.own_end as usize,
            suffix,
            &mut arena,
        );
        arena.push(0);
    }
    starts.push(arena.len());
    (arena, starts)
}

impl Paths {
    /// Append a path. Returns its number.
    pub(crate) fn push(&mut self, path: &[u8], own_end: u32) -> Result<PathId, String> {
        let sizes = [self.text.len(), path.len(), self.spans.len()].map(u32::try_from);
        let [Ok(start), Ok(len), Ok(number)] = sizes else {
            return Err("its paths exceed 4 GiB".to_owned());
        };
        self.text.extend_from_slice(path);
        self.text.push(0);
        self.spans.push(Span {
            start,
            len,
            own_end,
        });
        self.own += u32::from(own_end > 0);
        Ok(number)
    }

    /// A path as it was recorded, below the run's folder.
    pub(crate) fn bytes(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        self.text
            .get(start..start + span.len as usize)
            .unwrap_or_default()
    }

    fn bytes_with_nul(&self, span: Span) -> &[u8] {
        let start = span.start as usize;
        self.text
            .get(start..=start + span.len as usize)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(own: &[(&str, u32)], shared: &[&str]) -> Arc<Paths> {
        let mut paths = Paths::default();
        let all = own.iter().copied();
        for (path, own_end) in all.chain(shared.iter().map(|path| (*path, 0))) {
            paths.push(path.as_bytes(), own_end).unwrap();
        }
        Arc::new(paths)
    }

    #[test]
    fn the_first_performance_has_the_recorded_names_and_later_ones_their_own() {
        let paths = paths(&[("t/up/a", 6), ("t/d/x", 3)], &["t/up"]);
        let first = Names::new(&paths, 0, 0);
        assert_eq!(first.path(0), c"t/up/a");
        let second = Names::new(&paths, 3, 0);
        assert_eq!(second.path(0), c"t/up/a~3");
        assert_eq!(second.path(1), c"t/d~3/x");
        assert_eq!(second.path(2), c"t/up");
        assert_eq!(second.path(9), c"");
        assert_eq!(Names::new(&paths, 0, 7).path(1), c"t/d~0.7/x");
        assert_eq!(Names::new(&paths, 3, 17).path(0), c"t/up/a~3.17");
    }

    #[test]
    fn the_part_below_a_directory_follows_the_suffix() {
        let paths = paths(&[("t/d/x", 3)], &[]);
        let names = Names::new(&paths, 2, 0);
        let place = |rest| Place {
            path: 0,
            from: Some(0),
            rest,
        };
        assert_eq!(names.rest(place(4)), c"x");
        assert_eq!(names.rest(place(2)), c"d~2/x");
        assert_eq!(Names::new(&paths, 0, 0).rest(place(4)), c"x");
    }

    #[test]
    fn a_name_that_became_too_long_is_cut_before_the_suffix() {
        let long = format!("t/{}/x", "n".repeat(254));
        let paths = paths(&[(&long, 256)], &[]);
        let name = Names::new(&paths, 41, 5);
        let expected = format!("t/{}~41.5/x", "n".repeat(250));
        assert_eq!(name.path(0).to_str().unwrap(), expected);
        let place = Place {
            path: 0,
            from: Some(0),
            rest: 257,
        };
        assert_eq!(name.rest(place), c"x");
    }

    #[test]
    fn targets_of_symlinks_are_rewritten() {
        let paths = paths(&[("t/d", 3)], &[]);
        let batch = CallBatch {
            lanes: Box::default(),
            waits: Box::default(),
            texts: b"../d/y\0plain\0".to_vec().into(),
        };
        let text = TextId {
            start: 0,
            len: 6,
            own_end: 4,
        };
        let names = Names::new(&paths, 2, 0);
        assert_eq!(&*names.text(&batch, text), c"../d~2/y");
        assert_eq!(&*Names::new(&paths, 0, 0).text(&batch, text), c"../d/y");
        let plain = TextId {
            start: 7,
            len: 5,
            own_end: 0,
        };
        assert_eq!(&*names.text(&batch, plain), c"plain");
    }
}
