use super::*;
use crate::program::LockKind;
use crate::replay::order::check_pairs;
use crate::replay::program::Call;
use crate::sys::Kernel;
use crate::thread_state::{CUT, Doing};
use crate::user_threads::interrupt;
use proptest::prelude::*;
use std::time::Duration;

fn stat(tape: &mut Tape) -> ReplayCall {
    let at = tape.at("t");
    ReplayCall::Plain(Call::Stat { at })
}

fn ground() -> Ground {
    let ground = Ground::new();
    std::fs::create_dir(ground.run().join("t")).unwrap();
    ground
}

/// Events of lanes, and which earlier events they wait for: (lane, earlier rows as shares of the row).
fn orders() -> impl Strategy<Value = (usize, Vec<(usize, Vec<f64>)>)> {
    (2..9_usize).prop_flat_map(|lanes| {
        let event = (0..lanes, proptest::collection::vec(0.0..1.0, 0..3));
        (Just(lanes), proptest::collection::vec(event, 1..400))
    })
}

fn tape_of(lanes: usize, events: &[(usize, Vec<f64>)]) -> (Tape, Vec<(u64, u64)>) {
    let mut tape = Tape::new(lanes);
    let call = stat(&mut tape);
    let mut edges = Vec::new();
    for (row, (lane, earlier)) in (0_u64..).zip(events) {
        let mut waits = Vec::new();
        for share in earlier.iter().filter(|_| row > 0) {
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a few hundred rows"
            )]
            let of = (share * row as f64) as u64;
            let of_lane = events[usize::try_from(of).unwrap()].0;
            if of_lane != *lane {
                let lane = u16::try_from(of_lane).unwrap();
                waits.push(Wait { lane, row: of });
                edges.push((row, of));
            }
        }
        tape.add_after(*lane, call.clone(), Recorded::Well, &waits);
    }
    (tape, edges)
}

/// The rows of a tape in batches of so many.
fn batched(tape: &Tape, rows: u64) -> Arc<ReplayProgram> {
    let batches = (0..tape.rows.div_ceil(rows)).map(|number| {
        let within = |scheduled: &&ScheduledCall| scheduled.row / rows == number;
        let lanes = tape.lanes.iter();
        Arc::new(CallBatch {
            lanes: lanes
                .map(|lane| lane.iter().filter(within).cloned().collect())
                .collect(),
            waits: tape.waits.clone().into(),
            texts: Box::default(),
        })
    });
    tape.replay_program_of(batches.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn lanes_never_violate_an_edge((lanes, events) in orders(), rows in 1..100_u64) {
        let (tape, edges) = tape_of(lanes, &events);
        let (ground, log) = ground().logged();
        let thread_state = Arc::new(ThreadState::new(3));
        let shown = ground.show(&batched(&tape, rows), ReplayPace::Asap, 2, &thread_state);
        prop_assert!(shown.is_clean());
        let threads: Vec<u32> = events.iter().map(|(lane, _)| u32::try_from(*lane).unwrap()).collect();
        let report = check_pairs(&edges, &threads, &log).unwrap();
        prop_assert_eq!(report.performances, 2);
        prop_assert_eq!(report.events, 2 * events.len() as u64);
        prop_assert_eq!(report.edges, 2 * edges.len() as u64);
        prop_assert_eq!(report.violated, 0);
    }
}

#[test]
fn the_checker_finds_what_is_out_of_order() {
    let (ground, log) = ground().logged();
    let mut tape = Tape::new(1);
    let call = stat(&mut tape);
    for _ in 0..3 {
        tape.add(0, call.clone(), Recorded::Well);
    }
    assert!(ground.play(&tape.replay_program()).is_clean());
    let threads = [0, 0, 0];
    assert_eq!(check_pairs(&[(2, 0)], &threads, &log).unwrap().violated, 0);
    let report = check_pairs(&[(0, 2)], &threads, &log).unwrap();
    assert_eq!(report.violated, 1);
    let first = report.first.unwrap();
    assert_eq!(
        (first["event"].as_u64(), first["waits_for"].as_u64()),
        (Some(0), Some(2))
    );
}

/// A user's performance on a thread of its own; `during` looks at it and ends it.
fn interrupted(tape: &Tape, pace: ReplayPace, during: impl FnOnce(&Arc<ThreadState>)) -> Shown {
    let ground = ground();
    ground.write("t/lock", 0);
    let thread_state = Arc::new(ThreadState::new(0));
    let replay_program = tape.replay_program();
    std::thread::scope(|scope| {
        let user = scope.spawn(|| ground.show(&replay_program, pace, 1, &thread_state));
        during(&thread_state);
        user.join().unwrap()
    })
}

/// Wait until a thread of the user is seen doing something, or has at least started.
pub(super) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..5000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
    panic!("it never came")
}

