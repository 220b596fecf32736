//! Names that only listings prove, and those that listings disprove.

use crate::common;

use common::{Imported, asked};

/// A listing of `/r/d` whose calls return so many entries.
fn listing(counts: &[u32]) -> String {
    let calls: Vec<String> = counts
        .iter()
        .map(|count| {
            let bytes = count * 24;
            format!("getdents64(9, 0x55d /* {count} entries */, 32768) = {bytes}\n")
        })
        .collect();
    format!(
        "openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 9\n{}close(9) = 0\n",
        calls.concat()
    )
}

fn repairs(trace: &Imported) -> (u64, u64) {
    let count = |name: &str| trace.count(&format!("/counts/tree_repairs/{name}"));
    (count("unnamed"), count("not_there"))
}

fn below_d(trace: &Imported) -> Vec<String> {
    let tree = trace.tree().into_iter();
    tree.filter(|row| row.starts_with("r/d/")).collect()
}

#[test]
fn what_was_listed_and_never_used_gets_made_up_names() {
    // `c` is known later, and was listed all the same; `new` was not there yet.
    let log = format!(
        "access(\"/r/d/a\", F_OK) = 0\n{}\
         openat(AT_FDCWD, \"/r/d/new\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4\n\
         access(\"/r/d/c\", F_OK) = 0\n{}",
        listing(&[4, 2, 0]),
        listing(&[7, 0]),
    );
    let trace = asked(&log).import();
    assert_eq!(
        below_d(&trace),
        [
            "r/d/a f 0",
            "r/d/c f 0",
            "r/d/unnamed-1 f 0",
            "r/d/unnamed-2 f 0"
        ]
    );
    assert_eq!(repairs(&trace), (2, 0));
}

#[test]
fn a_made_up_name_is_none_that_the_trace_uses() {
    let log = format!(
        "access(\"/r/d/unnamed-1\", F_OK) = -1 ENOENT (No such file or directory)\n{}",
        listing(&[3, 0]),
    );
    assert_eq!(below_d(&asked(&log).import()), ["r/d/unnamed-2 f 0"]);
}

#[test]
fn only_whole_listings_prove_anything() {
    for calls in [
        listing(&[5]),
        format!(
            "{}openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 9\n\
             getdents64(9, 0x55d /* 5 entries */, 32768) = 120\n\
             lseek(9, 7, SEEK_SET) = 7\n\
             getdents64(9, 0x55d /* 0 entries */, 32768) = 0\n",
            "getdents64(7</r/d>, 0x55d /* 9 entries */, 32768) = 216\n\
             getdents64(7</r/d>, 0x55d /* 0 entries */, 32768) = 0\n"
        ),
        // Made while it was listed.
        "openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 9\n\
         getdents64(9, 0x55d /* 5 entries */, 32768) = 120\n\
         mkdir(\"/r/d/new\", 0755) = 0\n\
         getdents64(9, 0x55d /* 0 entries */, 32768) = 0\n"
            .to_owned(),
        // What it says of more names than a trace may make up is nothing.
        listing(&[100_000_000, 100_000_000, 0]),
    ] {
        let trace = asked(&calls).import();
        assert_eq!(repairs(&trace), (0, 0), "{calls}");
    }
}

#[test]
fn a_listing_that_begins_anew_is_whole() {
    let log = "openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 9\n\
               getdents64(9, 0x55d /* 2 entries */, 24) = 48\n\
               lseek(9, 0, SEEK_SET) = 0\n\
               getdents64(9, 0x55d /* 3 entries */, 32768) = 80\n\
               getdents64(9, 0x55d /* 0 entries */, 32768) = 0\n";
    assert_eq!(repairs(&asked(log).import()), (1, 0));
}

#[test]
fn a_name_that_the_manifest_has_in_place_of_another_is_dropped() {
    let manifest = ".\td\t0\t755\t\nd\td\t0\t755\t\nd/a\tf\t1\t644\t\nd/srvqueue.c\tf\t7\t644\t\n";
    let log = format!(
        "{}access(\"/r/d/a\", F_OK) = 0\n\
         openat(AT_FDCWD, \"/r/d/workqueue.c\", O_RDONLY) = 5\n",
        listing(&[4, 0]),
    );
    let trace = asked(&log).manifest(manifest).import();
    assert_eq!(below_d(&trace), ["r/d/a f 1", "r/d/workqueue.c f 0"]);
    assert_eq!(repairs(&trace), (0, 1));
}

#[test]
fn the_removal_of_a_directory_proves_that_nothing_was_left() {
    let manifest = ".\td\t0\t755\t\nd\td\t0\t755\t\nd/a\tf\t1\t644\t\nd/b\tf\t7\t644\t\n";
    let log = "unlink(\"/r/d/a\") = 0\nrmdir(\"/r/d\") = 0\n";
    let trace = asked(log).manifest(manifest).import();
    assert_eq!(below_d(&trace), ["r/d/a f 1"]);
    // Somebody else has removed what was listed.
    let log = format!("{}rmdir(\"/r/d\") = 0\n", listing(&[3, 0]));
    assert_eq!(repairs(&asked(&log).import()), (0, 0));
}

#[test]
fn a_directory_that_the_trace_made_gets_none() {
    let log = format!("mkdir(\"/r/d\", 0755) = 0\n{}", listing(&[5, 0]));
    assert_eq!(repairs(&asked(&log).import()), (0, 0));
}

#[test]
fn what_a_manifest_leaves_open_is_told_by_calls() {
    // Of a directory with other names before, or with a file that may not have been there, no name is known to be free.
    let log = "openat(AT_FDCWD, \"/r/d/new\", O_RDWR|O_CREAT, 0600) = 4\n\
               read(4, \"abc\"..., 10) = 3\n";
    for (rows, first) in [
        (".\td\t0\t755\t\nd\td\t0\t755\t\n", None),
        (".\td\t0\t755\t\nd\tu\t0\t755\t\n", Some("r/d/new f 3")),
        (
            ".\td\t0\t755\t\nd\td\t0\t755\t\nd/new\tm\t9\t600\t\n",
            Some("r/d/new f 3"),
        ),
        (
            ".\td\t0\t755\t\nd\td\t0\t755\t\nd/a\\tb\tM\t9\t600\t\n",
            Some("r/d/new f 3"),
        ),
    ] {
        let trace = asked(log).manifest(rows).import();
        assert_eq!(below_d(&trace).first().map(String::as_str), first, "{rows}");
    }
}
