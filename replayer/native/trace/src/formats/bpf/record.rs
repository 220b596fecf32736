//! One record of the probe, as it stands in the file: `struct record` of its source, and the data behind it.

use crate::bytes::{cut, from};

/// What the file begins with; then what is added to the recorder's clock to have the time since 1970, in ns.
pub const MAGIC: [u8; 8] = *b"RPLYBPF2";
/// The fields in front of a record's data.
pub const HEAD_BYTES: usize = 48;

/// What a record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A call that has returned.
    Call,
    /// The task made another one: its number, and that of its process.
    Fork,
    /// The task runs another program: the number that it had before, and the path.
    Exec,
    /// The task has ended: the result is its exit code.
    Exit,
    /// A call that had not returned when the recording ended.
    Pending,
    /// The recording ended: how many records were lost, and when the first of them.
    End,
    /// The task is recorded from now on: its process.
    Attached,
    /// What a process had open then: descriptor, position, flags, which description, and size and number of its inode; the result is the
    /// file's mode.
    File,
    /// All open files have been told.
    Looked,
    /// A page of a file was touched through a mapping: address, the first and last page of the file that it may be, size and number of
    /// the inode, and what was done.
    Page,
    /// A request of `io_uring` or libaio that is complete, as the call that does the same: its task is the process.
    Request,
    /// Of the time since its last call the task has waited for a CPU: so long, in ns.
    Delayed,
}

/// Flags of a record.
pub(super) const PATH_FAULT: u8 = 1;
pub(super) const SECOND_FAULT: u8 = 2;
pub(super) const PATH_NULL: u8 = 4;
pub(super) const SECOND_NULL: u8 = 8;
pub(super) const PART: u8 = 32;
pub(super) const BEGUN_BEFORE: u8 = 64;

/// What the record of a page says: it was to be written, or a call that is recorded touched it.
pub(super) const WRITES: u64 = 1;
pub(super) const IN_CALL: u64 = 2;

/// A record, read in place.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// The number of the call in the probe's table.
    pub number: u16,
    /// What it tells of.
    pub kind: RecordKind,
    pub(super) flags: u8,
    /// The thread, as the first namespace numbers it.
    pub task: u32,
    pub(super) turn: u16,
    /// When it was entered, on the recorder's clock.
    pub start_ns: u64,
    /// How long it took; of one that has not returned, until it was looked at.
    pub duration_ns: u64,
    pub(super) result: i64,
    /// Of the time since the last call of its task the probe itself took so long.
    pub probe_ns: u32,
    pub(super) numbers: &'a [u8],
    pub(super) beside: &'a [u8],
    /// Its first path.
    pub path: &'a [u8],
    pub(super) second: &'a [u8],
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.copied().unwrap_or([0; N])
}

/// The number at a place; 0 where there is none.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(super) fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(array(bytes, at))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

impl<'a> Record<'a> {
    /// How long the record is that begins with these bytes: None where it cannot be one.
    #[must_use]
    pub fn length(head: &[u8]) -> Option<usize> {
        let length = usize::from(u16_at(head, 0));
        (length >= HEAD_BYTES).then_some(length)
    }

    /// Read a whole record. None where its parts do not fit into it.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let [kind, flags, beside, numbers] = array(bytes, 4);
        let numbers = 8 * usize::from(numbers);
        let [beside, path] = [usize::from(beside), usize::from(u16_at(bytes, 14))];
        let at = HEAD_BYTES + numbers;
        if at + beside + path > bytes.len() {
            return None;
        }
        Some(Self {
            number: u16_at(bytes, 2),
            kind: match kind {
                0 => RecordKind::Call,
                1 => RecordKind::Fork,
                2 => RecordKind::Exec,
                3 => RecordKind::Exit,
                4 => RecordKind::Pending,
                5 => RecordKind::End,
                6 => RecordKind::Attached,
                7 => RecordKind::File,
                8 => RecordKind::Looked,
                9 => RecordKind::Page,
                10 => RecordKind::Request,
                11 => RecordKind::Delayed,
                _ => return None,
            },
            flags,
            task: u32_at(bytes, 8),
            turn: u16_at(bytes, 12),
            start_ns: u64_at(bytes, 16),
            duration_ns: u64_at(bytes, 24),
            result: i64_at(bytes, 32),
            probe_ns: u32_at(bytes, 40),
            numbers: cut(bytes, HEAD_BYTES, at),
            beside: cut(bytes, at, at + beside),
            path: cut(bytes, at + beside, at + beside + path),
            second: from(bytes, at + beside + path),
        })
    }

    /// A number that it keeps.
    #[must_use]
    pub fn number_at(&self, place: usize) -> u64 {
        u64_at(self.numbers, 8 * place)
    }

    /// When it returned.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = value;
    }
}

