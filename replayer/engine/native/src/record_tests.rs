use super::*;
use crate::histogram;
use crate::ops::{FAILED, LAG, Op, TRANSACTION};
use crate::record_event::Hang;
use base64::Engine as _;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const STAT: u8 = Op::Stat as u8;

fn config(interval_ns: u64, directory: Option<&Path>) -> RecorderConfig {
    RecorderConfig {
        transactions: vec!["page_view".to_owned(), "login".to_owned()],
        interval_ns,
        directory: directory.map(|path| {
            std::fs::File::options()
                .read(true)
                .open(path)
                .unwrap()
                .into()
        }),
        begin_ns: clock::now_ns(),
        begin_epoch_ns: clock::epoch_ns(),
        users: Box::new(|| 3),
        doorbell: Box::new(|| {}),
        run_queue: Arc::default(),
    }
}

fn hour(directory: Option<&Path>) -> Arc<Recorder> {
    Recorder::start(config(3_600_000_000_000, directory)).unwrap()
}

fn stat(ns: u64) -> Sample {
    Sample {
        ns,
        bytes: 0,
        transaction: 0,
        op: STAT,
        outcome: 0,
        expected: true,
    }
}

fn count(row: &RowData) -> u64 {
    histogram::unpack(&row.histogram).unwrap().len()
}

fn total(rows: &[RowData]) -> u64 {
    rows.iter().map(count).sum()
}

#[test]
fn no_sample_is_lost_or_counted_twice_while_intervals_are_cut() {
    const USERS: u32 = 6;
    const BATCHES: u64 = 3000;
    let recorder = Recorder::start(config(1_000_000, None)).unwrap();
    recorder.begin_segment(0, 0, 0);
    let counted = AtomicU64::new(0);
    let bytes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let users: Vec<_> = (0..USERS)
            .map(|user| {
                let shard = recorder.shard(user);
                scope.spawn(move || {
                    for turn in 0..BATCHES {
                        let mut batch = [stat(turn); 16];
                        batch[3] = Sample {
                            outcome: 2,
                            bytes: 7,
                            ..stat(turn * 1000)
                        };
                        batch[9] = Sample {
                            op: TRANSACTION,
                            outcome: FAILED,
                            expected: false,
                            ..stat(turn)
                        };
                        shard.flush(&batch);
                    }
                })
            })
            .collect();
        while users.iter().any(|user| !user.is_finished()) {
            for interval in recorder.drain_intervals() {
                counted.fetch_add(total(&interval.rows), Ordering::Relaxed);
                bytes.fetch_add(
                    interval.rows.iter().map(|row| row.bytes).sum(),
                    Ordering::Relaxed,
                );
            }
            std::thread::yield_now();
        }
    });
    recorder.close();
    let rest = recorder.drain_intervals();
    let rest_count: u64 = rest.iter().map(|interval| total(&interval.rows)).sum();
    let rest_bytes: u64 = rest
        .iter()
        .flat_map(|interval| &interval.rows)
        .map(|row| row.bytes)
        .sum();
    let flushed = u64::from(USERS) * BATCHES * 16;
    assert_eq!(counted.into_inner() + rest_count, flushed);
    assert_eq!(
        bytes.into_inner() + rest_bytes,
        u64::from(USERS) * BATCHES * 7
    );
    assert_eq!(total(&recorder.totals()), flushed);
    assert_eq!(recorder.totals().len(), 3);
}

#[test]
fn samples_belong_to_the_phase_they_were_flushed_in() {
    let recorder = hour(None);
    let shard = recorder.shard(0);
    recorder.begin_segment(1, 0, 3_600_000_000_000);
    shard.flush(&[stat(1); 2]);
    recorder.measure();
    shard.flush(&[stat(1); 3]);
    recorder.measure();
    recorder.end_segment();
    recorder.begin_segment(0, 7, 0);
    shard.flush(&[stat(1); 4]);
    recorder.end_segment();
    shard.flush(&[stat(1); 5]);
    recorder.close();
    let seen: Vec<_> = recorder
        .totals()
        .iter()
        .map(|row| (row.target, row.round, row.phase, count(row)))
        .collect();
    let (warm, measured) = (Phase::WarmUp, Phase::Measured);
    assert_eq!(
        seen,
        [(1, 0, warm, 2), (1, 0, measured, 3), (0, 7, measured, 9)]
    );
    let spans = recorder.drain_intervals();
    assert!(
        spans
            .windows(2)
            .all(|pair| pair[0].end_ns <= pair[1].start_ns)
    );
    assert!(spans.iter().all(|interval| interval.users == 3));
}

