//! Files that are made through symlinks that lead to nothing yet.

use super::tests::{imported, source_of};
use super::{compile_requests, compile_whole};
use crate::replay::names::Names;

const DANGLING: &str = r#"10 1700000000.000000 openat(AT_FDCWD, "/r/l", O_WRONLY|O_CREAT|O_APPEND, 0640) = 3 <0.000010>
10 1700000000.000100 write(3, ""..., 300) = 300 <0.000010>
10 1700000000.000200 access("/replayer/request/second", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000300 stat("/r/d/t", {st_mode=S_IFREG|0640, st_size=300, ...}) = 0 <0.000010>
10 1700000000.000400 openat(AT_FDCWD, "/r/l", O_WRONLY|O_CREAT|O_APPEND, 0640) = 4 <0.000010>
10 1700000000.000500 access("/replayer/request/end", F_OK) = -1 ENOENT (No such file or directory) <0.000010>
"#;
const TREE: &str = "d\td\t0\t755\t\nl\tl\t0\t777\tm\nm\tl\t0\t777\td/t\n";

fn laid_out(names: &Names, replay_program: &super::ReplayProgram) -> Vec<String> {
    let entries = names.entries(replay_program);
    let shown = entries.map(|ready| {
        let link = String::from_utf8_lossy(&ready.link).into_owned();
        format!("{} {} {link}", ready.path.to_string_lossy(), ready.size)
    });
    shown.collect()
}

#[test]
fn each_performance_has_its_links_and_what_is_made_behind_them() {
    let (_folder, trace) = imported(DANGLING, TREE);
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let names = Names::new(&replay_program.paths, 1, 2);
    assert_eq!(
        laid_out(&names, &replay_program),
        ["t/r/l~1.2 0 m~1.2", "t/r/m~1.2 0 d/t~1.2"]
    );
    let tops = names
        .tops(&replay_program)
        .map(|(_, top)| top.to_str().unwrap());
    let mut tops: Vec<_> = tops.collect();
    tops.sort_unstable();
    assert_eq!(tops, ["t/r/d/t~1.2", "t/r/l~1.2", "t/r/m~1.2"]);
}

#[test]
fn a_request_finds_what_was_made_behind_a_link_before_it() {
    let (_folder, trace) = imported(DANGLING, TREE);
    let replay_programs = compile_requests(&source_of(&trace), "second").unwrap();
    let [replay_program] = &replay_programs[..] else {
        panic!("one request")
    };
    let names = Names::new(&replay_program.paths, 1, 0);
    assert_eq!(
        laid_out(&names, replay_program),
        ["t/r/d/t~1 300 ", "t/r/l~1 0 m~1", "t/r/m~1 0 d/t~1"]
    );
}
