use super::*;
use crate::replay::play::lane_replay::Ended;
use crate::replay::program::Call;

const OK: Recorded = Recorded::Well;

pub(super) fn open(at: Place, slot: u32, flags: i32) -> ReplayCall {
    ReplayCall::Plain(Call::Open {
        at,
        slot: Some(slot),
        flags: flags.cast_unsigned(),
        mode: 0o640,
        resolve: 0,
    })
}

fn read(slot: u32, size: u64, offset: Option<u64>) -> ReplayCall {
    ReplayCall::Read(DataCall {
        slot,
        size,
        offset,
        vector: None,
    })
}

pub(super) fn write(slot: u32, size: u64, offset: Option<u64>) -> ReplayCall {
    ReplayCall::Write(DataCall {
        slot,
        size,
        offset,
        vector: None,
    })
}

#[test]
fn what_happens_as_recorded_matches() {
    let ground = Ground::new();
    ground.write("t/a", 100);
    let mut tape = Tape::new(1);
    let (a, missing) = (tape.at("t/a"), tape.at("t/missing"));
    tape.add(0, ReplayCall::Plain(Call::Stat { at: a }), OK);
    tape.add(
        0,
        ReplayCall::Plain(Call::Stat { at: missing }),
        Recorded::Error(2),
    );
    tape.add(0, open(a, 0, libc::O_RDWR), Recorded::Exactly(0));
    tape.add(0, read(0, 4096, None), Recorded::Exactly(100));
    tape.add(0, read(0, 4096, None), Recorded::Exactly(0));
    tape.add(0, read(0, 10, Some(95)), Recorded::Exactly(5));
    tape.add(0, write(0, 50, None), Recorded::Exactly(50));
    tape.add(0, ReplayCall::Plain(Call::Fstat { slot: 0 }), OK);
    tape.add(0, ReplayCall::CloseDuplicate { slot: 0 }, OK);
    tape.add(0, ReplayCall::Plain(Call::Close { slot: 0 }), OK);
    let shown = ground.play(&tape.replay_program());
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["events"], 10);
    assert_eq!(shown.ledger["matched"], 10);
    assert_eq!(
        std::fs::metadata(ground.run().join("t/a")).unwrap().len(),
        150
    );
}

#[test]
fn calls_larger_than_the_buffers_are_made_as_one() {
    let ground = Ground::new();
    ground.write("t/a", 0);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    let size = 5 << 20;
    tape.add(0, open(a, 0, libc::O_RDWR), OK);
    tape.add(0, write(0, size, None), Recorded::Exactly(size));
    tape.add(0, write(0, 9000, Some(size)), Recorded::Exactly(9000));
    tape.add(0, read(0, size, Some(0)), Recorded::Exactly(size));
    let vector = ReplayCall::Read(DataCall {
        slot: 0,
        size: 100,
        offset: None,
        vector: Some(0),
    });
    tape.add(0, vector, Recorded::Exactly(100));
    assert!(ground.play(&tape.replay_program()).is_clean());
}

#[test]
fn flags_of_vectored_calls_are_passed_on() {
    let ground = Ground::new();
    ground.write("t/a", 5000);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    let at_end = ReplayCall::Write(DataCall {
        slot: 0,
        size: 10,
        offset: Some(0),
        vector: Some(libc::RWF_APPEND.cast_unsigned() | libc::RWF_DSYNC.cast_unsigned()),
    });
    let on = ReplayCall::Read(DataCall {
        slot: 0,
        size: 5000,
        offset: None,
        vector: Some(libc::RWF_HIPRI.cast_unsigned()),
    });
    tape.add(0, open(a, 0, libc::O_RDWR), OK);
    tape.add(0, at_end, Recorded::Exactly(10));
    tape.add(0, on, Recorded::Exactly(5000));
    tape.add(0, read(0, 100, None), Recorded::Exactly(10));
    assert!(ground.play(&tape.replay_program()).is_clean());
    assert_eq!(ground.run().join("t/a").metadata().unwrap().len(), 5010);
}

