use super::*;
use crate::histogram;
use crate::ops::{FAILED, Op, TRANSACTION};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const STAT: u8 = Op::Stat as u8;

fn config(interval_ns: u64, directory: Option<&Path>) -> RecorderConfig {
    RecorderConfig {
        transactions: vec!["page_view".to_owned(), "login".to_owned()],
        interval_ns,
        homes: 0,
        directory: directory.map(Path::to_owned),
        begin_ns: clock::now_ns(),
        begin_epoch_ns: clock::epoch_ns(),
        users: Box::new(|| 3),
        rested: Box::new(|| None),
        doorbell: Box::new(|| {}),
    }
}

pub(super) fn hour(directory: Option<&Path>) -> Arc<Recorder> {
    Recorder::start(config(3_600_000_000_000, directory)).unwrap()
}

pub(super) fn stat(ns: u64) -> Sample {
    Sample {
        ns,
        end_ns: 0,
        bytes: 0,
        transaction: 0,
        op: STAT,
        outcome: 0,
        expected: true,
    }
}

fn count(row: &RowData) -> u64 {
    histogram::unpack(&row.histogram).unwrap().count()
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
    recorder.end_segment(None);
    recorder.begin_segment(0, 7, 0);
    shard.flush(&[stat(1); 4]);
    recorder.end_segment(None);
    shard.flush(&[stat(1); 5]);
    recorder.close();
    let seen: Vec<_> = recorder
        .totals()
        .iter()
        .map(|row| (row.key.target, row.key.round, row.key.phase, count(row)))
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
    let mut state = State::new(None, 100);
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
        .map(|row| (row.key.target, row.key.transaction.to_string()))
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
fn what_is_handed_over_while_the_warm_up_is_written_is_left_out() {
    let held: Arc<Mutex<Option<crate::interpreter::Journal>>> = Arc::default();
    let late = Arc::clone(&held);
    let mut config = config(3_600_000_000_000, None);
    // Asked between what is merged and what is written.
    config.users = Box::new(move || {
        let journal = hold(&late).take();
        if let Some(mut journal) = journal {
            journal.flush();
        }
        1
    });
    let recorder = Recorder::start(config).unwrap();
    recorder.begin_segment(0, 0, 3_600_000_000_000);
    let thread_state = Arc::new(crate::thread_state::ThreadState::new(0));
    let (shard, now_ns) = (recorder.shard(0), clock::now_ns());
    let mut journal =
        crate::interpreter::Journal::new(Arc::clone(&recorder), shard, thread_state, 0, now_ns);
    journal.begin(0, now_ns, now_ns);
    // The first one is handed over at once, the second one with those that follow.
    for _ in 0..2 {
        journal.record(Op::Stat, (0, true), 0, (5, clock::now_ns()));
    }
    *hold(&held) = Some(journal);
    recorder.measure();
    recorder.close();
    assert!(hold(&held).is_none(), "it was handed over meanwhile");
    let totals = recorder.totals();
    let phases: Vec<_> = totals
        .iter()
        .map(|row| (row.key.phase, count(row)))
        .collect();
    assert_eq!(phases, [(Phase::WarmUp, 1)]);
}

#[test]
fn no_interval_ends_after_everybody_had_no_more_to_do() {
    let rested = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&rested);
    let mut config = config(10_000_000, None);
    let begin_ns = config.begin_ns;
    config.rested = Box::new(move || Some(told.load(Ordering::SeqCst)).filter(|ns| *ns != 0));
    let recorder = Recorder::start(config).unwrap();
    recorder.begin_segment(0, 0, 0);
    recorder.shard(0).flush(&[stat(5)]);
    let rested_ns = clock::now_ns();
    rested.store(rested_ns, Ordering::SeqCst);
    std::thread::park_timeout(Duration::from_millis(100));
    recorder.end_segment(Some(rested_ns));
    recorder.close();
    let intervals = recorder.drain_intervals();
    let counted: u64 = intervals.iter().map(|found| total(&found.rows)).sum();
    assert_eq!(counted, 1);
    assert!(
        intervals
            .iter()
            .all(|found| found.end_ns <= rested_ns - begin_ns)
    );
}
