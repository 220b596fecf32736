//! Logs of -ff, a file a task: what a task has from the one that made it, and what its files prove of their order.

use crate::common;

use common::{Imported, imported, waits};
use proptest::prelude::*;

fn edges(trace: &Imported, reason: &str) -> u64 {
    let counts = trace.document.pointer("/counts/edges_by_reason").unwrap();
    counts
        .get(reason)
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0)
}

const CALLS: [&str; 5] = [
    "fork()",
    "vfork()",
    "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f42d34cca10)",
    "clone(child_stack=0x7fc9, flags=CLONE_VM|CLONE_VFORK|SIGCHLD)",
    "clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x7f15, stack_size=0x9000}, 88)",
];

#[test]
fn a_child_has_what_its_parent_had_when_the_call_began_that_made_it() {
    for call in CALLS {
        // As strace -ff -ttt -T tells it: the calls that make tasks end after their children have begun.
        let parent = format!(
            "1700000001.100000 chdir(\"/r/d\") = 0 <0.01>\n\
             1700000001.120000 openat(AT_FDCWD, \"g\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3 <0.01>\n\
             1700000001.140000 dup2(3, 1) = 1 <0.01>\n\
             1700000001.200000 {call}    = 11 <0.5>\n\
             1700000001.710000 close(1) = 0 <0.01>\n\
             1700000001.730000 wait4(-1, [{{WIFEXITED(s) && WEXITSTATUS(s) == 0}}], 0, NULL) = 11 <0.3>\n\
             1700000002.100000 unlink(\"f\") = 0 <0.01>\n\
             1700000002.120000 +++ exited with 0 +++\n"
        );
        let child = format!(
            "1700000001.210000 openat(AT_FDCWD, \"f\", O_RDONLY) = 4 <0.01>\n\
             1700000001.230000 {call}    = 12 <0.4>\n\
             1700000001.640000 close(4) = 0 <0.01>\n\
             1700000001.990000 +++ exited with 0 +++\n"
        );
        let grandchild = "1700000001.300000 write(1, \"x\\n\", 2) = 2 <0.01>\n\
             1700000001.400000 newfstatat(AT_FDCWD, \"e\", 0x7f, 0) = -1 ENOENT (No such file or directory) <0.01>\n\
             1700000001.500000 +++ exited with 0 +++\n";
        let trace = imported(&[(10, &parent), (11, &child), (12, grandchild)]);
        let expected = [
            "chdir r/d = 0",
            "open r/d/g #0 = 0",
            "open r/d/f #1 = 0",
            "write #0 = 2",
            "stat r/d/e = -2",
            "exit = 0",
            "close #1 = 0",
            "close_dup #0 = 0",
            "exit = 0",
            "unlink r/d/f = 0",
            "close_exit #0 = 0",
            "exit = 0",
        ];
        assert_eq!(trace.lines(), expected, "{call}");
        assert_eq!(trace.count("/counts/threads"), 3, "{call}");
        assert_eq!(edges(&trace, "spawn"), 2, "{call}");
    }
}

/// Where a call that changed its directory between two children of one number had each of them begin.
const TWICE: &str = "1700000001.100000 chdir(\"/r/a\") = 0\n\
     1700000001.200000 vfork() = 11\n\
     1700000001.500000 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11\n\
     1700000001.600000 chdir(\"/r/b\") = 0\n\
     1700000002.200000 vfork() = 11\n\
     1700000002.500000 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11\n\
     1700000003.000000 +++ exited with 0 +++\n";

