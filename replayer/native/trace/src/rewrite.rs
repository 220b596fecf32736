//! Writes a trace anew with other names: what it does, when, and what came of it stays the same, column by column.

use crate::error::TraceError;
use crate::folder::{FolderDraft, seal_folder};
use crate::reader::Trace;
use crate::requests::label_name;
use crate::tables::column::{Kind, Spec};
use crate::tables::read::{OpenTable, Rows};
use crate::tables::schema::{EDGES, PATHS, REQUESTS, TREE};
use crate::tables::text::{escaped_whole, unescaped};
use crate::tables::write::TableWriter;
use replayer_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// What a link leads to: who has it, by row of `paths`, and what it says.
pub type Link = (u32, Vec<u8>);
/// A text of events: the place of the op in `Op::ALL`, the row of their path, and the text.
pub type EventText = (u8, Option<u32>, Vec<u8>);

/// All that a trace names, without what is named twice.
#[derive(Debug, Default)]
pub struct Names {
    /// By row of `paths`.
    pub paths: Vec<Vec<u8>>,
    /// Of the tree.
    pub links: Vec<Link>,
    /// Of events.
    pub texts: Vec<EventText>,
    /// Of requests that somebody has named.
    pub labels: Vec<String>,
    /// Users and groups that own something from some event on.
    pub owners: Vec<i64>,
}

/// What stands in the place of each name, in the same order.
#[derive(Debug, Default)]
pub struct NewNames {
    /// Of `Names::paths`.
    pub paths: Vec<Vec<u8>>,
    /// Of `Names::links`.
    pub links: Vec<Vec<u8>>,
    /// Of `Names::texts`.
    pub texts: Vec<Vec<u8>>,
    /// Of `Names::labels`.
    pub labels: Vec<String>,
    /// Of `Names::owners`.
    pub owners: Vec<i64>,
    /// Added to all times that events set.
    pub shift_ns: i64,
    /// The new trace.json; its checksums are put in.
    pub document: String,
}

/// Collect all that a trace names.
///
/// # Errors
/// It is no trace, or is damaged.
pub fn names(directory: &Path) -> Result<Names, TraceError> {
    let trace = Trace::open(directory)?;
    let mut found = Names {
        paths: trace.paths()?.into_iter().map(|named| named.path).collect(),
        ..Names::default()
    };
    let links = trace.tree()?.into_iter();
    found.links = links
        .filter_map(|entry| Some((entry.path, entry.link?)))
        .collect();
    let mut met = FxHashSet::default();
    for piece in trace.requests()? {
        let is_named = label_name(&piece.label) == piece.label;
        if is_named && met.insert(piece.label.clone()) {
            found.labels.push(piece.label);
        }
    }
    let (mut texts, mut owners) = (FxHashSet::default(), FxHashSet::default());
    let mut events = trace.tables().events(0)?;
    while let Some((_, event)) = events.next_event()? {
        let new = [event.uid, event.gid]
            .into_iter()
            .flatten()
            .filter(|&owner| owners.insert(owner));
        found.owners.extend(new);
        if let Some(text) = event.text {
            let text = (event.op as u8, event.path, text);
            if texts.insert(text.clone()) {
                found.texts.push(text);
            }
        }
    }
    Ok(found)
}

/// Write a trace with other names into a new folder, whole or not at all.
///
/// # Errors
/// It is no trace, or is damaged; the folder exists, or cannot be written; a name has no new one.
pub fn rewrite(
    directory: &Path,
    target: &Path,
    old: &Names,
    new: &NewNames,
) -> Result<String, TraceError> {
    let trace = Trace::open(directory)?;
    let renames = Renames::new(&trace, old, new)?;
    let draft = FolderDraft::create(target)?;
    let written = renames.write(directory, draft.path());
    draft.finish(written)
}

/// The new names by the old ones.
struct Renames<'a> {
    events: &'static [Spec],
    paths: &'a [Vec<u8>],
    links: FxHashMap<&'a [u8], FxHashMap<u32, &'a [u8]>>,
    texts: FxHashMap<&'a EventText, &'a [u8]>,
    labels: FxHashMap<&'a str, &'a str>,
    owners: FxHashMap<i64, i64>,
    shift_ns: i64,
    document: &'a str,
}

impl<'a> Renames<'a> {
    fn new(trace: &Trace, old: &'a Names, new: &'a NewNames) -> Result<Self, TraceError> {
        let counts = [
            (old.paths.len(), new.paths.len()),
            (old.links.len(), new.links.len()),
            (old.texts.len(), new.texts.len()),
            (old.labels.len(), new.labels.len()),
            (old.owners.len(), new.owners.len()),
        ];
        if counts.iter().any(|(before, now)| before != now) {
            return Err(TraceError::asked(
                "not all names have a new one",
                "this is a bug",
            ));
        }
        let mut links: FxHashMap<&[u8], FxHashMap<u32, &[u8]>> = FxHashMap::default();
        for ((row, link), name) in old.links.iter().zip(&new.links) {
            links.entry(link).or_default().insert(*row, name);
        }
        Ok(Self {
            events: trace.tables().event_specs(),
            paths: &new.paths,
            links,
            texts: old
                .texts
                .iter()
                .zip(new.texts.iter().map(Vec::as_slice))
                .collect(),
            labels: old
                .labels
                .iter()
                .map(String::as_str)
                .zip(new.labels.iter().map(String::as_str))
                .collect(),
            owners: old
                .owners
                .iter()
                .copied()
                .zip(new.owners.iter().copied())
                .collect(),
            shift_ns: new.shift_ns,
            document: &new.document,
        })
    }

