//! Paths as the kernel reads them, and texts that a watcher may read while their user goes on.
#![expect(
    unsafe_code,
    reason = "a pick must be a pointer, and a composed path is read by two threads"
)]
#![expect(
    clippy::inline_always,
    reason = "on the way of every op: a call that returns after a system call is mispredicted"
)]

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A checked path (its last byte is its only NUL) as a C string, without looking at it again.
#[inline]
pub(crate) fn c_path(bytes: &[u8]) -> &CStr {
    debug_assert!(CStr::from_bytes_with_nul(bytes).is_ok());
    if bytes.last() != Some(&0) {
        return nothing();
    }
    // SAFETY: it ends with a NUL (checked above); programs hold no other one (`path::fault`, `value::text`).
    unsafe { CStr::from_bytes_with_nul_unchecked(bytes) }
}

#[cold]
fn nothing() -> &'static CStr {
    c""
}

const SMALL: usize = 32;
const LARGE: usize = 1056;
/// The longest text that fits wherever it begins in its first word, without its NUL.
pub(crate) const TEXT_BYTES: usize = LARGE * 8 - 9;

/// A text that one thread writes and others may read at any time (what they read may be half old, never a data race).
#[derive(Debug, Default)]
pub(crate) struct Text {
    small: OnceLock<Box<[AtomicU64]>>,
    large: OnceLock<Box<[AtomicU64]>>,
    extent: AtomicU64,
}

/// Where a text stands in its words.
#[derive(Clone, Copy)]
struct Extent {
    /// The byte that it begins at.
    start: usize,
    /// Without the NUL.
    len: usize,
}

impl Extent {
    fn pack(self) -> u64 {
        (self.len << 3 | self.start) as u64
    }

    fn unpack(packed: u64) -> Extent {
        let packed = usize::try_from(packed).unwrap_or(0);
        Extent {
            start: packed & 7,
            len: packed >> 3,
        }
    }

    /// How many words it touches, its NUL with it.
    fn words(self) -> usize {
        (self.start + self.len) / 8 + 1
    }
}

/// What texts of one kind begin with: so many whole words, the first of them filled up with NULs at its front.
#[derive(Debug)]
pub(crate) struct Prefix {
    words: Box<[u64]>,
    start: usize,
    len: usize,
}

impl Prefix {
    pub(crate) fn new(bytes: &[u8]) -> Prefix {
        let start = bytes.len().wrapping_neg() % 8;
        let padded: Vec<u8> = std::iter::repeat_n(0, start)
            .chain(bytes.iter().copied())
            .collect();
        let words = padded.as_chunks::<8>().0.iter();
        Prefix {
            words: words.map(|word| u64::from_ne_bytes(*word)).collect(),
            start,
            len: bytes.len(),
        }
    }
}

fn zeros(words: usize) -> Box<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

impl Text {
    /// Replace the text. Only its user's thread may call this. Longer texts than fit are cut.
    pub(crate) fn set(&self, bytes: &[u8]) {
        let bytes = bytes.get(..TEXT_BYTES).unwrap_or(bytes);
        let extent = Extent {
            start: 0,
            len: bytes.len(),
        };
        let words = self.room(extent);
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
        self.extent.store(extent.pack(), Ordering::Release);
    }

    /// Write a prefix for what [`Text::join`] lets follow. Only its user's thread may call this.
    #[cold]
    pub(crate) fn begin(&self, prefix: &Prefix) {
        put(self.small.get_or_init(|| zeros(SMALL)), &prefix.words);
    }

