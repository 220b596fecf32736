//! Both recorders tell the same of the same commands: strace is the oracle.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and says why it is left out"
)]

use replayer_recorder::{Recorder, RecorderError};
use replayer_trace::{Event, NamedPath, Op, Request, Trace, import};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The calls that a capture has strace record, and how it has them written.
const STRACE: &str = "-f -q --absolute-timestamps=format:unix,precision:ns --syscall-times=ns -y --decode-pids=pidns -s 256 -e signal=none \
    -e trace=%file,%desc,%process,?close_range,?chroot,?umask,?sync,?syncfs,?accept,?accept4,?bind,?socketpair,?futex";

/// A folder with a few files, the same each time.
fn lay_out(home: &Path) {
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

fn command(home: &Path, words: &[&str]) -> Command {
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
fn record_with_probe(home: &Path, words: &[&str]) -> Option<PathBuf> {
    let log = home.join("log.bpf");
    let mut recorder = match Recorder::open(&log, 16 << 20, u64::MAX) {
        Err(RecorderError::Unusable { reason, need }) => {
            eprintln!("skipped: {reason}; needed: {need}");
            return None;
        }
        other => other.unwrap(),
    };
    recorder.arm().unwrap();
    let mut child = command(home, words).spawn().unwrap();
    child.wait().unwrap();
    while recorder.progress().unwrap().live > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    recorder.finish().unwrap();
    assert_eq!(recorder.progress().unwrap().lost, 0);
    Some(log)
}

fn record_with_strace(home: &Path, words: &[&str]) -> Option<PathBuf> {
    let log = home.join("log.strace");
    let mut all = vec!["strace"];
    all.extend(STRACE.split_whitespace());
    all.extend(["-o", log.to_str()?, "--"]);
    all.extend(words);
    let started = command(home, &all).spawn();
    match started {
        Ok(mut child) => child.wait().unwrap(),
        Err(error) => {
            eprintln!("skipped: strace: {error}");
            return None;
        }
    };
    Some(log)
}

/// What a thread did, in its order: without times.
type Deeds = Vec<String>;

/// All that two recordings of one command must have in common.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    threads: Vec<Deeds>,
    tree: Vec<String>,
    not_understood: u64,
}

fn told(home: &Path, log: &Path, format: &str) -> Told {
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
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
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
    if let (Op::Open, Some(file)) = (event.op, event.file) {
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

/// Record a command twice, each time from the same state, and hold the recordings against each other.
fn same(name: &str, words: &[&str]) {
    let home = std::env::temp_dir().join(format!("replayer-oracle-{}-{name}", std::process::id()));
    fs::create_dir_all(&home).unwrap();
    lay_out(&home);
    let Some(probe) = record_with_probe(&home, words) else {
        return;
    };
    lay_out(&home);
    let Some(strace) = record_with_strace(&home, words) else {
        return;
    };
    let [probe, strace] =
        [(probe, "bpf"), (strace, "strace")].map(|(log, format)| told(&home, &log, format));
    assert!(
        strace.threads.iter().map(Vec::len).sum::<usize>() > 3,
        "{strace:?}"
    );
    let only = |own: &Told, other: &Told| -> Vec<Deeds> {
        let threads = own.threads.iter();
        threads
            .filter(|thread| !other.threads.contains(thread))
            .cloned()
            .collect()
    };
    let [own, other] = [only(&probe, &strace), only(&strace, &probe)];
    for (own, other) in own.iter().zip(&other) {
        let differs = own.iter().zip(other).find(|(own, other)| own != other);
        assert!(
            differs.is_none(),
            "{name}: {differs:#?}\nof {own:#?}\nand {other:#?}"
        );
    }
    assert_eq!(own, other, "{name}");
    assert_eq!(probe, strace, "{name}");
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn of_cp_and_what_it_copies_both_recorders_tell_the_same() {
    same("cp", &["cp", "-a", "r/src", "r/copy"]);
}

#[test]
fn of_tar_both_recorders_tell_the_same() {
    same(
        "tar",
        &[
            "sh",
            "-c",
            "tar cf r/a.tar -C r src && mkdir r/out && tar xf r/a.tar -C r/out && rm -r r/out",
        ],
    );
}

#[test]
fn of_a_shell_with_pipes_and_redirections_both_recorders_tell_the_same() {
    same(
        "sh",
        &[
            "sh",
            "-c",
            "cd r; cat src/f1 src/link > both; echo more >> both; wc -c < both; ls missing; mv both moved; ln moved hard; \
            (cd src && cat f2) > two; test -e src/dangling; exec 5< src/f3 6<&5; cat <&6 >/dev/null; mkdir -p a/b/c; rmdir a/b/c",
        ],
    );
}

/// A script of Python, in a file beside the root.
fn same_of_python(name: &str, script: &str) {
    let program =
        std::env::temp_dir().join(format!("replayer-oracle-{}-{name}.py", std::process::id()));
    fs::write(&program, script).unwrap();
    same(name, &["python3", "-S", "-E", program.to_str().unwrap()]);
    fs::remove_file(program).unwrap();
}

#[test]
fn of_threads_and_children_of_a_program_both_recorders_tell_the_same() {
    same_of_python(
        "threads",
        r#"
import os, threading
os.chdir("r")
def work(name):
    with open(name, "w") as file:
        file.write(name * 100)
    os.stat(name)
for name in ("one", "two"):
    thread = threading.Thread(target=work, args=(name,))
    thread.start()
    thread.join()
for name in ("three", "four"):
    if os.fork() == 0:
        work(name)
        os._exit(0)
    os.wait()
"#,
    );
}

#[test]
fn of_names_that_are_made_moved_and_missed_both_recorders_tell_the_same() {
    same_of_python(
        "names",
        r#"
import os
os.chdir("r")
def fails(call, *words, **more):
    try:
        call(*words, **more)
    except OSError:
        return
    raise SystemExit("it did not fail")
os.rename("src/f1", "src/g1"); os.link("src/g1", "src/h1"); os.symlink("h1", "src/i1"); os.readlink("src/i1")
os.unlink("src/h1"); os.mkdir("d", 0o750); os.mkfifo("d/pipe"); os.chmod("src/g1", 0o600); os.chown("src/g1", 1, 2)
os.utime("src/g1", (5, 6)); os.truncate("src/g1", 77); os.access("src/g1", os.R_OK); os.umask(0o27); os.mkdir("d/e")
here = os.open("src", os.O_RDONLY | os.O_DIRECTORY)
os.stat("f2", dir_fd=here); os.rename("f2", "f3", src_dir_fd=here, dst_dir_fd=here); os.unlink("f3", dir_fd=here)
os.utime(here); os.fchdir(here); os.mkdir(bytes([119, 246, 34, 92, 60, 62, 10])); os.listdir("."); os.listdir(here); os.getcwd()
fails(os.stat, "none"); fails(os.rename, "none", "else"); fails(os.mkdir, "deep"); fails(os.rmdir, "deep"); fails(os.unlink, "none")
fails(os.open, "none/at/all", os.O_RDONLY); fails(os.link, "none", "else"); fails(os.readlink, "f4"); fails(os.open, "x" * 300, os.O_RDONLY)
os.setxattr("f4", "user.a", b"value"); os.getxattr("f4", "user.a"); os.listxattr("f4"); os.removexattr("f4", "user.a"); fails(os.getxattr, "f4", "user.a")
os.sync(); os.statvfs("."); os.close(here)
"#,
    );
}

#[test]
fn of_data_and_descriptors_both_recorders_tell_the_same() {
    same_of_python(
        "data",
        r#"
import fcntl, mmap, os
os.chdir("r/src")
file = os.open("f5", os.O_RDWR)
os.pread(file, 100, 50); os.pwrite(file, b"abc", 7); os.lseek(file, 10, os.SEEK_SET); os.lseek(file, -5, os.SEEK_END)
os.readv(file, [bytearray(3), bytearray(4)]); os.writev(file, [b"x"] * 40); os.preadv(file, [bytearray(9)] * 3, 1); os.pwritev(file, [b"12"], 2)
os.fsync(file); os.fdatasync(file); os.ftruncate(file, 9000); os.fchmod(file, 0o640); os.fchown(file, -1, -1); os.utime(file, (1, 2))
os.posix_fallocate(file, 0, 100); os.posix_fadvise(file, 0, 10, os.POSIX_FADV_WILLNEED)
fcntl.lockf(file, fcntl.LOCK_EX, 10, 5); fcntl.lockf(file, fcntl.LOCK_UN); fcntl.flock(file, fcntl.LOCK_SH); fcntl.flock(file, fcntl.LOCK_UN)
other = os.open("to", os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
os.sendfile(other, file, 3, 100); os.copy_file_range(file, other, 500, 0, 10); os.copy_file_range(file, other, 100)
again = os.dup(other); os.dup2(other, 40); os.set_inheritable(again, True); os.write(again, b"more"); os.close(other); os.write(40, b"more")
fcntl.fcntl(again, fcntl.F_GETFL); fcntl.fcntl(again, fcntl.F_SETFL, os.O_APPEND); fcntl.fcntl(again, fcntl.F_DUPFD_CLOEXEC, 50)
mapped = mmap.mmap(file, 4096); mapped[0]; mapped.close()
ends = os.pipe(); os.write(ends[1], b"through"); os.read(ends[0], 7)
os.closerange(40, 60)
if os.fork() == 0:
    os.execv("/bin/cat", ["cat", "f1", "f2"])
os.wait()
os.write(again, b"the last")
"#,
    );
}
