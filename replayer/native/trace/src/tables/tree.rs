//! The table `tree`: what must be there before the trace is replayed. What it does not name must not be there.

use crate::call::FileKind;
use crate::error::TraceError;
use crate::paths::{NameId, PathId, Paths};
use crate::tables::schema;
use crate::tables::text::escaped;
use crate::tables::write::TableWriter;
use crate::tree::{Node, NodeId, Tree};
use parquet::data_type::ByteArray;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

/// Mode of a file of which only that is known (chosen: what programs that are installed have).
const EXECUTABLE: u32 = 0o755;

/// Target of a symlink that nothing was looked up through and that was not read.
const LED_NOWHERE: &str = "unknown";

/// What of a manifest is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// What events touch, the directories above, and what listed directories hold.
    Needed,
    /// Everything.
    All,
}

/// A place of the tree, and the file that was there.
pub(crate) struct Needed {
    place: PathId,
    index: usize,
}

/// What of the tree as it was before the trace needs, in no order; each gets a row in `paths`.
pub(crate) fn needed(tree: &mut Tree, keep: Keep) -> Vec<Needed> {
    let wanted = wanted(tree, keep);
    let mut needed = Vec::new();
    for (index, is_wanted) in wanted.into_iter().enumerate() {
        let node = tree.nodes.get(index).filter(|_| is_wanted);
        if let Some((parent, name)) = node.and_then(|node| node.origin)
            && let Some(place) = origin(tree, parent, name)
        {
            tree.paths.row(place);
            needed.push(Needed { place, index });
        }
    }
    needed
}

/// Sort them by the texts of their places, so that parents come before children.
pub(crate) fn sort(needed: &mut [Needed], paths: &Paths) {
    needed.sort_by_cached_key(|needed| (paths.text(needed.place), needed.index));
}

/// The same where the rows of `paths` are sorted already.
pub(crate) fn sort_by_row(needed: &mut [Needed], paths: &mut Paths) {
    needed.sort_unstable_by_key(|needed| (paths.row(needed.place), needed.index));
}

/// Write the tree as it was before. Returns its figures.
pub(crate) fn write(
    directory: &Path,
    tree: &mut Tree,
    needed: &[Needed],
) -> Result<Value, TraceError> {
    let mut table = TableWriter::create(directory, "tree", &schema::TREE)?;
    let mut figures = Figures::default();
    for needed in needed {
        let Some(node) = tree.nodes.get(needed.index) else {
            continue;
        };
        figures.count(node);
        let row = tree.paths.row(needed.place);
        push(&mut table, node, row)?;
    }
    table.finish()?;
    Ok(figures.json())
}

fn push(table: &mut TableWriter, node: &Node, row: u32) -> Result<(), TraceError> {
    let size = if node.kind == FileKind::Regular || node.kind == FileKind::Unknown {
        node.first_size
    } else {
        0
    };
    let link = match &node.link {
        Some((_, text)) => Some(escaped(text)),
        None if node.kind == FileKind::Symlink => Some(LED_NOWHERE.to_owned()),
        None => None,
    };
    let known_from = if node.declared { "manifest" } else { "events" };
    if let [path, kind, bytes, mode, target, known] = table.columns.as_mut_slice() {
        path.push(Some(i64::from(row)));
        kind.push_text(Some(ByteArray::from(letter(node.kind))));
        bytes.push(Some(size));
        let told = node.mode.or(node.executable.then_some(EXECUTABLE));
        mode.push(told.map(i64::from));
        target.push_text(link.map(|text| ByteArray::from(text.into_bytes())));
        known.push_text(Some(ByteArray::from(known_from)));
    }
    table.end_row()
}

/// The letter of a kind: f, d, l, or o for fifos, sockets and devices.
const fn letter(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Unknown | FileKind::Regular => "f",
        FileKind::Directory => "d",
        FileKind::Symlink => "l",
        FileKind::Special => "o",
    }
}

fn wanted(tree: &Tree, keep: Keep) -> Vec<bool> {
    let mut wanted: Vec<bool> = tree
        .nodes
        .iter()
        .map(|node| {
            let listed = node
                .origin
                .and_then(|(parent, _)| tree.node(parent))
                .is_some_and(|parent| parent.listed);
            keep == Keep::All || node.confirmed || node.walked || listed || !node.declared
        })
        .collect();
    // A node is made after the directory of its origin: going down, each passes it on.
    for index in (0..tree.nodes.len()).rev() {
        let needed = wanted.get(index).copied().unwrap_or(false);
        let parent = tree.nodes.get(index).and_then(|node| node.origin);
        if let (true, Some((parent, _))) = (needed, parent) {
            let mut at = parent;
            while let Some(place) = wanted.get_mut(at.index()).filter(|place| !**place) {
                *place = true;
                match tree.node(at).and_then(|node| node.origin) {
                    Some((above, _)) => at = above,
                    None => break,
                }
            }
        }
    }
    wanted
}

/// The place where a node was before; None where a directory above it was not there.
fn origin(tree: &mut Tree, parent: NodeId, name: NameId) -> Option<PathId> {
    let mut names = vec![name];
    let mut at = parent;
    while at != NodeId::TOP {
        let (above, name) = tree.node(at)?.origin?;
        names.push(name);
        at = above;
        if names.len() > 1 << 12 {
            return None;
        }
    }
    names.iter().rev().try_fold(PathId::TOP, |place, &name| {
        tree.paths.child_named(place, name)
    })
}

#[derive(Debug, Default)]
struct Figures {
    files: u64,
    directories: u64,
    links: u64,
    special: u64,
    bytes: i64,
    inferred: u64,
    least_sizes: u64,
}

impl Figures {
    fn count(&mut self, node: &Node) {
        match node.kind {
            FileKind::Directory => self.directories += 1,
            FileKind::Symlink => self.links += 1,
            FileKind::Special => self.special += 1,
            FileKind::Regular | FileKind::Unknown => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(node.first_size);
                self.least_sizes += u64::from(!node.first_size_is_exact);
            }
        }
        self.inferred += u64::from(!node.declared);
    }

    fn json(&self) -> Value {
        json!({
            "files": self.files,
            "directories": self.directories,
            "links": self.links,
            "special": self.special,
            "bytes": self.bytes,
            "inferred": self.inferred,
            "sizes_that_are_least": self.least_sizes,
        })
    }
}
