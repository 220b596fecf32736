//! Symlinks that lead to nothing: an open that may make a file makes it where they lead, all other calls meet the link.

use crate::common;

use common::{Imported, asked, waits};
use serde_json::json;

fn label<'a>(trace: &'a Imported, path: &str) -> &'a str {
    let at = trace.paths.iter().position(|other| other == path);
    &trace.labels[at.unwrap()]
}

/// An open of `l`, and of what it leads to.
fn opened(flags: &str, target: &str) -> String {
    format!(
        "stat(\"{target}\", 0x7ffe) = -1 ENOENT (No such file or directory)\n\
         openat(AT_FDCWD, \"/r/l\", {flags}, 0666) = 3\n\
         write(3, \"x\"..., 5) = 5\n\
         stat(\"{target}\", {{st_mode=S_IFREG|0644, st_size=5, ...}}) = 0\n\
         lstat(\"/r/l\", {{st_mode=S_IFLNK|0777, st_size=1, ...}}) = 0\n\
         unlink(\"{target}\") = 0\n\
         openat(AT_FDCWD, \"/r/l\", O_RDONLY) = -1 ENOENT (No such file or directory)\n"
    )
}

#[test]
fn an_open_makes_its_file_where_the_link_leads() {
    for (link, target) in [("t", "/r/t"), ("/r/t", "/r/t"), ("d/t", "/r/d/t")] {
        let rows = format!(".\td\t0\t755\t\nd\td\t0\t755\t\nl\tl\t1\t777\t{link}\n");
        for flags in ["O_WRONLY|O_CREAT", "O_RDWR|O_CREAT|O_APPEND|O_TRUNC"] {
            let trace = asked(opened(flags, target)).manifest(&rows).import();
            let kept = format!("r/l l 0 -> {}", link.replace("/r/t", "../r/t"));
            assert!(trace.tree().contains(&kept), "{:?}", trace.tree());
            assert!(!trace.tree().iter().any(|row| row.contains("t f")));
            assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
            assert_eq!(trace.count("/counts/tree_repairs/not_there"), 0);
            assert_eq!(label(&trace, &target[1..]), "private");
        }
    }
}

#[test]
fn a_file_made_behind_a_link_has_a_label_though_nothing_names_it() {
    let trace = asked("openat(AT_FDCWD, \"/r/l\", O_WRONLY|O_CREAT, 0666) = 3\n")
        .manifest(".\td\t0\t755\t\nl\tl\t1\t777\tt\n")
        .import();
    assert_eq!(trace.tree(), ["r d 0", "r/l l 0 -> t"]);
    assert_eq!(label(&trace, "r/t"), "private");
}

#[test]
fn a_link_that_the_trace_makes_is_followed_through_others_and_out_of_the_roots() {
    let trace = asked(
        "symlink(\"log.1\", \"/r/log\") = 0\nsymlink(\"log\", \"/r/now\") = 0\n\
         openat(AT_FDCWD, \"/r/now\", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3\n\
         write(3, \"x\"..., 5) = 5\n\
         stat(\"/r/log.1\", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0\n\
         rename(\"/r/log.1\", \"/r/log.2\") = 0\n\
         stat(\"/r/now\", 0x7ffe) = -1 ENOENT (No such file or directory)\n\
         openat(AT_FDCWD, \"/r/log\", O_WRONLY|O_CREAT|O_APPEND, 0666) = 4\n\
         stat(\"/r/log.2\", {st_mode=S_IFREG|0644, st_size=5, ...}) = 0\n\
         symlink(\"/tmp/out\", \"/r/out\") = 0\n\
         openat(AT_FDCWD, \"/r/out\", O_WRONLY|O_CREAT, 0666) = 5\n\
         readlink(\"/r/out\", \"/tmp/out\", 99) = 8\n",
    )
    .manifest(".\td\t0\t755\t\n")
    .import();
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    assert_eq!(trace.tree(), [".outside d 0", "r d 0"]);
    for made in ["r/log.1", "r/log.2", ".outside/tmp|out"] {
        assert_eq!(label(&trace, made), "private", "{made}");
    }
}

