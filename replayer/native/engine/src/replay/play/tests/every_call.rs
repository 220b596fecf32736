use super::one_lane::{open, write};
use super::*;
use crate::ops::Op;
use crate::program::LockKind;
use crate::replay::program::{Call, Subject};
use crate::sys::{Through, Time, Times};
use std::os::unix::fs::PermissionsExt;

const OK: Recorded = Recorded::Well;
const NEW: i32 = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
const TIMES: Times = Times {
    access: Some(Time::Now),
    modification: Some(Time::At(1_500_000_000)),
};

type ReplayCalls = Vec<(ReplayCall, Recorded)>;

fn exactly(number: u64) -> Recorded {
    Recorded::Exactly(number)
}

/// Places of the calls below; `seen` is the file `f` from the open directory `d`.
#[derive(Clone, Copy)]
struct PerformanceId {
    d: Place,
    f: Place,
    g: Place,
    h: Place,
    link: Place,
    seen: Place,
}

// One call a line.
#[rustfmt::skip]
fn on_open_files(at: PerformanceId) -> ReplayCalls {
    let slot = 1;
    vec![
        (ReplayCall::Plain(Call::Mkdir { at: at.d, mode: 0o755 }), OK),
        (open(at.d, 0, libc::O_RDONLY | libc::O_DIRECTORY), OK),
        (open(at.seen, 1, NEW), OK),
        (write(1, 5000, None), exactly(5000)),
        (ReplayCall::Plain(Call::Fsync { slot }), OK),
        (ReplayCall::Plain(Call::Fdatasync { slot }), OK),
        (ReplayCall::Plain(Call::Syncfs { slot }), OK),
        (ReplayCall::Plain(Call::SyncRange { slot, offset: 0, size: 4096, flags: 2 }), OK),
        (ReplayCall::Plain(Call::Ftruncate { slot, size: 8192 }), OK),
        (ReplayCall::Plain(Call::Fallocate { slot, offset: 0, size: 16384, mode: 0 }), OK),
        (ReplayCall::Plain(Call::Advise { slot, offset: 0, size: 0, advice: 1 }), OK),
        (ReplayCall::Plain(Call::Readahead { slot, offset: 0, size: 4096 }), Recorded::Unknown),
        (ReplayCall::Plain(Call::Fchmod { slot, mode: 0o644 }), OK),
        (ReplayCall::Plain(Call::Fchown { slot, uid: u32::MAX, gid: u32::MAX, through: Through::Descriptor }), OK),
        (ReplayCall::Plain(Call::Futimens { slot, times: Box::new(TIMES), through: Through::Descriptor }), OK),
        (ReplayCall::Plain(Call::Flock { slot, kind: LockKind::Exclusive, wait: false }), OK),
        (ReplayCall::Plain(Call::FcntlLock { slot, wait: true, kind: LockKind::Exclusive, before: LockKind::Unlock, offset: 0, size: 10, whence: 0 }), OK),
        (ReplayCall::Fcntl { slot, command: 3, argument: 0 }, OK),
        (ReplayCall::Ioctl { slot, command: 0x5401 }, Recorded::Error(25)),
        (ReplayCall::Map { slot, offset: 0, size: 4096, protection: 3, flags: 1 }, OK),
        (ReplayCall::ReadMapped(DataCall { slot, size: 8192, offset: Some(4096), vector: None }), exactly(8192)),
        // To the end of the file.
        (ReplayCall::ReadMapped(DataCall { slot, size: 8192, offset: Some(12_288), vector: None }), exactly(4096)),
        (ReplayCall::ReadMapped(DataCall { slot, size: 4096, offset: Some(16_384), vector: None }), exactly(0)),
        (ReplayCall::Plain(Call::Fstatfs { slot }), OK),
        (ReplayCall::Plain(Call::Fiemap { slot }), OK),
        (ReplayCall::Plain(Call::Lseek { slot, offset: u64::MAX, whence: 2 }), exactly(16383)),
    ]
}

// One call a line.
#[rustfmt::skip]
fn transfers(at: PerformanceId) -> ReplayCalls {
    let (from, to, offset) = (Some(1), Some(2), Some(0));
    vec![
        (open(at.g, 2, NEW), OK),
        (ReplayCall::Transfer { op: Op::CopyFileRange, from, to, size: 4096, from_offset: offset, to_offset: offset }, exactly(4096)),
        (ReplayCall::Transfer { op: Op::CopyFileRange, from: None, to, size: 10, from_offset: None, to_offset: Some(4096) }, exactly(10)),
        (ReplayCall::Transfer { op: Op::CopyFileRange, from, to: None, size: 10, from_offset: offset, to_offset: None }, exactly(10)),
        (ReplayCall::Transfer { op: Op::Sendfile, from, to: None, size: 100, from_offset: offset, to_offset: None }, exactly(100)),
        (ReplayCall::Transfer { op: Op::Sendfile, from, to, size: 100, from_offset: offset, to_offset: None }, exactly(100)),
        (ReplayCall::Transfer { op: Op::Sendfile, from: None, to, size: 100, from_offset: None, to_offset: None }, exactly(100)),
        (ReplayCall::Transfer { op: Op::Splice, from, to: None, size: 100, from_offset: offset, to_offset: None }, exactly(100)),
        (ReplayCall::Transfer { op: Op::Splice, from: None, to, size: 100, from_offset: None, to_offset: offset }, exactly(100)),
        (ReplayCall::Clone { from, to: 2 }, Recorded::Error(95)),
    ]
}

