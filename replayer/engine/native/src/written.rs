//! The data that writes write: slices of one pool of seeded, incompressible words (or as compressible as the plan says).

use crate::program::{Content, Program};
use crate::rng::{GOLDEN, mix64, scale};

const POOL: u64 = 0x5EED_5EED_5EED_5EED;
const BLOCK: usize = 4096;

/// The pool of a plan.
#[derive(Debug)]
pub(crate) struct Written {
    bytes: Box<[u8]>,
}

impl Written {
    pub(crate) fn of(program: &Program) -> Written {
        let words = program.pool_bytes / 8;
        let seed = program.seed ^ POOL;
        let mut bytes: Vec<u8> = (1..=words)
            .flat_map(|word| mix64(seed.wrapping_add(GOLDEN.wrapping_mul(word))).to_le_bytes())
            .collect();
        let zeros = match program.written {
            Content::Random => 0,
            Content::Zeros => BLOCK,
            Content::Compressible(percent) => BLOCK * usize::from(percent) / 100,
        };
        for block in bytes.chunks_mut(BLOCK) {
            let zeros = zeros.min(block.len());
            block.iter_mut().take(zeros).for_each(|byte| *byte = 0);
        }
        Written {
            bytes: bytes.into_boxed_slice(),
        }
    }

    /// What the `turn`-th write op of a user writes.
    #[inline]
    pub(crate) fn slice(&self, user: u32, turn: u64, size: u64) -> &[u8] {
        let room = (self.bytes.len() as u64).saturating_sub(size) / 8 + 1;
        let mixed = mix64(mix64(u64::from(user).wrapping_add(GOLDEN)).wrapping_add(turn));
        let start = usize::try_from(scale(mixed, room) * 8).unwrap_or(0);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.bytes
            .get(start..start.saturating_add(size))
            .unwrap_or(&self.bytes)
    }

    /// Its first bytes.
    pub(crate) fn first(&self, size: u64) -> &[u8] {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.bytes.get(..size).unwrap_or(&self.bytes)
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}
