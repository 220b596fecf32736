use super::one_lane::open;
use super::*;
use crate::replay::reel::LetGo;

const OK: Recorded = Recorded::Well;
const EXCLUSIVE: u32 = libc::F_WRLCK.cast_unsigned();

fn lock(slot: u32, wait: bool) -> Deed {
    Deed::Lock {
        slot,
        wait,
        kind: EXCLUSIVE,
        before: libc::F_UNLCK.cast_unsigned(),
        offset: 0,
        size: 0,
        whence: 0,
    }
}

fn let_go(slot: u32, then: Deed) -> Deed {
    Deed::LetGo(Box::new(LetGo {
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
        tape.cue(0, open(a, slot, libc::O_RDWR), OK);
    }
    let refused = Recorded::Error(libc::EAGAIN);
    tape.cue(0, lock(0, true), OK);
    tape.cue(0, let_go(0, lock(1, true)), OK);
    tape.cue(0, lock(2, false), refused);
    tape.cue(0, let_go(1, Deed::CloseDuplicate { slot: 1 }), OK);
    tape.cue(0, lock(2, true), OK);
    tape.cue(0, lock(1, false), refused);
    tape.cue(0, let_go(2, Deed::Close { slot: 0 }), OK);
    tape.cue(0, lock(1, true), OK);
    let shown = ground.play(&tape.reel());
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["matched"], 11);
}
