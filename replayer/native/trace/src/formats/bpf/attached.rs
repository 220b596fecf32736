//! Processes that ran before their recording: their threads, and what they had open when it began.
//!
//! The probe looks at open files just after it has begun to record calls: the few calls in between are taken back.

use super::record::{Record, RecordKind};
use super::table::{call_of, name_of};
use super::words::write_string;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::Write;

/// Threads share what their process has (`CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD`).
pub(super) const THREAD: u32 = 0x1_0f00;
const DELETED: &[u8] = b" (deleted)";
/// Calls that move the position of their first descriptor by their result.
const MOVING: [&str; 4] = ["read", "write", "readv", "writev"];
/// Those that give out a descriptor.
#[rustfmt::skip]
const OPENING: [&str; 13] = [
    "open", "creat", "dup", "dup2", "socket", "accept", "fcntl", "fcntl64", "openat", "accept4", "dup3", "openat2", "memfd_create",
];

/// A descriptor of a process.
type Descriptor = (u32, u64);

/// An open file, when it was looked at.
#[derive(Debug)]
struct OpenFile {
    descriptor: Descriptor,
    position: i64,
    flags: u64,
    description: u64,
    /// Size and number of its inode.
    size: u64,
    inode: u64,
    is_regular: bool,
    path: Vec<u8>,
}

/// What stands before the first call.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    begin_ns: Option<u64>,
    /// Threads and their processes, in their order.
    threads: Vec<(u32, u32)>,
    process_of: FxHashMap<u32, u32>,
    files: Vec<OpenFile>,
    /// By how much calls moved positions before these were looked at.
    moved: FxHashMap<Descriptor, i64>,
    /// Descriptors that were given out meanwhile.
    opened: FxHashSet<Descriptor>,
    /// The looks that were told of; more calls than before the last of them do not matter.
    has_looked: bool,
}

impl Attachments {
    /// Take a record of the first look through the recording.
    pub(super) fn take(&mut self, record: &Record<'_>) {
        match record.kind {
            RecordKind::Attached => {
                let process = u32::try_from(record.number_at(0)).unwrap_or(record.task);
                self.begin_ns.get_or_insert(record.start_ns);
                self.threads.push((record.task, process));
                self.process_of.insert(record.task, process);
                self.has_looked = false;
            }
            RecordKind::File => self.file(record),
            RecordKind::Looked => self.has_looked = true,
            RecordKind::Call if self.begin_ns.is_some() && !self.has_looked => self.call(record),
            _ => {}
        }
    }

    fn call(&mut self, record: &Record<'_>) {
        let Some(&process) = self.process_of.get(&record.task) else {
            return;
        };
        let Ok(result) = u64::try_from(record.result) else {
            return;
        };
        let name = call_of(record).map_or("", |call| name_of(call, record));
        if MOVING.contains(&name) {
            let moved = self.moved.entry((process, record.number_at(0)));
            *moved.or_default() += record.result;
        } else if OPENING.contains(&name) {
            self.opened.insert((process, result));
        }
    }

    fn file(&mut self, record: &Record<'_>) {
        const KIND: i64 = 0o170_000;
        const REGULAR: i64 = 0o100_000;
        let descriptor = (record.task, record.number_at(0));
        if self.opened.contains(&descriptor) || !record.path.starts_with(b"/") {
            return;
        }
        let moved = self.moved.get(&descriptor).copied().unwrap_or(0);
        self.files.push(OpenFile {
            descriptor,
            position: record
                .number_at(1)
                .cast_signed()
                .saturating_sub(moved)
                .max(0),
            flags: record.number_at(2),
            description: record.number_at(3),
            size: record.number_at(4),
            inode: record.number_at(5),
            is_regular: record.result & KIND == REGULAR,
            path: record.path.to_vec(),
        });
    }

    /// Write the lines that a capture with strace writes before those of strace.
    pub(super) fn write(&self, out: &mut Vec<u8>, offset_ns: i64) {
        let Some(begin_ns) = self.begin_ns else {
            return;
        };
        let wall_ns = i64::try_from(begin_ns)
            .unwrap_or(i64::MAX)
            .saturating_add(offset_ns);
        let stamp = format!("{}.{:09}", wall_ns / 1_000_000_000, wall_ns % 1_000_000_000);
        for (thread, process) in self
            .threads
            .iter()
            .filter(|(thread, process)| thread != process)
        {
            let _ = writeln!(
                out,
                "{process} {stamp} clone(0x{THREAD:x}) = {thread} <0.000000000>"
            );
        }
        for file in &self.files {
            let (process, number) = file.descriptor;
            let _ = write!(out, "{process} {stamp} inherited({number}<");
            write_escaped(out, &file.path);
            let _ = write!(out, ">, {}, {}", file.flags, file.position);
            let _ = if file.is_regular && file.path.ends_with(DELETED) {
                write!(out, ", {}, {}", file.size, file.inode)
            } else {
                write!(out, ", -, -")
            };
            let _ = writeln!(
                out,
                ", {}) = 0 <0.000000000>",
                file.description & i64::MAX.cast_unsigned()
            );
        }
    }
}

/// A path between angle brackets.
fn write_escaped(out: &mut Vec<u8>, path: &[u8]) {
    let begin = out.len();
    write_string(out, path);
    out.pop();
    out.remove(begin);
}
