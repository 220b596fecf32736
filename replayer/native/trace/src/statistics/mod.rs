//! What a trace, or the requests of one label in it, asks of a file system, in numbers that can be compared.
//!
//! FORMAT.md says what each number means. Events are read once.

pub(crate) mod request_pieces;
pub(crate) mod space;
pub(crate) mod tally;
pub(crate) mod think_time;

use crate::constants::O_CREAT;
use crate::error::TraceError;
use crate::reader::Trace;
use crate::statistics::request_pieces::RequestPieces;
use crate::statistics::space::{PrivateFiles, SpaceEstimate, WritePositions};
use crate::statistics::tally::{Places, Tally};
use crate::statistics::think_time::ThinkTime;
use crate::tables::schema::{Event, TreeEntry};
use replayer_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Count a trace's events, all or those of the requests with one label. Returns JSON.
///
/// # Errors
/// It is no trace, is damaged, or has no request of this label.
pub fn statistics(directory: &Path, label: Option<&str>) -> Result<String, TraceError> {
    let trace = Trace::open(directory)?;
    let pieces = RequestPieces::load(&trace, directory, label)?;
    let mut kinds = PathKinds::load(&trace)?;
    let mut whole = Tally::default();
    let mut labels: Vec<Tally> = pieces.labels().map(|_| Tally::default()).collect();
    let (mut positions, mut growth) = (WritePositions::default(), SpaceEstimate::default());
    let (mut own, mut pauses) = (PrivateFiles::default(), ThinkTime::of(&trace));
    let mut threads = FxHashSet::default();
    let mut span_ns = 0;
    let mut cursor = pieces.cursor();
    let mut events = trace.tables().events(0)?;
    while let Some((row, event)) = events.next_event()? {
        let places = kinds.follow(&event);
        let wrote = positions.follow(&event);
        own.follow(&event);
        let piece = cursor.at(row, event.thread);
        let is_chosen = label.is_none() || piece.is_some();
        if is_chosen {
            let piece = label.and(piece);
            let most_ns = piece.map(|piece| piece.most_pause_ns(row, &event));
            pauses.choose(&event, most_ns.unwrap_or(i64::MAX));
        }
        pauses.follow(&event);
        if let Some(piece) = piece
            && let Some(tally) = labels.get_mut(piece.label)
        {
            tally.add(&event, places, piece.request);
        }
        if is_chosen {
            whole.add(&event, places, 0);
            // Each request is a performance of its own, which begins with the files as they were.
            let performance = label.and(piece).map_or(0, |piece| piece.request);
            growth.add(wrote, performance, places.written());
            threads.insert(event.thread);
            span_ns = span_ns.max(end_ns(&event));
        }
    }
    if label.is_some() {
        span_ns = pieces.span_ns();
    }
    let rest = json!({
        "threads": threads.len(),
        "requests": pieces.requests(),
        "span_ns": span_ns,
        "grown_bytes": growth.bytes(),
        "own": own.json(&trace)?,
        "pauses": pauses.json(),
        "labels": by_label(&pieces, &labels, &kinds),
    });
    Ok(joined([whole.json(), kinds.count(&whole), rest]).to_string())
}

fn joined(objects: [Value; 3]) -> Value {
    let maps = objects.into_iter().filter_map(|object| match object {
        Value::Object(map) => Some(map),
        _ => None,
    });
    Value::Object(maps.flatten().collect())
}

fn end_ns(event: &Event) -> i64 {
    let duration_ns = event.duration_ns.unwrap_or(0);
    event.start_ns.saturating_add(duration_ns)
}

fn by_label(pieces: &RequestPieces, tallies: &[Tally], kinds: &PathKinds) -> Value {
    let labels = pieces.labels().zip(tallies);
    labels
        .map(|((label, requests), tally)| {
            json!({
                "label": label,
                "requests": requests,
                "events": tally.events,
                "mean": tally.means(requests, |path| kinds.of(path)),
            })
        })
        .collect()
}