/// A file of tmpfs, which has no `RWF_DONTCACHE`, and what became of a write with it that was recorded to end so.
fn favour(recorded: Recorded) -> (u64, Shown) {
    let ground = Ground::new();
    ground.write("t/a", 0);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    let uncached = ReplayCall::Write(DataCall {
        slot: 0,
        size: 10,
        offset: None,
        vector: Some(0x80),
    });
    tape.add(0, open(a, 0, libc::O_RDWR), OK);
    tape.add(0, uncached, recorded);
    let shown = ground.play(&tape.replay_program());
    let size = ground.run().join("t/a").metadata().unwrap().len();
    (size, shown)
}

#[test]
fn what_was_written_with_flags_that_a_file_system_need_not_have_is_written_without() {
    let (size, shown) = favour(Recorded::Exactly(10));
    assert!(shown.is_clean());
    assert_eq!(size, 10);
    let (size, shown) = favour(Recorded::Error(libc::EOPNOTSUPP));
    assert_eq!((size, shown.ledger["matched"].as_u64()), (0, Some(2)));
}

#[test]
fn differences_are_counted_and_the_first_is_told() {
    let ground = Ground::new();
    ground.write("t/a", 100);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    tape.add(
        0,
        ReplayCall::Plain(Call::Stat { at: a }),
        Recorded::Error(2),
    );
    tape.add(0, open(a, 3, libc::O_RDONLY), OK);
    tape.add(0, read(3, 4096, None), Recorded::Exactly(200));
    tape.add(0, ReplayCall::Plain(Call::Close { slot: 3 }), OK);
    tape.add(0, ReplayCall::Plain(Call::Fstat { slot: 3 }), OK);
    tape.add(
        0,
        ReplayCall::Omit {
            reason: "special file",
        },
        Recorded::Unknown,
    );
    let shown = ground.play(&tape.replay_program());
    assert_eq!(shown.result, Err(Halt::Failed));
    let failed = shown.failed.unwrap();
    assert_eq!((failed.path.as_slice(), failed.outcome), (&b"t/a"[..], 138));
    let ledger = shown.ledger;
    assert_eq!(ledger["matched"], 2);
    assert_eq!(ledger["compared"], 5);
    assert_eq!(ledger["omitted"], json!({"special file": 1}));
    let first = json!({"target": 0, "user": 0, "performance": 0, "trace": 0, "row": 0, "thread": 0,
        "op": "stat", "path": "t/a", "recorded": "ENOENT", "got": "ok",
        "result_recorded": null, "result_got": 0});
    assert_eq!(ledger["examples"][0], first);
    assert_eq!(ledger["examples"][1]["got"], "less");
    assert_eq!(ledger["examples"][1]["result_got"], 100);
    assert_eq!(ledger["examples"][2]["got"], "EBADF");
    assert_eq!(ledger["examples"][2]["path"], "t/a");
    assert_eq!(ledger["diverged"].as_array().unwrap().len(), 3);
}

#[test]
fn a_call_that_ended_before_it_began_took_no_time() {
    let ended = |start_ns, end_ns| Ended {
        answer: Ok(0),
        bytes: 0,
        start_ns,
        end_ns,
    };
    assert_eq!(ended(500, 800).ns(), 300);
    // The processor's counter has stepped back.
    assert_eq!(ended(800, 500).ns(), 0);
}

#[test]
fn an_open_that_was_recorded_to_fail_leaves_nothing_open() {
    let ground = Ground::new();
    ground.write("t/a", 1);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    let call = ReplayCall::Plain(Call::Open {
        at: a,
        slot: None,
        flags: 0,
        mode: 0,
        resolve: 0,
    });
    for _ in 0..3000 {
        tape.add(0, call.clone(), Recorded::Error(2));
    }
    let before = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let shown = ground.play(&tape.replay_program());
    assert_eq!(shown.result, Err(Halt::Failed));
    let after = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(after < before + 1000, "{before} {after}");
}

