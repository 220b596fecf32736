//! State that is followed: descriptors, offsets, directories, children.

use crate::common;

use common::asked;
use replayer_trace::Op;

#[test]
fn dup_and_fork_share_a_description_until_its_last_close() {
    let trace = asked(
        "1 1.0 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3\n\
         1 1.1 dup2(3, 9) = 9\n\
         1 1.2 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7f) = 2\n\
         1 1.3 close(3) = 0\n\
         1 1.4 fcntl(9, F_DUPFD_CLOEXEC, 10) = 10\n\
         1 1.5 close(9) = 0\n\
         1 1.6 close(10) = 0\n\
         2 1.7 close(3) = 0\n\
         2 1.8 read(9, \"\", 5) = 0\n\
         2 1.9 close(9) = 0\n",
    )
    .import();
    assert_eq!(
        trace.ops(),
        [
            Op::Open,
            Op::CloseDup,
            Op::CloseDup,
            Op::CloseDup,
            Op::CloseDup,
            Op::Read,
            Op::Close
        ]
    );
    assert!(trace.events.iter().all(|event| event.file == Some(0)));
    assert_eq!(trace.count("/counts/calls_followed/dup2"), 1);
}

#[test]
fn threads_share_their_descriptors_and_programs_lose_what_is_to_be_closed() {
    let trace = asked(
        "1 1.0 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, child_tid=0x7f, stack=0x7f, stack_size=0x9000}, 88) = 2\n\
         2 1.1 openat(AT_FDCWD, \"/r/a\", O_RDONLY|O_CLOEXEC) = 3\n\
         1 1.2 openat(AT_FDCWD, \"/r/b\", O_RDONLY) = 4\n\
         1 1.3 read(3, \"\", 5) = 0\n\
         2 1.4 +++ exited with 0 +++\n\
         1 1.5 execve(\"/bin/true\", [\"true\"], 0x7f /* 3 vars */) = 0\n\
         1 1.6 read(4, \"\", 5) = 0\n\
         1 1.7 +++ exited with 0 +++\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/a #0 = 0",
            "open r/b #1 = 0",
            "read #0 = 0",
            "exit = 0",
            "close_exit #0 = 0",
            "read #1 = 0",
            "close_exit #1 = 0",
            "exit = 0"
        ]
    );
    assert_eq!(trace.count("/counts/calls_as_events"), 4);
}

#[test]
fn a_child_is_heard_of_before_its_parents_clone_returns() {
    let trace = asked(
        "1 1.0 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\n\
         1 1.1 chdir(\"/r/d\") = 0\n\
         1 1.2 vfork( <unfinished ...>\n\
         2 1.3 read(3, \"\", 5) = 0\n\
         2 1.4 unlink(\"x\") = 0\n\
         1 1.5 <... vfork resumed>) = 2\n\
         1 1.6 close(3) = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/a #0 = 0",
            "chdir r/d = 0",
            "read #0 = 0",
            "unlink r/d/x = 0",
            "close_dup #0 = 0"
        ]
    );
}

#[test]
fn a_close_takes_effect_when_it_is_entered() {
    let trace = asked(
        "1 1.0 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3</r/a>\n\
         1 1.1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 2\n\
         1 1.2 close(3</r/a> <unfinished ...>\n\
         2 1.3 openat(AT_FDCWD, \"/r/b\", O_RDONLY) = 3</r/b>\n\
         1 1.4 <... close resumed>) = 0 <0.2>\n\
         2 1.5 close(3</r/b>) = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/a #0 = 0",
            "close #0 = 0",
            "open r/b #1 = 0",
            "close #1 = 0"
        ]
    );
    assert_eq!(trace.events[1].duration_ns, Some(200_000_000));
    assert_eq!(trace.count("/counts/files_corrected"), 0);
}

#[test]
fn close_range_ends_what_it_covers() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\nopenat(AT_FDCWD, \"/r/b\", O_RDONLY) = 4\n\
         close_range(4, 4294967295, 0) = 0\nread(3, \"\", 1) = 0\n",
    )
    .import();
    assert_eq!(trace.lines()[2..], ["close_exit #1 = 0", "read #0 = 0"]);
}

