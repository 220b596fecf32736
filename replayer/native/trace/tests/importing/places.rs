//! Where open files are: directories that move, files without names.

use crate::common;

use common::{asked, waits};
use replayer_trace::Op;

#[test]
fn what_is_open_in_a_directory_goes_where_the_directory_is_renamed_to() {
    // As strace shows it with -y, and without.
    for [new, live] in [["</r/new>", "</r/live>"], ["", ""]] {
        let trace = asked(format!(
            "mkdir(\"/r/new\", 0755) = 0\n\
             openat(AT_FDCWD, \"/r/new\", O_RDONLY|O_DIRECTORY) = 7{new}\n\
             openat(7{new}, \"a\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 8\n\
             rename(\"/r/new\", \"/r/live\") = 0\n\
             openat(7{live}, \"b\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 9\n\
             newfstatat(7{live}, \"a\", {{st_mode=S_IFREG|0600, st_size=0, ...}}, 0) = 0\n\
             mkdirat(7{live}, \"d\", 0755) = 0\n\
             fchdir(7{live}) = 0\n\
             chdir(\"d\") = 0\n\
             rename(\"/r/live\", \"/r/old\") = 0\n\
             mkdir(\"/r/new\", 0755) = 0\n\
             rename(\"/r/new\", \"/r/live\") = 0\n\
             mkdir(\"x\", 0755) = 0\n",
        ))
        .import();
        let lines = trace.lines();
        assert_eq!(lines[4], "open r/live/b #2 #0 = 0");
        assert_eq!(lines[5], "stat r/live/a #0 = 0");
        assert_eq!(lines[6], "mkdir r/live/d #0 = 0");
        assert_eq!(lines.last().unwrap(), "mkdir r/old/d/x = 0");
        assert_eq!(trace.tree(), ["r d 0"]);
        assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
        assert_eq!(trace.count("/counts/files_corrected"), 0);
    }
}

#[test]
fn directories_that_are_exchanged_take_along_what_is_open_in_each() {
    let trace = asked(
        "mkdir(\"/r/a\", 0755) = 0\nmkdir(\"/r/b\", 0755) = 0\n\
         openat(AT_FDCWD, \"/r/a\", O_RDONLY|O_DIRECTORY) = 7\n\
         openat(AT_FDCWD, \"/r/b\", O_RDONLY|O_DIRECTORY) = 8\n\
         renameat2(AT_FDCWD, \"/r/a\", AT_FDCWD, \"/r/b\", RENAME_EXCHANGE) = 0\n\
         mkdirat(7, \"x\", 0755) = 0\nmkdirat(8, \"y\", 0755) = 0\n",
    )
    .cwd("/r")
    .import();
    assert_eq!(
        trace.lines()[5..],
        ["mkdir r/b/x #0 = 0", "mkdir r/a/y #1 = 0"]
    );
    assert_eq!(trace.tree(), ["r d 0"]);
}

#[test]
fn a_file_without_a_name_that_gets_one_is_known_by_it() {
    for through in ["/proc/self/fd/3", "/proc/9/fd/3", "/dev/fd/3"] {
        let trace = asked(format!(
            "9 openat(AT_FDCWD, \"/r/d\", O_WRONLY|O_TMPFILE, 0600) = 3\n9 write(3, \"x\"..., 5) = 5\n\
             9 linkat(3, \"\", AT_FDCWD, \"/r/d/f0\", AT_EMPTY_PATH) = -1 ENOENT (No such file or directory)\n\
             9 linkat(AT_FDCWD, \"{through}\", AT_FDCWD, \"/r/d/f0\", 0) = -1 EXDEV (Invalid cross-device link)\n\
             9 linkat(AT_FDCWD, \"{through}\", AT_FDCWD, \"/r/d/f0\", AT_SYMLINK_FOLLOW) = 0\n\
             9 linkat(3, \"\", AT_FDCWD, \"/r/d/f1\", AT_EMPTY_PATH) = 0\n\
             9 linkat(3, \"\", AT_FDCWD, \"/r/d/f1\", AT_EMPTY_PATH) = -1 EEXIST (File exists)\n\
             9 rename(\"/r/d/f0\", \"/r/d/f2\") = 0\n\
             9 chmod(\"/r/d/f2\", 0640) = 0\n\
             9 stat(\"/r/d/f1\", {{st_mode=S_IFREG|0640, st_size=5, ...}}) = 0\n"
        ))
        .import();
        assert_eq!(
            trace.lines(),
            [
                "open r/d #0 = 0",
                "write #0 = 5",
                "link r/d/f0 #0 = 0",
                "link r/d/f1 #0 = 0",
                "link r/d/f1 #0 = -17",
                "rename r/d/f0 r/d/f2 = 0",
                "chmod r/d/f2 = 0",
                "stat r/d/f1 = 0",
            ]
        );
        assert!(
            trace
                .events
                .iter()
                .all(|event| event.op != Op::Link || event.path.is_none())
        );
        assert_eq!(trace.tree(), ["r d 0", "r/d d 0"]);
        assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
        assert_eq!(trace.document["blind_spots"], serde_json::json!({}));
        let counts = &trace.document["counts"];
        let left_out = &counts["calls_not_representable"];
        assert_eq!(left_out["linkat (descriptor that was not linked)"], 1);
        assert_eq!(counts["calls_out_of_scope"]["linkat"], 1);
    }
}