    fn write(&self, from: &Path, to: &Path) -> Result<String, TraceError> {
        copy(from, to, "events", self.events, |row| self.event(row))?;
        copy(from, to, "paths", &PATHS, |row| {
            let number = usize::try_from(row.number).ok()?;
            *row.text("path")? = Some(self.paths.get(number)?.clone());
            Some(())
        })?;
        copy(from, to, "tree", &TREE, |row| {
            let owner = u32::try_from((*row.int("path")?)?).ok()?;
            let link = row.text("link")?;
            if let Some(said) = link.take() {
                *link = Some(self.links.get(said.as_slice())?.get(&owner)?.to_vec());
            }
            Some(())
        })?;
        copy(from, to, "edges", &EDGES, |_| Some(()))?;
        copy(from, to, "requests", &REQUESTS, |row| {
            let label = row.text("label")?;
            let old = String::from_utf8(label.take()?).ok()?;
            let new = self.labels.get(old.as_str()).copied().unwrap_or(&old);
            *label = Some(new.as_bytes().to_vec());
            Some(())
        })?;
        let document = serde_json::from_str(self.document)
            .map_err(|error| TraceError::broken(to, format!("is not JSON: {error}")))?;
        seal_folder(to, document)
    }

    fn event(&self, row: &mut Row) -> Option<()> {
        for name in ["uid", "gid"] {
            let owner = row.int(name)?;
            if let Some(old) = *owner {
                *owner = Some(*self.owners.get(&old)?);
            }
        }
        for name in ["atime_ns", "mtime_ns"] {
            let time = row.int(name)?;
            *time = time.map(|time| time.saturating_add(self.shift_ns));
        }
        if let Some(said) = row.text("text")?.take() {
            let name = row.text("op")?.clone()?;
            let op = Op::ALL.iter().find(|op| op.name().as_bytes() == name)?;
            let path = row.int("path")?.map(u32::try_from).transpose().ok()?;
            let new = self.texts.get(&(*op as u8, path, said))?.to_vec();
            *row.text("text")? = Some(new);
        }
        Some(())
    }
}

enum Cell {
    Int(Option<i64>),
    Text(Option<Vec<u8>>),
}

/// A row as it is read and written.
struct Row {
    number: u64,
    specs: &'static [Spec],
    cells: Vec<Cell>,
}

impl Row {
    fn cell(&mut self, name: &str) -> Option<&mut Cell> {
        let at = self.specs.iter().position(|spec| spec.name == name)?;
        self.cells.get_mut(at)
    }

    fn int(&mut self, name: &str) -> Option<&mut Option<i64>> {
        match self.cell(name)? {
            Cell::Int(value) => Some(value),
            Cell::Text(_) => None,
        }
    }

    fn text(&mut self, name: &str) -> Option<&mut Option<Vec<u8>>> {
        match self.cell(name)? {
            Cell::Text(value) => Some(value),
            Cell::Int(_) => None,
        }
    }

    fn read(&mut self, rows: &mut Rows) {
        let columns = self.specs.iter().enumerate();
        self.cells = columns
            .map(|(column, spec)| match spec.kind {
                Kind::Int32 | Kind::Int64 => Cell::Int(rows.int(column)),
                Kind::Text => Cell::Text(rows.string(column).map(unescaped)),
            })
            .collect();
    }

    fn put(&self, writer: &mut TableWriter) {
        for (column, cell) in writer.columns.iter_mut().zip(&self.cells) {
            match cell {
                Cell::Int(value) => column.push(*value),
                Cell::Text(value) => {
                    column.push_text(value.clone().map(escaped_whole));
                }
            }
        }
    }
}

/// Copy a table row by row, in the same row groups; `change` may put other values into a row.
fn copy(
    from: &Path,
    to: &Path,
    name: &str,
    specs: &'static [Spec],
    mut change: impl FnMut(&mut Row) -> Option<()>,
) -> Result<(), TraceError> {
    let table = OpenTable::open(from, name)?;
    let ends: FxHashSet<u64> = table.group_bounds()?.into_iter().skip(1).collect();
    let count = table.rows_count()?;
    let mut rows = table.rows(specs, u32::MAX)?;
    let mut writer = TableWriter::create(to, name, specs)?;
    let mut row = Row {
        number: 0,
        specs,
        cells: Vec::new(),
    };
    while let Some(number) = rows.advance()? {
        row.number = number;
        row.read(&mut rows);
        change(&mut row).ok_or_else(|| rows.wrong())?;
        row.put(&mut writer);
        let next = number + 1;
        if next < count && ends.contains(&next) {
            writer.end_rows(1)?;
        } else {
            writer.end_row()?;
        }
    }
    writer.finish().map(drop)
}
