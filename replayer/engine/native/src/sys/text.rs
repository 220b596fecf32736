//! Paths as the kernel reads them, and texts that a watcher may read while their user goes on.
#![expect(
    unsafe_code,
    reason = "a pick must be a pointer, and a composed path is read by two threads"
)]

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A checked path (its last byte is its only NUL) as a C string, without looking at it again.
#[inline]
pub(crate) fn c_path(bytes: &[u8]) -> &CStr {
    debug_assert!(CStr::from_bytes_with_nul(bytes).is_ok());
    if bytes.last() != Some(&0) {
        return c"";
    }
    // SAFETY: it ends with a NUL (checked above); programs hold no other one (`path::fault`, `value::text`).
    unsafe { CStr::from_bytes_with_nul_unchecked(bytes) }
}

const SMALL: usize = 32;
const LARGE: usize = 1056;
/// The longest text that fits, without its NUL.
pub(crate) const TEXT_BYTES: usize = LARGE * 8 - 1;

/// A text that one thread writes and others may read at any time (what they read may be half old, never a data race).
#[derive(Debug, Default)]
pub(crate) struct Text {
    small: OnceLock<Box<[AtomicU64]>>,
    large: OnceLock<Box<[AtomicU64]>>,
    /// Length without the NUL.
    len: AtomicU64,
}

/// What texts of one kind begin with, in words.
#[derive(Debug)]
pub(crate) struct Prefix {
    words: Box<[u64]>,
    /// The bytes after the last whole word, as a little-endian number.
    last: u64,
    len: usize,
}

impl Prefix {
    pub(crate) fn new(bytes: &[u8]) -> Prefix {
        let (whole, rest) = bytes.as_chunks::<8>();
        let mut last = [0_u8; 8];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Prefix {
            words: whole.iter().map(|word| u64::from_ne_bytes(*word)).collect(),
            last: u64::from_le_bytes(last),
            len: bytes.len(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

fn zeros(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

impl Text {
    /// Replace the text. Only its user's thread may call this. Longer texts than fit are cut.
    pub(crate) fn set(&self, bytes: &[u8]) {
        let bytes = bytes.get(..TEXT_BYTES).unwrap_or(bytes);
        let words = self.room(bytes.len());
        let (whole, rest) = bytes.as_chunks::<8>();
        for (word, chunk) in words.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        // The last word has room for the NUL.
        if let Some(word) = words.get(whole.len()) {
            let mut last = [0_u8; 8];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            word.store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
        self.len.store(bytes.len() as u64, Ordering::Release);
    }

    /// Replace the text by a prefix and what follows it: so many bytes of `rest`, which goes on for at least a NUL and 7 bytes more.
    /// Only its user's thread may call this.
    ///
    /// Word by word: between two system calls, calls of `memcpy` for some bytes each were a tenth of our own time.
    #[inline]
    pub(crate) fn join(&self, prefix: &Prefix, rest: &[u8], len: usize) {
        let whole = prefix.len + len;
        let mut words = self.room(whole).iter();
        let mut put = |word: u64| {
            if let Some(place) = words.next() {
                place.store(word, Ordering::Relaxed);
            }
        };
        prefix.words.iter().for_each(|word| put(*word));
        let shift = prefix.len % 8 * 8;
        let mut carried = prefix.last;
        for chunk in rest.as_chunks::<8>().0.iter().take(len / 8 + 1) {
            let word = u64::from_le_bytes(*chunk);
            put((carried | word << shift).to_le());
            // In two steps: a shift by 64 is none.
            carried = word >> 1 >> (63 - shift);
        }
        put(carried.to_le());
        self.len.store(whole as u64, Ordering::Release);
    }

    #[inline]
    fn room(&self, len: usize) -> &[AtomicU64] {
        if len < SMALL * 8 {
            self.small.get_or_init(|| zeros(SMALL))
        } else {
            self.large.get_or_init(|| zeros(LARGE))
        }
    }

    fn words(&self, len: usize) -> &[AtomicU64] {
        if len < SMALL * 8 {
            self.small.get().map_or(&[], |words| &words[..])
        } else {
            self.large.get().map_or(&[], |words| &words[..])
        }
    }

    /// The text with its NUL. Only its user's thread may call this, and it must be done with it before `set`.
    #[inline]
    pub(crate) fn own_bytes(&self) -> &[u8] {
        let len = usize::try_from(self.len.load(Ordering::Relaxed)).unwrap_or(0);
        let words = self.words(len);
        if words.len() * 8 <= len {
            return b"\0";
        }
        // SAFETY: the words are initialised memory of more than `len` bytes, and only this thread writes them,
        // which it does not do while it looks.
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), len + 1) }
    }

    /// A copy for a watcher.
    pub(crate) fn copy(&self) -> Vec<u8> {
        let len = usize::try_from(self.len.load(Ordering::Acquire)).unwrap_or(0);
        let words = self.words(len).iter();
        let mut bytes: Vec<u8> = words
            .flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes())
            .collect();
        bytes.truncate(len);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_texts_are_read_back() {
        let text = Text::default();
        let bytes: Vec<u8> = (1..=200).collect();
        for prefix in 0..40 {
            for len in (0..80).rev() {
                let whole = [&bytes[..prefix], &bytes[100..100 + len]].concat();
                let rest = [&bytes[100..100 + len], b"\0after that"].concat();
                text.join(&Prefix::new(&bytes[..prefix]), &rest, len);
                assert_eq!(text.copy(), whole);
                assert_eq!(text.own_bytes(), [&whole[..], b"\0"].concat());
            }
        }
    }

    #[test]
    fn texts_of_any_length_are_read_back() {
        let text = Text::default();
        for len in [0, 1, 7, 8, 9, 254, 255, 256, 257, 4000, 8000, TEXT_BYTES, 3] {
            let bytes = vec![b'x'; len];
            text.set(&bytes);
            assert_eq!(text.copy(), bytes);
            assert_eq!(text.own_bytes(), [&bytes[..], b"\0"].concat());
        }
    }
}