#[test]
fn a_cut_reaches_every_lane() {
    let mut tape = Tape::new(3);
    let call = stat(&mut tape);
    let never = Wait { lane: 2, row: 1 };
    tape.add(0, call.clone(), Recorded::Well);
    let long = tape.add(2, call.clone(), Recorded::Well);
    tape.add_after(0, call.clone(), Recorded::Well, &[never]);
    tape.add_after(1, call, Recorded::Well, &[never]);
    tape.lanes[2][0].gap_ns = 3_600_000_000_000;
    assert_eq!(long, 1);
    let shown = interrupted(&tape, ReplayPace::Closed, |thread_state| {
        let mut mates = 0;
        eventually(|| {
            mates = 0;
            thread_state.each_mate(|_| mates += 1);
            (mates == 2).then_some(())
        });
        // As the user threads does it.
        thread_state.raise(CUT);
        thread_state.each_mate(|mate| interrupt(&mate.thread_state, &mate.thread));
    });
    assert_eq!(shown.result, Err(Halt::Cut));
    assert_eq!(shown.ledger["diverged"], json!([]));
}

#[test]
fn a_lane_that_waits_for_a_lock_is_seen_and_interrupted() {
    let mut tape = Tape::new(2);
    let at = tape.at("t/lock");
    let open = |slot| {
        ReplayCall::Plain(Call::Open {
            at,
            slot: Some(slot),
            flags: libc::O_RDWR.cast_unsigned(),
            mode: 0,
            resolve: 0,
        })
    };
    tape.add(0, open(0), Recorded::Well);
    let lock = |slot| {
        ReplayCall::Plain(Call::Flock {
            slot,
            kind: LockKind::Exclusive,
            wait: true,
        })
    };
    let held = tape.add(0, lock(0), Recorded::Well);
    tape.add(1, open(1), Recorded::Well);
    let after = Wait { lane: 0, row: held };
    tape.add_after(1, lock(1), Recorded::Well, &[after]);
    let stuck = Wait { lane: 1, row: 3 };
    let at = place(at.path);
    tape.add_after(
        0,
        ReplayCall::Plain(Call::Stat { at }),
        Recorded::Well,
        &[stuck],
    );
    let shown = interrupted(&tape, ReplayPace::Asap, |thread_state| {
        let doing: Doing = eventually(|| {
            thread_state.doing_of_any().filter(|doing| {
                doing.op_name() == "flock" && now_ns() - doing.since_ns > 50_000_000
            })
        });
        let ground = setting(PLAN).unwrap();
        assert_eq!(doing.place.path(&ground.program, thread_state), b"t/lock");
        thread_state.raise(CUT);
        eventually(|| {
            thread_state.each_mate(|mate| interrupt(&mate.thread_state, &mate.thread));
            thread_state.doing_of_any().is_none().then_some(())
        });
    });
    assert_eq!(shown.result, Err(Halt::Cut));
}

#[test]
fn what_a_cut_lane_did_not_do_is_not_missed_by_the_others() {
    const LANES: usize = 16;
    let mut tape = Tape::new(LANES);
    let at = tape.at("t/made");
    let call = stat(&mut tape);
    tape.add(0, call, Recorded::Well);
    let made = tape.add(
        0,
        ReplayCall::Plain(Call::Mkdir { at, mode: 0o700 }),
        Recorded::Well,
    );
    tape.lanes[0][1].gap_ns = 3_600_000_000_000;
    let wait = Wait { lane: 0, row: made };
    for lane in 1..LANES {
        tape.add_after(
            lane,
            ReplayCall::Plain(Call::Stat { at }),
            Recorded::Well,
            &[wait],
        );
    }
    for _ in 0..10 {
        let shown = interrupted(&tape, ReplayPace::Closed, |thread_state| {
            let mut mates = 0;
            eventually(|| {
                mates = 0;
                thread_state.each_mate(|_| mates += 1);
                (mates == LANES - 1).then_some(())
            });
            thread_state.raise(CUT);
            thread_state.each_mate(|mate| interrupt(&mate.thread_state, &mate.thread));
        });
        assert_eq!(shown.result, Err(Halt::Cut));
        assert_eq!(shown.ledger["diverged"], json!([]));
    }
}

#[derive(Debug)]
struct Broken(Arc<CallBatch>);

impl Script for Broken {
    fn play(&self) -> Box<dyn CallBatches> {
        Box::new(Once(Some(Arc::clone(&self.0))))
    }
}

struct Once(Option<Arc<CallBatch>>);

