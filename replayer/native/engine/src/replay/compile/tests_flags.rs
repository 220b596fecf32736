//! Flags of calls on open files: what they ask for is asked for again.

use super::tests::{imported, omitted, scheduled, source_of};
use super::{compile_requests, compile_whole};
use crate::replay::names::Names;
use crate::replay::program::{Call, DataCall, ReplayCall};
use replayer_trace::Op;
use std::collections::BTreeMap;

fn calls(log: &str, manifest: &str) -> (Vec<ReplayCall>, BTreeMap<&'static str, usize>) {
    let (_folder, trace) = imported(log, manifest);
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let scheduled = scheduled(&replay_program).into_iter().flatten();
    (
        scheduled.map(|(scheduled, _)| scheduled.call).collect(),
        omitted(&replay_program),
    )
}

const VECTORS: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3 <0.000010>
10 1700000000.000100 pwritev2(3, [{iov_base=\"\"..., iov_len=4096}], 1, 0, RWF_DSYNC) = 4096 <0.000010>
10 1700000000.000200 pwritev2(3, [{iov_base=\"\"..., iov_len=10}], 1, -1, RWF_APPEND|RWF_SYNC) = 10 <0.000010>
10 1700000000.000300 preadv2(3, [{iov_base=\"\"..., iov_len=100}], 1, 0, RWF_NOWAIT) = -1 EAGAIN (Resource temporarily unavailable) <0.000010>
10 1700000000.000400 preadv2(3, [{iov_base=\"\"..., iov_len=100}], 1, 0, RWF_NOWAIT|RWF_HIPRI) = 60 <0.000010>
10 1700000000.000500 preadv2(3, [{iov_base=\"\"..., iov_len=100}], 1, 0, RWF_NOWAIT) = -1 EOPNOTSUPP (Operation not supported) <0.000010>
10 1700000000.000600 preadv2(3, [{iov_base=\"\"..., iov_len=100}], 1, 0, RWF_DONTCACHE) = 100 <0.000010>
10 1700000000.000650 preadv2(3, [{iov_base=\"\"..., iov_len=100}], 1, 0, RWF_HIPRI|0x400) = 100 <0.000010>
10 1700000000.000660 pwritev2(3, [{iov_base=\"\"..., iov_len=4096}], 1, 0, RWF_ATOMIC|RWF_DSYNC) = 4096 <0.000010>
10 1700000000.000700 preadv(3, [{iov_base=\"\"..., iov_len=100}], 1, 0) = 100 <0.000010>
10 1700000000.000800 write(3, \"\"..., 5) = 5 <0.000010>
";

#[test]
fn vectored_calls_keep_their_flags() {
    let (calls, omitted) = calls(VECTORS, "a\tf\t5000\t644\t\n");
    let asked = calls.iter().filter_map(|call| match call {
        ReplayCall::Read(DataCall { size, vector, .. }) => Some(('r', *size, *vector)),
        ReplayCall::Write(DataCall { size, vector, .. }) => Some(('w', *size, *vector)),
        _ => None,
    });
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [
            ('w', 4096, Some(2)),
            ('w', 10, Some(0x14)),
            ('r', 60, Some(1)),
            ('r', 100, Some(8)),
            ('r', 100, Some(0x80)),
            ('w', 4096, Some(0x42)),
            ('r', 100, Some(0)),
            ('w', 5, None),
        ]
    );
    let reasons = [
        ("that would have had to wait (RWF_NOWAIT)", 1),
        ("flags that are not replayed", 1),
    ];
    assert_eq!(omitted, BTreeMap::from(reasons));
}

const APPENDED: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/a\", O_RDWR) = 3 <0.000010>
10 1700000000.000100 pwritev2(3, [{iov_base=\"\"..., iov_len=10}], 1, 0, RWF_APPEND) = 10 <0.000010>
10 1700000000.000200 pwritev2(3, [{iov_base=\"\"..., iov_len=7}], 1, -1, RWF_APPEND) = 7 <0.000010>
10 1700000000.000300 access(\"/replayer/request/second\", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000400 write(3, \"\"..., 5) = 5 <0.000010>
10 1700000000.000500 access(\"/replayer/request/end\", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
";

#[test]
fn a_request_finds_what_was_written_at_the_end_by_a_flag() {
    let (_folder, trace) = imported(APPENDED, "a\tf\t5000\t644\t\n");
    let replay_programs = compile_requests(&source_of(&trace), "second").unwrap();
    let names = Names::new(&replay_programs[0].paths, 1, 0);
    let own = names.entries(&replay_programs[0]).map(|ready| ready.size);
    assert_eq!(own.collect::<Vec<_>>(), [5017]);
    let lanes = scheduled(&replay_programs[0]);
    let ReplayCall::Inherit { offset, .. } = lanes[0][0].0.call else {
        panic!("{:?}", lanes[0][0].0.call)
    };
    assert_eq!(offset, 5017);
}

const PLACED: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/a\", O_RDWR|O_APPEND) = 3 <0.000010>
10 1700000000.000100 pwritev2(3, [{iov_base=\"\"..., iov_len=4}], 1, 10, RWF_NOAPPEND) = 4 <0.000010>
10 1700000000.000200 pwritev2(3, [{iov_base=\"\"..., iov_len=7}], 1, -1, RWF_NOAPPEND) = 7 <0.000010>
10 1700000000.000300 access(\"/replayer/request/second\", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000400 pread64(3, \"\"..., 5, 0) = 5 <0.000010>
10 1700000000.000500 access(\"/replayer/request/end\", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000600 pwrite64(3, \"\"..., 30, 5) = 30 <0.000010>
10 1700000000.000700 access(\"/replayer/request/third\", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000800 pread64(3, \"\"..., 5, 0) = 5 <0.000010>
10 1700000000.000900 access(\"/replayer/request/end\", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
";

#[test]
fn what_is_opened_to_append_is_written_at_its_end_unless_a_flag_says_no() {
    let (_folder, trace) = imported(PLACED, "a\tf\t5000\t644\t\n");
    for (request, found) in [("second", (5000, 7)), ("third", (5030, 7))] {
        let replay_programs = compile_requests(&source_of(&trace), request).unwrap();
        let names = Names::new(&replay_programs[0].paths, 1, 0);
        let size = names.entries(&replay_programs[0]).next().unwrap().size;
        let lanes = scheduled(&replay_programs[0]);
        let ReplayCall::Inherit { offset, .. } = lanes[0][0].0.call else {
            panic!("{:?}", lanes[0][0].0.call)
        };
        assert_eq!((size, offset), found, "{request}");
    }
}

const FRESH: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/a\", O_RDONLY) = 3 <0.000010>
10 1700000000.000100 statx(AT_FDCWD, \"/r/a\", AT_STATX_FORCE_SYNC|AT_NO_AUTOMOUNT, STATX_INO, 0x7ff) = 0 <0.000010>
10 1700000000.000200 statx(AT_FDCWD, \"/r/a\", AT_STATX_DONT_SYNC|AT_SYMLINK_NOFOLLOW, STATX_INO, 0x7ff) = 0 <0.000010>
10 1700000000.000300 statx(3, \"\", AT_STATX_FORCE_SYNC|AT_EMPTY_PATH, STATX_INO, 0x7ff) = 0 <0.000010>
10 1700000000.000400 statx(AT_FDCWD, \"/r/a\", AT_STATX_SYNC_AS_STAT|AT_NO_AUTOMOUNT, STATX_INO, 0x7ff) = 0 <0.000010>
10 1700000000.000500 mmap(NULL, 4096, PROT_READ, MAP_SHARED|MAP_POPULATE, 3, 0) = 0x7f0000000000 <0.000010>
10 1700000000.000600 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_POPULATE|MAP_NONBLOCK|MAP_FIXED, 3, 0) = 0x7f0000000000 <0.000010>
";

#[test]
fn fresh_attributes_and_pages_that_are_read_at_once_are_asked_for() {
    let (calls, omitted) = calls(FRESH, "a\tf\t5000\t644\t\n");
    let asked = calls[1..].iter().map(|call| match call {
        ReplayCall::Plain(Call::Statx { follow, sync, .. }) => {
            (if *follow { "stat" } else { "lstat" }, *sync)
        }
        ReplayCall::Plain(Call::StatxFile { slot: 0, sync }) => ("fstat", *sync),
        ReplayCall::Plain(Call::Stat { .. }) => ("stat", 0),
        ReplayCall::Map { flags, .. } => ("mmap", *flags),
        other => panic!("{other:?}"),
    });
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [
            ("stat", 0x2000),
            ("lstat", 0x4000),
            ("fstat", 0x2000),
            ("stat", 0),
            ("mmap", 0x8001),
            ("mmap", 0x18002),
        ]
    );
    assert_eq!(omitted, BTreeMap::new());
}

/// `shutil.copyfile` from outside of the root.
const SENT: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/a\", O_WRONLY|O_CREAT, 0644) = 3</r/a> <0.000010>
10 1700000000.000100 sendfile(3</r/a>, 4</etc/hostname>, [0] => [9], 8388608) = 9 <0.000010>
";

#[test]
fn what_is_sent_into_a_file_is_a_sendfile() {
    let (calls, _) = calls(SENT, "");
    assert!(matches!(
        calls[1],
        ReplayCall::Transfer {
            op: Op::Sendfile,
            from: None,
            to: Some(0),
            size: 9,
            ..
        }
    ));
}