#[test]
fn legacy_calls_are_resolved_by_the_directory_that_was_followed() {
    let trace = asked(
        "22761 1.0 chdir(\"/r/src\") = 0 <0.000009>\n\
         22761 1.1 mkdir(\"dst\", 0755) = 0\n\
         22761 1.2 rename(\"a\", \"../b\") = 0\n\
         22761 1.3 openat(AT_FDCWD, \"dst\", O_RDONLY|O_DIRECTORY) = 3\n\
         22761 1.4 fchdir(3) = 0\n\
         22761 1.5 symlink(\"x\", \"y\") = 0\n\
         22761 1.6 chdir(\"..\") = 0\n\
         22761 1.7 unlink(\"dst/y\") = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "chdir r/src = 0",
            "mkdir r/src/dst = 0",
            "rename r/src/a r/b = 0",
            "open r/src/dst #0 = 0",
            "symlink r/src/dst/y = 0",
            "chdir r/src = 0",
            "unlink r/src/dst/y = 0"
        ]
    );
}

#[test]
fn a_directory_that_is_not_known_is_told() {
    let trace = asked("stat(\"a\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n").import();
    assert_eq!(trace.events.len(), 0);
    assert_eq!(trace.count("/counts/calls_with_unknown_directory/stat"), 1);
    let trace = asked("stat(\"a\", {st_mode=S_IFREG|0644, st_size=1, ...}) = 0\n")
        .cwd("/r/x")
        .import();
    assert_eq!(trace.lines(), ["stat r/x/a = 0"]);
}

#[test]
fn paths_begin_at_descriptors_and_at_what_y_shows() {
    let trace = asked(
        "1 1.0 openat(AT_FDCWD</>, \"srv\", O_PATH|O_DIRECTORY) = 9</srv>\n\
         1 1.1 openat(AT_FDCWD</r/d>, \"e\", O_RDONLY|O_DIRECTORY) = 3</r/d/e>\n\
         1 1.2 unlinkat(3</r/d/e>, \"f\", 0) = 0\n\
         1 1.3 unlinkat(3</r/d/e>, \"g\", AT_REMOVEDIR) = 0\n\
         1 1.4 chmod(\"/proc/self/fd/3\", 0700) = 0\n\
         1 1.5 newfstatat(3</r/d/e>, \"\", {st_mode=S_IFDIR|0755, st_size=4096, ...}, AT_EMPTY_PATH) = 0\n\
         1 1.6 newfstatat(AT_FDCWD</r/d>, \"h\", {st_mode=S_IFLNK|0777, st_size=4, ...}, AT_SYMLINK_NOFOLLOW) = 0\n\
         1 1.7 newfstatat(AT_FDCWD</r/d>, \"\", {st_mode=S_IFDIR|0755, st_size=4096, ...}, AT_EMPTY_PATH) = 0\n",
    )
    .import();
    assert_eq!(
        trace.lines(),
        [
            "open r/d/e #0 = 0",
            "unlink r/d/e/f #0 = 0",
            "rmdir r/d/e/g #0 = 0",
            "chmod r/d/e = 0",
            "fstat #0 = 0",
            "lstat r/d/h = 0",
            "stat r/d = 0"
        ]
    );
}

#[test]
fn roots_are_reached_through_directories_above_them() {
    let trace = asked(
        "1 openat(AT_FDCWD, \"/\", O_PATH) = 3\n1 openat(3, \"r\", O_PATH) = 4\n1 openat(4, \"a\", O_RDONLY) = 5\n",
    )
    .import();
    assert_eq!(trace.lines(), ["open r #0 = 0", "open r/a #1 #0 = 0"]);
}

#[test]
fn descriptors_from_before_the_log_are_introduced() {
    let trace = asked("1 1.0 read(7</r/a>, \"\"..., 10) = 10\n1 1.1 close(7</r/a>) = 0\n1 1.2 read(8, \"\", 5) = 5\n").import();
    assert_eq!(
        trace.lines(),
        ["inherit r/a #0 = 0", "read #0 = 10", "close #0 = 0"]
    );
    assert_eq!(trace.count("/counts/calls_with_unknown_file/read"), 1);
}

#[test]
fn a_descriptor_that_shows_another_file_is_another() {
    let trace = asked(
        "1 1.0 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3</r/a>\n\
         1 1.1 read(3<socket:[5]>, \"\", 5) = 5\n\
         1 1.2 rename(\"/r/b\", \"/r/c\") = 0\n\
         1 1.3 openat(AT_FDCWD, \"/r/d\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</r/d>\n\
         1 1.4 rename(\"/r/d\", \"/r/e\") = 0\n\
         1 1.5 write(3</r/e>, \"\"..., 5) = 5\n\
         1 1.6 unlink(\"/r/e\") = 0\n\
         1 1.7 write(3</r/e>(deleted), \"\"..., 5) = 5\n",
    )
    .import();
    assert_eq!(trace.count("/counts/files_corrected"), 1);
    let files: Vec<_> = trace.events.iter().filter_map(|event| event.file).collect();
    assert_eq!(files, [0, 1, 1, 1]);
}

