//! Judging one read against what its reader must see. Pure: nothing is remembered or recorded here.

use super::file::Record;
use super::sight::Sight;
use super::stamp::{BLOCK, CELL, Cell, Origin, goes_on_with_zeros, index_of, is_thinned};
use super::tally::{Count, Violation};

/// What one cell says.
#[derive(Clone, Copy, Debug)]
enum Word<'a> {
    /// It is as it must be; of which write.
    Good(u64),
    /// Nothing can be said of it.
    Silent,
    /// It was written while it was read.
    Mixed,
    /// It is wrong, and the write that should be there, if that is known.
    Wrong(Violation, Option<&'a Record>),
}

fn word<'a>(sight: &'a Sight, offset: u64, bytes: &[u8]) -> Word<'a> {
    match Cell::read(bytes) {
        Cell::Stamp(origin, index) => stamped(sight, offset, &origin, index),
        Cell::Zero if is_thinned(offset, sight.zeros) => Word::Silent,
        Cell::Zero if !sight.is_due(offset, CELL as u64) => Word::Silent,
        Cell::Zero => Word::Wrong(Violation::Lost, sight.due(offset, CELL as u64)),
        Cell::Bad if goes_on_with_zeros(bytes, sight.run) => Word::Silent,
        Cell::Bad if sight.ragged.contains(&index_of(offset)) => Word::Silent,
        Cell::Bad if sight.busy => Word::Mixed,
        Cell::Bad => Word::Wrong(Violation::Torn, None),
    }
}

fn stamped<'a>(sight: &'a Sight, offset: u64, origin: &Origin, index: u32) -> Word<'a> {
    let at_home = origin.run == sight.run && index == index_of(offset);
    if !at_home || !sight.files.contains(&origin.file) {
        return Word::Wrong(Violation::Swapped, None);
    }
    if origin.seq != 0 && origin.seq < sight.begun {
        return Word::Wrong(Violation::Stale, None);
    }
    match sight.due(offset, CELL as u64) {
        Some(record) if origin.seq < record.floor => Word::Wrong(Violation::Stale, Some(record)),
        _ => Word::Good(origin.seq),
    }
}

/// What is known of one block of 4 KiB.
#[derive(Debug, Default)]
struct Block<'a> {
    worst: Option<Violation>,
    /// What is missing of which write.
    missing: Option<&'a Record>,
    /// The oldest and the newest write that is there.
    there: Option<(u64, u64)>,
}

impl<'a> Block<'a> {
    fn add(&mut self, word: Word<'a>, count: &mut Count) {
        match word {
            Word::Silent => return count.unverified += CELL as u64,
            Word::Mixed => return count.mixed += CELL as u64,
            Word::Good(seq) => {
                let (low, high) = self.there.unwrap_or((seq, seq));
                self.there = Some((low.min(seq), high.max(seq)));
            }
            Word::Wrong(kind, record) => {
                self.worst = Some(self.worst.map_or(kind, |worst| worst.min(kind)));
                self.missing = record.or(self.missing);
            }
        }
        count.verified += CELL as u64;
    }

    /// What is wrong with it: a write of which a part is there was torn.
    fn verdict(&self) -> Option<Violation> {
        let worst = self.worst?;
        let partly = self
            .missing
            .zip(self.there)
            .is_some_and(|(record, (low, high))| {
                let range = record.first..=record.last;
                range.contains(&low) || range.contains(&high)
            });
        let torn = partly && worst > Violation::Swapped;
        Some(if torn { Violation::Torn } else { worst })
    }
}

/// Judge the bytes that a read returned from an offset.
pub(crate) fn judge_bytes(
    sight: &Sight,
    offset: u64,
    bytes: &[u8],
    count: &mut Count,
) -> Option<Violation> {
    let skipped = usize::try_from(offset.next_multiple_of(CELL as u64) - offset).unwrap_or(0);
    let head = skipped.min(bytes.len());
    let whole = bytes.get(head..).unwrap_or_default();
    let cells = whole.chunks_exact(CELL);
    count.unverified += (head + cells.remainder().len()) as u64;
    let (mut worst, mut block) = (None, Block::default());
    let mut at = offset + head as u64;
    for cell in cells {
        block.add(word(sight, at, cell), count);
        at += CELL as u64;
        if at.is_multiple_of(BLOCK) {
            worst = close(&std::mem::take(&mut block), worst, count);
        }
    }
    close(&block, worst, count)
}

fn close(block: &Block<'_>, worst: Option<Violation>, count: &mut Count) -> Option<Violation> {
    let Some(kind) = block.verdict() else {
        return worst;
    };
    count.block(kind);
    Some(worst.map_or(kind, |worst| worst.min(kind)))
}

/// Judge where a read ended: before the end of what must be there, something is lost.
pub(crate) fn judge_end(sight: &Sight, end: u64, count: &mut Count) -> Option<Violation> {
    if !sight.is_due(end, 1) {
        return None;
    }
    count.block(Violation::Lost);
    Some(Violation::Lost)
}
