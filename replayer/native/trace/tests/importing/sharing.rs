//! Descriptors that tasks share and part, tasks that have two numbers, and calls whose other half is missing.

use crate::common;

use common::{asked, waits};

const THREAD: &str = "flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD";

/// Two threads, of which one does something; what the other one does then.
fn shared(parts: &str, then: &str) -> Vec<String> {
    let log = format!(
        "1 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3\n\
         1 clone(child_stack=0x7f, {THREAD}) = 2\n\
         2 {parts}\n\
         1 {then}\n"
    );
    asked(log).cwd("/r").import().lines()
}

#[test]
fn a_thread_that_has_parted_its_table_closes_its_own_descriptors() {
    let write = "write(3, \"x\", 1) = 1";
    let opened = "open r/a #0 = 0".to_owned();
    for parts in [
        "close_range(3, 4294967295, CLOSE_RANGE_UNSHARE) = 0",
        "unshare(CLONE_FILES) = 0\n2 close_range(3, 4294967295, 0) = 0",
    ] {
        let lines = [opened.clone(), "write #0 = 1".to_owned()];
        assert_eq!(shared(parts, write), lines, "{parts}");
    }
    let closed = "close_range(3, 4294967295, 0) = 0";
    let lines = [opened, "close_exit #0 = 0".to_owned()];
    assert_eq!(
        shared(
            closed,
            "write(3, \"x\", 1) = -1 EBADF (Bad file descriptor)"
        ),
        lines
    );
}

#[test]
fn a_thread_that_has_parted_its_directory_leaves_the_others_where_they_are() {
    let chdir = "chdir(\"/r/d\") = 0";
    let unlink = "unlink(\"x\") = 0";
    for (parts, place) in [
        (
            format!("unshare(CLONE_FS) = 0\n2 {chdir}"),
            "unlink r/x = 0",
        ),
        (
            format!("unshare(CLONE_NEWNS) = 0\n2 {chdir}"),
            "unlink r/x = 0",
        ),
        (chdir.to_owned(), "unlink r/d/x = 0"),
    ] {
        let lines = shared(&parts, unlink);
        assert_eq!(lines.last().unwrap(), place, "{parts}");
    }
}

#[test]
fn only_what_a_log_cannot_show_of_unshare_is_a_blind_spot() {
    let trace = asked(
        "1 access(\"/r/a\", F_OK) = 0\n\
         1 unshare(CLONE_FILES|CLONE_FS) = 0\n\
         1 unshare(CLONE_NEWNET) = 0\n\
         1 unshare(CLONE_NEWNS|CLONE_FILES) = 0\n\
         1 unshare(CLONE_NEWNS) = -1 EPERM (Operation not permitted)\n",
    )
    .import();
    assert_eq!(trace.count("/blind_spots/unshare"), 2);
}

