//! The paths and the tree of a trace: which are a performance's own, and where symlinks have to be rewritten for it.

use crate::path;
use crate::replay::names::NAME_BYTES;
use crate::replay::program::Paths;
use replayer_trace::{Trace, TreeEntry};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The longest suffix of a performance: `~` and a 32-bit number, `.` and a 64-bit one.
const SUFFIX_BYTES: usize = 1 + 10 + 1 + 20;
/// Links that lead to links that lead to own files: so often it is looked again (chosen).
const LINK_ROUNDS: usize = 8;
const PRIVATE: &str = "private";
const SHARED_MUTABLE: &str = "shared mutable";

/// Who has the files that several threads of a trace changed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contended {
    /// All users: there they meet, as the threads did.
    Shared,
    /// Each performance its own: one user's performances come one after the other, and what one left the next must not find.
    Own,
}

/// All paths of a trace, below the run's folder, and what is there before.
#[derive(Debug)]
pub(crate) struct PathMap {
    /// By row. Those that are not replayed are empty.
    paths: Paths,
    /// Topmost own paths and their rows.
    tops: HashMap<Box<[u8]>, u32>,
    /// Length of the trace's directory and a slash.
    prefix: usize,
    pub(crate) tree: Vec<TreeEntry>,
    /// Rows of symlinks that are not made.
    pub(crate) special: HashSet<u32>,
    /// Directories in which other users make and remove entries, by path.
    crowded: HashSet<Box<[u8]>>,
    /// Some text of a link of the tree is rewritten.
    pub(crate) rewrites: bool,
}

impl PathMap {
    /// Read the paths and the tree of a trace that lies in a directory of the run's folder. Rows that are `solitary` are own, too.
    pub(crate) fn load(
        trace: &Trace,
        directory: &str,
        solitary: &HashSet<u32>,
        contended: Contended,
    ) -> Result<PathMap, String> {
        let paths = trace.paths()?;
        let mut path_map = PathMap {
            paths: Paths::default(),
            tops: HashMap::new(),
            prefix: directory.len() + 1,
            tree: Vec::new(),
            special: HashSet::new(),
            crowded: HashSet::new(),
            rewrites: false,
        };
        for named in &paths {
            let whole = [directory.as_bytes(), b"/", &named.path].concat();
            let is_usable = path::fault(&whole).is_none();
            path_map
                .paths
                .push(if is_usable { &whole } else { b"" }, 0)?;
        }
        path_map.take_tree(trace.tree()?);
        let mutable = paths.iter().map(|named| named.label == SHARED_MUTABLE);
        let files = match contended {
            Contended::Shared => HashSet::new(),
            Contended::Own => path_map.files_among(mutable.clone()),
        };
        let own = (0..).zip(&paths);
        let own = own.map(|(row, named)| {
            named.label == PRIVATE || solitary.contains(&row) || files.contains(&row)
        });
        path_map.find_tops(own);
        path_map.mark();
        path_map.find_crowded(mutable);
        Ok(path_map)
    }

    pub(crate) fn rows(&self) -> u32 {
        u32::try_from(self.paths.spans.len()).unwrap_or(u32::MAX)
    }

    /// The path of a row; `None` if it may not be used.
    pub(crate) fn path(&self, row: u32) -> Option<&[u8]> {
        let span = self.paths.spans.get(row as usize)?;
        Some(self.paths.bytes(*span)).filter(|path| !path.is_empty())
    }

    /// The same, if it is own, or if it is not.
    pub(crate) fn path_if(&self, row: u32, is_own: bool) -> Option<&[u8]> {
        let path = self.path(row)?;
        (is_own == (self.own_end(row) > 0)).then_some(path)
    }

    /// The root that a row's path lies below.
    pub(crate) fn root(&self, row: u32) -> Option<&[u8]> {
        let inner = self.path(row)?.get(self.prefix..)?;
        inner.split(|byte| *byte == b'/').next()
    }

