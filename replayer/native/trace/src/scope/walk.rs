//! Texts are followed to where they lead, and what was found is kept: most texts come often, or share their directories.

use crate::bytes::parent;
use crate::paths::PathId;
use crate::scope::{Directory, LONGEST_TEXT_BYTES, Location, Resolved, Scope, is_below};
use crate::tree::Tree;
use std::rc::Rc;

/// Texts kept; beyond it the cache starts anew, so that it does not grow with the log (chosen).
const CACHED_TEXTS: usize = 1 << 20;

/// Whether a link outside of the roots is followed that a text ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Followed,
    AsItIs,
}

impl Scope {
    /// Follow a text from a spot; `..` is taken from where symlinks lead, as the tree knows them.
    pub(crate) fn resolve(&mut self, tree: &mut Tree, base: &Location, text: &[u8]) -> Resolved {
        if text.len() > LONGEST_TEXT_BYTES {
            return Resolved::TooLong;
        }
        self.scratch.clear();
        match base {
            _ if text.first() == Some(&b'/') => {
                // It is its own key: most texts are known, and then nothing is copied.
                if let Some(&resolved) = self.cache.get(text) {
                    return resolved;
                }
            }
            Location::Inside(path) => {
                self.scratch.push(0);
                self.scratch.extend_from_slice(&path.raw().to_le_bytes());
            }
            Location::Outside(absolute) => {
                self.scratch.push(1);
                self.scratch.extend_from_slice(absolute);
                self.scratch.push(b'/');
            }
            Location::Unknown => return Resolved::Unknown,
        }
        self.scratch.extend_from_slice(text);
        if let Some(&resolved) = self.cache.get(&*self.scratch) {
            return resolved;
        }
        // Where `..` leads depends on links, and those may change.
        if crate::bytes::find(text, b"..").is_some() {
            return self.follow(tree, base, text);
        }
        let resolved = self
            .resolve_in_directory(tree, base, text)
            .unwrap_or_else(|| self.follow(tree, base, text));
        if self.cache.len() >= CACHED_TEXTS {
            self.cache.clear();
        }
        self.cache.insert(Box::from(&*self.scratch), resolved);
        resolved
    }

    fn follow(&mut self, tree: &mut Tree, base: &Location, text: &[u8]) -> Resolved {
        match self.walk(tree, base, text, Last::AsItIs) {
            Location::Inside(path) => Resolved::Inside(path),
            Location::Outside(_) => Resolved::Outside,
            Location::Unknown => Resolved::TooLong,
        }
    }

    /// Resolve a text without `..` by what its directory is. None where that does not tell.
    fn resolve_in_directory(
        &mut self,
        tree: &mut Tree,
        base: &Location,
        text: &[u8],
    ) -> Option<Resolved> {
        let slash = memchr::memrchr(b'/', text).filter(|&slash| slash > 0)?;
        let name = crate::bytes::from(text, slash + 1);
        if name.is_empty() || name == b"." {
            return None;
        }
        // The scratch holds the base and the whole text.
        let key = crate::bytes::cut(&self.scratch, 0, self.scratch.len() - name.len());
        let directory = if let Some(&known) = self.directories.get(key) {
            known
        } else {
            let key = Box::from(key);
            let directory = self.directory(tree, base, crate::bytes::cut(text, 0, slash))?;
            if self.directories.len() >= CACHED_TEXTS {
                self.directories.clear();
            }
            self.directories.insert(key, directory);
            directory
        };
        Some(match directory {
            Directory::Inside(path) => {
                let child = tree.paths.child(path, name);
                child.map_or(Resolved::TooLong, Resolved::Inside)
            }
            Directory::Nowhere => Resolved::Outside,
        })
    }

    fn directory(&mut self, tree: &mut Tree, base: &Location, text: &[u8]) -> Option<Directory> {
        match self.locate(tree, base, text) {
            Location::Inside(path) => Some(Directory::Inside(path)),
            Location::Outside(absolute) => {
                let above_root = self.entrances().any(|(root, _)| is_below(root, &absolute));
                (!above_root && !absolute.is_empty()).then_some(Directory::Nowhere)
            }
            Location::Unknown => None,
        }
    }

    /// The same, with the text of what lies outside, and without the cache. Unknown if it lies too deep.
    pub(crate) fn locate(&mut self, tree: &mut Tree, base: &Location, text: &[u8]) -> Location {
        self.walk(tree, base, text, Last::Followed)
    }

    fn walk(&mut self, tree: &mut Tree, base: &Location, text: &[u8], last: Last) -> Location {
        if text.len() > LONGEST_TEXT_BYTES {
            return Location::Unknown;
        }
        let end = memchr::memrchr(b'/', text).map_or(0, |slash| slash + 1);
        let name = crate::bytes::from(text, end);
        let mut location = if text.first() == Some(&b'/') {
            Location::Outside(Rc::from(&b""[..]))
        } else {
            base.clone()
        };
        for part in text.split(|&byte| byte == b'/') {
            location = match part {
                b"" | b"." => location,
                b".." => self.up(tree, location),
                part => {
                    let is_last = std::ptr::eq(part, name);
                    let link = if is_last { last } else { Last::Followed };
                    self.down(tree, location, part, link)
                }
            };
        }
        location
    }

    fn down(&mut self, tree: &mut Tree, location: Location, name: &[u8], link: Last) -> Location {
        match location {
            Location::Inside(path) => tree
                .paths
                .child(path, name)
                .map_or(Location::Unknown, Location::Inside),
            Location::Outside(absolute) => {
                let mut longer = absolute.to_vec();
                if !longer.is_empty() {
                    longer.push(b'/');
                }
                longer.extend_from_slice(name);
                let found = self.entrances().find(|&(absolute, _)| *absolute == *longer);
                let found = found.map(|(_, path)| path);
                let linked = || {
                    self.linked(tree, &longer)
                        .filter(|_| link == Last::Followed)
                };
                match found.or_else(linked) {
                    Some(path) => Location::Inside(path),
                    None => Location::Outside(Rc::from(longer)),
                }
            }
            Location::Unknown => Location::Unknown,
        }
    }

    fn up(&self, tree: &mut Tree, location: Location) -> Location {
        match location {
            Location::Inside(path) => {
                let path = tree.link_target(path).unwrap_or(path);
                if let Some(root) = self.roots.iter().find(|root| root.path == path) {
                    return Location::Outside(Rc::from(parent(&root.absolute).unwrap_or_default()));
                }
                match tree.paths.parent(path) {
                    PathId::TOP => Location::Inside(path),
                    parent => Location::Inside(parent),
                }
            }
            Location::Outside(absolute) => {
                Location::Outside(Rc::from(parent(&absolute).unwrap_or_default()))
            }
            Location::Unknown => Location::Unknown,
        }
    }
}
