//! The layout on real directories.

use crate::layout::{evict, lay_out, warm};
use crate::layout_remove::{remove, wipe};
use crate::layout_task::{Fault, Finding, Task};
use crate::layout_verify::verify;
use crate::plan::parse_plan;
use crate::program::Program;
use rustix::io::Errno;
use serde_json::{Value, json};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A tmpfs of a few bytes, mounted where the tests run as root.
pub(crate) struct SmallDisk {
    place: PathBuf,
    _holder: Option<tempfile::TempDir>,
}

impl SmallDisk {
    /// None where mounting is not permitted.
    pub(crate) fn mount(bytes: u64) -> Option<Self> {
        let holder = tempfile::tempdir().unwrap();
        let mut disk = Self::mount_at(holder.path(), bytes)?;
        disk._holder = Some(holder);
        Some(disk)
    }

    fn mount_at(place: &Path, bytes: u64) -> Option<Self> {
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "small-disk"]);
        let mounted = command
            .arg(place)
            .stderr(std::process::Stdio::null())
            .status();
        let disk = Self {
            place: place.to_owned(),
            _holder: None,
        };
        mounted.is_ok_and(|status| status.success()).then_some(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.place
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.place)
            .status();
    }
}

fn program(datasets: &Value) -> Arc<Program> {
    let document = json!({
        "format": 1, "name": "layout", "seed": 7, "users": 3, "written": "random", "pool_bytes": 65536,
        "tables": [], "datasets": datasets, "pickers": [],
        "transactions": [{"name": "nothing", "steps": []}], "mix": [1],
        "pace": {"kind": "closed", "think": {"const": 0}},
        "stop": {"duration_ns": null, "transactions": 1}, "warm_up_ns": 0,
    });
    Arc::new(parse_plan(document.to_string().as_bytes()).unwrap())
}

fn sample() -> Arc<Program> {
    program(&json!([
        {"name": "docroot", "directory": "sites/docroot", "laid_out": true, "scope": "shared", "content": "random", "entries": [
            ["index.php", "f", 10, 0o640, ""],
            ["wp", "d", 0, 0o555, ""],
            ["wp/empty", "f", 0, 0o400, ""],
            ["wp/deep/er/big", "f", 300_000, 0o4711, ""],
            ["wp/link", "l", 0, 0o777, "../index.php"],
            ["shared", "d", 0, 0o2775, ""],
        ]},
        {"name": "home", "directory": "home", "laid_out": true, "scope": "user", "content": {"compressible": 50}, "entries": [
            ["mail/1", "f", 5000, 0o600, ""],
        ]},
        {"name": "work", "directory": "sites/work", "laid_out": false, "scope": "user", "content": "zeros", "entries": [
            ["x", "f", 5000, 0o600, ""],
        ]},
    ]))
}

struct Run {
    parent: tempfile::TempDir,
}

impl Run {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("run")).unwrap();
        fs::write(parent.path().join("run/.replayer-run"), "{}").unwrap();
        Self { parent }
    }

    fn path(&self) -> PathBuf {
        self.parent.path().join("run")
    }

    fn folder(&self) -> OwnedFd {
        open(&self.path())
    }

    fn remove(&self) -> Result<Finding, Fault> {
        done(&remove(self.folder(), open(self.parent.path()), "run", 3))
    }
}

fn open(path: &Path) -> OwnedFd {
    fs::File::options().read(true).open(path).unwrap().into()
}

fn done(task: &Task) -> Result<Finding, Fault> {
    task.wait().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn fault(result: Result<Finding, Fault>) -> (Errno, String) {
    match result.unwrap_err() {
        Fault::Os(errno, path) => (errno, path),
        Fault::Cancelled => panic!("cancelled"),
    }
}

#[test]
fn what_is_laid_out_is_what_the_plan_says() {
    let (run, program) = (Run::new(), sample());
    let finding = done(&lay_out(run.folder(), &program, 3)).unwrap();
    assert_eq!(
        (finding.files, finding.links, finding.bytes),
        (6, 1, 315_010)
    );
    // sites, sites/docroot, wp, wp/deep, wp/deep/er, shared, home, 3 of home/uN with mail, sites/work and its 3.
    assert_eq!(finding.directories, 6 + 1 + 6 + 4);
    let docroot = run.path().join("sites/docroot");
    assert_eq!(mode(&docroot), 0o755);
    assert_eq!(mode(&docroot.join("wp")), 0o555);
    assert_eq!(mode(&docroot.join("wp/deep/er/big")), 0o4711);
    assert_eq!(mode(&docroot.join("shared")), 0o2775);
    assert_eq!(
        fs::read_link(docroot.join("wp/link")).unwrap(),
        Path::new("../index.php")
    );
    let mails =
        [0, 1].map(|user| fs::read(run.path().join(format!("home/u{user}/mail/1"))).unwrap());
    assert_ne!(mails[0], mails[1]);
    assert!(mails[0][..2048].iter().all(|byte| *byte == 0) && mails[0][2048] != 0);

    let finding = done(&verify(run.folder(), &program, 3)).unwrap();
    assert_eq!((finding.mismatches, finding.first_mismatch), (0, None));
    assert_eq!(
        (finding.files, finding.directories, finding.links),
        (6, 17, 1)
    );
    let warmed = done(&warm(run.folder(), &program, 3)).unwrap();
    assert_eq!(
        (warmed.files, warmed.directories, warmed.bytes),
        (6, 17, 315_010)
    );
    let evicted = done(&evict(run.folder(), &program, 3)).unwrap();
    assert_eq!((evicted.files, evicted.bytes), (6, 315_010));
}

#[test]
fn nothing_is_ever_overwritten() {
    let (run, program) = (Run::new(), sample());
    fs::create_dir_all(run.path().join("sites/docroot")).unwrap();
    fs::write(run.path().join("sites/docroot/index.php"), "mine").unwrap();
    let (errno, path) = fault(done(&lay_out(run.folder(), &program, 2)));
    assert_eq!(errno, Errno::EXIST);
    assert!(path.ends_with("/run/sites/docroot/index.php"), "{path}");
    assert_eq!(
        fs::read(run.path().join("sites/docroot/index.php")).unwrap(),
        b"mine"
    );
}

#[test]
fn links_that_lie_in_the_way_are_not_followed() {
    let (run, program) = (Run::new(), sample());
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), run.path().join("home")).unwrap();
    let (errno, path) = fault(done(&lay_out(run.folder(), &program, 2)));
    assert_eq!(errno, Errno::EXIST);
    assert!(path.ends_with("/run/home"), "{path}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    let (errno, _) = fault(done(&warm(run.folder(), &program, 2)));
    assert!(
        matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP),
        "{errno}"
    );
}