#[test]
fn offsets_are_followed_through_reads_seeks_and_appends() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\nread(3, \"\"..., 100) = 100\nlseek(3, 1000, SEEK_SET) = 1000\n\
         read(3, \"\"..., 100) = 50\nclose(3) = 0\n",
    )
    .import();
    assert_eq!(trace.tree(), ["r d 0", "r/a f 1050"]);
}

#[test]
fn times_owners_and_attributes_are_kept() {
    let trace = asked(
        "7145  1.0 openat(AT_FDCWD</r>, \"f\", O_WRONLY|O_CREAT|O_EXCL|O_NOCTTY|O_NONBLOCK|O_CLOEXEC, 0600) = 4</r/f> <0.000007>\n\
         7145  1.1 utimensat(4</r/f>, NULL, [UTIME_OMIT, {tv_sec=1793988916, tv_nsec=5} /* 2026-11-06T18:15:16.000000005+0000 */], 0) = 0 <0.000003>\n\
         7145  1.2 fchown(4</r/f>, 33, -1) = 0 <0.000003>\n\
         7145  1.3 utimensat(AT_FDCWD</r>, \"f\", NULL, AT_SYMLINK_NOFOLLOW) = 0\n\
         7145  1.4 setxattr(\"/r/f\", \"user.a\", \"v\", 1, XATTR_CREATE) = 0\n\
         7145  1.5 umask(077) = 022\n\
         7145  1.6 mkdir(\"/r/d\", 0777) = 0\n",
    )
    .import();
    let [_, futimens, fchown, lutimens, setxattr, mkdir] = trace.events.as_slice() else {
        panic!()
    };
    assert_eq!(
        (futimens.atime_ns, futimens.mtime_ns),
        (None, Some(1_793_988_916_000_000_005))
    );
    assert_eq!((fchown.uid, fchown.gid), (Some(33), Some(-1)));
    assert_eq!(
        (lutimens.op, lutimens.flags, lutimens.mtime_ns),
        (Op::Lutimens, Some(3), None)
    );
    assert_eq!(
        (setxattr.text.as_deref(), setxattr.size, setxattr.flags),
        (Some(&b"user.a"[..]), Some(1), Some(1))
    );
    assert_eq!(mkdir.mode, Some(0o700));
}

/// As acl(5) has it: entries of eight bytes behind a version.
#[test]
fn an_access_list_that_says_no_more_than_a_mode_is_kept_as_one() {
    const OWNER: &str = r"\2\0\0\0\1\0\6\0\377\377\377\377";
    const REST: &str = r"\4\0\4\0\377\377\377\377 \0\0\0\377\377\377\377";
    const NAMED: &str = r"\2\0\7\0!\0\0\0";
    let set =
        |name: &str, value: &str| format!("7 setxattr(\"/r/f\", \"{name}\", {value}, 28, 0) = 0\n");
    let access = "system.posix_acl_access";
    let log = [
        set(access, &format!("\"{OWNER}{REST}\"")),
        set(access, &format!("\"{OWNER}{NAMED}{REST}\"")),
        set(access, &format!("\"{OWNER}\"...")),
        set(access, &format!("\"{OWNER}{REST}\\0\"")),
        set(
            access,
            &format!("\"{}{REST}\"", OWNER.replacen('6', "16", 1)),
        ),
        set(access, "0x7ffe"),
        set("system.posix_acl_default", &format!("\"{OWNER}{REST}\"")),
        set("user.a", &format!("\"{OWNER}{REST}\"")),
    ];
    let trace = asked(log.concat()).import();
    let modes: Vec<_> = trace.events.iter().map(|event| event.mode).collect();
    let none = [None; 7];
    assert_eq!(modes, [&[Some(0o640)], &none[..]].concat());
}

#[test]
fn copies_between_descriptors_have_both() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3</r/a>\nopenat(AT_FDCWD, \"/r/b\", O_WRONLY|O_CREAT, 0600) = 4</r/b>\n\
         ioctl(4</r/b>, BTRFS_IOC_CLONE or FICLONE, 3) = -1 EOPNOTSUPP (Operation not supported)\n\
         copy_file_range(3</r/a>, NULL, 4</r/b>, NULL, 9223372035781033984, 0) = 70\n\
         sendfile(9<socket:[1]>, 3</r/a>, [0] => [70], 70) = 70\n",
    )
    .import();
    assert_eq!(
        trace.lines()[2..],
        [
            "clone #0 #1 = -95",
            "copy_file_range #0 #1 = 70",
            "sendfile #0 = 70"
        ]
    );
}

