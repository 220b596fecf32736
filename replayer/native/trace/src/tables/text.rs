//! Byte strings as text: Parquet's strings are UTF-8, names of files are not always.

use parquet::data_type::ByteArray;
use std::fmt::Write;

/// Bytes that are given away, as UTF-8.
pub(crate) fn escaped_whole(bytes: Vec<u8>) -> ByteArray {
    let plain = memchr::memchr(b'\\', &bytes).is_none() && std::str::from_utf8(&bytes).is_ok();
    ByteArray::from(if plain {
        bytes
    } else {
        escaped(&bytes).into_bytes()
    })
}

/// Bytes as UTF-8: a backslash is doubled, and a byte that is not UTF-8 becomes `\xNN`.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for part in chunk.valid().split_inclusive('\\') {
            text.push_str(part);
            if part.ends_with('\\') {
                text.push('\\');
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The bytes of an escaped text.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        bytes.extend_from_slice(crate::bytes::cut(rest, 0, at));
        let escape = crate::bytes::from(rest, at + 1);
        let hexadecimal = escape
            .strip_prefix(b"x")
            .and_then(|_| crate::bytes::take_radix(crate::bytes::cut(escape, 1, 3), 16))
            .and_then(|(value, _)| u8::try_from(value).ok());
        if let Some(byte) = hexadecimal {
            bytes.push(byte);
            rest = crate::bytes::from(escape, 3);
        } else {
            bytes.push(b'\\');
            rest = escape.strip_prefix(b"\\").unwrap_or(escape);
        }
    }
    bytes.extend_from_slice(rest);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn odd_names_stay_readable() {
        assert_eq!(escaped(b"a\xff\\b"), "a\\xff\\\\b");
        assert_eq!(escaped("Lüssing".as_bytes()), "Lüssing");
    }

    proptest! {
        #[test]
        fn every_name_survives(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(unescaped(&escaped(&bytes)), bytes);
        }

        #[test]
        fn any_text_is_unescaped_without_panic(text in "[\\\\x0-9a-f]{0,20}") {
            unescaped(&text);
        }
    }
}
