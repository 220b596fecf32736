use super::*;
use crate::program::Owner;
use crate::replay::program::{Call, Subject};
use crate::sys::{At, How, Kernel, Links, Through, Time, Times};
use rustix::io::Errno;
use std::os::unix::fs::{MetadataExt, symlink};

/// What a traversal of the outside shows: names, kinds, sizes, modes, owners, times of changes, contents.
type Sentinel = Vec<(String, u32, u64, u64, i64, Vec<u8>)>;

fn sentinel(at: &Path) -> Sentinel {
    let look = |name: &String| {
        let path = at.join(name);
        let facts = path.symlink_metadata().unwrap();
        #[expect(clippy::disallowed_methods, reason = "a file that the test has made")]
        let bytes = if facts.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        let changed = facts.ctime() * 1_000_000_000 + facts.ctime_nsec();
        (
            name.clone(),
            facts.mode(),
            facts.size(),
            facts.nlink(),
            changed,
            bytes,
        )
    };
    names(at).iter().map(look).collect()
}

/// A run's folder with links to the outside in it, and the outside.
fn trap(place: &str) -> (Ground, PathBuf) {
    let ground = Ground::on(place);
    let outside = ground.at.path().join("outside");
    std::fs::create_dir_all(outside.join("dir/inner")).unwrap();
    std::fs::write(outside.join("file"), "precious").unwrap();
    std::fs::write(outside.join("dir/file"), "precious too").unwrap();
    let run = ground.run();
    std::fs::create_dir_all(run.join("t/d")).unwrap();
    std::fs::write(run.join("t/plain"), "plain").unwrap();
    for (name, target) in [
        ("t/up-file", "../../outside/file"),
        ("t/up-dir", "../../outside/dir"),
        ("t/up", "../.."),
        ("t/proc", "/proc/self/root"),
        ("t/new", "../../outside/made-through-a-link"),
    ] {
        symlink(target, run.join(name)).unwrap();
    }
    symlink(outside.join("file"), run.join("t/absolute")).unwrap();
    symlink(&outside, run.join("t/absolute-dir")).unwrap();
    (ground, outside)
}

/// Names that lead outside, or try to.
fn hostile(outside: &Path) -> Vec<String> {
    let full = outside.display();
    let mut names = vec![
        format!("{full}/file"),
        format!("{full}/dir/file"),
        format!("{full}/made"),
        "../outside/file".to_owned(),
        "../outside/made".to_owned(),
        "t/../../outside/file".to_owned(),
        "t/../../outside/made".to_owned(),
        "t/d/../../../outside/file".to_owned(),
        "..".to_owned(),
        "../outside".to_owned(),
        "/".to_owned(),
        "/proc/self/root".to_owned(),
        "t/proc/etc/hostname".to_owned(),
        format!("t/proc{full}/file"),
        format!("/proc/self/cwd/../outside/file"),
        format!("/proc/self/root{full}/file"),
        format!("/dev/fd/0"),
    ];
    for link in ["up-file", "new", "absolute"] {
        names.push(format!("t/{link}"));
    }
    for link in ["up-dir", "absolute-dir", "up/outside"] {
        for name in ["", "/file", "/made", "/dir", "/inner", "/dir/file"] {
            names.push(format!("t/{link}{name}"));
        }
    }
    names
}

fn flags(flags: i32) -> u32 {
    flags.cast_unsigned()
}

