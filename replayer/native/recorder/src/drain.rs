//! The thread that empties the ring into the file, and the state that it shares.

use crate::error::RecorderError;
use aya::maps::{MapData, RingBuf};
use replayer_trace::bpf::{Record, RecordKind};
use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

/// What is written at a time (chosen).
const BUFFER_BYTES: usize = 1 << 20;
/// How long the thread sleeps when the ring was empty (chosen: a ring of 16 MiB holds 100 ms of 400,000 calls a second), and when not.
pub(crate) const IDLE: Duration = Duration::from_millis(5);
pub(crate) const BUSY: Duration = Duration::from_millis(1);

/// What the thread tells, and is told.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) is_ending: AtomicBool,
    pub(crate) bytes: AtomicU64,
    pub(crate) records: AtomicU64,
    /// Records behind the limit, or that could not be written.
    pub(crate) dropped: AtomicU64,
    pub(crate) processes: Mutex<HashSet<u32>>,
    pub(crate) trouble: Mutex<Option<String>>,
}

/// The thread's own.
pub(crate) struct Drain {
    pub(crate) ring: RingBuf<MapData>,
    pub(crate) file: File,
    pub(crate) shared: Arc<Shared>,
    pub(crate) limit_bytes: u64,
    pub(crate) buffer: Vec<u8>,
}

impl Drain {
    /// Empty the ring until the recording ends, and then once more.
    pub(crate) fn run(mut self) -> Self {
        loop {
            let is_last = self.shared.is_ending.load(Ordering::Acquire);
            let count = self.empty();
            let is_empty = self.buffer.len() < BUFFER_BYTES;
            self.write();
            match (is_empty, is_last) {
                (false, _) => {}
                (true, true) => return self,
                (true, false) => sleep(if count == 0 { IDLE } else { BUSY }),
            }
        }
    }

    /// Take what is in the ring, as far as it is written at a time.
    fn empty(&mut self) -> u64 {
        let mut count = 0;
        while self.buffer.len() < BUFFER_BYTES
            && let Some(item) = self.ring.next()
        {
            count += 1;
            let length = Record::length(&item).unwrap_or(0);
            let bytes = item.get(..length).unwrap_or_default();
            note(&self.shared, bytes);
            self.buffer.extend_from_slice(bytes);
        }
        count
    }

    fn write(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let shared = &self.shared;
        let room = self.limit_bytes - shared.bytes.load(Ordering::Relaxed).min(self.limit_bytes);
        let fitting = if shared.dropped.load(Ordering::Relaxed) > 0 {
            &[]
        } else {
            up_to(&self.buffer, usize::try_from(room).unwrap_or(usize::MAX))
        };
        if fitting.len() < self.buffer.len() {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if let Err(error) = self.file.write_all(fitting) {
            shared.dropped.fetch_add(1, Ordering::Relaxed);
            if let Ok(mut trouble) = shared.trouble.lock() {
                trouble.get_or_insert(error.to_string());
            }
        } else {
            let length = u64::try_from(fitting.len()).unwrap_or(u64::MAX);
            shared.bytes.fetch_add(length, Ordering::Relaxed);
        }
        self.buffer.clear();
    }
}

/// The whole records that fit into so much room.
fn up_to(records: &[u8], room: usize) -> &[u8] {
    if records.len() <= room {
        return records;
    }
    let mut at = 0;
    while let Some(length) = records.get(at..).and_then(Record::length)
        && at + length <= room
    {
        at += length;
    }
    records.get(..at).unwrap_or_default()
}

/// Follow which processes are recorded.
fn note(shared: &Shared, bytes: &[u8]) {
    shared.records.fetch_add(1, Ordering::Relaxed);
    let Some(record) = Record::read(bytes).filter(|record| record.kind != RecordKind::Call) else {
        return;
    };
    let Ok(mut processes) = shared.processes.lock() else {
        return;
    };
    let number = |place| u32::try_from(record.number_at(place)).unwrap_or(0);
    match record.kind {
        RecordKind::Exec => {
            processes.insert(record.task);
        }
        RecordKind::Fork if number(0) == number(1) => {
            processes.insert(number(0));
        }
        RecordKind::Exit if record.task == number(0) => {
            processes.remove(&record.task);
        }
        _ => {}
    }
}

/// Write what ends the file.
pub(crate) fn finish(
    mut file: File,
    path: &std::path::Path,
    end: &[u8],
) -> Result<(), RecorderError> {
    file.write_all(end).map_err(|source| RecorderError::File {
        path: path.to_owned(),
        source,
    })
}
