//! Replay programs of the shipped traces and of small logs.

use super::lanes::Lanes;
use super::schedule::{Part, Schedule};
use super::table::Table;
use super::*;
use crate::program::EntryKind;
use crate::replay::names::Names;
use crate::replay::program::{Call, Recorded, ReplayCall, ScheduledCall, Wait};
use replayer_trace::{Keep, Request, TracerOverhead, import};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// The folders of the shipped traces.
pub(crate) fn shipped() -> Vec<PathBuf> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../traces");
    let sites = std::fs::read_dir(top)
        .unwrap()
        .map(|site| site.unwrap().path());
    let traces = sites.filter(|site| site.is_dir()).flat_map(|site| {
        let traces = std::fs::read_dir(site).unwrap();
        traces
            .map(|trace| trace.unwrap().path())
            .collect::<Vec<_>>()
    });
    traces.collect()
}

pub(crate) fn source_of(folder: &Path) -> Source {
    source_with(folder, Contended::Shared)
}

pub(super) fn source_with(folder: &Path, contended: Contended) -> Source {
    let sha256 = Trace::open(folder).unwrap().sha256();
    Source::open(folder.to_str().unwrap(), "t", &sha256, contended).unwrap()
}

/// A trace of an strace log with the root `/r`, kept until the folder is dropped.
pub(crate) fn imported(log: &str, manifest: &str) -> (tempfile::TempDir, PathBuf) {
    imported_below(&["/r"], log, manifest)
}

/// The same with these roots.
pub(super) fn imported_below(
    roots: &[&str],
    log: &str,
    manifest: &str,
) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("log");
    std::fs::write(&file, log).unwrap();
    let rows = folder.path().join("manifest.tsv");
    std::fs::write(&rows, format!("path\ttype\tsize\tmode\tlink\n{manifest}")).unwrap();
    let target = folder.path().join("trace");
    let request = Request {
        files: vec![file],
        target: target.clone(),
        roots: roots.iter().map(|root| root.as_bytes().to_vec()).collect(),
        aliases: Vec::new(),
        follows_links: false,
        format: Some("strace".to_owned()),
        manifest: (!manifest.is_empty()).then_some(rows),
        directories: Vec::new(),
        umasks: Vec::new(),
        process_roots: Vec::new(),
        mounts: Vec::new(),
        covers: Vec::new(),
        windows: Vec::new(),
        marker: "/replayer/request/".to_owned(),
        overhead: TracerOverhead::default(),
        keep: Keep::Needed,
        strict: true,
        note: String::new(),
    };
    import(&request, &mut |_| true).unwrap();
    (folder, target)
}

fn batches(replay_program: &ReplayProgram) -> Vec<Arc<CallBatch>> {
    let mut batches = replay_program.script.play();
    std::iter::from_fn(|| batches.next().unwrap()).collect()
}

/// Scheduled calls by lane, with what they wait for.
pub(super) fn scheduled(replay_program: &ReplayProgram) -> Vec<Vec<(ScheduledCall, Vec<Wait>)>> {
    let mut lanes = vec![Vec::new(); usize::from(replay_program.lanes)];
    for batch in batches(replay_program) {
        for (lane, scheduled) in batch.lanes.iter().enumerate() {
            for scheduled in scheduled {
                let (first, count) = (scheduled.waits.0 as usize, scheduled.waits.1 as usize);
                let waits = batch.waits[first..first + count].to_vec();
                lanes[lane].push((scheduled.clone(), waits));
            }
        }
    }
    lanes
}

