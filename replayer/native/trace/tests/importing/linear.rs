//! Calls on names by several tasks, each taken at some moment between its entry and its return: the trace has an order that allows every result.

use crate::common;

use common::{Imported, asked};
use proptest::prelude::*;
use std::collections::BTreeSet;

const FILES: [&str; 5] = ["a", "b", "d/a", "d/b", "e/a"];
const DIRECTORIES: [&str; 2] = ["d", "e"];

#[derive(Debug, Clone)]
enum Do {
    Stat(usize),
    StatDirectory(usize),
    Open(usize),
    Create(usize),
    CreateAlone(usize),
    Unlink(usize),
    Rename(usize, usize),
    Mkdir(usize),
    Rmdir(usize),
}

/// Which names there are: what a file system does, without a line of the importer.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model(BTreeSet<String>);

impl Model {
    fn has_parent(&self, name: &str) -> bool {
        name.rsplit_once('/')
            .is_none_or(|(parent, _)| self.0.contains(parent))
    }

    /// Make a call: nothing, or the error.
    fn call(&mut self, call: &str, names: &[&str]) -> Result<(), &'static str> {
        let name = names[0];
        let there = self.0.contains(name);
        let parent = self.has_parent(name);
        match call {
            "stat" | "open" if there => Ok(()),
            "create" | "alone" | "mkdir" if !parent => Err("ENOENT"),
            "alone" | "mkdir" if there => Err("EEXIST"),
            "create" | "alone" | "mkdir" => {
                self.0.insert(name.to_owned());
                Ok(())
            }
            "unlink" if there => {
                self.0.remove(name);
                Ok(())
            }
            "rmdir" if there => {
                if self
                    .0
                    .iter()
                    .any(|other| other.starts_with(&format!("{name}/")))
                {
                    return Err("ENOTEMPTY");
                }
                self.0.remove(name);
                Ok(())
            }
            "rename" if there && self.has_parent(names[1]) => {
                self.0.remove(name);
                self.0.insert(names[1].to_owned());
                Ok(())
            }
            _ => Err("ENOENT"),
        }
    }
}

impl Do {
    fn name(&self) -> &'static str {
        match self {
            Self::Stat(_) | Self::StatDirectory(_) => "stat",
            Self::Open(_) => "open",
            Self::Create(_) => "create",
            Self::CreateAlone(_) => "alone",
            Self::Unlink(_) => "unlink",
            Self::Rename(..) => "rename",
            Self::Mkdir(_) => "mkdir",
            Self::Rmdir(_) => "rmdir",
        }
    }

    fn names(&self) -> Vec<&'static str> {
        match *self {
            Self::Stat(at)
            | Self::Open(at)
            | Self::Create(at)
            | Self::CreateAlone(at)
            | Self::Unlink(at) => vec![FILES[at]],
            Self::Rename(from, to) => vec![FILES[from], FILES[to]],
            Self::StatDirectory(at) | Self::Mkdir(at) | Self::Rmdir(at) => vec![DIRECTORIES[at]],
        }
    }

    /// As strace writes it: until the result, what it is called there, and what success returns.
    fn text(&self, fd: usize) -> (String, &'static str, String) {
        let names: Vec<String> = self
            .names()
            .iter()
            .map(|name| format!("\"/r/{name}\""))
            .collect();
        let open = |flags: &str| {
            (
                format!("openat(AT_FDCWD, {}, {flags}", names[0]),
                "openat",
                fd.to_string(),
            )
        };
        let plain = |name, rest: &str| {
            (
                format!("{name}({}{rest}", names.join(", ")),
                name,
                "0".to_owned(),
            )
        };
        match self {
            Self::Stat(_) | Self::StatDirectory(_) => plain("access", ", F_OK"),
            Self::Open(_) => open("O_RDONLY"),
            Self::Create(_) => open("O_RDWR|O_CREAT, 0644"),
            Self::CreateAlone(_) => open("O_RDWR|O_CREAT|O_EXCL, 0644"),
            Self::Unlink(_) => plain("unlink", ""),
            Self::Rename(..) => plain("rename", ""),
            Self::Mkdir(_) => plain("mkdir", ", 0755"),
            Self::Rmdir(_) => plain("rmdir", ""),
        }
    }
}

fn calls() -> impl Strategy<Value = Do> {
    let file = || 0..FILES.len();
    let directory = || 0..DIRECTORIES.len();
    prop_oneof![
        3 => file().prop_map(Do::Stat),
        1 => directory().prop_map(Do::StatDirectory),
        2 => file().prop_map(Do::Open),
        2 => file().prop_map(Do::Create),
        2 => file().prop_map(Do::CreateAlone),
        3 => file().prop_map(Do::Unlink),
        2 => (file(), file()).prop_filter("two names", |(one, other)| one != other).prop_map(|(one, other)| Do::Rename(one, other)),
        1 => directory().prop_map(Do::Mkdir),
        1 => directory().prop_map(Do::Rmdir),
    ]
}

/// A call, who makes it, and how long before and after the moment at which it takes effect it was entered and returned.
type Made = (Do, u64, u32, u32);

fn histories() -> impl Strategy<Value = (Vec<Made>, u8)> {
    let made = (calls(), 0..6_u64, 0..60_u32, 0..60_u32);
    (prop::collection::vec(made, 2..60), any::<u8>())
}

