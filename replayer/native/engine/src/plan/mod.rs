//! Plan format 1 (replayer/plan/FORMAT.md): from a JSON document to a checked program.
//! Refuses anything that is unknown or out of bounds; touches no file system.

mod check;
mod datasets;

use crate::call::Call;
use crate::document::{
    Fault, LARGEST, Number, Object, Parsed, integer, json, nullable, read, refused, take, text,
};
use crate::error::{Error, Result};
use crate::path::plain_path;
use crate::program::{
    Content, Dataset, Draw, EntryKind, Identity, NamedTrace, Naming, Pace, Program, Replays, SLOTS,
    SlotId, Step, StepCall, Timed, Transaction, Weights,
};
use crate::verify::is_empty;
use check::Check;
use datasets::{DatasetDocument, PickerDocument, content};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value, json as value};

/// At most this many transactions (the numbers above are left to interactive users).
pub(crate) const TRANSACTIONS: usize = 4096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(deserialize_with = "integer::<_, _, 1, 1>")]
    #[expect(dead_code, reason = "read by itself before all others")]
    format: u64,
    #[serde(deserialize_with = "name")]
    #[expect(dead_code, reason = "nothing that runs asks for it")]
    name: String,
    #[serde(deserialize_with = "integer::<_, _, 0, { u64::MAX }>")]
    seed: u64,
    #[serde(default, deserialize_with = "draws")]
    draws: Option<u64>,
    #[serde(deserialize_with = "integer::<_, _, 1, { 1 << 24 }>")]
    users: u32,
    #[serde(deserialize_with = "content")]
    written: Content,
    #[serde(deserialize_with = "integer::<_, _, 4096, { 1 << 34 }>")]
    pool_bytes: u64,
    tables: Vec<Vec<Number>>,
    datasets: Vec<Object<DatasetDocument>>,
    #[serde(default)]
    traces: Vec<Object<NamedTrace>>,
    pickers: Vec<PickerDocument>,
    transactions: Vec<Object<Transaction>>,
    mix: Vec<u32>,
    #[serde(default)]
    roles: Vec<(u32, Vec<u32>)>,
    #[serde(default)]
    verify: bool,
    pace: Pace,
    stop: Object<Stop>,
    #[serde(deserialize_with = "integer::<_, _, 0, LARGEST>")]
    #[expect(dead_code, reason = "whoever leads the run asks for it")]
    warm_up_ns: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stop {
    #[serde(deserialize_with = "nullable")]
    #[expect(dead_code, reason = "whoever leads the run asks for it")]
    duration_ns: Option<Number>,
    #[serde(deserialize_with = "nullable")]
    transactions: Option<Number>,
}

fn draws<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<u64>, D::Error> {
    integer::<_, _, 0, { u64::MAX }>(deserializer).map(Some)
}

fn name<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    let name = text(deserializer)?;
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let starts = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if starts && name.bytes().all(fits) {
        return Ok(name);
    }
    Err(D::Error::custom(refused(
        "a name like [a-z0-9][a-z0-9_-]*",
        &name,
    )))
}

impl Program {
    /// Read a plan, and open the traces that it replays.
    ///
    /// # Errors
    /// It is no plan of format 1, or a trace does not fit it.
    pub fn parse(document: &[u8], traces: &[String]) -> Result<Program> {
        let mut program = parse_plan(document)?;
        let audience = program.audience();
        program.replays.open(traces, audience)?;
        program.verify = program.verify.map(Identity::drawn);
        Ok(program)
    }
}

pub(crate) fn parse_plan(document: &[u8]) -> Result<Program> {
    let program = json(document).and_then(|value| {
        // Another format may have other keys.
        format(&value)?;
        read(value).and_then(|Object(document)| program(document))
    });
    program.map_err(|fault| Error::value(format!("plan: {fault}")))
}

fn format(value: &Value) -> Parsed<()> {
    match value.get("format") {
        Some(format) => integer::<_, u64, 1, 1>(format)
            .map(|_| ())
            .map_err(|error| Fault::new(error.to_string()).at(".format")),
        None => Ok(()),
    }
}