// One call a line.
#[rustfmt::skip]
fn attributes(at: PerformanceId, name: TextId) -> ReplayCalls {
    let of = |follow| Subject::Path { path: at.f.path, follow };
    let file = Subject::File(1);
    vec![
        (ReplayCall::Plain(Call::Setxattr { on: file, name, size: 5, flags: 0 }), OK),
        (ReplayCall::Plain(Call::Getxattr { on: of(true), name, size: 64 }), exactly(5)),
        (ReplayCall::Plain(Call::Getxattr { on: of(false), name, size: 0 }), exactly(5)),
        (ReplayCall::Plain(Call::Getxattr { on: file, name, size: 64 }), exactly(5)),
        (ReplayCall::Plain(Call::Listxattr { on: of(false), size: 64 }), OK),
        (ReplayCall::Plain(Call::Listxattr { on: file, size: 64 }), OK),
        (ReplayCall::Plain(Call::Removexattr { on: of(true), name }), OK),
        (ReplayCall::Plain(Call::Setxattr { on: of(false), name, size: 5, flags: 1 }), OK),
        (ReplayCall::Plain(Call::Removexattr { on: of(false), name }), OK),
        (ReplayCall::Plain(Call::Setxattr { on: of(true), name, size: 5, flags: 1 }), OK),
        (ReplayCall::Plain(Call::Removexattr { on: file, name }), OK),
        (ReplayCall::Plain(Call::SetList { on: file, mode: 0o640, flags: 0 }), OK),
        (ReplayCall::Plain(Call::SetList { on: of(true), mode: 0o600, flags: 0 }), OK),
        (ReplayCall::Plain(Call::Listxattr { on: of(true), size: 64 }), OK),
    ]
}

// One call a line.
#[rustfmt::skip]
fn by_path(at: PerformanceId, (node, target): (Place, TextId)) -> ReplayCalls {
    let PerformanceId { d, f, g, h, link, seen } = at;
    vec![
        (ReplayCall::Plain(Call::Stat { at: seen }), OK),
        (ReplayCall::Plain(Call::Statx { at: seen, follow: true, sync: 0x2000 }), OK),
        (ReplayCall::Plain(Call::Statx { at: seen, follow: false, sync: 0x4000 }), OK),
        (ReplayCall::Plain(Call::StatxFile { slot: 1, sync: 0x2000 }), OK),
        (ReplayCall::Plain(Call::Access { at: seen, mode: 4, flags: 0 }), OK),
        (ReplayCall::Plain(Call::Access { at: f, mode: 0, flags: 0x100 }), OK),
        (ReplayCall::Plain(Call::Chdir { at: d }), OK),
        (ReplayCall::Plain(Call::Chdir { at: f }), Recorded::Error(20)),
        (ReplayCall::Plain(Call::Statfs { at: d }), OK),
        (ReplayCall::Plain(Call::Mknod { at: node, mode: 0o600 }), OK),
        (ReplayCall::Plain(Call::Symlink { at: link, target }), OK),
        (ReplayCall::Plain(Call::Lstat { at: link }), OK),
        (ReplayCall::Plain(Call::Readlink { at: link, size: 100 }), exactly(3)),
        (ReplayCall::Plain(Call::Link { at: f, to: h, flags: 0 }), OK),
        (ReplayCall::Plain(Call::Chmod { at: seen, mode: 0o600 }), OK),
        (ReplayCall::Plain(Call::Chown { at: link, uid: 0, gid: 0, follow: false }), OK),
        (ReplayCall::Plain(Call::Chown { at: seen, uid: 0, gid: 0, follow: true }), OK),
        (ReplayCall::Plain(Call::Utimens { at: seen, times: Box::new(TIMES), follow: true }), OK),
        (ReplayCall::Plain(Call::Utimens { at: link, times: Box::new(TIMES), follow: false }), OK),
        (ReplayCall::Plain(Call::Truncate { at: f, size: 10 }), OK),
        (ReplayCall::Grow { path: f.path, size: 12 }, Recorded::Unknown),
        (ReplayCall::Plain(Call::Rename { at: g, to: h, flags: 2 }), OK),
        (ReplayCall::Plain(Call::Unlink { at: h }), OK),
        (ReplayCall::Plain(Call::Link { at: link, to: h, flags: 0x400 }), OK),
        (ReplayCall::Plain(Call::Unlink { at: h }), OK),
        (ReplayCall::LinkOpen { slot: 1, to: h }, OK),
        (ReplayCall::LinkOpen { slot: 1, to: h }, Recorded::Error(17)),
        (ReplayCall::Plain(Call::Unlink { at: h }), OK),
        (open(d, 3, libc::O_TMPFILE | libc::O_WRONLY), OK),
        (ReplayCall::LinkOpen { slot: 3, to: seen }, Recorded::Error(17)),
        (ReplayCall::LinkOpen { slot: 3, to: h }, OK),
        (ReplayCall::Plain(Call::Close { slot: 3 }), OK),
        (ReplayCall::Plain(Call::Unlink { at: h }), OK),
        (ReplayCall::Plain(Call::Unlink { at: seen }), OK),
        (ReplayCall::Plain(Call::Rmdir { at: d }), OK),
        (open(link, 2, libc::O_PATH | libc::O_NOFOLLOW), OK),
        (ReplayCall::Plain(Call::Fchown { slot: 2, uid: 0, gid: 0, through: Through::Descriptor }), Recorded::Error(9)),
        (ReplayCall::Plain(Call::Fchown { slot: 2, uid: 0, gid: 0, through: Through::EmptyPath }), OK),
        (ReplayCall::Plain(Call::Futimens { slot: 2, times: Box::new(TIMES), through: Through::EmptyPath }), OK),
        (ReplayCall::Stand { slot: 1, offset: 3 }, Recorded::Unknown),
        (ReplayCall::Plain(Call::Close { slot: 0 }), OK),
        (ReplayCall::CloseSilently { slot: 1 }, Recorded::Unknown),
        (ReplayCall::End, Recorded::Unknown),
    ]
}

