//! Records that are kept in memory: the latest ones, bounded by age and bytes.
//!
//! They lie in segments. Each begins with a look at what recorded processes have open; a log can begin where a segment begins, and nowhere
//! else. So the oldest segment goes as a whole, as soon as those behind it reach back far enough.

use replayer_trace::bpf::{Record, RecordKind, attached_record, begin_at, set_turn};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::io::{Error, Write};
use std::sync::Arc;

/// Memory is taken in such pieces (chosen).
const CHUNK_BYTES: usize = 256 << 10;
/// A segment is at most such a part of what may be kept (chosen).
const PARTS: u64 = 8;
/// Calls over the limit that wait for somebody to ask (chosen).
const MOST_SLOW: usize = 64;

/// What is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// At least so long, where the bytes suffice.
    pub(crate) least_ns: u64,
    pub(crate) most_bytes: u64,
}

/// What a process can only be asked for while it lives.
#[derive(Debug, Clone)]
pub struct Place {
    /// The process.
    pub process: u32,
    /// Its working directory.
    pub directory: Vec<u8>,
    /// What creations leave out of their modes, as /proc has it.
    pub umask: String,
}

/// Records from one look at the open files to the next.
#[derive(Debug, Clone, Default)]
struct Segment {
    begin_ns: u64,
    /// Threads that were recorded when it began, and their processes.
    threads: Vec<(u32, u32)>,
    places: Vec<Place>,
    chunks: Vec<Arc<Vec<u8>>>,
    last: Vec<u8>,
    /// The memory that it takes.
    bytes: u64,
}

impl Segment {
    /// Add a record. Whether that took more memory.
    fn push(&mut self, record: &[u8]) -> bool {
        let is_full = self.last.len() + record.len() > self.last.capacity();
        if is_full {
            let next = Vec::with_capacity(CHUNK_BYTES);
            let full = std::mem::replace(&mut self.last, next);
            self.chunks.push(Arc::new(full));
            self.bytes += u64::try_from(self.last.capacity()).unwrap_or(u64::MAX);
        }
        self.last.extend_from_slice(record);
        is_full
    }
}

/// The latest records.
#[derive(Debug)]
pub(crate) struct KeptRecords {
    bounds: Bounds,
    segments: VecDeque<Segment>,
    /// Recorded threads that live, and their processes.
    threads: BTreeMap<u32, u32>,
    /// Calls that had not returned when that was asked last, by task.
    pending: BTreeMap<u32, Vec<u8>>,
    /// Calls that took longer than a limit, and the limit, for each number of a call.
    slow: Vec<Vec<u8>>,
    limits: Vec<u64>,
    /// Records are missing in the newest segment: nothing is kept before the next look.
    is_broken: bool,
}

impl KeptRecords {
    /// Keep nothing yet. Calls that take longer than the limit of their number are set aside.
    pub(crate) fn new(bounds: Bounds, limits: Vec<u64>) -> Self {
        Self {
            bounds,
            segments: VecDeque::new(),
            threads: BTreeMap::new(),
            pending: BTreeMap::new(),
            slow: Vec::new(),
            limits,
            is_broken: true,
        }
    }

