//! strace text, of every flavour: one pass over all its files, merged by time.

pub(crate) mod args;
pub(crate) mod clock;
pub(crate) mod decode;
pub(crate) mod deferred_lines;
pub(crate) mod importer;
pub(crate) mod lineage;
pub(crate) mod merged_logs;
pub(crate) mod pid_namespaces;
pub(crate) mod prefix;
pub(crate) mod scan;
pub(crate) mod unfinished;
pub(crate) mod value;

use crate::formats::strace::prefix::SideOutput;
use crate::formats::strace::scan::{Scanned, Shape};
use crate::formats::{Applicability, Format};

pub(crate) const FORMAT: Format = Format {
    name: "strace",
    is_applicable,
    import: importer::import,
    is_exact: false,
};

/// Lines that are looked at, and of which enough must be strace's (chosen).
const LINES_LOOKED_AT: usize = 200;

fn is_applicable(head: &[u8]) -> Applicability {
    let mut calls = 0;
    let mut strange = 0;
    let mut side_output = SideOutput::default();
    let lines = head.split(|&byte| byte == b'\n');
    for line in lines
        .filter(|line| !side_output.is_next(line))
        .take(LINES_LOOKED_AT)
    {
        let (_, rest) = prefix::take_prefix(line);
        match scan::scan(rest, &mut Scanned::default()) {
            Shape::Call | Shape::Unfinished { .. } | Shape::Resumed { .. } | Shape::Exited => {
                calls += 1;
            }
            Shape::Strange => strange += 1,
            Shape::Superseded(_)
            | Shape::Forked(_)
            | Shape::Delayed(_)
            | Shape::Notice
            | Shape::Cut => {}
        }
    }
    match (calls, strange) {
        (0, 0) => Applicability::NeedMore,
        // Program output may lie between the lines.
        (calls, strange) if calls > 0 && calls * 10 >= strange => Applicability::Yes,
        (0, strange) if strange < 50 => Applicability::NeedMore,
        _ => Applicability::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_told_from_texts() {
        let log = b"1 close(3) = 0\nhello\n--- SIGCHLD {} ---\n";
        assert_eq!(is_applicable(log), Applicability::Yes);
        let with_stacks = "1 close(3) = 0\n".to_owned() + &" > libc(read+0xe) [0xf]\n".repeat(100);
        assert_eq!(is_applicable(with_stacks.as_bytes()), Applicability::Yes);
        assert_eq!(is_applicable(b""), Applicability::NeedMore);
        assert_eq!(
            is_applicable("some words\n".repeat(100).as_bytes()),
            Applicability::No
        );
    }
}
