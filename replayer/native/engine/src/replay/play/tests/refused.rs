//! What was refused when it was recorded, and would not be now.

use super::one_lane::open;
use super::*;
use crate::call::Call;
use crate::program::LockKind;
use std::os::unix::fs::symlink;

const OK: Recorded = Recorded::Well;
/// `EAGAIN`.
const REFUSED: Recorded = Recorded::Error(11);

fn range(slot: u32, kind: LockKind, before: LockKind) -> ReplayCall {
    ReplayCall::Plain(Call::FcntlLock {
        slot,
        wait: false,
        kind,
        before,
        offset: 0,
        size: 0,
        whence: 0,
    })
}

fn flock(slot: u32, kind: LockKind) -> ReplayCall {
    let wait = false;
    ReplayCall::Plain(Call::Flock { slot, kind, wait })
}

/// Takers of locks after others were refused them: what each of them got.
fn taken_after(calls: &[(ReplayCall, Recorded)]) -> Value {
    let ground = Ground::new();
    ground.write("t/a", 1);
    let mut tape = Tape::new(1);
    let a = tape.at("t/a");
    for slot in 0..2 {
        tape.add(0, open(a, slot, libc::O_RDWR), Recorded::Well);
    }
    for (call, recorded) in calls {
        tape.add(0, call.clone(), *recorded);
    }
    let shown = ground.play(&tape.replay_program());
    let diverged = shown.ledger["diverged"].as_array().unwrap().iter();
    let told =
        diverged.map(|each| json!([each["op"], each["recorded"], each["got"], each["count"]]));
    told.collect()
}

#[test]
fn a_lock_that_was_refused_stands_in_nobodys_way() {
    let alone = LockKind::Exclusive;
    let told = taken_after(&[(flock(0, alone), REFUSED), (flock(1, alone), OK)]);
    assert_eq!(told, json!([["flock", "EAGAIN", "ok", 1]]));
    let told = taken_after(&[
        (range(0, LockKind::Exclusive, LockKind::Unlock), REFUSED),
        (range(1, LockKind::Exclusive, LockKind::Unlock), OK),
    ]);
    assert_eq!(told, json!([["lock", "EAGAIN", "ok", 1]]));
}

#[test]
fn who_was_refused_more_keeps_what_it_had() {
    let told = taken_after(&[
        (range(0, LockKind::Shared, LockKind::Unlock), OK),
        // To write, while another one reads: refused, but it goes on reading.
        (range(0, LockKind::Exclusive, LockKind::Shared), REFUSED),
        (range(1, LockKind::Shared, LockKind::Unlock), OK),
        (range(1, LockKind::Exclusive, LockKind::Shared), REFUSED),
        (range(0, LockKind::Unlock, LockKind::Shared), OK),
        (range(1, LockKind::Exclusive, LockKind::Shared), OK),
    ]);
    assert_eq!(told, json!([["lock", "EAGAIN", "ok", 1]]));
}

#[test]
fn a_path_is_refused_where_openat2_was_told_to_take_no_link() {
    let ground = Ground::new();
    ground.write("t/d/a", 1);
    symlink("d", ground.run().join("t/link")).unwrap();
    let mut tape = Tape::new(1);
    let [a, through, d] = ["t/d/a", "t/link/a", "t/d"].map(|path| tape.at(path));
    let seen = Place {
        from: Some(0),
        rest: 4,
        ..a
    };
    let so = |at, resolve| {
        ReplayCall::Plain(Call::Open {
            at,
            slot: None,
            flags: 0,
            mode: 0,
            resolve,
        })
    };
    // RESOLVE_NO_SYMLINKS, alone and with RESOLVE_IN_ROOT and RESOLVE_BENEATH.
    tape.add(0, so(through, 0), OK);
    tape.add(0, so(through, 4), Recorded::Error(libc::ELOOP));
    tape.add(0, so(a, 4 | 0x10), OK);
    tape.add(0, open(d, 0, libc::O_RDONLY), OK);
    tape.add(0, so(seen, 4 | 8), OK);
    assert!(ground.play(&tape.replay_program()).is_clean());
}