#[test]
fn a_file_is_linked_by_its_descriptor_whatever_became_of_its_name() {
    let trace = asked(
        "9 openat(AT_FDCWD, \"/r/f\", O_RDONLY) = 3\n\
         9 rename(\"/r/f\", \"/r/g\") = 0\n\
         9 openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 4\n\
         9 linkat(3, \"\", 4, \"h\", AT_EMPTY_PATH) = 0\n\
         9 chmod(\"/proc/self/fd/3\", 0640) = 0\n\
         9 unlink(\"/r/g\") = 0\n9 unlink(\"/r/d/h\") = 0\n\
         9 chmod(\"/proc/self/fd/3\", 0640) = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines()[3..],
        [
            "link r/d/h #1 #0 = 0",
            "chmod r/g = 0",
            "unlink r/g = 0",
            "unlink r/d/h = 0",
        ]
    );
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    let left_out = &trace.document["counts"]["calls_not_representable"];
    assert_eq!(left_out["chmod (file without a name)"], 1);
}

#[test]
fn what_is_done_with_a_new_name_waits_for_it_and_its_file_stays_open_until_then() {
    let trace = asked(
        "8 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 9\n\
         8 openat(AT_FDCWD, \"/r\", O_WRONLY|O_TMPFILE, 0600) = 3\n\
         9 linkat(3, \"\", AT_FDCWD, \"/r/f\", AT_EMPTY_PATH) = 0\n\
         8 close(3) = 0\n\
         8 stat(\"/r/f\", {st_mode=S_IFREG|0600, st_size=0, ...}) = 0\n",
    )
    .import();
    assert_eq!(trace.ops(), [Op::Open, Op::Link, Op::Close, Op::Stat]);
    for (event, other) in [(1, 0), (2, 1), (3, 1)] {
        assert!(waits(&trace, event, other), "{event} {other}");
    }
}

#[test]
fn files_that_go_to_or_come_from_a_directory_outside_that_is_open_are_told() {
    // As strace shows it with -y, and without.
    for [out, cwd] in [["</srv/out>", "</r>"], ["", ""]] {
        let trace = asked(format!(
            "openat(AT_FDCWD{cwd}, \"../srv/out\", O_RDONLY|O_PATH|O_DIRECTORY) = 3{out}\n\
             renameat2(AT_FDCWD{cwd}, \"d/f\", 3{out}, \"f\", RENAME_NOREPLACE) = 0\n\
             renameat(3{out}, \"in\", AT_FDCWD{cwd}, \"d/in\") = 0\n\
             linkat(3{out}, \"two\", AT_FDCWD{cwd}, \"d/two\", 0) = 0\n\
             renameat2(AT_FDCWD{cwd}, \"d/two\", 3{out}, \"taken\", RENAME_NOREPLACE) = -1 EEXIST (File exists)\n\
             renameat(AT_FDCWD{cwd}, \"d/two\", 3{out}, \"no/where\") = -1 ENOENT (No such file or directory)\n\
             fchdir(3{out}) = 0\n\
             rename(\"x\", \"../../r/d/x\") = 0\n",
        ))
        .cwd("/r")
        .manifest(".\td\t0\t755\t\nd\td\t0\t755\t\nd/f\tf\t5\t644\t\n")
        .import();
        assert_eq!(
            trace.lines(),
            [
                "rename r/d/f .outside/srv|out|f = 0",
                "rename .outside/srv|out|in r/d/in = 0",
                "link .outside/srv|out|two r/d/two = 0",
                "rename r/d/two .outside/srv|out|taken = -17",
                "rename .outside/srv|out|x r/d/x = 0",
            ]
        );
        assert!(trace.tree().contains(&".outside/srv|out|in f 0".to_owned()));
        let counts = &trace.document["counts"];
        let failed = "renameat (failed outside of the roots)";
        assert_eq!(counts["calls_not_representable"][failed], 1);
        assert!(!counts["calls_out_of_scope"].to_string().contains("rename"));
        assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    }
}

