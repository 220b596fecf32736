//! Records, one after another, from a file.

use super::record::{HEAD_BYTES, MAGIC, Record};
use crate::error::TraceError;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest record: its head, and as much as its length can say.
const MOST_BYTES: usize = 1 << 16;
const BUFFER_BYTES: usize = 256 << 10;

/// A recording, and the record that was read last.
pub(super) struct Records {
    path: PathBuf,
    stream: BufReader<Box<dyn Read>>,
    record: Vec<u8>,
    /// What is added to its times to have those since 1970.
    pub(super) offset_ns: i64,
}

impl Records {
    /// Open a recording. None where the file is no recording.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, TraceError> {
        let mut stream = crate::input::open(path)?;
        let mut head = Vec::new();
        let begin = stream.by_ref().take(16).read_to_end(&mut head);
        begin.map_err(TraceError::io(path))?;
        let Some(offset) = head.strip_prefix(&MAGIC) else {
            return Ok(None);
        };
        let offset_ns = offset.first_chunk().copied().map_or(0, i64::from_le_bytes);
        Ok(Some(Self {
            path: path.to_owned(),
            stream: BufReader::with_capacity(BUFFER_BYTES, stream),
            record: Vec::with_capacity(MOST_BYTES),
            offset_ns,
        }))
    }

    /// The next record: None behind the last whole one.
    pub(super) fn next_record(&mut self) -> Result<Option<&mut [u8]>, TraceError> {
        self.record.clear();
        if !self.read_to(HEAD_BYTES)? {
            return Ok(None);
        }
        let Some(length) = Record::length(&self.record) else {
            let hint = "the file is damaged: record again";
            return Err(TraceError::damaged(
                &self.path,
                "holds a record without a length",
                hint,
            ));
        };
        Ok(self.read_to(length)?.then_some(&mut self.record))
    }

    /// Read until the record is so long. False where the file ends before.
    fn read_to(&mut self, length: usize) -> Result<bool, TraceError> {
        let missing = length.saturating_sub(self.record.len());
        let missing = u64::try_from(missing).unwrap_or(u64::MAX);
        let read = self
            .stream
            .by_ref()
            .take(missing)
            .read_to_end(&mut self.record);
        read.map_err(TraceError::io(&self.path))?;
        Ok(self.record.len() == length)
    }
}
