//! The order that a trace demands is kept by lanes and waits.

use super::tests::{imported, scheduled, shipped, source_of};
use super::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[test]
fn every_edge_of_a_trace_is_kept_by_waits_and_the_order_of_lanes() {
    let folders = shipped();
    let several = |folder: &&PathBuf| {
        ["php/sessions", "deploy-rsync"]
            .iter()
            .any(|name| folder.ends_with(name))
    };
    for folder in folders.iter().filter(several) {
        let source = source_of(folder);
        let replay_program = compile_whole(&source, true).unwrap();
        let edges = Trace::open(folder).unwrap().edges().unwrap();
        assert!(
            edges
                .iter()
                .any(|(event, earlier)| event - earlier > waits::WINDOW)
        );
        let seen = what_is_over(&replay_program);
        for (event, earlier) in edges {
            let lane = seen[&earlier].0;
            assert!(
                seen[&event].1[lane] > earlier,
                "{event} waits for {earlier}"
            );
        }
    }
}

/// Of each row: its lane, and how far each lane must have come when it begins (the row after).
fn what_is_over(replay_program: &ReplayProgram) -> BTreeMap<u64, (usize, Vec<u64>)> {
    let lanes = scheduled(replay_program);
    let mut rows: Vec<_> = lanes
        .into_iter()
        .enumerate()
        .flat_map(|(lane, scheduled)| {
            scheduled
                .into_iter()
                .map(move |(scheduled, waits)| (scheduled.row, lane, waits))
        })
        .collect();
    rows.sort_by_key(|(row, ..)| *row);
    let mut now =
        vec![vec![0; usize::from(replay_program.lanes)]; usize::from(replay_program.lanes)];
    let mut seen: BTreeMap<u64, (usize, Vec<u64>)> = BTreeMap::new();
    for (row, lane, waits) in rows {
        for wait in waits {
            let (_, known) = seen[&wait.row].clone();
            let over = now[lane].iter_mut().zip(known);
            over.for_each(|(one, other)| *one = (*one).max(other));
            let waited = &mut now[lane][usize::from(wait.lane)];
            *waited = (*waited).max(wait.row + 1);
        }
        seen.insert(row, (lane, now[lane].clone()));
        now[lane][lane] = row + 1;
    }
    seen
}

/// The think times before the first events of the threads of a log, in milliseconds.
fn first_gaps(log: &str) -> Vec<u64> {
    let (_folder, trace) = imported(log, "");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    assert!(lanes[1][0].1.iter().any(|wait| wait.lane == 0));
    let firsts = lanes.iter().map(|lane| &lane[0].0);
    firsts
        .map(|scheduled| scheduled.gap_ns.max(scheduled.after_ns) / 1_000_000)
        .collect()
}

#[test]
fn time_that_passed_before_the_event_waited_for_is_not_waited_again() {
    let attached = "\
10 1700000000.000000 getpid() = 10 <0.000010>
10 1700000002.000000 mkdir(\"/r/a\", 0755) = 0 <0.000010>
11 1700000002.500000 mkdir(\"/r/b\", 0755) = 0 <0.000010>
";
    assert_eq!(first_gaps(attached), [2000, 499]);
    let needs_what_came_later = "\
10 1700000000.000000 clone(child_stack=NULL, flags=SIGCHLD) = 11 <0.000010>
10 1700000002.000000 mkdir(\"/r/a\", 0755) = 0 <0.000010>
11 1700000002.500000 mkdir(\"/r/a/b\", 0755) = 0 <0.000010>
";
    assert_eq!(first_gaps(needs_what_came_later), [2000, 499]);
}

#[test]
fn a_pause_counts_from_what_kept_its_thread_waiting_and_from_nothing_else_that_is_waited_for() {
    let log = "\
10 1700000000.000000 mkdir(\"/r/a\", 0755) = 0 <0.100000>
10 1700000000.100000 pipe2([4, 5], 0) = 0 <0.000010>
10 1700000000.200000 clone(child_stack=NULL, flags=SIGCHLD) = 11 <0.000010>
11 1700000001.000000 mkdir(\"/r/b\", 0755) = 0 <0.000010>
11 1700000001.500000 write(5, \"x\", 1) = 1 <0.000010>
10 1700000001.500000 read(4, \"x\", 1) = 1 <0.000010>
11 1700000003.000000 mkdir(\"/r/c\", 0755) = 0 <0.000010>
10 1700000003.500000 access(\"/r/c\", F_OK) = 0 <0.000010>
";
    let (_folder, trace) = imported(log, "");
    let lanes = scheduled(&compile_whole(&source_of(&trace), true).unwrap());
    let (scheduled, waits) = lanes[0].last().unwrap();
    let rows: Vec<u64> = waits.iter().map(|wait| wait.row).collect();
    assert_eq!((rows, scheduled.after_ns / 1_000_000), (vec![1, 2], 2499));
    assert_eq!(scheduled.start_ns / 100_000_000, 35);
}

#[test]
fn who_waited_for_a_process_without_events_waits_as_long_again() {
    let log = "\
10 1700000000.000000 mkdir(\"/r/a\", 0755) = 0 <0.100000>
10 1700000000.100000 pipe2([4, 5], 0) = 0 <0.000010>
10 1700000000.200000 clone(child_stack=NULL, flags=SIGCHLD) = 11 <0.000010>
10 1700000000.300000 read(4 <unfinished ...>
11 1700000060.000000 write(5, \"x\", 1) = 1 <0.000010>
10 1700000060.000000 <... read resumed>, \"x\", 1) = 1 <59.700000>
10 1700000060.100000 mkdir(\"/r/b\", 0755) = 0 <0.000010>
";
    let another = "12 1700000060.100000 mkdir(\"/r/c\", 0755) = 0 <0.000010>\n";
    for log in [log.to_owned(), format!("{log}{another}")] {
        let (_folder, trace) = imported(&log, "");
        let lanes = scheduled(&compile_whole(&source_of(&trace), true).unwrap());
        let scheduled = &lanes[0][1].0;
        assert_eq!(
            (
                scheduled.gap_ns / 1_000_000_000,
                scheduled.start_ns / 1_000_000_000
            ),
            (60, 60)
        );
    }
}

#[test]
fn a_thread_thinks_since_the_event_behind_which_it_was_made() {
    let spawned = "\
10 1700000000.000000 mkdir(\"/r/a\", 0755) = 0 <0.000010>
10 1700000001.000000 clone(child_stack=NULL, flags=SIGCHLD) = 11 <0.000010>
11 1700000002.500000 mkdir(\"/r/a/b\", 0755) = 0 <0.000010>
";
    assert_eq!(first_gaps(spawned), [0, 2499]);
}
