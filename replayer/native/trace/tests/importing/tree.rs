//! What must be there before: manifests, inference and repair, links, and labels.

use crate::common;

use common::asked;
use replayer_trace::Keep;
use replayer_trace::Op;

#[test]
fn names_with_tabs_and_line_breaks_stand_in_a_manifest() {
    let trace = asked("access(\"/r/a\\tb\\nc\\\\d\", F_OK) = 0\naccess(\"/r/x\\\\t\", F_OK) = 0\n")
        .manifest(
            ".\td\t0\t755\t\na\\tb\\nc\\\\d\tF\t5\t644\t\nx\\t\tf\t6\t644\t\nl\tL\t3\t777\ta\\tb\n",
        )
        .import();
    assert_eq!(trace.count("/counts/tree_repairs/missing_in_manifest"), 0);
    let tree = trace.tree();
    assert!(tree.contains(&"r/a\tb\nc\\d f 5".to_owned()), "{tree:?}");
    assert!(tree.contains(&"r/x\\t f 6".to_owned()), "{tree:?}");
}

#[test]
fn a_root_is_known_by_the_link_that_leads_to_it() {
    let mut asked = asked(
        "1 stat(\"/www/site/a\", {st_mode=S_IFREG|0640, st_size=77, ...}) = 0\n\
         1 openat(AT_FDCWD, \"/www\", O_RDONLY|O_DIRECTORY) = 3\n\
         1 openat(3, \"site/b\", O_RDONLY) = 4\n",
    );
    asked.request.aliases = vec![("/www/site".to_owned(), "/r".to_owned())];
    let trace = asked.import();
    assert_eq!(trace.lines()[..2], ["stat r/a = 0", "open r/b #0 = 0"]);
    assert_eq!(trace.document["roots"].as_array().unwrap().len(), 1);
}

#[test]
fn first_touches_decide_what_was_there() {
    let trace = asked(
        "stat(\"/r/old\", {st_mode=S_IFREG|0640, st_size=77, ...}) = 0\n\
         access(\"/r/none\", F_OK) = -1 ENOENT (No such file or directory)\n\
         mkdir(\"/r/d\", 0755) = 0\n\
         openat(AT_FDCWD, \"/r/d/new\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3\n\
         openat(AT_FDCWD, \"/r/e/read\", O_RDONLY) = 4\n\
         read(4, \"\"..., 4096) = 4096\n\
         mkdir(\"/r/was\", 0755) = -1 EEXIST (File exists)\n\
         stat(\"/r/file.php/x\", 0x7ffe) = -1 ENOTDIR (Not a directory)\n\
         rmdir(\"/r/full\") = -1 ENOTEMPTY (Directory not empty)\n\
         readlink(\"/r/ln\", \"e/read\", 4096) = 6\n",
    )
    .import();
    assert_eq!(
        trace.tree(),
        [
            "r d 0",
            "r/e d 0",
            "r/e/read f 4096",
            "r/file.php f 0",
            "r/full d 0",
            "r/ln l 0 -> e/read",
            "r/old f 77",
            "r/was f 0"
        ]
    );
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    assert_eq!(trace.count("/tree/sizes_that_are_least"), 3);
}

#[test]
fn a_file_of_which_only_that_is_known_may_be_executed() {
    let trace = asked(
        "access(\"/r/hook\", X_OK) = 0\naccess(\"/r/plain\", R_OK) = 0\naccess(\"/r/told\", X_OK) = 0\n\
         stat(\"/r/told\", {st_mode=S_IFREG|0711, st_size=3, ...}) = 0\n",
    )
    .import();
    let expected = [
        ("r", None),
        ("r/hook", Some(0o755)),
        ("r/plain", None),
        ("r/told", Some(0o711)),
    ];
    assert_eq!(
        trace.modes(),
        expected.map(|(name, mode)| (name.to_owned(), mode))
    );
}

#[test]
fn what_is_renamed_was_where_it_was() {
    let trace = asked(
        "rename(\"/r/a\", \"/r/b\") = 0\nstat(\"/r/b/deep\", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0\n\
         access(\"/r/a\", F_OK) = -1 ENOENT (No such file or directory)\n\
         link(\"/r/b/deep\", \"/r/c\") = 0\nunlink(\"/r/c\") = 0\n",
    )
    .import();
    assert_eq!(trace.tree(), ["r d 0", "r/a d 0", "r/a/deep f 3"]);
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
}