#[test]
fn calls_that_do_not_follow_it_find_the_link_itself() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/l\", O_WRONLY|O_CREAT|O_EXCL, 0666) = -1 EEXIST (File exists)\n\
         openat(AT_FDCWD, \"/r/l\", O_WRONLY|O_CREAT|O_NOFOLLOW, 0666) = -1 ELOOP (Too many levels of symbolic links)\n\
         mkdir(\"/r/l\", 0755) = -1 EEXIST (File exists)\n\
         mknod(\"/r/l\", S_IFREG|0644) = -1 EEXIST (File exists)\n\
         symlink(\"x\", \"/r/l\") = -1 EEXIST (File exists)\n\
         bind(3, {sa_family=AF_UNIX, sun_path=\"/r/l\"}, 110) = -1 EADDRINUSE (Address already in use)\n\
         truncate(\"/r/l\", 5) = -1 ENOENT (No such file or directory)\n\
         openat(AT_FDCWD, \"/r/m\", O_WRONLY|O_CREAT, 0666) = -1 ENOENT (No such file or directory)\n\
         unlink(\"/r/l\") = 0\n\
         openat(AT_FDCWD, \"/r/l\", O_WRONLY|O_CREAT, 0666) = 3\n\
         stat(\"/r/t\", 0x7ffe) = -1 ENOENT (No such file or directory)\n\
         stat(\"/r/d\", {st_mode=S_IFDIR|0755, st_size=40, ...}) = 0\n",
    )
    .manifest(".\td\t0\t755\t\nd\td\t0\t755\t\nl\tl\t1\t777\tt\nm\tl\t1\t777\td/no/t\n")
    .import();
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    assert_eq!(trace.tree()[2..], ["r/l l 0 -> t", "r/m l 0 -> d/no/t"]);
    assert_eq!(
        trace.document["counts"]["calls_not_representable"],
        json!({})
    );
}

#[test]
fn without_a_manifest_what_a_link_leads_to_may_have_been_there() {
    let log = "readlink(\"/r/l\", \"t\", 99) = 1\n\
               openat(AT_FDCWD, \"/r/l\", O_RDWR|O_CREAT, 0666) = 3\n";
    let trace = asked(log.to_owned() + "read(3, \"abc\"..., 10) = 3\n").import();
    assert_eq!(trace.tree(), ["r d 0", "r/l l 0 -> t", "r/t f 3"]);
    let trace = asked(log).import();
    assert_eq!(trace.tree(), ["r d 0", "r/l l 0 -> t"]);
}

#[test]
fn what_is_made_behind_a_link_is_waited_for_by_who_finds_it() {
    let trace = asked(
        "1 stat(\"/r\", {st_mode=S_IFDIR|0755, st_size=40, ...}) = 0\n\
         2 stat(\"/r\", {st_mode=S_IFDIR|0755, st_size=40, ...}) = 0\n\
         2 stat(\"/r/t\", 0x7ffe) = -1 ENOENT (No such file or directory)\n\
         2 stat(\"/r/l\", 0x7ffe) = -1 ENOENT (No such file or directory)\n\
         1 openat(AT_FDCWD, \"/r/l\", O_WRONLY|O_CREAT, 0666) = 3\n\
         2 stat(\"/r/l\", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0\n\
         3 stat(\"/r/t\", {st_mode=S_IFREG|0644, st_size=0, ...}) = 0\n",
    )
    .manifest(".\td\t0\t755\t\nl\tl\t1\t777\tt\n")
    .import();
    for (event, other) in [(4, 2), (4, 3), (5, 4), (6, 4)] {
        assert!(waits(&trace, event, other), "{event} {other}");
    }
}