#[test]
fn who_gets_the_number_of_a_task_before_has_what_its_own_parent_had() {
    // strace begins the file of a number anew; with -A it goes on in the same one.
    let last = "1700000002.300000 unlink(\"x\") = 0\n1700000002.400000 +++ exited with 0 +++\n";
    let both = format!(
        "1700000001.300000 unlink(\"x\") = 0\n1700000001.400000 +++ exited with 0 +++\n{last}"
    );
    let trace = imported(&[(10, TWICE), (11, last)]);
    assert_eq!(
        trace.lines(),
        [
            "chdir r/a = 0",
            "chdir r/b = 0",
            "unlink r/b/x = 0",
            "exit = 0",
            "exit = 0"
        ]
    );
    let trace = imported(&[(10, TWICE), (11, &both)]);
    assert_eq!(
        trace.lines(),
        [
            "chdir r/a = 0",
            "unlink r/a/x = 0",
            "exit = 0",
            "chdir r/b = 0",
            "unlink r/b/x = 0",
            "exit = 0",
            "exit = 0"
        ]
    );
    // Nor do logs made with -qq tell of ends.
    let silent = both.replace("1700000001.400000 +++ exited with 0 +++\n", "");
    let trace = imported(&[(10, TWICE), (11, &silent)]);
    assert_eq!(trace.lines()[3], "unlink r/b/x = 0");
}