#[test]
fn an_open_that_may_create_is_decided_by_what_is_read() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/sess_1\", O_RDWR|O_CREAT|O_NOFOLLOW, 0600) = 6\npread64(6, \"\"..., 300, 0) = 300\n\
         openat(AT_FDCWD, \"/r/sess_2\", O_RDWR|O_CREAT|O_NOFOLLOW, 0600) = 7\npwrite64(7, \"\"..., 300, 0) = 300\n\
         pread64(7, \"\"..., 300, 0) = 300\n",
    )
    .import();
    assert_eq!(trace.tree(), ["r d 0", "r/sess_1 f 300"]);
}

#[test]
fn a_manifest_is_kept_as_far_as_it_is_needed_and_repaired() {
    let log = "stat(\"/r/a\", {st_mode=S_IFREG|0644, st_size=12, ...}) = 0\n\
               access(\"/r/gone\", F_OK) = -1 ENOENT (No such file or directory)\n\
               access(\"/r/forgotten\", F_OK) = 0\n\
               openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 3\n\
               getdents64(3, 0x55d /* 3 entries */, 32768) = 80\n";
    let rows = ".\td\t4096\t755\t\na\tf\t10\t644\t\ngone\tf\t1\t644\t\nd\td\t4096\t750\t\nd/in\tf\t5\t600\t\nother\tf\t9\t644\t\n";
    let trace = asked(log).manifest(rows).import();
    assert_eq!(
        trace.tree(),
        [
            "r d 0",
            "r/a f 12",
            "r/d d 0",
            "r/d/in f 5",
            "r/forgotten f 0"
        ]
    );
    let repairs = |name: &str| trace.count(&format!("/counts/tree_repairs/{name}"));
    assert_eq!(
        (
            repairs("corrected"),
            repairs("not_there"),
            repairs("missing_in_manifest"),
            repairs("unexplained")
        ),
        (1, 1, 1, 0)
    );

    let mut all = asked(log).manifest(rows);
    all.request.keep = Keep::All;
    assert!(all.import().tree().contains(&"r/other f 9".to_owned()));
}

#[test]
fn several_roots_have_prefixes_in_a_manifest() {
    let trace = asked(
        "stat(\"/s/x\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\nmkdir(\"/r\", 0755) = 0\n",
    )
    .root("/s")
    .manifest("r:.\t-\t0\t0\t\ns:.\td\t0\t755\t\ns:x\tf\t1\t644\t\n")
    .import();
    assert_eq!(trace.tree(), ["s d 0", "s/x f 1"]);
    assert_eq!(trace.lines(), ["stat s/x = 0", "mkdir r = 0"]);
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
}

#[test]
fn names_with_colons_are_not_taken_for_other_roots() {
    let trace = asked(
        "stat(\"/r/s:x\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n\
         stat(\"/r/d:y\", {st_mode=S_IFREG|0644, st_size=2, ...}) = 0\n\
         stat(\"/q/r:d/z\", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0\n",
    )
    .root("/s")
    .root("/q/r:d")
    .manifest(
        "r:.\td\t0\t755\t\nr:./s:x\tf\t1\t644\t\nr:./d:y\tf\t2\t644\t\ns:.\td\t0\t755\t\n\
         r:d:.\td\t0\t755\t\nr:d:./z\tf\t3\t644\t\n",
    )
    .import();
    let tree = trace.tree();
    for found in ["r/s:x f 1", "r/d:y f 2", "r:d/z f 3"] {
        assert!(tree.contains(&found.to_owned()), "{tree:?}");
    }
    assert_eq!(trace.count("/counts/tree_repairs/missing_in_manifest"), 0);
}