fn program(document: Document) -> Parsed<Program> {
    let users = document.users;
    let tables = each(document.tables, "tables", |table| match &*table {
        [] => Err(Fault::new("must be a list of at least one number, got []")),
        numbers => Ok(numbers.iter().map(|number| number.0).collect()),
    })?;
    let datasets = each(document.datasets, "datasets", |dataset| dataset.0.dataset())?;
    let traces: Vec<NamedTrace> = document.traces.into_iter().map(|trace| trace.0).collect();
    datasets::check_apart(&datasets, &traces)?;
    let pickers = each(document.pickers, "pickers", |picker| {
        picker.picker(&datasets, users)
    })?;
    let replays = Replays::of(traces);
    let transactions = document.transactions.into_iter();
    let transactions: Vec<Transaction> = transactions.map(|each| each.0).collect();
    let mut check = Check::new(&tables, &datasets, pickers.len(), replays);
    check.transactions(&transactions)?;
    check
        .draw(document.pace.draw())
        .map_err(|fault| fault.at(".pace"))?;
    check
        .pool(document.pool_bytes)
        .map_err(|fault| fault.at(".pool_bytes"))?;
    let (read_bytes, replays) = (check.read_bytes, check.replays);
    let count = transactions.len();
    let verify = if document.verify {
        let contents = (&*datasets, document.written);
        let identity = identity(&replays, contents, &transactions);
        Some(identity.map_err(|fault| fault.at(".verify"))?)
    } else {
        None
    };
    Ok(Program {
        seed: document.seed,
        draws: document.draws.unwrap_or(document.seed),
        users,
        written: document.written,
        pool_bytes: document.pool_bytes,
        mix: mix(document.mix, count).map_err(|fault| fault.at(".mix"))?,
        roles: roles(document.roles, users, count)?,
        transactions_per_user: document.stop.0.transactions.map(|number| number.0),
        read_bytes,
        verify,
        tables,
        datasets,
        replays,
        pickers,
        transactions,
        pace: document.pace,
    })
}

fn mix(mix: Vec<u32>, transactions: usize) -> Parsed<Weights> {
    if mix.len() != transactions {
        return Err(Fault::new(format!(
            "must hold one weight a transaction ({transactions}), got {}",
            mix.len()
        )));
    }
    Weights::of(mix.into_iter().map(u64::from)).map_err(Fault::new)
}

fn roles(roles: Vec<(u32, Vec<u32>)>, users: u32, count: usize) -> Parsed<Vec<(u32, Weights)>> {
    let mut end = 0;
    each(roles, "roles", |(many, weights)| {
        let rest = users - end;
        if many > rest {
            let what = format!("an integer from 0 to {rest}");
            return Err(Fault::new(refused(what, &many)).at("[0]"));
        }
        end += many;
        let weights = mix(weights, count).map_err(|fault| fault.at("[1]"))?;
        Ok((end, weights))
    })
}

/// What becomes of every item of a list.
fn each<T, U>(items: Vec<T>, key: &str, mut make: impl FnMut(T) -> Parsed<U>) -> Parsed<Vec<U>> {
    let items = items.into_iter().enumerate();
    let results = items
        .map(|(index, item)| make(item).map_err(|fault| fault.at(format_args!(".{key}[{index}]"))));
    results.collect()
}

/// How files are told apart.
fn identity(
    replays: &Replays,
    (datasets, written): (&[Dataset], Content),
    transactions: &[Transaction],
) -> Parsed<Identity> {
    if !replays.traces.is_empty() {
        return Err(Fault::new("replays are checked against their traces"));
    }
    let contents = datasets.iter().map(|dataset| dataset.content);
    if contents.chain([written]).any(is_empty) {
        let message = "zeros cannot say whose they are: contents must be random or compressible";
        return Err(Fault::new(message));
    }
    let mut names = Names::default();
    for transaction in transactions {
        names.look(&transaction.steps);
    }
    let mut entries = datasets.iter().flat_map(|dataset| &dataset.entries);
    let has_links = entries.any(|entry| entry.kind == EntryKind::Link);
    let moves = names.renames && names.directories;
    let naming = if moves || names.links || has_links {
        Naming::Names
    } else {
        Naming::Paths
    };
    Ok(Identity { run: 0, naming })
}

/// What the steps of a plan do with names.
#[derive(Debug, Default)]
struct Names {
    renames: bool,
    directories: bool,
    links: bool,
}

impl Names {
    /// Nesting is bounded by the plan's parser.
    fn look(&mut self, steps: &[Step]) {
        for step in steps {
            if let Step::Call(timed) = step {
                self.call(&timed.call);
            }
            for inner in step.blocks() {
                self.look(inner);
            }
        }
    }

    fn call(&mut self, call: &StepCall) {
        match call {
            StepCall::Plain(Call::Symlink { .. }) => self.links = true,
            StepCall::Plain(Call::Rename { .. }) => self.renames = true,
            StepCall::Plain(Call::Mkdir { .. }) => self.directories = true,
            _ => {}
        }
    }
}

