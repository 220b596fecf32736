//! Logs and folders that mean harm: everything is survived, told, and bounded.

use crate::common;

use common::asked;
use replayer_trace::{Trace, import, statistics};
use std::fmt::Write;
use std::fs;

#[test]
fn long_lines_and_odd_bytes_are_survived() {
    let mut log = b"9 write(3</r/a>, \"".to_vec();
    log.resize(10 << 20, b'x');
    log.extend_from_slice(b"\", 10485742) = 10485742\n");
    log.extend_from_slice(b"9 access(\"/r/\xff\xfe\", F_OK) = 0\n9 access(\"/r/\\377\\n\\\"\\\\\", F_OK) = 0\n\xff\xfe\x00\n");
    let trace = asked(log).import();
    assert_eq!(trace.lines()[0], "inherit r/a #0 = 0");
    assert_eq!(trace.lines()[1], "write #0 = 10485742");
    assert_eq!(trace.events.len(), 4);
    let paths = trace.trace.paths().unwrap();
    assert!(paths.iter().any(|row| row.path == b"r/\xff\xfe"));
    assert!(paths.iter().any(|row| row.path == b"r/\xff\n\"\\"));
    assert_eq!(trace.count("/counts/lines_not_understood"), 1);
}

#[test]
fn paths_that_climb_leave_the_trace() {
    let trace = asked(
        "access(\"/r/../etc/passwd\", F_OK) = 0\naccess(\"/r/a/../../etc/passwd\", F_OK) = 0\naccess(\"/proc/self/root/etc\", F_OK) = 0\n\
         access(\"/etc/../r/b\", F_OK) = 0\naccess(\"//r///c/.\", F_OK) = 0\naccess(\"/proc/self/fd/99999999999999999999\", F_OK) = 0\n",
    )
    .import();
    assert_eq!(trace.lines(), ["access r/b = 0", "access r/c = 0"]);
    assert!(
        trace
            .paths
            .iter()
            .all(|path| !path.split('/').any(|part| part == ".."))
    );
}

#[test]
fn long_and_deep_names_are_kept_or_counted() {
    let long = "n".repeat(4096);
    let deep = "d/".repeat(2047);
    let too_long = "d/".repeat(9_000);
    let trace = asked(format!(
        "stat(\"/r/{long}\", 0x7f) = -1 ENAMETOOLONG (File name too long)\nstat(\"/r/{deep}x\", 0x7f) = -1 ENOENT (No such file or directory)\n\
         stat(\"/r/{too_long}x\", 0x7f) = -1 ENAMETOOLONG (File name too long)\n"
    ))
    .import();
    assert_eq!(trace.events.len(), 1);
    assert_eq!(
        trace.count("/counts/calls_not_representable/stat (path too long)"),
        2
    );
}

#[test]
fn symlink_bombs_end() {
    let mut rows = String::from(".\td\t0\t755\t\n");
    for at in 0..60 {
        writeln!(rows, "s{at}\tl\t1\t777\ts{0}/s{0}", at + 1).unwrap();
    }
    rows.push_str("loop\tl\t1\t777\tloop\nself\tl\t1\t777\t.\n");
    let trace = asked(
        "stat(\"/r/s0\", 0x7f) = -1 ELOOP (Too many levels of symbolic links)\nstat(\"/r/loop/x\", 0x7f) = -1 ELOOP (Too many levels of symbolic links)\n\
         stat(\"/r/self/self/self/s0/../..\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n",
    )
    .manifest(&rows)
    .import();
    assert!(trace.events.len() >= 2);
}

#[test]
fn absurd_numbers_are_survived() {
    let trace = asked(
        "9 9223372035.999999999 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 9223372036854775807 <9223372035.9>\n\
         9 99999999999999999999.1 close(3) = 0\n\
         9 read(9223372036854775807, \"\", 18446744073709551615) = 9223372036854775807\n\
         9 lseek(9223372036854775807, 9223372036854775807, SEEK_SET) = 9223372036854775807\n\
         9 write(9223372036854775807, \"\", 9223372036854775807) = 9223372036854775807\n\
         18446744073709551615 close(-1) = -1 EBADF (Bad file descriptor)\n\
         9 clone(flags=CLONE_FILES) = 9223372036854775807\n\
         9 close_range(0, 18446744073709551615, 0) = 0\n",
    )
    .import();
    assert!(trace.events.len() >= 4);
}

#[test]
fn manifests_that_are_none_are_refused_with_their_line() {
    for (rows, message) in [
        ("a\tf\n", "line 2 must be a row"),
        (
            "../x\tf\t1\t644\t\n",
            "line 2 must name a file below the roots",
        ),
        ("a\tf\t-1\t644\t\n", "line 2 must be a row"),
    ] {
        let asked = asked("access(\"/r/a\", F_OK) = 0\n").manifest(rows);
        let error = import(&asked.request, &mut |_| true).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(!asked.request.target.exists());
    }
}

