//! One record of the probe, as it stands in the file: `struct record` of its source, and the data behind it.

use crate::bytes::{cut, from};

/// What the file begins with; then what is added to the recorder's clock to have the time since 1970, in ns.
pub const MAGIC: [u8; 8] = *b"RPLYBPF1";
/// The fields in front of a record's data.
pub const HEAD_BYTES: usize = 40;

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
}

/// Flags of a record.
pub(super) const PATH_FAULT: u8 = 1;
pub(super) const SECOND_FAULT: u8 = 2;
pub(super) const PATH_NULL: u8 = 4;
pub(super) const SECOND_NULL: u8 = 8;
pub(super) const PART: u8 = 32;
pub(super) const BEGUN_BEFORE: u8 = 64;

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
    pub(super) start_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) result: i64,
    pub(super) numbers: &'a [u8],
    pub(super) beside: &'a [u8],
    pub(super) path: &'a [u8],
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
                _ => return None,
            },
            flags,
            task: u32_at(bytes, 8),
            turn: u16_at(bytes, 12),
            start_ns: u64_at(bytes, 16),
            duration_ns: u64_at(bytes, 24),
            result: i64_at(bytes, 32),
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

    pub(super) fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// The record that ends a file: how many records were lost, when the first of them, and how many calls of 32-bit programs there were.
#[must_use]
pub fn end_record(now_ns: u64, told: [u64; 3]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + 24);
    bytes.extend_from_slice(&64_u16.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 5, 0, 0, 3]);
    bytes.extend_from_slice(&[0; 8]);
    for number in [now_ns, 0, 0].into_iter().chain(told) {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_a_record_and_cut_ones_are_none() {
        let bytes = end_record(7, [3, 5, 0]);
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
        assert_eq!(Record::length(&[0; 40]), None);
    }
}
