//! Recordings of commands, and what they tell.

use replayer_recorder::{Recorder, RecorderError};
use replayer_trace::{Event, NamedPath, Op, Request, Trace, import};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder of one test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let home =
        std::env::temp_dir().join(format!("replayer-recording-{}-{name}", std::process::id()));
    fs::create_dir_all(&home).unwrap();
    home
}

/// A folder with a few files, the same each time.
pub(crate) fn lay_out(home: &Path) {
    let root = home.join("r");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("src/deep/er")).unwrap();
    for number in 0..6 {
        fs::write(
            root.join(format!("src/f{number}")),
            vec![b'x'; number * 3000],
        )
        .unwrap();
    }
    fs::write(root.join("src/deep/er/leaf"), "leaf\n").unwrap();
    symlink("f1", root.join("src/link")).unwrap();
    symlink("nowhere", root.join("src/dangling")).unwrap();
}

pub(crate) fn command(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(home);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
        .env("LC_ALL", "C")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONHASHSEED", "0");
    command
}

/// None where this machine lets no probe in.
pub(crate) fn open_recorder(log: &Path) -> Option<Recorder> {
    open_recorder_with(log, 16 << 20)
}

/// With a ring of so many bytes.
pub(crate) fn open_recorder_with(log: &Path, ring_bytes: u32) -> Option<Recorder> {
    match Recorder::open(log, ring_bytes, u64::MAX) {
        Err(RecorderError::Unusable { reason, need }) => {
            eprintln!("skipped: {reason}; needed: {need}");
            None
        }
        other => Some(other.unwrap()),
    }
}

pub(crate) fn wait_until(holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Record a command and all that it starts.
pub(crate) fn record_with_probe(home: &Path, words: &[&str]) -> Option<PathBuf> {
    let log = home.join("log.bpf");
    record(open_recorder(&log)?, home, words);
    Some(log)
}

/// The same, with pages of files below the root that are touched through mappings.
pub(crate) fn record_pages_with_probe(home: &Path, words: &[&str]) -> Option<PathBuf> {
    let log = home.join("log.bpf");
    let mut recorder = open_recorder(&log)?;
    let root = fs::metadata(home.join("r")).unwrap();
    recorder.record_pages(&[root.ino()]).unwrap();
    record(recorder, home, words);
    Some(log)
}

fn record(mut recorder: Recorder, home: &Path, words: &[&str]) {
    recorder.arm().unwrap();
    command(home, words).spawn().unwrap().wait().unwrap();
    wait_until(|| recorder.progress().unwrap().live == 0);
    recorder.finish().unwrap();
    assert_eq!(recorder.progress().unwrap().lost, 0);
}

/// What a thread did, in its order: without times.
pub(crate) type Deeds = Vec<String>;

/// All that two recordings of one command must have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) threads: Vec<Deeds>,
    pub(crate) tree: Vec<String>,
    pub(crate) not_understood: u64,
}

/// The trace.json of a recording.
pub(crate) fn imported(home: &Path, log: &Path, format: &str) -> serde_json::Value {
    let target = home.join(format!("trace-{format}"));
    let _ = fs::remove_dir_all(&target);
    let options = format!(
        r#"{{"aliases": [], "format": "{format}", "manifest": null, "directories": [[null, "{}"]], "umasks": [[null, 18]],
            "windows": [], "marker": "/replayer/request/", "call_ns": 0, "gap_ns": 0, "probed": null, "method": "", "computed": null,
            "keep": "needed", "strict": true, "note": ""}}"#,
        home.display()
    );
    let request = Request {
        files: vec![log.to_owned()],
        target: target.clone(),
        roots: vec![home.join("r").to_str().unwrap().into()],
        ..serde_json::from_str(&options).unwrap()
    };
    let document = import(&request, &mut |_| true).unwrap();
    serde_json::from_str(&document).unwrap()
}

pub(crate) fn told(home: &Path, log: &Path, format: &str) -> Told {
    let document = imported(home, log, format);
    let target = home.join(format!("trace-{format}"));
    let trace = Trace::open(&target).unwrap();
    let paths = trace.paths().unwrap();
    let mut threads: HashMap<u32, Deeds> = HashMap::new();
    let mut files: HashMap<u32, String> = HashMap::new();
    let mut events = trace.tables().events(0).unwrap();
    while let Some((_, event)) = events.next_event().unwrap() {
        // Which of two processes lets a description go last is chance.
        if event.op == Op::CloseExit {
            continue;
        }
        let deed = describe(&event, &paths, &mut files);
        threads.entry(event.thread).or_default().push(deed);
    }
    let mut threads: Vec<Deeds> = threads.into_values().collect();
    threads.sort();
    let entries = trace.tree().unwrap();
    let mut tree: Vec<String> = entries
        .iter()
        .map(|entry| {
            format!(
                "{} {} {} {:?}",
                name_of(&paths, Some(entry.path)),
                entry.kind,
                entry.size,
                entry.mode
            )
        })
        .collect();
    tree.sort();
    Told {
        threads,
        tree,
        not_understood: document["counts"]["lines_not_understood"].as_u64().unwrap(),
    }
}

fn name_of(paths: &[NamedPath], path: Option<u32>) -> String {
    path.map_or_else(String::new, |path| {
        String::from_utf8_lossy(&paths[path as usize].path).into_owned()
    })
}

fn describe(event: &Event, paths: &[NamedPath], files: &mut HashMap<u32, String>) -> String {
    let path = name_of(paths, event.path);
    if let (Op::Open | Op::Inherit, Some(file)) = (event.op, event.file) {
        files.insert(file, path.clone());
    }
    let file = |slot: Option<u32>| {
        slot.and_then(|slot| files.get(&slot).cloned())
            .unwrap_or_default()
    };
    // An address of a mapping is another one each time.
    let result = if event.op == Op::Mmap && event.result > 0 {
        1
    } else {
        event.result
    };
    format!(
        "{} {path} {} on {} {} flags {:?} mode {:?} size {:?} at {:?} entries {:?} owner {:?} {:?} text {:?} = {result}",
        if event.op == Op::CloseDup {
            Op::Close
        } else {
            event.op
        }
        .name(),
        name_of(paths, event.to_path),
        file(event.file),
        file(event.to_file),
        event.flags,
        event.mode,
        event.size,
        event.offset,
        event.entries,
        event.uid,
        event.gid,
        event.text.as_deref().map(String::from_utf8_lossy),
    )
}
