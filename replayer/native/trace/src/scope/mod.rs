//! Which paths belong to the trace: the roots, and how absolute and relative texts lead below them.

mod links;
pub(crate) mod walk;

use crate::error::TraceError;
use crate::paths::{PathId, Paths};
use crate::tree::Tree;
use links::OutsideLinks;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Where a path leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Location {
    Inside(PathId),
    /// An absolute path outside of the roots, without a slash at its end ("" is `/`).
    Outside(Rc<[u8]>),
    /// It cannot be told: the working directory is not known.
    #[default]
    Unknown,
}

/// The same, without the text of what lies outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved {
    Inside(PathId),
    Outside,
    Unknown,
    TooLong,
    /// A file that is open and has no name (`O_TMPFILE`).
    Nameless,
    /// An empty path leads nowhere (`path_resolution(7)`).
    Empty,
}

impl Resolved {
    /// Whether no place is known, neither inside nor outside.
    pub(crate) const fn is_lost(self) -> bool {
        !matches!(self, Self::Inside(_) | Self::Outside)
    }
}

struct Root {
    absolute: Rc<[u8]>,
    path: PathId,
}

/// A directory that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    Inside(PathId),
    /// Outside of the roots, and above none of them.
    Nowhere,
}

/// Roots, and what has been resolved so far.
pub(crate) struct Scope {
    roots: Vec<Root>,
    /// Other names of roots: symlinks outside of them.
    aliases: Vec<Root>,
    /// None where nobody looks at them.
    links: Option<OutsideLinks>,
    cache: FxHashMap<Box<[u8]>, Resolved>,
    /// What the directories of texts are: most texts share theirs with others.
    directories: FxHashMap<Box<[u8]>, Directory>,
    scratch: Vec<u8>,
}

/// A longer text names nothing: the kernel's limit is 4,096 bytes (here with room for odd ones).
const LONGEST_TEXT_BYTES: usize = 8 << 10;
impl Scope {
    /// Make the tops of the trace from absolute directories.
    pub(crate) fn new(roots: &[Vec<u8>], paths: &mut Paths) -> Result<Self, TraceError> {
        let mut scope = Self {
            roots: Vec::new(),
            aliases: Vec::new(),
            links: None,
            cache: FxHashMap::default(),
            directories: FxHashMap::default(),
            scratch: Vec::new(),
        };
        for root in roots {
            scope.add_root(root, paths)?;
        }
        Ok(scope)
    }

    fn add_root(&mut self, root: &[u8], paths: &mut Paths) -> Result<(), TraceError> {
        let absolute = normal(root).filter(|text| !text.is_empty());
        let Some(absolute) = absolute.filter(|_| root.first() == Some(&b'/')) else {
            return Err(TraceError::asked(
                format!(
                    "--root must be an absolute directory below /, got {}",
                    String::from_utf8_lossy(root)
                ),
                "give the directory as named on the traced machine",
            ));
        };
        for other in &self.roots {
            if is_below(&absolute, &other.absolute) || is_below(&other.absolute, &absolute) {
                return Err(TraceError::asked(
                    format!(
                        "--root {} and --root {}: one is inside the other",
                        String::from_utf8_lossy(&other.absolute),
                        String::from_utf8_lossy(&absolute)
                    ),
                    "give only the outer one",
                ));
            }
        }
        let name = self.free_top(&absolute, paths);
        let Some(path) = paths.child(PathId::TOP, &name) else {
            return Ok(());
        };
        self.roots.push(Root {
            absolute: Rc::from(absolute),
            path,
        });
        Ok(())
    }

    /// Say that a symlink leads to a root: what a program names by it lies inside.
    pub(crate) fn add_alias(&mut self, link: &[u8], root: &[u8]) -> Result<(), TraceError> {
        let named = |text: &[u8]| normal(text).filter(|_| text.first() == Some(&b'/'));
        let target = named(root);
        let known = self
            .roots
            .iter()
            .find(|known| target.as_deref() == Some(&*known.absolute));
        match (known.map(|known| known.path), named(link)) {
            (Some(path), Some(alias)) if !alias.is_empty() => {
                self.aliases.push(Root {
                    absolute: Rc::from(alias),
                    path,
                });
                Ok(())
            }
            _ => Err(TraceError::asked(
                format!(
                    "--alias must be LINK=DIR with an absolute LINK and a root for DIR, got {}={}",
                    String::from_utf8_lossy(link),
                    String::from_utf8_lossy(root)
                ),
                "give each root with --root as well",
            )),
        }
    }

    /// Absolute directories that lead to a top, by whatever name.
    pub(crate) fn entrances(&self) -> impl Iterator<Item = (&[u8], PathId)> {
        let all = self.roots.iter().chain(&self.aliases);
        all.map(|root| (&*root.absolute, root.path))
    }

    /// The place below a root that a name covers, if it is one: by the longest name of a root above it.
    pub(crate) fn covered(&self, tree: &mut Tree, name: &[u8]) -> Option<PathId> {
        let above = self
            .entrances()
            .filter(|(root, _)| *root != name && is_below(name, root));
        let (root, top) = above.max_by_key(|(root, _)| root.len())?;
        let rest = crate::bytes::from(name, root.len() + 1);
        let mut parts = rest.split(|&byte| byte == b'/');
        parts.try_fold(top, |place, part| tree.paths.child(place, part))
    }

    /// The last component of a root, with a number where two roots share it.
    fn free_top(&self, absolute: &[u8], paths: &Paths) -> Vec<u8> {
        let last = absolute.rsplit(|&byte| byte == b'/').next();
        let name = last.unwrap_or_default().to_vec();
        let mut free = name.clone();
        let mut count = 2;
        while self.roots.iter().any(|root| paths.text(root.path) == free) {
            free.clone_from(&name);
            free.extend_from_slice(format!("-{count}").as_bytes());
            count += 1;
        }
        free
    }

