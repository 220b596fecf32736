//! Processes one after the other, and what those that were started later wait for.

use crate::common;

use common::{asked, waits};
use std::fmt::Write;

#[test]
fn every_thread_waits_for_what_the_first_one_did_alone() {
    let trace = asked(
        "1 1700000001.0 openat(AT_FDCWD, \"/r/f\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3\n\
         2 1700000001.1 access(\"/r/g\", F_OK) = -1 ENOENT (No such file or directory)\n\
         1 1700000001.2 access(\"/r/g\", F_OK) = -1 ENOENT (No such file or directory)\n\
         3 1700000001.3 openat(AT_FDCWD, \"/r/f\", O_RDONLY) = 3\n",
    )
    .import();
    assert!(waits(&trace, 1, 0) && waits(&trace, 3, 0));
    assert!(!waits(&trace, 3, 1) && !waits(&trace, 3, 2));
}

/// A shell that does nothing below the root itself runs two commands; lines between them, and whether the second one waits.
const IN_A_ROW: &[(&str, bool)] = &[
    (
        "1 1700000001.3 wait4(-1, [{WIFEXITED(s)}], 0, NULL) = 2\n",
        true,
    ),
    ("", false),
    // Through another shell, which has gone.
    (
        "4 1700000001.3 wait4(-1, [{WIFEXITED(s)}], 0, NULL) = 2\n\
         4 1700000001.3 +++ exited with 0 +++\n\
         1 1700000001.3 wait4(-1, [{WIFEXITED(s)}], 0, NULL) = 4\n",
        true,
    ),
];

#[test]
fn a_command_waits_for_those_that_its_shell_has_waited_for() {
    for &(between, is_after) in IN_A_ROW {
        let shell = if between.contains("4 17") { 4 } else { 1 };
        let trace = asked(format!(
            "5 1700000001.0 access(\"/r/e\", F_OK) = -1 ENOENT (No such file or directory)\n\
             6 1700000001.0 access(\"/r/e\", F_OK) = -1 ENOENT (No such file or directory)\n\
             1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 4\n\
             {shell} 1700000001.1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
             2 1700000001.2 mkdir(\"/r/a\", 0755) = 0\n\
             2 1700000001.2 +++ exited with 0 +++\n{between}\
             1 1700000001.4 clone(child_stack=NULL, flags=SIGCHLD) = 3\n\
             3 1700000001.5 mkdir(\"/r/b\", 0755) = 0\n"
        ))
        .import();
        assert_eq!(waits(&trace, 4, 3), is_after, "{between}");
    }
}

#[test]
fn what_a_command_has_waited_for_is_not_waited_for_once_more() {
    let mut text = String::new();
    for pid in 2..1_000 {
        let _ = write!(
            text,
            "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = {pid}\n\
             {pid} 1700000001.0 mkdir(\"/r/{pid}\", 0755) = 0\n\
             {pid} 1700000001.0 +++ exited with 0 +++\n\
             1 1700000001.0 wait4(-1, [{{WIFEXITED(s)}}], 0, NULL) = {pid}\n"
        );
    }
    let trace = asked(text).import();
    assert_eq!(trace.trace.edges().unwrap().len(), 997);
}
