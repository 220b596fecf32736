//! Calls of several tasks that are under way at once: what waits for what.

use crate::common;

use common::{Imported, asked, waits};

/// Two tasks with a descriptor each of one file.
const BOTH: &str = "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
     1 1700000001.1 openat(AT_FDCWD, \"/r/f\", O_RDWR) = 3\n\
     2 1700000001.2 openat(AT_FDCWD, \"/r/f\", O_RDWR) = 4\n";

#[test]
fn a_lock_that_was_let_go_is_taken_after_that_even_if_it_was_had_sooner() {
    for (take, release) in [
        ("flock(FD, LOCK_EX", "flock(3, LOCK_UN"),
        (
            "fcntl(FD, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=0}",
            "fcntl(3, F_SETLKW, {l_type=F_UNLCK, l_whence=SEEK_SET, l_start=0, l_len=0}",
        ),
        ("flock(FD, LOCK_EX", "close(3"),
    ] {
        let [mine, theirs] = ["3", "4"].map(|number| take.replace("FD", number));
        let trace = asked(format!(
            "{BOTH}1 1700000001.3 {mine}) = 0\n\
             2 1700000001.4 {theirs} <unfinished ...>\n\
             1 1700000001.5 {release} <unfinished ...>\n\
             2 1700000001.6 <... {name} resumed>) = 0\n\
             1 1700000001.7 <... {released} resumed>) = 0\n\
             2 1700000001.8 write(4, \"x\"..., 5) = 5\n",
            name = &take[..5],
            released = release.split('(').next().unwrap(),
        ))
        .import();
        let told: Vec<u32> = trace.events[2..].iter().map(|event| event.thread).collect();
        assert_eq!(told, [0, 0, 1, 1], "{release}");
        assert!(waits(&trace, 4, 3) && !waits(&trace, 3, 4), "{release}");
        assert_eq!(trace.events[3].duration_ns, Some(200_000_000));
    }
}

#[test]
fn a_lock_that_only_the_end_of_a_process_lets_go_keeps_nobody_from_it() {
    let trace = asked(format!(
        "{BOTH}1 1700000001.3 flock(3, LOCK_EX) = 0\n\
         2 1700000001.4 flock(4, LOCK_EX <unfinished ...>\n\
         1 1700000001.5 exit_group(0) = ?\n\
         2 1700000001.6 <... flock resumed>) = 0\n\
         1 1700000001.7 +++ exited with 0 +++\n",
    ))
    .import();
    let end = ["flock #1 = 0", "close_exit #0 = 0", "exit = 0"];
    assert_eq!(trace.lines()[3..], end);
    assert!(!waits(&trace, 4, 3));
}

#[test]
fn threads_keep_the_order_in_which_they_take_and_let_go_a_lock_that_they_share() {
    let trace = asked(
        "1 1700000001.0 openat(AT_FDCWD, \"/r/f\", O_RDWR) = 3\n\
         1 1700000001.1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2\n\
         1 1700000001.2 flock(3, LOCK_EX) = 0\n\
         2 1700000001.3 flock(3, LOCK_UN) = 0\n\
         1 1700000001.4 flock(3, LOCK_EX) = 0\n",
    )
    .import();
    assert!(waits(&trace, 2, 1) && waits(&trace, 3, 2));
}

#[test]
fn logs_of_each_task_tell_when_a_lock_was_let_go() {
    let mut asked = asked("");
    let one = asked.file(
        "log.1",
        "1700000001.0 openat(AT_FDCWD, \"/r/f\", O_RDWR) = 3 <0.01>\n\
         1700000001.1 flock(3, LOCK_EX) = 0 <0.01>\n\
         1700000001.5 flock(3, LOCK_UN) = 0 <0.2>\n",
    );
    let other = asked.file(
        "log.2",
        "1700000001.2 openat(AT_FDCWD, \"/r/f\", O_RDWR) = 3 <0.01>\n\
         1700000001.4 flock(3, LOCK_EX) = 0 <0.2>\n",
    );
    asked.request.files = vec![one, other];
    let trace = asked.import();
    let threads: Vec<u32> = trace.events.iter().map(|event| event.thread).collect();
    assert_eq!(threads, [0, 0, 1, 0, 1]);
    assert!(waits(&trace, 4, 3));
}

#[test]
fn who_looks_for_the_end_of_a_file_waits_for_those_who_moved_it() {
    let trace = asked(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 openat(AT_FDCWD, \"/r/f\", O_WRONLY|O_APPEND) = 3\n\
         2 1700000001.1 openat(AT_FDCWD, \"/r/f\", O_WRONLY|O_APPEND) = 4\n\
         1 1700000001.2 lseek(3, 0, SEEK_END) = 1000\n\
         1 1700000001.3 write(3, \"x\"..., 5) = 5\n\
         2 1700000001.4 lseek(4, 0, SEEK_END) = 1005\n\
         1 1700000001.5 write(3, \"x\"..., 5) = 5\n\
         2 1700000001.6 lseek(4, 0, SEEK_HOLE) = 1010\n\
         1 1700000001.7 ftruncate(3, 100) = 0\n\
         2 1700000001.8 lseek(4, 100, SEEK_DATA) = -1 ENXIO (No such device or address)\n\
         1 1700000001.9 lseek(3, 0, SEEK_END) = 100\n",
    )
    .import();
    for row in 4..9 {
        assert!(waits(&trace, row, row - 1), "{row}");
    }
    assert_eq!(trace.tree(), ["r d 0", "r/f f 1000"]);
}

#[test]
fn who_sees_the_end_of_a_file_waits_for_all_appends_and_appends_do_not_wait_for_each_other() {
    for look in [
        "lseek(3, 0, SEEK_END) = 7",
        "read(3, \"\"..., 100) = 7",
        "pread64(3, \"\"..., 4, 4) = 3",
        "ftruncate(3, 2) = 0",
    ] {
        let trace = asked(format!(
            "1 1700000001.00 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
             1 1700000001.01 clone(child_stack=NULL, flags=SIGCHLD) = 3\n\
             1 1700000001.02 openat(AT_FDCWD, \"/r/f\", O_RDWR|O_APPEND|O_CREAT|O_EXCL, 0600) = 3\n\
             2 1700000001.03 openat(AT_FDCWD, \"/r/f\", O_RDWR|O_APPEND) = 3\n\
             3 1700000001.03 openat(AT_FDCWD, \"/r/f\", O_RDWR|O_APPEND) = 3\n\
             2 1700000001.04 write(3, \"x\"..., 3) = 3\n\
             3 1700000001.05 pwrite64(3, \"x\"..., 4, 0) = 4\n\
             1 1700000001.06 {look}\n\
             2 1700000001.07 write(3, \"x\"..., 3) = 3\n",
        ))
        .import();
        assert!(!waits(&trace, 4, 3), "{look}");
        assert!(waits(&trace, 5, 3) && waits(&trace, 5, 4), "{look}");
        assert!(waits(&trace, 6, 5), "{look}");
    }
}

/// A log of two tasks that work in `/r`, where what `second` returned shows that `first` took effect before.
fn overlapping(first: &str, result: &str, second: &str) -> Imported {
    let name = first.split('(').next().unwrap();
    asked(format!(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 {first} <unfinished ...>\n\
         2 1700000001.2 {second}\n\
         2 1700000001.3 access(\"/r/free\", F_OK) = -1 ENOENT (No such file or directory)\n\
         1 1700000001.4 <... {name} resumed>) = {result}\n"
    ))
    .manifest(".\td\t0\t755\t\nd\td\t0\t755\t\nd/old\tf\t5\t644\t\nempty\td\t0\t755\t\nold\tf\t5\t644\t\n")
    .import()
}

/// A call, what it returned, and the call that shows that it took effect before.
#[rustfmt::skip]
const SHOWN: &[(&str, &str, &str)] = &[
    ("mkdir(\"/r/n\", 0755", "0", "mkdir(\"/r/n\", 0755) = -1 EEXIST (File exists)"),
    ("mkdir(\"/r/n\", 0755", "0", "stat(\"/r/n\", {st_mode=S_IFDIR|0755, ...}) = 0"),
    ("mkdir(\"/r/n\", 0755", "0", "openat(AT_FDCWD, \"/r/n/f\", O_WRONLY|O_CREAT, 0644) = 5"),
    ("openat(AT_FDCWD, \"/r/n\", O_WRONLY|O_CREAT|O_EXCL, 0644", "5",
     "openat(AT_FDCWD, \"/r/n\", O_WRONLY|O_CREAT|O_EXCL, 0644) = -1 EEXIST (File exists)"),
    ("openat(AT_FDCWD, \"/r/n\", O_WRONLY|O_CREAT, 0644", "5",
     "openat(AT_FDCWD, \"/r/n\", O_RDONLY) = 3"),
    ("rename(\"/r/old\", \"/r/n\"", "0", "unlink(\"/r/n\") = 0"),
    ("rename(\"/r/d\", \"/r/n\"", "0", "unlink(\"/r/n/old\") = 0"),
    ("rename(\"/r/old\", \"/r/n\"", "0", "unlink(\"/r/old\") = -1 ENOENT (No such file or directory)"),
    ("link(\"/r/old\", \"/r/n\"", "0", "link(\"/r/old\", \"/r/n\") = -1 EEXIST (File exists)"),
    ("symlink(\"old\", \"/r/n\"", "0", "readlink(\"/r/n\", \"old\", 100) = 3"),
    ("unlink(\"/r/old\"", "0", "unlink(\"/r/old\") = -1 ENOENT (No such file or directory)"),
    ("unlink(\"/r/old\"", "0", "mkdir(\"/r/old\", 0755) = 0"),
    ("unlink(\"/r/d/old\"", "0", "rmdir(\"/r/d\") = 0"),
    ("openat(AT_FDCWD, \"/r/empty/n\", O_WRONLY|O_CREAT, 0644", "5",
     "rmdir(\"/r/empty\") = -1 ENOTEMPTY (Directory not empty)"),
];

#[test]
fn what_a_result_shows_of_a_call_that_returned_later_comes_before_it() {
    for (first, result, second) in SHOWN {
        let trace = overlapping(first, result, second);
        let threads: Vec<u32> = trace.events.iter().map(|event| event.thread).collect();
        // Threads are numbered by their first events.
        assert_eq!(threads, [0, 1, 1], "{first} {second}");
        assert!(waits(&trace, 1, 0), "{first} {second}");
        let unexplained = trace.count("/counts/tree_repairs/unexplained");
        assert_eq!(unexplained, 0, "{first} {second}");
    }
}

#[test]
fn calls_that_overlap_without_showing_it_keep_the_order_in_which_they_returned() {
    for (first, result, second) in [
        ("mkdir(\"/r/n\", 0755", "0", "mkdir(\"/r/m\", 0755) = 0"),
        (
            "unlink(\"/r/old\"",
            "0",
            "stat(\"/r/old\", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0",
        ),
        (
            "rename(\"/r/old\", \"/r/n\"",
            "0",
            "stat(\"/r/n\", 0x7f) = -1 ENOENT (No such file or directory)",
        ),
        (
            "mkdir(\"/r/n\", 0755",
            "-1 EEXIST (File exists)",
            "mkdir(\"/r/n\", 0755) = 0",
        ),
    ] {
        let trace = overlapping(first, result, second);
        assert_eq!(
            trace.events.last().unwrap().duration_ns,
            Some(300_000_000),
            "{first}"
        );
    }
}

/// A call that lasts, what it returned, and one that returned sooner and cannot have taken effect before it.
#[rustfmt::skip]
const REFUTED: &[(&str, &str, &str)] = &[
    ("stat(\"/r/old\", {st_mode=S_IFREG|0644, st_size=5, ...}", "0", "unlink(\"/r/old\") = 0"),
    ("openat(AT_FDCWD, \"/r/old\", O_RDONLY", "5", "rename(\"/r/old\", \"/r/n\") = 0"),
    ("chmod(\"/r/d/old\", 0600", "0", "rename(\"/r/d\", \"/r/e\") = 0"),
    ("access(\"/r/n\", F_OK", "-1 ENOENT (No such file or directory)", "mkdir(\"/r/n\", 0755) = 0"),
    ("access(\"/r/n\", F_OK", "-1 ENOENT (No such file or directory)", "rename(\"/r/old\", \"/r/n\") = 0"),
    ("unlink(\"/r/n\"", "-1 ENOENT (No such file or directory)", "link(\"/r/old\", \"/r/n\") = 0"),
    ("openat(AT_FDCWD, \"/r/n\", O_WRONLY|O_CREAT|O_EXCL, 0644", "5",
     "openat(AT_FDCWD, \"/r/n\", O_WRONLY|O_CREAT, 0644) = 5"),
    ("openat(AT_FDCWD, \"/r/old\", O_WRONLY|O_CREAT|O_EXCL, 0644", "-1 EEXIST (File exists)", "unlink(\"/r/old\") = 0"),
    ("mkdir(\"/r/old\", 0755", "-1 EEXIST (File exists)", "rename(\"/r/old\", \"/r/n\") = 0"),
    ("rmdir(\"/r/d\"", "-1 ENOTEMPTY (Directory not empty)", "unlink(\"/r/d/old\") = 0"),
    ("rename(\"/r/old\", \"/r/n\"", "0", "unlink(\"/r/n\") = 0"),
    ("link(\"/r/old\", \"/r/n\"", "0", "unlink(\"/r/old\") = 0"),
];

#[test]
fn what_a_result_shows_of_a_call_that_returned_sooner_comes_after_it() {
    for (first, result, second) in REFUTED {
        let trace = overlapping(first, result, second);
        let threads: Vec<u32> = trace.events.iter().map(|event| event.thread).collect();
        assert_eq!(threads, [0, 1, 1], "{first} {second}");
        assert!(waits(&trace, 1, 0), "{first} {second}");
        let unexplained = trace.count("/counts/tree_repairs/unexplained");
        assert_eq!(unexplained, 0, "{first} {second}");
    }
}

#[test]
fn what_is_found_later_tells_which_of_two_calls_took_effect_first() {
    let enoent = "-1 ENOENT (No such file or directory)";
    for (later, first) in [
        (
            format!("2 1700000009.0 access(\"/r/old\", F_OK) = {enoent}\n"),
            0,
        ),
        (
            "2 1700000009.0 access(\"/r/old\", F_OK) = 0\n".to_owned(),
            1,
        ),
    ] {
        let trace = asked(format!(
            "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
             1 1700000001.0 access(\"/r/d\", F_OK) = 0\n\
             1 1700000001.1 openat(AT_FDCWD, \"/r/old\", O_RDWR|O_CREAT, 0600 <unfinished ...>\n\
             2 1700000001.2 unlink(\"/r/old\") = 0\n\
             1 1700000001.4 <... openat resumed>) = 5\n{}{later}",
            "1 1700000002.0 access(\"/r/d/old\", F_OK) = 0\n".repeat(3000)
        ))
        .manifest(".\td\t0\t755\t\nd\td\t0\t755\t\nd/old\tf\t5\t644\t\nold\tf\t5\t644\t\n")
        .import();
        assert_eq!(trace.events[1].thread, first, "{later}");
        assert_eq!(
            trace.count("/counts/tree_repairs/unexplained"),
            0,
            "{later}"
        );
    }
}

#[test]
fn what_no_order_explains_stays_where_it_returned_and_is_counted() {
    let trace = asked(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 access(\"/r/old\", F_OK <unfinished ...>\n\
         2 1700000001.2 unlink(\"/r/old\") = 0\n\
         2 1700000001.3 unlink(\"/r/old\") = 0\n\
         1 1700000001.4 <... access resumed>) = 0\n",
    )
    .manifest(".\td\t0\t755\t\nold\tf\t5\t644\t\n")
    .import();
    // The first removal explains the look-up before it, and nothing the second one.
    let lines = ["access r/old = 0", "unlink r/old = 0", "unlink r/old = 0"];
    assert_eq!(trace.lines(), lines);
    for count in [
        "/blind_spots/results of overlapping calls that no order explains",
        "/counts/tree_repairs/unexplained",
    ] {
        assert_eq!(trace.count(count), 1, "{count}");
    }
}

#[test]
fn two_calls_that_failed_alike_do_not_wait_for_each_other() {
    let trace = asked(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 unlink(\"/r/old\" <unfinished ...>\n\
         2 1700000001.2 unlink(\"/r/old\" <unfinished ...>\n\
         2 1700000001.3 <... unlink resumed>) = -1 ENOENT (No such file or directory)\n\
         1 1700000001.4 <... unlink resumed>) = -1 ENOENT (No such file or directory)\n",
    )
    .manifest(".\td\t0\t755\t\nold\tf\t5\t644\t\n")
    .import();
    assert_eq!(trace.events.len(), 2);
}

#[test]
fn calls_that_follow_from_each_other_in_a_row_are_all_put_right() {
    let trace = asked(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 3\n\
         1 1700000001.1 mkdir(\"/r/a\", 0755 <unfinished ...>\n\
         2 1700000001.2 mkdir(\"/r/a/b\", 0755 <unfinished ...>\n\
         3 1700000001.3 openat(AT_FDCWD, \"/r/a/b/c\", O_WRONLY|O_CREAT|O_EXCL, 0644 <unfinished ...>\n\
         3 1700000001.4 <... openat resumed>) = 4\n\
         3 1700000001.5 write(4, \"x\"..., 5) = 5\n\
         2 1700000001.6 <... mkdir resumed>) = 0\n\
         1 1700000001.7 <... mkdir resumed>) = 0\n",
    )
    .import();
    let starts: Vec<i64> = trace.events.iter().map(|event| event.start_ns).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    assert_eq!(trace.tree(), ["r d 0"]);
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
}

#[test]
fn what_is_waited_for_may_have_come_while_another_call_was_waited_for() {
    for (one, other) in [(2, 3), (3, 2), (9, 3), (3, 9)] {
        let trace = asked(format!(
            "1 1700000001.0 openat(AT_FDCWD, \"/r\", O_RDONLY|O_DIRECTORY) = 3\n\
             {one} 1700000001.1 mkdir(\"/r/a\", 0755 <unfinished ...>\n\
             {other} 1700000001.2 mkdir(\"/r/a/b\", 0755 <unfinished ...>\n\
             1 1700000001.3 openat(AT_FDCWD, \"/r/a/b/c\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4\n\
             1 1700000001.4 write(4, \"x\"..., 5) = 5\n\
             {one} 1700000001.5 <... mkdir resumed>) = 0\n\
             1 1700000001.6 close(4) = 0\n\
             {other} 1700000001.7 <... mkdir resumed>) = 0\n\
             1 1700000001.8 close(3) = 0\n",
        ))
        .import();
        let starts: Vec<i64> = trace.events.iter().map(|event| event.start_ns).collect();
        assert!(starts.is_sorted(), "{one} {other}: {starts:?}");
        assert_eq!(trace.tree(), ["r d 0"], "{one} {other}");
        assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    }
}

#[test]
fn a_read_of_what_is_being_written_comes_after_the_write() {
    let trace = asked(format!(
        "{BOTH}1 1700000001.3 write(3, \"x\"..., 100 <unfinished ...>\n\
         2 1700000001.4 read(4, \"x\"..., 4096) = 100\n\
         2 1700000001.5 read(4, \"\", 4096) = 0\n\
         1 1700000001.6 <... write resumed>) = 100\n",
    ))
    .manifest(".\td\t0\t755\t\nf\tf\t0\t644\t\n")
    .import();
    assert_eq!(
        trace.lines()[2..],
        ["write #0 = 100", "read #1 = 100", "read #1 = 0"]
    );
    assert!(waits(&trace, 3, 2));
    assert_eq!(trace.tree(), ["r d 0", "r/f f 0"]);
}

#[test]
fn a_call_that_never_returns_is_not_waited_for_to_the_end() {
    let line = "2 1700000001.3 access(\"/r/free\", F_OK) = -1 ENOENT (No such file or directory)\n";
    let text = format!(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 mkdir(\"/r/n\", 0755 <unfinished ...>\n\
         2 1700000001.2 mkdir(\"/r/n\", 0755) = -1 EEXIST (File exists)\n{}",
        line.repeat(10_000)
    );
    let trace = asked(&text).import();
    assert_eq!(trace.events.len(), 10_001);
    let returned = format!("{text}1 1700000001.4 <... mkdir resumed>) = 0\n");
    assert_eq!(asked(&returned).import().events.len(), 10_002);
}

#[test]
fn who_is_refused_a_lock_meets_those_who_have_it() {
    let range = |kind: &str| format!("{{l_type={kind}, l_whence=SEEK_SET, l_start=0, l_len=0}}");
    let [write, none] = ["F_WRLCK", "F_UNLCK"].map(range);
    for (take, attempt, release) in [
        (
            "flock(3, LOCK_EX|LOCK_NB)",
            "flock(4, LOCK_SH|LOCK_NB)",
            "flock(3, LOCK_UN)",
        ),
        ("flock(3, LOCK_SH)", "flock(4, LOCK_EX|LOCK_NB)", "close(3)"),
        (
            &format!("fcntl(3, F_SETLK, {write})"),
            &format!("fcntl(4, F_SETLK, {write})"),
            &format!("fcntl(3, F_SETLK, {none})"),
        ),
    ] {
        let trace = asked(format!(
            "{BOTH}1 1700000001.3 {take} = 0\n\
             2 1700000001.4 {attempt} = -1 EAGAIN (Resource temporarily unavailable)\n\
             1 1700000001.5 {release} = 0\n\
             2 1700000001.6 {attempt} = 0\n"
        ))
        .import();
        for row in 3..6 {
            assert!(waits(&trace, row, row - 1), "{release}: {row}");
        }
    }
}

#[test]
fn who_was_to_wait_for_a_lock_and_did_not_get_it_keeps_nobody_from_letting_it_go() {
    let trace = asked(format!(
        "{BOTH}1 1700000001.3 flock(3, LOCK_EX) = 0\n\
         2 1700000001.4 flock(4, LOCK_EX) = -1 EINTR (Interrupted system call)\n\
         1 1700000001.5 flock(3, LOCK_UN) = 0\n"
    ))
    .import();
    assert!(!waits(&trace, 4, 3));
}

#[test]
fn a_listing_comes_where_the_directory_had_as_many_entries() {
    let listing = |entries| {
        format!(
            "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
             1 1700000001.0 mkdir(\"/r/d\", 0755) = 0\n\
             1 1700000001.0 openat(AT_FDCWD, \"/r/d/old\", O_WRONLY|O_CREAT, 0644) = 7\n\
             1 1700000001.0 openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 3\n\
             1 1700000001.1 getdents64(3 <unfinished ...>\n\
             2 1700000001.2 openat(AT_FDCWD, \"/r/d/a\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4\n\
             2 1700000001.3 unlink(\"/r/d/old\") = 0\n\
             2 1700000001.4 openat(AT_FDCWD, \"/r/d/b\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 5\n\
             2 1700000001.5 openat(AT_FDCWD, \"/r/d/c\", O_WRONLY|O_CREAT|O_EXCL, 0644 <unfinished ...>\n\
             1 1700000001.6 <... getdents64 resumed>, 0x5 /* {entries} entries */, 32768) = 100\n\
             1 1700000001.7 getdents64(3, 0x5 /* 0 entries */, 32768) = 0\n\
             2 1700000001.8 <... openat resumed>) = 6\n"
        )
    };
    // `.` and `..` count too. Before `b` there is one name, then there are two, and three with `c`, whose call returned later.
    for (entries, place) in [(3, 5), (4, 6), (5, 7)] {
        let trace = asked(listing(entries)).import();
        let mut rows = trace.events.iter();
        let listed = rows.position(|event| event.op.name() == "getdents");
        assert_eq!(listed, Some(place), "{entries}: {:?}", trace.lines());
        assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    }
}

#[test]
fn a_call_that_failed_explains_nothing() {
    let trace = asked(
        "1 1700000001.00 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.00 clone(child_stack=NULL, flags=SIGCHLD) = 3\n\
         3 1700000001.04 openat(AT_FDCWD, \"/r/b\", O_RDWR|O_CREAT, 0644 <unfinished ...>\n\
         1 1700000001.05 access(\"/r/b\", F_OK <unfinished ...>\n\
         2 1700000001.06 rename(\"/r/d/b\", \"/r/b\" <unfinished ...>\n\
         1 1700000001.07 <... access resumed>) = 0\n\
         3 1700000001.08 <... openat resumed>) = 5\n\
         3 1700000001.11 unlink(\"/r/d/b\" <unfinished ...>\n\
         3 1700000001.12 <... unlink resumed>) = 0\n\
         2 1700000001.13 <... rename resumed>) = -1 ENOENT (No such file or directory)\n",
    )
    .manifest(".\td\t0\t755\t\nd\td\t0\t755\t\nd/b\tf\t5\t644\t\n")
    .import();
    let lines = trace.lines();
    let order = [
        "open r/b #0 = 0",
        "access r/b = 0",
        "unlink r/d/b = 0",
        "rename r/d/b r/b = -2",
    ];
    assert_eq!(lines, order);
}

#[test]
fn a_task_that_is_told_of_before_the_call_returns_is_nobody_elses_child() {
    let trace = asked(
        "1 1700000001.0 chdir(\"/r/a\") = 0\n\
         1 1700000001.1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         2 1700000001.2 chdir(\"/r/b\") = 0\n\
         1 1700000001.3 vfork( <unfinished ...>\n\
         2 1700000001.4 vfork( <unfinished ...>\n\
         2 1700000001.5 +++ forked 3 +++\n\
         3 1700000001.6 openat(AT_FDCWD, \"f\", O_RDONLY) = 3\n\
         1 1700000001.7 +++ forked 4 +++\n\
         2 1700000001.8 <... vfork resumed>) = 3\n\
         4 1700000001.9 openat(AT_FDCWD, \"f\", O_RDONLY) = 3\n",
    )
    .manifest(
        ".\td\t0\t755\t\na\td\t0\t755\t\na/f\tf\t0\t644\t\nb\td\t0\t755\t\nb/f\tf\t0\t644\t\n",
    )
    .import();
    let opened: Vec<String> = (trace.lines().into_iter())
        .filter(|line| line.starts_with("open"))
        .collect();
    assert_eq!(opened, ["open r/b/f #0 = 0", "open r/a/f #1 = 0"]);
    assert_eq!(trace.count("/counts/parents_guessed"), 0);
}

#[test]
fn who_is_refused_a_lock_meets_those_who_have_it_though_the_calls_overlap() {
    let range = |kind: &str| format!("{{l_type={kind}, l_whence=SEEK_SET, l_start=0, l_len=0}}");
    let [write, none] = ["F_WRLCK", "F_UNLCK"].map(range);
    let refused = "-1 EAGAIN (Resource temporarily unavailable)";
    for (name, take, attempt, release) in [
        (
            "flock",
            "LOCK_EX".to_owned(),
            "LOCK_SH|LOCK_NB".to_owned(),
            "LOCK_UN".to_owned(),
        ),
        (
            "fcntl",
            format!("F_SETLK, {write}"),
            format!("F_SETLK, {write}"),
            format!("F_SETLK, {none}"),
        ),
        (
            "fcntl", // as our own recorder tells it: by numbers
            format!("0x6, {}", write.replace("F_WRLCK", "0x1")),
            format!("0x6, {}", write.replace("F_WRLCK", "0x1")),
            format!("0x6, {}", none.replace("F_UNLCK", "0x2")),
        ),
    ] {
        for (second, last) in [(refused, "0"), ("0", refused)] {
            let trace = asked(format!(
                "{BOTH}1 1700000001.3 {name}(3, {take} <unfinished ...>\n\
                 2 1700000001.4 {name}(4, {attempt}) = {refused}\n\
                 1 1700000001.5 <... {name} resumed>) = 0\n\
                 2 1700000001.6 {name}(4, {attempt} <unfinished ...>\n\
                 1 1700000001.7 {name}(3, {release} <unfinished ...>\n\
                 2 1700000001.8 <... {name} resumed>) = {second}\n\
                 1 1700000001.9 <... {name} resumed>) = 0\n\
                 1 1700000002.0 {name}(3, {attempt}) = {last}\n"
            ))
            .import();
            let results: Vec<i64> = trace.events.iter().map(|event| event.result).collect();
            let tried = if second == "0" { [0, 0] } else { [-11, 0] };
            let end = if last == "0" { 0 } else { -11 };
            assert_eq!(results[2..], [0, -11, tried[0], tried[1], end], "{name}");
            assert!(
                waits(&trace, 3, 2) && waits(&trace, 5, 4),
                "{name}: {second}"
            );
        }
    }
}
