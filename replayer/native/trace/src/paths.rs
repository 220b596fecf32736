//! Paths inside a trace: interned names, and a tree of places whose tops stand for the roots.

use rustc_hash::FxHashMap;
use std::rc::Rc;

/// A name (one component) by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NameId(u32);

impl NameId {
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

/// A place below the roots, as a program named it (symlinks are not followed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PathId(u32);

impl PathId {
    /// What lies above all roots.
    pub(crate) const TOP: Self = Self(0);

    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    pub(crate) fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Deeper paths cannot be named by a program: a component and its slash are two of 4,096 bytes.
pub(crate) const DEEPEST: u32 = 2048;

/// Byte strings, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: FxHashMap<Rc<[u8]>, NameId>,
    texts: Vec<Rc<[u8]>>,
}

impl Names {
    pub(crate) fn intern(&mut self, text: &[u8]) -> NameId {
        if let Some(&name) = self.known.get(text) {
            return name;
        }
        let name = NameId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let kept: Rc<[u8]> = Rc::from(text);
        self.texts.push(Rc::clone(&kept));
        self.known.insert(kept, name);
        name
    }

    /// The first text of a row of them that is not kept yet.
    pub(crate) fn intern_new(
        &mut self,
        texts: &mut impl Iterator<Item = String>,
    ) -> Option<NameId> {
        let text = texts.find(|text| !self.known.contains_key(text.as_bytes()))?;
        Some(self.intern(text.as_bytes()))
    }

    pub(crate) fn text(&self, name: NameId) -> &[u8] {
        usize::try_from(name.0)
            .ok()
            .and_then(|at| self.texts.get(at))
            .map(|text| &**text)
            .unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
struct Place {
    parent: PathId,
    name: NameId,
    depth: u32,
    /// Its row in the table `paths`; `u32::MAX` until it is used.
    row: u32,
}

/// All places named so far.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) names: Names,
    places: Vec<Place>,
    children: FxHashMap<(PathId, NameId), PathId>,
    rows: Vec<PathId>,
}

const UNUSED: u32 = u32::MAX;

impl Paths {
    pub(crate) fn new() -> Self {
        let mut names = Names::default();
        let name = names.intern(b"");
        Self {
            names,
            places: vec![Place {
                parent: PathId::TOP,
                name,
                depth: 0,
                row: UNUSED,
            }],
            children: FxHashMap::default(),
            rows: Vec::new(),
        }
    }

    fn place(&self, path: PathId) -> Option<&Place> {
        self.places.get(path.index())
    }

    /// The place of a name in another; None where it would lie too deep.
    pub(crate) fn child(&mut self, parent: PathId, text: &[u8]) -> Option<PathId> {
        let name = self.names.intern(text);
        self.child_named(parent, name)
    }

    /// The same for a name that is interned.
    pub(crate) fn child_named(&mut self, parent: PathId, name: NameId) -> Option<PathId> {
        if let Some(&path) = self.children.get(&(parent, name)) {
            return Some(path);
        }
        let depth = self.place(parent)?.depth + 1;
        if depth > DEEPEST {
            return None;
        }
        let path = PathId(u32::try_from(self.places.len()).ok()?);
        self.places.push(Place {
            parent,
            name,
            depth,
            row: UNUSED,
        });
        self.children.insert((parent, name), path);
        Some(path)
    }

    pub(crate) fn parent(&self, path: PathId) -> PathId {
        self.place(path).map_or(PathId::TOP, |place| place.parent)
    }

    /// A path and those above it, from below.
    pub(crate) fn above(&self, path: PathId) -> impl Iterator<Item = PathId> {
        let up = |&path: &PathId| (path != PathId::TOP).then(|| self.parent(path));
        std::iter::successors(Some(path), up)
    }

    pub(crate) fn name(&self, path: PathId) -> NameId {
        self.place(path).map_or(NameId(0), |place| place.name)
    }

