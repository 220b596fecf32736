//! Bytes of foreign files: opened, decompressed and cut into lines, with a bound on everything.

use crate::error::TraceError;
use std::fs::File;
use std::io::{BufReader, Cursor, Error, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What a decompressor may use for its dictionary (chosen: xz -9 needs 64 MiB).
const DICTIONARY_LIMIT_BYTES: u64 = 256 << 20;
/// Bytes that tell how a stream is compressed.
const MAGIC_BYTES: u64 = 6;

/// Something to read lines from, and what to call it.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    lines: Lines<Box<dyn Read>>,
}

impl Input {
    /// A file, decompressed.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        Ok(Self {
            path: path.to_owned(),
            lines: Lines::of(open(path)?),
        })
    }

    /// A stream, and what to call it.
    pub(crate) fn of(path: PathBuf, stream: Box<dyn Read>) -> Self {
        let lines = Lines::of(stream);
        Self { path, lines }
    }

    pub(crate) fn next_line(&mut self) -> Result<Line, TraceError> {
        self.lines.next_line().map_err(TraceError::io(&self.path))
    }

    /// The line that was gone to last, without its line feed.
    pub(crate) fn line(&self) -> &[u8] {
        self.lines.line()
    }
}

/// Open a file and decompress it as its first bytes ask for: gzip, xz, zstd or nothing.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, TraceError> {
    let file = File::open(path).map_err(TraceError::io(path))?;
    if !file.metadata().map_err(TraceError::io(path))?.is_file() {
        return Err(TraceError::damaged(
            path,
            "is not a regular file",
            "give a log file",
        ));
    }
    decompress(file).map_err(TraceError::io(path))
}

/// Decompress a stream as its first bytes ask for.
pub(crate) fn decompress(mut stream: impl Read + 'static) -> Result<Box<dyn Read>, std::io::Error> {
    let mut head = Vec::new();
    stream.by_ref().take(MAGIC_BYTES).read_to_end(&mut head)?;
    let magic = head.clone();
    let whole = Cursor::new(head).chain(stream);
    Ok(match magic[..] {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(bulk(whole))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            let stream = liblzma::stream::Stream::new_stream_decoder(
                DICTIONARY_LIMIT_BYTES,
                liblzma::stream::CONCATENATED,
            )?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(bulk(whole), stream))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bulk(whole))?;
            decoder.window_log_max(27)?;
            Box::new(decoder)
        }
        _ => Box::new(whole),
    })
}

fn bulk<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, reader)
}

/// A longer line is reported, not kept: a log may not decide how much memory an import takes (chosen).
pub(crate) const LINE_LIMIT_BYTES: usize = 16 << 20;
/// What is read at a time (chosen: a second-level cache holds it).
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is there, without its line feed.
    Whole,
    /// It was longer than the limit: its beginning only is there.
    TooLong,
    End,
}

/// A stream, and what has been read of it.
pub(crate) struct Lines<R> {
    stream: R,
    buffer: Vec<u8>,
    /// What of the buffer is no line yet.
    rest: Range<usize>,
    line: Range<usize>,
}

