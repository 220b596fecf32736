//! What the recorder writes, read back.

use super::tests::{STAT, hour, stat};
use super::*;
use crate::histogram::{self, Histogram};
use crate::ops::LAG;
use crate::record::event::StuckData;
use crate::record::slow::SlowSample;
use base64::Engine as _;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::path::Path;

/// Two segments with five samples of four series.
fn recorded(directory: &Path) {
    let recorder = hour(Some(directory));
    let shard = recorder.shard(5);
    recorder.begin_segment(0, 2, 0);
    let absent = Sample {
        outcome: 2,
        ..stat(9)
    };
    shard.flush(&[
        Sample {
            bytes: 4096,
            ..stat(1500)
        },
        stat(2500),
        absent,
    ]);
    recorder.end_segment(None);
    recorder.begin_segment(1, 2, 0);
    let transaction = recorder.transaction_id("GET /a, b").unwrap();
    let lag = Sample {
        op: LAG,
        transaction,
        expected: false,
        ..stat(0)
    };
    shard.flush(&[stat(7), lag]);
    recorder.close();
}

/// Tag, count and maximum of a line of the log.
fn read_line(entry: LogEntry<'_>) -> Option<(String, u64, u64)> {
    let LogEntry::Interval(interval) = entry else {
        return None;
    };
    let packed = base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram());
    let histogram = histogram::unpack(&packed.unwrap()).unwrap();
    let tag = interval.tag().unwrap().as_str().to_owned();
    Some((tag, histogram.count(), histogram.max()))
}

#[test]
fn the_log_is_read_by_the_standard_reader() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let log = std::fs::read_to_string(directory.path().join("histograms.hlog")).unwrap();
    let entries = IntervalLogIterator::new(log.as_bytes()).map(Result::unwrap);
    let seen: Vec<_> = entries.filter_map(read_line).collect();
    let wanted = [
        ("0/2/measured/page_view/stat/ok/expected", 2, 2501),
        ("0/2/measured/page_view/stat/ENOENT/expected", 1, 9),
        ("1/2/measured/page_view/stat/ok/expected", 1, 7),
        (
            "1/2/measured/GET%20%2Fa%2C%20b/transaction.lag/ok/unexpected",
            1,
            0,
        ),
    ];
    assert_eq!(
        seen,
        wanted.map(|(tag, count, max)| (tag.to_owned(), count, max))
    );
}

#[test]
fn a_log_is_read_back_by_key_and_by_time() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let path = directory.path().join("histograms.hlog");
    let log = read_log(&path).unwrap();
    let seen = |(key, times): (&LogKey, &Histogram)| (key.to_string(), times.count(), times.max());
    let wanted = [
        ("0/2/measured/page_view/stat/ENOENT/expected", 1, 9),
        ("0/2/measured/page_view/stat/ok/expected", 2, 2501),
        (
            "1/2/measured/GET%20%2Fa%2C%20b/transaction.lag/ok/unexpected",
            1,
            0,
        ),
        ("1/2/measured/page_view/stat/ok/expected", 1, 7),
    ];
    let wanted = wanted.map(|(tag, count, max)| (tag.to_owned(), count, max));
    assert_eq!(log.histograms.iter().map(seen).collect::<Vec<_>>(), wanted);
    assert_eq!((log.intervals.len(), log.damaged), (3, 0));
    let keys: Vec<LogKey> = log.histograms.into_keys().collect();
    let slots = Slots {
        begins_s: vec![0.0, 3600.0],
        bins_per_octave: 1,
        last_bin: 10,
    };
    let slices = read_slices(&path, &slots, &keys).unwrap();
    assert_eq!(slices[1], Slices::from([((0, 10), 2)]));
    assert_eq!(slices[3], Slices::from([((0, 2), 1)]));
}

