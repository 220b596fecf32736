//! Tasks that wait for each other: for what was written into a pipe, and for an end.

use crate::common;

use common::{Imported, asked, waits};

const MS: i64 = 1_000_000;

/// A task that opens `/r/a` for 10 ms, makes a pipe (4, 5) and another task.
const OPENED: &str = "1 1700000100.000000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3 <0.010000>\n\
     1 1700000100.100000 pipe2([4, 5], 0) = 0 <0.000010>\n\
     1 1700000100.200000 clone(child_stack=NULL, flags=SIGCHLD) = 2 <0.000100>\n";

/// The same, and then what is given.
fn imported(then: &str) -> Imported {
    asked(format!("{OPENED}{then}")).cwd("/r").import()
}

/// Think times of a row in milliseconds: since the thread's last event, and since what it waited for.
fn thinks(trace: &Imported, row: usize) -> (i64, Option<i64>) {
    let event = &trace.events[row];
    (event.gap_ns / MS, event.after_ns.map(|ns| ns / MS))
}

fn edges(trace: &Imported) -> String {
    trace.document["counts"]["edges_by_reason"].to_string()
}

#[test]
fn who_reads_from_a_pipe_goes_on_after_what_came_before_it_was_written() {
    let trace = imported(
        "1 1700000100.300000 poll([{fd=4, events=POLLIN}], 1, -1 <unfinished ...>\n\
         2 1700000101.000000 access(\"/r/b\", F_OK) = 0 <0.500000>\n\
         2 1700000101.700000 write(5, \"x\", 1) = 1 <0.000010>\n\
         1 1700000101.700000 <... poll resumed>) = 1 ([{fd=4, revents=POLLIN}]) <1.400000>\n\
         1 1700000101.800000 read(4, \"x\", 1) = 1 <0.100000>\n\
         1 1700000102.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n\
         1 1700000102.300000 access(\"/r/d\", F_OK) = 0 <0.000010>\n",
    );
    assert_eq!(edges(&trace), r#"{"pipe":1,"spawn":1}"#);
    assert!(waits(&trace, 1, 0) && waits(&trace, 2, 1));
    // It was made 190 ms after the open, and began 800 ms later.
    let by: Vec<_> = trace.events.iter().map(|event| event.after).collect();
    assert_eq!(by, [None, Some(0), Some(1), None]);
    assert_eq!(thinks(&trace, 1), (799, Some(990)));
    // 1,990 ms since its open ended, of which it waited 1,500.
    assert_eq!(thinks(&trace, 2), (490, Some(500)));
    assert_eq!(thinks(&trace, 3), (299, None));
}

#[test]
fn who_waits_for_a_process_goes_on_after_its_end() {
    let trace = imported(
        "1 1700000100.300000 wait4(-1 <unfinished ...>\n\
         2 1700000101.000000 access(\"/r/b\", F_OK) = 0 <0.500000>\n\
         2 1700000101.900000 +++ exited with 0 +++\n\
         1 1700000101.900000 <... wait4 resumed>, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 2 <1.600000>\n\
         1 1700000102.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n",
    );
    assert_eq!(trace.lines()[2], "exit = 0");
    assert_eq!(thinks(&trace, 2), (400, None));
    assert!(waits(&trace, 3, 2));
    assert_eq!(thinks(&trace, 3), (390, Some(100)));
}

/// A task that opens `/r/a` for 10 ms and makes a thread.
const THREADED: &str = "1 1700000100.000000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3 <0.010000>\n\
     1 1700000100.200000 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD|CLONE_CHILD_CLEARTID, exit_signal=0} => \
     {parent_tid=[2]}, 88) = 2 <0.000100>\n";

#[test]
fn who_joins_a_thread_goes_on_after_its_end_or_its_last_event_if_that_is_told_later() {
    let waits_for = |thread: &str| {
        format!(
            "1 1700000100.300000 futex(0x7f01, FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME, {thread}, NULL, FUTEX_BITSET_MATCH_ANY <unfinished ...>\n"
        )
    };
    let events = "2 1700000101.000000 access(\"/r/b\", F_OK) = 0 <0.500000>\n\
         2 1700000101.800000 exit(0) = ?\n";
    let end = "2 1700000101.900000 +++ exited with 0 +++\n";
    let goes_on = "1 1700000101.900000 <... futex resumed>) = 0 <1.600000>\n";
    let then = "1 1700000102.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n";
    let joined = |parts: [&str; 3]| {
        let log = format!(
            "{THREADED}{}{events}{}{then}",
            waits_for("2"),
            parts.concat()
        );
        asked(log).cwd("/r").import()
    };
    let told_before = joined([end, goes_on, ""]);
    assert!(waits(&told_before, 3, 2));
    assert_eq!(thinks(&told_before, 3), (390, Some(100)));
    let told_later = joined([goes_on, end, ""]);
    assert!(waits(&told_later, 3, 1));
    assert_eq!(thinks(&told_later, 3), (390, Some(500)));
    // A value that is no number of a thread of its own, and a wait that was over before that had ended.
    let apart = THREADED.replace("CLONE_FILES|CLONE_THREAD|", "");
    let over = "1 1700000101.900000 <... futex resumed>) = -1 ETIMEDOUT (Connection timed out) <1.600000>\n";
    for (before, value, after) in [
        (apart.as_str(), "2", goes_on),
        (THREADED, "1", goes_on),
        (THREADED, "2", over),
    ] {
        let log = format!("{before}{}{events}{after}{end}{then}", waits_for(value));
        let trace = asked(log).cwd("/r").import();
        assert!(!waits(&trace, 3, 1) && !waits(&trace, 3, 2));
        assert_eq!(thinks(&trace, 3).1, None);
    }
}

#[test]
fn what_is_no_event_of_another_is_waited_for_as_long_as_it_took() {
    let silent = "1 1700000100.300000 read(4 <unfinished ...>\n\
         2 1700000101.000000 access(\"/s/b\", F_OK) = 0 <0.500000>\n\
         2 1700000101.700000 write(5, \"x\", 1) = 1 <0.000010>\n\
         1 1700000101.700000 <... read resumed>, \"x\", 1) = 1 <1.400000>\n\
         1 1700000102.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n";
    // Its only cause is its own thread's event.
    let trace = imported(silent);
    assert_eq!(edges(&trace), "{}");
    assert_eq!(trace.events[1].after_ns.map(|ns| ns / MS), Some(1_990));
    let from_outside = silent.replace(
        "2 1700000101.700000 write(5, \"x\", 1) = 1 <0.000010>\n",
        "",
    );
    assert_eq!(thinks(&imported(&from_outside), 1), (1_990, None));
}

#[test]
fn descriptors_that_are_closed_or_given_out_again_are_no_pipe_any_more() {
    let again = "2 1700000100.300000 openat(AT_FDCWD, \"/r/b\", O_RDONLY) = 6 <0.000010>\n\
         2 1700000100.400000 write(5, \"x\", 1) = 1 <0.000010>\n\
         1 1700000100.500000 execve(\"/bin/x\", [\"x\"], 0x7f /* 1 var */) = 0 <0.000010>\n\
         1 1700000100.600000 read(4, \"x\", 1) = 1 <0.000010>\n\
         1 1700000100.700000 access(\"/r/c\", F_OK) = 0 <0.000010>\n";
    assert_eq!(imported(again).events[2].after, Some(1));
    let closed = format!("{OPENED}{again}").replace("pipe2([4, 5], 0)", "pipe2([4, 5], O_CLOEXEC)");
    assert_eq!(asked(closed).cwd("/r").import().events[2].after, None);
    let shown = again.replace(
        "read(4,",
        "fstat(4</s/x>, {}) = 0 <0.000010>\n1 1700000100.650000 read(4,",
    );
    assert_eq!(imported(&shown).events[2].after, None);
}

#[test]
fn who_slept_or_waited_for_others_than_its_reader_has_not_waited_for_that() {
    let log = "2 1700000100.300000 openat(AT_FDCWD, \"/r/b\", O_RDONLY) = 6 <0.000010>\n\
         1 1700000100.300000 write(5, \"x\", 1) = 1 <0.000010>\n\
         2 1700000100.400000 read(4, \"x\", 1) = 1 <0.000010>\n\
         1 1700000100.500000 poll(NULL, 0, 500) = 0 (Timeout) <0.500000>\n\
         1 1700000101.100000 poll([{fd=9, events=POLLIN}], 1, -1) = 1 ([{fd=9, revents=POLLIN}]) <0.500000>\n\
         1 1700000101.600000 write(5, \"x\", 1) = 1 <0.100000>\n\
         1 1700000102.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n";
    assert_eq!(thinks(&imported(log), 2), (1_890, None));
}

#[test]
fn who_finds_no_room_has_waited_for_a_reader_with_events() {
    let full = "2 1700000100.400000 access(\"/r/b\", F_OK) = 0 <0.100000>\n\
         1 1700000100.500000 write(5, \"x\"..., 65536) = 65536 <0.000010>\n\
         2 1700000100.600000 read(4, \"x\"..., 65536) = 65536 <0.000010>\n\
         1 1700000101.000000 write(5, \"x\"..., 65536) = 65536 <0.900000>\n\
         1 1700000102.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n";
    assert_eq!(thinks(&imported(full), 2), (1_090, None));
    // What it has read before came from the other's event: since that it has waited for room, too.
    let answered = full.replace(
        "1 1700000101.000000",
        "2 1700000100.700000 write(9, \"y\", 1) = 1 <0.000010>\n\
         1 1700000100.800000 read(8, \"y\", 1) = 1 <0.000010>\n\
         1 1700000101.000000",
    );
    let pair = "socketpair(AF_UNIX, SOCK_STREAM, 0, [8, 9]) = 0 <0.000010>";
    let before = format!("1 1700000099.000000 {pair}\n{OPENED}");
    let trace = asked(format!("{before}{answered}")).cwd("/r").import();
    assert_eq!(thinks(&trace, 2), (1_089, Some(600)));
    let nobody = full.replace("/r/b", "/s/b");
    assert_eq!(thinks(&imported(&nobody), 1), (1_990, None));
}

#[test]
fn who_waits_for_room_goes_on_after_what_came_before_the_read_that_made_it() {
    let full = "1 1700000100.300000 write(5, \"x\"..., 65536) = 65536 <0.000010>\n\
         1 1700000100.400000 poll([{fd=5, events=POLLOUT}], 1, -1 <unfinished ...>\n\
         2 1700000100.500000 access(\"/r/b\", F_OK) = 0 <0.100000>\n\
         2 1700000101.000000 read(4, \"x\"..., 65536) = 65536 <0.000010>\n\
         2 1700000101.200000 access(\"/r/later\", F_OK) = 0 <0.100000>\n\
         1 1700000101.500000 <... poll resumed>) = 1 ([{fd=5, revents=POLLOUT}]) <1.100000>\n\
         1 1700000101.600000 write(5, \"x\"..., 65536) = 65536 <0.000010>\n\
         1 1700000102.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n";
    let trace = imported(full);
    assert!(waits(&trace, 3, 1) && !waits(&trace, 3, 2));
    assert_eq!(trace.events[3].after, Some(1));
    // 1,990 ms since its open ended, of which it waited 1,100.
    assert_eq!(thinks(&trace, 3), (889, Some(1_400)));
    let early = full.replace("2 1700000101.0", "2 1700000100.35");
    let early = early.replace("1 1700000100.4", "1 1700000100.9");
    let no_read_meanwhile = imported(&early);
    assert!(!waits(&no_read_meanwhile, 3, 1));
    let at_once = full.replace("<1.100000>", "<0.000050>");
    assert!(
        !waits(&imported(&at_once), 3, 1),
        "no time to wait for anything"
    );
}

#[test]
fn pairs_of_sockets_go_both_ways_and_a_log_may_tell_of_the_read_first() {
    let log = "1 1700000100.000000 socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4]) = 0 <0.000010>\n\
         1 1700000100.100000 clone(child_stack=NULL, flags=SIGCHLD) = 2 <0.000100>\n\
         2 1700000100.200000 read(4 <unfinished ...>\n\
         1 1700000100.300000 access(\"/r/a\", F_OK) = 0 <0.100000>\n\
         1 1700000100.500000 write(3, \"x\", 1 <unfinished ...>\n\
         2 1700000100.600000 <... read resumed>, \"x\", 1) = 1 <0.400000>\n\
         1 1700000100.600000 <... write resumed>) = 1 <0.100000>\n\
         2 1700000100.700000 access(\"/r/b\", F_OK) = 0 <0.100000>\n\
         2 1700000100.800000 write(4, \"yz\", 2) = 2 <0.000010>\n\
         1 1700000100.900000 read(3, \"y\", 1) = 1 <0.000010>\n\
         1 1700000101.000000 access(\"/r/c\", F_OK) = 0 <0.000010>\n\
         1 1700000101.100000 read(3, \"z\", 1) = 1 <0.000010>\n\
         1 1700000101.200000 access(\"/r/d\", F_OK) = 0 <0.000010>\n";
    let trace = asked(log).cwd("/r").import();
    assert_eq!(edges(&trace), r#"{"pipe":2}"#);
    assert!(waits(&trace, 1, 0) && waits(&trace, 2, 1));
    assert_eq!(thinks(&trace, 1), (199, Some(300)));
    assert_eq!(thinks(&trace, 2).1, Some(200));
    // The rest of the same write: what came before it has been waited for.
    assert_eq!(thinks(&trace, 3), (199, Some(199)));
}
