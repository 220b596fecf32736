//! Bytes to write, at an address that fits writes past the page cache.

/// The largest logical block of a disk (Linux, before 6.12: a page).
const ALIGNED: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// So many bytes, to be filled.
    pub(crate) fn sized(&mut self, len: u64) -> &mut [u8] {
        // A plan's writes fit into its pool, and so into memory.
        let len = usize::try_from(len).unwrap_or(0);
        if self.bytes.len() < len + ALIGNED {
            self.bytes = vec![0; len + ALIGNED];
            self.start = self.bytes.as_ptr().align_offset(ALIGNED).min(ALIGNED);
        }
        let end = self.start + len;
        self.bytes.get_mut(self.start..end).unwrap_or_default()
    }

    /// The first of them.
    pub(crate) fn first(&self, len: u64) -> &[u8] {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let end = self.start.saturating_add(len);
        self.bytes.get(self.start..end).unwrap_or_default()
    }
}
