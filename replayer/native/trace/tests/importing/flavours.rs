//! Every flavour of strace's text, by lines as real logs have them.

use crate::common;

use common::asked;
use replayer_trace::{Op, import};

const CALLS: [&str; 3] = [
    "openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3",
    "read(3, \"x\"..., 4096) = 10",
    "close(3) = 0",
];
const LINES: [&str; 3] = ["open r/a #0 = 0", "read #0 = 10", "close #0 = 0"];

#[test]
fn stamps_and_numbers_of_every_kind_are_taken_off() {
    let fronts = [
        "",
        "4711 ",
        "4711  12:21:46 ",
        "4711  12:21:46.284771 ",
        "4711  1795222977.875185 ",
        "4711  1795224641.901361137 ",
        "4711  1795224641.901361 (+     0.000020) ",
        "4711  12:21:46 (+     0.000020) ",
        "12:21:46 ",
        "     0.000020 ",
        "[pid  4711] ",
        "[pid  4711] 12:21:46.284771 ",
        "1795222977 ",
    ];
    for front in fronts {
        let log = CALLS
            .map(|call| {
                format!(
                    "{front}{call}
"
                )
            })
            .concat();
        let trace = asked(log).import();
        assert_eq!(trace.lines(), LINES, "{front}");
        assert_eq!(trace.count("/counts/lines_not_understood"), 0, "{front}");
    }
}

#[test]
fn durations_and_shown_descriptors_are_read() {
    let trace = asked(
        "3996  1795222977.882915 openat(AT_FDCWD</r>, \"/r/style.css\", O_RDONLY) = 7</r/style.css> <0.000038>\n\
         3996  1795222977.883117 read(7</r/style.css>, \"/*\\nTheme Name: Twenty Twenty-Three\\nTheme\"..., 8192) = 1096 <0.000073>\n\
         3996  1795222977.883252 read(7</r/style.css>, \"\", 7096) = 0 <0.000003>\n\
         3996  1795222977.883323 close(7</r/style.css>) = 0 <0.000039>\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/style.css #0 = 0",
            "read #0 = 1096",
            "read #0 = 0",
            "close #0 = 0"
        ]
    );
    assert_eq!(trace.events[1].start_ns, 202_000);
    assert_eq!(trace.events[1].duration_ns, Some(73_000));
    assert_eq!(trace.tree(), ["r d 0", "r/style.css f 1096"]);
}

#[test]
fn raw_calls_in_hexadecimal_are_followed_by_number() {
    let trace = asked(
        "31434 1795224581.6 openat(AT_FDCWD</r>, \"/r/db\", O_RDWR|O_CREAT|O_NOFOLLOW|O_CLOEXEC, 0644) = 3</r/db> <0.000005>\n\
         31434 1795224581.7 pwrite64(0x3, 0x7ffe79925410, 0x1000, 0x2000) = 0x1000 <0.000003>\n\
         31434 1795224581.8 pread64(0x3, 0x7ffe79925410, 0x310, 0x40) = 0x310 <0.000003>\n",
    )
    .import();
    assert_eq!(trace.lines()[1..], ["pwrite #0 = 4096", "pread #0 = 784"]);
    assert_eq!(
        (trace.events[1].size, trace.events[1].offset),
        (Some(4096), Some(8192))
    );
}

#[test]
fn halves_are_put_together_by_task() {
    let trace = asked(
        "20611 1795222977.000001 openat(AT_FDCWD</r>, \"/r/a\", O_RDONLY <unfinished ...>\n\
         20610 1795222977.000002 access(\"/r/b\", F_OK) = -1 ENOENT (No such file or directory) <0.000003>\n\
         20611 1795222977.000009 <... openat resumed>) = 5</r/a> <0.000008>\n\
         20611 1795222977.000010 read(5</r/a>,  <unfinished ...>\n\
         20611 1795222977.000020 <... read resumed>\"\\17!SCRIPT\"..., 544) = 44\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        ["access r/b = -2", "open r/a #0 = 0", "read #0 = 44"]
    );
    // The one with -T, and the other by its two lines.
    assert_eq!(trace.events[1].duration_ns, Some(8_000));
    assert_eq!(trace.events[2].duration_ns, Some(10_000));
}

#[test]
fn older_halves_with_a_space_are_put_together() {
    let trace = asked(
        "7113  00:09:47.789841 stat(\"/r/a\",  <unfinished ...>\n\
         7113  00:09:47.789865 <... stat resumed> {st_mode=S_IFREG|0644, st_size=9, ...}) = 0 <0.000017>\n",
    )
    .import();
    assert_eq!(trace.lines(), ["stat r/a = 0"]);
    assert_eq!(trace.tree(), ["r d 0", "r/a f 9"]);
}