#[test]
fn listings_must_agree_in_their_sum_only() {
    let ground = Ground::new();
    for name in 0..300 {
        ground.write(&format!("t/d/{name:0100}"), 0);
    }
    let mut tape = Tape::new(1);
    let d = tape.at("t/d");
    let list = ReplayCall::List {
        slot: 0,
        size: 32768,
    };
    let directory = libc::O_RDONLY | libc::O_DIRECTORY;
    tape.add(0, open(d, 0, directory), OK);
    tape.add(0, list.clone(), Recorded::Exactly(302));
    tape.add(0, list.clone(), Recorded::Exactly(0));
    let rewind = ReplayCall::Plain(Call::Lseek {
        slot: 0,
        offset: 0,
        whence: 0,
    });
    tape.add(0, rewind.clone(), Recorded::Exactly(0));
    tape.add(0, list.clone(), Recorded::Exactly(1));
    tape.add(0, list.clone(), Recorded::Exactly(301));
    tape.add(0, list.clone(), Recorded::Exactly(0));
    let shown = ground.play(&tape.replay_program());
    assert!(shown.is_clean());
    assert!(shown.ledger["allowed"]["listing-batches"].as_u64().unwrap() >= 2);
    tape.add(0, rewind, Recorded::Exactly(0));
    tape.add(0, list.clone(), Recorded::Exactly(303));
    tape.add(0, list, Recorded::Exactly(0));
    let shown = ground.play(&tape.replay_program());
    assert_eq!(shown.ledger["examples"][0]["result_got"], 302);
    assert_eq!(shown.ledger["examples"][0]["result_recorded"], 303);
}

#[test]
fn every_performance_has_files_of_its_own_that_go_with_it() {
    let ground = Ground::new();
    std::fs::create_dir(ground.run().join("t")).unwrap();
    let mut tape = Tape::new(1);
    let d = tape.own("t/d", 3);
    let f = tape.own("t/d/f", 3);
    let link = tape.own("t/link", 6);
    let made = tape.own("t/made", 6);
    tape.entry(d, EntryKind::Directory, 0, "");
    tape.entry(f, EntryKind::File, 100_000, "");
    tape.entry(link, EntryKind::Link, 0, "d/f");
    tape.tops = vec![d, link, made];
    tape.add(0, open(place(f), 0, libc::O_RDONLY), OK);
    tape.add(0, read(0, 1 << 20, None), Recorded::Exactly(100_000));
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
    tape.add(0, open(place(made), 1, flags), OK);
    tape.add(0, ReplayCall::Plain(Call::Unlink { at: place(f) }), OK);
    let thread_state = Arc::new(ThreadState::new(2));
    let shown = ground.show(&tape.replay_program(), ReplayPace::Asap, 3, &thread_state);
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["performances"], 3);
    assert_eq!(shown.ledger["targets"][0]["performances"], 3);
    assert_eq!(names(&ground.run()), ["t"]);
    // Who comes next has not waited for what was laid out and removed.
    assert!(shown.aside_ns > 0);
    assert_eq!(shown.aside_ns, thread_state.outside_ns());
}

#[test]
fn a_layout_that_fails_is_in_nobodys_time_and_leaves_nothing() {
    let ground = Ground::new();
    std::fs::create_dir(ground.run().join("t")).unwrap();
    let mut tape = Tape::new(1);
    let d = tape.own("t/d", 3);
    let f = tape.own("t/d/f", 3);
    let lost = tape.own("t/missing/f", 9);
    tape.entry(d, EntryKind::Directory, 0, "");
    tape.entry(f, EntryKind::File, 100_000, "");
    tape.entry(lost, EntryKind::File, 1, "");
    tape.tops = vec![d];
    tape.add(
        0,
        ReplayCall::Plain(Call::Stat { at: place(f) }),
        Recorded::Well,
    );
    let thread_state = Arc::new(ThreadState::new(2));
    let shown = ground.show(&tape.replay_program(), ReplayPace::Asap, 2, &thread_state);
    assert_eq!(shown.result, Err(Halt::Failed));
    assert_eq!(shown.failed.unwrap().path, b"t/missing~2.1/f");
    assert_eq!(names(&ground.run()), ["t"]);
    assert!(shown.aside_ns > 0);
    assert_eq!(shown.aside_ns, thread_state.outside_ns());
}

