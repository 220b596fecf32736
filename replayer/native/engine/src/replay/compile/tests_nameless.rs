//! Files without a name that are given one: by the descriptor, and found by who comes later.

use super::tests::{imported, omitted, scheduled, source_of};
use super::{compile_requests, compile_whole};
use crate::replay::names::Names;
use crate::replay::program::ReplayCall;
use std::collections::BTreeMap;

const NAMELESS: &str = r#"10 1700000000.000000 openat(AT_FDCWD, "/r/d", O_RDWR|O_TMPFILE, 0640) = 3 <0.000010>
10 1700000000.000100 write(3, ""..., 300) = 300 <0.000010>
10 1700000000.000200 linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "/r/d/a", AT_SYMLINK_FOLLOW) = 0 <0.000010>
10 1700000000.000300 linkat(3, "", AT_FDCWD, "/r/d/b", AT_EMPTY_PATH) = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.000400 access("/replayer/request/second", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000500 write(3, ""..., 5) = 5 <0.000010>
10 1700000000.000600 rename("/r/d/a", "/r/d/c") = 0 <0.000010>
10 1700000000.000700 access("/replayer/request/end", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
"#;

#[test]
fn a_file_without_a_name_is_given_one_by_its_descriptor() {
    let (_folder, trace) = imported(NAMELESS, "d\td\t0\t755\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    let names = Names::new(&replay_program.paths, 1, 0);
    let given = lanes[0]
        .iter()
        .filter_map(|(scheduled, _)| match scheduled.call {
            ReplayCall::LinkOpen { slot: 0, to } => Some(names.path(to.path)),
            _ => None,
        });
    assert_eq!(given.collect::<Vec<_>>(), [c"t/r/d/a~1"]);
    let denied = "change of an open file that was denied";
    assert_eq!(omitted(&replay_program), BTreeMap::from([(denied, 1)]));
}

#[test]
fn a_request_finds_the_file_that_was_given_a_name_and_is_still_open() {
    let (_folder, trace) = imported(NAMELESS, "d\td\t0\t755\t\n");
    let replay_programs = compile_requests(&source_of(&trace), "second").unwrap();
    let [replay_program] = &replay_programs[..] else {
        panic!("one request")
    };
    let names = Names::new(&replay_program.paths, 1, 0);
    let own = names
        .entries(replay_program)
        .map(|ready| (ready.path, ready.size));
    assert_eq!(own.collect::<Vec<_>>(), [(c"t/r/d/a~1", 300)]);
    let lanes = scheduled(replay_program);
    let ReplayCall::Inherit {
        path,
        flags,
        offset,
        ..
    } = lanes[0][0].0.call
    else {
        panic!("{:?}", lanes[0][0].0.call)
    };
    assert_eq!((names.path(path), flags, offset), (c"t/r/d/a~1", 0o2, 300));
}