/// One of every call, each of which goes well in both confinements.
fn everything(tape: &mut Tape) {
    let at = |tape: &mut Tape, name: &str| tape.at(&format!("t/{name}"));
    let f = at(tape, "d/f");
    let places = PerformanceId {
        d: at(tape, "d"),
        f,
        g: at(tape, "g"),
        h: at(tape, "h"),
        link: at(tape, "link"),
        seen: Place {
            path: f.path,
            from: Some(0),
            rest: 4,
        },
    };
    let (node, target) = (at(tape, "node"), tape.text("d/f"));
    let name = tape.text("user.a");
    let groups = [
        on_open_files(places),
        transfers(places),
        attributes(places, name),
        by_path(places, (node, target)),
    ];
    for (call, recorded) in groups.into_iter().flatten() {
        tape.add(0, call, recorded);
    }
}

fn every_call<K: Kernel>(place: &str) -> Vec<String> {
    let ground = Ground::on(place);
    std::fs::create_dir(ground.run().join("t")).unwrap();
    let mut tape = Tape::new(1);
    everything(&mut tape);
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show_in::<K>(&tape.replay_program(), ReplayPace::Asap, 1, &thread_state);
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["omitted"], json!({}));
    names(&ground.run())
}

#[test]
fn every_call_is_a_call_in_both_confinements() {
    for place in ["/dev/shm", "/tmp"] {
        let expected = ["t", "t/g", "t/link", "t/node"];
        assert_eq!(every_call::<Guarded>(place), expected);
        if crate::sys::can_jail() {
            assert_eq!(every_call::<Jailed>(place), expected);
        }
    }
}

fn modes_by_list<K: Kernel>(place: &str) -> [u32; 2] {
    let ground = Ground::on(place);
    std::fs::create_dir(ground.run().join("t")).unwrap();
    let mut tape = Tape::new(1);
    let (file, directory) = (tape.at("t/f"), tape.at("t/d"));
    let (of_file, of_path) = (
        Subject::File(1),
        Subject::Path {
            path: directory.path,
            follow: true,
        },
    );
    for call in [
        open(file, 1, NEW),
        ReplayCall::Plain(Call::Mkdir {
            at: directory,
            mode: 0o1700,
        }),
        ReplayCall::Plain(Call::SetList {
            on: of_file,
            mode: 0o640,
            flags: 0,
        }),
        ReplayCall::Plain(Call::SetList {
            on: of_path,
            mode: 0o751,
            flags: 0,
        }),
    ] {
        tape.add(0, call, OK);
    }
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show_in::<K>(&tape.replay_program(), ReplayPace::Asap, 1, &thread_state);
    assert!(shown.is_clean());
    ["t/f", "t/d"].map(|name| {
        let facts = ground.run().join(name).metadata().unwrap();
        facts.permissions().mode() & 0o7777
    })
}

#[test]
fn a_list_that_says_a_mode_sets_it() {
    for place in ["/dev/shm", "/tmp"] {
        assert_eq!(modes_by_list::<Guarded>(place), [0o640, 0o1751]);
        if crate::sys::can_jail() {
            assert_eq!(modes_by_list::<Jailed>(place), [0o640, 0o1751]);
        }
    }
}

#[test]
fn nothing_is_called_where_nothing_is_real() {
    let ground = Ground::new();
    let mut tape = Tape::new(1);
    everything(&mut tape);
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show_in::<Null>(&tape.replay_program(), ReplayPace::Asap, 1, &thread_state);
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["compared"], 0);
    assert_eq!(names(&ground.run()), [""; 0]);
}
