//! Access control lists: those that say no more than a mode are set, and found by who comes later.

use super::tests::{imported, omitted, scheduled, source_of};
use super::{compile_requests, compile_whole};
use crate::call::Call;
use crate::replay::program::{Recorded, ReplayCall, Subject};

const LISTS: &str = r#"10 1700000000.000000 access("/replayer/request/first", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000100 openat(AT_FDCWD, "/r/f", O_WRONLY|O_CREAT, 0600) = 3 <0.000010>
10 1700000000.000200 fsetxattr(3, "system.posix_acl_access", "\2\0\0\0\1\0\6\0\377\377\377\377\4\0\4\0\377\377\377\377 \0\0\0\377\377\377\377", 28, 0) = 0 <0.000010>
10 1700000000.000300 close(3) = 0 <0.000010>
10 1700000000.000400 mkdir("/r/d", 0700) = 0 <0.000010>
10 1700000000.000500 removexattr("/r/d", "system.posix_acl_default") = 0 <0.000010>
10 1700000000.000600 setxattr("/r/d", "system.posix_acl_access", "\2\0\0\0\1\0\7\0\377\377\377\377\4\0\5\0\377\377\377\377 \0\5\0\377\377\377\377", 28, 0) = 0 <0.000010>
10 1700000000.000700 setxattr("/r/d", "system.posix_acl_access", "\2\0\0\0\1\0\7\0\377\377\377\377\2\0\7\0!\0\0\0"..., 44, 0) = 0 <0.000010>
10 1700000000.000800 setxattr("/r/d", "system.posix_acl_default", "\2\0\0\0", 4, 0) = 0 <0.000010>
10 1700000000.000900 setxattr("/r/d", "security.selinux", "x", 1, 0) = 0 <0.000010>
10 1700000000.001000 removexattr("/r/d", "security.selinux") = 0 <0.000010>
10 1700000000.001100 access("/replayer/request/end", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.001200 access("/replayer/request/second", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.001300 unlink("/r/f") = 0 <0.000010>
10 1700000000.001400 rmdir("/r/d") = 0 <0.000010>
10 1700000000.001500 access("/replayer/request/end", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
"#;

#[test]
fn lists_that_say_a_mode_are_set_and_others_are_left_out() {
    let (_folder, trace) = imported(LISTS, "");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    let set = lanes[0]
        .iter()
        .filter_map(|(scheduled, _)| match scheduled.call {
            ReplayCall::Plain(Call::SetList { on, mode, flags: 0 }) => {
                Some((matches!(on, Subject::File(_)), mode))
            }
            ReplayCall::Plain(Call::Removexattr { .. }) => Some((false, 0)),
            _ => None,
        });
    let set: Vec<_> = set.collect();
    assert_eq!(set, [(true, 0o640), (false, 0), (false, 0o755)]);
    let reasons = omitted(&replay_program);
    assert_eq!(
        reasons.get("attribute of the system is not changed"),
        Some(&4)
    );
}

#[test]
fn a_request_finds_the_modes_that_lists_have_set() {
    let (_folder, trace) = imported(LISTS, "");
    let replay_programs = compile_requests(&source_of(&trace), "second").unwrap();
    let [replay_program] = &replay_programs[..] else {
        panic!("one request")
    };
    let mut modes: Vec<_> = replay_program.own.iter().map(|entry| entry.mode).collect();
    modes.sort_unstable();
    assert_eq!(modes, [0o640, 0o755]);
}

const UNCOUNTED: &str = r#"10 1700000000.000000 openat(AT_FDCWD, "/r/d", O_RDONLY|O_DIRECTORY) = 3 <0.000010>
10 1700000000.000100 getdents64(3, 0x55d0c0, 32768) = 120 <0.000010>
10 1700000000.000200 getdents64(3, 0x55d0c0 /* 0 entries */, 32768) = 0 <0.000010>
10 1700000000.000300 close(3) = 0 <0.000010>
"#;

#[test]
fn directories_whose_entries_a_log_does_not_count_were_listed_all_the_same() {
    let (_folder, trace) = imported(UNCOUNTED, "");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    let lists = lanes[0]
        .iter()
        .filter(|(scheduled, _)| matches!(scheduled.call, ReplayCall::List { .. }));
    let recorded: Vec<_> = lists.map(|(scheduled, _)| scheduled.recorded).collect();
    assert_eq!(recorded, [Recorded::Well, Recorded::Exactly(0)]);
}
