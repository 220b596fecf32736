//! Requests, order and think times of a whole import.

use crate::common;

use common::asked;
use replayer_trace::Window;
use std::fmt::Write;

const SERVER: &str = "\
3996  1795222977.000000 accept(0<socket:[1]>, {sa_family=AF_UNIX}, [112 => 2]) = 5<socket:[2]> <0.000100>
3996  1795222977.001000 access(\"/r/a\", F_OK) = 0 <0.000010>
3996  1795222977.002000 close(5<socket:[2]>) = 0 <0.000010>
3996  1795222977.003000 access(\"/r/b\", F_OK) = 0 <0.000010>
3996  1795222977.004000 accept(0<socket:[1]>,  <unfinished ...>
3996  1795222978.000000 <... accept resumed>{sa_family=AF_UNIX}, [112 => 2]) = 5<socket:[3]> <0.996000>
3996  1795222978.001000 access(\"/r/c\", F_OK) = 0 <0.000010>
";

#[test]
fn accept_cuts_a_server_and_the_table_of_the_user_names() {
    let mut asked = asked(SERVER);
    asked.request.windows = vec![Window {
        start_ns: 1_795_222_977_900_000_000,
        end_ns: 1_795_222_979_000_000_000,
        label: "front".to_owned(),
    }];
    let trace = asked.import();
    let requests = trace.trace.requests().unwrap();
    let short: Vec<_> = requests
        .iter()
        .map(|piece| {
            (
                piece.request,
                piece.label.as_str(),
                piece.first_event,
                piece.last_event,
                piece.start_ns,
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            (1, "request-1", 0, 1, 100_000),
            (0, "front", 2, 2, 1_000_000_000)
        ]
    );
    // The connection was closed before the last event.
    assert_eq!(requests[0].end_ns, 2_010_000);
}

#[test]
fn the_end_of_a_worker_is_the_work_of_no_request() {
    let trace = asked(format!(
        "{SERVER}3996  1795222999.000000 +++ killed by SIGTERM +++\n"
    ))
    .import();
    let last = trace.trace.requests().unwrap().pop().unwrap();
    assert_eq!((last.last_event, last.end_ns), (2, 1_001_010_000));
    assert_eq!(trace.lines()[3], "exit = 0");
    assert_eq!(trace.events[3].gap_ns, 20_998_990_000);
}

#[test]
fn requests_that_are_served_at_once_keep_their_workers_and_are_told_as_a_guess() {
    let mut log = String::new();
    for (task, at, name) in [
        (7, 10, "a1"),
        (8, 51, "b1"),
        (7, 55, "a2"),
        (8, 56, "b2"),
        (7, 70, "a3"),
        (7, 90, "a4"),
    ] {
        writeln!(
            log,
            "{task} 1795222977.{at:03} access(\"/r/{name}\", F_OK) = 0"
        )
        .unwrap();
    }
    let mut asked = asked(log);
    let window = |from: i64, to: i64, label: &str| Window {
        start_ns: 1_795_222_977_000_000_000 + from * 1_000_000,
        end_ns: 1_795_222_977_000_000_000 + to * 1_000_000,
        label: label.to_owned(),
    };
    asked.request.windows = vec![window(0, 100, "a"), window(50, 60, "b")];
    let trace = asked.import();
    let pieces = trace.trace.requests().unwrap();
    let short: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.label.as_str(), piece.first_event, piece.last_event))
        .collect();
    assert_eq!(short, [("a", 0, 5), ("b", 1, 3)]);
    let guessed = "/blind_spots/pieces of requests in a window that is a guess";
    assert_eq!(trace.count(guessed), 1);
}

#[test]
fn a_worker_that_takes_its_connection_before_its_request_begins_gets_that_request() {
    let log = "\
7 100.010000 access(\"/r/a1\", F_OK) = 0
8 100.049500 accept(3, NULL, NULL) = 5
8 100.052000 access(\"/r/b1\", F_OK) = 0
8 100.058000 access(\"/r/b2\", F_OK) = 0
7 100.070000 access(\"/r/a2\", F_OK) = 0
"
    .replace(" 100.", " 1795222977.");
    let mut asked = asked(log);
    let window = |from: i64, to: i64, label: &str| Window {
        start_ns: 1_795_222_977_000_000_000 + from * 1_000_000,
        end_ns: 1_795_222_977_000_000_000 + to * 1_000_000,
        label: label.to_owned(),
    };
    asked.request.windows = vec![
        window(0, 100, "a"),
        window(50, 60, "b"),
        window(80, 80, "c"),
    ];
    let trace = asked.import();
    let pieces = trace.trace.requests().unwrap();
    let short: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.label.as_str(), piece.first_event, piece.last_event))
        .collect();
    assert_eq!(short, [("a", 0, 3), ("b", 1, 2)]);
    assert_eq!(
        trace.document["blind_spots"],
        serde_json::json!({
            "pieces of requests in a window that is a guess": 1,
            "requests of the table without events": 1,
        })
    );
}

#[test]
fn a_connection_that_was_awaited_before_the_log_is_taken_when_the_call_returns() {
    let trace = asked(
        "7 1795222977.100 <... accept resumed>{sa_family=AF_UNIX}, [112 => 2]) = 5<socket:[3]> <30.000000>\n\
         7 1795222977.200 access(\"/r/a\", F_OK) = 0 <0.000010>\n",
    )
    .import();
    let pieces = trace.trace.requests().unwrap();
    let times: Vec<_> = pieces
        .iter()
        .map(|piece| (piece.start_ns, piece.end_ns))
        .collect();
    assert_eq!(times, [(0, 100_010_000)]);
}

#[test]
fn markers_begin_and_end_requests() {
    let trace = asked(
        "9 access(\"/replayer/request/login\", F_OK) = -1 ENOENT (No such file or directory)\n\
         9 access(\"/r/a\", F_OK) = 0\n\
         9 access(\"/replayer/request/end\", F_OK) = -1 ENOENT (No such file or directory)\n\
         9 access(\"/r/b\", F_OK) = 0\n",
    )
    .import();
    let requests = trace.trace.requests().unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        (
            requests[0].label.as_str(),
            requests[0].first_event,
            requests[0].last_event
        ),
        ("login", 0, 0)
    );
    assert_eq!(trace.lines(), ["access r/a = 0", "access r/b = 0"]);
}

#[test]
fn think_times_are_without_what_the_tracer_added() {
    let mut log = String::new();
    for at in 0..200_u32 {
        let start = 20 * u64::from(at);
        writeln!(
            log,
            "9  1795222977.{start:06} lseek(7</r/a>, 0, SEEK_CUR) = 0 <0.000003>"
        )
        .unwrap();
    }
    log.push_str(
        "9  1795222977.500000 poll([{fd=6<socket:[1]>, events=POLLIN}], 1, 5000) = 1 <0.000020>\n",
    );
    log.push_str("9  1795222977.600000 lseek(7</r/a>, 0, SEEK_CUR) = 0 <0.000003>\n");
    let trace = asked(log).import();
    let calibration = &trace.document["calibration"];
    assert_eq!(
        (
            calibration["call_ns"].as_i64(),
            calibration["gap_ns"].as_i64()
        ),
        (Some(2_850), Some(16_850))
    );
    assert!(
        calibration["method"]
            .as_str()
            .unwrap()
            .contains("5 % quantile")
    );
    assert_eq!(trace.events[5].gap_ns, 150);
    // Two gaps and a call in between were stretched.
    let last = trace.events.last().unwrap();
    assert_eq!(last.gap_ns, 600_000_000 - 3_983_000 - 2 * 16_850 - 2_850);

    let mut asked = asked(
        "9 1795222977.1 lseek(7</r/a>, 0, SEEK_CUR) = 0 <0.01>\n9 1795222977.2 lseek(7</r/a>, 0, SEEK_CUR) = 0 <0.01>\n",
    );
    asked.request.overhead.gap_ns = Some(1_000_000);
    assert_eq!(asked.import().events[2].gap_ns, 89_000_000);
}

#[test]
fn events_wait_for_what_they_need_and_for_nothing_that_follows() {
    let trace = asked(
        "1 mkdir(\"/r/d\", 0755) = 0\n\
         1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         2 openat(AT_FDCWD, \"/r/d/f\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3\n\
         2 write(3, \"\"..., 100) = 100\n\
         1 openat(AT_FDCWD, \"/r/d/f\", O_RDONLY) = 3\n\
         1 pread64(3, \"\"..., 50, 0) = 50\n\
         1 pread64(3, \"\"..., 50, 50) = 50\n\
         2 +++ exited with 0 +++\n\
         1 wait4(2, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 2\n\
         1 rename(\"/r/d\", \"/r/e\") = 0\n",
    )
    .import();
    let lines = trace.lines();
    let edges: Vec<_> = trace
        .trace
        .edges()
        .unwrap()
        .into_iter()
        .map(|(event, earlier)| {
            format!(
                "{} <- {}",
                lines[usize::try_from(event).unwrap()],
                lines[usize::try_from(earlier).unwrap()]
            )
        })
        .collect();
    assert_eq!(
        edges,
        [
            "open r/d/f #0 = 0 <- mkdir r/d = 0",
            "open r/d/f #1 = 0 <- open r/d/f #0 = 0",
            "pread #1 = 50 <- write #0 = 100",
            "rename r/d r/e = 0 <- exit = 0"
        ]
    );
    assert_eq!(trace.count("/counts/edges_by_reason/spawn"), 1);
    assert_eq!(trace.count("/counts/edges_by_reason/wait"), 1);
}

#[test]
fn locks_are_handed_on_in_their_order() {
    let trace = asked(
        "1 openat(AT_FDCWD, \"/r/l\", O_RDWR) = 3</r/l>\n\
         2 openat(AT_FDCWD, \"/r/l\", O_RDWR) = 3</r/l>\n\
         1 flock(3</r/l>, LOCK_EX) = 0\n\
         2 flock(3</r/l>, LOCK_EX <unfinished ...>\n\
         1 close(3</r/l> <unfinished ...>\n\
         2 <... flock resumed>) = 0\n\
         1 <... close resumed>) = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/l #0 = 0",
            "open r/l #1 = 0",
            "flock #0 = 0",
            "close #0 = 0",
            "flock #1 = 0"
        ]
    );
    assert!(trace.trace.edges().unwrap().contains(&(4, 3)));
}
