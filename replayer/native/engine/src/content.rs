//! The bytes of files: slices of one seeded pool (plan format 1, Randomness).

use crate::program::Content;
use crate::rng::{GOLDEN, mix64, scale};

const SALT: u64 = 0x5EED_5EED_5EED_5EED;
/// Zeros of contents that can be compressed are the first ones of each block of this size.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// Laid-out files are made of chunks of this size, or of the pool's less 8 where that is smaller.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// The pool that data are sliced from.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: Vec<u8>,
}

impl Pool {
    pub(crate) fn new(seed: u64, pool_bytes: u64) -> Self {
        let mut bytes = vec![0; usize::try_from(pool_bytes).unwrap_or(usize::MAX)];
        let mut state = seed ^ SALT;
        for word in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(GOLDEN);
            word.copy_from_slice(&mix64(state).to_le_bytes());
        }
        Self { bytes }
    }

    /// The pool with the zeros of a content.
    pub(crate) fn thinned(mut self, content: Content) -> Self {
        thin(&mut self.bytes, 0, content);
        self
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The slice that a value stands for.
    #[inline]
    pub(crate) fn slice(&self, value: u64, size: usize) -> &[u8] {
        let starts = (self.bytes.len().saturating_sub(size) / 8 + 1) as u64;
        let start = usize::try_from(8 * scale(mix64(value), starts)).unwrap_or(0);
        let end = start.saturating_add(size);
        self.bytes.get(start..end).unwrap_or(&self.bytes)
    }

    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES.min(self.bytes.len().saturating_sub(8)).max(1)
    }
}

/// A laid-out file: which one, and what it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileData {
    /// What the slices of all its chunks are derived from.
    value: u64,
    size: u64,
    content: Content,
}

impl FileData {
    /// The data of an entry of a dataset, in the copy of a user (0 when shared).
    pub(crate) fn new(
        (dataset, entry, user): (u32, u32, u32),
        size: u64,
        content: Content,
    ) -> Self {
        let of_dataset = GOLDEN.wrapping_mul(u64::from(dataset) + 1);
        let of_entry = mix64(of_dataset.wrapping_add(u64::from(entry)));
        let of_copy = of_entry.wrapping_add(GOLDEN.wrapping_mul(u64::from(user) + 1));
        Self {
            value: mix64(of_copy),
            size,
            content,
        }
    }

    /// How much there is, and of what kind.
    pub(crate) fn extent(&self) -> (u64, Content) {
        (self.size, self.content)
    }

    /// Hand out the data from the first byte to the last, in chunks; `scratch` is for those that are thinned.
    pub(crate) fn each_chunk<E>(
        &self,
        pool: &Pool,
        scratch: &mut Vec<u8>,
        mut receive: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let chunk_bytes = pool.chunk_bytes();
        let (mut offset, mut chunk) = (0_u64, 0_u64);
        while offset < self.size {
            let left = usize::try_from(self.size - offset).unwrap_or(usize::MAX);
            let plain = pool.slice(self.value.wrapping_add(chunk), left.min(chunk_bytes));
            if self.content == Content::Random {
                receive(plain)?;
            } else {
                scratch.clear();
                scratch.extend_from_slice(plain);
                thin(scratch, offset, self.content);
                receive(scratch)?;
            }
            offset += plain.len() as u64;
            chunk += 1;
        }
        Ok(())
    }
}

/// How many bytes at the begin of every block are zeros.
pub(crate) fn zeros_of_block(content: Content) -> usize {
    match content {
        Content::Random => 0,
        Content::Zeros => BLOCK_BYTES,
        Content::Compressible(percent) => BLOCK_BYTES * usize::from(percent.min(100)) / 100,
    }
}

/// Replace the share of zeros of every block; the bytes begin at an offset of their file.
fn thin(bytes: &mut [u8], offset: u64, content: Content) {
    let zeros = zeros_of_block(content);
    if zeros == 0 {
        return;
    }
    let mut in_block = usize::try_from(offset % BLOCK_BYTES as u64).unwrap_or(0);
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = rest.len().min(BLOCK_BYTES - in_block);
        let (block, after) = std::mem::take(&mut rest).split_at_mut(len);
        let zeroed = zeros.saturating_sub(in_block).min(len);
        block.iter_mut().take(zeroed).for_each(|byte| *byte = 0);
        in_block = 0;
        rest = after;
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
