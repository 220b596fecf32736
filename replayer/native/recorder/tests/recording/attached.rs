//! Processes that ran before their recording.

use crate::common::{command, lay_out, open_recorder, scratch, told, wait_until};
use std::fs;

/// Opens, dups and shares a file with a child, and then waits for the recording.
const SERVICE: &str = r#"
import os, time
def wait():
    open("ready", "a").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
file = os.open("r/src/f1", os.O_RDWR); os.lseek(file, 30, 0); again = os.dup(file)
alone = os.open("r/src/f2", os.O_RDONLY | os.O_CLOEXEC); os.lseek(alone, 7, 0)
ends = os.pipe()
if os.fork() == 0:
    os.read(ends[0], 1)
    os.read(file, 5); os.write(again, b"abc")
    os._exit(0)
wait()
os.write(ends[1], b"x"); os.wait()
os.read(again, 7); os.read(alone, 9); os.fsync(file)
"#;

#[test]
fn open_files_have_their_positions_and_those_who_share_them() {
    let home = scratch("attached");
    lay_out(&home);
    let log = home.join("log.bpf");
    let Some(mut recorder) = open_recorder(&log) else {
        return;
    };
    let mut service = command(&home, &["python3", "-S", "-E", "-c", SERVICE])
        .spawn()
        .unwrap();
    wait_until(|| home.join("ready").exists());
    let children =
        fs::read_to_string(format!("/proc/{0}/task/{0}/children", service.id())).unwrap();
    let mut family = vec![service.id()];
    family.extend(
        children
            .split_whitespace()
            .map(|child| child.parse::<u32>().unwrap()),
    );
    assert_eq!(family.len(), 2);
    recorder.attach_to(&family).unwrap();
    fs::write(home.join("go"), "").unwrap();
    service.wait().unwrap();
    wait_until(|| recorder.progress().unwrap().live == 0);
    recorder.finish().unwrap();
    let told = told(&home, &log, "bpf");
    let all: Vec<String> = told.threads.concat();
    let first = |what: &str| {
        all.iter()
            .filter(|deed| deed.starts_with(what))
            .cloned()
            .collect::<Vec<_>>()
    };
    let inherited = first("inherit");
    assert_eq!(inherited.len(), 2, "{all:#?}");
    assert!(
        inherited
            .iter()
            .any(|deed| deed.contains("r/src/f1") && deed.contains("at Some(30)")),
        "{inherited:#?}"
    );
    assert!(
        inherited
            .iter()
            .any(|deed| deed.contains("r/src/f2") && deed.contains("at Some(7)")),
        "{inherited:#?}"
    );
    // The child read from the description that its parent reads from, too: no other one was thought up.
    assert_eq!(first("read").len(), 3, "{all:#?}");
    assert!(
        first("read").iter().all(|deed| deed.contains("on r/src/f")),
        "{all:#?}"
    );
    assert_eq!(first("write").len(), 1);
    fs::remove_dir_all(&home).unwrap();
}

#[test]
fn processes_that_end_while_they_are_attached_to_are_not_waited_for() {
    let home = scratch("ending");
    let Some(mut recorder) = open_recorder(&home.join("log.bpf")) else {
        return;
    };
    for turn in 0..60 {
        let script = "while :; do :; done";
        let mut short = command(&home, &["timeout", "-s", "KILL"])
            .args([&format!("0.0{:02}", 1 + turn % 12), "sh", "-c", script])
            .spawn()
            .unwrap();
        recorder.attach_to(&[short.id()]).unwrap();
        recorder.attach_to(&[short.id()]).unwrap();
        short.wait().unwrap();
    }
    let mut ended = command(&home, &["true"]).spawn().unwrap();
    let status = format!("/proc/{}/status", ended.id());
    wait_until(|| fs::read_to_string(&status).unwrap().contains("(zombie)"));
    recorder.attach_to(&[ended.id()]).unwrap();
    wait_until(|| recorder.progress().unwrap().live == 0);
    ended.wait().unwrap();
    recorder.finish().unwrap();
}