impl CallBatches for Once {
    fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String> {
        self.0
            .take()
            .map(Some)
            .ok_or_else(|| "the table ends too early".to_owned())
    }
}

#[test]
fn a_lane_that_fails_ends_all_of_them() {
    let ground = ground();
    ground.write("t/lock", 0);
    let mut tape = Tape::new(3);
    let call = stat(&mut tape);
    let never = Wait { lane: 1, row: 0 };
    tape.rows = 1;
    tape.add_after(0, call.clone(), Recorded::Well, &[Wait { lane: 2, row: 0 }]);
    tape.add_after(2, call, Recorded::Well, &[never]);
    let mut replay_program = Arc::into_inner(tape.replay_program()).unwrap();
    let batch = replay_program.script.play().next().unwrap().unwrap();
    replay_program.script = Box::new(Broken(batch));
    let shown = ground.play(&Arc::new(replay_program));
    assert_eq!(shown.result, Err(Halt::Failed));
}

#[test]
fn a_wait_for_a_later_event_is_no_deadlock() {
    let mut tape = Tape::new(2);
    let call = stat(&mut tape);
    tape.add_after(0, call.clone(), Recorded::Well, &[Wait { lane: 1, row: 1 }]);
    tape.add_after(1, call, Recorded::Well, &[Wait { lane: 0, row: 0 }]);
    assert!(ground().play(&tape.replay_program()).is_clean());
}

#[test]
fn descriptors_and_bytes_of_all_lanes_belong_to_the_performance() {
    let ground = ground();
    let mut tape = Tape::new(2);
    let at = tape.at("t/new");
    let flags = (libc::O_WRONLY | libc::O_CREAT).cast_unsigned();
    let open = ReplayCall::Plain(Call::Open {
        at,
        slot: Some(9),
        flags,
        mode: 0o600,
        resolve: 0,
    });
    let opened = tape.add(0, open, Recorded::Well);
    let write = ReplayCall::Write(DataCall {
        slot: 9,
        size: 5000,
        offset: None,
        vector: None,
    });
    let wait = |lane, row| [Wait { lane, row }];
    let written = tape.add_after(1, write, Recorded::Exactly(5000), &wait(0, opened));
    tape.add_after(
        0,
        ReplayCall::Plain(Call::Close { slot: 9 }),
        Recorded::Well,
        &wait(1, written),
    );
    let thread_state = Arc::new(ThreadState::new(0));
    assert!(
        ground
            .show(&tape.replay_program(), ReplayPace::Asap, 5, &thread_state)
            .is_clean()
    );
    let size = std::fs::metadata(ground.run().join("t/new")).unwrap().len();
    assert_eq!(size, 5000);
    let rows = ground.totals();
    let writes = rows.iter().find(|row| row.key.op == "write").unwrap();
    assert_eq!(writes.bytes, 25_000);
    assert!(thread_state.in_call_ns() > 0);
}

#[test]
fn what_began_in_the_warm_up_is_of_it_on_all_lanes() {
    let ground = Ground::new();
    ground.write("t/a", 1);
    let mut tape = Tape::new(3);
    let a = tape.at("t/a");
    for lane in 0..3 {
        tape.add(
            lane,
            ReplayCall::Plain(Call::Stat { at: a }),
            Recorded::Well,
        );
    }
    let replay = Replay {
        trace: 0,
        request: None,
        pace: ReplayPace::Asap,
        speed_percent: 100,
    };
    let (setting, thread_state) = (&ground.setting, Arc::new(ThreadState::new(0)));
    let recorder = &setting.recorder;
    let shard = recorder.shard(0);
    let journal = Journal::new(
        Arc::clone(recorder),
        shard,
        Arc::clone(&thread_state),
        0,
        setting.begin_ns,
    );
    let mut journal = journal.on_schedule(true);
    let kernel = <Guarded as Kernel>::enter(&ground.folder).unwrap();
    let mut lane_threads = LaneThreads::new(setting, &thread_state);
    lane_threads.enter(0, &ground.folder);
    recorder.begin_segment(0, 1, 3_600_000_000_000);
    for begins_in_warm_up in [true, false] {
        journal.begin(0, now_ns(), now_ns());
        if begins_in_warm_up {
            recorder.measure();
        }
        lane_threads
            .perform(&kernel, &mut journal, &replay, &tape.replay_program())
            .unwrap();
        journal.flush();
    }
    let totals = ground.totals();
    let counts: Vec<u64> = totals
        .iter()
        .filter(|row| row.key.round == 1 && row.key.op == "stat")
        .map(|row| crate::histogram::unpack(&row.histogram).unwrap().count())
        .collect();
    assert_eq!(counts, [3], "those of the second performance");
}