#[test]
fn what_was_found_behind_a_link_was_there_where_it_leads() {
    let trace = asked(
        "readlink(\"/r/cur\", \"rel/1/conf\", 4096) = 10\n\
         openat(AT_FDCWD, \"/r/cur\", O_RDONLY) = 3\n\
         openat(AT_FDCWD, \"/r/out\", O_RDONLY) = 4\n\
         symlink(\"/etc/deep/passwd\", \"/r/abs\") = 0\n\
         openat(AT_FDCWD, \"/r/abs\", O_RDONLY) = 5\n\
         readlink(\"/r/abs\", \"/etc/deep/passwd\", 4096) = 16\n",
    )
    .manifest("out\tl\t0\t777\t/srv/else/where\n")
    .import();
    assert_eq!(
        trace.tree(),
        [
            ".outside d 0",
            ".outside/etc|deep|passwd f 0",
            ".outside/srv|else|where f 0",
            "r d 0",
            "r/cur l 0 -> rel/1/conf",
            "r/out l 0 -> ../.outside/srv|else|where",
            "r/rel d 0",
            "r/rel/1 d 0",
            "r/rel/1/conf f 0",
        ]
    );
    assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0);
    let texts = |op| {
        let events = trace.events.iter().filter(move |event| event.op == op);
        events.map(|event| event.text.clone()).collect::<Vec<_>>()
    };
    let within = b"../.outside/etc|deep|passwd".to_vec();
    assert_eq!(texts(Op::Readlink), [None, Some(within.clone())]);
    assert_eq!(texts(Op::Symlink), [Some(within)]);
}

#[test]
fn links_lead_where_they_led_wherever_the_trace_is_laid_out() {
    let rows = ".\td\t0\t755\t\nreleases\td\t0\t755\t\nreleases/7\td\t0\t755\t\nreleases/7/f\tf\t3\t644\t\n\
                current\tl\t10\t777\t/r/releases/7\nup\tl\t10\t777\treleases/7\nout\tl\t4\t777\t/etc\n";
    let trace = asked(
        "stat(\"/r/current/f\", {st_mode=S_IFREG|0644, st_size=3, ...}) = 0\n\
         stat(\"/r/up/../8\", 0x7ffe) = -1 ENOENT (No such file or directory)\n\
         stat(\"/r/out/passwd\", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0\n\
         symlink(\"/r/releases/7\", \"/r/releases/now\") = 0\n\
         symlink(\"../../../etc/shadow\", \"/r/evil\") = 0\n",
    )
    .manifest(rows)
    .import();
    assert_eq!(
        trace.lines(),
        [
            "stat r/current/f = 0",
            // `..` goes up from where the link leads.
            "stat r/releases/8 = -2",
            "stat r/out/passwd = 0",
            "symlink r/releases/now = 0",
            "symlink r/evil = 0"
        ]
    );
    let tree = trace.tree();
    assert!(
        tree.contains(&"r/current l 0 -> ../r/releases/7".to_owned()),
        "{tree:?}"
    );
    assert!(
        tree.contains(&"r/out l 0 -> ../.outside/etc".to_owned()),
        "{tree:?}"
    );
    assert!(
        tree.contains(&".outside/etc/passwd f 9".to_owned()),
        "{tree:?}"
    );
    assert_eq!(
        trace.events[3].text.as_deref(),
        Some(&b"../../r/releases/7"[..])
    );
    assert_eq!(
        trace.events[4].text.as_deref(),
        Some(&b"../.outside/etc|shadow"[..])
    );
    assert_eq!(trace.count("/counts/links_out_of_roots"), 2);
}

#[test]
fn files_from_outside_get_a_place() {
    let trace = asked(
        "rename(\"/tmp/php1\", \"/r/up/a.jpg\") = 0\nlink(\"/r/up/a.jpg\", \"/var/b\") = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "rename .outside/tmp|php1 r/up/a.jpg = 0",
            "link r/up/a.jpg .outside/var|b = 0"
        ]
    );
    assert_eq!(
        trace.tree(),
        [".outside d 0", ".outside/tmp|php1 f 0", "r d 0", "r/up d 0"]
    );
}