/// Rows ascend in every lane, waits lead to earlier rows that other lanes play, slots are within bounds.
fn check(replay_program: &ReplayProgram) -> usize {
    let lanes = scheduled(replay_program);
    let mut played = HashSet::new();
    for (lane, scheduled) in lanes.iter().enumerate() {
        for (scheduled, _) in scheduled {
            played.insert((lane, scheduled.row));
        }
        assert!(
            scheduled
                .windows(2)
                .all(|pair| pair[0].0.row <= pair[1].0.row)
        );
        assert!(scheduled.windows(2).all(|pair| {
            matches!(pair[0].0.call, ReplayCall::Inherit { .. })
                || pair[0].0.start_ns <= pair[1].0.start_ns
        }));
    }
    for (lane, scheduled) in lanes.iter().enumerate() {
        for (scheduled, waits) in scheduled {
            for wait in waits {
                assert_ne!(usize::from(wait.lane), lane);
                assert!(wait.row < scheduled.row);
                assert!(played.contains(&(usize::from(wait.lane), wait.row)));
            }
            if let ReplayCall::Plain(Call::Open {
                slot: Some(slot), ..
            })
            | ReplayCall::Inherit { slot, .. } = scheduled.call
            {
                assert!(slot < replay_program.slots);
            }
        }
    }
    lanes.iter().map(Vec::len).sum()
}

