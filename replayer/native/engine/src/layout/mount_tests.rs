//! Mounts that others put into a run's folder are not entered, whoever comes by.

use super::files::{Work, start};
use super::mounted::Mounted;
use super::tests::{Run, bytes_of, done, fault, sample};
use crate::program::Owner;
use crate::sys::{
    At, Folder, Guarded, How, Jailed, Kernel, Links, Times, can_jail, own_folder_state,
};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

#[test]
fn a_mount_point_in_the_way_is_not_laid_out_into() {
    let (run, program) = (Run::new(), sample());
    let docroot = run.path().join("sites/docroot");
    fs::create_dir_all(&docroot).unwrap();
    let Some(disk) = Mounted::small_disk_at(&docroot, 1 << 20) else {
        return;
    };
    let mode = || fs::metadata(disk.path()).unwrap().permissions().mode();
    let before = mode();
    let (errno, path) = fault(done(&start(Work::LayOut, run.folder(), &program, 2)));
    assert_eq!(errno, Errno::XDEV);
    assert!(path.ends_with("/run/sites/docroot"), "{path}");
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
    assert_eq!(mode(), before);
}

#[test]
fn a_kept_folder_with_a_mount_point_in_it_is_not_as_it_was_laid_out() {
    for inner in ["sites/docroot/wp", "sites/docroot/index.php"] {
        let (run, program) = (Run::new(), sample());
        done(&start(Work::LayOut, run.folder(), &program, 2)).unwrap();
        let place = run.path().join(inner);
        // The same entries, bytes and modes, on another mount.
        let Some(bound) = Mounted::bound(&place, &place) else {
            return;
        };
        let found = done(&start(Work::Verify, run.folder(), &program, 2)).unwrap();
        let first = found.first_mismatch.unwrap();
        assert!(first.contains(inner), "{first}");
        assert!(first.ends_with("is a mount point"), "{first}");
        for task in [
            start(Work::Warm, run.folder(), &program, 2),
            start(Work::Evict, run.folder(), &program, 2),
        ] {
            assert_eq!(fault(done(&task)).0, Errno::XDEV);
        }
        drop(bound);
        let found = done(&start(Work::Verify, run.folder(), &program, 2)).unwrap();
        assert_eq!(found.mismatches, 0);
    }
}

/// A run's folder with a file in `d`, which another directory of the same names is mounted over.
fn with_calls_of<K: Kernel>(call: impl Fn(&K) + Send + Sync) {
    let run = Run::new();
    let outside = tempfile::tempdir().unwrap();
    for place in [run.path().join("d"), outside.path().to_owned()] {
        fs::create_dir_all(place.join("inner")).unwrap();
        fs::write(place.join("file"), "precious").unwrap();
    }
    let Some(_bound) = Mounted::bound(outside.path(), &run.path().join("d")) else {
        return;
    };
    let parent = run.parent.path().to_str().unwrap();
    let folder = Arc::new(Folder::open(parent, "run").unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            own_folder_state();
            call(&K::enter(&folder).unwrap());
        });
    });
    assert_eq!(bytes_of(outside.path().join("file")), b"precious");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 2);
}

const NEW: u32 = (libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC).cast_unsigned();

fn opens<K: Kernel>(kernel: &K) {
    for (path, flags) in [(c"d/file", NEW), (c"d/made", NEW), (c"d", 0)] {
        assert_eq!(
            kernel.open(
                At::whole(path),
                How {
                    flags,
                    mode: 0o600,
                    resolve: 0
                }
            ),
            Err(Errno::XDEV)
        );
    }
}

#[test]
fn users_open_nothing_behind_a_mount_point() {
    with_calls_of::<Guarded>(opens);
    if can_jail() {
        with_calls_of::<Jailed>(opens);
    }
}

#[test]
fn guarded_users_change_nothing_behind_a_mount_point() {
    with_calls_of::<Guarded>(|kernel| {
        let at = At::whole;
        let (file, made, own) = (at(c"d/file"), at(c"d/made"), at(c".replayer-run"));
        let (directory, inner) = (at(c"d"), at(c"d/inner"));
        let times = Times::both(Some(1));
        for answer in [
            kernel.unlink(file),
            kernel.rmdir(inner),
            kernel.mkdir(made, 0o700),
            kernel.symlink(c"x", made),
            kernel.rename(file, made, 0),
            kernel.rename(own, made, 0),
            kernel.link(own, made, Links::Keep),
            kernel.truncate(file.whole, 0),
            kernel.chmod(file, 0o777),
            kernel.chmod(directory, 0o777),
            kernel.utimens(file, times, Links::Keep),
            kernel.chown(
                directory,
                Owner {
                    uid: Some(12),
                    gid: None,
                },
                Links::Keep,
            ),
            kernel.stat(file),
            kernel.stat(directory),
        ] {
            assert_eq!(answer, Err(Errno::XDEV));
            kernel.tidy();
        }
    });
}

#[test]
fn a_folder_on_a_mount_of_its_own_is_as_good_as_any() {
    let Some(disk) = Mounted::small_disk(4 << 20) else {
        return;
    };
    let program = sample();
    let folder = Folder::make(disk.path().to_str().unwrap(), "run").unwrap();
    let again = || folder.file.try_clone().unwrap();
    done(&start(Work::LayOut, again(), &program, 2)).unwrap();
    let found = done(&start(Work::Verify, again(), &program, 2)).unwrap();
    assert_eq!(found.mismatches, 0);
    let index = Path::new("run/sites/docroot/index.php");
    assert_eq!(bytes_of(disk.path().join(index)).len(), 10);
}