    /// Take a record from the probe.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let Some(record) = Record::read(bytes) else {
            return;
        };
        self.follow(&record);
        match record.kind {
            RecordKind::Pending => {
                self.pending.insert(record.task, bytes.to_vec());
                return;
            }
            RecordKind::Call | RecordKind::Request
                if self.is_slow(&record) && self.slow.len() < MOST_SLOW =>
            {
                self.slow.push(bytes.to_vec());
            }
            _ => {}
        }
        if !self.is_broken
            && let Some(segment) = self.segments.back_mut()
            && segment.push(bytes)
        {
            self.hold_to_bytes();
        }
    }

    pub(crate) fn is_slow(&self, record: &Record<'_>) -> bool {
        let limit = self.limits.get(usize::from(record.number));
        limit.is_some_and(|&limit| record.duration_ns > limit)
    }

    /// Follow which threads are recorded.
    fn follow(&mut self, record: &Record<'_>) {
        let number = |place| u32::try_from(record.number_at(place)).unwrap_or(0);
        match record.kind {
            RecordKind::Attached => {
                self.threads.insert(record.task, number(0));
            }
            RecordKind::Fork => {
                self.threads.insert(number(0), number(1));
            }
            RecordKind::Exec => {
                self.threads.remove(&number(0));
                self.threads.insert(record.task, record.task);
            }
            RecordKind::Exit => {
                self.threads.remove(&record.task);
            }
            _ => {}
        }
    }

    /// Begin a segment: what comes from here on is what a log needs behind a look at the open files.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if self.is_broken {
            self.segments.clear();
        }
        self.is_broken = false;
        self.segments.push_back(Segment {
            begin_ns: now_ns,
            threads: self
                .threads
                .iter()
                .map(|(&task, &process)| (task, process))
                .collect(),
            ..Segment::default()
        });
        self.let_go(now_ns);
    }

    /// Say where the processes of the newest segment stood.
    pub(crate) fn place(&mut self, places: Vec<Place>) {
        if let Some(segment) = self.segments.back_mut() {
            segment.places = places;
        }
    }

    /// Let go of segments that are too old.
    pub(crate) fn let_go(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.bounds.least_ns);
        while self
            .segments
            .get(1)
            .is_some_and(|next| next.begin_ns <= since_ns)
        {
            self.segments.pop_front();
        }
    }

    /// Forget all: records are missing.
    pub(crate) fn forget(&mut self) {
        self.segments.clear();
        self.is_broken = true;
    }

    fn hold_to_bytes(&mut self) {
        while self.bytes() > self.bounds.most_bytes {
            if self.segments.len() < 2 {
                self.forget();
                return;
            }
            self.segments.pop_front();
        }
    }

    /// Whether a segment is to begin.
    pub(crate) fn wants_look(&self, now_ns: u64, every_ns: u64) -> bool {
        let newest = self.segments.back();
        self.is_broken
            || newest.is_none_or(|newest| {
                newest.begin_ns + every_ns <= now_ns
                    || newest.bytes > self.bounds.most_bytes / PARTS
            })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Since when records are kept.
    pub(crate) fn begin_ns(&self) -> Option<u64> {
        self.segments.front().map(|segment| segment.begin_ns)
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        let processes: BTreeSet<u32> = self.threads.values().copied().collect();
        processes.into_iter().collect()
    }

    pub(crate) fn forget_pending(&mut self) {
        self.pending.clear();
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = &[u8]> {
        self.pending.values().map(Vec::as_slice)
    }

    /// Hand over the calls that took too long.
    pub(crate) fn take_slow(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.slow)
    }

    /// A log of what is kept. Full pieces are shared, so that records can come while it is written.
    pub(crate) fn log(&self) -> Option<KeptLog> {
        let begin_ns = self.begin_ns()?;
        Some(KeptLog {
            begin_ns,
            segments: self.segments.iter().cloned().collect(),
            pending: self.pending.values().cloned().collect(),
        })
    }
}

/// What is written as a log.
#[derive(Debug)]
pub(crate) struct KeptLog {
    pub(crate) begin_ns: u64,
    segments: Vec<Segment>,
    pending: Vec<Vec<u8>>,
}

impl KeptLog {
    /// Where processes stood when it begins.
    pub(crate) fn places(&self) -> &[Place] {
        self.segments.first().map_or(&[], |first| &first.places)
    }

    /// The calls that have not returned.
    pub(crate) fn pending(&self) -> &[Vec<u8>] {
        &self.pending
    }

    /// Each record, and the number of its segment.
    fn records(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.segments
            .iter()
            .enumerate()
            .flat_map(|(number, segment)| {
                let full = segment.chunks.iter().map(|chunk| &***chunk);
                let chunks = full.chain([&*segment.last]);
                chunks
                    .flat_map(records_of)
                    .map(move |record| (number, record))
            })
    }

    /// Drop calls that returned while it was asked which have not.
    pub(crate) fn drop_returned(&mut self) {
        let key = |bytes: &[u8]| Record::read(bytes).map(|one| (one.task, one.start_ns));
        let mut open: HashSet<_> = self.pending.iter().filter_map(|bytes| key(bytes)).collect();
        for (_, bytes) in self.records() {
            if Record::read(bytes).is_some_and(|record| record.kind == RecordKind::Call) {
                key(bytes).map(|key| open.remove(&key));
            }
        }
        self.pending
            .retain(|bytes| key(bytes).is_some_and(|key| open.contains(&key)));
    }

