//! Logs, manifests and tables that were damaged at random: no panic, no hang.
//!
//! A small number by default; `REPLAYER_FUZZ_INPUTS` asks for more and `REPLAYER_FUZZ_SEED` for others.

use crate::common;

use common::{Imported, asked};
use replayer_trace::{Request, Trace, TraceError, import};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What an input of a few kilobytes may take, on a busy machine (chosen).
const LONGEST: Duration = Duration::from_secs(5);

const TOKENS: [&str; 46] = [
    " <unfinished ...>\n",
    "<... read resumed>",
    "<... close resumed>) = 0\n",
    ") = 0\n",
    ") = -1 ENOENT (No such file or directory)\n",
    "AT_FDCWD</r>",
    "(deleted)",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "0xffffffffffffffff",
    "/..",
    "/../../../",
    "\\377",
    "\\x00",
    "\\",
    "\"",
    "\"...",
    "[pid  7] ",
    "+++ exited with 0 +++\n",
    "+++ superseded by execve in pid 7 +++\n",
    "clone(child_stack=NULL, flags=CLONE_FILES|CLONE_FS) = 7\n",
    "vfork( <unfinished ...>\n",
    "dup2(3, 4) = 4\n",
    "close(3) = 0\n",
    "accept(0<socket:[1]>, NULL, NULL) = 5<socket:[2]> <0.000100>\n",
    "symlink(\"..\", \"/r/www\") = 0\n",
    "rename(\"/r/www\", \"/r/www/x\") = 0\n",
    "rename(\"/r\", \"/r/x\") = 0\n",
    "mkdir(\"/r/www\", 0755) = 0\n",
    "rmdir(\"/r\") = 0\n",
    "chdir(\"/r/loop/loop\") = 0\n",
    "inherited(3</r/d/f (deleted)>, 32770, 100, 5000, 12) = 0\n",
    "openat(AT_FDCWD, \"/r\", O_RDWR|O_TMPFILE, 0600) = 3</r/#9>(deleted)\n",
    "linkat(AT_FDCWD, \"/proc/self/fd/3\", AT_FDCWD, \"/r/g\", AT_SYMLINK_FOLLOW) = 0\n",
    "setxattr(\"/r/www\", \"system.posix_acl_access\", \"\\2\\0\\0\\0\", 4, 0) = 0\n",
    "unlink(\"www\") = 0\n",
    "O_CREAT|O_TRUNC",
    "O_DIRECTORY",
    "\t",
    ":",
    "12:34:56.789 ",
    "0.000001 ",
    "/* 99999999999 entries */",
    "NT_STATUS_OK\n",
    "fio version 2 iolog\n",
];

struct Random(u64);

