//! Datasets and pickers of a plan.

use super::draws::{index, weights};
use super::value::{
    Fault, Fields, Parsed, boolean, choice, integer, list, nullable, refuse, small, text, tuple,
};
use crate::path;
use crate::program::{Content, Dataset, EntryKind, NamedTrace, PickRule, Picker, Scope};
use crate::rng::shuffle;
use serde_json::Value;

pub(super) fn content(value: &Value) -> Parsed<Content> {
    if value.is_object() {
        let fields = Fields::of(value)?.only(&["compressible"])?;
        let percent = fields.take("compressible", |value| integer(value, 0, 100))?;
        return Ok(Content::Compressible(u8::try_from(percent).unwrap_or(100)));
    }
    choice(
        value,
        &[("random", Content::Random), ("zeros", Content::Zeros)],
    )
}

/// Read a path that stays where it is put.
pub(super) fn plain_path(value: &Value) -> Parsed<&str> {
    let path = text(value)?;
    match path::fault(path.as_bytes()) {
        Some(fault) => Err(Fault::new(format!("the path {path:?} {fault}"))),
        None => Ok(path),
    }
}

pub(super) fn dataset(value: &Value) -> Parsed<Dataset> {
    let known = [
        "name",
        "directory",
        "laid_out",
        "scope",
        "content",
        "entries",
    ];
    let fields = Fields::of(value)?.only(&known)?;
    let name = fields.take("name", text)?.to_owned();
    let directory = fields.take("directory", plain_path)?.to_owned();
    let scopes = [("shared", Scope::Shared), ("user", Scope::User)];
    let scope = fields.take("scope", |value| choice(value, &scopes))?;
    let content = fields.take("content", content)?;
    let mut dataset = Dataset::new(name, directory, scope, content);
    dataset.laid_out = fields.take("laid_out", boolean)?;
    fields.take("entries", |value| {
        list(value, |value| entry(value, &mut dataset))
    })?;
    Ok(dataset)
}

const KINDS: [(&str, EntryKind); 3] = [
    ("f", EntryKind::File),
    ("d", EntryKind::Directory),
    ("l", EntryKind::Link),
];

fn entry(value: &Value, dataset: &mut Dataset) -> Parsed<()> {
    let [path_value, kind_value, size_value, mode_value, link_value] = tuple(value)?;
    let path = plain_path(path_value).map_err(|fault| fault.at_index(0))?;
    let kind = choice(kind_value, &KINDS).map_err(|fault| fault.at_index(1))?;
    let largest = if kind == EntryKind::File { 1 << 50 } else { 0 };
    let size = integer(size_value, 0, largest).map_err(|fault| fault.at_index(2))?;
    let mode = small(mode_value, 0o7777).map_err(|fault| fault.at_index(3))?;
    let link = text(link_value).map_err(|fault| fault.at_index(4))?;
    let link_fits = match kind {
        EntryKind::Link => path::link_stays_inside(path.as_bytes(), link.as_bytes()),
        _ => link.is_empty(),
    };
    if !link_fits {
        let want = "a relative target inside the dataset for an l, \"\" for others";
        return refuse(want, link_value).map_err(|fault| fault.at_index(4));
    }
    let whole = dataset.directory.len() + path.len();
    if whole > path::PATH_BYTES {
        return refuse("short enough for 4000 bytes with its directory", path_value);
    }
    let pushed = dataset.push(path.as_bytes(), kind, (size, mode), link.as_bytes());
    pushed.ok_or_else(|| Fault::new("the paths of one dataset exceed 4 GiB"))
}

/// Refuse datasets and traces that share a directory or lie inside another's.
pub(super) fn check_apart(datasets: &[Dataset], traces: &[NamedTrace]) -> Parsed<()> {
    let of_datasets = datasets.iter().map(|one| (&one.directory, &one.name));
    let of_traces = traces.iter().map(|one| (&one.directory, &one.name));
    let mut places: Vec<(String, &str)> = of_datasets
        .chain(of_traces)
        .map(|(directory, name)| (format!("{directory}/"), name.as_str()))
        .collect();
    places.sort_unstable();
    for pair in places.windows(2) {
        if let [(outer, one), (inner, other)] = pair
            && inner.starts_with(outer.as_str())
        {
            let both = format!("{one:?} and {other:?} share the directory {outer:?}");
            return Err(if traces.is_empty() {
                Fault::new(format!("datasets {both}")).at_key("datasets")
            } else {
                Fault::new(both).at_key("traces")
            });
        }
    }
    Ok(())
}