/// The same through a descriptor.
// One call a line.
#[rustfmt::skip]
fn openings(at: Place) -> Vec<ReplayCall> {
    let path = at.path;
    let times = Times { access: Some(Time::At(1)), modification: Some(Time::Now) };
    let open = |slot, bits| ReplayCall::Plain(Call::Open { at, slot: Some(slot), flags: flags(bits), mode: u32::MAX, resolve: u32::MAX });
    let write = |slot| ReplayCall::Write(DataCall { slot, size: 100, offset: None, vector: None });
    vec![
        open(0, libc::O_RDWR),
        write(0),
        ReplayCall::Plain(Call::Ftruncate { slot: 0, size: 1 }),
        ReplayCall::Plain(Call::Fchmod { slot: 0, mode: 0o777 }),
        open(1, libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC),
        write(1),
        open(2, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL),
        open(3, libc::O_RDWR | libc::O_TMPFILE),
        open(4, -1),
        open(5, libc::O_PATH),
        ReplayCall::Plain(Call::Fchown { slot: 5, uid: 12, gid: 12, through: Through::Descriptor }),
        ReplayCall::Plain(Call::Fchown { slot: 5, uid: 12, gid: 12, through: Through::EmptyPath }),
        ReplayCall::Plain(Call::Futimens { slot: 5, times: Box::new(times), through: Through::EmptyPath }),
        open(7, libc::O_PATH | libc::O_NOFOLLOW),
        ReplayCall::Plain(Call::Fchown { slot: 7, uid: 12, gid: 12, through: Through::EmptyPath }),
        ReplayCall::Inherit { path, slot: 6, flags: u32::MAX, offset: 0 },
        write(6),
    ]
}

/// Every call that could change something, at a place. Their results mean nothing here.
// One call a line.
#[rustfmt::skip]
fn attempts(tape: &mut Tape, at: Place) -> Vec<ReplayCall> {
    let (plain, moved) = (tape.at("t/plain"), tape.at("t/moved"));
    let (name, target) = (tape.text("user.x"), tape.text("../../outside/file"));
    let path = at.path;
    let on = |follow| Subject::Path { path, follow };
    let times = Times { access: Some(Time::At(1)), modification: Some(Time::Now) };
    let mut calls = openings(at);
    calls.extend([
        ReplayCall::Plain(Call::Mkdir { at, mode: u32::MAX }),
        ReplayCall::Plain(Call::Mknod { at, mode: u32::MAX }),
        ReplayCall::Plain(Call::Symlink { at, target }),
        ReplayCall::Plain(Call::Symlink { at: moved, target }),
        ReplayCall::Plain(Call::Link { at: plain, to: at, flags: u32::MAX }),
        ReplayCall::Plain(Call::Link { at, to: moved, flags: 0x400 }),
        ReplayCall::Plain(Call::Chmod { at: moved, mode: 0o777 }),
        ReplayCall::Plain(Call::Truncate { at: moved, size: 3 }),
        ReplayCall::LinkOpen { slot: 0, to: at },
        ReplayCall::LinkOpen { slot: 3, to: at },
        ReplayCall::LinkOpen { slot: 7, to: moved },
        ReplayCall::Plain(Call::Chmod { at: moved, mode: 0o777 }),
        ReplayCall::Plain(Call::Truncate { at: moved, size: 3 }),
        ReplayCall::Plain(Call::Unlink { at: moved }),
        ReplayCall::LinkOpen { slot: 0, to: moved },
        ReplayCall::Plain(Call::Unlink { at: moved }),
        ReplayCall::Plain(Call::Link { at, to: moved, flags: 0 }),
        ReplayCall::Plain(Call::Truncate { at: moved, size: 3 }),
        ReplayCall::Plain(Call::Unlink { at: moved }),
        ReplayCall::Plain(Call::Rename { at: plain, to: at, flags: 0 }),
        ReplayCall::Plain(Call::Rename { at, to: plain, flags: 2 }),
        ReplayCall::Plain(Call::Rename { at, to: moved, flags: u32::MAX }),
        ReplayCall::Plain(Call::Truncate { at, size: u64::MAX }),
        ReplayCall::Plain(Call::Truncate { at, size: 0 }),
        ReplayCall::Plain(Call::Chmod { at, mode: 0o777 }),
        ReplayCall::Plain(Call::Chown { at, uid: 12, gid: 12, follow: true }),
        ReplayCall::Plain(Call::Chown { at, uid: 12, gid: 12, follow: false }),
        ReplayCall::Plain(Call::Utimens { at, times: Box::new(times), follow: true }),
        ReplayCall::Plain(Call::Utimens { at, times: Box::new(times), follow: false }),
        ReplayCall::Plain(Call::Setxattr { on: on(true), name, size: 10, flags: 0 }),
        ReplayCall::Plain(Call::Setxattr { on: on(false), name, size: 10, flags: 0 }),
        ReplayCall::Plain(Call::SetList { on: on(true), mode: 0o777, flags: 0 }),
        ReplayCall::Plain(Call::SetList { on: on(false), mode: 0o777, flags: 0 }),
        ReplayCall::Plain(Call::Removexattr { on: on(true), name }),
        ReplayCall::Plain(Call::Unlink { at }),
        ReplayCall::Plain(Call::Rmdir { at }),
    ]);
    calls
}

