//! Files that were open before the trace and had been removed by then, or never had a name.

use crate::common;

use common::{Imported, asked};
use replayer_trace::Op;

/// What `replayer capture -p` notes of two processes, and some of their calls.
const SERVED: &str = "\
    7 1.0 inherited(3</r/d/f (deleted)>, 32770, 100, 5000, 12) = 0\n\
    7 1.0 inherited(4</r/#77 (deleted)>, 4816898, 0, 300, 77) = 0\n\
    7 1.0 inherited(5</r/d/f (deleted)>, 33793, 0, 40, 13) = 0\n\
    8 1.0 inherited(3</r/d/f (deleted)>, 32768, 0, 5000, 12) = 0\n\
    7 1.1 read(3</r/d/f>(deleted), \"x\"..., 8192) = 4900\n\
    7 1.2 write(4</r/#77>(deleted), \"x\", 10) = 10\n\
    7 1.3 lseek(5</r/d/f>(deleted), 0, SEEK_END) = 40\n\
    8 1.4 read(3</r/d/f>(deleted), \"x\"..., 8192) = 5000\n\
    7 1.5 openat(AT_FDCWD, \"/r/d/f\", O_RDWR|O_CREAT|O_EXCL, 0600) = 6</r/d/f>\n\
    7 1.6 linkat(AT_FDCWD, \"/proc/self/fd/4\", AT_FDCWD, \"/r/g\", AT_SYMLINK_FOLLOW) = 0\n\
    7 1.7 stat(\"/r/g\", {st_mode=S_IFREG|0600, st_size=300, ...}) = 0\n";

fn served() -> Imported {
    asked(SERVED)
        .manifest(".\td\t0\t755\t\nd\td\t0\t755\t\n")
        .import()
}

#[test]
fn another_file_stands_in_for_each_that_had_been_removed() {
    let trace = served();
    let lines = trace.lines().into_iter();
    let (mut inherited, used): (Vec<_>, Vec<_>) =
        lines.partition(|line| line.starts_with("inherit"));
    inherited.sort();
    assert_eq!(
        inherited,
        [
            "inherit .removed/r|#77#77 #1 = 0",
            "inherit .removed/r|d|f#12 #0 = 0",
            "inherit .removed/r|d|f#12 #3 = 0",
            "inherit .removed/r|d|f#13 #2 = 0",
        ]
    );
    assert_eq!(
        used,
        [
            "read #0 = 4900",
            "write #1 = 10",
            "lseek #2 = 40",
            "read #3 = 5000",
            "open r/d/f #4 = 0",
            "link r/g #1 = 0",
            "stat r/g = 0",
        ]
    );
    let flags = trace.events.iter();
    let flags = flags.filter(|event| event.op == Op::Inherit && event.file == Some(1));
    // Without what makes a file that has no name.
    assert_eq!(
        flags.map(|event| event.flags).collect::<Vec<_>>(),
        [Some(557_058)]
    );
}

#[test]
fn a_file_that_stands_in_is_there_before_and_explains_all_that_is_seen_of_it() {
    let trace = served();
    assert_eq!(
        trace.tree(),
        [
            ".removed d 0",
            ".removed/r|#77#77 f 300",
            ".removed/r|d|f#12 f 5000",
            ".removed/r|d|f#13 f 40",
            "r d 0",
            "r/d d 0",
        ]
    );
    for count in [
        "/counts/tree_repairs/unexplained",
        "/counts/tree_repairs/inferred",
        "/counts/files_corrected",
    ] {
        assert_eq!(trace.count(count), 0, "{count}");
    }
    assert_eq!(trace.count("/counts/files_open_before"), 4);
    let left_out = &trace.document["counts"]["calls_not_representable"];
    assert_eq!(*left_out, serde_json::json!({}));
}

#[test]
fn without_its_size_a_file_that_had_been_removed_is_left_out_by_its_name() {
    for before in ["", "7 1.0 inherited(3</r/f (deleted)>, 32770, 100) = 0\n"] {
        for manifest in ["", ".\td\t0\t755\t\n"] {
            let text = format!("{before}7 1.1 read(3</r/f>(deleted), \"x\"..., 10) = 10\n");
            let asked = asked(text);
            let trace = if manifest.is_empty() {
                asked.import()
            } else {
                asked.manifest(manifest).import()
            };
            assert_eq!(trace.lines(), [""; 0]);
            let left_out = &trace.document["counts"]["calls_not_representable"];
            assert_eq!(left_out["read (file that had been removed before)"], 1);
        }
    }
}

#[test]
fn a_removed_file_outside_of_the_roots_is_none_of_the_traces() {
    let trace = asked(
        "7 1.0 inherited(3</tmp/f (deleted)>, 32770, 100, 5000, 12) = 0\n\
         7 1.1 read(3</tmp/f>(deleted), \"x\"..., 10) = 10\n",
    )
    .import();
    assert_eq!(trace.lines(), [""; 0]);
    assert_eq!(trace.document["counts"]["calls_out_of_scope"]["read"], 1);
}

#[test]
fn a_working_directory_that_was_removed_is_no_directory_of_that_name() {
    // The kernel's way, strace's, and without -y.
    for cwd in ["</r/gone (deleted)>", "</r/gone>(deleted)", ""] {
        let trace = asked(format!(
            "7 chdir(\"/r\") = 0\n\
             7 mkdir(\"gone\", 0777) = 0\n7 chdir(\"gone\") = 0\n7 rmdir(\"../gone\") = 0\n\
             7 openat(AT_FDCWD{cwd}, \"z\", O_WRONLY|O_CREAT, 0666) = -1 ENOENT (No such file or directory)\n\
             7 newfstatat(AT_FDCWD{cwd}, \".\", {{st_mode=S_IFDIR|0755, st_size=0, ...}}, 0) = 0\n\
             7 openat(AT_FDCWD{cwd}, \"./\", O_RDONLY|O_DIRECTORY) = 3</r/gone>(deleted)\n\
             7 getdents64(3</r/gone>(deleted), 0x55b8, 32768) = -1 ENOENT (No such file or directory)\n\
             7 newfstatat(AT_FDCWD{cwd}, \"../y\", {{st_mode=S_IFREG|0644, st_size=2, ...}}, 0) = 0\n\
             7 chdir(\"..\") = 0\n7 stat(\"y\", {{st_mode=S_IFREG|0644, st_size=2, ...}}) = 0\n"
        ))
        .import();
        assert_eq!(
            trace.lines(),
            [
                "chdir r = 0",
                "mkdir r/gone = 0",
                "chdir r/gone = 0",
                "rmdir r/gone = 0",
                "open r/gone/z = -2",
                "stat r/y = 0",
                "chdir r = 0",
                "stat r/y = 0",
            ]
        );
        assert_eq!(trace.tree(), ["r d 0", "r/y f 2"]);
        assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
        let left_out = &trace.document["counts"]["calls_not_representable"];
        assert_eq!(left_out["newfstatat (file without a name)"], 1, "{cwd}");
    }
}
