//! Locks of processes, which have a file open more than once: no descriptor of a process is in the way of another one.

use super::tests::{imported, omitted, scheduled, source_of, source_with};
use super::{Contended, compile_whole};
use crate::call::Call;
use crate::replay::program::{Lane, ReplayCall, Slot, Wait};
use std::collections::BTreeMap;
use std::fmt::Write;

const ALL: &str = "l_whence=SEEK_SET, l_start=0, l_len=0";

/// A log of calls on `/r/a`, each of a task: `open 3`, `close 3`, or a command of fcntl, a kind of lock, a descriptor and a result.
fn log(calls: &[(u32, &str)]) -> String {
    let mut log = String::new();
    for (at, (task, call)) in calls.iter().enumerate() {
        let words: Vec<_> = call.split(' ').collect();
        let line = match words[..] {
            ["open", file] => format!("openat(AT_FDCWD, \"/r/a\", O_RDWR) = {file}"),
            ["close", file] => format!("close({file}) = 0"),
            ["dup", file] => format!("dup({file}) = 9"),
            ["fork", child] => format!("clone(child_stack=NULL, flags=SIGCHLD) = {child}"),
            [command, kind, file] => {
                format!("fcntl({file}, {command}, {{l_type={kind}, {ALL}}}) = 0")
            }
            [command, kind, file, errno] => {
                format!("fcntl({file}, {command}, {{l_type={kind}, {ALL}}}) = -1 {errno} (no)")
            }
            _ => panic!("{call}"),
        };
        writeln!(log, "{task} 1700000000.{at:06} {line} <0.000001>").unwrap();
    }
    log
}

/// What is let go before an event: by lane and row.
type LetGo = Vec<((Lane, u64), Vec<Slot>)>;