#[test]
fn a_file_that_was_removed_and_is_opened_through_its_descriptor_is_left_out_by_name() {
    // As strace shows it with -y, and without.
    for [open, again] in [["</r/f>", "</r/f>(deleted)"], ["", ""]] {
        let trace = asked(format!(
            "openat(AT_FDCWD, \"/r/f\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3{open}\n\
             openat(AT_FDCWD, \"/dev/fd/3\", O_RDONLY) = 4{open}\n\
             unlink(\"/r/f\") = 0\n\
             openat(AT_FDCWD, \"/proc/self/fd/3\", O_RDONLY) = 5{again}\n\
             read(5{again}, \"\"..., 10) = 10\n\
             close(5{again}) = 0\n\
             close(3{again}) = 0\n",
        ))
        .import();
        assert_eq!(
            trace.lines(),
            [
                "open r/f #0 = 0",
                "open r/f #1 = 0",
                "unlink r/f = 0",
                "close #0 = 0",
            ]
        );
        let named = &trace.document["counts"]["calls_not_representable"];
        for name in ["openat", "read", "close"] {
            assert_eq!(named[format!("{name} (file without a name)")], 1, "{named}");
        }
    }
}

#[test]
fn a_file_that_was_renamed_is_opened_through_its_descriptor_by_its_new_name() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/f\", O_RDWR) = 3</r/f>\n\
         rename(\"/r/f\", \"/r/g\") = 0\n\
         openat(AT_FDCWD, \"/proc/self/fd/3\", O_RDONLY) = 4</r/g>\n",
    )
    .import();
    assert_eq!(trace.lines()[2], "open r/g #1 = 0");
}

#[test]
fn a_descriptor_that_was_received_shares_what_is_open_elsewhere() {
    let trace = asked(
        "1 1.0 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         1 1.1 openat(AT_FDCWD, \"/r/f\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</r/f>\n\
         1 1.2 write(3</r/f>, \"\"..., 20) = 20\n\
         2 1.3 write(5</r/f>, \"\"..., 19) = 19\n\
         1 1.4 close(3</r/f>) = 0\n\
         2 1.5 fsync(5</r/f>) = 0\n\
         2 1.6 unlink(\"/r/f\") = 0\n\
         3 1.7 fsync(9</r/f>(deleted)) = 0\n\
         3 1.7 close(9</r/f>(deleted)) = 0\n\
         2 1.8 close(5</r/f>(deleted)) = 0\n\
         2 1.9 fsync(6</r/f>(deleted)) = 0\n\
         2 2.0 close(6</r/f>(deleted)) = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/f #0 = 0",
            "write #0 = 20",
            "write #0 = 19",
            "close_dup #0 = 0",
            "fsync #0 = 0",
            "unlink r/f = 0",
            "fsync #0 = 0",
            "close_dup #0 = 0",
            "close #0 = 0",
        ]
    );
    let named = &trace.document["counts"]["calls_not_representable"];
    assert_eq!(named["fsync (descriptor that was received)"], 1);
    assert_eq!(named["close (descriptor that was received)"], 1);
    assert_eq!(trace.count("/counts/bytes_written"), 39);
}