#[test]
fn a_warm_up_ends_by_itself() {
    let recorder = hour(None);
    recorder.begin_segment(0, 0, 20_000_000);
    let begun = clock::now_ns();
    while hold(&recorder.shared.state).segment.phase == Phase::WarmUp {
        assert!(clock::now_ns() - begun < 5_000_000_000);
        std::thread::yield_now();
    }
    assert!(clock::now_ns() - begun > 15_000_000);
}

#[test]
fn cuts_keep_to_their_schedule_and_leave_out_what_they_missed() {
    let mut state = State::new(Files::open(None, 0).unwrap(), 100);
    state.restart(1000);
    assert_eq!(state.next_cut, 1100);
    state.schedule(1130);
    assert_eq!(state.next_cut, 1200);
    state.schedule(1450);
    assert_eq!(state.next_cut, 1500);
}

#[test]
fn a_segment_without_samples_still_tells_the_time() {
    let recorder = Recorder::start(config(2_000_000, None)).unwrap();
    let wait = |wanted: bool| {
        let begun = clock::now_ns();
        while clock::now_ns() - begun < 50_000_000 {
            std::thread::yield_now();
        }
        assert_eq!(recorder.drain_intervals().len() > 2, wanted);
    };
    wait(false);
    recorder.begin_segment(0, 0, 0);
    wait(true);
}

