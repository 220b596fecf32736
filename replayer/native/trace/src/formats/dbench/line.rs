//! One line of a dbench loadfile.

use crate::bytes::{cut, from, number, words};

/// A line split into its command, its quoted paths, its numbers and its status.
pub(crate) struct Parsed<'a> {
    pub(crate) command: &'a [u8],
    pub(crate) names: Vec<&'a [u8]>,
    pub(crate) numbers: Vec<i64>,
    pub(crate) outcome: Option<u16>,
}

/// Parse a line without its time.
pub(crate) fn parse(line: &[u8]) -> Option<Parsed<'_>> {
    let command = words(line).next()?;
    let mut names = Vec::new();
    let mut numbers = Vec::new();
    let mut rest = from(line, command.len());
    let mut status = &[][..];
    loop {
        rest = rest.trim_ascii_start();
        if let Some(inner) = rest.strip_prefix(b"\"") {
            let end = memchr::memchr(b'"', inner)?;
            names.push(cut(inner, 0, end));
            rest = from(inner, end + 1);
            continue;
        }
        let Some(word) = words(rest).next() else {
            break;
        };
        rest = from(rest, word.len());
        match number(word) {
            Some(value) => numbers.push(value),
            None => status = word,
        }
    }
    let outcome = match status {
        b"NT_STATUS_OK" | b"SUCCESS" => None,
        b"NT_STATUS_OBJECT_NAME_NOT_FOUND"
        | b"NT_STATUS_OBJECT_PATH_NOT_FOUND"
        | b"NT_STATUS_NO_SUCH_FILE"
        | b"ERROR" => Some(2),
        b"NT_STATUS_OBJECT_NAME_COLLISION" => Some(17),
        b"NT_STATUS_ACCESS_DENIED" => Some(13),
        b"NT_STATUS_FILE_IS_A_DIRECTORY" => Some(21),
        b"NT_STATUS_NOT_A_DIRECTORY" => Some(20),
        b"NT_STATUS_DIRECTORY_NOT_EMPTY" => Some(39),
        text if text.starts_with(b"NT_STATUS_") => Some(5),
        _ => return None,
    };
    Some(Parsed {
        command,
        names,
        numbers,
        outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_command_names_numbers_and_status() {
        let line = b"FIND_FIRST \"\\clients\\client1\\FILLER.*\" 260 1366 0 NT_STATUS_NO_SUCH_FILE";
        let parsed = parse(line).unwrap();
        assert_eq!(parsed.names, [b"\\clients\\client1\\FILLER.*"]);
        assert_eq!(
            (parsed.numbers, parsed.outcome),
            (vec![260, 1366, 0], Some(2))
        );
        assert!(parse(b"Close \"x").is_none());
    }
}
