//! The order that a trace demands is kept by lanes and waits.

use super::tests::{cues, shipped, source_of};
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
        let reel = compile_whole(&source, true).unwrap();
        let edges = Trace::open(folder).unwrap().edges().unwrap();
        assert!(
            edges
                .iter()
                .any(|(event, earlier)| event - earlier > waits::WINDOW)
        );
        let seen = what_is_over(&reel);
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
fn what_is_over(reel: &Reel) -> BTreeMap<u64, (usize, Vec<u64>)> {
    let lanes = cues(reel);
    let mut rows: Vec<_> = lanes
        .into_iter()
        .enumerate()
        .flat_map(|(lane, cues)| {
            cues.into_iter()
                .map(move |(cue, waits)| (cue.row, lane, waits))
        })
        .collect();
    rows.sort_by_key(|(row, ..)| *row);
    let mut now = vec![vec![0; usize::from(reel.lanes)]; usize::from(reel.lanes)];
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