impl<R: Read> Lines<R> {
    pub(crate) fn of(stream: R) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            rest: 0..0,
            line: 0..0,
        }
    }

    /// The line that was gone to last.
    pub(crate) fn line(&self) -> &[u8] {
        self.buffer.get(self.line.clone()).unwrap_or_default()
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.rest.clone()).unwrap_or_default()
    }

    pub(crate) fn next_line(&mut self) -> Result<Line, Error> {
        // What has been looked at without a line feed.
        let mut seen = 0;
        loop {
            let fresh = self.unread().get(seen..).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                return Ok(self.take(seen + at, 1));
            }
            seen = self.rest.len();
            if seen > LINE_LIMIT_BYTES {
                return self.skip_rest();
            }
            if self.fill()? == 0 {
                return Ok(if seen == 0 {
                    self.line = 0..0;
                    Line::End
                } else {
                    self.take(seen, 0)
                });
            }
        }
    }

    /// Take so many bytes as the line, and pass over what ends it.
    fn take(&mut self, length: usize, ending: usize) -> Line {
        let start = self.rest.start;
        self.rest.start = start + length + ending;
        self.line = start..start + length.min(LINE_LIMIT_BYTES);
        if self.line().last() == Some(&b'\r') {
            self.line.end -= 1;
        }
        if length > LINE_LIMIT_BYTES {
            Line::TooLong
        } else {
            Line::Whole
        }
    }

    /// Pass over what is left of a line of which more is there than is kept.
    fn skip_rest(&mut self) -> Result<Line, Error> {
        let kept = self.rest.start..self.rest.start + LINE_LIMIT_BYTES;
        loop {
            self.rest.start = kept.end;
            let found = memchr::memchr(b'\n', self.unread());
            if let Some(at) = found {
                self.rest.start += at + 1;
                break;
            }
            // The room behind what is kept is used again and again.
            self.rest.end = kept.end;
            if self.read_behind()? == 0 {
                break;
            }
        }
        let rest = self.rest.clone();
        self.rest = kept;
        self.take(LINE_LIMIT_BYTES, 0);
        self.rest = rest;
        Ok(Line::TooLong)
    }

    /// Read more behind what is there, which goes to the front first. Returns how much; 0 at the end.
    fn fill(&mut self) -> Result<usize, Error> {
        if self.rest.start > 0 {
            self.buffer.copy_within(self.rest.clone(), 0);
            self.rest = 0..self.rest.len();
        }
        self.read_behind()
    }

    fn read_behind(&mut self) -> Result<usize, Error> {
        let end = self.rest.end;
        if self.buffer.is_empty() {
            // Memory that is zero already: of a short log little is touched.
            self.buffer = vec![0; BUFFER_BYTES];
        } else if self.buffer.len() < end + BUFFER_BYTES / 2 {
            self.buffer.resize(end + BUFFER_BYTES, 0);
        }
        let room = self.buffer.get_mut(end..).unwrap_or_default();
        loop {
            match self.stream.read(room) {
                Ok(count) => {
                    self.rest.end = end + count;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn lines(bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut input = memory(bytes);
        let mut all = Vec::new();
        while input.next_line().unwrap() == Line::Whole {
            all.push(input.line().to_vec());
        }
        all
    }

    /// Bytes in memory, decompressed.
    fn memory(bytes: Vec<u8>) -> Input {
        Input {
            path: PathBuf::from("text"),
            lines: Lines::of(decompress(Cursor::new(bytes)).unwrap()),
        }
    }

    #[test]
    fn every_compression_yields_the_same_lines() {
        let text = b"one\r\n\ntwo".to_vec();
        let expected = vec![b"one".to_vec(), Vec::new(), b"two".to_vec()];
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&text).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(&text).unwrap();
        let zst = zstd::encode_all(&text[..], 1).unwrap();
        for packed in [text, gz.finish().unwrap(), xz.finish().unwrap(), zst] {
            assert_eq!(lines(packed), expected);
        }
    }

    #[test]
    fn a_cut_archive_is_an_error_and_no_panic() {
        let zst = zstd::encode_all(&vec![7_u8; 1 << 20][..], 1).unwrap();
        let half = zst[..zst.len() / 2].to_vec();
        let mut input = memory(half);
        assert!(input.next_line().is_err());
    }

    /// Gives so many bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn all(stream: impl Read) -> Vec<Vec<u8>> {
        let mut lines = Lines::of(stream);
        let mut all = Vec::new();
        while lines.next_line().unwrap() == Line::Whole {
            all.push(lines.line().to_vec());
        }
        all
    }

    #[test]
    fn a_line_over_the_limit_is_cut_and_the_next_one_is_whole() {
        for behind in [1, 10, 3 * BUFFER_BYTES] {
            let mut text = vec![b'x'; LINE_LIMIT_BYTES + behind];
            text.extend_from_slice(b"\nnext\n");
            let mut lines = Lines::of(&text[..]);
            assert_eq!(lines.next_line().unwrap(), Line::TooLong);
            assert_eq!(lines.line().len(), LINE_LIMIT_BYTES);
            assert_eq!(lines.next_line().unwrap(), Line::Whole);
            assert_eq!(lines.line(), b"next");
            assert_eq!(lines.next_line().unwrap(), Line::End);
            assert!(lines.buffer.len() <= LINE_LIMIT_BYTES + 3 * BUFFER_BYTES);
        }
    }

    #[test]
    fn a_line_as_long_as_the_limit_is_whole() {
        let text = vec![b'x'; LINE_LIMIT_BYTES];
        let mut lines = Lines::of(&text[..]);
        assert_eq!(lines.next_line().unwrap(), Line::Whole);
        assert_eq!(lines.line().len(), LINE_LIMIT_BYTES);
        assert_eq!(lines.next_line().unwrap(), Line::End);
    }

    #[test]
    fn a_line_over_the_limit_may_be_the_last() {
        let text = vec![b'x'; LINE_LIMIT_BYTES + 2 * BUFFER_BYTES];
        let mut lines = Lines::of(&text[..]);
        assert_eq!(lines.next_line().unwrap(), Line::TooLong);
        assert_eq!(lines.next_line().unwrap(), Line::End);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_stream_comes(text in "[ab\r\n]{0,60}", step in 1_usize..9) {
            let whole: Vec<Vec<u8>> = text
                .split_inclusive('\n')
                .map(|line| line.strip_suffix('\n').unwrap_or(line))
                .map(|line| line.strip_suffix('\r').unwrap_or(line).into())
                .collect();
            prop_assert_eq!(all(Drip(text.as_bytes(), step)), whole.clone());
            prop_assert_eq!(all(text.as_bytes()), whole);
        }
    }
}