pub(super) fn omitted(replay_program: &ReplayProgram) -> BTreeMap<&'static str, usize> {
    let mut reasons = BTreeMap::new();
    for (scheduled, _) in scheduled(replay_program).into_iter().flatten() {
        if let ReplayCall::Omit { reason } = scheduled.call {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    reasons
}

#[test]
fn a_scheduled_is_small() {
    assert!(
        size_of::<ScheduledCall>() <= 120,
        "{}",
        size_of::<ScheduledCall>()
    );
}

#[test]
fn every_shipped_trace_compiles_whole_and_by_request() {
    let folders = shipped();
    assert_eq!(folders.len(), 18);
    for folder in folders {
        let source = source_of(&folder);
        let events = Survey::of(&source.streams).unwrap().events;
        let replay_program = compile_whole(&source, true).unwrap();
        assert_eq!(
            check(&replay_program) as u64,
            events,
            "{}",
            folder.display()
        );
        assert_eq!(
            omitted(&replay_program),
            BTreeMap::new(),
            "{}",
            folder.display()
        );
        for label in source.labels().unwrap().iter().take(4) {
            let replay_programs = compile_requests(&source, label).unwrap();
            assert!(!replay_programs.is_empty());
            for replay_program in &replay_programs {
                assert!(check(replay_program) > 0, "{} {label}", folder.display());
            }
        }
    }
}

pub(super) const TWO_THREADS: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/d/log\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3 <0.000010>
10 1700000000.000100 write(3, \"\"..., 100) = 100 <0.000010>
10 1700000000.000200 mkdir(\"/r/d/new\", 0755) = 0 <0.000010>
11 1700000000.000300 openat(AT_FDCWD, \"/r/d/new/x\", O_RDWR|O_CREAT, 0600) = 4 <0.000010>
11 1700000000.000400 write(4, \"\"..., 7) = 7 <0.000010>
11 1700000000.000500 close(4) = 0 <0.000010>
10 1700000000.000600 close(3) = 0 <0.000010>
10 1700000000.000700 stat(\"/r/d/new/x\", {st_mode=S_IFREG|0600, st_size=7, ...}) = 0 <0.000010>
10 1700000000.000800 stat(\"/r/d/gone\", 0x7ff) = -1 ENOENT (No such file or directory) <0.000010>
";

#[test]
fn threads_become_lanes_and_edges_become_waits() {
    let (_folder, trace) = imported(TWO_THREADS, "d\td\t0\t755\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    assert_eq!(check(&replay_program), 9);
    assert_eq!(replay_program.lanes, 2);
    let lanes = scheduled(&replay_program);
    let open_x = &lanes[1][0];
    assert!(matches!(
        open_x.0.call,
        ReplayCall::Plain(Call::Open {
            mode: 0o600,
            flags: 0o102,
            ..
        })
    ));
    assert!(open_x.1.contains(&Wait { lane: 0, row: 2 }));
    let last = lanes[0].last().unwrap();
    assert_eq!(last.0.recorded, Recorded::Error(2));
}

#[test]
fn own_paths_and_their_tops_are_found() {
    let (_folder, trace) = imported(TWO_THREADS, "d\td\t0\t755\t\nd/log\tf\t50\t644\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let names = Names::new(&replay_program.paths, 1, 0);
    let mut tops: Vec<String> = names
        .tops(&replay_program)
        .map(|(_, top)| top.to_str().unwrap().to_owned())
        .collect();
    tops.sort();
    assert_eq!(tops, ["t/r/d/log~1", "t/r/d/new~1"]);
    let own: Vec<_> = names
        .entries(&replay_program)
        .map(|ready| (ready.path.to_owned(), ready.kind, ready.size, ready.mode))
        .collect();
    assert_eq!(
        own,
        [(c"t/r/d/log~1".to_owned(), EntryKind::File, 50, 0o644)]
    );
}

const FIFOS: &str = "\
10 1700000000.000000 getdents64(3</r>, 0x5 /* 3 entries */, 32768) = 72 <0.000010>
10 1700000000.000100 rename(\"/r/p\", \"/r/q\") = 0 <0.000010>
10 1700000000.000200 mknodat(AT_FDCWD, \"/r/s\", S_IFIFO|0600) = 0 <0.000010>
";

#[test]
fn a_file_stands_in_for_a_fifo() {
    let (_folder, trace) = imported(FIFOS, "p\tp\t0\t600\t\n");
    let source = source_of(&trace);
    let found = own_of_tree(&source.path_map);
    let stand_in = found
        .get(&b"t/r/p"[..])
        .map(|found| (found.kind, found.size));
    assert_eq!(stand_in, Some((EntryKind::File, 0)));
    let replay_program = compile_whole(&source, true).unwrap();
    assert!(omitted(&replay_program).is_empty());
    let [_, _, rename, mknod] = &scheduled(&replay_program)[0][..] else {
        panic!()
    };
    assert!(matches!(
        rename.0.call,
        ReplayCall::Plain(Call::Rename { .. })
    ));
    assert!(matches!(
        mknod.0.call,
        ReplayCall::Plain(Call::Mknod { mode: 0o600, .. })
    ));
}

#[test]
fn the_statistics_tell_how_much_is_laid_out_for_each_user() {
    for folder in shipped() {
        let statistics = replayer_trace::statistics(&folder, None).unwrap();
        let statistics: serde_json::Value = serde_json::from_str(&statistics).unwrap();
        let own = own::own_of_tree(&source_of(&folder).path_map);
        let bytes: u64 = own.values().map(|found| found.size).sum();
        assert_eq!(statistics["own"]["bytes"], bytes, "{}", folder.display());
    }
}

const CONTENDED: &str = "\
10 1700000000.000000 mkdir(\"/r/d\", 0755) = 0 <0.000010>
10 1700000000.000100 openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 3 <0.000010>
11 1700000000.000200 openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 3 <0.000010>
11 1700000000.000300 openat(AT_FDCWD, \"/r/log\", O_WRONLY|O_CREAT|O_APPEND, 0644) = 4 <0.000010>
10 1700000000.000400 openat(AT_FDCWD, \"/r/log\", O_WRONLY|O_CREAT|O_APPEND, 0644) = 4 <0.000010>
10 1700000000.000500 write(4, \"\"..., 10) = 10 <0.000010>
";

#[test]
fn what_only_one_can_make_is_own_even_where_threads_contend_for_it() {
    let (_folder, trace) = imported(CONTENDED, "");
    let opened = Trace::open(&trace).unwrap();
    let labels: Vec<_> = opened
        .paths()
        .unwrap()
        .into_iter()
        .map(|path| path.label)
        .collect();
    assert_eq!(
        labels
            .iter()
            .filter(|label| *label == "shared mutable")
            .count(),
        3
    );
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let names = Names::new(&replay_program.paths, 1, 0);
    let tops: Vec<_> = names.tops(&replay_program).map(|(_, top)| top).collect();
    assert_eq!(tops, [c"t/r/d~1"]);
}

const REQUESTS: &str = "\
10 1700000000.000000 mkdir(\"/r/d\", 0755) = 0 <0.000010>
10 1700000000.000100 openat(AT_FDCWD, \"/r/d/a\", O_RDWR|O_CREAT, 0600) = 3 <0.000010>
10 1700000000.000200 write(3, \"\"..., 100) = 100 <0.000010>
10 1700000000.000300 rename(\"/r/d\", \"/r/e\") = 0 <0.000010>
10 1700000000.000350 symlink(\"e/a\", \"/r/l\") = 0 <0.000010>
10 1700000000.000400 stat(\"/replayer/request/second\", 0x7ff) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000500 write(3, \"\"..., 20) = 20 <0.000010>
10 1700000000.000600 stat(\"/r/l\", {st_mode=S_IFREG|0600, st_size=120, ...}) = 0 <0.000010>
10 1700000000.000700 unlink(\"/r/e/a\") = 0 <0.000010>
10 1700000000.000800 close(3) = 0 <0.000010>
10 1700000000.000900 stat(\"/replayer/request/end\", 0x7ff) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.001000 mkdir(\"/r/f\", 0755) = 0 <0.000010>
";

#[test]
fn a_request_finds_what_the_events_before_it_left() {
    let (_folder, trace) = imported(REQUESTS, "");
    let source = source_of(&trace);
    let replay_programs = compile_requests(&source, "second").unwrap();
    let [replay_program] = &replay_programs[..] else {
        panic!("one request")
    };
    check(replay_program);
    let names = Names::new(&replay_program.paths, 2, 5);
    let own: Vec<_> = names
        .entries(replay_program)
        .map(|ready| {
            (
                ready.path.to_str().unwrap().to_owned(),
                ready.size,
                ready.link.into_owned(),
            )
        })
        .collect();
    let expected: [(String, u64, Vec<u8>); 3] = [
        ("t/r/e~2.5".to_owned(), 0, Vec::new()),
        ("t/r/e~2.5/a".to_owned(), 100, Vec::new()),
        ("t/r/l~2.5".to_owned(), 0, b"e~2.5/a".to_vec()),
    ];
    assert_eq!(own, expected);
    let lanes = scheduled(replay_program);
    assert!(matches!(
        lanes[0][0].0.call,
        ReplayCall::Inherit {
            slot: 0,
            offset: 100,
            flags: 2,
            ..
        }
    ));
    assert_eq!(lanes[0].len(), 5);
    assert_eq!(lanes[0][1].0.gap_ns.min(100_000), lanes[0][1].0.gap_ns);
}

#[test]
fn a_trace_that_is_streamed_gives_the_scheduled_of_one_that_is_kept() {
    let folder = shipped()
        .into_iter()
        .find(|folder| folder.ends_with("php/sessions"))
        .unwrap();
    let source = source_of(&folder);
    let kept = compile_whole(&source, true).unwrap();
    let schedule = whole(&source);
    let streamed = Streamed(Arc::new(schedule));
    let mut batches = streamed.play();
    let mut expected = kept.script.play();
    while let Some(one) = expected.next().unwrap() {
        let other = batches.next().unwrap().unwrap();
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
    assert!(batches.next().unwrap().is_none());
}

#[test]
fn a_performance_that_is_given_up_ends_its_reading_thread() {
    let folder = shipped()
        .into_iter()
        .find(|folder| folder.ends_with("linux/untar"))
        .unwrap();
    let source = source_of(&folder);
    let schedule = Arc::new(whole(&source));
    let mut batches = Streamed(Arc::clone(&schedule)).play();
    batches.next().unwrap();
    drop(batches);
    while Arc::strong_count(&schedule) > 1 {
        std::thread::yield_now();
    }
}

pub(super) fn whole(source: &Source) -> Schedule {
    let survey = Survey::of(&source.streams).unwrap();
    let lanes = Lanes::deal(&survey.spans);
    Schedule {
        streams: source.streams.clone(),
        path_map: Arc::clone(&source.path_map),
        table: Table::of_all(&source.path_map).unwrap(),
        far: survey.far(|thread| lanes.of(thread)),
        lanes,
        part: Part::Whole,
        rows: (0, survey.events.saturating_sub(1)),
        begin_ns: 0,
        calibration: source.calibration,
        users: source.users,
        inherited: Vec::new(),
    }
}