    /// Where a place is when another one above it, or it itself, has moved. None where it was not below that.
    pub(crate) fn moved(&mut self, path: PathId, from: PathId, to: PathId) -> Option<PathId> {
        let mut names = Vec::new();
        let mut at = path;
        while at != from {
            if self.depth(at) <= self.depth(from) {
                return None;
            }
            names.push(self.name(at));
            at = self.parent(at);
        }
        let mut down = names.into_iter().rev();
        down.try_fold(to, |at, name| self.child_named(at, name))
    }

    pub(crate) fn is_at_or_below(&self, path: PathId, above: PathId) -> bool {
        let mut at = path;
        while self.depth(at) > self.depth(above) {
            at = self.parent(at);
        }
        at == above
    }

    pub(crate) fn depth(&self, path: PathId) -> u32 {
        self.place(path).map_or(0, |place| place.depth)
    }

    /// Its row in the table `paths`, given out in the order of first use.
    pub(crate) fn row(&mut self, path: PathId) -> u32 {
        let next = u32::try_from(self.rows.len()).unwrap_or(UNUSED);
        match self.places.get_mut(path.index()) {
            Some(place) if place.row == UNUSED => {
                place.row = next;
                self.rows.push(path);
                next
            }
            Some(place) => place.row,
            None => UNUSED,
        }
    }

    /// Sort the rows by their texts: that packs better. Returns the new row of each old one.
    pub(crate) fn sort_rows(&mut self) -> Vec<u32> {
        let mut named: Vec<(Vec<u8>, PathId)> = self
            .rows
            .iter()
            .map(|&path| (self.text(path), path))
            .collect();
        named.sort_unstable();
        let mut moved = vec![UNUSED; self.rows.len()];
        self.rows.clear();
        for ((_, path), row) in named.into_iter().zip(0_u32..) {
            self.rows.push(path);
            if let Some(place) = self.places.get_mut(path.index()) {
                if let Some(new) = usize::try_from(place.row)
                    .ok()
                    .and_then(|old| moved.get_mut(old))
                {
                    *new = row;
                }
                place.row = row;
            }
        }
        moved
    }

    /// The places of the table `paths`, in the order of its rows.
    pub(crate) fn rows(&self) -> &[PathId] {
        &self.rows
    }

    /// The whole text, without a leading slash.
    pub(crate) fn text(&self, path: PathId) -> Vec<u8> {
        let depth = usize::try_from(self.depth(path)).unwrap_or(0);
        let mut names = Vec::with_capacity(depth);
        let mut length = depth;
        let mut at = path;
        while at != PathId::TOP {
            let name = self.names.text(self.name(at));
            length += name.len();
            names.push(name);
            at = self.parent(at);
        }
        let mut text = Vec::with_capacity(length);
        for (count, &name) in names.iter().rev().enumerate() {
            if count > 0 {
                text.push(b'/');
            }
            text.extend_from_slice(name);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_once_and_rows_come_with_use() {
        let mut paths = Paths::new();
        let a = paths.child(PathId::TOP, b"a").unwrap();
        let b = paths.child(a, b"b").unwrap();
        assert_eq!(paths.child(a, b"b"), Some(b));
        assert_eq!(paths.text(b), b"a/b");
        assert_eq!(paths.row(b), 0);
        assert_eq!(paths.row(a), 1);
        assert_eq!(paths.row(b), 0);
        assert_eq!(paths.rows(), [b, a]);
    }

    #[test]
    fn what_lies_below_moves_along() {
        let mut paths = Paths::new();
        let a = paths.child(PathId::TOP, b"a").unwrap();
        let below = paths.child(a, b"x").unwrap();
        let other = paths.child(PathId::TOP, b"ab").unwrap();
        let to = paths.child(other, b"c").unwrap();
        let moved = paths.moved(below, a, to).unwrap();
        assert_eq!(paths.text(moved), b"ab/c/x");
        assert_eq!(paths.moved(a, a, to), Some(to));
        assert_eq!(paths.moved(other, a, to), None);
        assert_eq!(paths.moved(a, below, to), None);
    }

    #[test]
    fn nothing_lies_too_deep() {
        let mut paths = Paths::new();
        let mut at = PathId::TOP;
        for _ in 0..DEEPEST {
            at = paths.child(at, b"d").unwrap();
        }
        assert_eq!(paths.child(at, b"d"), None);
    }
}