    /// Let something follow the prefix that `begin` was told last (with no `set` since): so many bytes of `rest`, which goes on for at
    /// least a NUL and 7 bytes more. Only its user's thread may call this, and nobody may look at the old text.
    ///
    /// Word by word, and the prefix stays where it is: between two system calls, calls of `memcpy` for some bytes each were a tenth of
    /// our own time, and putting words together from two halves each was another.
    #[inline(always)]
    pub(crate) fn join(&self, prefix: &Prefix, rest: &[u8], len: usize) -> &CStr {
        let (chunks, _) = rest.as_chunks::<8>();
        let small = self.small.get().map_or(&[][..], |words| &words[..]);
        let extent = Extent {
            start: prefix.start,
            len: prefix.len + len,
        };
        let Some(places) = small.get(prefix.words.len()..extent.words()) else {
            return self.join_long(prefix, chunks, extent);
        };
        for (place, chunk) in places.iter().zip(chunks) {
            place.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        self.extent.store(extent.pack(), Ordering::Release);
        c_path(bytes_of(small, extent))
    }

    #[cold]
    fn join_long(&self, prefix: &Prefix, chunks: &[[u8; 8]], extent: Extent) -> &CStr {
        let words = self.room(extent);
        put(words, &prefix.words);
        let places = words.iter().take(extent.words()).skip(prefix.words.len());
        for (place, chunk) in places.zip(chunks) {
            place.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        self.extent.store(extent.pack(), Ordering::Release);
        c_path(bytes_of(words, extent))
    }

    fn room(&self, extent: Extent) -> &[AtomicU64] {
        if extent.words() <= SMALL {
            self.small.get_or_init(|| zeros(SMALL))
        } else {
            self.large.get_or_init(|| zeros(LARGE))
        }
    }

    fn words(&self, extent: Extent) -> &[AtomicU64] {
        if extent.words() <= SMALL {
            self.small.get().map_or(&[], |words| &words[..])
        } else {
            self.large.get().map_or(&[], |words| &words[..])
        }
    }

    /// The text. Only its user's thread may call this, and it must be done with it before the text is replaced.
    pub(crate) fn own(&self) -> &CStr {
        let extent = Extent::unpack(self.extent.load(Ordering::Relaxed));
        c_path(bytes_of(self.words(extent), extent))
    }

    /// A copy for a watcher.
    pub(crate) fn copy(&self) -> Vec<u8> {
        let extent = Extent::unpack(self.extent.load(Ordering::Acquire));
        let words = self.words(extent).iter();
        let bytes = words.flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        bytes.skip(extent.start).take(extent.len).collect()
    }
}

fn put(places: &[AtomicU64], words: &[u64]) {
    for (place, word) in places.iter().zip(words) {
        place.store(*word, Ordering::Relaxed);
    }
}

/// A text with its NUL, to be looked at by the thread that alone writes it.
#[inline]
fn bytes_of(words: &[AtomicU64], extent: Extent) -> &[u8] {
    if words.len() < extent.words() {
        return b"\0";
    }
    // SAFETY: the words are initialised memory of more than `start + len` bytes, and only this thread writes them,
    // which it does not do while it looks.
    unsafe {
        let begin = words.as_ptr().cast::<u8>().add(extent.start);
        std::slice::from_raw_parts(begin, extent.len + 1)
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
                let prefix = Prefix::new(&bytes[..prefix]);
                text.begin(&prefix);
                let joined = text.join(&prefix, &rest, len);
                assert_eq!(joined.to_bytes(), whole);
                assert_eq!(text.copy(), whole);
                assert_eq!(text.own(), joined);
            }
        }
    }

    #[test]
    fn a_prefix_outlives_what_was_too_long_for_its_words() {
        let (text, prefix) = (Text::default(), Prefix::new(b"files/u7/"));
        text.begin(&prefix);
        for len in [3, 300, 4, 4000, 0] {
            let rest = [vec![b'x'; len], b"\0after that".to_vec()].concat();
            let whole = [&b"files/u7/"[..], &rest[..len]].concat();
            assert_eq!(text.join(&prefix, &rest, len).to_bytes(), whole);
            assert_eq!(text.copy(), whole);
        }
    }

    #[test]
    fn texts_of_any_length_are_read_back() {
        let text = Text::default();
        for len in [0, 1, 7, 8, 9, 254, 255, 256, 257, 4000, 8000, TEXT_BYTES, 3] {
            let bytes = vec![b'x'; len];
            text.set(&bytes);
            assert_eq!(text.copy(), bytes);
            assert_eq!(text.own().to_bytes(), bytes);
        }
    }
}