impl Random {
    /// `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(6) {
        let at = random.below(bytes.len() + 1);
        let length = random.below(60);
        match random.below(8) {
            0 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            1 => bytes.truncate(at.max(bytes.len() / 2)),
            2 => drop(bytes.drain(at..(at + length).min(bytes.len()))),
            3 => {
                let copy = bytes[at..(at + length).min(bytes.len())].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 => {
                let from = random.below(other.len());
                let piece = other[from..(from + 4 * length).min(other.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let token = TOKENS[random.below(TOKENS.len())].bytes();
                bytes.splice(at..at, token);
            }
            6 => {
                // Another digit: descriptors, tasks and sizes get mixed up.
                if let Some(digit) = bytes[at..].iter().position(u8::is_ascii_digit) {
                    bytes[at + digit] = b'0' + u8::try_from(random.below(10)).unwrap();
                }
            }
            _ => {
                let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
                let (one, two) = (random.below(lines.len()), random.below(lines.len()));
                lines.swap(one, two);
                *bytes = lines.join(&b'\n');
            }
        }
    }
}

fn inputs() -> u64 {
    std::env::var("REPLAYER_FUZZ_INPUTS").map_or(1_500, |text| text.parse().unwrap())
}

fn seed() -> u64 {
    std::env::var("REPLAYER_FUZZ_SEED").map_or(1, |text| text.parse().unwrap())
}

/// What a call returns; it fails where the call takes too long twice: a machine may stand still once.
fn in_time<T>(input: u64, call: impl Fn() -> T) -> T {
    let mut took = Duration::ZERO;
    for _ in 0..2 {
        let begin = Instant::now();
        let result = call();
        took = begin.elapsed();
        if took < LONGEST {
            return result;
        }
    }
    panic!("input {input} of seed {} took {took:?}", seed())
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

fn format_of(name: &str) -> &'static str {
    match name.rsplit_once('.').unwrap().1 {
        "iolog" => "fio-iolog",
        "txt" => "dbench",
        _ => "strace",
    }
}

#[test]
fn damaged_logs_and_manifests_are_survived() {
    let corpus = corpus();
    let manifest = corpus
        .iter()
        .find(|(name, _)| name == "manifest.tsv")
        .unwrap()
        .1
        .clone();
    let logs: Vec<_> = corpus
        .iter()
        .filter(|(name, _)| name != "manifest.tsv")
        .collect();
    let asked = asked("").cwd("/r/www");
    let mut request = asked.request;
    let place = asked.folder.path().join("manifest.tsv");
    let mut random = Random(seed());
    let mut events = 0;
    for input in 0..inputs() {
        let (name, log) = logs[random.below(logs.len())];
        request.format = Some(format_of(name).to_owned());
        let other = &logs[random.below(logs.len())].1;
        let mut bytes = log.clone();
        damage(&mut random, &mut bytes, other);
        let mut tree = (random.below(3) > 0).then(|| manifest.clone());
        if let Some(tree) = tree.as_mut().filter(|_| random.below(2) == 0) {
            damage(&mut random, tree, other);
        }
        std::fs::write(&request.files[0], &bytes).unwrap();
        request.manifest = tree.map(|tree| {
            std::fs::write(&place, tree).unwrap();
            place.clone()
        });
        // A manifest that is none is refused; everything else is imported as far as it can be.
        events += in_time(input, || events_of(&request).unwrap_or(0));
    }
    assert!(events > 0);
}

/// Import, and forget what came of it but for the number of events.
fn events_of(request: &Request) -> Result<u64, TraceError> {
    let document = import(request, &mut |_| true)?;
    std::fs::remove_dir_all(&request.target).unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    Ok(document["counts"]["events"].as_u64().unwrap())
}

#[test]
fn damaged_tables_are_survived() {
    // What the Parquet library panics about is caught, and need not be shown.
    std::panic::set_hook(Box::new(|_| {}));
    let traces = good_traces();
    let tables: Vec<_> = traces.iter().flat_map(tables_of).collect();
    let mut random = Random(seed());
    let mut read = 0;
    for input in 0..inputs() {
        let (folder, name, good) = &tables[random.below(tables.len())];
        let mut bytes = good.clone();
        let half = bytes.len() / 2;
        match random.below(3) {
            // The footer steers everything else.
            0 => put_anything(&mut random, &mut bytes, half),
            // Pages.
            1 => {
                for _ in 0..=random.below(3) {
                    put_anything(&mut random, &mut bytes, 0);
                }
            }
            _ => {
                let (.., other) = &tables[random.below(tables.len())];
                damage(&mut random, &mut bytes, other);
            }
        }
        put_table(folder, name, &bytes);
        read += in_time(input, || rows_of(folder).unwrap_or(0));
        put_table(folder, name, good);
    }
    let _ = std::panic::take_hook();
    assert!(read > 0);
}

/// Put any byte into the half that begins at a place.
fn put_anything(random: &mut Random, bytes: &mut [u8], begin: usize) {
    let at = begin + random.below(bytes.len() / 2);
    bytes[at] = u8::try_from(random.below(256)).unwrap();
}

/// Put a table into a trace folder whose trace.json says that it is right.
fn put_table(folder: &Path, name: &str, bytes: &[u8]) {
    let sum = |bytes: &[u8]| format!("{:x}", Sha256::digest(bytes));
    std::fs::write(folder.join(format!("{name}.parquet")), bytes).unwrap();
    let place = folder.join("trace.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&place).unwrap()).unwrap();
    document["tables"][name] = json!({"bytes": bytes.len(), "sha256": sum(bytes)});
    let zeros = "0".repeat(64);
    document["checksum"] = json!(zeros);
    let text = document.to_string();
    let sum = sum(text.as_bytes());
    std::fs::write(&place, text.replacen(&zeros, &sum, 1)).unwrap();
}

/// How many rows the tables of a folder have in all.
fn rows_of(folder: &Path) -> Result<usize, TraceError> {
    let trace = Trace::open(folder)?;
    let mut rows = trace.paths()?.len() + trace.tree()?.len();
    rows += trace.edges()?.len() + trace.requests()?.len();
    let mut events = trace.tables().events(0)?;
    while events.next_event()?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

/// Traces that the corpus makes, whose tables have some kilobytes each.
fn good_traces() -> Vec<Imported> {
    let mut traces = Vec::new();
    for (name, log) in corpus() {
        if ["rsync.log", "sessions.log", "page.log", "job.iolog"].contains(&name.as_str()) {
            let mut asked = asked(log).cwd("/r/www");
            asked.request.format = Some(format_of(&name).to_owned());
            traces.push(asked.import());
        }
    }
    traces
}

/// The folder, the names and the bytes of the tables of a trace.
fn tables_of(trace: &Imported) -> impl Iterator<Item = (PathBuf, &'static str, Vec<u8>)> {
    let folder = trace.folder();
    assert!(rows_of(&folder).is_ok());
    ["events", "paths", "tree", "edges", "requests"]
        .map(|name| {
            let bytes = std::fs::read(folder.join(format!("{name}.parquet"))).unwrap();
            (folder.clone(), name, bytes)
        })
        .into_iter()
}

#[test]
fn the_corpus_is_understood() {
    let mut events = 0;
    for (name, log) in corpus() {
        if name != "manifest.tsv" {
            let mut asked = asked(log).cwd("/r/www");
            asked.request.format = Some(format_of(&name).to_owned());
            let trace = asked.import();
            assert_eq!(trace.count("/counts/lines_not_understood"), 0, "{name}");
            events += trace.events.len();
        }
    }
    assert!(events > 300, "{events}");
}
