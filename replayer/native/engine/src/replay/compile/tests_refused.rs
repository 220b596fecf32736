//! What a program was refused: it stays as it is.

use super::compile_whole;
use super::tests::{imported, omitted, scheduled, source_of};
use crate::program::LockKind;
use crate::replay::program::{Call, Recorded, ReplayCall};
use crate::sys::Through;
use std::collections::BTreeMap;

/// A user without rights in `/r/ro`: every call that would change something, and two that read.
const DENIED: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/ro\", O_RDONLY|O_DIRECTORY) = 3 <0.000010>
10 1700000000.000100 openat(3, \"f\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.000200 openat(AT_FDCWD, \"/r/ro/f\", O_RDWR) = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.000300 openat(AT_FDCWD, \"/r/ro/f\", O_WRONLY|O_CREAT|O_EXCL, 0666) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.000400 mkdir(\"/r/ro/d\", 0755) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.000500 mknod(\"/r/ro/n\", S_IFREG|0644) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.000600 symlink(\"f\", \"/r/ro/l\") = -1 EACCES (Permission denied) <0.000010>
10 1700000000.000700 link(\"/r/ro/f\", \"/r/ro/h\") = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.000800 rename(\"/r/ro/f\", \"/r/f\") = -1 EACCES (Permission denied) <0.000010>
10 1700000000.000900 unlink(\"/r/ro/f\") = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.001000 rmdir(\"/r/ro\") = -1 EACCES (Permission denied) <0.000010>
10 1700000000.001100 truncate(\"/r/ro/f\", 0) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.001200 chmod(\"/r/ro/f\", 0777) = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.001300 lchown(\"/r/ro/f\", 5, 5) = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.001400 utimensat(AT_FDCWD, \"/r/ro/f\", NULL, 0) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.001500 setxattr(\"/r/ro/f\", \"user.a\", \"b\", 1, 0) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.001600 fchmod(3, 0777) = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.001700 fchown(3, 5, 5) = -1 EPERM (Operation not permitted) <0.000010>
10 1700000000.001800 openat(AT_FDCWD, \"/r/ro/f\", O_RDONLY) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.001900 stat(\"/r/ro/f\", 0x7ff) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.002000 openat(AT_FDCWD, \"/r/ro/f\", O_RDONLY|O_TRUNC) = -1 EROFS (Read-only file system) <0.000010>
";

#[test]
fn changes_that_were_denied_are_looked_up_or_left_out() {
    let (_folder, trace) = imported(DENIED, "ro\td\t0\t755\t\nro/f\tf\t5\t644\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    let told = lanes[0].iter().map(|(scheduled, _)| {
        let looked_up = matches!(scheduled.recorded, Recorded::Denied(1 | 13));
        match &scheduled.call {
            ReplayCall::Plain(Call::Stat { .. }) if looked_up => "stat",
            ReplayCall::Plain(Call::Lstat { .. }) if looked_up => "lstat",
            ReplayCall::Omit { .. } => "omitted",
            _ if looked_up => panic!("{scheduled:?}"),
            _ => "made",
        }
    });
    let told: Vec<_> = told.collect();
    let expected = [
        ["made", "stat", "stat", "lstat"],
        ["lstat"; 4],
        ["lstat", "lstat", "lstat", "stat"],
        ["stat", "lstat", "stat", "stat"],
        ["omitted", "omitted", "made", "made"],
    ];
    assert_eq!(told, [expected.as_flattened(), &["made"]].concat());
    let left_out = BTreeMap::from([("change of an open file that was denied", 2)]);
    assert_eq!(omitted(&replay_program), left_out);
    assert!(matches!(
        lanes[0][1].0.call,
        ReplayCall::Plain(Call::Stat { at }) if at.from.is_some()
    ));
}

/// Who reads asks for more and is refused it; who was interrupted, or would have waited for itself, did not get it either.
const REFUSED: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/f\", O_RDWR|O_CREAT, 0600) = 3 <0.000010>
10 1700000000.000100 fcntl(3, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=10}) = 0 <0.000010>
10 1700000000.000200 fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=5}) = -1 EAGAIN (Resource temporarily unavailable) <0.000010>
10 1700000000.000300 fcntl(3, F_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=10, l_len=5}) = -1 EACCES (Permission denied) <0.000010>
10 1700000000.000400 fcntl(3, F_SETLKW, {l_type=F_WRLCK, l_whence=SEEK_SET, l_start=10, l_len=5}) = -1 EDEADLK (Resource deadlock avoided) <0.000010>
10 1700000000.000500 flock(3, LOCK_EX) = -1 EINTR (Interrupted system call) <0.000010>
10 1700000000.000600 flock(3, LOCK_EX) = 0 <0.000010>
";

