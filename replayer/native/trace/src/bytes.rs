//! Numbers and pieces of byte strings: what every importer needs, and nothing about any format.

/// A slice that is empty where the range is not there.
pub(crate) fn cut(bytes: &[u8], start: usize, end: usize) -> &[u8] {
    bytes.get(start..end).unwrap_or_default()
}

/// What follows a position.
pub(crate) fn from(bytes: &[u8], start: usize) -> &[u8] {
    bytes.get(start..).unwrap_or_default()
}

/// Without spaces and tabs in front.
#[inline]
pub(crate) fn skip_blanks(bytes: &[u8]) -> &[u8] {
    if !matches!(bytes, [b' ' | b'\t', ..]) {
        return bytes;
    }
    let blanks = bytes
        .iter()
        .take_while(|&&byte| byte == b' ' || byte == b'\t')
        .count();
    from(bytes, blanks)
}

/// The decimal digits in front, and what follows them.
pub(crate) fn take_digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    /// So many digits always fit into 64 bits.
    const SAFE_DIGITS: usize = 19;
    let mut value = 0_u64;
    let mut length = 0;
    let digit = |byte: u8| Some(byte.wrapping_sub(b'0')).filter(|&digit| digit <= 9);
    for digit in bytes
        .iter()
        .take(SAFE_DIGITS)
        .map_while(|&byte| digit(byte))
    {
        value = value * 10 + u64::from(digit);
        length += 1;
    }
    if length == SAFE_DIGITS {
        for digit in from(bytes, length).iter().map_while(|&byte| digit(byte)) {
            value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
            length += 1;
        }
    }
    (length > 0).then(|| (value, from(bytes, length)))
}

/// A number as strace prints it in front: decimal with sign, `0x` hexadecimal, or octal with a leading 0 where asked.
pub(crate) fn take_number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    if let Some(rest) = bytes.strip_prefix(b"-") {
        let (value, rest) = take_digits(rest)?;
        return Some((i64::try_from(value).ok()?.checked_neg()?, rest));
    }
    if let Some(rest) = bytes.strip_prefix(b"0x") {
        return take_radix(rest, 16);
    }
    let (value, rest) = take_digits(bytes)?;
    #[allow(
        clippy::cast_possible_wrap,
        reason = "sizes print as unsigned: 2^64-1 is -1"
    )]
    Some((value as i64, rest))
}

/// Digits of a radix in front, wrapped to 64 bits.
pub(crate) fn take_radix(bytes: &[u8], radix: u32) -> Option<(i64, &[u8])> {
    let mut value = 0_u64;
    let mut length = 0;
    for &byte in bytes {
        let Some(digit) = char::from(byte).to_digit(radix) else {
            break;
        };
        value = value
            .checked_mul(u64::from(radix))?
            .checked_add(u64::from(digit))?;
        length += 1;
    }
    #[allow(clippy::cast_possible_wrap, reason = "0xffffffffffffffff is -1")]
    (length > 0).then(|| (value as i64, from(bytes, length)))
}

/// A whole string that is one number.
pub(crate) fn number(bytes: &[u8]) -> Option<i64> {
    take_number(bytes).map(|(value, _)| value)
}

/// Seconds with a fraction, `12.000345`, as nanoseconds; what follows; and how many digits the fraction has.
pub(crate) fn take_seconds(bytes: &[u8]) -> Option<(i64, &[u8], u32)> {
    let (whole, rest) = take_digits(bytes)?;
    let whole = i64::try_from(whole).ok()?.checked_mul(1_000_000_000)?;
    let Some(fraction) = rest.strip_prefix(b".") else {
        return Some((whole, rest, 0));
    };
    let mut value = 0_u32;
    let mut digits = 0_u32;
    for &byte in fraction.iter().take(9) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value * 10 + u32::from(digit);
        digits += 1;
    }
    let nanos = i64::from(value) * 10_i64.pow(9 - digits);
    let length = usize::try_from(digits).unwrap_or(0);
    Some((whole.checked_add(nanos)?, from(fraction, length), digits))
}

/// The part before a byte, and the part after it.
pub(crate) fn split_at_byte(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, bytes)?;
    Some((cut(bytes, 0, at), from(bytes, at + 1)))
}

/// Where a byte string is found in another. Made for short ones: nothing is prepared.
pub(crate) fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    memchr::memchr_iter(first, bytes).find(|&at| from(bytes, at).starts_with(needle))
}

/// The directory of a path; None where it has no slash.
pub(crate) fn parent(path: &[u8]) -> Option<&[u8]> {
    memchr::memrchr(b'/', path).map(|end| cut(path, 0, end))
}

/// Words between spaces and tabs.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_strace_prints_them() {
        assert_eq!(number(b"-1"), Some(-1));
        assert_eq!(number(b"0x340"), Some(0x340));
        assert_eq!(number(b"18446744073709551615"), Some(-1));
        assert_eq!(number(b"99999999999999999999"), None);
        assert_eq!(number(b"x"), None);
    }

    #[test]
    fn seconds_keep_their_digits() {
        assert_eq!(
            take_seconds(b"1795222977.875185 x"),
            Some((1_795_222_977_875_185_000, &b" x"[..], 6))
        );
        assert_eq!(take_seconds(b"0.5>"), Some((500_000_000, &b">"[..], 1)));
        assert_eq!(take_seconds(b"99999999999999.1"), None);
    }
}
