//! Symlinks outside of the roots that lead below one, as they are on the machine that imports: it has just recorded.

use crate::paths::PathId;
use crate::scope::{Scope, is_below};
use crate::tree::Tree;
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Names that were looked at, and where each leads; beyond it all is looked at anew (chosen).
const MOST_NAMES: usize = 1 << 18;
/// What the kernel makes up there is another one for each process.
const MADE_UP: [&[u8]; 3] = [b"proc", b"dev", b"sys"];

/// Absolute names outside of the roots, without the first slash, and the places of those that are links and lead below a root.
pub(super) type OutsideLinks = FxHashMap<Box<[u8]>, Option<PathId>>;

impl Scope {
    /// Look at names outside of the roots.
    pub(crate) fn follow_links(&mut self) {
        self.links = Some(OutsideLinks::default());
    }

    /// The place that a name outside of the roots leads to.
    pub(crate) fn linked(&mut self, tree: &mut Tree, absolute: &[u8]) -> Option<PathId> {
        if let Some(known) = self.links.as_ref()?.get(absolute) {
            return *known;
        }
        let place = target_of(absolute).and_then(|target| self.below_root(tree, &target));
        let links = self.links.get_or_insert_default();
        if links.len() >= MOST_NAMES {
            links.clear();
        }
        links.insert(Box::from(absolute), place);
        place
    }

    fn below_root(&self, tree: &mut Tree, absolute: &[u8]) -> Option<PathId> {
        let mut roots = self.roots.iter();
        let root = roots.find(|root| is_below(absolute, &root.absolute))?;
        let rest = crate::bytes::from(absolute, root.absolute.len());
        let mut parts = rest.split(|&byte| byte == b'/');
        parts.try_fold(root.path, |place, part| match part {
            b"" => Some(place),
            name => tree.paths.child(place, name),
        })
    }
}

/// Where a symlink leads, without the first slash. None where it is none, or leads nowhere.
fn target_of(absolute: &[u8]) -> Option<Vec<u8>> {
    let first = absolute.split(|&byte| byte == b'/').next()?;
    if MADE_UP.contains(&first) {
        return None;
    }
    let name = Path::new("/").join(OsStr::from_bytes(absolute));
    let is_link = name
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    let target = is_link.then(|| name.canonicalize().ok())??;
    let text = target.into_os_string().into_vec();
    text.strip_prefix(b"/").map(<[u8]>::to_vec)
}
