//! The event log of a lane: when each of its events began and ended, in a file of its own, 24 bytes a record.

use super::performance::PerformanceId;
use crate::interpreter::Setting;
use crate::sys::below::{create, write_all};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

/// A record: row, begin and end, each 8 bytes, little-endian.
pub(crate) const RECORD: usize = 24;
/// Bytes that wait (chosen).
const BUFFER: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Log {
    file: OwnedFd,
    begin_ns: u64,
    buffer: Vec<u8>,
    /// The first error of writing; nothing is written after it.
    pub(crate) fault: Option<Errno>,
}

pub(crate) fn name(user: u32, performance: u64, lane: usize) -> String {
    format!("u{user}-p{performance}-l{lane}.events")
}

impl Log {
    /// A new file in a directory. Times are told since `begin_ns`.
    pub(crate) fn new(directory: &OwnedFd, name: &str, begin_ns: u64) -> Result<Log, Errno> {
        Ok(Log {
            file: create(directory.as_fd(), name.as_bytes(), 0o644)?,
            begin_ns,
            buffer: Vec::with_capacity(BUFFER),
            fault: None,
        })
    }

    #[inline]
    pub(crate) fn write(&mut self, row: u64, (start_ns, end_ns): (u64, u64)) {
        if self.buffer.len() + RECORD > BUFFER {
            self.flush();
        }
        let since = |time_ns: u64| time_ns.saturating_sub(self.begin_ns);
        for number in [row, since(start_ns), since(end_ns)] {
            self.buffer.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Hand what waits to the kernel.
    pub(crate) fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = write_all(&self.file, &self.buffer).err();
        }
        self.buffer.clear();
    }
}

/// The log of a lane, where there is a directory for it.
pub(super) fn open_log(setting: &Setting, id: PerformanceId, lane: usize) -> Option<Log> {
    let directory = setting.event_log.as_ref()?;
    let name = name(id.user, id.performance, lane);
    match Log::new(directory, &name, setting.begin_ns) {
        Ok(log) => Some(log),
        Err(errno) => {
            let message = format!("the event log is incomplete: {name}: {errno}");
            setting.warn(id.user, message);
            None
        }
    }
}