#[test]
fn what_a_listing_outside_of_the_roots_holds_is_not_known() {
    let listing =
        |fd: u32, count: u32| format!("getdents64({fd}, 0x5 /* {count} entries */, 32768) = 72\n");
    let log = "readlink(\"/r/up\", \"../srv\", 99) = 6\n\
         openat(AT_FDCWD, \"/r/up\", O_RDONLY|O_DIRECTORY) = 3\n"
        .to_owned()
        + &listing(3, 11)
        + "openat(AT_FDCWD, \"/r/up/below/\", O_RDONLY|O_DIRECTORY) = 4\n"
        + &listing(4, 5)
        + "mkdir(\"/r/up/made\", 0777) = 0\n\
         openat(AT_FDCWD, \"/r/up/made\", O_RDONLY|O_DIRECTORY) = 5\n"
        + &listing(5, 2)
        + "openat(AT_FDCWD, \"/r\", O_RDONLY|O_DIRECTORY) = 6\n"
        + &listing(6, 3);
    let trace = asked(log).manifest("up\tl\t0\t777\t../srv\n").import();
    let listings = trace.events.iter().filter(|event| event.op == Op::Getdents);
    let entries: Vec<Option<i64>> = listings.map(|event| event.entries).collect();
    assert_eq!(entries, [None, None, Some(2), Some(3)]);
    let blind = "/blind_spots/entries of directories outside of the roots";
    assert_eq!(trace.count(blind), 2);
}

#[test]
fn labels_tell_what_users_can_share() {
    let trace = asked(
        "1 openat(AT_FDCWD, \"/r/code\", O_RDONLY) = 3\n\
         2 openat(AT_FDCWD, \"/r/code\", O_RDONLY) = 3\n\
         1 openat(AT_FDCWD, \"/r/cache\", O_RDWR) = 4\n\
         2 openat(AT_FDCWD, \"/r/cache\", O_RDWR) = 4\n\
         2 pwrite64(4, \"\"..., 5, 0) = 5\n\
         1 openat(AT_FDCWD, \"/r/tmp1\", O_RDWR|O_CREAT|O_EXCL, 0600) = 5\n",
    )
    .import();
    let label = |path: &str| {
        let at = trace.paths.iter().position(|other| other == path).unwrap();
        trace.labels[at].clone()
    };
    assert_eq!(label("r/code"), "shared read-only");
    assert_eq!(label("r/cache"), "shared mutable");
    assert_eq!(label("r/tmp1"), "private");
    assert_eq!(label("r"), "shared mutable");
}

#[test]
fn columns_tell_of_every_event_what_a_timeline_shows() {
    let trace = asked(
        "1 1700000001.000000 openat(AT_FDCWD, \"/r/code\", O_RDONLY) = 3 <0.000010>\n\
         1 1700000001.000020 pread64(3, \"\"..., 5, 0) = 5 <0.000004>\n\
         2 1700000001.000030 stat(\"/r/none\", 0x1) = -1 ENOENT (No such file or directory) <0.000002>\n",
    )
    .import();
    let columns = replayer_trace::event_columns(&trace.folder()).unwrap();
    let ops: Vec<&str> = (columns.op.iter())
        .map(|&number| Op::ALL[usize::from(number)].name())
        .collect();
    let names: Vec<&str> = trace.events.iter().map(|event| event.op.name()).collect();
    assert_eq!(ops, names);
    let path = |row: usize| {
        let place = usize::try_from(columns.path[row]).unwrap();
        (
            columns.paths[place].path.clone(),
            columns.paths[place].label.clone(),
        )
    };
    let read = names.iter().position(|name| *name == "pread").unwrap();
    assert_eq!(
        path(read),
        (b"r/code".to_vec(), "shared read-only".to_owned())
    );
    assert_eq!(columns.duration_ns[read], 4000);
    assert_eq!(columns.result[read], 5);
    let failed = columns
        .result
        .iter()
        .position(|&result| result == -2)
        .unwrap();
    assert_eq!(path(failed).0, b"r/none");
    assert_ne!(columns.thread[failed], columns.thread[read]);
    assert_eq!(columns.start_ns[failed] - columns.start_ns[read], 10_000);
}

#[test]
fn a_link_that_leads_nobody_knows_where_is_one_all_the_same() {
    let log = "lstat(\"/r/l\", {st_mode=S_IFLNK|0777, st_size=6, ...}) = 0\n";
    assert_eq!(asked(log).import().tree(), ["r d 0", "r/l l 0 -> unknown"]);
}