#[test]
fn directories_that_come_from_outside_are_directories_whose_contents_nobody_knows() {
    let trace = asked(
        "mkdir(\"/tmp/made\", 0700) = 0\n\
         openat(AT_FDCWD, \"/tmp/made/in\", O_WRONLY|O_CREAT, 0644) = 3\n\
         close(3) = 0\n\
         rename(\"/tmp/made\", \"/r/made\") = 0\n\
         openat(AT_FDCWD, \"/tmp/listed\", O_RDONLY|O_DIRECTORY) = 3\n\
         close(3) = 0\n\
         rename(\"/tmp/listed\", \"/r/listed\") = 0\n\
         mkdir(\"/tmp/gone\", 0700) = 0\n\
         rmdir(\"/tmp/gone\") = 0\n\
         rename(\"/tmp/gone\", \"/r/other\") = 0\n",
    )
    .import();
    for entry in ["tmp|made d 0", "tmp|listed d 0", "tmp|gone f 0"] {
        assert!(
            trace.tree().contains(&format!(".outside/{entry}")),
            "{entry}"
        );
    }
    let blind = "what was in directories that came from outside of the roots";
    assert_eq!(trace.document["blind_spots"][blind], 2);
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
}

#[test]
fn what_a_descriptor_is_called_in_proc_is_a_link_there_to_calls_that_do_not_follow_it() {
    for through in ["/proc/self/fd/3", "/proc/9/fd/3", "/dev/fd/3"] {
        let trace = asked(format!(
            "9 openat(AT_FDCWD, \"/r/f\", O_RDONLY) = 3\n\
             9 readlink(\"{through}\", \"/r/f\", 4096) = 4\n\
             9 readlinkat(AT_FDCWD, \"{through}\", \"/r/f\", 4096) = 4\n\
             9 lstat(\"{through}\", {{st_mode=S_IFLNK|0500, st_size=64, ...}}) = 0\n\
             9 newfstatat(AT_FDCWD, \"{through}\", {{st_mode=S_IFLNK|0500, st_size=64, ...}}, AT_SYMLINK_NOFOLLOW) = 0\n\
             9 lgetxattr(\"{through}\", \"user.a\", 0x7ffe, 9) = -1 ENODATA (No data available)\n\
             9 lchown(\"{through}\", 1, 1) = -1 EPERM (Operation not permitted)\n\
             9 unlink(\"{through}\") = -1 EPERM (Operation not permitted)\n\
             9 rmdir(\"{through}\") = -1 ENOTDIR (Not a directory)\n\
             9 mkdir(\"{through}\", 0755) = -1 EEXIST (File exists)\n\
             9 symlink(\"x\", \"{through}\") = -1 EEXIST (File exists)\n\
             9 rename(\"{through}\", \"/r/g\") = -1 EXDEV (Invalid cross-device link)\n\
             9 openat(AT_FDCWD, \"{through}\", O_WRONLY|O_CREAT|O_EXCL, 0600) = -1 EEXIST (File exists)\n\
             9 openat(AT_FDCWD, \"{through}\", O_RDONLY|O_NOFOLLOW) = -1 ELOOP (Too many levels of symbolic links)\n\
             9 openat(AT_FDCWD, \"{through}\", O_RDONLY|O_NOFOLLOW|O_PATH) = 4\n\
             9 fstat(4, {{st_mode=S_IFLNK|0500, st_size=64, ...}}) = 0\n\
             9 stat(\"{through}\", {{st_mode=S_IFREG|0644, st_size=1, ...}}) = 0\n\
             9 openat(AT_FDCWD, \"{through}\", O_RDONLY) = 5\n"
        ))
        .import();
        assert_eq!(
            trace.lines(),
            ["open r/f #0 = 0", "stat r/f = 0", "open r/f #1 = 0"]
        );
        assert_eq!(trace.tree(), ["r d 0", "r/f f 1"]);
        let out = &trace.document["counts"]["calls_out_of_scope"];
        for (call, count) in [("readlink", 1), ("openat", 3), ("lstat", 1), ("unlink", 1)] {
            assert_eq!(out[call], count, "{call}");
        }
        assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    }
}

