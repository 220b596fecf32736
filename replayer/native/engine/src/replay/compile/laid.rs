//! What a trace needs below the run's folder before it is played, as datasets: what all share, and what each user begins with.

use super::Source;
use super::own::{Entries, own_of_tree, shared_of_tree};
use crate::program::{Content, Dataset, Own, Scope};

/// The datasets of a trace of this name and directory; with each user's first own entries where only `whole` traces are played.
/// `None` when their texts exceed 4 GiB.
pub(crate) fn datasets(
    source: &Source,
    (name, directory): (&str, &str),
    whole: bool,
) -> Option<Vec<Dataset>> {
    let mut shared = laid_out(name, directory, Scope::Shared);
    fill(&mut shared, &shared_of_tree(&source.path_map), |_, _| None)?;
    let mut own = laid_out(name, directory, Scope::Own);
    if whole {
        let path_map = &source.path_map;
        let prefix = directory.len() + 1;
        fill(&mut own, &own_of_tree(path_map), |path, link| {
            let end = path_map.own_end_of(path).saturating_sub(prefix);
            Some(Own {
                path: u32::try_from(end).unwrap_or(0),
                link: path_map.link_mark(path, link).unwrap_or(0),
            })
        })?;
    }
    Some(vec![shared, own])
}

fn laid_out(name: &str, directory: &str, scope: Scope) -> Dataset {
    let (name, directory) = (name.to_owned(), directory.to_owned());
    let mut dataset = Dataset::new(name, directory, scope, Content::Random);
    dataset.laid_out = true;
    dataset
}

fn fill(
    dataset: &mut Dataset,
    entries: &Entries,
    own: impl Fn(&[u8], &[u8]) -> Option<Own>,
) -> Option<()> {
    let prefix = dataset.directory.len() + 1;
    for (path, found) in entries {
        let within = path.get(prefix..)?;
        let facts = (found.size, found.mode);
        dataset.push(within, found.kind, facts, &found.link)?;
        if let Some(own) = own(path, &found.link) {
            dataset.mark(own);
        }
    }
    Some(())
}
