//! Logs of -ff, a file a task: what a task has from the one that made it, and what its files prove of their order.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by failing"
)]

mod common;

use common::{Imported, asked, waits};

/// An import of files by the numbers of their tasks.
fn imported(files: &[(u32, &str)]) -> Imported {
    let mut asked = asked("");
    let files = files
        .iter()
        .map(|(task, text)| asked.file(&format!("log.{task}"), text));
    asked.request.files = files.collect();
    asked.import()
}

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
            "1700000001.10 chdir(\"/r/d\") = 0 <0.01>\n\
             1700000001.12 openat(AT_FDCWD, \"g\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3 <0.01>\n\
             1700000001.14 dup2(3, 1) = 1 <0.01>\n\
             1700000001.20 {call}    = 11 <0.5>\n\
             1700000001.71 close(1) = 0 <0.01>\n\
             1700000001.73 wait4(-1, [{{WIFEXITED(s) && WEXITSTATUS(s) == 0}}], 0, NULL) = 11 <0.3>\n\
             1700000002.10 unlink(\"f\") = 0 <0.01>\n\
             1700000002.12 +++ exited with 0 +++\n"
        );
        let child = format!(
            "1700000001.21 openat(AT_FDCWD, \"f\", O_RDONLY) = 4 <0.01>\n\
             1700000001.23 {call}    = 12 <0.4>\n\
             1700000001.64 close(4) = 0 <0.01>\n\
             1700000001.99 +++ exited with 0 +++\n"
        );
        let grandchild = "1700000001.30 write(1, \"x\\n\", 2) = 2 <0.01>\n\
             1700000001.40 newfstatat(AT_FDCWD, \"e\", 0x7f, 0) = -1 ENOENT (No such file or directory) <0.01>\n\
             1700000001.50 +++ exited with 0 +++\n";
        let trace = imported(&[(10, &parent), (11, &child), (12, grandchild)]);
        let expected = [
            "chdir r/d = 0",
            "open r/d/g #0 = 0",
            "open r/d/f #1 = 0",
            "write #0 = 2",
            "stat r/d/e = -2",
            "close #1 = 0",
            "close_dup #0 = 0",
            "unlink r/d/f = 0",
            "close_exit #0 = 0",
        ];
        assert_eq!(trace.lines(), expected, "{call}");
        assert_eq!(trace.count("/counts/threads"), 3, "{call}");
        assert_eq!(edges(&trace, "spawn"), 2, "{call}");
    }
}

/// Where a call that changed its directory between two children of one number had each of them begin.
const TWICE: &str = "1700000001.1 chdir(\"/r/a\") = 0\n\
     1700000001.2 vfork() = 11\n\
     1700000001.5 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11\n\
     1700000001.6 chdir(\"/r/b\") = 0\n\
     1700000002.2 vfork() = 11\n\
     1700000002.5 wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11\n\
     1700000003.0 +++ exited with 0 +++\n";

#[test]
fn who_gets_the_number_of_a_task_before_has_what_its_own_parent_had() {
    // strace begins the file of a number anew; with -A it goes on in the same one.
    let last = "1700000002.3 unlink(\"x\") = 0\n1700000002.4 +++ exited with 0 +++\n";
    let both =
        format!("1700000001.3 unlink(\"x\") = 0\n1700000001.4 +++ exited with 0 +++\n{last}");
    let trace = imported(&[(10, TWICE), (11, last)]);
    assert_eq!(
        trace.lines(),
        ["chdir r/a = 0", "chdir r/b = 0", "unlink r/b/x = 0"]
    );
    let trace = imported(&[(10, TWICE), (11, &both)]);
    assert_eq!(
        trace.lines(),
        [
            "chdir r/a = 0",
            "unlink r/a/x = 0",
            "chdir r/b = 0",
            "unlink r/b/x = 0"
        ]
    );
    // Nor do logs made with -qq tell of ends.
    let silent = both.replace("1700000001.4 +++ exited with 0 +++\n", "");
    let trace = imported(&[(10, TWICE), (11, &silent)]);
    assert_eq!(trace.lines()[3], "unlink r/b/x = 0");
}

#[test]
fn who_waited_for_a_task_goes_on_after_its_end_without_durations_too() {
    // The wait was entered before the child's calls, and a stop of the child is not its end.
    let parent = "1700000001.1 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
         1700000001.2 clone(child_stack=NULL, flags=SIGCHLD) = 11\n\
         1700000001.3 wait4(11, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11\n\
         1700000001.9 access(\"/r/c\", F_OK) = 0\n";
    let child = "1700000001.4 access(\"/r/b\", F_OK) = 0\n\
         1700000001.8 +++ exited with 0 +++\n";
    let trace = imported(&[(10, parent), (11, child)]);
    assert!(waits(&trace, 2, 1), "{:?}", trace.lines());
    let stopped = parent.replace(
        "WIFEXITED(s) && WEXITSTATUS(s) == 0",
        "WIFSTOPPED(s) && WSTOPSIG(s) == SIGSTOP",
    );
    let trace = imported(&[(10, &stopped), (11, child)]);
    assert!(!waits(&trace, 2, 1), "{:?}", trace.lines());
}

#[test]
fn the_think_time_of_a_child_begins_when_it_was_made() {
    let parent = "1700000001.0 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3 <0.1>\n\
         1700000002.0 vfork() = 11 <5.0>\n";
    let child = "1700000003.0 access(\"/r/b\", F_OK) = 0 <0.1>\n";
    let trace = imported(&[(10, parent), (11, child)]);
    assert_eq!(trace.events[1].gap_ns, 1_000_000_000);
}
