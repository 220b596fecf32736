//! Reels of the requests of a label: all made in two walks along the trace.

use super::chunks::{Chunker, Needs};
use super::cook::Edges;
use super::lanes::Lanes;
use super::own::{Entries, own_of_past, tops};
use super::past::{Inherited, Past};
use super::recipe::{Part, Recipe};
use super::survey::{Requests, Wanted};
use super::table::Table;
use super::{KEPT_EVENTS, Source};
use crate::replay::reel::{Chunk, Reel};
use replayer_trace::TraceError;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Make a reel of every request that has a label, in the order of their first events.
pub(crate) fn compile_requests(source: &Source, label: &str) -> Result<Vec<Reel>, String> {
    let requests = Requests::find(&source.streams, label)?;
    let befores = befores(source, &requests)?;
    let mut recipes = Vec::with_capacity(befores.len());
    for (wanted, before) in requests.wanted.iter().zip(befores) {
        recipes.push(prepared(source, wanted, before)?);
    }
    let cooked = cook(source, &requests, &recipes)?;
    let mut reels = Vec::with_capacity(recipes.len());
    for (ready, made) in recipes.into_iter().zip(cooked) {
        let own = (&ready.own, ready.tops);
        reels.push(super::reel(ready.recipe, made.chunks, made.needs, own));
    }
    Ok(reels)
}

/// What there is when a request begins.
#[derive(Default)]
struct Before {
    own: Entries,
    inherited: Vec<Inherited>,
}

/// Entries of their own that the requests of a label find, all together at most (chosen: 500 MiB).
const MOST_OWN: usize = 4 << 20;

/// Walk along the trace, and look around where requests begin.
fn befores(source: &Source, requests: &Requests) -> Result<Vec<Before>, String> {
    let told = |error: TraceError| error.to_string();
    let mut befores = Vec::with_capacity(requests.wanted.len());
    let mut past = Past::begin(&source.atlas);
    let mut found = 0;
    let mut events = source.streams.events(0).map_err(told)?;
    // They are in the order of their first rows.
    let mut waiting = requests.wanted.iter().peekable();
    while let Some((row, event)) = events.next_event().map_err(told)? {
        while let Some(wanted) = waiting.next_if(|wanted| wanted.rows().0 <= row) {
            let used = wanted.used.iter();
            let own = own_of_past(&past, &source.atlas, wanted);
            found += own.len();
            if found > MOST_OWN {
                return Err(format!(
                    "its requests find more than {MOST_OWN} files of their own"
                ));
            }
            befores.push(Before {
                own,
                inherited: used
                    .filter_map(|(file, thread)| past.inherited(*file, *thread))
                    .collect(),
            });
        }
        if waiting.peek().is_none() {
            break;
        }
        past.take(&event);
    }
    // Requests beyond the last event: there is nothing in them.
    befores.resize_with(requests.wanted.len(), Before::default);
    Ok(befores)
}

/// A request that is ready to be cooked.
struct Ready {
    recipe: Recipe,
    own: Entries,
    tops: BTreeSet<u32>,
}

fn prepared(source: &Source, wanted: &Wanted, before: Before) -> Result<Ready, String> {
    let atlas = &source.atlas;
    let mut rows: BTreeSet<u32> = wanted.paths.iter().copied().collect();
    rows.extend(before.inherited.iter().map(|held| held.path));
    rows.extend(before.own.values().filter_map(|found| found.row));
    let named = rows.iter().filter_map(|row| atlas.path(*row));
    let tops = tops(atlas, named.chain(before.own.keys().map(|path| &**path)));
    rows.extend(&tops);
    let rows: Vec<u32> = rows.into_iter().collect();
    let unnamed = before.own.iter().filter(|(_, found)| {
        let row = found.row;
        row.is_none_or(|row| rows.binary_search(&row).is_err())
    });
    let unnamed: Vec<Box<[u8]>> = unnamed.map(|(path, _)| path.clone()).collect();
    let recipe = Recipe {
        streams: source.streams.clone(),
        atlas: Arc::clone(atlas),
        table: Table::of_some(atlas, &rows, &unnamed)?,
        lanes: Lanes::deal(&Requests::spans(wanted)),
        part: Part::Pieces(wanted.pieces.clone()),
        rows: wanted.rows(),
        begin_ns: wanted.begin_ns(),
        calibration: source.calibration,
        users: source.users,
        inherited: before.inherited,
        far: Arc::default(),
    };
    Ok(Ready {
        recipe,
        own: before.own,
        tops,
    })
}

/// What became of a request.
#[derive(Default)]
struct Made {
    /// `None` where they would not fit into memory.
    chunks: Option<Vec<Arc<Chunk>>>,
    needs: Needs,
}

/// Make the chunks of all requests in one walk.
fn cook(source: &Source, requests: &Requests, recipes: &[Ready]) -> Result<Vec<Made>, String> {
    let told = |error: TraceError| error.to_string();
    let mut made: Vec<Made> = kept(requests)
        .map(|kept| Made {
            chunks: kept.then(Vec::new),
            needs: Needs::default(),
        })
        .collect();
    let mut cooking: HashMap<usize, Chunker<'_>> = HashMap::new();
    let first = requests.wanted.first().map_or(0, |wanted| wanted.rows().0);
    let mut events = source.streams.events(first).map_err(told)?;
    let mut edges = Edges::new(source.streams.edges().map_err(told)?);
    while let Some((row, event)) = events.next_event().map_err(told)? {
        let Some(number) = requests.of(event.thread, row) else {
            continue;
        };
        let (Some(ready), Some(place)) = (recipes.get(number), made.get_mut(number)) else {
            continue;
        };
        let chunker = cooking
            .entry(number)
            .or_insert_with(|| Chunker::new(&ready.recipe));
        chunker.push(row, &event, edges.of(row).map_err(told)?);
        let ends = row >= ready.recipe.rows.1;
        if ends || chunker.is_full() {
            place.needs = chunker.needs();
            let chunk = chunker.take();
            if let Some(chunks) = &mut place.chunks {
                chunks.extend(chunk.map(Arc::new));
            }
        }
        if ends {
            cooking.remove(&number);
        }
    }
    // Requests whose last event is not in the trace.
    for (number, mut chunker) in cooking {
        let chunks = made.get_mut(number).and_then(|place| place.chunks.as_mut());
        if let Some(chunks) = chunks {
            chunks.extend(chunker.take().map(Arc::new));
        }
    }
    Ok(made)
}

/// Which requests are kept in memory: the first ones, as long as there is room.
fn kept(requests: &Requests) -> impl Iterator<Item = bool> {
    let mut left = KEPT_EVENTS;
    requests.wanted.iter().map(move |wanted| {
        let fits = wanted.events <= left;
        if fits {
            left -= wanted.events;
        }
        fits
    })
}