    /// Absolute directory and top name of each root.
    pub(crate) fn roots(&self) -> impl Iterator<Item = (&[u8], PathId)> {
        self.roots.iter().map(|root| (&*root.absolute, root.path))
    }
}

pub(crate) fn is_below(inner: &[u8], outer: &[u8]) -> bool {
    inner == outer || (inner.starts_with(outer) && inner.get(outer.len()) == Some(&b'/'))
}

/// An absolute path without its leading slash, `.`, `..` and double slashes.
pub(crate) fn normal(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > LONGEST_TEXT_BYTES {
        return None;
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in text.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    Some(parts.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::FileKind;

    fn made(roots: &[&str]) -> Result<(Scope, Tree), TraceError> {
        let roots: Vec<Vec<u8>> = roots.iter().map(|root| root.as_bytes().to_vec()).collect();
        let mut tree = Tree::new();
        Ok((Scope::new(&roots, &mut tree.paths)?, tree))
    }

    fn scope(roots: &[&str]) -> (Scope, Tree) {
        made(roots).unwrap()
    }

    fn text((scope, tree): &mut (Scope, Tree), base: &Location, path: &str) -> Option<String> {
        for _ in 0..2 {
            // The second time it comes from the cache.
            scope.resolve(tree, base, path.as_bytes());
        }
        match scope.resolve(tree, base, path.as_bytes()) {
            Resolved::Inside(path) => Some(String::from_utf8(tree.paths.text(path)).unwrap()),
            _ => None,
        }
    }

    #[test]
    fn several_roots_are_several_tops() {
        let mut scope = scope(&["/srv/deploy/dst", "/srv/deploy/src/", "/other/src"]);
        let root = Location::Outside(Rc::from(&b""[..]));
        let deploy = Location::Outside(Rc::from(&b"srv/deploy"[..]));
        assert_eq!(
            text(&mut scope, &root, "/srv/deploy/dst/a//./b").as_deref(),
            Some("dst/a/b")
        );
        assert_eq!(text(&mut scope, &deploy, "src/x").as_deref(), Some("src/x"));
        assert_eq!(
            text(&mut scope, &deploy, "dst/../src/x").as_deref(),
            Some("src/x")
        );
        assert_eq!(
            text(&mut scope, &root, "/other/src").as_deref(),
            Some("src-2")
        );
        assert_eq!(text(&mut scope, &root, "/srv/deploy"), None);
        assert_eq!(
            text(&mut scope, &root, "/srv/deploy/dst/../../../etc/passwd"),
            None
        );
        assert_eq!(text(&mut scope, &root, "/srv/deploy/dstx"), None);
    }

    #[test]
    fn texts_that_look_alike_are_told_apart_by_where_they_begin() {
        let mut scope = scope(&["/-"]);
        let root = Location::Outside(Rc::from(&b""[..]));
        let nowhere = Location::Outside(Rc::from(&b"-"[..]));
        assert_eq!(text(&mut scope, &root, "/-/a").as_deref(), Some("-/a"));
        assert_eq!(text(&mut scope, &nowhere, "a"), None);
        assert_eq!(text(&mut scope, &nowhere, "/-/a").as_deref(), Some("-/a"));
    }

    #[test]
    fn dots_go_up_from_where_a_link_leads() {
        let (mut scope, mut tree) = scope(&["/r"]);
        let top = tree.paths.child(PathId::TOP, b"r").unwrap();
        let current = tree.paths.child(top, b"current").unwrap();
        let releases = tree.paths.child(top, b"releases").unwrap();
        let target = tree.paths.child(releases, b"7").unwrap();
        let (link, _) = tree.saw(current, false, FileKind::Symlink).unwrap();
        tree.node_mut(link).unwrap().link = Some((target, b"releases/7".as_slice().into()));
        let resolved = scope.resolve(&mut tree, &Location::Inside(top), b"current/../x");
        let Resolved::Inside(path) = resolved else {
            panic!()
        };
        assert_eq!(tree.paths.text(path), b"r/releases/x");
    }

    #[test]
    fn a_link_to_a_root_leads_into_it() {
        let mut scope = scope(&["/srv/releases/7"]);
        let added = scope.0.add_alias(b"/var/www/site", b"/srv/releases/7/");
        added.unwrap();
        let root = Location::Outside(Rc::from(&b""[..]));
        let www = Location::Outside(Rc::from(&b"var/www"[..]));
        assert_eq!(
            text(&mut scope, &root, "/var/www/site/a").as_deref(),
            Some("7/a")
        );
        assert_eq!(text(&mut scope, &www, "site/b/c").as_deref(), Some("7/b/c"));
        assert_eq!(
            text(&mut scope, &root, "/srv/releases/7/a").as_deref(),
            Some("7/a")
        );
        assert_eq!(text(&mut scope, &root, "/var/www/site2"), None);
        assert!(scope.0.add_alias(b"/x", b"/y").is_err());
        assert!(scope.0.add_alias(b"x", b"/srv/releases/7").is_err());
    }

    #[test]
    fn roots_that_cannot_be_meant_are_refused() {
        for roots in [
            vec!["relative"],
            vec!["/"],
            vec!["/a", "/a/b"],
            vec!["/a", "/a"],
        ] {
            assert!(made(&roots).is_err());
        }
        assert!(scope(&["/a", "/ab"]).0.roots().count() == 2);
    }
}