    /// Where the component of a row's path ends that is a performance's own, 0 for a shared path.
    pub(crate) fn own_end(&self, row: u32) -> u32 {
        let span = self.paths.spans.get(row as usize);
        span.map_or(0, |span| span.own_end)
    }

    /// The row of the topmost own path that this one is or lies below.
    pub(crate) fn top(&self, path: &[u8]) -> Option<u32> {
        let end = self.own_end_of(path);
        self.tops.get(path.get(..end)?).copied()
    }

    /// The same for any path below the run's folder.
    pub(crate) fn own_end_of(&self, path: &[u8]) -> usize {
        if self.tops.is_empty() {
            return 0;
        }
        let inner = path.iter().enumerate().skip(self.prefix);
        let slashes = inner.filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let mut ends = slashes.chain([path.len()]);
        ends.find(|end| {
            path.get(..*end)
                .is_some_and(|path| self.tops.contains_key(path))
        })
        .unwrap_or(0)
    }

    fn find_tops(&mut self, own: impl Iterator<Item = bool>) {
        for (row, _) in (0..).zip(own).filter(|(_, own)| *own) {
            if let Some(path) = self.path(row) {
                let path = path.into();
                self.tops.insert(path, row);
            }
        }
    }

    /// The rows among some that are files for certain, there before or made by the trace, and lie where their paths say: a path
    /// through a symlink is none of the tree's.
    fn files_among(&self, some: impl Iterator<Item = bool>) -> HashSet<u32> {
        let kinds: HashMap<&[u8], char> = self
            .tree
            .iter()
            .filter_map(|entry| Some((self.path(entry.path)?, entry.kind)))
            .collect();
        let is_file = |row: &u32| {
            self.path(*row).is_some_and(|path| match kinds.get(path) {
                Some(kind) => *kind == 'f',
                None => kinds.get(parent(path)) == Some(&'d'),
            })
        };
        let rows = (0..).zip(some).filter(|(_, is_one)| *is_one);
        rows.map(|(row, _)| row).filter(is_file).collect()
    }

    fn find_crowded(&mut self, mutable: impl Iterator<Item = bool>) {
        let rows = (0..).zip(mutable).filter(|(_, mutable)| *mutable);
        let changed = rows.filter_map(|(row, _)| self.path(row));
        // Own files of all users lie beside each other.
        let homes = self.tops.keys().map(|top| parent(top));
        self.crowded = changed.chain(homes).map(Into::into).collect();
    }

    /// Whether other users make or remove entries in the directory of a row.
    pub(crate) fn is_crowded(&self, row: u32) -> bool {
        self.path(row)
            .is_some_and(|path| self.crowded.contains(path))
    }

    fn take_tree(&mut self, entries: Vec<TreeEntry>) {
        let mut seen = HashSet::new();
        for entry in entries {
            let Some(path) = self.path(entry.path) else {
                continue;
            };
            if !seen.insert(entry.path) {
                continue;
            }
            let kept = match (entry.kind, &entry.link) {
                // A file stands in for a fifo, a socket or a device.
                ('f' | 'd' | 'o', _) => true,
                ('l', Some(link)) => path::link_stays_inside(path, link),
                _ => false,
            };
            if kept {
                self.tree.push(entry);
            } else {
                self.special.insert(entry.path);
            }
        }
    }