    /// Write the records; return how many there are.
    pub(crate) fn write(&self, out: &mut dyn Write, end: &[u8]) -> Result<u64, Error> {
        let mut turns = Turns::default();
        let mut count = 0;
        let threads = self
            .segments
            .first()
            .map_or(&[][..], |first| &first.threads);
        for &(task, process) in threads {
            turns.write(out, &mut attached_record(task, process, self.begin_ns))?;
        }
        let pending = self.pending.iter().map(|bytes| (0, bytes.as_slice()));
        for (segment, bytes) in self.records().chain(pending) {
            let kind = Record::read(bytes).map(|record| record.kind);
            let is_look = matches!(kind, Some(RecordKind::File | RecordKind::Looked));
            if !is_look || segment == 0 {
                let mut bytes = bytes.to_vec();
                begin_at(&mut bytes, self.begin_ns);
                turns.write(out, &mut bytes)?;
                count += 1;
            }
        }
        out.write_all(end)?;
        Ok(count)
    }
}

/// Records one after another.
fn records_of(mut chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (record, rest) = chunk.split_at_checked(Record::length(chunk)?)?;
        chunk = rest;
        Some(record)
    })
}

/// Numbers the records of each task anew: the log begins in the middle, and without those of calls that were pending for a while.
#[derive(Debug, Default)]
struct Turns(HashMap<u32, u16>);

