//! Calls that take longer than a limit: which calls are meant, and what file each is about.
//!
//! A file is found by names alone (links of /proc, the memory of who calls): nothing here waits for a mount.

use replayer_trace::bpf::{Record, RecordKind, call_names};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The word for every call on a file.
const ANY: &str = "any";
/// Calls that wait for others and not for a file system, or whose descriptor is none of a file.
const WAITING: [&str; 8] = [
    "accept", "accept4", "wait4", "waitpid", "futex", "flock", "fcntl", "fcntl64",
];
/// Calls whose names do not begin with the word for them (others end in `at`, `64`, `2` at most).
const OTHERWISE: [(&str, &str); 8] = [
    ("fstatat64", "stat"),
    ("creat", "open"),
    ("newfstatat", "stat"),
    ("statx", "stat"),
    ("faccessat", "access"),
    ("faccessat2", "access"),
    ("fchmodat", "chmod"),
    ("fchownat", "chown"),
];
const AT_FDCWD: u64 = 0xffff_ff9c;
const MOST_PATH: usize = 4096;
/// Numbers of 32-bit programs lie behind those of x86-64.
const MACHINE_CALLS: u16 = 512;

/// Which calls are waited for.
#[derive(Debug, Clone)]
pub struct CallLimit {
    /// For each number of a call: how long it may take.
    pub(crate) limits: Vec<u64>,
    /// The files meant are below these directories.
    roots: Vec<PathBuf>,
}

/// A call that took, or takes, longer than its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowCall {
    /// The thread.
    pub task: u32,
    /// The call.
    pub name: &'static str,
    /// So long until now, or until it returned.
    pub lasted_ns: u64,
    /// The file; None where it is not known.
    pub path: Option<Vec<u8>>,
    /// Whether it has not returned.
    pub is_pending: bool,
}

impl CallLimit {
    /// Wait for no call.
    #[must_use]
    pub fn none() -> Self {
        let limits = call_names().map(|_| u64::MAX).collect();
        Self {
            limits,
            roots: Vec::new(),
        }
    }

    /// Wait for calls that take longer than a limit. None where no call has such a name.
    #[must_use]
    pub fn of(word: &str, least_ns: u64, roots: Vec<PathBuf>) -> Option<Self> {
        let limit = |call: Option<(&str, &[u8])>| match call {
            Some((name, letters)) if is_meant(word, name, letters) => least_ns,
            _ => u64::MAX,
        };
        let limits: Vec<u64> = call_names().map(limit).collect();
        let is_known = limits.iter().any(|&limit| limit != u64::MAX);
        is_known.then_some(Self { limits, roots })
    }

    /// What a record tells of a call that took too long, if it is about a file that is meant.
    pub(crate) fn look_at(&self, bytes: &[u8]) -> Option<SlowCall> {
        let call = slow_call(&Record::read(bytes)?)?;
        let is_meant = call.path.as_ref().is_none_or(|path| {
            let path = Path::new(OsStr::from_bytes(path));
            self.roots.iter().any(|root| path.starts_with(root))
        });
        is_meant.then_some(call)
    }
}

fn is_meant(word: &str, name: &str, letters: &[u8]) -> bool {
    if word == name {
        return true;
    }
    if word == ANY {
        let has_file = letters.first() == Some(&b'd') || letters.contains(&b's');
        return has_file && !WAITING.contains(&name);
    }
    if let Some((_, own)) = OTHERWISE.iter().find(|(other, _)| *other == name) {
        return *own == word;
    }
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    stem == word || stem.strip_suffix("at") == Some(word)
}

/// What a record of a call tells, and /proc beside it. None where it is about no file.
pub(crate) fn slow_call(record: &Record<'_>) -> Option<SlowCall> {
    let (name, letters) = call_names().nth(usize::from(record.number))??;
    let is_pending = record.kind == RecordKind::Pending;
    let (descriptor, path) = if is_pending {
        arguments(record, letters)
    } else {
        let is_first = letters.first() == Some(&b'd');
        let path = letters.contains(&b's').then(|| record.path.to_vec());
        (is_first.then(|| record.number_at(0)), path)
    };
    let path = whereabouts(record.task, descriptor, path);
    // The descriptor of a close has gone already.
    let is_of_file = path.is_some() || letters.contains(&b's') || name == "close";
    is_of_file.then_some(SlowCall {
        task: record.task,
        name,
        lasted_ns: record.duration_ns,
        path,
        is_pending,
    })
}