/// The slots that hold the paths of an interactive command.
pub(crate) const PATH_SLOT: u8 = 16;
const _: () = assert!(SLOTS == 16);
pub(crate) const TO_SLOT: u8 = PATH_SLOT + 1;

/// Operands that a command may give as plain numbers, where a plan has draws.
const NUMBERS: [&str; 5] = ["size", "offset", "total", "first", "block"];

#[derive(Debug)]
pub(crate) enum Command {
    Begin(String),
    End { name: String, failed: bool },
    Call { timed: Box<Timed>, texts: Texts },
}

/// The paths that an interactive command spells out.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) path: Option<String>,
    pub(crate) to: Option<String>,
}

/// Parse a command; a single write or read may have at most so many bytes.
pub(crate) fn parse_command(document: &[u8], write_bytes: u64, read_bytes: u64) -> Result<Command> {
    let command = json(document).map_err(|fault| Error::value(format!("command: {fault}")))?;
    let command = command_of(command, write_bytes, read_bytes);
    command.map_err(|fault| Error::value(fault.told()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    #[serde(deserialize_with = "text")]
    begin: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    #[serde(deserialize_with = "text")]
    end: String,
    failed: bool,
}

#[derive(Deserialize)]
struct Path(#[serde(deserialize_with = "spelled")] String);

/// A path that an interactive command spells out.
fn spelled<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(path) if path == "." => Ok(path),
        path => plain_path(path).map_err(serde::de::Error::custom),
    }
}

fn command_of(command: Value, write_bytes: u64, read_bytes: u64) -> Parsed<Command> {
    if command.get("begin").is_some() {
        return read(command).map(|Begin { begin }| Command::Begin(begin));
    }
    if command.get("end").is_some() {
        return read(command).map(|End { end: name, failed }| Command::End { name, failed });
    }
    let (timed, texts) = call(read(command)?)?;
    let mut check = Check::new(&[], &[], 0, Replays::default());
    check.read_bytes = 0;
    check.operands(&timed.call)?;
    for (what, bytes, most) in [
        ("write", check.write_bytes, write_bytes),
        ("read", check.read_bytes, read_bytes),
    ] {
        if bytes > most {
            return Err(Fault::new(format!(
                "a single {what} must be at most {most} bytes, got {bytes}"
            )));
        }
    }
    let timed = Box::new(timed);
    Ok(Command::Call { timed, texts })
}

/// Read a call as a plan has it, with slots for its paths and draws for its numbers.
fn call(mut fields: Map<String, Value>) -> Parsed<(Timed, Texts)> {
    fields.remove("do");
    let texts = Texts {
        path: spell(&mut fields, "path")?,
        to: spell(&mut fields, "to")?,
    };
    let is_seek = fields.get("op").is_some_and(|op| op == "lseek");
    let mut back = None;
    for key in NUMBERS {
        if let Some(given) = fields.get(key).filter(|given| given.is_number()) {
            let least = if is_seek { i64::MIN } else { 0 };
            let number = given.as_i64().filter(|number| *number >= least);
            let number = number.ok_or_else(|| {
                let what = format!("an integer from {least} to {}", i64::MAX);
                Fault::new(refused(what, given)).at(format_args!(".{key}"))
            })?;
            if number < 0 {
                back = Some(Draw::Const(number.cast_unsigned()));
            }
            fields.insert(key.to_owned(), value!({"const": number.max(0)}));
        }
    }
    let mut timed = Timed::of(&mut fields)?;
    match (&mut timed.call, back) {
        (StepCall::Plain(Call::Open { slot: None, .. }), _) => {
            return Err(Fault::new("missing field `slot`"));
        }
        (StepCall::Plain(Call::Lseek { offset, .. }), Some(back)) => *offset = back,
        _ => {}
    }
    let paths = timed.call.paths().into_iter().flatten();
    for (slot, number) in paths.zip([PATH_SLOT, TO_SLOT]) {
        *slot = SlotId(number);
    }
    Ok((timed, texts))
}

/// Take a path that is spelled out, and leave a slot in its place. (The `to` of a copy is a slot.)
fn spell(fields: &mut Map<String, Value>, key: &str) -> Parsed<Option<String>> {
    if !fields.contains_key(key) || fields.contains_key("file") {
        return Ok(None);
    }
    let Path(path) = take(fields, key)?;
    fields.insert(key.to_owned(), Value::from(0));
    Ok(Some(path))
}
