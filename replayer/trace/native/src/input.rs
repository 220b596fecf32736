//! Bytes of foreign files: opened, decompressed and cut into lines, with a bound on everything.

use crate::error::TraceError;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A longer line is reported, not kept: a log may not decide how much memory an import takes (chosen).
pub(crate) const LINE_LIMIT_BYTES: usize = 16 << 20;
/// What a decompressor may use for its dictionary (chosen: xz -9 needs 64 MiB).
const DICTIONARY_LIMIT_BYTES: u64 = 256 << 20;
const BUFFER_BYTES: usize = 256 << 10;

/// Something to read lines from, and what to call it.
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) reader: Box<dyn BufRead>,
}

impl Input {
    /// A file, decompressed.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        Ok(Self {
            path: path.to_owned(),
            reader: open(path)?,
        })
    }

    /// Bytes in memory, decompressed.
    pub(crate) fn memory(name: &str, bytes: Vec<u8>) -> Result<Self, TraceError> {
        let path = PathBuf::from(name);
        let reader = decompress(std::io::Cursor::new(bytes)).map_err(TraceError::io(&path))?;
        Ok(Self { path, reader })
    }

    /// Read a line without its line feed into `line`, which is emptied first.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>) -> Result<Line, TraceError> {
        read_line(&mut *self.reader, line).map_err(TraceError::io(&self.path))
    }
}

/// Open a file and decompress it as its first bytes ask for: gzip, xz, zstd or nothing.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, TraceError> {
    let file = File::open(path).map_err(TraceError::io(path))?;
    if !file.metadata().map_err(TraceError::io(path))?.is_file() {
        return Err(TraceError::damaged(
            path,
            "is no regular file",
            "give a log file",
        ));
    }
    decompress(file).map_err(TraceError::io(path))
}

/// Decompress a stream as its first bytes ask for.
pub(crate) fn decompress(stream: impl Read + 'static) -> Result<Box<dyn BufRead>, std::io::Error> {
    let mut buffered = BufReader::with_capacity(BUFFER_BYTES, stream);
    let head = buffered.fill_buf()?;
    Ok(if head.starts_with(&[0x1f, 0x8b]) {
        Box::new(bulk(flate2::bufread::MultiGzDecoder::new(buffered)))
    } else if head.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
        let stream = liblzma::stream::Stream::new_stream_decoder(
            DICTIONARY_LIMIT_BYTES,
            liblzma::stream::CONCATENATED,
        )?;
        Box::new(bulk(liblzma::bufread::XzDecoder::new_stream(
            buffered, stream,
        )))
    } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)?;
        decoder.window_log_max(27)?;
        Box::new(bulk(decoder))
    } else {
        Box::new(buffered)
    })
}

fn bulk<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, reader)
}

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is in the buffer that was given.
    Whole,
    /// It was longer than the limit: the buffer holds its beginning only.
    TooLong,
    /// There is no more.
    End,
}

fn read_line(reader: &mut dyn BufRead, line: &mut Vec<u8>) -> Result<Line, std::io::Error> {
    line.clear();
    let mut too_long = false;
    let mut anything = false;
    loop {
        let available = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            break;
        }
        anything = true;
        let (part, used, ended) = match memchr::memchr(b'\n', available) {
            Some(at) => (available.get(..at).unwrap_or_default(), at + 1, true),
            None => (available, available.len(), false),
        };
        let room = LINE_LIMIT_BYTES.saturating_sub(line.len());
        too_long |= part.len() > room;
        line.extend_from_slice(part.get(..part.len().min(room)).unwrap_or_default());
        reader.consume(used);
        if ended {
            break;
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(match (anything, too_long) {
        (false, _) => Line::End,
        (true, true) => Line::TooLong,
        (true, false) => Line::Whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut reader = decompress(std::io::Cursor::new(bytes)).unwrap();
        let mut line = Vec::new();
        let mut all = Vec::new();
        while read_line(&mut *reader, &mut line).unwrap() == Line::Whole {
            all.push(line.clone());
        }
        all
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
    fn a_line_over_the_limit_is_cut_and_the_next_one_is_whole() {
        let mut text = vec![b'x'; LINE_LIMIT_BYTES + 10];
        text.extend_from_slice(b"\nnext\n");
        let mut reader = decompress(std::io::Cursor::new(text)).unwrap();
        let mut line = Vec::new();
        assert_eq!(read_line(&mut *reader, &mut line).unwrap(), Line::TooLong);
        assert_eq!(line.len(), LINE_LIMIT_BYTES);
        assert_eq!(read_line(&mut *reader, &mut line).unwrap(), Line::Whole);
        assert_eq!(line, b"next");
        assert_eq!(read_line(&mut *reader, &mut line).unwrap(), Line::End);
    }

    #[test]
    fn a_cut_archive_is_an_error_and_no_panic() {
        let zst = zstd::encode_all(&vec![7_u8; 1 << 20][..], 1).unwrap();
        let half = zst[..zst.len() / 2].to_vec();
        let mut reader = decompress(std::io::Cursor::new(half)).unwrap();
        let mut line = Vec::new();
        assert!(read_line(&mut *reader, &mut line).is_err());
    }
}