#[test]
fn the_position_in_the_file_that_is_spliced_to_is_kept() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/a\", O_RDWR|O_CREAT, 0600) = 3</r/a>\n\
         splice(6<pipe:[1]>, NULL, 3</r/a>, [1000] => [1005], 5, 0) = 5\n\
         splice(3</r/a>, [2], 6<pipe:[1]>, NULL, 3, 0) = 3\n\
         write(3</r/a>, \"x\", 1) = 1\n",
    )
    .import();
    assert_eq!(trace.lines()[1..3], ["splice #0 = 5", "splice #0 = 3"]);
    let [to, from] = &trace.events[1..3] else {
        panic!()
    };
    assert_eq!((to.file, to.to_file, to.offset), (None, Some(0), None));
    assert_eq!(to.text.as_deref(), Some(&b"1000"[..]));
    assert_eq!((from.offset, from.text.as_deref()), (Some(2), None));
}

#[test]
fn vectors_at_an_offset_of_minus_one_move_the_position() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3</r/a>\n\
         preadv2(3</r/a>, [{iov_base=\"hello\", iov_len=9}], 1, -1, RWF_NOWAIT) = 5\n\
         pwritev2(3</r/a>, [{iov_base=\"hello\", iov_len=5}], 1, -1, 0) = 5\n\
         preadv2(3</r/a>, [{iov_base=\"lo\", iov_len=2}], 1, 3, 0) = 2\n\
         preadv(3</r/a>, [{iov_base=0x7ff, iov_len=9}], 1, -1) = -1 EINVAL (Invalid argument)\n",
    )
    .import();
    let told: Vec<_> = trace.events[1..]
        .iter()
        .map(|event| (event.op, event.offset, event.size, event.flags))
        .collect();
    assert_eq!(
        told,
        [
            (Op::Readv, None, Some(9), Some(8)),
            (Op::Writev, None, Some(5), None),
            (Op::Preadv, Some(3), Some(2), None),
            (Op::Preadv, Some(-1), Some(9), None),
        ]
    );
    assert_eq!(trace.tree(), ["r d 0", "r/a f 5"]);
}

#[test]
fn a_look_at_where_data_lie_is_an_op_of_its_own() {
    let trace = asked(
        "openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3\nioctl(3, FS_IOC_FIEMAP, {fm_start=0, fm_length=18446744073709551615, \
         fm_flags=FIEMAP_FLAG_SYNC, fm_extent_count=0} => {fm_flags=FIEMAP_FLAG_SYNC, fm_mapped_extents=1, ...}) = 0\n",
    )
    .import();
    assert_eq!(trace.ops(), [Op::Open, Op::Fiemap]);
}

#[test]
fn what_cannot_be_replayed_is_named() {
    let trace = asked(
        "inotify_add_watch(5, \"/r/a\", IN_MODIFY) = 1\n\
         openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3\nioctl(3, FS_IOC_SETFLAGS, 0x7f) = 0\nioctl(3, TCGETS, 0x7f) = -1 ENOTTY (Inappropriate ioctl for device)\n\
         io_uring_enter(7, 1, 1, 0, NULL, 8) = 1\nmmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f00\n",
    )
    .import();
    assert_eq!(trace.ops(), [Op::Open, Op::Ioctl, Op::Mmap]);
    let named = &trace.document["counts"]["calls_not_representable"];
    assert_eq!(named["inotify_add_watch"], 1);
    assert_eq!(named["ioctl(FS_IOC_SETFLAGS)"], 1);
    assert_eq!(trace.document["blind_spots"]["io_uring"], 1);
    assert_eq!(trace.document["blind_spots"]["mmap"], 1);
}

#[test]
fn what_was_open_before_a_capture_has_the_flags_and_the_position_that_were_seen() {
    let trace = asked(
        "7 1.000000000 inherited(3</r/log>, 33793, 100) = 0 <0.000000000>\n\
         7 1.000000000 inherited(4</etc/passwd>, 0, 0) = 0 <0.000000000>\n\
         7 1.000000000 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD) = 8 <0.000000000>\n\
         8 1.000000100 lseek(3</r/log>, 0, SEEK_CUR) = 100 <0.000000010>\n\
         7 1.000000200 write(3</r/log>, \"x\"..., 5) = 5 <0.000000010>\n\
         8 1.000000300 write(3</r/log>, \"x\"..., 5) = 5 <0.000000010>\n",
    )
    .import();
    let before = trace.events.first().unwrap();
    assert_eq!(before.op, Op::Inherit);
    assert_eq!((before.flags, before.offset), (Some(33_793), Some(100)));
    let files: Vec<_> = trace.events.iter().map(|event| event.file).collect();
    assert_eq!(files, [Some(0); 4]);
    assert_eq!(trace.count("/counts/lines_not_understood"), 0);
}