/// The names that are there at first, as bits say; directories where they are needed.
fn begin(bits: u8) -> Model {
    let all = FILES.iter().chain(&DIRECTORIES);
    let chosen = all.enumerate().filter(|(at, _)| bits >> at & 1 == 1);
    let mut there: BTreeSet<String> = chosen.map(|(_, name)| (*name).to_owned()).collect();
    for name in there.clone() {
        there.extend(name.split_once('/').map(|(parent, _)| parent.to_owned()));
    }
    Model(there)
}

fn manifest(model: &Model) -> String {
    let rows = model.0.iter().map(|name| {
        if DIRECTORIES.contains(&name.as_str()) {
            format!("{name}\td\t0\t755\t\n")
        } else {
            format!("{name}\tf\t5\t644\t\n")
        }
    });
    [".\td\t0\t755\t\n".to_owned()]
        .into_iter()
        .chain(rows)
        .collect()
}

/// The log of a history: every call takes effect at a hundred times its place, and its task is in no two calls at once.
fn log(history: &[Made], model: &Model) -> String {
    let mut model = model.clone();
    let mut lines: Vec<(u64, usize, String)> = Vec::new();
    for (at, (call, task, before, after)) in history.iter().enumerate() {
        let now = 100 * (at as u64 + 1);
        let of_task = |(_, made): &(usize, &Made)| made.1 == *task;
        let each = || history.iter().enumerate();
        let last = each()
            .take(at)
            .rfind(of_task)
            .map_or(0, |(at, _)| 100 * (at as u64 + 1));
        let next = each()
            .skip(at + 1)
            .find(of_task)
            .map_or(u64::MAX, |(at, _)| 100 * (at as u64 + 1));
        // At most half of the time to the task's other calls.
        let sooner = (u64::from(*before) * 20).min((now - last) / 2 - 1);
        let later = (u64::from(*after) * 20).clamp(1, (next - now) / 2);
        let (entered, returned) = (now - sooner, now + later);
        let (text, name, value) = call.text(at + 3);
        let result = match model.call(call.name(), &call.names()) {
            Ok(()) => value,
            Err(error) => format!("-1 {error} (…)"),
        };
        let pid = task + 1;
        lines.push((
            entered,
            2 * at,
            format!("{pid} TIME {text} <unfinished ...>"),
        ));
        lines.push((
            returned,
            2 * at + 1,
            format!("{pid} TIME <... {name} resumed>) = {result}"),
        ));
    }
    lines.sort();
    let begun = (2..5)
        .map(|pid| format!("1 1700000000.0 clone(child_stack=NULL, flags=SIGCHLD) = {pid}\n"));
    let stamped = lines
        .iter()
        .enumerate()
        .map(|(at, (_, _, line))| line.replace("TIME", &format!("1700000001.{at:06}")) + "\n");
    begun.chain(stamped).collect()
}

/// Whether each result is what the model returns, in an order of the events.
fn check(trace: &Imported, order: &[usize], model: &Model) -> Result<(), String> {
    let mut model = model.clone();
    for &row in order {
        let event = &trace.events[row];
        let names = [event.path, event.to_path].into_iter().flatten();
        let names: Vec<String> = names
            .map(|path| trace.paths[path as usize].clone())
            .collect();
        let names: Vec<&str> = names
            .iter()
            .map(|name| name.strip_prefix("r/").unwrap())
            .collect();
        let flags = event.flags.unwrap_or(0);
        let call = match event.op.name() {
            "access" => "stat",
            "open" if flags & 0o200 != 0 => "alone",
            "open" if flags & 0o100 != 0 => "create",
            other => other,
        };
        let error = match model.call(call, &names) {
            Ok(()) => 0,
            Err("ENOENT") => -2,
            Err("EEXIST") => -17,
            Err("ENOTEMPTY") => -39,
            Err(other) => panic!("{other}"),
        };
        if event.result.min(0) != error {
            return Err(format!(
                "row {row}: {} and not {error}, in {:?}",
                trace.line(event),
                trace.lines()
            ));
        }
    }
    Ok(())
}

/// An order that a replay may take: whoever of those that wait for nothing more comes first is chosen by a number.
fn replayed(trace: &Imported, mut seed: u64) -> Vec<usize> {
    let count = trace.events.len();
    let mut waits: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
    for &(to, from) in &trace.trace.edges().unwrap() {
        waits[usize::try_from(to).unwrap()].insert(usize::try_from(from).unwrap());
    }
    for (row, waits) in waits.iter_mut().enumerate() {
        let thread = trace.events[row].thread;
        let before = (0..row).rev().find(|&at| trace.events[at].thread == thread);
        waits.extend(before);
    }
    let mut order: Vec<usize> = Vec::new();
    let mut left: BTreeSet<usize> = (0..count).collect();
    while !left.is_empty() {
        let free: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&row| waits[row].is_disjoint(&left))
            .collect();
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let chosen = free[usize::try_from(seed >> 33).unwrap() % free.len()];
        left.remove(&chosen);
        order.push(chosen);
    }
    order
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_recorded_result_is_possible_in_the_order_of_the_trace_and_in_those_of_its_replays((history, bits) in histories()) {
        let model = begin(bits);
        let text = log(&history, &model);
        let trace = asked(&text).manifest(&manifest(&model)).import();
        prop_assert_eq!(trace.events.len(), history.len(), "{}", text);
        let rows: Vec<usize> = (0..trace.events.len()).collect();
        prop_assert_eq!(check(&trace, &rows, &model), Ok(()), "{}", text);
        for seed in 0..4 {
            prop_assert_eq!(check(&trace, &replayed(&trace, seed), &model), Ok(()), "{}", text);
        }
        prop_assert_eq!(trace.count("/counts/tree_repairs/unexplained"), 0, "{}", text);
    }
}