fn let_go(calls: &[(u32, &str)]) -> (LetGo, BTreeMap<&'static str, usize>) {
    let (_folder, trace) = imported(&log(calls), "a\tf\t100\t644\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let mut found = LetGo::new();
    for (lane, scheduled) in (0..).zip(scheduled(&replay_program)) {
        for (scheduled, _) in scheduled {
            if let ReplayCall::LetGo(locks) = scheduled.call {
                assert_eq!((locks.offset, locks.size), (0, 0));
                found.push(((lane, scheduled.row), locks.slots.to_vec()));
            }
        }
    }
    (found, omitted(&replay_program))
}

#[test]
fn a_second_descriptor_takes_the_lock_from_the_first() {
    let two_of_one = [
        (10, "open 3"),
        (10, "F_SETLKW F_WRLCK 3"),
        (10, "open 4"),
        (10, "F_SETLKW F_WRLCK 4"),
        (10, "F_SETLK F_UNLCK 3"),
        (10, "F_SETLK F_RDLCK 3"),
        (10, "F_SETLK F_RDLCK 4"),
    ];
    let found = [((0, 3), vec![0]), ((0, 4), vec![1])];
    assert_eq!(let_go(&two_of_one), (found.to_vec(), BTreeMap::new()));
}

#[test]
fn closing_any_descriptor_ends_the_locks_of_the_process() {
    let closed = [
        (10, "open 3"),
        (10, "F_SETLKW F_WRLCK 3"),
        (10, "open 4"),
        (10, "close 4"),
        (10, "F_SETLKW F_WRLCK 3"),
        (10, "dup 3"),
        (10, "close 9"),
        (10, "F_SETLKW F_WRLCK 3"),
        (10, "close 3"),
    ];
    let found = [((0, 3), vec![0]), ((0, 5), vec![0])];
    assert_eq!(let_go(&closed).0, found);
}

/// What events wait for of other lanes: by row.
fn waits(calls: &[(u32, &str)]) -> BTreeMap<u64, Vec<Wait>> {
    let (_folder, trace) = imported(&log(calls), "a\tf\t100\t644\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let scheduled = scheduled(&replay_program).into_iter().flatten();
    scheduled
        .map(|(scheduled, waits)| (scheduled.row, waits))
        .collect()
}

#[test]
fn a_lock_comes_after_the_close_of_another_descriptor_that_ended_the_one_before() {
    for (copy, close) in [("open 5", "close 5"), ("dup 3", "close 9")] {
        let taken_in_turn = [
            (10, "open 3"),
            (10, "fork 11"),
            (11, "open 4"),
            (10, "F_SETLKW F_WRLCK 3"),
            (10, copy),
            (11, "F_SETLK F_WRLCK 4 EAGAIN"),
            (10, close),
            (11, "F_SETLKW F_WRLCK 4"),
        ];
        let waits = waits(&taken_in_turn);
        // Neither fork nor dup is an event.
        let rows: Vec<_> = waits.keys().copied().collect();
        let [.., refused, closed, given] = rows[..] else {
            panic!("{rows:?}")
        };
        let of_other = |lane, row| Wait { lane, row };
        assert_eq!(waits[&closed], [of_other(1, refused)], "{close}");
        assert_eq!(waits[&given], [of_other(0, closed)], "{close}");
    }
}

#[test]
fn a_lock_is_waited_for_only_where_other_users_may_have_it() {
    let locks = [
        (10, "open 3"),
        (10, "F_SETLKW F_WRLCK 3"),
        (10, "open 4"),
        (10, "F_SETLKW F_WRLCK 4"),
    ];
    let (_folder, trace) = imported(&log(&locks), "a\tf\t100\t644\t\n");
    for (users, is_waited) in [(1, false), (2, true)] {
        let source = source_with(&trace, Contended::Shared).shared_by(users);
        let replay_program = compile_whole(&source, true).unwrap();
        let calls = scheduled(&replay_program)
            .into_iter()
            .flatten()
            .map(|(scheduled, _)| scheduled.call);
        let waited: Vec<_> = calls
            .map(|call| match call {
                ReplayCall::LetGo(locks) => locks.then,
                call => call,
            })
            .filter_map(|call| match call {
                ReplayCall::Plain(Call::FcntlLock { wait, .. }) => Some(wait),
                _ => None,
            })
            .collect();
        assert_eq!(waited, [is_waited; 2], "{users}");
    }
}

#[test]
fn another_process_keeps_its_locks_until_a_lock_proves_them_gone() {
    let others = [
        (10, "open 3"),
        (10, "fork 11"),
        (11, "open 4"),
        (10, "F_SETLKW F_WRLCK 3"),
        (11, "F_SETLK F_WRLCK 4 EAGAIN"),
        (11, "F_SETLK F_UNLCK 4"),
        (11, "open 5"),
        (11, "close 5"),
        (11, "F_SETLKW F_WRLCK 4"),
        (10, "F_OFD_SETLK F_WRLCK 3"),
    ];
    let (found, omitted) = let_go(&others);
    let slots: Vec<_> = found.into_iter().map(|(_, slots)| slots).collect();
    assert_eq!(slots, [[1], [0]]);
    assert_eq!(omitted, BTreeMap::new());
}

#[test]
fn what_descriptions_cannot_refuse_is_left_out_and_counted() {
    let shared = [
        (10, "open 3"),
        (10, "fork 11"),
        (10, "F_SETLKW F_WRLCK 3"),
        (11, "F_SETLK F_WRLCK 3 EAGAIN"),
        (11, "F_SETLKW F_WRLCK 3 EDEADLK"),
        (10, "F_SETLK F_UNLCK 3"),
        (11, "F_SETLK F_WRLCK 3 EAGAIN"),
    ];
    let (found, omitted) = let_go(&shared);
    assert_eq!(found, []);
    let reasons = [
        (
            "lock that another process had through the same description",
            1,
        ),
        ("lock that was refused because of a deadlock", 1),
    ];
    assert_eq!(omitted, BTreeMap::from(reasons));
}