    /// Find the own ends of all paths. A link that leads to something own is own too, or all users would follow it to one place.
    fn mark(&mut self) {
        for _ in 0..LINK_ROUNDS {
            let links = self.tree.iter().filter_map(|entry| {
                let path = self.path(entry.path)?;
                let leads = self.leads_to_own(path, entry.link.as_deref()?);
                (leads && self.own_end_of(path) == 0).then(|| (path.into(), entry.path))
            });
            let more: Vec<(Box<[u8]>, u32)> = links.collect();
            if more.is_empty() {
                break;
            }
            self.tops.extend(more);
        }
        for row in 0..self.rows() {
            let end = self.path(row).map_or(0, |path| self.own_end_of(path));
            if let Some(span) = self.paths.spans.get_mut(row as usize) {
                span.own_end = u32::try_from(end).unwrap_or(0);
            }
        }
        self.rewrites = self.tree.iter().any(|entry| {
            let (path, link) = (self.path(entry.path), entry.link.as_deref());
            path.zip(link)
                .is_some_and(|(path, link)| self.link_mark(path, link) != Some(0))
        });
    }

    fn leads_to_own(&self, path: &[u8], target: &[u8]) -> bool {
        self.own_end_of(&self::target(path, target)) > 0
    }

    /// Where a symlink's text gets the suffix (0: nowhere); `None` if it would be in two places.
    pub(crate) fn link_mark(&self, path: &[u8], target: &[u8]) -> Option<u32> {
        let (mut mark, mut marks) = (0, 0);
        follow(path, target, |place, end| {
            if end > 0 && !self.tops.is_empty() && self.own_end_of(place) == place.len() {
                mark = end;
                marks += 1;
            }
        });
        (marks < 2).then(|| u32::try_from(mark).unwrap_or(0))
    }

    /// A path as the trace has it.
    fn shown<'p>(&self, path: &'p [u8]) -> Cow<'p, str> {
        String::from_utf8_lossy(path.get(self.prefix..).unwrap_or(path))
    }

    /// Refuse names that two performances would share: where there is only one, none does.
    pub(crate) fn check_names(&self) -> Result<(), String> {
        let mut long = HashSet::new();
        let room = NAME_BYTES - SUFFIX_BYTES;
        for top in self.tops.keys() {
            let (home, name) = (parent(top).len(), top.len() - parent(top).len());
            if name > room && !long.insert(top.get(..home + room)) {
                return Err(format!(
                    "its files would share names with those of other users or repetitions: {} is too long for a suffix, and another \
                     name starts with the same letters",
                    self.shown(top)
                ));
            }
        }
        let rows = (0..self.rows()).filter_map(|row| self.path(row));
        for path in rows {
            let of = of_suffixed(path).filter(|of| self.own_end_of(of) == of.len());
            if let Some(of) = of {
                return Err(format!(
                    "its files would share names with those of other users or repetitions: {} is their name for {}",
                    self.shown(path),
                    self.shown(of)
                ));
            }
        }
        Ok(())
    }
}

/// Where a symlink's text leads, other links not followed.
pub(crate) fn target(path: &[u8], text: &[u8]) -> Vec<u8> {
    let mut end = Vec::new();
    follow(path, text, |place, _| end = place.to_vec());
    end
}

/// Walk along a symlink's text: after each component, where it leads and where the component ends in the text.
fn follow(path: &[u8], target: &[u8], mut each: impl FnMut(&[u8], usize)) {
    let mut place: Vec<u8> = parent(path).to_vec();
    let mut end = 0;
    for name in target.split(|byte| *byte == b'/') {
        end += name.len();
        match name {
            b"" | b"." => {}
            b".." => place.truncate(parent(&place).len()),
            _ => {
                if !place.is_empty() {
                    place.push(b'/');
                }
                place.extend_from_slice(name);
                each(&place, end);
            }
        }
        end += 1;
    }
    each(&place, 0);
}

/// The path above, "" for the first component.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    path::split(path).0
}

/// `NAME` of `NAME~3` and `NAME~3.17`.
fn of_suffixed(path: &[u8]) -> Option<&[u8]> {
    let tilde = path.iter().rposition(|byte| *byte == b'~')?;
    let (name, suffix) = (path.get(..tilde)?, path.get(tilde + 1..)?);
    let digits = suffix
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'.');
    (digits && !suffix.is_empty()).then_some(name)
}
