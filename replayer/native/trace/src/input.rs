//! Bytes of foreign files: opened, decompressed and cut into lines, with a bound on everything.

use crate::error::TraceError;
use crate::lines::{BUFFER_BYTES, Line, Lines};
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
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

    /// Bytes in memory, decompressed.
    pub(crate) fn memory(name: &str, bytes: Vec<u8>) -> Result<Self, TraceError> {
        let path = PathBuf::from(name);
        let stream = decompress(Cursor::new(bytes)).map_err(TraceError::io(&path))?;
        Ok(Self {
            path,
            lines: Lines::of(stream),
        })
    }

    /// Go to the next line.
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
            "is no regular file",
            "give a log file",
        ));
    }
    decompress(file).map_err(TraceError::io(path))
}

/// Decompress a stream as its first bytes ask for.
pub(crate) fn decompress(mut stream: impl Read + 'static) -> Result<Box<dyn Read>, std::io::Error> {
    let mut head = Vec::new();
    stream.by_ref().take(MAGIC_BYTES).read_to_end(&mut head)?;
    let kind = Packed::of(&head);
    let whole = Cursor::new(head).chain(stream);
    Ok(match kind {
        None => Box::new(whole),
        Some(Packed::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(bulk(whole))),
        Some(Packed::Xz) => {
            let stream = liblzma::stream::Stream::new_stream_decoder(
                DICTIONARY_LIMIT_BYTES,
                liblzma::stream::CONCATENATED,
            )?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(bulk(whole), stream))
        }
        Some(Packed::Zstd) => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bulk(whole))?;
            decoder.window_log_max(27)?;
            Box::new(decoder)
        }
    })
}

/// How a stream is compressed.
enum Packed {
    Gzip,
    Xz,
    Zstd,
}

impl Packed {
    fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if head.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Some(Self::Xz)
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Some(Self::Zstd)
        } else {
            None
        }
    }
}

fn bulk<R: Read>(reader: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, reader)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn lines(bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let mut input = Input::memory("text", bytes).unwrap();
        let mut all = Vec::new();
        while input.next_line().unwrap() == Line::Whole {
            all.push(input.line().to_vec());
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
    fn a_cut_archive_is_an_error_and_no_panic() {
        let zst = zstd::encode_all(&vec![7_u8; 1 << 20][..], 1).unwrap();
        let half = zst[..zst.len() / 2].to_vec();
        let mut input = Input::memory("half", half).unwrap();
        assert!(input.next_line().is_err());
    }
}
