//! Stamps: every 32 bytes of a file (a cell) say which run, user and write they are of, and of which file and place.
//!
//! They are scrambled by their own checksum, so that data stay as random as they were. Nothing is remembered here.

use crate::content::{BLOCK_BYTES, CHUNK_BYTES, zeros_of_block};
use crate::program::{Content, Identity, SALT, file_of};
use crate::rng::{GOLDEN, mix64};

/// Bytes of a cell; chosen: a small file has several, and its stamp has room.
pub(crate) const CELL: usize = 32;
/// What is judged as one: the block that zeros of contents are dealt by (plan format 1).
pub(crate) const BLOCK: u64 = BLOCK_BYTES as u64;
/// The user of data that were laid out.
const NOBODY: u32 = u32::MAX;

/// What all stamps of one write have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) run: u32,
    pub(crate) user: u32,
    pub(crate) file: u32,
    pub(crate) round: u16,
    /// When it began, on the memory's clock; 0: laid out. 48 bits.
    pub(crate) seq: u64,
}

/// What a cell turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Stamp(Origin, u32),
    Zero,
    /// No stamp, or one that is not whole.
    Bad,
}

/// The number of the cell that a byte lies in; it begins again after 128 GiB.
pub(crate) fn index_of(offset: u64) -> u32 {
    u32::try_from((offset / CELL as u64) & 0xFFFF_FFFF).unwrap_or(0)
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

fn halves(word: u64) -> (u32, u32) {
    let low = u32::try_from(word & 0xFFFF_FFFF).unwrap_or(0);
    (low, u32::try_from(word >> 32).unwrap_or(0))
}

fn checksum([a, b, c]: [u64; 3]) -> u64 {
    mix64(mix64(mix64(SALT ^ a).wrapping_add(b)).wrapping_add(c))
}

/// Scramble words, or undo that.
fn scrambled([a, b, c]: [u64; 3], sum: u64) -> [u64; 3] {
    let mask = |turn: u64| mix64(sum.wrapping_add(GOLDEN.wrapping_mul(turn)));
    [a ^ mask(1), b ^ mask(2), c ^ mask(3)]
}

pub(crate) fn cell_of(origin: &Origin, index: u32) -> [u8; CELL] {
    let words = [
        pair(origin.run, origin.user),
        pair(origin.file, index),
        origin.seq << 16 | u64::from(origin.round),
    ];
    let sum = checksum(words);
    let [a, b, c] = scrambled(words, sum);
    let mut bytes = [0; CELL];
    for (to, word) in bytes.chunks_exact_mut(8).zip([sum, a, b, c]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

impl Cell {
    /// Look at the 32 bytes of a cell.
    pub(crate) fn read(bytes: &[u8]) -> Cell {
        let mut words = [0; 4];
        for (to, from) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *to = from.try_into().map_or(0, u64::from_le_bytes);
        }
        let [sum, a, b, c] = words;
        if words == [0; 4] {
            return Cell::Zero;
        }
        let words = scrambled([a, b, c], sum);
        if checksum(words) != sum {
            return Cell::Bad;
        }
        let [a, b, c] = words;
        let ((run, user), (file, index)) = (halves(a), halves(b));
        let round = u16::try_from(c & 0xFFFF).unwrap_or(0);
        let seq = c >> 16;
        let origin = Origin {
            run,
            user,
            file,
            round,
            seq,
        };
        Cell::Stamp(origin, index)
    }
}

/// Whether a cell may be the begin of one of a run, cut where its file ended, that goes on with zeros since the file was made longer.
pub(crate) fn goes_on_with_zeros(bytes: &[u8], run: u32) -> bool {
    let left = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    let (Some((sum, rest)), true) = (bytes.split_first_chunk(), left < bytes.len()) else {
        return false;
    };
    // Of less than that nothing can be told: the run follows the checksum.
    let Some(scrambled_run) = rest.first_chunk().filter(|_| left >= 12) else {
        return true;
    };
    let [unscrambled, ..] = scrambled([0; 3], u64::from_le_bytes(*sum));
    u32::from_le_bytes(*scrambled_run) ^ halves(unscrambled).0 == run
}

/// How many bytes at the begin of every block are zeros: whole cells.
pub(crate) fn zeros_of(content: Content) -> u64 {
    (zeros_of_block(content) / CELL * CELL) as u64
}

/// Whether data of this kind are zeros alone, which cannot say whose they are.
pub(crate) fn is_empty(content: Content) -> bool {
    zeros_of(content) == BLOCK
}

/// Whether the cell at an offset is one of those zeros.
pub(crate) fn is_thinned(offset: u64, zeros: u64) -> bool {
    offset % BLOCK < zeros
}

/// Fill bytes that belong at an offset of a file; cells at the ends may be parts of some.
pub(crate) fn fill(bytes: &mut [u8], offset: u64, origin: &Origin, zeros: u64) {
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        let skipped = usize::try_from(at % CELL as u64).unwrap_or(0);
        let len = rest.len().min(CELL - skipped);
        let (here, after) = std::mem::take(&mut rest).split_at_mut(len);
        if is_thinned(at, zeros) {
            here.fill(0);
        } else {
            let cell = cell_of(origin, index_of(at));
            let part = cell.iter().skip(skipped);
            here.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        }
        at += len as u64;
        rest = after;
    }
}

/// Hand out the data of a laid-out file from the first byte to the last, in chunks.
pub(crate) fn each_stamped<E>(
    identity: Identity,
    path: &[u8],
    (size, content): (u64, Content),
    scratch: &mut Vec<u8>,
    mut receive: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let origin = Origin {
        run: identity.run,
        user: NOBODY,
        file: file_of(identity.key(path)),
        round: 0,
        seq: 0,
    };
    let mut offset = 0;
    while offset < size {
        let len = usize::try_from(size - offset).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        scratch.resize(len, 0);
        fill(scratch, offset, &origin, zeros_of(content));
        receive(scratch)?;
        offset += len as u64;
    }
    Ok(())
}
