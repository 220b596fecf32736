//! Reading row by row gives what stands in the tables, wherever it begins.

use crate::common;

use common::asked;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use replayer_trace::Trace;
use std::fmt::Write;
use std::fs::File;
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

/// A row as the Parquet library itself reads it.
type Fields = Vec<(String, Field)>;

fn oracle(folder: &Path, table: &str) -> Vec<Fields> {
    let file = File::open(folder.join(format!("{table}.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().into_columns()).collect()
}

fn field<'a>(row: &'a Fields, column: &str) -> Option<&'a Field> {
    let found = row.iter().find(|(name, _)| name == column);
    found.map(|(_, field)| field)
}

fn int(row: &Fields, column: &str) -> Option<i64> {
    match field(row, column) {
        Some(Field::Int(value)) => Some(i64::from(*value)),
        Some(Field::Long(value)) => Some(*value),
        Some(Field::Null) | None => None,
        Some(other) => panic!("{column}: {other:?}"),
    }
}

fn text<'a>(row: &'a Fields, column: &str) -> Option<&'a str> {
    match field(row, column) {
        Some(Field::Str(text)) => Some(text),
        _ => None,
    }
}

#[test]
fn every_row_is_read_as_it_stands_in_its_table() {
    let folders = shipped();
    assert_eq!(folders.len(), 18);
    for folder in folders {
        let trace = Trace::open(&folder).unwrap();
        let tables = trace.tables();
        let mut events = tables.events(0).unwrap();
        let mut short = tables.names().unwrap();
        for (at, row) in (0..).zip(oracle(&folder, "events")) {
            let (number, event) = events.next_event().unwrap().unwrap();
            assert_eq!(number, at);
            let (_, named) = short.next_event().unwrap().unwrap();
            assert_eq!(Some(event.op.name()), text(&row, "op"));
            assert_eq!(named.op, event.op);
            for (column, whole, of_names) in [
                ("path", event.path, named.path),
                ("to_path", event.to_path, named.to_path),
                ("file", event.file, named.file),
                ("to_file", event.to_file, named.to_file),
                ("thread", Some(event.thread), Some(named.thread)),
            ] {
                assert_eq!(whole.map(i64::from), int(&row, column), "{column} of {at}");
                assert_eq!(of_names, whole, "{column} of {at}");
            }
            for (column, value) in [
                ("flags", event.flags),
                ("mode", event.mode),
                ("size", event.size),
                ("offset", event.offset),
                ("entries", event.entries),
                ("uid", event.uid),
                ("gid", event.gid),
                ("atime_ns", event.atime_ns),
                ("mtime_ns", event.mtime_ns),
                ("result", Some(event.result)),
                ("after_ns", event.after_ns),
            ] {
                assert_eq!(value, int(&row, column), "{column} of {at}");
            }
        }
        assert!(events.next_event().unwrap().is_none());
        let edges = oracle(&folder, "edges");
        let edges = edges.iter().map(|row| {
            let number = |column| u64::try_from(int(row, column).unwrap()).unwrap();
            (number("event"), number("waits_for"))
        });
        assert_eq!(trace.edges().unwrap(), edges.collect::<Vec<_>>());
        let pieces = trace.requests().unwrap();
        let rows = oracle(&folder, "requests");
        assert_eq!(pieces.len(), rows.len());
        for (piece, row) in pieces.iter().zip(rows) {
            assert_eq!(Some(piece.label.as_str()), text(&row, "label"));
            assert_eq!(
                i64::try_from(piece.first_event).ok(),
                int(&row, "first_event")
            );
            assert_eq!(i64::try_from(piece.end_ns).ok(), int(&row, "end_ns"));
        }
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
    let streams = imported.trace.tables();
    let mut stream = streams.events(139_000).unwrap();
    let mut compared = 0;
    while let Some((row, event)) = stream.next_event().unwrap() {
        let whole = imported.events.get(usize::try_from(row).unwrap());
        assert_eq!(Some(&event), whole, "row {row}");
        compared += 1;
    }
    assert!((1_000..20_000).contains(&compared), "{compared}");
}
