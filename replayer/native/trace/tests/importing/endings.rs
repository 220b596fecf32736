//! How paths end: slashes that ask for a directory, empty paths, files on the way.

use crate::common;

use common::asked;

const RELEASES: &str = ".\td\t0\t755\t\nrel1\td\t0\t755\t\nrel1/index.php\tf\t3\t644\t\nrel1/sub\td\t0\t755\t\n\
                        rel1/sub/f\tf\t5\t644\t\ncurrent\tl\t4\t777\trel1\n";

#[test]
fn a_slash_behind_a_link_leads_to_where_the_link_leads() {
    let trace = asked(
        "lstat(\"current/\", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0\n\
         lstat(\"current\", {st_mode=S_IFLNK|0777, st_size=4, ...}) = 0\n\
         openat(AT_FDCWD, \"current/.\", O_RDONLY|O_DIRECTORY) = 3\n\
         getdents64(3, 0x55d /* 4 entries */, 32768) = 112\n\
         newfstatat(3, \"sub\", {st_mode=S_IFDIR|0755, st_size=4096, ...}, AT_SYMLINK_NOFOLLOW) = 0\n\
         openat(AT_FDCWD, \"current/sub//\", O_RDONLY|O_DIRECTORY) = 4\n\
         unlinkat(4, \"f\", 0) = 0\n\
         chdir(\"current/\") = 0\n\
         lstat(\".\", {st_mode=S_IFDIR|0755, st_size=4096, ...}) = 0\n\
         mkdir(\"/r/current/\", 0755) = -1 EEXIST (File exists)\n\
         rmdir(\"/r/current/\") = -1 ENOTDIR (Not a directory)\n",
    )
    .cwd("/r")
    .manifest(RELEASES)
    .import();
    assert_eq!(
        trace.lines(),
        [
            "lstat r/rel1 = 0",
            "lstat r/current = 0",
            "open r/rel1 #0 = 0",
            "getdents #0 = 112",
            "lstat r/rel1/sub #0 = 0",
            "open r/current/sub #1 = 0",
            "unlink r/current/sub/f #1 = 0",
            "chdir r/rel1 = 0",
            "lstat r/rel1 = 0",
            "mkdir r/current = -17",
        ]
    );
    assert_eq!(
        trace.tree(),
        [
            "r d 0",
            "r/current l 0 -> rel1",
            "r/rel1 d 0",
            "r/rel1/index.php f 3",
            "r/rel1/sub d 0",
            "r/rel1/sub/f f 5",
        ]
    );
    let repairs = &trace.document["counts"]["tree_repairs"];
    assert!(
        repairs
            .as_object()
            .unwrap()
            .values()
            .all(|count| count == 0),
        "{repairs}"
    );
}

#[test]
fn calls_that_fail_for_the_slash_or_the_dots_that_their_path_ends_with_are_left_out_by_name() {
    let trace = asked(
        "stat(\"/r/f/\", 0x7ffe) = -1 ENOTDIR (Not a directory)\n\
         rename(\"/r/f\", \"/r/new/\") = -1 ENOTDIR (Not a directory)\n\
         openat(AT_FDCWD, \"/r/new/\", O_WRONLY|O_CREAT, 0644) = -1 EISDIR (Is a directory)\n\
         unlink(\"/r/f/\") = -1 ENOTDIR (Not a directory)\n\
         symlink(\"f\", \"/r/new/\") = -1 ENOENT (No such file or directory)\n\
         rmdir(\"/r/d/.\") = -1 EINVAL (Invalid argument)\n\
         mkdir(\"/r/e/.\", 0755) = -1 ENOENT (No such file or directory)\n\
         stat(\"/r/none/\", 0x7ffe) = -1 ENOENT (No such file or directory)\n\
         rmdir(\"/r/d/\") = -1 ENOTEMPTY (Directory not empty)\n\
         mkdir(\"/r/e/\", 0755) = 0\n",
    )
    .manifest(".\td\t0\t755\t\nf\tf\t3\t644\t\nd\td\t0\t755\t\nd/x\tf\t0\t644\t\n")
    .import();
    assert_eq!(
        trace.lines(),
        ["stat r/none = -2", "rmdir r/d = -39", "mkdir r/e = 0"]
    );
    let named = &trace.document["counts"]["calls_not_representable"];
    assert_eq!(named["stat (path that ends in a slash or dots)"], 1);
    assert_eq!(named["rmdir (path that ends in a slash or dots)"], 1);
    assert_eq!(trace.count("/counts/calls_below_roots"), 10);
}