pub(super) fn largest_entry(datasets: &[Dataset]) -> u64 {
    let entries = datasets.iter().flat_map(|dataset| &dataset.entries);
    entries.map(|entry| entry.size).max().unwrap_or(0)
}

pub(super) fn picker(value: &Value, datasets: &[Dataset], users: u32) -> Parsed<Picker> {
    let fields = Fields::of(value)?;
    let dataset = fields.take("dataset", |value| index(value, datasets.len(), "dataset"))?;
    let types = fields.take("types", types)?;
    let mut candidates: Vec<u32> = match datasets.get(usize::from(dataset)) {
        Some(dataset) => (0_u32..)
            .zip(&dataset.entries)
            .filter(|(_, entry)| types.contains(&entry.kind))
            .map(|(index, _)| index)
            .collect(),
        None => Vec::new(),
    };
    if candidates.is_empty() {
        return Err(Fault::new("no entry of the dataset has such a type").at_key("types"));
    }
    let rule = rule(fields, &mut candidates, users)?;
    Ok(Picker {
        dataset,
        candidates: candidates.into_boxed_slice(),
        rule,
    })
}

fn types(value: &Value) -> Parsed<Vec<EntryKind>> {
    let kinds: Option<Vec<EntryKind>> = text(value)?
        .chars()
        .map(|letter| {
            KINDS
                .iter()
                .find(|(known, _)| known.starts_with(letter))
                .map(|(_, kind)| *kind)
        })
        .collect();
    match kinds {
        Some(kinds) if !kinds.is_empty() => Ok(kinds),
        _ => refuse("some of the letters f, d and l", value),
    }
}

fn rule(fields: Fields, candidates: &mut [u32], users: u32) -> Parsed<PickRule> {
    #[derive(Clone, Copy)]
    enum Kind {
        Segments,
        Sequential,
        Own,
    }
    let kinds = [
        ("segments", Kind::Segments),
        ("sequential", Kind::Sequential),
        ("own", Kind::Own),
    ];
    match fields.take("kind", |value| choice(value, &kinds))? {
        Kind::Segments => {
            let fields = fields.only(&["dataset", "types", "kind", "segments", "shuffle"])?;
            let rule = fields.take("segments", |value| segments(value, candidates.len()))?;
            let seed = fields.take("shuffle", |value| {
                nullable(value, |value| integer(value, 0, u64::MAX))
            })?;
            if let Some(seed) = seed {
                shuffle(candidates, seed);
            }
            Ok(rule)
        }
        Kind::Sequential => fields
            .only(&["dataset", "types", "kind"])
            .map(|_| PickRule::Sequential),
        Kind::Own => {
            fields.only(&["dataset", "types", "kind"])?;
            let count = candidates.len();
            if count < users as usize {
                return Err(Fault::new(format!(
                    "an own picker needs a candidate for each of {users} users, got {count}"
                )));
            }
            Ok(PickRule::Own)
        }
    }
}

fn segments(value: &Value, candidates: usize) -> Parsed<PickRule> {
    let segments = list(value, |value| {
        let [weight, start, count] = tuple(value)?;
        let weight = integer(weight, 0, 1 << 62).map_err(|fault| fault.at_index(0))?;
        let start = integer(start, 0, candidates as u64 - 1).map_err(|fault| fault.at_index(1))?;
        let count =
            integer(count, 1, candidates as u64 - start).map_err(|fault| fault.at_index(2))?;
        Ok((weight, (start, count)))
    })?;
    let (shares, spans): (Vec<u64>, Vec<(u64, u64)>) = segments.into_iter().unzip();
    Ok(PickRule::Segments {
        weights: weights(&shares)?,
        spans: spans.into_boxed_slice(),
    })
}
