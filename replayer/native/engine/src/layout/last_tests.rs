//! The last reading on a real directory.

use super::last::{Bound, read_back};
use super::task::Task;
use super::tests::{Run, bytes_of};
use crate::program::{Content, Identity, Naming};
use crate::sys::Folder;
use crate::verify::{Laid, Verification, Verifier};
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

const SIZE: usize = 12 << 10;
const NEW: u32 = OFlags::WRONLY.bits() | OFlags::CREATE.bits() | OFlags::TRUNC.bits();

/// A run's folder in which users have written.
struct Scene {
    run: Run,
    verification: Arc<Verification>,
}

impl Scene {
    fn new(files: usize) -> Scene {
        let identity = Identity {
            run: 7,
            naming: Naming::Paths,
        };
        let scene = Scene {
            run: Run::new(),
            verification: Arc::new(Verification::new(identity, 1)),
        };
        let mut user = scene.user();
        for number in 0..files {
            scene.write(&mut user, &format!("f{number:02}"));
        }
        scene
    }

    fn user(&self) -> Verifier<'_> {
        Verifier::new(&self.verification, (0, 1, 0), Content::Random, 4096).unwrap()
    }

    /// What an interpreter does around the calls that write a file.
    fn write(&self, user: &mut Verifier<'_>, name: &str) {
        let opening = user.opening(name.as_bytes(), NEW, Laid::default());
        user.opened(0, opening, true);
        let written = user.stamp(0, SIZE as u64, None);
        fs::write(self.run.path().join(name), user.buffer.first(SIZE as u64)).unwrap();
        user.wrote(0, written, Ok(SIZE as u64));
        user.closed(0, true);
    }

    fn rename(&self, user: &mut Verifier<'_>, from: &str, to: &str) {
        let changes = (user.change(from.as_bytes()), user.change(to.as_bytes()));
        let path = self.run.path();
        fs::rename(path.join(from), path.join(to)).unwrap();
        user.renamed(changes.0, changes.1, to.as_bytes());
    }

    fn begin(&self, budget: Duration) -> Task {
        let path = self.run.path();
        let (parent, name) = (path.parent().unwrap(), path.file_name().unwrap());
        let folder = Folder::open(parent.to_str().unwrap(), name.to_str().unwrap()).unwrap();
        let bound = Bound { threads: 2, budget };
        let folders = vec![Arc::new(folder)];
        read_back(self.run.folder(), folders, &self.verification, 0, bound)
    }

    /// Read everything; what was found.
    fn read(&self) -> Value {
        self.begin(Duration::from_mins(1)).wait().unwrap().unwrap();
        self.found()
    }

    fn found(&self) -> Value {
        let all: Value = serde_json::from_str(&self.verification.json()).unwrap();
        all["last"].clone()
    }
}

fn counts(found: &Value) -> [u64; 4] {
    ["files", "unclear_files", "failed_files", "left_files"]
        .map(|name| found[name].as_u64().unwrap())
}

#[test]
fn all_that_was_written_is_read_once_and_found_right() {
    let scene = Scene::new(5);
    assert_eq!(scene.found(), Value::Null);
    let found = scene.read();
    assert_eq!(counts(&found), [5, 0, 0, 0]);
    assert_eq!(found["verified_bytes"], 5 * SIZE);
    assert_eq!(found["blocks"]["LOST"], 0);
    assert_eq!(found["unsynced_files"], 0);
    assert_eq!(found["wrong"], Value::Array(Vec::new()));
}

#[test]
fn what_nobody_read_and_is_gone_is_lost_and_named() {
    let scene = Scene::new(3);
    fs::remove_file(scene.run.path().join("f00")).unwrap();
    fs::write(scene.run.path().join("f01"), vec![0; SIZE]).unwrap();
    let short = fs::File::options();
    let file = short.clone().write(true).open(scene.run.path().join("f02"));
    file.unwrap().set_len(4096).unwrap();
    let found = scene.read();
    assert_eq!(counts(&found), [3, 0, 0, 0]);
    assert_eq!(found["blocks"]["LOST"], 1 + 3 + 1);
    let mut named: Vec<&str> = found["wrong"]
        .as_array()
        .unwrap()
        .iter()
        .map(|wrong| wrong["path"].as_str().unwrap())
        .collect();
    named.sort_unstable();
    assert_eq!(named, ["f00", "f01", "f02"]);
}

#[test]
fn what_was_renamed_is_expected_under_its_new_name_only() {
    let scene = Scene::new(1);
    scene.rename(&mut scene.user(), "f00", "kept");
    let found = scene.read();
    assert_eq!(counts(&found), [1, 0, 0, 0]);
    assert_eq!(found["verified_bytes"], SIZE);
    let scene = Scene::new(1);
    scene.rename(&mut scene.user(), "f00", "kept");
    fs::write(scene.run.path().join("kept"), vec![0; SIZE]).unwrap();
    assert_eq!(scene.read()["blocks"]["LOST"], 3);
}

#[test]
fn what_was_there_before_a_rename_is_stale() {
    let scene = Scene::new(0);
    let mut user = scene.user();
    scene.write(&mut user, "kept");
    let old = bytes_of(scene.run.path().join("kept"));
    scene.write(&mut user, "part");
    scene.rename(&mut user, "part", "kept");
    assert_eq!(scene.read()["blocks"]["STALE"], 0);
    fs::write(scene.run.path().join("kept"), old).unwrap();
    assert_eq!(scene.read()["blocks"]["STALE"], 3);
}

#[test]
fn what_was_removed_is_not_missed() {
    let scene = Scene::new(2);
    let user = scene.user();
    let change = user.change(b"f00");
    fs::remove_file(scene.run.path().join("f00")).unwrap();
    user.removed(change, true);
    assert_eq!(counts(&scene.read()), [1, 0, 0, 0]);
}

#[test]
fn no_file_is_begun_when_time_is_over_and_all_of_them_are_told_as_left() {
    let scene = Scene::new(4);
    scene.begin(Duration::ZERO).wait().unwrap().unwrap();
    assert_eq!(counts(&scene.found()), [0, 0, 0, 4]);
    assert_eq!(scene.found()["verified_bytes"], 0);
}

#[test]
fn a_file_is_left_in_its_middle_when_time_is_over_and_what_was_read_of_it_counts() {
    let scene = Scene::new(0);
    let large = scene.run.path().join("large");
    let mut user = scene.user();
    let opening = user.opening(b"large", NEW, Laid::default());
    user.opened(0, opening, true);
    let written = user.stamp(0, 1 << 20, None);
    fs::write(&large, user.buffer.first(1 << 20)).unwrap();
    user.wrote(0, written, Ok(1 << 20));
    user.closed(0, true);
    // Sparse: reading all of it takes far longer than its time.
    let file = fs::File::options().write(true).open(&large).unwrap();
    file.set_len(1 << 42).unwrap();
    let begun = std::time::Instant::now();
    scene
        .begin(Duration::from_millis(200))
        .wait()
        .unwrap()
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(counts(&scene.found()), [0, 0, 0, 1]);
}

#[test]
fn a_reading_that_is_cancelled_ends_without_an_error() {
    let scene = Scene::new(0);
    let mut user = scene.user();
    scene.write(&mut user, "large");
    let file = fs::File::options();
    let file = file
        .clone()
        .write(true)
        .open(scene.run.path().join("large"));
    file.unwrap().set_len(1 << 42).unwrap();
    let task = scene.begin(Duration::from_hours(1));
    task.cancel();
    assert!(task.wait().unwrap().is_ok());
    assert_eq!(counts(&scene.found()), [0, 0, 0, 1]);
}
