//! Texts are followed to where they lead, and what was found is kept: most texts come often, or share their directories.

use super::{Directory, Hit, LONGEST_TEXT_BYTES, Scope, Spot, is_below};
use crate::paths::{PathId, Paths};
use std::rc::Rc;

/// Texts kept; beyond it the cache starts anew, so that it does not grow with the log (chosen).
const CACHED_TEXTS: usize = 1 << 20;

impl Scope {
    /// Follow a text from a spot; `..` is taken from where symlinks lead, as `link` knows it.
    pub(crate) fn resolve(
        &mut self,
        base: &Spot,
        text: &[u8],
        link: &mut dyn FnMut(&mut Paths, PathId) -> Option<PathId>,
    ) -> Hit {
        if text.len() > LONGEST_TEXT_BYTES {
            return Hit::TooLong;
        }
        self.scratch.clear();
        match base {
            _ if text.first() == Some(&b'/') => {
                // It is its own key: most texts are known, and then nothing is copied.
                if let Some(&hit) = self.cache.get(text) {
                    return hit;
                }
            }
            Spot::Inside(path) => {
                self.scratch.push(0);
                self.scratch.extend_from_slice(&path.raw().to_le_bytes());
            }
            Spot::Outside(absolute) => {
                self.scratch.push(1);
                self.scratch.extend_from_slice(absolute);
                self.scratch.push(b'/');
            }
            Spot::Unknown => return Hit::Unknown,
        }
        self.scratch.extend_from_slice(text);
        if let Some(&hit) = self.cache.get(&*self.scratch) {
            return hit;
        }
        // Where `..` leads depends on links, and those may change.
        if crate::bytes::find(text, b"..").is_some() {
            return self.follow(base, text, link);
        }
        let hit = self
            .resolve_in_directory(base, text)
            .unwrap_or_else(|| self.follow(base, text, link));
        if self.cache.len() >= CACHED_TEXTS {
            self.cache.clear();
        }
        self.cache.insert(Box::from(&*self.scratch), hit);
        hit
    }

    fn follow(
        &mut self,
        base: &Spot,
        text: &[u8],
        link: &mut dyn FnMut(&mut Paths, PathId) -> Option<PathId>,
    ) -> Hit {
        match self.locate(base, text, link) {
            Spot::Inside(path) => Hit::Inside(path),
            Spot::Outside(_) => Hit::Outside,
            Spot::Unknown => Hit::TooLong,
        }
    }

    /// Resolve a text without `..` by what its directory is. None where that does not tell.
    fn resolve_in_directory(&mut self, base: &Spot, text: &[u8]) -> Option<Hit> {
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
            let directory = self.directory(base, crate::bytes::cut(text, 0, slash))?;
            if self.directories.len() >= CACHED_TEXTS {
                self.directories.clear();
            }
            self.directories.insert(key, directory);
            directory
        };
        Some(match directory {
            Directory::Inside(path) => {
                let child = self.paths.child(path, name);
                child.map_or(Hit::TooLong, Hit::Inside)
            }
            Directory::Nowhere => Hit::Outside,
        })
    }

    fn directory(&mut self, base: &Spot, text: &[u8]) -> Option<Directory> {
        match self.locate(base, text, &mut |_, _| None) {
            Spot::Inside(path) => Some(Directory::Inside(path)),
            Spot::Outside(absolute) => {
                let above_root = self.entrances().any(|(root, _)| is_below(root, &absolute));
                (!above_root && !absolute.is_empty()).then_some(Directory::Nowhere)
            }
            Spot::Unknown => None,
        }
    }

    /// The same, with the text of what lies outside, and without the cache. Unknown if it lies too deep.
    pub(crate) fn locate(
        &mut self,
        base: &Spot,
        text: &[u8],
        link: &mut dyn FnMut(&mut Paths, PathId) -> Option<PathId>,
    ) -> Spot {
        if text.len() > LONGEST_TEXT_BYTES {
            return Spot::Unknown;
        }
        let mut spot = if text.first() == Some(&b'/') {
            Spot::Outside(Rc::from(&b""[..]))
        } else {
            base.clone()
        };
        for part in text.split(|&byte| byte == b'/') {
            spot = match part {
                b"" | b"." => spot,
                b".." => self.up(spot, link),
                name => self.down(spot, name),
            };
        }
        spot
    }

    fn down(&mut self, spot: Spot, name: &[u8]) -> Spot {
        match spot {
            Spot::Inside(path) => self
                .paths
                .child(path, name)
                .map_or(Spot::Unknown, Spot::Inside),
            Spot::Outside(absolute) => {
                let mut longer = absolute.to_vec();
                if !longer.is_empty() {
                    longer.push(b'/');
                }
                longer.extend_from_slice(name);
                let found = self.entrances().find(|&(absolute, _)| *absolute == *longer);
                match found.map(|(_, path)| path) {
                    Some(path) => Spot::Inside(path),
                    None => Spot::Outside(Rc::from(longer)),
                }
            }
            Spot::Unknown => Spot::Unknown,
        }
    }

    fn up(
        &mut self,
        spot: Spot,
        link: &mut dyn FnMut(&mut Paths, PathId) -> Option<PathId>,
    ) -> Spot {
        match spot {
            Spot::Inside(path) => {
                let path = link(&mut self.paths, path).unwrap_or(path);
                if let Some(root) = self.roots.iter().find(|root| root.path == path) {
                    return Spot::Outside(Rc::from(parent_of(&root.absolute)));
                }
                match self.paths.parent(path) {
                    PathId::TOP => Spot::Inside(path),
                    parent => Spot::Inside(parent),
                }
            }
            Spot::Outside(absolute) => Spot::Outside(Rc::from(parent_of(&absolute))),
            Spot::Unknown => Spot::Unknown,
        }
    }
}

fn parent_of(absolute: &[u8]) -> &[u8] {
    memchr::memrchr(b'/', absolute).map_or(&[], |at| crate::bytes::cut(absolute, 0, at))
}