/// The descriptor and the path that a call was entered with, from the task that is in it (`proc_pid_syscall(5)`).
fn arguments(record: &Record<'_>, letters: &[u8]) -> (Option<u64>, Option<Vec<u8>>) {
    let proc = PathBuf::from(format!("/proc/{}", record.task));
    let text = fs::read_to_string(proc.join("syscall")).unwrap_or_default();
    let mut words = text.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse::<u16>().ok());
    if number != Some(record.number % MACHINE_CALLS) {
        return (None, None);
    }
    let values: Vec<u64> = words
        .map_while(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    let is_first = letters.first() == Some(&b'd');
    let descriptor = is_first.then(|| values.first().copied()).flatten();
    let place = letters.iter().position(|&letter| letter == b's');
    let address = place.and_then(|place| values.get(place).copied());
    (
        descriptor,
        address.and_then(|address| text_at(&proc, address)),
    )
}

/// A string in the memory of a task.
fn text_at(proc: &Path, address: u64) -> Option<Vec<u8>> {
    let memory = File::open(proc.join("mem")).ok()?;
    let mut text = vec![0; MOST_PATH];
    // What lies behind it on the next page may not be there.
    let on_page = MOST_PATH - usize::try_from(address % 4096).ok()?;
    let count = memory
        .read_at(&mut text, address)
        .or_else(|_| memory.read_at(text.get_mut(..on_page).unwrap_or_default(), address));
    text.truncate(count.ok()?);
    let end = text.iter().position(|&byte| byte == 0)?;
    text.truncate(end);
    Some(text)
}

/// The absolute path of what a call is about; None where it is no file, or not known.
fn whereabouts(task: u32, descriptor: Option<u64>, path: Option<Vec<u8>>) -> Option<Vec<u8>> {
    if descriptor.is_none() && path.is_none() {
        return None;
    }
    if let Some(path) = path.as_ref().filter(|path| path.starts_with(b"/")) {
        return Some(path.clone());
    }
    let low = descriptor.map(|descriptor| descriptor & 0xffff_ffff);
    let link = match low.filter(|&low| low != AT_FDCWD) {
        Some(low) => format!("/proc/{task}/fd/{low}"),
        None => format!("/proc/{task}/cwd"),
    };
    let mut found = fs::read_link(link).ok()?.into_os_string().into_vec();
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        found.push(b'/');
        found.extend_from_slice(&path);
    }
    found.starts_with(b"/").then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(word: &str) -> Vec<&'static str> {
        let Some(limit) = CallLimit::of(word, 5, Vec::new()) else {
            return Vec::new();
        };
        let each = call_names().zip(&limit.limits);
        let mut names: Vec<_> = each
            .filter(|(_, limit)| **limit == 5)
            .filter_map(|(call, _)| call.map(|(name, _)| name))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[test]
    fn a_word_stands_for_all_calls_that_do_the_same() {
        assert_eq!(names("open"), ["creat", "open", "openat", "openat2"]);
        let stats = ["fstatat64", "newfstatat", "stat", "stat64", "statx"];
        assert_eq!(names("stat"), stats);
        assert_eq!(names("rename"), ["rename", "renameat", "renameat2"]);
        assert_eq!(names("fsync"), ["fsync"]);
        assert_eq!(names("getdents64"), ["getdents64"]);
        assert!(names("nonsense").is_empty());
        let any = names("any");
        assert!(any.contains(&"close") && any.contains(&"execve"));
        assert!(!any.contains(&"futex") && !any.contains(&"poll") && !any.contains(&"accept4"));
    }

    #[test]
    fn a_path_is_where_the_descriptor_or_the_working_directory_leads() {
        let own = std::process::id();
        let here = std::env::current_dir().unwrap();
        let found = whereabouts(own, None, Some(b"x".to_vec())).unwrap();
        assert_eq!(found, here.join("x").into_os_string().into_vec());
        let found = whereabouts(own, Some(AT_FDCWD), Some(b"/y".to_vec())).unwrap();
        assert_eq!(found, b"/y");
        assert_eq!(whereabouts(own, Some(999_999), None), None);
        assert_eq!(whereabouts(own, None, None), None);
    }
}
