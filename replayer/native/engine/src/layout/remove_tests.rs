//! Removal stays where it belongs, and removes all of it.

use super::*;
use crate::layout::mounted::Mounted;
use crate::layout::tests::{Run, change_mode, done, fault, open};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_folder_without_the_marker_is_refused() {
    let run = Run::new();
    fs::write(run.path().join("precious"), "").unwrap();
    fs::remove_file(run.path().join(".replayer-run")).unwrap();
    let (errno, path) = fault(run.remove());
    assert_eq!(errno, Errno::NOENT);
    assert!(path.ends_with("/run/.replayer-run"), "{path}");
    symlink("precious", run.path().join(".replayer-run")).unwrap();
    assert_eq!(fault(run.remove()).0, Errno::INVAL);
    assert!(run.path().join("precious").exists());
}

#[test]
fn a_folder_whose_name_means_another_is_refused() {
    let run = Run::new();
    let folder = run.folder();
    fs::rename(run.path(), run.parent.path().join("moved")).unwrap();
    fs::create_dir(run.path()).unwrap();
    let task = remove(folder, open(run.parent.path()), "run", 2);
    assert_eq!(fault(done(&task)).0, Errno::STALE);
    assert!(run.parent.path().join("moved/.replayer-run").exists());
}

#[test]
fn removal_stays_inside() {
    let run = Run::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "").unwrap();
    fs::create_dir(run.path().join("d")).unwrap();
    symlink(outside.path(), run.path().join("d/link")).unwrap();
    symlink(outside.path().join("precious"), run.path().join("file")).unwrap();
    let finding = run.remove().unwrap();
    assert_eq!(finding.links, 2);
    assert!(outside.path().join("precious").exists());
}

#[test]
fn a_mount_point_inside_is_named_and_left_alone() {
    let run = Run::new();
    let inner = run.path().join("a/mounted");
    fs::create_dir_all(&inner).unwrap();
    let Some(disk) = Mounted::small_disk_at(&inner, 1 << 20) else {
        return;
    };
    fs::create_dir(disk.path().join("d")).unwrap();
    fs::write(disk.path().join("d/precious"), "").unwrap();
    let (errno, path) = fault(run.remove());
    assert_eq!(errno, Errno::XDEV);
    assert!(path.ends_with("/run/a/mounted"), "{path}");
    assert!(disk.path().join("d/precious").exists());
    assert!(run.path().join(".replayer-run").exists());
}

#[test]
fn deep_trees_and_closed_directories_go_too() {
    let run = Run::new();
    let mut place = run.folder();
    for depth in 0..3000 {
        let name = format!("directory-with-a-long-name-{depth}");
        rustix::fs::mkdirat(&place, &name, rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY;
        place = rustix::fs::openat(&place, &name, flags, rustix::fs::Mode::empty()).unwrap();
        if depth % 100 == 0 {
            let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            rustix::fs::openat(&place, "file", flags, rustix::fs::Mode::RUSR).unwrap();
        }
    }
    drop(place);
    fs::create_dir_all(run.path().join("closed/inner")).unwrap();
    change_mode(&run.path().join("closed"), 0);
    let finding = run.remove().unwrap();
    assert_eq!((finding.directories, finding.files), (3003, 30));
}

#[test]
fn wide_directories_are_shared_among_threads() {
    let run = Run::new();
    for number in 0..3000 {
        fs::write(run.path().join(number.to_string()), "").unwrap();
    }
    assert_eq!(done(&wipe(run.folder(), 4)).unwrap().files, 3000);
}

#[test]
fn a_folder_that_cannot_go_has_its_marker_again() {
    let run = Run::new();
    fs::write(run.path().join(".replayer-run"), "whose it is").unwrap();
    fs::write(run.path().join("file"), "").unwrap();
    let folder = run.folder();
    let place = run.path();
    let Some(bound) = Mounted::bound(&place, &place) else {
        return;
    };
    let task = remove(folder, open(run.parent.path()), "run", 2);
    let (errno, _) = fault(done(&task));
    drop(bound);
    assert_eq!(errno, Errno::BUSY);
    assert_eq!(
        fs::read_to_string(place.join(".replayer-run")).unwrap(),
        "whose it is"
    );
    assert!(!place.join("file").exists());
    run.remove().unwrap();
}

#[test]
fn a_folder_into_which_others_put_things_goes_or_keeps_its_marker() {
    for _ in 0..20 {
        let run = Run::new();
        fs::write(run.path().join(".replayer-run"), "whose it is").unwrap();
        let place = run.path();
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0.. {
                    let _ = symlink("nowhere", place.join(format!("planted-{number}")));
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let _ = run.remove();
            over.store(true, Ordering::Relaxed);
        });
        if place.exists() {
            let note = fs::read_to_string(place.join(".replayer-run"));
            assert_eq!(note.unwrap(), "whose it is");
        }
    }
}
