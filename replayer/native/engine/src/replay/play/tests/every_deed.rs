use super::one_lane::{open, write};
use super::*;
use crate::replay::reel::{Subject, Through, Time, Times};
use std::os::unix::fs::PermissionsExt;

const OK: Recorded = Recorded::Well;
const NEW: i32 = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
const TIMES: Times = Times {
    access: Some(Time::Now),
    modification: Some(Time::At(1_500_000_000)),
};

type Deeds = Vec<(Deed, Recorded)>;

fn exactly(number: u64) -> Recorded {
    Recorded::Exactly(number)
}

/// Places of the deeds below; `seen` is the file `f` from the open directory `d`.
#[derive(Clone, Copy)]
struct Cast {
    d: Place,
    f: Place,
    g: Place,
    h: Place,
    link: Place,
    seen: Place,
}

// One deed a line.
#[rustfmt::skip]
fn on_open_files(at: Cast) -> Deeds {
    let slot = 1;
    vec![
        (Deed::Mkdir { at: at.d, mode: 0o755 }, OK),
        (open(at.d, 0, libc::O_RDONLY | libc::O_DIRECTORY), OK),
        (open(at.seen, 1, NEW), OK),
        (write(1, 5000, None), exactly(5000)),
        (Deed::Fsync { slot }, OK),
        (Deed::Fdatasync { slot }, OK),
        (Deed::Syncfs { slot }, OK),
        (Deed::SyncRange { slot, offset: 0, size: 4096, flags: 2 }, OK),
        (Deed::Ftruncate { slot, size: 8192 }, OK),
        (Deed::Fallocate { slot, offset: 0, size: 16384, mode: 0 }, OK),
        (Deed::Advise { slot, offset: 0, size: 0, advice: 1 }, OK),
        (Deed::Readahead { slot, offset: 0, size: 4096 }, Recorded::Unknown),
        (Deed::Fchmod { slot, mode: 0o644 }, OK),
        (Deed::Fchown { slot, uid: u32::MAX, gid: u32::MAX, through: Through::Descriptor }, OK),
        (Deed::Futimens { slot, times: TIMES, through: Through::Descriptor }, OK),
        (Deed::Flock { slot, operation: 2 | 4 }, OK),
        (Deed::Lock { slot, wait: true, kind: 1, before: 2, offset: 0, size: 10, whence: 0 }, OK),
        (Deed::Fcntl { slot, command: 3, argument: 0 }, OK),
        (Deed::Ioctl { slot, command: 0x5401 }, Recorded::Error(25)),
        (Deed::Map { slot, offset: 0, size: 4096, protection: 3, flags: 1 }, OK),
        (Deed::Fstatfs { slot }, OK),
        (Deed::Seek { slot, offset: -1, whence: 2 }, exactly(16383)),
    ]
}

// One deed a line.
#[rustfmt::skip]
fn transfers(at: Cast) -> Deeds {
    let (from, to, offset) = (Some(1), Some(2), Some(0));
    vec![
        (open(at.g, 2, NEW), OK),
        (Deed::CopyRange { from, to, size: 4096, from_offset: offset, to_offset: offset }, exactly(4096)),
        (Deed::CopyRange { from: None, to, size: 10, from_offset: None, to_offset: Some(4096) }, exactly(10)),
        (Deed::CopyRange { from, to: None, size: 10, from_offset: offset, to_offset: None }, exactly(10)),
        (Deed::Sendfile { from, to: None, size: 100, offset }, exactly(100)),
        (Deed::Sendfile { from, to, size: 100, offset }, exactly(100)),
        (Deed::Sendfile { from: None, to, size: 100, offset: None }, exactly(100)),
        (Deed::Splice { from, to: None, size: 100, from_offset: offset, to_offset: None }, exactly(100)),
        (Deed::Splice { from: None, to, size: 100, from_offset: None, to_offset: offset }, exactly(100)),
        (Deed::Clone { from, to: 2 }, Recorded::Error(95)),
    ]
}

// One deed a line.
#[rustfmt::skip]
fn attributes(at: Cast, name: TextId) -> Deeds {
    let of = |follow| Subject::Path { path: at.f.path, follow };
    let file = Subject::File(1);
    vec![
        (Deed::Setxattr { on: file, name, size: 5, flags: 0 }, OK),
        (Deed::Getxattr { on: of(true), name, size: 64 }, exactly(5)),
        (Deed::Getxattr { on: of(false), name, size: 0 }, exactly(5)),
        (Deed::Getxattr { on: file, name, size: 64 }, exactly(5)),
        (Deed::Listxattr { on: of(false), size: 64 }, OK),
        (Deed::Listxattr { on: file, size: 64 }, OK),
        (Deed::Removexattr { on: of(true), name }, OK),
        (Deed::Setxattr { on: of(false), name, size: 5, flags: 1 }, OK),
        (Deed::Removexattr { on: of(false), name }, OK),
        (Deed::Setxattr { on: of(true), name, size: 5, flags: 1 }, OK),
        (Deed::Removexattr { on: file, name }, OK),
        (Deed::SetList { on: file, mode: 0o640, flags: 0 }, OK),
        (Deed::SetList { on: of(true), mode: 0o600, flags: 0 }, OK),
        (Deed::Listxattr { on: of(true), size: 64 }, OK),
    ]
}

