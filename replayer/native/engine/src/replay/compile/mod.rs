//! From a trace folder to reels: a whole trace is one, each request of a label is one.
//! Nothing that a trace says is trusted: what cannot be, or may not be, becomes an omission or an error in words.

mod atlas;
mod calibration;
mod chunks;
mod clock;
mod cook;
mod denied;
mod laid;
mod lanes;
mod locks;
mod operands;
mod own;
mod past;
mod past_events;
mod recipe;
mod recorded;
mod requests;
mod scribe;
mod scribe_file;
mod scribe_lock;
mod scribe_path;
mod script;
mod slots;
mod survey;
mod table;
mod waits;

pub(crate) use atlas::{Atlas, Contended};
pub(crate) use laid::datasets;
pub(crate) use requests::compile_requests;

use super::reel::{Chunk, Reel, Script};
use calibration::Calibration;
use chunks::Needs;
use lanes::Lanes;
use own::{Entries, numbered, own_of_tree, tops};
use recipe::{Part, Recipe};
use replayer_trace::{Streams, Trace, label_name};
use script::{Kept, Streamed};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use survey::{Survey, solitary};
use table::Table;

/// Events that are kept in memory (chosen: 224 MiB); more are read anew for each performance.
const KEPT_EVENTS: u64 = 2_000_000;

/// A trace that was opened and checked.
#[derive(Debug)]
pub(crate) struct Source {
    streams: Streams,
    pub(crate) atlas: Arc<Atlas>,
    calibration: Calibration,
    /// Users that share its directories.
    users: u32,
}

impl Source {
    /// Open a trace folder that is to lie in a directory of the run's folder; its trace.json must have this checksum.
    pub(crate) fn open(
        folder: &str,
        directory: &str,
        sha256: &str,
        contended: Contended,
    ) -> Result<Source, String> {
        let told = |error: replayer_trace::TraceError| error.to_string();
        let place = Path::new(folder);
        let trace = Trace::open(place).map_err(told)?;
        let found = trace.sha256();
        if found != sha256 {
            return Err(format!(
                "{folder}: the SHA-256 of its trace.json must be {sha256}, got {found}"
            ));
        }
        let streams = Streams::open(&trace, place).map_err(told)?;
        let solitary = solitary(&streams)?;
        let atlas = Atlas::load(&trace, directory, &solitary, contended);
        let atlas = atlas.map_err(|error| format!("{folder}: {error}"))?;
        Ok(Source {
            streams,
            atlas: Arc::new(atlas),
            calibration: Calibration::of(trace.document()),
            users: 1,
        })
    }

    /// The same for so many users.
    pub(crate) fn shared_by(self, users: u32) -> Source {
        Source { users, ..self }
    }
}

impl Source {
    /// The labels of its requests; those that nobody named have one together.
    pub(crate) fn labels(&self) -> Result<BTreeSet<String>, String> {
        let told = |error: replayer_trace::TraceError| error.to_string();
        let mut rows = self.streams.requests().map_err(told)?;
        let mut labels = BTreeSet::new();
        while let Some(piece) = rows.next_piece().map_err(told)? {
            labels.insert(label_name(&piece.label).to_owned());
        }
        Ok(labels)
    }
}

/// Make a reel of a whole trace. `laid_out`: users' first own entries are made by the layout.
pub(crate) fn compile_whole(source: &Source, laid_out: bool) -> Result<Reel, String> {
    let survey = Survey::of(&source.streams)?;
    let lanes = Lanes::deal(&survey.spans);
    let recipe = Recipe {
        streams: source.streams.clone(),
        atlas: Arc::clone(&source.atlas),
        table: Table::of_all(&source.atlas)?,
        far: survey.far(|thread| lanes.of(thread)),
        lanes,
        part: Part::Whole,
        rows: (0, survey.events.saturating_sub(1)),
        begin_ns: 0,
        calibration: source.calibration,
        users: source.users,
        inherited: Vec::new(),
    };
    let atlas = &source.atlas;
    let own = own_of_tree(atlas);
    let paths = (0..atlas.rows()).filter_map(|row| atlas.path(row));
    let top_rows = tops(atlas, paths);
    let (chunks, needs) = if survey.events <= KEPT_EVENTS {
        let mut chunks = Vec::new();
        let needs = recipe.cook(|chunk| {
            chunks.push(Arc::new(chunk));
            true
        })?;
        (Some(chunks), needs)
    } else {
        (None, recipe.cook(|_| true)?)
    };
    Ok(Reel {
        laid_out,
        ..reel(recipe, chunks, needs, (&own, top_rows))
    })
}

/// Put a reel together; without chunks it makes them for each performance.
fn reel(
    recipe: Recipe,
    chunks: Option<Vec<Arc<Chunk>>>,
    needs: Needs,
    (own, tops): (&Entries, impl IntoIterator<Item = u32>),
) -> Reel {
    let tops = tops.into_iter();
    Reel {
        lanes: recipe.lanes.count,
        slots: needs.slots,
        paths: Arc::clone(&recipe.table.paths),
        own: numbered(own, &recipe.atlas, &recipe.table),
        tops: tops.filter_map(|row| recipe.table.number(row)).collect(),
        laid_out: false,
        read_bytes: needs.read_bytes,
        script: script(recipe, chunks),
    }
}

fn script(recipe: Recipe, chunks: Option<Vec<Arc<Chunk>>>) -> Box<dyn Script> {
    match chunks {
        Some(chunks) => Box::new(Kept(chunks.into())),
        None => Box::new(Streamed(Arc::new(recipe))),
    }
}

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod tests_contended;
#[cfg(test)]
mod tests_flags;
#[cfg(test)]
mod tests_links;
#[cfg(test)]
mod tests_lists;
#[cfg(test)]
mod tests_locks;
#[cfg(test)]
mod tests_nameless;
#[cfg(test)]
mod tests_odd;
#[cfg(test)]
mod tests_order;
#[cfg(test)]
mod tests_refused;