fn assault<K: Kernel>(place: &str) {
    let (ground, outside) = trap(place);
    let before = sentinel(&outside);
    let mut tape = Tape::new(1);
    let unknown = Recorded::Unknown;
    let directory = tape.at("t/d");
    let open = ReplayCall::Plain(Call::Open {
        at: directory,
        slot: Some(60),
        flags: flags(libc::O_RDONLY | libc::O_DIRECTORY),
        mode: 0,
        resolve: 0,
    });
    tape.add(0, open, unknown);
    for name in hostile(&outside) {
        let whole = tape.at(&name);
        // The same seen from an open directory: what follows its first bytes.
        let from = Place {
            from: Some(60),
            ..whole
        };
        for at in [whole, from] {
            for call in attempts(&mut tape, at) {
                tape.add(0, call, unknown);
            }
        }
    }
    // From the open directory up, and down again.
    let climbing = tape.path("t/d/../../../outside/file");
    let at = Place {
        path: climbing,
        from: Some(60),
        rest: 4,
    };
    for call in attempts(&mut tape, at) {
        tape.add(0, call, unknown);
    }
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show_in::<K>(&tape.replay_program(), ReplayPace::Asap, 1, &thread_state);
    assert_eq!(shown.result, Ok(()));
    assert_eq!(sentinel(&outside), before);
    assert_eq!(
        names(ground.at.path())
            .iter()
            .filter(|name| !name.contains('/'))
            .count(),
        2
    );
}

#[test]
fn nothing_outside_is_changed_made_or_removed() {
    for place in ["/dev/shm", "/tmp"] {
        assault::<Guarded>(place);
        if crate::sys::can_jail() {
            assault::<Jailed>(place);
        }
    }
}

/// Calls from a directory that is open and lies outside by now, by links in it and upwards. All look for something below `t/d`, which is
/// not there any more.
fn climb(jail: &Jailed, open: i32) {
    let seen = |whole, rest| At {
        whole,
        seen: Some((open, rest)),
    };
    let made = seen(c"t/d/link/made", c"link/made");
    let file = seen(c"t/d/link/file", c"link/file");
    let (link, up) = (seen(c"t/d/to-file", c"to-file"), seen(c"t/d/..", c".."));
    let name = seen(c"t/d/new", c"new");
    let times = Times {
        access: Some(Time::At(1)),
        modification: None,
    };
    let nobody = Owner {
        uid: Some(12),
        gid: Some(12),
    };
    for answer in [
        jail.mkdir(made, 0o700),
        jail.mknod(made, 0o600),
        jail.symlink(c"x", made),
        jail.unlink(file),
        jail.rmdir(seen(c"t/d/link/dir/inner", c"link/dir/inner")),
        jail.rename(file, name, 0),
        jail.rename(seen(c"t/d/plain", c"plain"), made, 0),
        jail.link(link, name, Links::Follow),
        jail.link(seen(c"t/d/plain", c"plain"), made, Links::Keep),
        jail.chmod(link, 0o777),
        jail.chown(link, nobody, Links::Follow),
        jail.chown(up, nobody, Links::Keep),
        jail.utimens(link, times, Links::Follow),
        jail.utimens(up, times, Links::Keep),
    ] {
        assert_eq!(answer, Err(Errno::NOENT));
    }
    assert_eq!(jail.unlink(seen(c"t/d/plain", c"plain")), Ok(0));
}