// One deed a line.
#[rustfmt::skip]
fn by_path(at: Cast, (node, target): (Place, TextId)) -> Deeds {
    let Cast { d, f, g, h, link, seen } = at;
    vec![
        (Deed::Stat { at: seen }, OK),
        (Deed::Statx { at: seen, follow: true, sync: 0x2000 }, OK),
        (Deed::Statx { at: seen, follow: false, sync: 0x4000 }, OK),
        (Deed::StatxFile { slot: 1, sync: 0x2000 }, OK),
        (Deed::Access { at: seen, mode: 4, flags: 0 }, OK),
        (Deed::Access { at: f, mode: 0, flags: 0x100 }, OK),
        (Deed::Chdir { at: d }, OK),
        (Deed::Chdir { at: f }, Recorded::Error(20)),
        (Deed::Statfs { path: d.path }, OK),
        (Deed::Mknod { at: node, mode: 0o600 }, OK),
        (Deed::Symlink { at: link, target }, OK),
        (Deed::Lstat { at: link }, OK),
        (Deed::Readlink { at: link, size: 100 }, exactly(3)),
        (Deed::Link { at: f, to: h, flags: 0 }, OK),
        (Deed::Chmod { at: seen, mode: 0o600 }, OK),
        (Deed::Chown { at: link, uid: 0, gid: 0, follow: false }, OK),
        (Deed::Chown { at: seen, uid: 0, gid: 0, follow: true }, OK),
        (Deed::Utimens { at: seen, times: TIMES, follow: true }, OK),
        (Deed::Utimens { at: link, times: TIMES, follow: false }, OK),
        (Deed::Truncate { path: f.path, size: 10 }, OK),
        (Deed::Grow { path: f.path, size: 12 }, Recorded::Unknown),
        (Deed::Rename { at: g, to: h, flags: 2 }, OK),
        (Deed::Unlink { at: h }, OK),
        (Deed::Link { at: link, to: h, flags: 0x400 }, OK),
        (Deed::Unlink { at: h }, OK),
        (Deed::LinkOpen { slot: 1, to: h }, OK),
        (Deed::LinkOpen { slot: 1, to: h }, Recorded::Error(17)),
        (Deed::Unlink { at: h }, OK),
        (open(d, 3, libc::O_TMPFILE | libc::O_WRONLY), OK),
        (Deed::LinkOpen { slot: 3, to: seen }, Recorded::Error(17)),
        (Deed::LinkOpen { slot: 3, to: h }, OK),
        (Deed::Close { slot: 3 }, OK),
        (Deed::Unlink { at: h }, OK),
        (Deed::Unlink { at: seen }, OK),
        (Deed::Rmdir { at: d }, OK),
        (open(link, 2, libc::O_PATH | libc::O_NOFOLLOW), OK),
        (Deed::Fchown { slot: 2, uid: 0, gid: 0, through: Through::Descriptor }, Recorded::Error(9)),
        (Deed::Fchown { slot: 2, uid: 0, gid: 0, through: Through::EmptyPath }, OK),
        (Deed::Futimens { slot: 2, times: TIMES, through: Through::EmptyPath }, OK),
        (Deed::Stand { slot: 1, offset: 3 }, Recorded::Unknown),
        (Deed::Close { slot: 0 }, OK),
        (Deed::CloseSilently { slot: 1 }, Recorded::Unknown),
        (Deed::End, Recorded::Unknown),
    ]
}

/// One of every deed, each of which goes well in both confinements.
fn everything(tape: &mut Tape) {
    let at = |tape: &mut Tape, name: &str| tape.at(&format!("t/{name}"));
    let f = at(tape, "d/f");
    let places = Cast {
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
    for (deed, recorded) in groups.into_iter().flatten() {
        tape.cue(0, deed, recorded);
    }
}

fn every_deed<K: Places>(place: &str) -> Vec<String> {
    let ground = Ground::on(place);
    std::fs::create_dir(ground.run().join("t")).unwrap();
    let mut tape = Tape::new(1);
    everything(&mut tape);
    let pulse = Arc::new(Pulse::new(0));
    let shown = ground.show_in::<K>(&tape.reel(), ReplayPace::Asap, 1, &pulse);
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["omitted"], json!({}));
    names(&ground.run())
}

#[test]
fn every_deed_is_a_call_in_both_confinements() {
    for place in ["/dev/shm", "/tmp"] {
        let expected = ["t", "t/g", "t/link", "t/node"];
        assert_eq!(every_deed::<Guarded>(place), expected);
        if crate::sys::can_jail() {
            assert_eq!(every_deed::<Jailed>(place), expected);
        }
    }
}

fn modes_by_list<K: Places>(place: &str) -> [u32; 2] {
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
    for deed in [
        open(file, 1, NEW),
        Deed::Mkdir {
            at: directory,
            mode: 0o1700,
        },
        Deed::SetList {
            on: of_file,
            mode: 0o640,
            flags: 0,
        },
        Deed::SetList {
            on: of_path,
            mode: 0o751,
            flags: 0,
        },
    ] {
        tape.cue(0, deed, OK);
    }
    let pulse = Arc::new(Pulse::new(0));
    let shown = ground.show_in::<K>(&tape.reel(), ReplayPace::Asap, 1, &pulse);
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
    let pulse = Arc::new(Pulse::new(0));
    let shown = ground.show_in::<Null>(&tape.reel(), ReplayPace::Asap, 1, &pulse);
    assert!(shown.is_clean());
    assert_eq!(shown.ledger["compared"], 0);
    assert_eq!(names(&ground.run()), [""; 0]);
}