impl Turns {
    fn write(&mut self, out: &mut dyn Write, bytes: &mut [u8]) -> Result<(), Error> {
        let Some(record) = Record::read(bytes) else {
            return Ok(());
        };
        let (kind, task) = (record.kind, record.task);
        let first = u32::try_from(record.number_at(0)).unwrap_or(0);
        if matches!(
            kind,
            RecordKind::File | RecordKind::Looked | RecordKind::Request
        ) {
            return out.write_all(bytes);
        }
        match kind {
            RecordKind::Exec if first != task => {
                let own = self.0.remove(&first).unwrap_or(0);
                self.0.insert(task, own);
            }
            RecordKind::Fork => {
                self.0.insert(first, 0);
            }
            _ => {}
        }
        let turn = self.0.entry(task).or_default();
        set_turn(bytes, *turn);
        *turn = turn.wrapping_add(1);
        if kind == RecordKind::Exit {
            self.0.remove(&task);
        }
        out.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use replayer_trace::bpf::HEAD_BYTES;

    const SECOND: u64 = 1_000_000_000;

    fn keeping(seconds: u64, most_bytes: u64) -> KeptRecords {
        let least_ns = seconds * SECOND;
        KeptRecords::new(
            Bounds {
                least_ns,
                most_bytes,
            },
            vec![u64::MAX; 1024],
        )
    }

    /// A record of a kind, with two numbers.
    fn record(kind: u8, task: u32, start_ns: u64, numbers: [u64; 2]) -> Vec<u8> {
        let mut bytes = attached_record(task, 0, start_ns);
        bytes[4] = kind;
        for (number, place) in numbers.iter().zip([HEAD_BYTES, HEAD_BYTES + 8]) {
            bytes[place..place + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn call(task: u32, start_ns: u64, duration_ns: u64) -> Vec<u8> {
        let mut bytes = record(0, task, start_ns, [0, 0]);
        bytes[24..32].copy_from_slice(&duration_ns.to_le_bytes());
        bytes
    }

    /// Kind, task and begin of what a log holds behind its head, without its end; the turns are checked.
    fn written(kept: &KeptRecords) -> Vec<(RecordKind, u32, u64)> {
        let mut out = Vec::new();
        kept.log().unwrap().write(&mut out, &[]).unwrap();
        let mut turns: HashMap<u32, u16> = HashMap::new();
        let mut told = Vec::new();
        for bytes in records_of(&out) {
            let one = Record::read(bytes).unwrap();
            if one.kind == RecordKind::End {
                continue;
            }
            if !matches!(one.kind, RecordKind::File | RecordKind::Looked) {
                let turn = turns.entry(one.task).or_default();
                assert_eq!(u16::from_le_bytes([bytes[12], bytes[13]]), *turn);
                *turn += 1;
            }
            told.push((one.kind, one.task, one.start_ns));
        }
        told
    }

    #[test]
    fn the_oldest_segment_goes_once_the_next_one_reaches_back_far_enough() {
        let mut kept = keeping(10, u64::MAX);
        for second in [0, 4, 8, 12] {
            kept.begin(second * SECOND);
            kept.take(&call(1, second * SECOND + 5, 0));
        }
        assert_eq!(kept.begin_ns(), Some(0));
        kept.let_go(14 * SECOND);
        assert_eq!(kept.begin_ns(), Some(4 * SECOND));
        let begins = [4, 8, 12].map(|second| (RecordKind::Call, 1, second * SECOND + 5));
        assert_eq!(written(&kept), begins);
    }

    #[test]
    fn a_log_names_the_threads_of_its_begin_and_what_they_had_open_then_and_never_again() {
        let mut kept = keeping(10, u64::MAX);
        kept.begin(0);
        kept.take(&record(6, 5, 1, [5, 0]));
        kept.take(&record(1, 5, 2, [6, 5]));
        kept.take(&record(1, 5, 3, [7, 7]));
        kept.take(&record(3, 7, 4, [7, 0]));
        kept.begin(11 * SECOND);
        let file = record(7, 5, 12 * SECOND, [0, 0]);
        kept.take(&file);
        kept.begin(21 * SECOND);
        kept.take(&file);
        kept.let_go(22 * SECOND);
        assert_eq!(kept.processes(), [5]);
        let began = 11 * SECOND;
        let expected = [
            (RecordKind::Attached, 5, began),
            (RecordKind::Attached, 6, began),
            (RecordKind::File, 5, 12 * SECOND),
        ];
        assert_eq!(written(&kept), expected);
    }

    #[test]
    fn calls_that_began_before_and_those_that_have_not_returned_begin_with_the_log() {
        let mut kept = keeping(10, u64::MAX);
        kept.take(&record(6, 5, 1, [5, 0]));
        kept.begin(100);
        kept.take(&call(5, 40, 80));
        kept.take(&record(4, 5, 60, [0, 0]));
        kept.take(&call(5, 130, 1));
        let expected = [
            (RecordKind::Attached, 5, 100),
            (RecordKind::Call, 5, 100),
            (RecordKind::Call, 5, 130),
            (RecordKind::Pending, 5, 100),
        ];
        assert_eq!(written(&kept), expected);
        let mut log = kept.log().unwrap();
        log.drop_returned();
        assert_eq!(log.pending().len(), 1);
        kept.take(&call(5, 60, 80));
        let mut log = kept.log().unwrap();
        log.drop_returned();
        assert!(log.pending().is_empty());
        kept.forget_pending();
        assert_eq!(kept.pending().count(), 0);
    }

    #[test]
    fn a_number_follows_a_thread_that_executes_and_a_new_task_begins_anew() {
        let mut kept = keeping(10, u64::MAX);
        kept.begin(0);
        kept.take(&record(6, 5, 1, [5, 0]));
        kept.take(&record(6, 6, 1, [5, 0]));
        kept.take(&call(6, 2, 0));
        kept.take(&record(3, 5, 3, [5, 0]));
        kept.take(&record(2, 5, 4, [6, 0]));
        let mut out = Vec::new();
        kept.log().unwrap().write(&mut out, &[]).unwrap();
        let last = records_of(&out).nth(4).unwrap();
        assert_eq!(last[12..14], [2, 0]);
        assert_eq!(kept.processes(), [5]);
    }

    #[test]
    fn bytes_are_bounded_and_what_lost_its_begin_is_not_kept() {
        let most = u64::try_from(4 * CHUNK_BYTES).unwrap();
        let mut kept = keeping(1000, most);
        let mut second = 0;
        let mut largest = 0;
        for number in 0..40_000_u64 {
            if kept.wants_look(second * SECOND, u64::MAX / 2) {
                second += 1;
                kept.begin(second * SECOND);
            }
            kept.take(&call(1, number, 0));
            largest = largest.max(kept.bytes());
        }
        assert!(largest <= most);
        assert!(kept.begin_ns() > Some(SECOND));

        kept.begin(1000 * SECOND);
        for number in 0..40_000_u64 {
            kept.take(&call(1, number, 0));
        }
        assert_eq!((kept.bytes(), kept.begin_ns()), (0, None));
        assert!(kept.log().is_none());
        kept.begin(2000 * SECOND);
        assert_eq!(kept.begin_ns(), Some(2000 * SECOND));
    }

    #[test]
    fn calls_over_the_limit_of_their_number_are_set_aside_and_few_of_them() {
        let mut limits = vec![u64::MAX; 1024];
        limits[0] = SECOND;
        let bounds = Bounds {
            least_ns: 1,
            most_bytes: u64::MAX,
        };
        let mut kept = KeptRecords::new(bounds, limits);
        kept.begin(0);
        kept.take(&call(1, 0, SECOND));
        assert!(kept.take_slow().is_empty());
        for _ in 0..100 {
            kept.take(&call(1, 0, SECOND + 1));
        }
        assert_eq!(kept.take_slow().len(), MOST_SLOW);
        assert!(kept.take_slow().is_empty());
    }
}
