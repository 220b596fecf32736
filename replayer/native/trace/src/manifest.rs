//! Reads a manifest: the files below the roots before the trace began.
//!
//! One line a file, tab-separated, with a header line: path, type (f, d, l, - for 'not there', u for a directory that may have had other
//! names too, m for a file that may not have been there, others are special), size, mode (octal), link. A path is relative to the first root, or to the root whose top name stands before a colon: of two
//! names that fit the longer one, so that `TOP:./PATH` is always what it says. Names with tabs, line breaks or the like are
//! escaped as in C: the row then has a capital letter for its type.

use crate::bytes::{number, take_radix};
use crate::call::FileKind;
use crate::error::TraceError;
use crate::formats::strace::value::unescape;
use crate::input::{Input, Line};
use crate::paths::PathId;
use crate::tracker::Tracker;
use crate::tree::{Entry, Found, NodeId};
use std::borrow::Cow;
use std::path::Path;

/// Take over what a manifest declares. Returns the number of files.
pub(crate) fn load(tracker: &mut Tracker, mut input: Input) -> Result<u64, TraceError> {
    let file = &input.path.clone();
    let mut count = 0;
    let mut number = 0_u64;
    let mut links = Vec::new();
    loop {
        number += 1;
        match input.next_line()? {
            Line::End => break,
            Line::TooLong => return Err(wrong(file, number, "is too long")),
            Line::Whole => {}
        }
        let line = input.line();
        if line.is_empty() || (number == 1 && line.starts_with(b"path\ttype\t")) {
            continue;
        }
        let Some(row) = parse(line) else {
            return Err(wrong(
                file,
                number,
                "must be a row of path, type, size, mode and link",
            ));
        };
        let (path, target) = row.names();
        let Some(place) = place(tracker, &path) else {
            return Err(wrong(file, number, "must name a file below the roots"));
        };
        if row.kind == b'-' {
            declare_absent(tracker, place);
            continue;
        }
        if row.kind == b'm' {
            declare_doubt(tracker, place);
            continue;
        }
        count += 1;
        if let Some(node) = declare(tracker, place, &row)
            && row.kind == b'l'
        {
            links.push((node, place, target.into_owned()));
        }
    }
    // A link may lead to what stands further down.
    for (node, place, text) in links {
        tracker.set_link(node, place, &text);
    }
    tracker.tree.forget_walks();
    // What the manifest walked through is not what the trace needs.
    for node in &mut tracker.tree.nodes {
        node.walked = false;
    }
    Ok(count)
}

struct Row<'a> {
    path: &'a [u8],
    /// In small letters.
    kind: u8,
    /// A capital letter says that the names are written with `\\`, `\t`, `\n` and `\r`.
    escaped: bool,
    size: i64,
    mode: Option<u32>,
    link: &'a [u8],
}

impl<'a> Row<'a> {
    /// Path and link.
    fn names(&self) -> (Cow<'a, [u8]>, Cow<'a, [u8]>) {
        if self.escaped {
            (unescape(self.path), unescape(self.link))
        } else {
            (Cow::Borrowed(self.path), Cow::Borrowed(self.link))
        }
    }
}

fn parse(line: &[u8]) -> Option<Row<'_>> {
    let mut fields = line.splitn(5, |&byte| byte == b'\t');
    let path = fields.next()?;
    let &[letter] = fields.next()? else {
        return None;
    };
    let size = number(fields.next()?)?;
    let permissions =
        take_radix(fields.next()?, 8).and_then(|(mode, _)| u32::try_from(mode & 0o7777).ok());
    let target = fields.next().unwrap_or_default();
    (size >= 0).then_some(Row {
        path,
        kind: letter.to_ascii_lowercase(),
        escaped: letter.is_ascii_uppercase(),
        size,
        mode: permissions,
        link: target,
    })
}

fn wrong(file: &Path, line: u64, what: &str) -> TraceError {
    TraceError::damaged(
        file,
        format!("line {line} {what}"),
        "a manifest has five tab-separated columns and a header line: path, type, size, mode, link",
    )
}

/// The place of a row's path.
fn place(tracker: &mut Tracker, path: &[u8]) -> Option<PathId> {
    let (mut at, rest) = root_of(tracker, path)?;
    for part in rest.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return None,
            name => at = tracker.tree.paths.child(at, name)?,
        }
    }
    Some(at)
}

/// The root that a path begins with, or the first one, and what lies in it.
fn root_of<'a>(
    Tracker { scope, tree, .. }: &Tracker,
    path: &'a [u8],
) -> Option<(PathId, &'a [u8])> {
    let named = scope.roots().filter_map(|(_, top)| {
        let name = tree.paths.names.text(tree.paths.name(top));
        let rest = path.strip_prefix(name)?.strip_prefix(b":")?;
        Some((name.len(), top, rest))
    });
    match named.max_by_key(|&(length, ..)| length) {
        Some((_, top, rest)) => Some((top, rest)),
        None => scope.roots().next().map(|(_, top)| (top, path)),
    }
}

fn declare_absent(tracker: &mut Tracker, place: PathId) {
    let found = tracker.tree.find(place, false);
    if let Found::Unknown(directory, name) | Found::Node(_, Some((directory, name))) = found {
        tracker.tree.bind(directory, name, Entry::Absent);
    }
}

/// Nothing is known of a name: events tell, as they do of all names of a directory that a manifest does not list whole.
fn declare_doubt(tracker: &mut Tracker, place: PathId) {
    let parent = tracker.tree.paths.parent(place);
    if let Found::Node(directory, _) = tracker.tree.find(parent, false)
        && let Some(node) = tracker.tree.node_mut(directory)
    {
        node.complete = false;
    }
}

fn declare(tracker: &mut Tracker, place: PathId, row: &Row<'_>) -> Option<NodeId> {
    let kind = match row.kind {
        b'f' => FileKind::Regular,
        b'd' | b'u' => FileKind::Directory,
        b'l' => FileKind::Symlink,
        _ => FileKind::Special,
    };
    let parent = tracker.tree.paths.parent(place);
    let parent = tracker.tree.ensure_directory(parent)?;
    let name = tracker.tree.paths.name(place);
    let id = match tracker.tree.entry(parent, name) {
        Some(Entry::Present(node)) => node,
        _ => tracker.tree.add_before(parent, name, kind),
    };
    tracker.tree.set_kind(id, kind);
    if let Some(node) = tracker.tree.node_mut(id) {
        node.declared = true;
        node.complete = row.kind == b'd';
        node.mode = row.mode;
        if kind == FileKind::Regular {
            node.first_size = row.size;
            node.size = row.size;
            node.first_size_is_exact = true;
        }
    }
    Some(id)
}
