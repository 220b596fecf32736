//! Logs of -ff with times of the day: on which day each file begins.

use crate::common;

use common::imported;

#[test]
fn files_that_begin_after_midnight_come_behind_those_of_the_day_before() {
    let parent = "23:59:50.000000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
                  23:59:58.000000 vfork() = 11\n\
                  00:00:05.000000 vfork() = 12\n\
                  00:00:09.000000 close(3) = 0\n";
    let [one, other] = ["00:00:03", "00:00:06"]
        .map(|time| format!("{time}.000000 read(3, \"x\", 1) = 1\n{time}.100000 close(3) = 0\n"));
    let trace = imported(&[(11, &one), (12, &other), (10, parent)]);
    let lines = [
        "open r/a #0 = 0",
        "read #0 = 1",
        "close_dup #0 = 0",
        "read #0 = 1",
    ];
    assert_eq!(trace.lines()[..4], lines);
    assert_eq!(trace.count("/counts/span_ns"), 19_000_000_000);
}

const DAY_GUESSED: &str = "/blind_spots/files of a task whose day is a guess";

#[test]
fn files_that_begin_far_apart_are_of_one_day_where_nothing_tells_of_a_midnight() {
    let early = "00:01:40.000000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n";
    let late = "13:53:21.000000 openat(AT_FDCWD, \"/r/b\", O_RDONLY) = 3\n";
    let lasts = format!("{early}13:53:22.000000 close(3) = 0\n");
    let trace = imported(&[(10, &lasts), (11, late)]);
    let lines = ["open r/a #0 = 0", "open r/b #1 = 0", "close #0 = 0"];
    assert_eq!(trace.lines(), lines);
    assert_eq!(trace.document["blind_spots"], serde_json::json!({}));
    // Who has ended before the other one begins may be of the next day.
    let trace = imported(&[(10, early), (11, late)]);
    assert_eq!(trace.lines(), lines[..2]);
    assert_eq!(trace.count(DAY_GUESSED), 1);
}

#[test]
fn a_file_that_goes_on_over_midnight_shows_what_begins_behind_it() {
    // No call that makes a task: the workers were there, and what they do is of a long night.
    let look = |time: &str, name: &str| format!("{time}.000000 access(\"/r/{name}\", F_OK) = 0\n");
    let night = look("20:00:00", "c") + &look("03:30:00", "f");
    let files = [
        (10, look("10:00:00", "a")),
        (11, look("15:00:00", "b")),
        (12, night),
        (13, look("00:05:00", "d")),
        (14, look("03:00:00", "e")),
    ];
    let files: Vec<(u32, &str)> = files
        .iter()
        .map(|(task, text)| (*task, text.as_str()))
        .collect();
    let names = ["a", "b", "c", "d", "e", "f"].map(|name| format!("access r/{name} = 0"));
    let trace = imported(&files);
    assert_eq!(trace.lines(), names);
    assert_eq!(trace.document["blind_spots"], serde_json::json!({}));
    // Behind the end of the one that went on over midnight nothing tells it.
    let later = look("04:00:00", "g");
    let trace = imported(&[&files[..], &[(15, later.as_str())]].concat());
    assert_eq!(trace.lines()[6], "access r/g = 0");
    assert_eq!(trace.count(DAY_GUESSED), 1);
}

#[test]
fn a_child_begins_behind_the_call_that_made_it_on_whichever_day() {
    // Each makes the next one: over midnight, late on the next day, and over the midnight behind that.
    let files = [
        (10, "23:50:00.000000 vfork() = 11\n"),
        (
            11,
            "00:05:00.000000 access(\"/r/a\", F_OK) = 0\n12:00:00.000000 access(\"/r/b\", F_OK) = 0\n\
             23:00:00.000000 vfork() = 12\n",
        ),
        (
            12,
            "23:00:01.000000 access(\"/r/c\", F_OK) = 0\n23:30:00.000000 vfork() = 13\n",
        ),
        (13, "00:30:00.000000 access(\"/r/d\", F_OK) = 0\n"),
    ];
    let trace = imported(&files);
    let names = ["a", "b", "c", "d"].map(|name| format!("access r/{name} = 0"));
    assert_eq!(trace.lines(), names);
    assert_eq!(
        trace.count("/counts/span_ns"),
        (24 * 3_600 + 40 * 60) * 1_000_000_000
    );
    assert_eq!(trace.document["blind_spots"], serde_json::json!({}));
}

#[test]
fn a_task_that_is_made_late_on_a_day_is_not_of_the_day_before() {
    let parent = "00:01:40.000000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
                  13:53:20.000000 vfork() = 11\n\
                  13:53:22.000000 close(3) = 0\n";
    let child = "13:53:21.000000 read(3, \"x\", 10) = 1\n";
    let trace = imported(&[(10, parent), (11, child)]);
    let lines = ["open r/a #0 = 0", "read #0 = 1", "close_dup #0 = 0"];
    assert_eq!(trace.lines(), lines);
}