/// Give a record its place among those of its task.
pub fn set_turn(bytes: &mut [u8], turn: u16) {
    put(bytes, 12, turn.to_le_bytes());
}

/// Have a record begin no sooner than the recording that it is put into.
pub fn begin_at(bytes: &mut [u8], begin_ns: u64) {
    let [start_ns, duration_ns] = [16, 24].map(|at| u64_at(bytes, at));
    if start_ns < begin_ns {
        let rest_ns = start_ns
            .saturating_add(duration_ns)
            .saturating_sub(begin_ns);
        put(bytes, 16, begin_ns.to_le_bytes());
        put(bytes, 24, rest_ns.to_le_bytes());
    }
}

/// A record without a call: its kind, its task, and two numbers.
fn plain(kind: u8, task: u32, time_ns: u64, numbers: &[u64]) -> Vec<u8> {
    let length = HEAD_BYTES + 8 * numbers.len();
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend_from_slice(&[0, 0, kind, 0, 0, u8::try_from(numbers.len()).unwrap_or(0)]);
    bytes.extend_from_slice(&task.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    for number in [time_ns, 0, 0, 0].iter().chain(numbers) {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// The record of a thread that is recorded from now on.
#[must_use]
pub fn attached_record(task: u32, process: u32, now_ns: u64) -> Vec<u8> {
    plain(6, task, now_ns, &[u64::from(process), 0])
}

/// Have a record of a request be that of a call which a task has made.
pub(super) fn make_call(bytes: &mut [u8], task: u32) {
    put(bytes, 4, [0]);
    put(bytes, 8, task.to_le_bytes());
}

/// The record that ends a file: how many records were lost, when the first of them, how many calls of 32-bit programs there were, whether
/// requests of `io_uring` are recorded, and how many requests there were whose calls are not known.
#[must_use]
pub fn end_record(now_ns: u64, told: [u64; 5]) -> Vec<u8> {
    plain(5, 0, now_ns, &told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_a_record_and_cut_ones_are_none() {
        let bytes = end_record(7, [3, 5, 0, 0, 0]);
        assert_eq!(Record::length(&bytes), Some(bytes.len()));
        let record = Record::read(&bytes).unwrap();
        assert_eq!(
            (
                record.kind,
                record.start_ns,
                record.number_at(0),
                record.number_at(1)
            ),
            (RecordKind::End, 7, 3, 5)
        );
        assert!(Record::read(&bytes[..50]).is_none());
        assert_eq!(Record::length(&[0; HEAD_BYTES]), None);
    }

    #[test]
    fn a_record_that_began_before_begins_with_the_recording_and_ends_when_it_did() {
        let mut bytes = attached_record(7, 5, 100);
        begin_at(&mut bytes, 90);
        assert_eq!(Record::read(&bytes).unwrap().start_ns, 100);
        put(&mut bytes, 24, 50_u64.to_le_bytes());
        begin_at(&mut bytes, 120);
        set_turn(&mut bytes, 3);
        let record = Record::read(&bytes).unwrap();
        assert_eq!(
            (record.start_ns, record.end_ns(), record.turn),
            (120, 150, 3)
        );
        begin_at(&mut bytes, 200);
        let record = Record::read(&bytes).unwrap();
        assert_eq!((record.start_ns, record.duration_ns), (200, 0));
    }
}