#[test]
fn every_kind_of_difference_is_found() {
    type Change = fn(&Path);
    let changes: [(Change, u64, &str); 9] = [
        (
            |at| fs::remove_file(at.join("index.php")).unwrap(),
            1,
            "index.php: is missing",
        ),
        (
            |at| fs::write(at.join("index.php"), "short").unwrap(),
            1,
            "index.php: must have 10 bytes, has 5",
        ),
        (
            |at| {
                fs::set_permissions(at.join("index.php"), PermissionsExt::from_mode(0o600)).unwrap()
            },
            1,
            "index.php: must have mode 0640, has 0600",
        ),
        (
            |at| {
                fs::remove_file(at.join("index.php")).unwrap();
                fs::create_dir(at.join("index.php")).unwrap();
            },
            1,
            "index.php: must be a file, is a directory",
        ),
        (
            |at| {
                fs::remove_file(at.join("wp/link")).unwrap();
                symlink("elsewhere", at.join("wp/link")).unwrap();
            },
            1,
            "wp/link: must point to \"../index.php\", points to \"elsewhere\"",
        ),
        (
            |at| fs::write(at.join("wp/deep/extra"), "").unwrap(),
            1,
            "wp/deep/extra: is not in the plan",
        ),
        (
            |at| fs::write(at.join("../work/u1/x"), "").unwrap(),
            1,
            "sites/work/u1/x: is not in the plan",
        ),
        (
            |at| fs::set_permissions(at.join("wp/deep"), PermissionsExt::from_mode(0o700)).unwrap(),
            1,
            "wp/deep: must have mode 0755, has 0700",
        ),
        (
            |at| fs::remove_dir_all(at.join("wp/deep")).unwrap(),
            3,
            "wp/deep: is missing",
        ),
    ];
    let program = sample();
    for (change, count, wanted) in changes {
        let run = Run::new();
        done(&lay_out(run.folder(), &program, 2)).unwrap();
        change(&run.path().join("sites/docroot"));
        let finding = done(&verify(run.folder(), &program, 2)).unwrap();
        assert_eq!(finding.mismatches, count, "{wanted}");
        let told = finding.first_mismatch.unwrap();
        assert!(told.ends_with(wanted), "{told}");
    }
}

#[test]
fn wiping_leaves_the_marker_and_removing_leaves_nothing() {
    let (run, program) = (Run::new(), sample());
    done(&lay_out(run.folder(), &program, 3)).unwrap();
    let finding = done(&wipe(run.folder(), 3)).unwrap();
    assert_eq!(
        (finding.files, finding.directories, finding.links),
        (6, 17, 1)
    );
    let left: Vec<_> = fs::read_dir(run.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, [".replayer-run"]);
    done(&lay_out(run.folder(), &program, 3)).unwrap();
    run.remove().unwrap();
    assert_eq!(fs::read_dir(run.parent.path()).unwrap().count(), 0);
}

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
    let Some(disk) = SmallDisk::mount_at(&inner, 1 << 20) else {
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
    fs::set_permissions(run.path().join("closed"), PermissionsExt::from_mode(0)).unwrap();
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
fn a_cancelled_task_stops_and_says_so() {
    let run = Run::new();
    let entries: Vec<Value> = (0..20_000)
        .map(|number| json!([format!("d/{number}"), "f", 4000, 0o644, ""]))
        .collect();
    let program = program(&json!([{
        "name": "many", "directory": "many", "laid_out": true, "scope": "user", "content": "random", "entries": entries,
    }]));
    let task = lay_out(run.folder(), &program, 2);
    task.cancel();
    assert_eq!(done(&task), Err(Fault::Cancelled));
    run.remove().unwrap();
}

#[test]
fn a_full_disk_is_told_with_the_path() {
    let Some(disk) = SmallDisk::mount(256 << 10) else {
        return;
    };
    let program = program(&json!([{
        "name": "big", "directory": "big", "laid_out": true, "scope": "shared", "content": "random",
        "entries": [["file", "f", 10 << 20, 0o644, ""]],
    }]));
    let (errno, path) = fault(done(&lay_out(open(disk.path()), &program, 2)));
    assert_eq!(errno, Errno::NOSPC);
    assert!(path.ends_with("/big/file"), "{path}");
}

#[test]
fn the_space_of_a_small_disk_is_told() {
    let Some(disk) = SmallDisk::mount(1 << 20) else {
        return;
    };
    use std::os::fd::AsFd;
    let space = crate::space::space(open(disk.path()).as_fd()).unwrap();
    let text = format!("{space:?}");
    assert!(
        text.contains("bytes_total: 1048576, bytes_free: 1048576"),
        "{text}"
    );
    assert!(text.contains("read_only: false, kind: 16914836"), "{text}");
}