#[test]
fn absolute_paths_begin_at_the_root_of_their_task() {
    let trace = asked(
        "1 mkdir(\"/r/jail\", 0755) = 0\n\
         1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         2 chroot(\"/r/jail\") = 0\n\
         2 mkdir(\"/../a\", 0755) = 0\n\
         2 chdir(\"/\") = 0\n\
         2 mkdir(\"a/b\", 0755) = 0\n\
         2 clone(child_stack=NULL, flags=SIGCHLD) = 3\n\
         3 chroot(\"/a\") = 0\n\
         3 mkdir(\"/c\", 0755) = 0\n\
         2 mkdir(\"/d\", 0755) = 0\n\
         1 mkdir(\"/r/e\", 0755) = 0\n",
    )
    .import();
    let made = [
        "r/jail",
        "r/jail/a",
        "r/jail/a/b",
        "r/jail/a/c",
        "r/jail/d",
        "r/e",
    ];
    let lines: Vec<String> = made.map(|path| format!("mkdir {path} = 0")).to_vec();
    let found = trace.lines();
    let found: Vec<&String> = found
        .iter()
        .filter(|line| line.starts_with("mkdir"))
        .collect();
    assert_eq!(found, lines.iter().collect::<Vec<_>>());
    assert!(
        trace.document["blind_spots"]
            .as_object()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_root_that_is_swapped_is_that_of_all_on_the_same_mounts() {
    let trace = asked(
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         2 unshare(CLONE_NEWNS) = 0\n\
         2 chdir(\"/r/jail\") = 0\n\
         2 clone(child_stack=NULL, flags=SIGCHLD) = 3\n\
         3 pivot_root(\".\", \"old\") = 0\n\
         2 mkdir(\"/a\", 0755) = 0\n\
         1 mkdir(\"/r/b\", 0755) = 0\n\
         2 mkdir(\"/r\", 0755) = 0\n",
    )
    .import();
    let found = trace.lines();
    let found: Vec<&String> = found
        .iter()
        .filter(|line| line.starts_with("mkdir"))
        .collect();
    assert_eq!(
        found,
        ["mkdir r/jail/a = 0", "mkdir r/b = 0", "mkdir r/jail/r = 0"]
    );
}

#[test]
fn links_outside_of_the_roots_are_followed_where_that_is_asked() {
    for follows in [true, false] {
        let mut asked = asked("");
        let home = asked.folder.path().to_owned();
        let shown = home.display();
        std::fs::create_dir_all(home.join("root/deep")).unwrap();
        for (text, link) in [("root", "www"), ("root/deep/a", "file"), ("/", "top")] {
            std::os::unix::fs::symlink(text, home.join(link)).unwrap();
        }
        std::fs::write(home.join("root/deep/a"), "a").unwrap();
        let log = asked.file(
            "log",
            &format!(
                "stat(\"{shown}/www/deep/a\", {{st_mode=S_IFREG|0644, st_size=1, ...}}) = 0\n\
                 stat(\"{shown}/file\", {{st_mode=S_IFREG|0644, st_size=1, ...}}) = 0\n\
                 lstat(\"{shown}/file\", {{st_mode=S_IFLNK|0777, st_size=11, ...}}) = 0\n\
                 chdir(\"{shown}/www\") = 0\n\
                 stat(\"deep/a\", {{st_mode=S_IFREG|0644, st_size=1, ...}}) = 0\n\
                 stat(\"{shown}/top/none\", 0x1) = -1 ENOENT (No such file or directory)\n\
                 chdir(\"{shown}\") = 0\n\
                 stat(\"www/deep\", {{st_mode=S_IFDIR|0755, st_size=4096, ...}}) = 0\n"
            ),
        );
        asked.request.files = vec![log];
        asked.request.roots = vec![format!("{shown}/root").into_bytes()];
        asked.request.follows_links = follows;
        let lines = asked.import().lines();
        let found = [
            "stat root/deep/a = 0",
            "stat root/deep/a = 0",
            "chdir root = 0",
            "stat root/deep/a = 0",
            "stat root/deep = 0",
        ];
        assert_eq!(lines, if follows { &found[..] } else { &[] });
    }
}
