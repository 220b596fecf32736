//! What statistics count, and what a history tells.

use crate::common;

use common::{Imported, asked};
use replayer_trace::{history, statistics};
use serde_json::{Value, json};

const SITE: &str = "\
1 access(\"/replayer/request/page\", F_OK) = -1 ENOENT (No such file or directory)
1 stat(\"/r/none\", 0x7ffc) = -1 ENOENT (No such file or directory)
1 openat(AT_FDCWD, \"/r/d/a\", O_RDONLY) = 3
1 flock(3, LOCK_SH) = 0
1 read(3, \"\"..., 8192) = 700
1 flock(3, LOCK_UN) = 0
1 close(3) = 0
1 access(\"/replayer/request/page\", F_OK) = -1 ENOENT (No such file or directory)
1 openat(AT_FDCWD, \"/r/d/a\", O_RDONLY) = 3
1 read(3, \"\"..., 8192) = 700
1 close(3) = 0
1 access(\"/replayer/request/save\", F_OK) = -1 ENOENT (No such file or directory)
1 openat(AT_FDCWD, \"/r/d/b\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3
1 write(3, \"\"..., 100) = 100
1 fsync(3) = 0
1 close(3) = 0
1 mkdir(\"/r/d\", 0755) = -1 EEXIST (File exists)
1 access(\"/replayer/request/end\", F_OK) = -1 ENOENT (No such file or directory)
1 rename(\"/r/d/b\", \"/r/d/c\") = 0
2 chmod(\"/r/d\", 0700) = 0
2 openat(AT_FDCWD, \"/r/d/c\", O_RDONLY) = 3
2 read(3, \"\"..., 10) = 10
";

fn count(trace: &Imported, label: Option<&str>) -> Value {
    serde_json::from_str(&statistics(&trace.folder(), label).unwrap()).unwrap()
}

#[test]
fn what_each_user_has_for_itself_is_told_with_its_size() {
    let trace = asked(
        "1 openat(AT_FDCWD, \"/r/db\", O_RDWR) = 3\n\
         1 pwrite64(3, \"x\"..., 4096, 0) = 4096\n\
         1 openat(AT_FDCWD, \"/r/manual\", O_RDONLY) = 4\n\
         1 read(4, \"x\"..., 4096) = 4096\n\
         1 chmod(\"/r/own\", 0700) = 0\n\
         1 access(\"/r/own/deep/a\", F_OK) = 0\n\
         1 openat(AT_FDCWD, \"/r/both\", O_RDWR) = 5\n\
         2 openat(AT_FDCWD, \"/r/both\", O_RDWR) = 3\n\
         2 write(3, \"x\"..., 10) = 10\n\
         2 unlink(\"/r/both\") = 0\n\
         2 openat(AT_FDCWD, \"/r/all\", O_RDWR) = 6\n\
         1 openat(AT_FDCWD, \"/r/all\", O_RDWR) = 6\n\
         1 write(6, \"x\"..., 10) = 10\n",
    )
    .manifest(
        ".\td\t0\t755\t\ndb\tf\t1000000\t644\t\nmanual\tf\t200000\t644\t\nown\td\t0\t755\t\nown/deep\td\t0\t755\t\n\
         own/deep/a\tf\t30000\t644\t\nboth\tf\t4000\t644\t\nall\tf\t500\t644\t\n",
    )
    .import();
    // own with deep and a, db, and both: only one can remove it.
    let expected = json!({"entries": 5, "bytes": 1_034_000});
    assert_eq!(count(&trace, None)["own"], expected);
}

fn tell(trace: &Imported, row: u64, limit: usize) -> Vec<String> {
    let told: Value = serde_json::from_str(&history(&trace.folder(), row, limit).unwrap()).unwrap();
    let lines = trace.lines();
    let rows = told.as_array().unwrap().iter();
    rows.map(|item| {
        let row = usize::try_from(item["row"].as_u64().unwrap()).unwrap();
        format!("{}: {}", item["why"].as_str().unwrap(), lines[row])
    })
    .collect()
}

#[test]
fn the_statistics_of_all_agrees_with_what_the_import_counted() {
    let trace = asked(SITE).import();
    let statistics = count(&trace, None);
    let ops: serde_json::Map<_, _> = statistics["ops"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(op, tally)| (op.clone(), tally["count"].clone()))
        .collect();
    let counts = &trace.document["counts"];
    assert_eq!(Value::Object(ops), counts["ops"]);
    assert_eq!(statistics["errors"], counts["errors"]);
    assert_eq!(statistics["bytes"]["read"], counts["bytes_read"]);
    assert_eq!(statistics["bytes"]["written"], counts["bytes_written"]);
    assert_eq!(statistics["events"], counts["events"]);
    assert_eq!(statistics["threads"], counts["threads"]);
}

#[test]
fn the_statistics_counts_failing_lookups_fsyncs_locks_and_places() {
    let trace = asked(SITE).import();
    let statistics = count(&trace, None);
    let of = |key: &str| statistics[key].as_u64().unwrap();
    assert_eq!(
        (of("failing_lookups"), of("fsyncs"), of("locks")),
        (1, 1, 1)
    );
    // r/d/a, b, c; r/d; r/none.
    assert_eq!((of("files"), of("directories"), of("missing")), (3, 1, 1));
    assert_eq!(statistics["ops"]["mkdir"]["errors"], json!({"EEXIST": 1}));
    assert_eq!(statistics["ops"]["read"]["bytes"], 1410);
}

#[test]
fn the_statistics_gives_the_mean_of_each_label() {
    let trace = asked(SITE).import();
    let all = count(&trace, None);
    let page = &all["labels"][0];
    assert_eq!(
        (&page["label"], &page["requests"]),
        (&json!("page"), &json!(2))
    );
    assert_eq!(
        page["mean"]["ops"],
        json!({"stat": 0.5, "open": 1.0, "flock": 1.0, "read": 1.0, "close": 1.0})
    );
    assert_eq!(page["mean"]["files"], 1.0);
    assert_eq!(page["mean"]["failing_lookups"], 0.5);
    let save = count(&trace, Some("save"));
    assert_eq!((&save["events"], &save["requests"]), (&json!(5), &json!(1)));
    assert_eq!(save["labels"].as_array().unwrap().len(), 1);
}

#[test]
fn a_label_that_is_not_there_is_refused_and_the_others_are_named() {
    let trace = asked(SITE).import();
    let error = statistics(&trace.folder(), Some("pag")).unwrap_err();
    assert!(error.to_string().ends_with("has no request pag"), "{error}");
    assert_eq!(error.hint(), "it has page, save");
}

#[test]
fn a_history_follows_the_place_through_its_other_names() {
    let trace = asked(SITE).import();
    let last = u64::try_from(trace.events.len()).unwrap() - 1;
    let told = tell(&trace, last, 20);
    let expected = [
        "description: open r/d/c #3 = 0",
        "parent: chmod r/d = 0",
        "path: rename r/d/b r/d/c = 0",
        "parent: mkdir r/d = -17",
        "path: close #2 = 0",
        "path: fsync #2 = 0",
        "path: write #2 = 100",
        "path: open r/d/b #2 = 0",
    ];
    // The reading process may have been closed by the end of the log.
    assert_eq!(told[told.len() - expected.len()..], expected);
    assert_eq!(tell(&trace, last, 1).len(), 1);
    let error = history(&trace.folder(), last + 1, 5).unwrap_err();
    assert!(error.to_string().contains("has no event"), "{error}");
}

const REWRITTEN: &str = "\
1 openat(AT_FDCWD, \"/r/a\", O_RDWR|O_CREAT, 0644) = 3
1 write(3, \"\"..., 100) = 100
1 lseek(3, 0, SEEK_SET) = 0
1 write(3, \"\"..., 60) = 60
1 read(3, \"\"..., 40) = 40
1 write(3, \"\"..., 20) = 20
1 pwrite64(3, \"\"..., 50, 0) = 50
1 close(3) = 0
1 openat(AT_FDCWD, \"/r/log\", O_WRONLY|O_CREAT|O_APPEND, 0644) = 3
1 write(3, \"\"..., 7) = 7
1 close(3) = 0
1 openat(AT_FDCWD, \"/r/log\", O_WRONLY|O_APPEND) = 3
1 write(3, \"\"..., 7) = 7
1 close(3) = 0
1 openat(AT_FDCWD, \"/r/far\", O_WRONLY|O_CREAT, 0644) = 3
1 pwrite64(3, \"\"..., 5, 1000000) = 5
";

#[test]
fn files_grow_to_their_highest_end_and_by_what_is_appended() {
    let trace = asked(REWRITTEN).import();
    let statistics = count(&trace, None);
    assert_eq!(
        statistics["bytes"]["written"],
        100 + 60 + 20 + 50 + 7 + 7 + 5
    );
    // 120 in a, both lines of the log, and the 5 bytes behind a hole.
    assert_eq!(statistics["grown_bytes"], 120 + 14 + 5);
}

#[test]
fn what_is_written_at_an_offset_into_a_file_that_appends_is_appended() {
    let grown = |opened: &str, write: &str| {
        let log = format!("1 openat(AT_FDCWD, \"/r/a\", O_WRONLY|{opened}, 0644) = 3\n");
        let trace = asked(log + &format!("1 {write} = 4096\n").repeat(5)).import();
        count(&trace, None)["grown_bytes"].as_u64().unwrap()
    };
    let once = "pwrite64(3, \"\"..., 4096, 0)";
    let no_append = "pwritev2(3, [{iov_base=\"\"..., iov_len=4096}], 1, 0, RWF_NOAPPEND)";
    assert_eq!(grown("O_CREAT|O_APPEND", once), 5 * 4096);
    assert_eq!(grown("O_CREAT", once), 4096);
    assert_eq!(grown("O_CREAT|O_APPEND", no_append), 4096);
    let log =
        "1 inherited(3</r/a>, 1025, 0) = 0\n".to_owned() + &format!("1 {once} = 4096\n").repeat(5);
    assert_eq!(count(&asked(log).import(), None)["grown_bytes"], 5 * 4096);
}

#[test]
fn each_request_grows_files_of_its_own() {
    let page = |size: u32| {
        format!(
            "1 access(\"/replayer/request/save\", F_OK) = -1 ENOENT (No such file or directory)
1 openat(AT_FDCWD, \"/r/b\", O_WRONLY|O_CREAT, 0644) = 3
1 write(3, \"\"..., {size}) = {size}
1 close(3) = 0
"
        )
    };
    let end = "1 access(\"/replayer/request/end\", F_OK) = -1 ENOENT (No such file or directory)\n";
    let trace = asked([page(100), page(70), end.to_owned()].concat()).import();
    assert_eq!(count(&trace, None)["grown_bytes"], 100);
    assert_eq!(count(&trace, Some("save"))["grown_bytes"], 170);
}

#[test]
fn files_that_got_a_name_by_their_descriptor_are_counted_and_told_each() {
    let trace = asked(
        "1 mkdir(\"/r/d\", 0755) = 0\n\
         1 openat(AT_FDCWD, \"/r/d\", O_WRONLY|O_TMPFILE, 0600) = 3\n\
         1 openat(AT_FDCWD, \"/r/d\", O_WRONLY|O_TMPFILE, 0600) = 4\n\
         1 openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 5\n\
         1 write(3, \"\"..., 100) = 100\n1 write(4, \"\"..., 70) = 70\n\
         1 linkat(3, \"\", 5, \"a\", AT_EMPTY_PATH) = 0\n\
         1 linkat(4, \"\", 5, \"b\", AT_EMPTY_PATH) = 0\n\
         1 unlink(\"/r/d/a\") = 0\n",
    )
    .import();
    let statistics = count(&trace, None);
    assert_eq!(
        (&statistics["files"], &statistics["directories"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(statistics["grown_bytes"], 170);
    assert_eq!(
        tell(&trace, 8, 2),
        ["path: link r/d/a #2 #0 = 0", "parent: mkdir r/d = 0"]
    );
    assert_eq!(
        tell(&trace, 6, 2),
        [
            "description: write #0 = 100",
            "description: open r/d #0 = 0"
        ]
    );
}