#[test]
fn orphans_and_half_calls_are_counted() {
    let trace = asked(
        "9 1.0 <... accept resumed>{sa_family=AF_UNIX}, [112 => 2]) = 5<socket:[104395]> <0.423164>\n\
         9 1.1 access(\"/r/a\", F_OK) = 0 <0.000001>\n\
         8 1.2 <... read resumed>\"\", 10) = 0 <0.1>\n\
         9 1.3 read(5<socket:[104395]>,  <unfinished ...>\n",
    )
    .import();
    assert_eq!(trace.lines(), ["access r/a = 0"]);
    assert_eq!(trace.count("/counts/lines_not_understood"), 0);
    assert_eq!(trace.count("/counts/calls_cut/begun before the log"), 2);
    assert_eq!(
        trace.count("/counts/calls_cut/cut by the end of the log"),
        1
    );
    assert_eq!(trace.count("/counts/requests"), 1);
}

#[test]
fn a_call_that_restarts_counts_once() {
    let trace = asked(
        "9 1.0 openat(AT_FDCWD, \"/r/l\", O_RDWR) = 3</r/l>\n\
         9 1.1 flock(3</r/l>, LOCK_EX)  = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n\
         9 1.2 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=1, si_uid=0, si_status=0} ---\n\
         9 1.3 flock(3</r/l>, LOCK_EX)  = 0\n\
         9 1.4 restart_syscall(<... resuming interrupted nanosleep ...>) = 0\n",
    )
    .import();
    assert_eq!(trace.ops(), [Op::Open, Op::Flock]);
    assert_eq!(trace.count("/counts/calls_restarted"), 1);
    assert_eq!(trace.count("/counts/lines_not_understood"), 0);
}

#[test]
fn program_output_between_the_lines_is_told_and_a_cut_call_is_mended() {
    let trace = asked(
        "write(1, \"hi\\n\", 3hi\n\
         )                     = 3\n\
         hello world\n\
         access(\"/r/a\", F_OK) = 0\n",
    )
    .import();
    assert_eq!(trace.lines(), ["access r/a = 0"]);
    assert_eq!(trace.count("/counts/lines_not_understood"), 1);
    let first = &trace.document["counts"]["lines_not_understood_first"][0];
    assert!(first["at"].as_str().unwrap().ends_with("log:3"));
    assert_eq!(first["text"], "hello world");
}

#[test]
fn strace_itself_cuts_lines_on_stderr_with_notices_of_new_processes() {
    let trace = asked(
        "chdir(\"/r\") = 0\n\
         vfork(strace: Process 12 attached\n \
         <unfinished ...>\n\
         [pid    12] openat(AT_FDCWD, \"a\", O_RDONLY) = 3\n\
         [pid    12] exit_group(0) = ?\n\
         [pid    12] +++ exited with 0 +++\n\
         <... vfork resumed>) = 12\n\
         openat(AT_FDCWD, \"b\", O_RDONLY) = 3\n\
         clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLDstrace: Process 13 attached\n\
         , child_tidptr=0x7f7a03710a10) = 13\n\
         [pid    13] read(3, \"x\"..., 10) = 1\n\
         [pid    13] openat(AT_FDCWD, \"c\", O_RDONLY) = 4\n",
    )
    .import();
    assert_eq!(trace.count("/counts/lines_not_understood"), 0);
    let lines = trace.lines();
    for expected in [
        "open r/a #0 = 0",
        "open r/b #1 = 0",
        "read #1 = 1",
        "open r/c #2 = 0",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{lines:?}");
    }
}

#[test]
fn stacks_dumps_and_summaries_are_notices_and_no_stamps() {
    let mut asked = asked(
        "9 [00007f63fdc23c47] openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n \
         > /usr/lib/x86_64-linux-gnu/libc.so.6(__open64+0x40) [0xf8f40]\n\
         9 [00007f63fdc23c48] read(3, \"x\"..., 4096) = 10\n \
         | 00000  68 69 0a                                          hi.              |\n \
         * 10 bytes in buffer 0\n\
         9 [????????????????] +++ exited with 0 +++\n\
         % time     seconds  usecs/call     calls    errors syscall\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.000258           1       194        27 total\n",
    );
    asked.request.strict = true;
    let trace = asked.import();
    assert_eq!(
        trace.lines(),
        [
            "open r/a #0 = 0",
            "read #0 = 10",
            "close_exit #0 = 0",
            "exit = 0"
        ]
    );
    assert_eq!(trace.document["clock"]["kind"], "none");
    assert_eq!(trace.count("/counts/lines"), 9);
    assert_eq!(trace.count("/counts/notices"), 7);
}

#[test]
fn strict_refuses_what_it_does_not_understand() {
    let mut asked = asked("hello\n");
    asked.request.strict = true;
    let error = import(&asked.request, &mut |_| true).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("1 of 1 lines could not be parsed; the first is ")
    );
    assert!(!asked.request.target.exists());
    assert_eq!(std::fs::read_dir(asked.folder.path()).unwrap().count(), 1);
}