#[test]
fn who_waited_for_a_task_goes_on_after_its_end_without_durations_too() {
    // The wait was entered before the child's calls, and a stop of the child is not its end.
    let parent = "1700000001.100000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
         1700000001.200000 clone(child_stack=NULL, flags=SIGCHLD) = 11\n\
         1700000001.300000 wait4(11, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11\n\
         1700000001.900000 access(\"/r/c\", F_OK) = 0\n";
    let child = "1700000001.400000 access(\"/r/b\", F_OK) = 0\n\
         1700000001.800000 +++ exited with 0 +++\n";
    let trace = imported(&[(10, parent), (11, child)]);
    assert!(waits(&trace, 3, 2), "{:?}", trace.lines());
    let stopped = parent.replace(
        "WIFEXITED(s) && WEXITSTATUS(s) == 0",
        "WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP",
    );
    let trace = imported(&[(10, &stopped), (11, child)]);
    assert_eq!(edges(&trace, "wait"), 0, "{:?}", trace.lines());
}

#[test]
fn the_think_time_of_a_child_begins_behind_its_parents_last_event() {
    let parent = "1700000001.000000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3 <0.1>\n\
         1700000002.000000 vfork() = 11 <5.0>\n";
    let child = "1700000003.000000 access(\"/r/b\", F_OK) = 0 <0.1>\n";
    let trace = imported(&[(10, parent), (11, child)]);
    let first = &trace.events[1];
    assert_eq!(first.gap_ns, 1_000_000_000);
    assert_eq!(
        (first.after, first.after_ns),
        (Some(0), Some(1_900_000_000))
    );
}

/// A shell that has one command after the other made, each of which needs what was done before; the files stand in no helpful order.
const SHELL: [(u32, &[&str]); 4] = [
    (
        9,
        &[
            "unlink(\"/r/c\") = 0",
            "clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88) = 7",
            "waitid(P_PID, 7, {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=7, si_uid=0}, WEXITED, NULL) = 0",
            "rename(\"/r/e\", \"/r/f\") = 0",
            "+++ exited with 0 +++",
        ],
    ),
    (
        10,
        &[
            "mkdir(\"/r/a\", 0777) = 0",
            "vfork() = 11",
            "wait4(-1, [{WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP}], WSTOPPED, NULL) = 11",
            "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11",
            "rename(\"/r/b\", \"/r/c\") = 0",
            "vfork() = 9",
            "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 9",
            "unlink(\"/r/f\") = 0",
            "+++ exited with 0 +++",
        ],
    ),
    (
        11,
        &["rename(\"/r/a\", \"/r/b\") = 0", "+++ exited with 0 +++"],
    ),
    (
        7,
        &["rename(\"/r/d\", \"/r/e\") = 0", "+++ exited with 0 +++"],
    ),
];

const DONE_BY_SHELL: [&str; 7] = [
    "mkdir r/a = 0",
    "rename r/a r/b = 0",
    "rename r/b r/c = 0",
    "unlink r/c = 0",
    "rename r/d r/e = 0",
    "rename r/e r/f = 0",
    "unlink r/f = 0",
];

fn stamped(front: &str, files: &[(u32, &[&str])]) -> Imported {
    let text = |lines: &[&str]| {
        let lines = lines.iter().map(|line| format!("{front}{line}\n"));
        lines.collect::<String>()
    };
    let files: Vec<(u32, String)> = files
        .iter()
        .map(|(task, lines)| (*task, text(lines)))
        .collect();
    let files: Vec<(u32, &str)> = files
        .iter()
        .map(|(task, text)| (*task, text.as_str()))
        .collect();
    imported(&files)
}

#[test]
fn without_fine_stamps_a_task_begins_behind_its_making_and_ends_before_who_waited_goes_on() {
    for front in [
        "",
        "12:00:00 ",
        "1700000001 ",
        "     0.000020 ",
        "12:00:00.123 ",
    ] {
        let trace = stamped(front, &SHELL);
        let mut done = trace.lines();
        done.retain(|line| line != "exit = 0");
        assert_eq!(done, DONE_BY_SHELL, "{front}");
        assert!(edges(&trace, "wait") >= 2, "{front}");
        let guessed = "/blind_spots/tasks in an order that is a guess";
        assert_eq!(trace.count(guessed), 4, "{front}");
    }
}

#[test]
fn files_with_fine_stamps_and_logs_of_f_say_nothing_of_a_guess() {
    let of_f = [(10, &["4711 access(\"/r/a\", F_OK) = 0"][..])];
    let parts = [of_f[0], (11, &["4712 access(\"/r/b\", F_OK) = 0"][..])];
    for trace in [
        stamped("1700000001.000000 ", &SHELL),
        stamped("12:00:00.000000 ", &SHELL),
        stamped("", &of_f),
        stamped("", &parts),
    ] {
        let blind = trace.document.pointer("/blind_spots").unwrap();
        assert_eq!(blind, &serde_json::json!({}));
    }
}

#[test]
fn who_waited_for_a_task_of_a_namespace_goes_on_after_its_end_whichever_thread_made_it() {
    let maker: &[&str] = &[
        "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 3 /* 12 in strace's PID NS */",
        "clone(child_stack=NULL, flags=SIGCHLD) = 2 /* 4711 in strace's PID NS */",
    ];
    let child: &[&str] = &["rename(\"/r/a\", \"/r/b\") = 0", "+++ exited with 0 +++"];
    let waiter: &[&str] = &[
        "mkdir(\"/r/a\", 0777) = 0",
        "wait4(2, NULL, 0, NULL) = 2",
        "rename(\"/r/b\", \"/r/c\") = 0",
    ];
    // Its file is read first, and there is a child of strace's own number 2 that goes on for long.
    let other: &[&str] = &["access(\"/r/x\", F_OK) = 0", "access(\"/r/c\", F_OK) = 0"];
    let files = [(12, waiter), (2, other), (10, maker), (4711, child)];
    let trace = stamped("12:00:00 ", &files);
    let lines = trace.lines();
    let at = |line: &str| lines.iter().position(|other| other == line).unwrap();
    assert!(
        at("rename r/a r/b = 0") < at("rename r/b r/c = 0"),
        "{lines:?}"
    );
    assert_eq!(edges(&trace, "wait"), 1);
}

#[test]
fn steps_go_on_from_what_a_task_waited_for() {
    let parent: &[&str] = &[
        "1.000000 vfork() = 11",
        "0.000010 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11",
        "0.000020 access(\"/r/b\", F_OK) = 0",
    ];
    let child: &[&str] = &[
        "0.500000 access(\"/r/a\", F_OK) = 0",
        "2.000000 +++ exited with 0 +++",
    ];
    let trace = stamped("     ", &[(10, parent), (11, child)]);
    let starts: Vec<i64> = trace.events.iter().map(|event| event.start_ns).collect();
    assert_eq!(starts, [500_000_000, 2_500_000_000, 2_500_030_000]);
}

#[test]
fn a_number_that_is_used_again_is_born_when_its_own_parent_makes_it_without_stamps_too() {
    let last = "unlink(\"x\") = 0\n+++ exited with 0 +++\n";
    let lines = TWICE.lines().map(|line| line.split_once(' ').unwrap().1);
    let parent = lines.collect::<Vec<_>>().join("\n");
    let trace = imported(&[(10, &parent), (11, last)]);
    assert_eq!(
        trace.lines(),
        [
            "chdir r/a = 0",
            "chdir r/b = 0",
            "unlink r/b/x = 0",
            "exit = 0",
            "exit = 0"
        ]
    );
    let trace = imported(&[(10, &parent), (11, &last.repeat(2))]);
    assert_eq!(
        trace.lines(),
        [
            "chdir r/a = 0",
            "unlink r/a/x = 0",
            "exit = 0",
            "chdir r/b = 0",
            "unlink r/b/x = 0",
            "exit = 0",
            "exit = 0"
        ]
    );
}

#[test]
fn files_that_wait_for_each_other_are_read_to_their_end() {
    let wait = |other: u32| {
        format!("wait4(-1, [{{WIFEXITED(s) && WEXITSTATUS(s) == 0}}], 0, NULL) = {other}")
    };
    let make = |other: u32| format!("vfork() = {other}");
    let look = "access(\"/r/a\", F_OK) = 0".to_owned();
    for (one, other) in [
        (
            [wait(2), look.clone(), wait(2)],
            [wait(1), look.clone(), wait(1)],
        ),
        (
            [make(2), look.clone(), wait(1)],
            [make(1), look.clone(), wait(2)],
        ),
        (
            [make(1), look.clone(), wait(2)],
            [make(3), look.clone(), wait(9)],
        ),
    ] {
        let lines = |text: &[String; 3]| text.join("\n");
        let trace = imported(&[(1, &lines(&one)), (2, &lines(&other)), (3, "")]);
        assert_eq!(trace.count("/counts/lines"), 6);
        assert_eq!(trace.events.len(), 2);
    }
}

#[test]
fn tasks_that_nobody_made_begin_in_the_order_of_their_files() {
    let first: &[&str] = &["mkdir(\"/r/a\", 0777) = 0", "chdir(\"/r/a\") = 0"];
    let second: &[&str] = &["unlink(\"/r/a/b\") = 0"];
    let trace = stamped("", &[(30, first), (20, second)]);
    assert_eq!(
        trace.lines(),
        ["mkdir r/a = 0", "chdir r/a = 0", "unlink r/a/b = 0"]
    );
}

/// A line of a task that makes, waits for and looks at anything.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..5_u32).prop_map(|task| format!("vfork() = {task}")),
        (1..5_u32).prop_map(|task| format!("wait4({task}, NULL, 0, NULL) = {task}")),
        Just("access(\"/r/a\", F_OK) = 0".to_owned()),
        Just("+++ exited with 0 +++".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn files_of_any_family_are_read_to_their_end(
        files in prop::collection::vec(prop::collection::vec(line(), 0..8), 2..5),
        front in prop::sample::select(vec!["", "12:00:00 ", "     0.000020 ", "1700000001.000000 "]),
    ) {
        let lines: Vec<Vec<&str>> = files
            .iter()
            .map(|file| file.iter().map(String::as_str).collect())
            .collect();
        let numbered: Vec<(u32, &[&str])> = (1..).zip(lines.iter().map(Vec::as_slice)).collect();
        let trace = stamped(front, &numbered);
        let count: usize = files.iter().map(Vec::len).sum();
        prop_assert_eq!(trace.count("/counts/lines"), u64::try_from(count).unwrap());
        let looks = files.iter().flatten().filter(|line| line.starts_with("access"));
        prop_assert_eq!(trace.count("/counts/calls_as_events"), u64::try_from(looks.count()).unwrap());
    }
}
