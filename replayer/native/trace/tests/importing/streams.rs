//! Reading row by row gives what reading by row groups gives.

use crate::common;

use common::asked;
use replayer_trace::{Streams, Trace};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn shipped() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../traces");
    let mut found = Vec::new();
    for site in std::fs::read_dir(top).unwrap() {
        let site = site.unwrap().path();
        if site.is_dir() {
            found.extend(
                std::fs::read_dir(site)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    found
}

#[test]
fn streams_and_groups_tell_the_same() {
    let folders = shipped();
    assert_eq!(folders.len(), 18);
    for folder in folders {
        let trace = Trace::open(&folder).unwrap();
        let streams = Streams::open(&trace, &folder).unwrap();
        let mut stream = streams.events(0).unwrap();
        let mut short = streams.names().unwrap();
        let mut groups = trace.events().unwrap();
        let mut next = 0;
        while let Some(group) = groups.next_group().unwrap() {
            for expected in group {
                let (row, event) = stream.next_event().unwrap().unwrap();
                assert_eq!((row, &event), (next, &expected));
                let (_, named) = short.next_event().unwrap().unwrap();
                assert_eq!(
                    (named.op, named.path, named.to_path),
                    (event.op, event.path, event.to_path)
                );
                assert_eq!(
                    (named.thread, named.file, named.to_file),
                    (event.thread, event.file, event.to_file)
                );
                next += 1;
            }
        }
        assert!(stream.next_event().unwrap().is_none());
        let mut edges = streams.edges().unwrap();
        for expected in trace.edges().unwrap() {
            assert_eq!(edges.next_edge().unwrap(), Some(expected));
        }
        assert_eq!(edges.next_edge().unwrap(), None);
        let mut requests = streams.requests().unwrap();
        for expected in trace.requests().unwrap() {
            assert_eq!(requests.next_piece().unwrap(), Some(expected));
        }
        assert_eq!(requests.next_piece().unwrap(), None);
    }
}

#[test]
fn a_reader_that_begins_at_a_later_row_group_tells_the_same_think_times() {
    // Two threads, and more events than a row group holds.
    let mut log = String::new();
    for at in 0..140_000_u64 {
        let (task, time) = (1 + at % 2, at * 50);
        writeln!(
            log,
            "{task} 17952229{:02}.{:06} lseek(7</r/a>, {at}, SEEK_SET) = {at} <0.000003>",
            77 + time / 1_000_000,
            time % 1_000_000
        )
        .unwrap();
    }
    let imported = asked(log).import();
    let streams = Streams::open(&imported.trace, &imported.folder()).unwrap();
    let mut stream = streams.events(139_000).unwrap();
    let mut compared = 0;
    while let Some((row, event)) = stream.next_event().unwrap() {
        let whole = imported.events.get(usize::try_from(row).unwrap());
        assert_eq!(Some(&event), whole, "row {row}");
        compared += 1;
    }
    assert!((1_000..20_000).contains(&compared), "{compared}");
}
