//! Plans that name traces: what is refused, and what is laid out.

use crate::error::Error;
use crate::layout::{Work, start};
use crate::plan::parse_plan;
use crate::program::{Program, Step};
use crate::replay::compile::tests::imported;
use replayer_trace::Trace;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

const LOG: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/up/a\", O_RDWR|O_TRUNC) = 3 <0.000010>
10 1700000000.000100 write(3, \"\"..., 100) = 100 <0.000010>
10 1700000000.000200 close(3) = 0 <0.000010>
10 1700000000.000300 stat(\"/replayer/request/page\", 0x7ff) = -1 ENOENT (No such file or directory) <0.000010>
10 1700000000.000400 unlink(\"/r/own/x\") = 0 <0.000010>
10 1700000000.000500 rmdir(\"/r/own\") = 0 <0.000010>
10 1700000000.000600 stat(\"/r/to_a\", {st_mode=S_IFREG|0600, ...}) = 0 <0.000010>
10 1700000000.000700 stat(\"/replayer/request/end\", 0x7ff) = -1 ENOENT (No such file or directory) <0.000010>
";
const MANIFEST: &str = "\
up\td\t0\t755\t
up/a\tf\t50\t640\t
own\td\t0\t700\t
own/x\tf\t7\t600\t
to_a\tl\t0\t777\tup/a
page.php\tf\t20\t644\t
";

fn document(sha256: &str, requests: &[Value]) -> Value {
    let steps = requests.iter().map(|request| {
        json!({"do": "replay", "trace": 0, "request": request, "pace": "asap", "speed_percent": 100})
    });
    json!({
        "format": 1, "name": "replay", "seed": 7, "users": 2, "written": "random", "pool_bytes": 65536,
        "tables": [], "datasets": [], "pickers": [],
        "traces": [{"name": "front", "directory": "in/front", "sha256": sha256}],
        "transactions": [{"name": "page", "steps": steps.collect::<Vec<_>>()}], "mix": [1],
        "pace": {"kind": "closed", "think": {"const": 0}},
        "stop": {"duration_ns": null, "transactions": 1}, "warm_up_ns": 0,
    })
}

fn opened(trace: &Path, requests: &[Value]) -> Result<Program, String> {
    let sha256 = Trace::open(trace).unwrap().sha256();
    let mut program = parse_plan(document(&sha256, requests).to_string().as_bytes()).unwrap();
    let folders = [trace.to_str().unwrap().to_owned()];
    let audience = program.audience();
    let opened = program.replays.open(&folders, audience);
    opened.map(|()| program).map_err(|error| error.to_string())
}

/// Everything below a folder, with sizes of files and targets of links.
fn listed(top: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let status = fs::symlink_metadata(&path).unwrap();
            let told = if status.is_dir() {
                waiting.push(path.clone());
                "d".to_owned()
            } else if status.is_symlink() {
                fs::read_link(&path).unwrap().to_str().unwrap().to_owned()
            } else {
                status.len().to_string()
            };
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            all.insert(name, told);
        }
    }
    all
}

fn laid_out(program: Program) -> BTreeMap<String, String> {
    let program = Arc::new(program);
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        OwnedFd::from(
            fs::OpenOptions::new()
                .read(true)
                .open(folder.path())
                .unwrap(),
        )
    };
    start(Work::LayOut, open(), &program, 2)
        .wait()
        .unwrap()
        .unwrap();
    let finding = start(Work::Verify, open(), &program, 2)
        .wait()
        .unwrap()
        .unwrap();
    assert_eq!((finding.mismatches, finding.first_mismatch), (0, None));
    listed(folder.path())
}

fn expected(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    let entries = entries.iter();
    entries
        .map(|(path, told)| ((*path).to_owned(), (*told).to_owned()))
        .collect()
}

const SHARED: [(&str, &str); 4] = [
    ("in", "d"),
    ("in/front", "d"),
    ("in/front/r", "d"),
    ("in/front/r/up", "d"),
];

#[test]
fn a_whole_trace_is_laid_out_with_the_own_files_of_every_user() {
    let (_folder, trace) = imported(LOG, MANIFEST);
    let program = opened(&trace, &[Value::Null]).unwrap();
    let mut all = SHARED.to_vec();
    all.extend([
        ("in/front/r/own", "d"),
        ("in/front/r/own/x", "7"),
        ("in/front/r/own~1", "d"),
        ("in/front/r/own~1/x", "7"),
        ("in/front/r/to_a", "up/a"),
        ("in/front/r/to_a~1", "up/a~1"),
        ("in/front/r/up/a", "50"),
        ("in/front/r/up/a~1", "50"),
    ]);
    assert_eq!(laid_out(program), expected(&all));
}

#[test]
fn requests_bring_their_own_files_themselves() {
    let (_folder, trace) = imported(LOG, MANIFEST);
    let program = opened(&trace, &[json!("page")]).unwrap();
    assert_eq!(laid_out(program), expected(&SHARED));
}

#[test]
fn reels_are_made_once_for_all_steps_that_name_them() {
    let (_folder, trace) = imported(LOG, MANIFEST);
    let program = opened(&trace, &[json!("page"), json!("page"), Value::Null]).unwrap();
    assert_eq!(program.replays.needs().unwrap().lanes, 1);
    let steps = program.transactions[0].steps.iter();
    let reels: Vec<_> = steps
        .map(|step| match step {
            Step::Replay(replay) => Arc::as_ptr(&program.replays.replay_programs(replay)[0]),
            _ => panic!("a step of another kind"),
        })
        .collect();
    assert_eq!(reels[0], reels[1]);
    assert_ne!(reels[0], reels[2]);
}

#[test]
fn a_label_that_the_trace_has_not_is_refused() {
    let (_folder, trace) = imported(LOG, MANIFEST);
    let refusal = opened(&trace, &[json!("pag")]).unwrap_err();
    assert_eq!(
        refusal,
        "plan: traces[0]: has no request \"pag\"; it has: page"
    );
}

#[test]
fn another_trace_than_the_plan_names_is_refused() {
    let (_folder, trace) = imported(LOG, MANIFEST);
    let text = document(&"0".repeat(64), &[Value::Null]).to_string();
    let mut program = parse_plan(text.as_bytes()).unwrap();
    let folders = [trace.to_str().unwrap().to_owned()];
    let audience = program.audience();
    let refusal = program
        .replays
        .open(&folders, audience)
        .unwrap_err()
        .to_string();
    assert!(refusal.contains("plan: traces[0]: "), "{refusal}");
    assert!(refusal.contains("SHA-256"), "{refusal}");
    let refusal = program.replays.open(&[], audience).unwrap_err().to_string();
    assert_eq!(
        refusal,
        "plan: traces: needs the folders of 1 traces, got 0"
    );
}

/// Two names, one of which is the other one of a second user.
const ALIKE: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/r/a\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3 <0.000010>
10 1700000000.000100 close(3) = 0 <0.000010>
10 1700000000.000200 stat(\"/r/a~1\", 0x7ffc) = -1 ENOENT (No such file or directory) <0.000010>
";

#[test]
fn names_that_look_like_those_of_others_are_refused_where_there_are_others() {
    let (_folder, trace) = imported(ALIKE, "");
    let sha256 = Trace::open(&trace).unwrap().sha256();
    let folders = [trace.to_str().unwrap().to_owned()];
    let whole = document(&sha256, &[Value::Null]);
    let twice = document(&sha256, &[Value::Null, Value::Null]);
    let by = |document: &Value, users: u32, loops: Value| {
        let mut document = document.clone();
        document["users"] = json!(users);
        document["stop"]["transactions"] = loops;
        document["stop"]["duration_ns"] = json!(1_000_000_000);
        let mut program = parse_plan(document.to_string().as_bytes()).unwrap();
        let audience = program.audience();
        program.replays.open(&folders, audience)
    };
    by(&whole, 1, json!(1)).unwrap();
    for (document, users, loops) in [
        (&whole, 2, json!(1)),
        (&whole, 1, json!(2)),
        (&whole, 1, Value::Null),
        (&twice, 1, json!(1)),
    ] {
        let refusal = by(document, users, loops).unwrap_err();
        let Error::Hinted { message, hint } = refusal else {
            panic!("{refusal}")
        };
        assert!(
            message.ends_with("r/a~1 is their name for r/a"),
            "{message}"
        );
        assert!(message.starts_with(&folders[0]), "{message}");
        assert!(hint.contains("-u 1 --loops 1"), "{hint}");
    }
}
