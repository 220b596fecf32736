//! The layout on real directories.

use super::files::{Work, start};
use super::mounted::Mounted;
use super::remove::{remove, wipe};
use super::task::{Fault, Finding, Task};
use crate::plan::parse_plan;
use crate::program::Program;
use rustix::io::Errno;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

pub(super) fn sample() -> Arc<Program> {
    program(&json!([
        {"name": "docroot", "directory": "sites/docroot", "laid_out": true, "scope": "shared", "content": "random", "entries": [
            ["index.php", "f", 10, 0o640, ""],
            ["wp", "d", 0, 0o750, ""],
            ["locked", "d", 0, 0o555, ""],
            ["locked/empty", "f", 0, 0o400, ""],
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

pub(crate) struct Run {
    pub(crate) parent: tempfile::TempDir,
}

impl Run {
    pub(crate) fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join("run")).unwrap();
        fs::write(parent.path().join("run/.replayer-run"), "{}").unwrap();
        Self { parent }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.parent.path().join("run")
    }

    pub(crate) fn folder(&self) -> OwnedFd {
        open(&self.path())
    }

    pub(crate) fn remove(&self) -> Result<Finding, Fault> {
        done(&remove(self.folder(), open(self.parent.path()), "run", 3))
    }
}

pub(crate) fn open(path: &Path) -> OwnedFd {
    fs::File::options().read(true).open(path).unwrap().into()
}

pub(crate) fn done(task: &Task) -> Result<Finding, Fault> {
    task.wait().unwrap()
}

pub(crate) fn change_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

pub(crate) fn bytes_of(path: PathBuf) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = fs::File::options().read(true).open(path).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

pub(crate) fn fault(result: Result<Finding, Fault>) -> (Errno, String) {
    match result.unwrap_err() {
        Fault::Os(errno, path) => (errno, path),
        Fault::Cancelled => panic!("cancelled"),
    }
}

#[test]
fn what_is_laid_out_is_what_the_plan_says() {
    let (run, program) = (Run::new(), sample());
    let finding = done(&start(Work::LayOut, run.folder(), &program, 3)).unwrap();
    assert_eq!(
        (finding.files, finding.links, finding.bytes),
        (6, 1, 315_010)
    );
    // sites, sites/docroot, wp, wp/deep, wp/deep/er, locked, shared, home, 3 of home/uN with mail, sites/work and its 3.
    assert_eq!(finding.directories, 7 + 1 + 6 + 4);
    let docroot = run.path().join("sites/docroot");
    assert_eq!(mode(&docroot), 0o755);
    assert_eq!(mode(&docroot.join("locked")), 0o555);
    assert_eq!(mode(&docroot.join("wp/deep/er/big")), 0o4711);
    assert_eq!(mode(&docroot.join("shared")), 0o2775);
    assert_eq!(
        fs::read_link(docroot.join("wp/link")).unwrap(),
        Path::new("../index.php")
    );
    let mails = [0, 1].map(|user| bytes_of(run.path().join(format!("home/u{user}/mail/1"))));
    assert_ne!(mails[0], mails[1]);
    assert!(mails[0][..2048].iter().all(|byte| *byte == 0) && mails[0][2048] != 0);

    let finding = done(&start(Work::Verify, run.folder(), &program, 3)).unwrap();
    assert_eq!((finding.mismatches, finding.first_mismatch), (0, None));
    assert_eq!(
        (finding.files, finding.directories, finding.links),
        (6, 18, 1)
    );
    let warmed = done(&start(Work::Warm, run.folder(), &program, 3)).unwrap();
    assert_eq!(
        (warmed.files, warmed.directories, warmed.bytes),
        (6, 18, 315_010)
    );
    let evicted = done(&start(Work::Evict, run.folder(), &program, 3)).unwrap();
    assert_eq!((evicted.files, evicted.bytes), (6, 315_010));
}

#[test]
fn nothing_is_ever_overwritten() {
    let (run, program) = (Run::new(), sample());
    fs::create_dir_all(run.path().join("sites/docroot")).unwrap();
    fs::write(run.path().join("sites/docroot/index.php"), "mine").unwrap();
    let (errno, path) = fault(done(&start(Work::LayOut, run.folder(), &program, 2)));
    assert_eq!(errno, Errno::EXIST);
    assert!(path.ends_with("/run/sites/docroot/index.php"), "{path}");
    assert_eq!(
        bytes_of(run.path().join("sites/docroot/index.php")),
        b"mine"
    );
}

#[test]
fn links_that_lie_in_the_way_are_not_followed() {
    let (run, program) = (Run::new(), sample());
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), run.path().join("home")).unwrap();
    let (errno, path) = fault(done(&start(Work::LayOut, run.folder(), &program, 2)));
    assert_eq!(errno, Errno::EXIST);
    assert!(path.ends_with("/run/home"), "{path}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    let (errno, _) = fault(done(&start(Work::Warm, run.folder(), &program, 2)));
    assert!(
        matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP),
        "{errno}"
    );
}

/// What verification says of the sample after a change to its `sites/docroot`: a count, and the first.
fn after(change: impl FnOnce(&Path)) -> (u64, String) {
    let (run, program) = (Run::new(), sample());
    done(&start(Work::LayOut, run.folder(), &program, 2)).unwrap();
    change(&run.path().join("sites/docroot"));
    let finding = done(&start(Work::Verify, run.folder(), &program, 2)).unwrap();
    (finding.mismatches, finding.first_mismatch.unwrap())
}

fn told(count: u64, text: &str) -> (u64, String) {
    (count, format!("sites/{text}"))
}

#[test]
fn differences_of_files_are_found() {
    let missing = after(|at| fs::remove_file(at.join("index.php")).unwrap());
    assert_eq!(missing, told(1, "docroot/index.php: is missing"));
    let short = after(|at| fs::write(at.join("index.php"), "short").unwrap());
    assert_eq!(
        short,
        told(1, "docroot/index.php: must have 10 bytes, has 5")
    );
    let open = after(|at| change_mode(&at.join("index.php"), 0o600));
    assert_eq!(
        open,
        told(1, "docroot/index.php: must have mode 0640, has 0600")
    );
    let other = after(|at| {
        fs::remove_file(at.join("index.php")).unwrap();
        fs::create_dir(at.join("index.php")).unwrap();
    });
    assert_eq!(
        other,
        told(1, "docroot/index.php: must be a file, is a directory")
    );
}

#[test]
fn differences_of_links_and_directories_are_found() {
    let link = after(|at| {
        fs::remove_file(at.join("wp/link")).unwrap();
        symlink("elsewhere", at.join("wp/link")).unwrap();
    });
    let text = r#"docroot/wp/link: must point to "../index.php", points to "elsewhere""#;
    assert_eq!(link, told(1, text));
    let closed = after(|at| change_mode(&at.join("wp/deep"), 0o700));
    assert_eq!(
        closed,
        told(1, "docroot/wp/deep: must have mode 0755, has 0700")
    );
    let missing = after(|at| fs::remove_dir_all(at.join("wp/deep")).unwrap());
    assert_eq!(missing, told(3, "docroot/wp/deep: is missing"));
}

#[test]
fn entries_that_the_plan_does_not_have_are_found() {
    let extra = after(|at| fs::write(at.join("wp/deep/extra"), "").unwrap());
    assert_eq!(extra, told(1, "docroot/wp/deep/extra: is not in the plan"));
    let left = after(|at| fs::write(at.join("../work/u1/x"), "").unwrap());
    assert_eq!(left, told(1, "work/u1/x: is not in the plan"));
}

#[test]
fn wiping_leaves_the_marker_and_removing_leaves_nothing() {
    let (run, program) = (Run::new(), sample());
    done(&start(Work::LayOut, run.folder(), &program, 3)).unwrap();
    let finding = done(&wipe(run.folder(), 3)).unwrap();
    assert_eq!(
        (finding.files, finding.directories, finding.links),
        (6, 18, 1)
    );
    let left: Vec<_> = fs::read_dir(run.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, [".replayer-run"]);
    done(&start(Work::LayOut, run.folder(), &program, 3)).unwrap();
    run.remove().unwrap();
    assert_eq!(fs::read_dir(run.parent.path()).unwrap().count(), 0);
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
    let task = start(Work::LayOut, run.folder(), &program, 2);
    task.cancel();
    assert_eq!(done(&task), Err(Fault::Cancelled));
    run.remove().unwrap();
}

#[test]
fn a_full_disk_is_told_with_the_path() {
    let Some(disk) = Mounted::small_disk(256 << 10) else {
        return;
    };
    let program = program(&json!([{
        "name": "big", "directory": "big", "laid_out": true, "scope": "shared", "content": "random",
        "entries": [["file", "f", 10 << 20, 0o644, ""]],
    }]));
    let (errno, path) = fault(done(&start(Work::LayOut, open(disk.path()), &program, 2)));
    assert_eq!(errno, Errno::NOSPC);
    assert!(path.ends_with("/big/file"), "{path}");
}

#[test]
fn the_space_of_a_small_disk_is_told() {
    let Some(disk) = Mounted::small_disk(1 << 20) else {
        return;
    };
    let space = crate::sandbox::space(open(disk.path()).as_fd()).unwrap();
    let text = format!("{space:?}");
    assert!(
        text.contains("bytes_total: 1048576, bytes_free: 1048576"),
        "{text}"
    );
    assert!(text.contains("read_only: false, kind: 16914836"), "{text}");
}