#[test]
fn locks_that_were_not_given_are_not_waited_for_and_leave_what_there_was() {
    let (_folder, trace) = imported(REFUSED, "");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    let told = lanes[0]
        .iter()
        .filter_map(|(scheduled, _)| match scheduled.call {
            ReplayCall::Plain(Call::FcntlLock {
                wait, kind, before, ..
            }) => Some((wait, kind, before)),
            ReplayCall::Plain(Call::Flock { kind, wait, .. }) => {
                Some((wait, kind, LockKind::Unlock))
            }
            _ => None,
        });
    let told: Vec<_> = told.collect();
    let (shared, exclusive, unlocked) = (LockKind::Shared, LockKind::Exclusive, LockKind::Unlock);
    let ranges = [
        (false, shared, unlocked),
        (false, exclusive, shared),
        (false, exclusive, unlocked),
    ];
    let whole = [(false, exclusive, unlocked), (true, exclusive, unlocked)];
    assert_eq!(told, [&ranges[..], &whole].concat());
    let reason = "lock that was refused because of a deadlock";
    assert_eq!(omitted(&replay_program), BTreeMap::from([(reason, 1)]));
}

/// What `O_PATH` opens has no other attributes than those of its name.
const PLACES: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/f\", O_PATH) = 3 <0.000010>
10 1700000000.000100 fchownat(3, \"\", 5, 5, AT_EMPTY_PATH) = 0 <0.000010>
10 1700000000.000200 fchown(3, 5, 5) = -1 EBADF (Bad file descriptor) <0.000010>
10 1700000000.000300 close(3) = 0 <0.000010>
10 1700000000.000400 openat(AT_FDCWD, \"/r/f\", O_RDONLY) = 3 <0.000010>
10 1700000000.000500 fchownat(3, \"\", 5, 5, AT_EMPTY_PATH) = 0 <0.000010>
";

#[test]
fn what_only_stands_for_a_name_is_reached_by_an_empty_path() {
    let (_folder, trace) = imported(PLACES, "f\tf\t5\t644\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    let told = lanes[0]
        .iter()
        .filter_map(|(scheduled, _)| match scheduled.call {
            ReplayCall::Plain(Call::Fchown { through, .. }) => Some(through),
            _ => None,
        });
    let told: Vec<_> = told.collect();
    let plain = Through::Descriptor;
    assert_eq!(told, [Through::EmptyPath, plain, plain]);
}

/// Ways that openat2 may not take.
const WAYS: &str = "\
10 1700000000.000000 openat2(AT_FDCWD, \"/r/f\", {flags=O_RDONLY, resolve=RESOLVE_NO_SYMLINKS}, 24) = 3 <0.000010>
10 1700000000.000100 openat(AT_FDCWD, \"/r/d\", O_RDONLY|O_DIRECTORY) = 4 <0.000010>
10 1700000000.000200 openat2(4, \"../f\", {flags=O_WRONLY|O_CREAT, mode=0600, resolve=RESOLVE_BENEATH}, 24) = -1 EXDEV (Invalid cross-device link) <0.000010>
";

#[test]
fn what_openat2_may_not_meet_is_told_and_what_it_may_not_leave_is_not_opened() {
    let (_folder, trace) = imported(WAYS, "d\td\t0\t755\t\nf\tf\t5\t644\t\n");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let lanes = scheduled(&replay_program);
    let told = lanes[0]
        .iter()
        .filter_map(|(scheduled, _)| match scheduled.call {
            ReplayCall::Plain(Call::Open { resolve, .. }) => Some(resolve),
            _ => None,
        });
    assert_eq!(told.collect::<Vec<_>>(), [4, 0]);
    let reason = "open that would leave its directory or file system";
    assert_eq!(omitted(&replay_program), BTreeMap::from([(reason, 1)]));
}