#[test]
fn a_child_in_a_namespace_of_processes_has_the_number_that_its_lines_bear() {
    for made in [
        "2 /* 4711 in strace's PID NS */",
        "2<sh> /* 4711 in strace's PID NS */",
    ] {
        let trace = asked(format!(
            "10 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
             10 clone(child_stack=NULL, flags=CLONE_NEWPID|SIGCHLD) = {made}\n\
             4711 read(3, \"x\", 10) = 1\n\
             4711 +++ exited with 0 +++\n\
             10 wait4(-1, NULL, 0, NULL) = 2\n\
             10 close(3) = 0\n"
        ))
        .import();
        assert_eq!(
            trace.lines(),
            ["open r/a #0 = 0", "read #0 = 1", "exit = 0", "close #0 = 0"]
        );
        assert_eq!(trace.count("/counts/edges_by_reason/wait"), 1);
    }
}

#[test]
fn who_waits_for_a_child_of_a_namespace_may_be_another_thread_than_who_made_it() {
    // 2 is the number of a process of strace's as well, and of a child of another container.
    let trace = asked(format!(
        "10 access(\"/r/first\", F_OK) = 0\n\
         10 clone(child_stack=0x7f, {THREAD}) = 3 /* 12 in strace's PID NS */\n\
         10 clone(child_stack=NULL, flags=CLONE_VM|CLONE_VFORK|SIGCHLD) = 2 /* 4711 in strace's PID NS */\n\
         2 access(\"/r/other\", F_OK) = 0\n\
         2 +++ exited with 0 +++\n\
         4711 access(\"/r/child\", F_OK) = 0\n\
         4711 +++ exited with 0 +++\n\
         12 wait4(2, NULL, 0, NULL) = 2\n\
         12 access(\"/r/next\", F_OK) = 0\n"
    ))
    .import();
    // Its own child's end, and not that of the other one.
    assert!(waits(&trace, 5, 4), "{:?}", trace.lines());
    assert!(!waits(&trace, 5, 2));
    assert_eq!(trace.count("/counts/edges_by_reason/wait"), 1);
}

#[test]
fn a_close_whose_return_is_missing_takes_none_of_the_next_call() {
    // What stands in the log behind it: a whole call, one in halves, the end of one, and one that was cut and goes on.
    for next in [
        "1 getpid() = 1\n",
        "1 read(4, <unfinished ...>\n1 <... read resumed>\"x\", 10) = 1\n",
        "1 <... read resumed>\"x\", 10) = 1\n",
        "1 close(7\n) = -1 EBADF (Bad file descriptor)\n",
        "1 lseek(4, 0, SEEK_CUR <unfinished ...>\n1 <... lseek resumed>) = 0\n",
    ] {
        let trace = asked(format!(
            "1 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
             1 openat(AT_FDCWD, \"/r/b\", O_RDONLY) = 4\n\
             1 close(3 <unfinished ...>\n\
             {next}\
             1 close(4) = 0\n"
        ))
        .import();
        let lines = trace.lines();
        let closes: Vec<&String> = lines
            .iter()
            .filter(|line| line.starts_with("close"))
            .collect();
        assert_eq!(closes, ["close #0 = 0", "close #1 = 0"], "{next}");
        assert_eq!(trace.count("/counts/calls_cut/never resumed"), 1, "{next}");
        assert_eq!(trace.count("/counts/lines_not_understood"), 0, "{next}");
    }
}

#[test]
fn a_child_whose_first_return_is_missing_has_what_its_parent_had() {
    let trace = asked(
        "1 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
         1 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n\
         2 read(3, <unfinished ...>\n\
         2 lseek(3, 0, SEEK_SET) = 0\n\
         1 <... clone resumed>) = 2\n",
    )
    .import();
    assert_eq!(trace.lines(), ["open r/a #0 = 0", "lseek #0 = 0"]);
}

#[test]
fn files_are_made_with_the_modes_that_the_umask_of_their_process_leaves() {
    let make = |task: u32| {
        format!("{task} openat(AT_FDCWD, \"/r/{task}\", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3\n")
    };
    let log = [make(1), make(2), "2 umask(000) = 007\n".to_owned()].concat();
    let log = log + "2 mkdir(\"/r/d\", 0777) = 0\n";
    let modes = |umasks| {
        let mut asked = asked(&log);
        asked.request.umasks = umasks;
        let events = asked.import().events;
        events
            .iter()
            .filter_map(|event| event.mode)
            .collect::<Vec<_>>()
    };
    assert_eq!(modes(vec![]), [0o644, 0o644, 0o777]);
    assert_eq!(modes(vec![(None, 0o77)]), [0o600, 0o600, 0o777]);
    assert_eq!(
        modes(vec![(Some(2), 0o7), (None, 0)]),
        [0o666, 0o660, 0o777]
    );
}

#[test]
fn what_is_asked_for_is_not_read_out_of_the_data() {
    let trace = asked(
        "1 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
         1 readv(3, [{iov_base=\"{iov_len=4096}\", iov_len=10}, {iov_base=\"\\\"iov_len=7\"..., iov_len=6}], 2) = 16\n",
    )
    .import();
    assert_eq!(trace.events[1].size, Some(16));
    assert_eq!(trace.count("/tree/sizes_that_are_least"), 1);
}

#[test]
fn a_copy_between_what_cannot_be_opened_again_and_what_lies_outside_is_not_representable() {
    let trace = asked(
        "1 access(\"/r/a\", F_OK) = 0\n\
         1 sendfile(5<socket:[1]>, 3</r/gone>(deleted), NULL, 100) = 100\n\
         1 sendfile(5<socket:[1]>, 4</etc/passwd>, NULL, 100) = 100\n",
    )
    .import();
    let lost = trace.document["counts"]["calls_not_representable"]
        .as_object()
        .unwrap();
    let names: Vec<&String> = lost.keys().collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].starts_with("sendfile ("), "{names:?}");
    assert_eq!(trace.count("/counts/calls_out_of_scope/sendfile"), 1);
}