#[test]
fn an_empty_path_is_no_directory_and_says_nothing_of_one() {
    let trace = asked(
        "openat(AT_FDCWD, \"g\", O_RDONLY) = 3\n\
         openat(AT_FDCWD, \"\", O_RDONLY) = -1 ENOENT (No such file or directory)\n\
         rename(\"\", \"h\") = -1 ENOENT (No such file or directory)\n\
         symlink(\"\", \"d/l\") = -1 ENOENT (No such file or directory)\n\
         readlinkat(3, \"\", 0x7ffe, 4096) = -1 ENOENT (No such file or directory)\n\
         openat(AT_FDCWD, \"d/f\", O_RDONLY) = 4\n\
         unlink(\"d/f\") = 0\n",
    )
    .cwd("/r")
    .manifest(".\td\t0\t755\t\ng\tf\t3\t644\t\nd\td\t0\t755\t\nd/f\tf\t0\t644\t\n")
    .import();
    assert_eq!(
        trace.lines(),
        ["open r/g #0 = 0", "open r/d/f #1 = 0", "unlink r/d/f = 0"]
    );
    assert_eq!(trace.tree(), ["r d 0", "r/d d 0", "r/d/f f 0", "r/g f 3"]);
    let named = &trace.document["counts"]["calls_not_representable"];
    for name in ["openat", "rename", "symlink", "readlinkat"] {
        assert_eq!(named[format!("{name} (empty path)")], 1, "{named}");
    }
    assert_eq!(trace.count("/counts/tree_repairs/not_there"), 0);
}

#[test]
fn calls_on_a_file_by_its_descriptor_do_not_make_it_a_directory() {
    let log = "openat(AT_FDCWD, \"/r/f\", O_RDWR) = 3\n\
               utimensat(3, \"\", NULL, AT_EMPTY_PATH) = 0\n\
               fchmodat2(3, \"\", 0640, AT_EMPTY_PATH) = 0\n\
               name_to_handle_at(3, \"\", {handle_bytes=8}, [77], AT_EMPTY_PATH) = 0\n\
               fchmodat(3, \"\", 0640) = -1 ENOENT (No such file or directory)\n\
               getdents64(3, 0x55d, 32768) = -1 ENOTDIR (Not a directory)\n\
               openat(3, \"x\", O_RDONLY) = -1 ENOTDIR (Not a directory)\n";
    let listed = asked(log).manifest(".\td\t0\t755\t\nf\tf\t7\t644\t\n");
    for (asked, size) in [(asked(log), 0), (listed, 7)] {
        let trace = asked.import();
        assert_eq!(trace.tree(), ["r d 0".to_owned(), format!("r/f f {size}")]);
        assert_eq!(
            trace.lines()[..3],
            ["open r/f #0 = 0", "futimens #0 = 0", "fchmod #0 = 0"]
        );
        assert_eq!(trace.count("/counts/tree_repairs/corrected"), 0);
        let counts = &trace.document["counts"];
        assert_eq!(counts["calls_not_representable"]["name_to_handle_at"], 1);
    }
}

#[test]
fn a_file_of_the_manifest_that_was_listed_is_a_directory_and_counted_as_corrected() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/d\", O_RDONLY) = 3\ngetdents64(3, 0x55d /* 2 entries */, 32768) = 48\n",
    )
    .manifest(".\td\t0\t755\t\nd\tf\t7\t644\t\n")
    .import();
    assert_eq!(trace.tree(), ["r d 0", "r/d d 0"]);
    assert_eq!(trace.count("/counts/tree_repairs/corrected"), 1);
}

#[test]
fn what_calls_find_in_their_way_is_needed() {
    let trace = asked(
        "access(\"/r/d/f/.htaccess\", F_OK) = -1 ENOTDIR (Not a directory)\n\
         stat(\"/r/d/page.php/a/b\", 0x7ffe) = -1 ENOTDIR (Not a directory)\n\
         rename(\"/r/e\", \"/r/file\") = -1 ENOTDIR (Not a directory)\n\
         getxattr(\"/r/x\", \"user.k\", 0x7ffe, 64) = -1 ENODATA (No data available)\n",
    )
    .manifest(
        ".\td\t0\t755\t\nd\td\t0\t755\t\nd/f\tf\t5\t644\t\nd/page.php\tf\t6\t644\t\nd/other\tf\t1\t644\t\n\
         e\td\t0\t755\t\nfile\tf\t1\t644\t\nx\tf\t2\t644\t\n",
    )
    .import();
    assert_eq!(
        trace.tree(),
        [
            "r d 0",
            "r/d d 0",
            "r/d/f f 5",
            "r/d/page.php f 6",
            "r/e d 0",
            "r/file f 1",
            "r/x f 2"
        ]
    );
}
