//! What a path inside a run's folder may look like. Pure text: nothing is looked up.

use crate::document::text;
use serde::de::{Deserializer, Error};

/// At most this many bytes in a path (chosen below `PATH_MAX` so that the folder of a user still fits).
pub(crate) const PATH_BYTES: usize = 4000;
const NAME_BYTES: usize = 255;

/// Why a path is refused, or `None`.
pub(crate) fn fault(path: &[u8]) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.len() > PATH_BYTES {
        return Some("is longer than 4000 bytes");
    }
    path.split(|byte| *byte == b'/').find_map(name_fault)
}

fn name_fault(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("has an empty component (is it absolute?)"),
        b"." | b".." => Some("has a . or .. component"),
        _ if name.len() > NAME_BYTES => Some("has a component longer than 255 bytes"),
        _ if name.contains(&0) => Some("holds a NUL byte"),
        _ => None,
    }
}

/// The path above the last name ("" where there is one name alone), and that name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (
            path.get(..slash).unwrap_or_default(),
            path.get(slash + 1..).unwrap_or_default(),
        ),
        None => (b"", path),
    }
}

/// The path of something in a directory ("" is the run's folder).
pub(crate) fn within(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

/// Read a path that stays where it is put.
pub(crate) fn plain_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path = text(deserializer)?;
    match fault(path.as_bytes()) {
        Some(fault) => Err(D::Error::custom(format_args!("the path {path:?} {fault}"))),
        None => Ok(path),
    }
}

/// True when a link at `path` (relative to the run's folder) with this target stays inside the run's folder.
pub(crate) fn link_stays_inside(path: &[u8], target: &[u8]) -> bool {
    if target.is_empty() || target.first() == Some(&b'/') || target.len() > PATH_BYTES {
        return false;
    }
    let mut depth = path.split(|byte| *byte == b'/').count() - 1;
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." if depth == 0 => return false,
            b".." => depth -= 1,
            _ if name.contains(&0) => return false,
            _ => depth += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_accepted() {
        assert_eq!(fault(b"a/b.c/d"), None);
        let long = vec![b'x'; 256];
        for bad in [
            &b""[..],
            b"/a",
            b"a//b",
            b"a/",
            b"../a",
            b"a/./b",
            b"a\0b",
            &long,
        ] {
            assert!(fault(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn link_targets_may_climb_to_the_run_folder_and_no_further() {
        assert!(link_stays_inside(b"d/e/l", b"../../x"));
        assert!(!link_stays_inside(b"d/e/l", b"../../../x"));
        assert!(!link_stays_inside(b"l", b"x/../../y"));
        assert!(!link_stays_inside(b"l", b"/etc/passwd"));
        assert!(!link_stays_inside(b"l", b""));
    }
}