#[test]
fn a_file_that_was_open_before_is_there_at_its_offset() {
    let ground = Ground::new();
    ground.write("t/a", 100);
    let mut tape = Tape::new(1);
    let path = tape.path("t/a");
    let flags = (libc::O_RDWR | libc::O_TRUNC).cast_unsigned();
    let inherit = ReplayCall::Inherit {
        path,
        slot: 5,
        flags,
        offset: 40,
    };
    tape.add(0, inherit, Recorded::Unknown);
    tape.add(0, read(5, 100, None), Recorded::Exactly(60));
    let shown = ground.play(&tape.replay_program());
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["events"], 1);
}

#[test]
fn a_step_of_a_transaction_draws_a_request_and_plays_it() {
    let mut ground = Ground::new();
    ground.write("t/a", 1);
    let mut tape = Tape::new(1);
    let (a, missing) = (tape.at("t/a"), tape.at("t/b"));
    tape.add(0, ReplayCall::Plain(Call::Stat { at: a }), OK);
    let good = tape.replay_program();
    tape.add(0, ReplayCall::Plain(Call::Stat { at: missing }), OK);
    let setting = Arc::get_mut(&mut ground.setting).unwrap();
    let program = Arc::get_mut(&mut setting.program).unwrap();
    program.replays = crate::program::Replays::made("page", vec![good, tape.replay_program()]);
    program.transactions[0].steps = [crate::program::Step::Replay(Box::new(Replay {
        trace: 0,
        request: Some(crate::document::Text("page".to_owned())),
        pace: ReplayPace::Asap,
        speed_percent: 100,
    }))]
    .into();
    let thread_state = Arc::new(ThreadState::new(0));
    let setting = &ground.setting;
    let shard = setting.recorder.shard(0);
    let recorder = Arc::clone(&setting.recorder);
    let journal = Journal::new(
        recorder,
        shard,
        Arc::clone(&thread_state),
        0,
        setting.begin_ns,
    );
    let mut lane_threads = LaneThreads::new(setting, &thread_state);
    lane_threads.enter(0, &ground.folder);
    let kernel = <Guarded as crate::sys::Kernel>::enter(&ground.folder).unwrap();
    let interpreter =
        crate::interpreter::Interpreter::new(setting, &thread_state, kernel, journal, 0);
    let mut interpreter = interpreter.with_lane_threads(&mut lane_threads);
    for _ in 0..40 {
        interpreter.transact(now_ns());
    }
    interpreter.journal.flush();
    let rows = ground.totals();
    let count = |op: &str, outcome: &str| {
        let found = rows
            .iter()
            .find(|row| row.key.op == op && row.key.outcome == outcome);
        found.map_or(0, |row| {
            crate::histogram::unpack(&row.histogram).unwrap().count()
        })
    };
    let (went_well, failed) = (count("transaction", "ok"), count("transaction", "failed"));
    assert_eq!(went_well + failed, 40);
    assert!(went_well > 5 && failed > 5, "{went_well} {failed}");
    assert_eq!(count("stat", "ENOENT"), failed);
    assert_eq!(count("stat", "ok"), 40);
}

#[test]
fn data_past_the_page_cache_is_aligned() {
    let ground = Ground::on("/tmp");
    ground.write("t/a", 0);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    tape.add(0, open(a, 0, libc::O_RDWR | libc::O_DIRECT), OK);
    for size in [4096, 8192, 1 << 20] {
        tape.add(0, write(0, size, Some(0)), Recorded::Exactly(size));
        tape.add(0, read(0, size, Some(0)), Recorded::Exactly(size));
    }
    assert!(ground.play(&tape.replay_program()).is_clean());
}
