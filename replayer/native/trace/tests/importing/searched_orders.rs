//! Calls that overlapped, and what the search for their order takes for proven.

use crate::common;

use common::asked;

#[test]
fn the_name_of_a_descriptor_proves_nothing_while_files_are_renamed() {
    for calls in [
        // The rename that the close shows has not returned.
        "2 1700000001.3 rename(\"/r/b\", \"/r/c\" <unfinished ...>\n\
         1 1700000001.4 close(3</r/c>) = 0\n\
         2 1700000001.5 <... rename resumed>) = 0\n",
        // The one that ends the name that the write shows has returned before it.
        "1 1700000001.3 pwrite64(3</r/b>, \"x\", 1, 0 <unfinished ...>\n\
         2 1700000001.4 rename(\"/r/b\", \"/r/c\") = 0\n\
         1 1700000001.5 <... pwrite64 resumed>) = 1\n\
         1 1700000001.6 close(3</r/c>) = 0\n",
        // The name has been removed, and is that of another file by now.
        "2 1700000001.3 unlink(\"/r/b\") = 0\n\
         2 1700000001.4 openat(AT_FDCWD, \"/r/b\", O_RDWR|O_CREAT, 0600) = 4</r/b>\n\
         2 1700000001.5 close(4</r/b>) = 0\n\
         1 1700000001.6 close(3</r/b>(deleted)) = 0\n",
    ] {
        let trace = asked(format!(
            "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
             1 1700000001.1 openat(AT_FDCWD, \"/r/a\", O_RDWR|O_CREAT, 0600) = 3</r/a>\n\
             2 1700000001.2 rename(\"/r/a\", \"/r/b\") = 0\n{calls}"
        ))
        .manifest(".\td\t0\t755\t\n")
        .import();
        let lines = trace.lines();
        assert!(lines.contains(&"close #0 = 0".to_owned()), "{lines:?}");
        assert_eq!(trace.tree(), ["r d 0"], "{calls}");
        for count in ["tree_repairs/unexplained", "files_corrected"] {
            assert_eq!(trace.count(&format!("/counts/{count}")), 0, "{calls}");
        }
    }
}

#[test]
fn a_call_that_an_order_puts_first_is_waited_for_however_many_lines_it_takes() {
    let enoent = "-1 ENOENT (No such file or directory)";
    let trace = asked(format!(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 unlink(\"/r/old\" <unfinished ...>\n\
         2 1700000001.2 unlink(\"/r/old\") = {enoent}\n{}\
         1 1700000009.0 <... unlink resumed>) = 0\n",
        format!("2 1700000002.0 access(\"/r/free\", F_OK) = {enoent}\n").repeat(10_000)
    ))
    .manifest(".\td\t0\t755\t\nold\tf\t5\t644\t\n")
    .import();
    assert_eq!(
        trace.lines()[..2],
        ["unlink r/old = 0", "unlink r/old = -2"]
    );
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
}

#[test]
fn a_read_that_no_order_explains_is_counted_once() {
    let trace = asked(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 openat(AT_FDCWD, \"/r/n\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3\n\
         1 1700000001.2 stat(\"/r/n\", {st_mode=S_IFREG|0600, st_size=0, ...} <unfinished ...>\n\
         2 1700000001.3 unlink(\"/r/n\") = 0\n\
         1 1700000001.4 <... stat resumed>) = 0\n\
         1 1700000001.5 pread64(3, \"x\"..., 100, 0) = 5\n\
         1 1700000001.6 pread64(3, \"x\"..., 100, 0) = 5\n",
    )
    .manifest(".\td\t0\t755\t\n")
    .import();
    let unexplained = "/blind_spots/results of overlapping calls that no order explains";
    assert_eq!(trace.count(unexplained), 1);
}

/// A call that lasts, what it returned, another one meanwhile, and how the two come in the only order that explains both results.
#[rustfmt::skip]
const OF_SIZES: &[(&str, &str, &str, [&str; 2])] = &[
    ("lseek(3, 0, SEEK_END", "5", "pwrite64(4, \"x\"..., 9, 0) = 9", ["lseek #0 = 5", "pwrite #1 = 9"]),
    ("pwrite64(3, \"x\"..., 9, 0", "9", "lseek(4, 0, SEEK_END) = 9", ["pwrite #0 = 9", "lseek #1 = 9"]),
    ("pread64(3, \"x\"..., 9, 0", "5", "pwrite64(4, \"x\"..., 7, 0) = 7", ["pread #0 = 5", "pwrite #1 = 7"]),
    ("pread64(3, \"\", 9, 5", "0", "pwrite64(4, \"x\"..., 7, 0) = 7", ["pread #0 = 0", "pwrite #1 = 7"]),
    ("truncate(\"/r/n\", 2", "0", "pread64(4, \"x\"..., 100, 0) = 2", ["truncate r/n = 0", "pread #1 = 2"]),
    ("lseek(3, 0, SEEK_END", "5", "ftruncate(4, 2) = 0", ["lseek #0 = 5", "ftruncate #1 = 0"]),
];

#[test]
fn sizes_tell_which_of_two_calls_took_effect_first() {
    let both = OF_SIZES.iter().flat_map(|case| [(case, "n"), (case, "m")]);
    for ((first, result, second, order), opened) in both {
        let name = first.split('(').next().unwrap();
        let trace = asked(format!(
            "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
             1 1700000001.1 openat(AT_FDCWD, \"/r/n\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3\n\
             1 1700000001.1 link(\"/r/n\", \"/r/m\") = 0\n\
             2 1700000001.1 openat(AT_FDCWD, \"/r/{opened}\", O_RDWR) = 4\n\
             1 1700000001.2 pwrite64(3, \"x\"..., 5, 0) = 5\n\
             1 1700000001.3 {first} <unfinished ...>\n\
             2 1700000001.4 {second}\n\
             1 1700000001.5 <... {name} resumed>) = {result}\n"
        ))
        .manifest(".\td\t0\t755\t\n")
        .import();
        assert_eq!(trace.lines()[4..6], *order, "{opened}");
    }
}

#[test]
fn sizes_of_a_file_whose_name_never_changes_tell_it_too() {
    let trace = asked(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 openat(AT_FDCWD, \"/r/n\", O_RDWR) = 3\n\
         2 1700000001.1 openat(AT_FDCWD, \"/r/n\", O_RDWR) = 4\n\
         1 1700000001.2 ftruncate(3, 5) = 0\n\
         1 1700000001.3 lseek(3, 0, SEEK_END <unfinished ...>\n\
         2 1700000001.4 ftruncate(4, 2) = 0\n\
         1 1700000001.5 <... lseek resumed>) = 5\n",
    )
    .manifest(".\td\t0\t755\t\nn\tf\t9\t644\t\n")
    .import();
    assert_eq!(trace.lines()[3..5], ["lseek #0 = 5", "ftruncate #1 = 0"]);
}

#[test]
fn a_file_that_comes_with_its_directory_is_not_the_one_that_had_its_name_before() {
    let trace = asked(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1700000001.1 openat(AT_FDCWD, \"/r/b/f\", O_RDWR) = 3\n\
         1 1700000001.2 lseek(3, 0, SEEK_END) = 9\n\
         1 1700000001.3 unlink(\"/r/b/f\") = 0\n\
         1 1700000001.4 rename(\"/r/a\", \"/r/b\") = 0\n\
         1 1700000001.5 openat(AT_FDCWD, \"/r/b/f\", O_RDWR) = 4\n\
         1 1700000001.6 lseek(4, 0, SEEK_END) = 5\n\
         1 1700000001.7 lseek(3, 0, SEEK_END) = 9\n\
         1 1700000001.8 access(\"/r/b/f\", F_OK <unfinished ...>\n\
         2 1700000001.8 unlink(\"/r/b/f\") = 0\n\
         1 1700000001.9 <... access resumed>) = 0\n",
    )
    .manifest(
        ".\td\t0\t755\t\na\td\t0\t755\t\na/f\tf\t5\t644\t\nb\td\t0\t755\t\nb/f\tf\t9\t644\t\n",
    )
    .import();
    let blind = &trace.document["blind_spots"];
    assert_eq!(
        blind.as_object().map(serde_json::Map::len),
        Some(0),
        "{blind}"
    );
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
}

/// What a process does about directories `a` and `b`, each with a file `f`, of 5 and 9 bytes, and another one meanwhile.
fn of_directories(calls: &str) -> common::Imported {
    asked(format!(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n{calls}\
         1 1700000003.0 access(\"/r/free\", F_OK <unfinished ...>\n\
         2 1700000003.1 unlink(\"/r/free\") = 0\n\
         1 1700000003.2 <... access resumed>) = 0\n"
    ))
    .manifest(
        ".\td\t0\t755\t\na\td\t0\t755\t\na/f\tf\t5\t644\t\nb\td\t0\t755\t\nb/f\tf\t9\t644\t\nfree\tf\t1\t644\t\n",
    )
    .import()
}

fn is_explained(trace: &common::Imported) -> bool {
    let blind = &trace.document["blind_spots"];
    let repairs = ["unexplained", "not_there"];
    let mut repairs = repairs
        .map(|kind| format!("/counts/tree_repairs/{kind}"))
        .into_iter();
    repairs.all(|repairs| trace.count(&repairs) == 0)
        && blind.as_object().map(serde_json::Map::len) == Some(0)
}

#[test]
fn a_file_is_the_same_after_its_directory_was_renamed() {
    let trace = of_directories(
        "1 1700000001.1 openat(AT_FDCWD, \"/r/a/f\", O_RDWR) = 3\n\
         1 1700000001.2 rename(\"/r/a\", \"/r/c\") = 0\n\
         1 1700000001.3 pwrite64(3, \"x\"..., 7, 0 <unfinished ...>\n\
         2 1700000001.4 truncate(\"/r/c/f\", 2) = 0\n\
         2 1700000001.5 openat(AT_FDCWD, \"/r/c/f\", O_RDWR) = 4\n\
         2 1700000001.6 pread64(4, \"x\"..., 100, 0) = 7\n\
         1 1700000001.7 <... pwrite64 resumed>) = 7\n\
         1 1700000001.8 lseek(3, 0, SEEK_END <unfinished ...>\n\
         2 1700000001.9 truncate(\"/r/c/f\", 2) = 0\n\
         1 1700000002.0 <... lseek resumed>) = 7\n",
    );
    assert!(is_explained(&trace), "{}", trace.document);
    let lines = trace.lines();
    let place = |line: &str| lines.iter().rposition(|known| known == line);
    assert!(
        place("lseek #0 = 7") < place("truncate r/c/f = 0"),
        "{lines:?}"
    );
}

#[test]
fn a_name_in_an_open_directory_is_that_of_the_directory_wherever_it_is() {
    let trace = of_directories(
        "1 1700000001.0 clone(child_stack=NULL, flags=SIGCHLD) = 3\n\
         1 1700000001.1 openat(AT_FDCWD, \"/r/a\", O_RDONLY|O_DIRECTORY) = 3\n\
         2 1700000001.2 rename(\"/r/a\", \"/r/c\" <unfinished ...>\n\
         1 1700000001.3 unlinkat(3, \"f\", 0 <unfinished ...>\n\
         3 1700000001.4 openat(AT_FDCWD, \"/r/c/f\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3\n\
         1 1700000001.5 <... unlinkat resumed>) = 0\n\
         2 1700000001.6 <... rename resumed>) = 0\n",
    );
    assert!(is_explained(&trace), "{}", trace.document);
}

#[test]
fn a_rename_between_two_names_of_one_file_changes_nothing() {
    let trace = of_directories(
        "1 1700000001.1 link(\"/r/a/f\", \"/r/a/g\") = 0\n\
         1 1700000001.2 rename(\"/r/a/f\", \"/r/a/g\") = 0\n\
         1 1700000001.3 unlink(\"/r/a/f\") = 0\n\
         1 1700000001.4 unlink(\"/r/a/g\") = 0\n",
    );
    assert!(is_explained(&trace), "{}", trace.document);
}

#[test]
fn a_directory_with_entries_is_not_replaced() {
    let trace = of_directories(
        "1 1700000001.1 mkdir(\"/r/c\", 0700) = 0\n\
         2 1700000001.2 rename(\"/r/a\", \"/r/c\" <unfinished ...>\n\
         1 1700000001.3 mkdir(\"/r/c/n\", 0700) = 0\n\
         2 1700000001.4 <... rename resumed>) = 0\n",
    );
    assert!(is_explained(&trace), "{}", trace.document);
    assert_eq!(
        trace.lines()[1..3],
        ["rename r/a r/c = 0", "mkdir r/c/n = 0"]
    );
}

#[test]
fn what_is_missing_in_a_directory_that_was_removed_may_be_in_the_one_that_has_its_name() {
    let enoent = "-1 ENOENT (No such file or directory)";
    let trace = of_directories(&format!(
        "1 1700000001.1 mkdir(\"/r/c\", 0700) = 0\n\
         1 1700000001.2 openat(AT_FDCWD, \"/r/c\", O_RDONLY|O_DIRECTORY) = 3\n\
         1 1700000001.3 rmdir(\"/r/c\") = 0\n\
         2 1700000001.4 rename(\"/r/a\", \"/r/c\") = 0\n\
         1 1700000001.5 unlinkat(3, \"f\", 0) = {enoent}\n\
         1 1700000001.6 openat(3, \"f\", O_RDONLY) = {enoent}\n\
         2 1700000001.7 unlink(\"/r/c/f\") = 0\n"
    ));
    assert!(is_explained(&trace), "{}", trace.document);
}

#[test]
fn the_search_goes_on_after_a_result_that_cannot_be_so() {
    // The two lookups of a call are not one: a directory was renamed in between.
    let trace = of_directories(
        "1 1700000001.1 link(\"/r/a/f\", \"/r/a/f\" <unfinished ...>\n\
         2 1700000001.2 rename(\"/r/a\", \"/r/c\") = 0\n\
         2 1700000001.3 mkdir(\"/r/a\", 0700) = 0\n\
         1 1700000001.4 <... link resumed>) = 0\n",
    );
    let unexplained = "/blind_spots/results of overlapping calls that no order explains";
    assert_eq!(trace.count(unexplained), 1);
}