#[test]
fn files_hold_every_interval_in_the_standard_formats() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = hour(Some(directory.path()));
    let shard = recorder.shard(5);
    recorder.begin_segment(0, 2, 0);
    shard.flush(&[
        Sample {
            bytes: 4096,
            ..stat(1500)
        },
        stat(2500),
        Sample {
            outcome: 2,
            ..stat(9)
        },
    ]);
    recorder.end_segment();
    recorder.begin_segment(1, 2, 0);
    shard.flush(&[stat(7)]);
    let named = recorder.transaction_id("GET /a, b").unwrap();
    shard.flush(&[Sample {
        op: LAG,
        transaction: named,
        expected: false,
        ..stat(0)
    }]);
    recorder.close();

    let log = std::fs::read_to_string(directory.path().join("histograms.hlog")).unwrap();
    let mut seen = Vec::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let packed = base64::engine::general_purpose::STANDARD
                .decode(interval.encoded_histogram())
                .unwrap();
            let histogram = histogram::unpack(&packed).unwrap();
            seen.push((
                interval.tag().unwrap().as_str().to_owned(),
                histogram.len(),
                histogram.max(),
            ));
        }
    }
    assert_eq!(
        seen,
        [
            (
                "0/2/measured/page_view/stat/ok/expected".to_owned(),
                2,
                2501
            ),
            (
                "0/2/measured/page_view/stat/ENOENT/expected".to_owned(),
                1,
                9
            ),
            ("1/2/measured/page_view/stat/ok/expected".to_owned(), 1, 7),
            (
                "1/2/measured/GET%20%2Fa%2C%20b/transaction.lag/ok/unexpected".to_owned(),
                1,
                0
            ),
        ]
    );

    let csv = std::fs::read_to_string(directory.path().join("timeline.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0].split(',').count(), 17);
    assert!(
        lines[1]
            .contains(",0,2,measured,3,page_view,stat,ok,true,2,4096,2000.5,1500,2501,2501,2501"),
        "{}",
        lines[1]
    );
    assert!(
        lines[4].contains(",\"GET /a, b\",transaction.lag,ok,false,1,0,0.0,0,0,0,0"),
        "{}",
        lines[4]
    );
}

#[test]
fn the_first_errors_and_the_slowest_ops_get_lines() {
    let directory = tempfile::tempdir().unwrap();
    let recorder = hour(Some(directory.path()));
    let error = |outcome| Event::Error {
        t_ns: 1_500_000_000,
        user: 4,
        target: 0,
        transaction: 1,
        op: STAT,
        outcome,
        path: b"a\"\xff".to_vec(),
    };
    for _ in 0..30 {
        recorder.log(&error(28));
    }
    assert!(!recorder.error_wanted(1, STAT, 28));
    assert!(recorder.error_wanted(1, STAT, 5));
    recorder.log(&Event::Stall(Hang {
        t_ns: 1_500_000_000,
        user: 4,
        target: 0,
        op: STAT,
        age_ns: 6_000_000_000,
        path: Vec::new(),
    }));
    let slow = |target, service_ns| SlowSample {
        t_ns: 2,
        user: 1,
        target,
        transaction: 0,
        op: STAT,
        outcome: 0,
        service_ns,
        path: b"p".to_vec(),
    };
    recorder.begin_segment(0, 0, 1_000_000_000_000);
    assert_eq!(recorder.slow_floor(0, STAT), u64::MAX);
    recorder.slow(slow(0, 99_999));
    recorder.measure();
    assert_eq!(recorder.slow_floor(0, STAT), 0);
    (1..=100).for_each(|ns| recorder.slow(slow(0, ns)));
    assert_eq!(recorder.slow_floor(0, STAT), 91);
    recorder.begin_segment(1, 0, 0);
    assert_eq!(recorder.slow_floor(0, STAT), 0);
    recorder.begin_segment(0, 1, 0);
    assert_eq!(recorder.slow_floor(0, STAT), 91);
    recorder.close();

    let text = std::fs::read_to_string(directory.path().join("events.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        lines
            .iter()
            .filter(|line| line["kind"] == kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("error").len(), 20);
    assert_eq!(of("error")[0]["outcome"], "ENOSPC");
    assert_eq!(of("error")[0]["path"], "a\"\u{fffd}");
    assert_eq!(of("stall")[0]["age_ns"], 6_000_000_000_u64);
    assert_eq!(of("stall")[0]["t_s"], 1.5);
    assert_eq!(of("error")[0]["transaction"], "login");
    let mut slowest: Vec<u64> = of("slow")
        .iter()
        .map(|line| line["service_ns"].as_u64().unwrap())
        .collect();
    slowest.sort_unstable();
    assert_eq!(slowest, (91..=100).collect::<Vec<_>>());
    let phases: Vec<_> = of("phase")
        .iter()
        .map(|line| line["phase"].as_str().unwrap())
        .collect();
    assert_eq!(phases, ["warm-up", "measured", "measured", "measured"]);
}

#[test]
fn interactive_users_keep_their_own_target_and_names() {
    let recorder = hour(None);
    assert_eq!(recorder.transaction_id("login"), Some(1));
    let first = recorder.transaction_id("free 0");
    assert_eq!(first, Some(2));
    (1..256).for_each(|n| assert!(recorder.transaction_id(&format!("free {n}")).is_some()));
    assert_eq!(recorder.transaction_id("one too many"), None);
    assert_eq!(recorder.transaction_id("free 0"), first);
    recorder.begin_segment(0, 0, 0);
    recorder.shard_on(1).flush(&[Sample {
        transaction: 257,
        ..stat(5)
    }]);
    recorder.shard(9).flush(&[stat(5)]);
    recorder.close();
    let seen: Vec<_> = recorder
        .totals()
        .iter()
        .map(|row| (row.target, row.transaction.to_string()))
        .collect();
    assert_eq!(
        seen,
        [(0, "page_view".to_owned()), (1, "free 255".to_owned())]
    );
}

#[test]
fn intervals_that_nobody_collects_are_merged() {
    let recorder = hour(None);
    let shard = recorder.shard(0);
    recorder.begin_segment(0, 0, 0);
    for _ in 0..1000 {
        shard.flush(&[stat(3)]);
        recorder.shared.cut(&mut hold(&recorder.shared.state));
    }
    let intervals = recorder.drain_intervals();
    assert_eq!(intervals.len(), QUEUED_INTERVALS);
    assert_eq!(
        intervals
            .iter()
            .map(|interval| total(&interval.rows))
            .sum::<u64>(),
        1000
    );
    assert_eq!(count(&intervals[0].rows[0]), 401);
    assert!(
        intervals
            .windows(2)
            .all(|pair| pair[0].end_ns <= pair[1].start_ns)
    );
}

#[test]
fn closing_twice_and_dropping_are_fine() {
    let recorder = hour(None);
    recorder.close();
    recorder.close();
    drop(recorder);
}

#[test]
fn a_full_disk_is_told_once_and_loses_nothing_when_there_is_room_again() {
    let Some(disk) = crate::layout_tests::SmallDisk::mount(64 << 10) else {
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
