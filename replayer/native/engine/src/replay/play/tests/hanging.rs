//! Calls that nobody times: seen while they hang, and broken off without a result.

use super::lanes::eventually;
use super::locks::let_go;
use super::one_lane::open;
use super::*;
use crate::ops::Op;
use crate::replay::program::Call;
use crate::thread_state::CUT;
use crate::user_threads::interrupt;
use std::time::Duration;

/// Opening it to read waits for a writer.
fn fifo(ground: &Ground) -> PathBuf {
    let fifo = ground.run().join("t/fifo");
    std::fs::create_dir(ground.run().join("t")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fifo
}

/// A lane opens the fifo as what was open before.
fn inherits(tape: &mut Tape, lane: usize) {
    let inherit = ReplayCall::Inherit {
        path: tape.path("t/fifo"),
        slot: 0,
        flags: libc::O_RDONLY.cast_unsigned(),
        offset: 0,
    };
    tape.add(lane, inherit, Recorded::Unknown);
}

#[test]
fn what_was_open_before_is_seen_while_opening_it_hangs() {
    let ground = Ground::new();
    let fifo = fifo(&ground);
    let mut tape = Tape::new(1);
    inherits(&mut tape, 0);
    let (replay_program, thread_state) = (tape.replay_program(), Arc::new(ThreadState::new(0)));
    std::thread::scope(|scope| {
        let playing =
            scope.spawn(|| ground.show(&replay_program, ReplayPace::Asap, 1, &thread_state));
        let seen = || {
            thread_state
                .doing()
                .is_some_and(|doing| doing.op == Op::Open as u8)
        };
        let deadline_ns = now_ns() + 5_000_000_000;
        while !seen() && now_ns() < deadline_ns {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let was_seen = seen();
        // Both ends, which never waits: whoever opens the other one finds a writer.
        let mut both_ends = std::fs::OpenOptions::new();
        let _both_ends = both_ends.read(true).write(true).open(&fifo).unwrap();
        assert!(playing.join().unwrap().is_clean());
        assert!(was_seen);
    });
}

#[test]
fn what_was_open_before_is_not_left_out_because_opening_it_was_broken_off() {
    let ground = Ground::new();
    fifo(&ground);
    let mut tape = Tape::new(2);
    inherits(&mut tape, 1);
    let (replay_program, thread_state) = (tape.replay_program(), Arc::new(ThreadState::new(0)));
    let shown = std::thread::scope(|scope| {
        let playing =
            scope.spawn(|| ground.show(&replay_program, ReplayPace::Asap, 1, &thread_state));
        let opens = || {
            thread_state
                .doing_of_any()
                .filter(|doing| doing.op == Op::Open as u8)
        };
        eventually(opens);
        thread_state.raise(CUT);
        eventually(|| {
            thread_state.each_mate(|mate| interrupt(&mate.thread_state, &mate.thread));
            opens().is_none().then_some(())
        });
        playing.join().unwrap()
    });
    assert_eq!(shown.result, Err(Halt::Cut));
    assert_eq!(shown.ledger["omitted"], json!({}));
}

#[test]
fn a_layout_that_is_broken_off_ends_soon_and_leaves_nothing() {
    let ground = Ground::new();
    std::fs::create_dir(ground.run().join("t")).unwrap();
    let mut tape = Tape::new(1);
    let top = tape.own("t/d", 3);
    tape.entry(top, EntryKind::Directory, 0, "");
    for number in 0..20_000 {
        let file = tape.own(&format!("t/d/{number}"), 3);
        tape.entry(file, EntryKind::File, 0, "");
    }
    tape.tops = vec![top];
    let replay_program = tape.replay_program();
    let whole = ground.play(&replay_program);
    assert!(whole.is_clean());
    let cut_short = || {
        let thread_state = Arc::new(ThreadState::new(0));
        let cut = std::thread::scope(|scope| {
            let playing =
                scope.spawn(|| ground.show(&replay_program, ReplayPace::Asap, 1, &thread_state));
            eventually(|| {
                thread_state
                    .doing()
                    .filter(|doing| doing.op == Op::Fchmod as u8)
            });
            thread_state.raise(CUT);
            playing.join().unwrap()
        });
        assert_eq!(cut.result, Err(Halt::Cut));
        assert!(cut.failed.is_none());
        assert_eq!(names(&ground.run()), ["t"]);
        cut.aside_ns
    };
    // One that goes on to its end is never so much shorter; a busy machine spoils some tries, not all.
    let soonest_ns = (0..5).map(|_| cut_short()).min().unwrap();
    assert!(soonest_ns < whole.aside_ns / 2, "{soonest_ns} {whole:?}");
}

#[test]
fn letting_locks_go_is_seen() {
    let ground = Ground::new();
    ground.write("t/a", 10);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    tape.add(0, open(a, 0, libc::O_RDWR), Recorded::Well);
    for _ in 0..1000 {
        tape.add(
            0,
            let_go(0, ReplayCall::Plain(Call::Fstat { slot: 0 })),
            Recorded::Well,
        );
    }
    let (replay_program, thread_state) = (tape.replay_program(), Arc::new(ThreadState::new(0)));
    let was_seen = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let deadline_ns = now_ns() + 5_000_000_000;
            let seen = || {
                thread_state
                    .doing()
                    .is_some_and(|doing| doing.op == Op::Lock as u8)
            };
            while now_ns() < deadline_ns {
                if seen() {
                    return true;
                }
                std::thread::yield_now();
            }
            false
        });
        while !looking.is_finished() {
            ground
                .show(&replay_program, ReplayPace::Asap, 1, &thread_state)
                .is_clean();
        }
        looking.join().unwrap()
    });
    assert!(was_seen);
}
