//! Datasets and pickers of a plan.

use super::check::exists;
use crate::document::{
    Fault, Parsed, Text, Weight, integer, nullable, read_on, refused, tagged, text, word,
};
use crate::path::{PATH_BYTES, link_stays_inside, plain_path};
use crate::program::{Content, Dataset, EntryKind, NamedTrace, PickRule, Picker, Scope, Weights};
use crate::rng::shuffle;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

pub(super) fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let (is_word, refusal) = (
        value.is_string(),
        refused("random, zeros or {\"compressible\": percent}", &value),
    );
    match read_on(value)? {
        content @ Content::Compressible(_) if !is_word => Ok(content),
        content @ (Content::Random | Content::Zeros) if is_word => Ok(content),
        _ => Err(D::Error::custom(refusal)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatasetDocument {
    #[serde(deserialize_with = "text")]
    name: String,
    #[serde(deserialize_with = "plain_path")]
    directory: String,
    laid_out: bool,
    #[serde(deserialize_with = "word")]
    scope: Scope,
    #[serde(deserialize_with = "content")]
    content: Content,
    entries: Vec<EntryDocument>,
}

#[derive(Deserialize)]
struct EntryDocument(
    #[serde(deserialize_with = "plain_path")] String,
    #[serde(deserialize_with = "word")] EntryKind,
    #[serde(deserialize_with = "integer::<_, _, 0, { 1 << 50 }>")] u64,
    #[serde(deserialize_with = "integer::<_, _, 0, 0o7777>")] u32,
    Text,
);

impl DatasetDocument {
    pub(super) fn dataset(self) -> Parsed<Dataset> {
        let mut dataset = Dataset::new(self.name, self.directory, self.scope, self.content);
        dataset.laid_out = self.laid_out;
        for (index, entry) in self.entries.iter().enumerate() {
            let pushed = entry.push(&mut dataset);
            pushed.map_err(|fault| fault.at(format_args!(".entries[{index}]")))?;
        }
        Ok(dataset)
    }
}

impl EntryDocument {
    fn push(&self, dataset: &mut Dataset) -> Parsed<()> {
        let EntryDocument(path, kind, size, mode, Text(link)) = self;
        if *kind != EntryKind::File && *size > 0 {
            return Err(Fault::new(refused("an integer from 0 to 0", size)).at("[2]"));
        }
        let link_fits = match kind {
            EntryKind::Link => link_stays_inside(path.as_bytes(), link.as_bytes()),
            _ => link.is_empty(),
        };
        if !link_fits {
            let what = "a relative target inside the dataset for an l, \"\" for others";
            return Err(Fault::new(refused(what, link)).at("[4]"));
        }
        if dataset.directory.len() + path.len() > PATH_BYTES {
            let what = "short enough for 4000 bytes with its directory";
            return Err(Fault::new(refused(what, path)));
        }
        let pushed = dataset.push(path.as_bytes(), *kind, (*size, *mode), link.as_bytes());
        pushed.ok_or_else(|| Fault::new("the paths of one dataset exceed 4 GiB"))
    }
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
                Fault::new(format!("datasets {both}")).at(".datasets")
            } else {
                Fault::new(both).at(".traces")
            });
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum RuleDocument {
    Segments {
        dataset: u16,
        types: Text,
        segments: Vec<(Weight, u64, u64)>,
        #[serde(deserialize_with = "nullable")]
        shuffle: Option<u64>,
    },
    Sequential {
        dataset: u16,
        types: Text,
    },
    Own {
        dataset: u16,
        types: Text,
    },
}

pub(super) struct PickerDocument(RuleDocument);

impl<'de> Deserialize<'de> for PickerDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PickerDocument, D::Error> {
        tagged("kind", deserializer).map(PickerDocument)
    }
}

impl PickerDocument {
    pub(super) fn picker(self, datasets: &[Dataset], users: u32) -> Parsed<Picker> {
        let (RuleDocument::Segments { dataset, types, .. }
        | RuleDocument::Sequential { dataset, types }
        | RuleDocument::Own { dataset, types }) = &self.0;
        let dataset = *dataset;
        exists("dataset", dataset, datasets.len(), "dataset")?;
        let types = kinds(&types.0).map_err(|fault| fault.at(".types"))?;
        let entries = datasets
            .get(usize::from(dataset))
            .map(|dataset| &dataset.entries);
        let mut candidates: Vec<u32> = (0_u32..)
            .zip(entries.into_iter().flatten())
            .filter(|(_, entry)| types.contains(&entry.kind))
            .map(|(index, _)| index)
            .collect();
        if candidates.is_empty() {
            return Err(Fault::new("no entry of the dataset has such a type").at(".types"));
        }
        let count = candidates.len();
        let rule = match self.0 {
            RuleDocument::Segments {
                segments: all,
                shuffle: seed,
                ..
            } => {
                let rule = segments(&all, count as u64).map_err(|fault| fault.at(".segments"))?;
                if let Some(seed) = seed {
                    shuffle(&mut candidates, seed);
                }
                rule
            }
            RuleDocument::Sequential { .. } => PickRule::Sequential,
            RuleDocument::Own { .. } if count < users as usize => {
                return Err(Fault::new(format!(
                    "an own picker needs a candidate for each of {users} users, got {count}"
                )));
            }
            RuleDocument::Own { .. } => PickRule::Own,
        };
        Ok(Picker {
            dataset,
            candidates: candidates.into_boxed_slice(),
            rule,
        })
    }
}

fn kinds(types: &str) -> Parsed<Vec<EntryKind>> {
    let kinds = types.chars().map(|letter| match letter {
        'f' => Some(EntryKind::File),
        'd' => Some(EntryKind::Directory),
        'l' => Some(EntryKind::Link),
        _ => None,
    });
    match kinds.collect::<Option<Vec<_>>>() {
        Some(kinds) if !kinds.is_empty() => Ok(kinds),
        _ => Err(Fault::new(refused(
            "some of the letters f, d and l",
            &types,
        ))),
    }
}

fn segments(segments: &[(Weight, u64, u64)], candidates: u64) -> Parsed<PickRule> {
    for (index, (_, start, count)) in segments.iter().enumerate() {
        let bounds = [
            (1, *start, 0, candidates - 1),
            (2, *count, 1, candidates.saturating_sub(*start)),
        ];
        for (place, number, low, high) in bounds {
            if !(low..=high).contains(&number) {
                let what = format!("an integer from {low} to {high}");
                return Err(
                    Fault::new(refused(what, &number)).at(format_args!("[{index}][{place}]"))
                );
            }
        }
    }
    Ok(PickRule::Segments {
        weights: Weights::of(segments.iter().map(|(weight, ..)| weight.0)).map_err(Fault::new)?,
        spans: segments
            .iter()
            .map(|(_, start, count)| (*start, *count))
            .collect(),
    })
}