#[test]
fn an_existing_folder_is_left_alone_and_a_stop_leaves_nothing() {
    let asked_one = asked("access(\"/r/a\", F_OK) = 0\n");
    fs::create_dir(&asked_one.request.target).unwrap();
    let error = import(&asked_one.request, &mut |_| true).unwrap_err();
    assert!(error.to_string().ends_with("exists"));

    let stopped = asked("access(\"/r/a\", F_OK) = 0\n".repeat(100_000));
    assert!(import(&stopped.request, &mut |_| false).is_err());
    assert_eq!(fs::read_dir(stopped.folder.path()).unwrap().count(), 1);
}

#[test]
fn a_flipped_byte_anywhere_in_a_table_is_found() {
    let trace = asked("access(\"/r/a\", F_OK) = 0\n".repeat(500)).import();
    let folder = trace.folder();
    for name in ["events", "paths", "tree", "edges", "requests"] {
        let place = folder.join(format!("{name}.parquet"));
        let good = fs::read(&place).unwrap();
        for at in (0..good.len()).step_by(good.len() / 40 + 1) {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&place, &bad).unwrap();
            let error = Trace::open(&folder).unwrap_err().to_string();
            assert!(
                error.contains(&format!("{name}.parquet")) && error.contains("has changed"),
                "{error}"
            );
        }
        fs::write(&place, &good[..good.len() / 2]).unwrap();
        assert!(Trace::open(&folder).is_err());
        fs::write(&place, good).unwrap();
    }
    Trace::open(&folder).unwrap();
}

#[test]
fn a_flipped_byte_anywhere_in_trace_json_is_found() {
    let folder_of = asked("access(\"/r/a\", F_OK) = 0\n").import();
    let folder = folder_of.folder();
    let place = folder.join("trace.json");
    let good = fs::read(&place).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x01;
        fs::write(&place, &bad).unwrap();
        let error = Trace::open(&folder).unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains("trace.json: ") && !told.contains('\n'),
            "{at}: {told}"
        );
        assert!(!error.hint().is_empty());
    }
    fs::write(&place, good).unwrap();
    Trace::open(&folder).unwrap();
}

#[test]
fn a_table_that_is_missing_is_named() {
    for name in ["events", "paths", "tree", "edges", "requests"] {
        let trace = asked("access(\"/r/a\", F_OK) = 0\n").import();
        let place = trace.folder().join(format!("{name}.parquet"));
        fs::remove_file(&place).unwrap();
        let error = Trace::open(&trace.folder()).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("{name}.parquet: is missing")),
            "{error}"
        );
    }
}

#[test]
fn another_version_and_what_is_no_trace_are_told_apart() {
    let trace = asked("access(\"/r/a\", F_OK) = 0\n").import();
    let folder = trace.folder();
    let place = folder.join("trace.json");
    let text = fs::read_to_string(&place).unwrap();
    fs::write(&place, text.replace("\"format\": 2", "\"format\": 3")).unwrap();
    let error = Trace::open(&folder).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("has trace format 3, this version of replayer reads 1 to 2")
    );
    assert!(!error.hint().is_empty());
    for bad in ["{}", "[", "", "{\"format\": 1}", "{\"format\": 2}"] {
        fs::write(&place, bad).unwrap();
        assert!(Trace::open(&folder).is_err());
    }
    fs::remove_file(&place).unwrap();
    assert!(
        Trace::open(&folder)
            .unwrap_err()
            .to_string()
            .contains("is not a trace")
    );
}

#[test]
fn a_trace_of_format_1_is_read_as_it_was_written() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format-1");
    let trace = Trace::open(&folder).unwrap();
    let told: serde_json::Value = serde_json::from_str(trace.document()).unwrap();
    assert_eq!(told["format"], 1);
    let mut events = Vec::new();
    let mut reader = trace.tables().events(0).unwrap();
    while let Some((_, event)) = reader.next_event().unwrap() {
        events.push(event);
    }
    assert_eq!(told["counts"]["events"], events.len());
    let last = events.last().unwrap();
    assert_eq!(
        (last.op.name(), last.start_ns, last.duration_ns, last.gap_ns),
        ("access", 72_059_000, Some(3_000), 67_050)
    );
    let counted: serde_json::Value =
        serde_json::from_str(&statistics(&folder, None).unwrap()).unwrap();
    assert_eq!(counted["errors"], told["counts"]["errors"]);
    assert_eq!(counted["requests"], told["counts"]["requests"]);
}

#[test]
fn logs_cut_anywhere_are_imported_up_to_there() {
    let log = "3996  1795222977.882915 openat(AT_FDCWD</r>, \"/r/style.css\", O_RDONLY) = 7</r/style.css> <0.000038>\n\
               3996  1795222977.883117 read(7</r/style.css>, \"/*\\nTheme\"..., 8192) = 1096 <0.000073>\n";
    for end in 0..log.len() {
        let trace = asked(&log[..end]).import();
        assert!(trace.events.len() <= 2);
    }
}