#[test]
fn files_of_ff_are_merged_by_the_end_of_their_calls() {
    let mut asked = asked("");
    let slow = "1700000100.000001 flock(3</r/l>, LOCK_EX) = 0 <9.000000>\n1700000109.500000 access(\"/r/z\", F_OK) = 0 <0.1>\n";
    let quick = "1700000100.000002 close(3</r/l>) = 0 <5.000000>\n";
    asked.request.files = vec![asked.file("log.20", slow), asked.file("log.30", quick)];
    let trace = asked.import();
    assert_eq!(
        trace.ops(),
        [Op::Inherit, Op::Close, Op::Inherit, Op::Flock, Op::Access]
    );
    assert_eq!(trace.count("/counts/threads"), 2);
}

#[test]
fn the_open_era_has_its_calls() {
    let trace = asked(
        "826   00:09:47.789757 open(\"/r/a\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4</r/a> <0.000017>\n\
         826   00:09:47.8 fstat(4</r/a>, {st_mode=S_IFREG|0644, st_size=0, ...}) = 0 <0.000017>\n\
         826   00:09:47.8 getdents(4</r/a>, /* 3 entries */, 32768) = 88 <0.000017>\n\
         826   00:09:47.9 creat(\"/r/b\", 0600) = 5</r/b> <0.000017>\n\
         826   00:09:47.9 utime(\"/r/b\", {actime=5, modtime=6}) = 0\n\
         826   00:09:47.9 mkdir(\"/r/d\", 0777) = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/a #0 = 0",
            "fstat #0 = 0",
            "getdents #0 = 88",
            "open r/b #1 = 0",
            "utimens r/b = 0",
            "mkdir r/d = 0"
        ]
    );
    // What is in effect, without the umask.
    assert_eq!(trace.events[0].mode, Some(0o644));
    assert_eq!(trace.events[2].entries, Some(3));
    assert_eq!(trace.events[4].mtime_ns, Some(6_000_000_000));
    assert_eq!(trace.events[5].mode, Some(0o755));
}

#[test]
fn midnight_and_clocks_that_go_back_are_survived() {
    let trace =
        asked("1 23:59:59.9 access(\"/r/a\", F_OK) = 0\n1 00:00:00.1 access(\"/r/a\", F_OK) = 0\n")
            .import();
    assert_eq!(trace.events[1].start_ns, 200_000_000);
    let trace = asked(
        "1 1795222977.5 access(\"/r/a\", F_OK) = 0\n1 1795222977.4 access(\"/r/a\", F_OK) = 0\n",
    )
    .import();
    assert_eq!(trace.count("/counts/time_went_back"), 1);
    assert_eq!((trace.events[1].start_ns, trace.events[1].gap_ns), (0, 0));
}

#[test]
fn an_unknown_errno_is_no_success() {
    let trace = asked("access(\"/r/a\", F_OK) = -1 EBRANDNEW (Something)\n").import();
    assert_eq!(trace.events.len(), 0);
    assert_eq!(trace.count("/counts/lines_not_understood"), 1);
}

#[test]
fn flags_stand_behind_the_offset_or_behind_its_two_halves() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3</r/a>\n\
         pwritev2(3</r/a>, [{iov_base=\"hello\", iov_len=5}], 1, 0, RWF_DSYNC|RWF_APPEND) = 5\n\
         pwritev2(0x3</r/a>, 0x7ffd, 0x1, 0, 0, 0x12) = 5\n\
         preadv2(0x3</r/a>, 0x7ffd, 0x1, 0xffffffffffffffff, 0xffffffffffffffff, 0x8) = 5\n\
         preadv2(0x3</r/a>, 0x7ffd, 0x1, 0x100000000, 0x1, 0) = 0\n\
         pwritev(0x3</r/a>, 0x7ffd, 0x1, 0x2, 0x1) = 5\n\
         preadv(3</r/a>, [{iov_base=\"hello\", iov_len=5}], 1, 2) = 5\n",
    )
    .import();
    let told = trace.events[1..].iter();
    let told: Vec<_> = told
        .map(|event| (event.op, event.offset, event.flags))
        .collect();
    assert_eq!(
        told,
        [
            (Op::Pwritev, Some(0), Some(0x12)),
            (Op::Pwritev, Some(0), Some(0x12)),
            (Op::Readv, None, Some(8)),
            (Op::Preadv, Some(1 << 32), None),
            (Op::Pwritev, Some(2), None),
            (Op::Preadv, Some(2), None),
        ]
    );
}

#[test]
fn what_a_flag_writes_at_the_end_is_behind_what_was_there() {
    for (flags, read) in [
        ("RWF_APPEND", 110),
        ("RWF_DSYNC", 110),
        ("RWF_NOAPPEND", 100),
    ] {
        let log = format!(
            "openat(AT_FDCWD, \"/r/a\", O_RDWR|O_APPEND) = 3</r/a>\n\
             pwritev2(3</r/a>, [{{iov_base=\"\"..., iov_len=10}}], 1, 0, {flags}) = 10\n\
             pread64(3</r/a>, \"\"..., 4096, 0) = {read}\n"
        );
        let trace = asked(log).manifest("a\tf\t100\t644\t\n").import();
        assert_eq!(trace.tree(), ["r d 0", "r/a f 100"]);
        let corrected = trace.count("/counts/tree_repairs/corrected");
        assert_eq!(corrected, 0, "{flags}");
    }
}
