use super::one_lane::open;
use super::*;
use crate::program::LockKind;
use crate::replay::compile::{compile_whole, tests as traces};
use crate::replay::program::{Call, LetGo};

const OK: Recorded = Recorded::Well;

/// Not waited for: a lane that waits for a lock of its own never ends.
fn lock(slot: u32) -> ReplayCall {
    ReplayCall::Plain(Call::FcntlLock {
        slot,
        wait: false,
        kind: LockKind::Exclusive,
        before: LockKind::Unlock,
        offset: 0,
        size: 0,
        whence: 0,
    })
}

pub(super) fn let_go(slot: u32, then: ReplayCall) -> ReplayCall {
    ReplayCall::LetGo(Box::new(LetGo {
        slots: [slot].into(),
        offset: 0,
        size: 0,
        then,
    }))
}

#[test]
fn what_a_process_locked_by_another_descriptor_is_in_nobodys_way() {
    let ground = Ground::new();
    ground.write("t/a", 10);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    for slot in 0..3 {
        tape.add(0, open(a, slot, libc::O_RDWR), OK);
    }
    let refused = Recorded::Error(libc::EAGAIN);
    tape.add(0, lock(0), OK);
    tape.add(0, let_go(0, lock(1)), OK);
    tape.add(0, lock(2), refused);
    tape.add(0, let_go(1, ReplayCall::CloseDuplicate { slot: 1 }), OK);
    tape.add(0, lock(2), OK);
    tape.add(0, lock(1), refused);
    tape.add(0, let_go(2, ReplayCall::Plain(Call::Close { slot: 0 })), OK);
    tape.add(0, lock(1), OK);
    let shown = ground.play(&tape.replay_program());
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["matched"], 11);
}

/// Two processes that take turns: the lock of the first one ends as it closes another descriptor.
const TURNS: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3 <0.000001>
10 1700000000.000001 clone(child_stack=NULL, flags=SIGCHLD) = 11 <0.000001>
11 1700000000.000002 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 4 <0.000001>
10 1700000000.000003 fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0 <0.000001>
10 1700000000.000004 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 5 <0.000001>
11 1700000000.000005 fcntl(4, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = -1 EAGAIN (no) <0.000001>
10 1700000000.000006 close(5) = 0 <0.000001>
11 1700000000.000007 fcntl(4, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}) = 0 <0.000001>
";

#[test]
fn a_lock_that_ends_with_another_descriptor_is_taken_in_turn() {
    let ground = Ground::new();
    ground.write("t/r/a", 100);
    let (_folder, trace) = traces::imported(TURNS, "a\tf\t100\t644\t\n");
    let replay_program = Arc::new(compile_whole(&traces::source_of(&trace), false).unwrap());
    let thread_state = Arc::new(ThreadState::new(0));
    assert!(
        ground
            .show(&replay_program, ReplayPace::Asap, 300, &thread_state)
            .is_clean()
    );
}
