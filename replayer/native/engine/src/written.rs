//! The data that write ops write: slices of a pool of their own, as compressible as the plan says.

use crate::content::Pool;
use crate::program::Program;
use crate::rng::{GOLDEN, mix64};

/// The largest logical block of a disk (Linux, before 6.12: a page).
const BLOCK: usize = 4096;

/// What a plan's write ops are served from.
#[derive(Debug)]
pub(crate) struct Written {
    pool: Pool,
}

impl Written {
    pub(crate) fn of(program: &Program) -> Written {
        let pool = Pool::new(program.seed, program.pool_bytes);
        Written {
            pool: pool.thinned(program.written),
        }
    }

    /// What the `turn`-th write op of a user writes.
    #[inline]
    pub(crate) fn slice(&self, user: u32, turn: u64, size: u64) -> &[u8] {
        let of_user = mix64(u64::from(user).wrapping_add(GOLDEN));
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.pool.slice(of_user.wrapping_add(turn), size)
    }

    /// What can be written past the page cache: it begins at a multiple of the largest block, and is as long as one or more.
    pub(crate) fn aligned(&self, size: u64) -> &[u8] {
        let bytes = self.pool.bytes();
        let skipped = bytes.as_ptr().align_offset(BLOCK).min(bytes.len());
        let whole = (bytes.len() - skipped) / BLOCK * BLOCK;
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(whole);
        bytes.get(skipped..skipped + size).unwrap_or_default()
    }

    pub(crate) fn first(&self, size: u64) -> &[u8] {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.pool.bytes().get(..size).unwrap_or(self.pool.bytes())
    }

    pub(crate) fn len(&self) -> u64 {
        self.pool.bytes().len() as u64
    }
}