#[test]
fn the_timeline_has_a_line_for_every_series_and_interval() {
    let directory = tempfile::tempdir().unwrap();
    recorded(directory.path());
    let csv = std::fs::read_to_string(directory.path().join("timeline.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0].split(',').count(), 17);
    let first = ",0,2,measured,3,page_view,stat,ok,true,2,4096,2000.5,1500,2501,2501,2501";
    assert!(lines[1].ends_with(first), "{}", lines[1]);
    let last = ",1,2,measured,3,\"GET /a, b\",transaction.lag,ok,false,1,0,0.0,0,0,0,0";
    assert!(lines[4].ends_with(last), "{}", lines[4]);
}

/// The lines of events.jsonl of a kind.
fn events(directory: &Path, kind: &str) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(directory.join("events.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &serde_json::Value| line["kind"] == kind)
        .collect()
}

fn log_many_errors(recorder: &Recorder, target: u16) {
    for _ in 0..30 {
        recorder.log(&Event::Error {
            t_ns: 1,
            user: 0,
            kind: ErrorKind {
                target,
                transaction: 1,
                op: STAT,
                outcome: 2,
            },
            path: b"a".to_vec(),
        });
    }
}

#[test]
fn errors_of_one_target_or_of_the_warm_up_leave_room_for_others() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = hour(Some(directory.path()));
    recorder.begin_segment(0, 0, 3_600_000_000_000);
    log_many_errors(&recorder, 0);
    recorder.measure();
    log_many_errors(&recorder, 0);
    recorder.begin_segment(1, 0, 0);
    log_many_errors(&recorder, 1);
    recorder.begin_segment(0, 1, 0);
    log_many_errors(&recorder, 0);
    recorder.close();
    let errors = events(directory.path(), "error");
    let of = |target: u16| {
        errors
            .iter()
            .filter(|line| line["target"] == target)
            .count()
    };
    assert_eq!((of(0), of(1)), (40, 20));
}

#[test]
fn the_first_errors_and_every_hang_get_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = hour(Some(directory.path()));
    let (t_ns, user, target, op) = (1_500_000_000, 4, 0, STAT);
    let kind = ErrorKind {
        target,
        transaction: 1,
        op,
        outcome: 28,
    };
    for _ in 0..30 {
        let path = b"a\"\xff".to_vec();
        recorder.log(&Event::Error {
            t_ns,
            user,
            kind,
            path,
        });
    }
    assert!(!recorder.error_wanted(kind));
    assert!(recorder.error_wanted(ErrorKind { outcome: 5, ..kind }));
    let age_ns = 6_000_000_000;
    let stuck = StuckData {
        user,
        target,
        op: "stat",
        age_ns,
        path: Vec::new(),
    };
    recorder.log(&Event::Stall(t_ns, stuck));
    recorder.close();
    let errors = events(directory.path(), "error");
    assert_eq!(errors.len(), 20);
    assert_eq!(errors[0]["outcome"], "ENOSPC");
    assert_eq!(errors[0]["transaction"], "login");
    assert_eq!(errors[0]["path"], "a\"\u{fffd}");
    let stall = &events(directory.path(), "stall")[0];
    assert_eq!(
        (&stall["t_s"], &stall["age_ns"]),
        (&1.5.into(), &age_ns.into())
    );
}

#[test]
fn the_ten_slowest_of_the_measured_phase_get_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = hour(Some(directory.path()));
    let slow = |service_ns| {
        let (t_ns, user, target, transaction, op, outcome) = (2, 1, 0, 0, STAT, 0);
        let path = b"p".to_vec();
        recorder.slow(None).keep(SlowSample {
            t_ns,
            user,
            target,
            transaction,
            op,
            outcome,
            service_ns,
            path,
        });
    };
    recorder.begin_segment(0, 0, 1_000_000_000_000);
    assert_eq!(recorder.slow(None).floor(0, STAT), u64::MAX);
    slow(99_999);
    recorder.measure();
    assert_eq!(recorder.slow(None).floor(0, STAT), 0);
    (1..=100).for_each(slow);
    assert_eq!(recorder.slow(None).floor(0, STAT), 91);
    recorder.begin_segment(1, 0, 0);
    assert_eq!(recorder.slow(None).floor(0, STAT), 0);
    recorder.begin_segment(0, 1, 0);
    assert_eq!(recorder.slow(None).floor(0, STAT), 91);
    recorder.close();
    let lines = events(directory.path(), "slow");
    let mut slowest: Vec<_> = lines
        .iter()
        .map(|line| line["service_ns"].as_u64().unwrap())
        .collect();
    slowest.sort_unstable();
    assert_eq!(slowest, (91..=100).collect::<Vec<_>>());
    let phases = events(directory.path(), "phase");
    let phases: Vec<_> = phases
        .iter()
        .map(|line| line["phase"].as_str().unwrap())
        .collect();
    assert_eq!(phases, ["warm-up", "measured", "measured", "measured"]);
}

#[test]
fn a_full_disk_is_told_once_and_loses_nothing_when_there_is_room_again() {
    let Some(disk) = crate::layout::mounted::Mounted::small_disk(64 << 10) else {
        return;
    };
    let recorder = hour(Some(disk.path()));
    let shard = recorder.shard(0);
    recorder.begin_segment(0, 0, 0);
    let ballast = disk.path().join("ballast");
    assert!(std::fs::write(&ballast, vec![1; 128 << 10]).is_err());
    for _ in 0..200 {
        shard.flush(&[stat(3), stat(900_000)]);
        recorder.shared.cut(&mut hold(&recorder.shared.state));
    }
    assert_eq!(recorder.write_error().map(|(_, errno)| errno), Some(28));
    std::fs::remove_file(ballast).unwrap();
    recorder.close();
    let csv = std::fs::read_to_string(disk.path().join("timeline.csv")).unwrap();
    assert_eq!(csv.lines().count(), 201);
    assert!(csv.lines().all(|line| line.split(',').count() == 17));
    let events = std::fs::read_to_string(disk.path().join("events.jsonl")).unwrap();
    assert_eq!(events.matches("the record is incomplete").count(), 1);
}
