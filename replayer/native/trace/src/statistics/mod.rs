//! What a trace, or the requests of one label in it, asks of a file system, in numbers that can be compared.
//!
//! FORMAT.md says what each number means. Events are read once.

pub(crate) mod request_pieces;
pub(crate) mod space;
pub(crate) mod tally;

use crate::constants::O_CREAT;
use crate::error::TraceError;
use crate::folder::joined;
use crate::reader::Trace;
use crate::tables::schema::{Event, TreeEntry};
use replayer_ops::Op;
use request_pieces::RequestPieces;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};
use space::{PrivateFiles, SpaceEstimate, WritePositions};
use std::collections::BTreeMap;
use std::path::Path;
use tally::{Places, Tally};

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
    let all = joined([whole.json(), kinds.count(&whole), rest]);
    Ok(Value::Object(all).to_string())
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
        self.homes.extend(event.opens());
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

/// A recorder that waits for a CPU has it again after so long (chosen: with four busy programs on two CPUs strace waited up to 15 ms).
const LONGEST_WAIT_NS: i64 = 20_000_000;
/// Formats of logs whose recorder stops the program at each call.
const STOPPING: [&str; 1] = ["strace"];

/// Sums over events: over all, and over those that are asked for.
#[derive(Debug)]
struct ThinkTime {
    /// What the recorder added to each call.
    call_ns: i64,
    /// CPU time that the program had between its calls at least; `None`: its pauses are not the recorder's.
    proven_ns: Option<i64>,
    all: Sums,
    chosen: Sums,
}

impl ThinkTime {
    /// Of a trace whose events are to come.
    fn of(trace: &Trace) -> Self {
        let told = |pointer| trace.told().pointer(pointer);
        let number = |pointer| told(pointer).and_then(Value::as_i64).unwrap_or(0);
        let format = told("/origin/format").and_then(Value::as_str);
        let stops = format.is_some_and(|format| STOPPING.contains(&format));
        let known = ["/calibration/untraced", "/calibration/fit"]
            .iter()
            .any(|pointer| told(pointer).is_some_and(|value| !value.is_null()));
        Self {
            call_ns: number("/calibration/call_ns"),
            proven_ns: (stops && !known).then(|| number("/calibration/proven_ns")),
            all: Sums::default(),
            chosen: Sums::default(),
        }
    }

    /// Every event comes here.
    fn follow(&mut self, event: &Event) {
        self.all.add(0, pause_ns(event));
    }

    /// It is one of those asked for; no more than `most_ns` before it is a pause.
    fn choose(&mut self, event: &Event, most_ns: i64) {
        let took_ns = event.duration_ns.unwrap_or(0);
        let call_ns = took_ns.saturating_sub(self.call_ns);
        self.chosen.add(call_ns, pause_ns(event).min(most_ns));
    }

    fn json(&self) -> Value {
        json!({
            "calls_ns": self.chosen.calls_ns,
            "pauses_ns": self.chosen.pauses_ns,
            "recorder_ns": self.recorder_ns(),
        })
    }

    /// How much of the pauses asked for the recorder may have made at most: its part of what it may have made of all.
    fn recorder_ns(&self) -> Option<i64> {
        let rest_ns = self.all.pauses_ns.saturating_sub(self.proven_ns?.max(0));
        let doubtful_ns = self.all.short_ns.min(rest_ns).max(0);
        let part = i128::from(doubtful_ns) * i128::from(self.chosen.short_ns)
            / i128::from(self.all.short_ns.max(1));
        i64::try_from(part).ok()
    }
}

/// The time before an event that a replay with pauses keeps.
fn pause_ns(event: &Event) -> i64 {
    event.gap_ns.max(event.after_ns.unwrap_or(0))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units stand last")]
struct Sums {
    calls_ns: i64,
    pauses_ns: i64,
    /// Of these, what is no longer than a recorder waits.
    short_ns: i64,
}

impl Sums {
    fn add(&mut self, call_ns: i64, pause_ns: i64) {
        let pause_ns = pause_ns.max(0);
        let short_ns = pause_ns.min(LONGEST_WAIT_NS);
        self.calls_ns = self.calls_ns.saturating_add(call_ns.max(0));
        self.pauses_ns = self.pauses_ns.saturating_add(pause_ns);
        self.short_ns = self.short_ns.saturating_add(short_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(pauses_ns: &[i64]) -> Sums {
        let mut sums = Sums::default();
        for pause_ns in pauses_ns {
            sums.add(2_000, *pause_ns);
        }
        sums
    }

    fn made_ns(chosen: Sums, all: Sums, proven_ns: Option<i64>) -> Option<i64> {
        let pauses = ThinkTime {
            call_ns: 0,
            proven_ns,
            all,
            chosen,
        };
        pauses.recorder_ns()
    }

    #[test]
    fn a_recorder_may_have_made_short_pauses_and_as_much_of_long_ones() {
        let all = sums(&[5_000, 1_000_000, 3_000_000_000]);
        assert_eq!(made_ns(all, all, Some(0)), Some(21_005_000));
        assert_eq!((all.calls_ns, all.pauses_ns), (6_000, 3_001_005_000));
    }

    #[test]
    fn what_the_program_has_computed_the_recorder_has_not_made() {
        let (all, part) = (sums(&[1_000_000; 100]), sums(&[1_000_000; 10]));
        assert_eq!(made_ns(all, all, Some(70_000_000)), Some(30_000_000));
        assert_eq!(made_ns(part, all, Some(70_000_000)), Some(3_000_000));
        assert_eq!(made_ns(all, all, Some(i64::MAX)), Some(0));
        assert_eq!(made_ns(all, all, None), None);
    }

    #[test]
    fn absurd_pauses_stay_within_bounds() {
        let all = sums(&[i64::MAX, i64::MIN, i64::MAX]);
        assert_eq!(made_ns(all, all, Some(0)), Some(2 * LONGEST_WAIT_NS));
        assert_eq!(made_ns(all, all, Some(i64::MIN)), Some(2 * LONGEST_WAIT_NS));
    }
}