/// What is known of each path: its label, whether it is a file or a directory, and which file has it.
struct PathKinds {
    labels: Vec<String>,
    known: Vec<Option<char>>,
    homes: FxHashMap<u32, u32>,
}

impl PathKinds {
    fn load(trace: &Trace) -> Result<Self, TraceError> {
        let paths = trace.paths()?;
        let mut kinds = vec![None; paths.len()];
        for TreeEntry { path, kind, .. } in trace.tree()? {
            if let Some(known) = kinds.get_mut(index(path)) {
                *known = Some(kind);
            }
        }
        Ok(Self {
            labels: paths.into_iter().map(|row| row.label).collect(),
            known: kinds,
            homes: FxHashMap::default(),
        })
    }

    fn of(&self, path: u32) -> Option<char> {
        self.known.get(index(path)).copied().flatten()
    }

    fn learn(&mut self, path: Option<u32>, kind: char) {
        if let Some(known) = path.and_then(|path| self.known.get_mut(index(path))) {
            known.get_or_insert(kind);
        }
    }

    /// The places an event touches, once what it says about them is learnt.
    fn follow(&mut self, event: &Event) -> Places {
        if let (Some(path), Some(file)) = (event.path, event.file)
            && matches!(event.op, Op::Open | Op::Inherit)
        {
            self.homes.insert(file, path);
        }
        let home = |file: Option<u32>| self.homes.get(&file?).copied();
        let places = Places {
            first: event.path.or_else(|| match event.op {
                // Of what is open the path may be that of a directory; the first file is where the new name's path began.
                Op::Link => None,
                _ => home(event.file),
            }),
            second: event.to_path.or_else(|| match event.op {
                Op::CopyFileRange | Op::Clone | Op::Splice | Op::Sendfile => home(event.to_file),
                _ => None,
            }),
        };
        if event.result >= 0 {
            self.learn_from(event, places);
        }
        places
    }

    fn learn_from(&mut self, event: &Event, places: Places) {
        match event.op {
            Op::Mkdir | Op::Rmdir | Op::Getdents | Op::Chdir => self.learn(places.first, 'd'),
            Op::Symlink | Op::Readlink => self.learn(places.first, 'l'),
            Op::Link if event.path.is_none() => self.learn(places.second, 'f'),
            Op::Rename | Op::Link => {
                if let Some(kind) = places.first.and_then(|path| self.of(path)) {
                    self.learn(places.second, kind);
                }
            }
            Op::Open if event.flags.is_some_and(|flags| flags & O_CREAT != 0) => {
                self.learn(places.first, 'f');
            }
            Op::Read | Op::Write | Op::Pread | Op::Pwrite | Op::Ftruncate | Op::Mmap => {
                self.learn(places.first, 'f');
            }
            _ => {}
        }
    }

    /// Distinct paths, by label and by what they are.
    fn count(&self, tally: &Tally) -> Value {
        let mut labels: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut files, mut directories, mut links, mut others, mut missing) = (0, 0, 0, 0, 0);
        for (path, touched) in tally.touched() {
            if let Some(label) = self.labels.get(index(path)) {
                *labels.entry(label).or_default() += 1;
            }
            *match self.of(path) {
                _ if !touched => &mut missing,
                Some('f') => &mut files,
                Some('d') => &mut directories,
                Some('l') => &mut links,
                _ => &mut others,
            } += 1;
        }
        json!({
            "paths": labels,
            "files": files,
            "directories": directories,
            "links": links,
            "others": others,
            "missing": missing,
        })
    }
}

fn index(path: u32) -> usize {
    usize::try_from(path).unwrap_or(usize::MAX)
}

/// Tell the label of each path: a JSON object. Bytes of names that are no text are replaced.
///
/// # Errors
/// It is no trace, or is damaged.
pub fn labels(directory: &Path) -> Result<String, TraceError> {
    let paths = Trace::open(directory)?.paths()?;
    let named = paths.into_iter().map(|named| {
        let path = String::from_utf8_lossy(&named.path).into_owned();
        (path, Value::from(named.label))
    });
    Ok(Value::Object(named.collect::<Map<_, _>>()).to_string())
}