#[test]
fn a_directory_that_is_moved_outside_while_it_is_open_leads_nowhere() {
    if !crate::sys::can_jail() {
        return;
    }
    let (ground, outside) = trap("/dev/shm");
    let inside = ground.run().join("t/d");
    symlink("../outside", inside.join("link")).unwrap();
    symlink("../outside/file", inside.join("to-file")).unwrap();
    std::fs::write(inside.join("plain"), "").unwrap();
    let beside = std::fs::metadata(ground.at.path()).unwrap();
    let before = sentinel(&outside);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            own_folder_state();
            let jail = Jailed::enter(&ground.folder).unwrap();
            let how = How {
                flags: 0,
                mode: 0,
                resolve: 0,
            };
            let whole = c"t/d";
            let open = jail.open(At { whole, seen: None }, how).unwrap();
            let parent = &ground.folder.parent;
            rustix::fs::renameat(parent, "run/t/d", parent, "moved").unwrap();
            climb(&jail, open);
        });
    });
    assert_eq!(sentinel(&outside), before);
    let now = std::fs::metadata(ground.at.path()).unwrap();
    assert_eq!((now.uid(), now.gid()), (beside.uid(), beside.gid()));
    assert!(!ground.at.path().join("moved/plain").exists());
}

/// What can be learnt of a place: every result must be an error.
fn peeks<K: Kernel>() {
    let (ground, outside) = trap("/dev/shm");
    let mut tape = Tape::new(1);
    let buffer = 4096;
    let inside = ["..", "/", "t/up/outside"];
    for name in hostile(&outside) {
        let at = tape.at(&name);
        // In a jail these are the run's folder itself.
        if inside.contains(&name.as_str()) {
            continue;
        }
        let missing = Recorded::Exactly(u64::MAX);
        let open = ReplayCall::Plain(Call::Open {
            at,
            slot: Some(0),
            flags: 0,
            mode: 0,
            resolve: 0,
        });
        let read = ReplayCall::Read(DataCall {
            slot: 0,
            size: buffer,
            offset: None,
            vector: None,
        });
        tape.add(0, open, missing);
        tape.add(0, read, missing);
        tape.add(0, ReplayCall::CloseSilently { slot: 0 }, Recorded::Unknown);
        tape.add(0, ReplayCall::Plain(Call::Stat { at }), missing);
        tape.add(
            0,
            ReplayCall::Plain(Call::Access {
                at,
                mode: 0,
                flags: 0,
            }),
            missing,
        );
        tape.add(0, ReplayCall::Plain(Call::Chdir { at }), missing);
        tape.add(0, ReplayCall::Plain(Call::Statfs { at }), missing);
    }
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show_in::<K>(&tape.replay_program(), ReplayPace::Asap, 1, &thread_state);
    let diverged = shown.ledger["diverged"].as_array().unwrap().clone();
    let well = diverged.iter().filter(|each| each["got"] == "less");
    assert_eq!(well.collect::<Vec<_>>(), [&Value::Null; 0]);
}

#[test]
fn nothing_outside_is_read() {
    peeks::<Guarded>();
    if crate::sys::can_jail() {
        peeks::<Jailed>();
    }
}

#[test]
fn files_of_a_performance_are_neither_made_nor_removed_through_links() {
    let (ground, outside) = trap("/dev/shm");
    let before = sentinel(&outside);
    let mut tape = Tape::new(1);
    let own = [
        "t/up-dir/file",
        "t/up-dir",
        "t/up-file",
        "t/absolute-dir/dir",
    ];
    let tops: Vec<_> = own.iter().map(|path| tape.own(path, 0)).collect();
    tape.tops = tops.clone();
    let thread_state = Arc::new(ThreadState::new(0));
    let shown = ground.show(&tape.replay_program(), ReplayPace::Asap, 1, &thread_state);
    assert_eq!(shown.result, Ok(()));
    assert_eq!(sentinel(&outside), before);
    tape.entry(tops[0], EntryKind::File, 10, "");
    let shown = ground.show(&tape.replay_program(), ReplayPace::Asap, 1, &thread_state);
    assert_eq!(shown.result, Err(Halt::Failed));
    assert_eq!(sentinel(&outside), before);
}
