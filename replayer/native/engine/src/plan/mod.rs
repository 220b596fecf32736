//! Plan format 1 (replayer/plan/FORMAT.md): from a JSON document to a checked program.
//! Refuses anything that is unknown or out of bounds; touches no file system.

mod calls;
mod datasets;
mod draws;
mod looks;
mod operands;
mod parts;
mod replays;
mod steps;
mod value;
mod verify;

mod commands;

pub(crate) use calls::OPEN_FLAGS;
pub(crate) use commands::{Command, parse_command};
pub(crate) use operands::{PATH_SLOT, TO_SLOT, Texts};

use crate::error::{Error, Result};
use crate::program::{Draw, NamedTrace, Pace, Program, Replays, Transaction, Weights};
use draws::{draw, weights};
use serde_json::Value;
use value::{Fault, Fields, Parsed, integer, list, nullable, refuse, small, text, tuple};

/// At most this many transactions (the numbers above are left to interactive users).
pub(crate) const TRANSACTIONS: usize = 4096;

/// The parts of a plan that others refer to by number, and what reading the steps finds out.
pub(crate) struct Context<'a> {
    tables: &'a [Box<[u64]>],
    datasets: usize,
    pickers: usize,
    /// The traces, and the groups of reels that steps have named so far.
    replays: Replays,
    /// Largest size of an entry.
    largest: u64,
    /// Largest single write and read seen so far.
    write_bytes: u64,
    read_bytes: u64,
}

/// Parse and check a document.
pub(crate) fn parse_plan(document: &[u8]) -> Result<Program> {
    let value: Value = serde_json::from_slice(document)
        .map_err(|error| Error::value(format!("plan: is no JSON document: {error}")))?;
    parse_document(&value).map_err(|fault| Error::value(fault.render()))
}

const KEYS: &[&str] = &[
    "format",
    "name",
    "seed",
    "users",
    "written",
    "pool_bytes",
    "tables",
    "datasets",
    "traces",
    "pickers",
    "transactions",
    "mix",
    "roles",
    "verify",
    "pace",
    "stop",
    "warm_up_ns",
];

fn parse_document(value: &Value) -> Parsed<Program> {
    let fields = Fields::of(value)?;
    fields.take("format", |value| integer(value, 1, 1))?;
    let fields = fields.only(KEYS)?;
    let users = fields.take("users", |value| integer(value, 1, 1 << 24))?;
    let users = u32::try_from(users).unwrap_or(u32::MAX);
    let tables = fields.take("tables", |value| list(value, draws::table))?;
    let datasets = fields.take("datasets", |value| list(value, datasets::dataset))?;
    let traces = traces(fields)?;
    datasets::check_apart(&datasets, &traces)?;
    let pickers = fields.take("pickers", |value| {
        list(value, |value| datasets::picker(value, &datasets, users))
    })?;
    let mut context = Context {
        tables: &tables,
        datasets: datasets.len(),
        pickers: pickers.len(),
        replays: Replays::of(traces),
        largest: datasets::largest_entry(&datasets),
        write_bytes: 0,
        read_bytes: 1 << 16,
    };
    let transactions = fields.take("transactions", |value| transactions(value, &mut context))?;
    let pace = fields.take("pace", |value| pace(value, &context))?;
    let (write_bytes, read_bytes) = (context.write_bytes, context.read_bytes);
    let replays = context.replays;
    let written = fields.take("written", datasets::content)?;
    let verify = verify::identity(fields, &replays, (&datasets, written), &transactions)?;
    fields.take("name", name)?;
    let program = Program {
        seed: fields.take("seed", |value| integer(value, 0, u64::MAX))?,
        users,
        written,
        pool_bytes: fields.take("pool_bytes", |value| pool_bytes(value, write_bytes))?,
        mix: fields.take("mix", |value| mix(value, transactions.len()))?,
        roles: roles(fields, users, transactions.len())?,
        transactions_per_user: fields.take("stop", stop)?,
        read_bytes,
        verify,
        tables,
        datasets,
        replays,
        pickers,
        transactions,
        pace,
    };
    fields.take("warm_up_ns", |value| integer(value, 0, draws::LARGEST))?;
    Ok(program)
}

fn traces(fields: Fields) -> Parsed<Vec<NamedTrace>> {
    if !fields.has("traces") {
        return Ok(Vec::new());
    }
    fields.take("traces", |value| list(value, replays::trace))
}

fn name(value: &Value) -> Parsed<()> {
    let name = text(value)?;
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let starts = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !starts || !name.bytes().all(fits) {
        return refuse("a name like [a-z0-9][a-z0-9_-]*", value);
    }
    Ok(())
}

fn pool_bytes(value: &Value, write_bytes: u64) -> Parsed<u64> {
    let bytes = integer(value, 4096, 1 << 34)?;
    if bytes % 8 != 0 {
        return refuse("a multiple of 8", value);
    }
    let least = write_bytes.saturating_add(4096);
    if bytes < least {
        return refuse(
            &format!("at least {least} (the largest single write + 4096)"),
            value,
        );
    }
    Ok(bytes)
}

fn transactions(value: &Value, context: &mut Context) -> Parsed<Vec<Transaction>> {
    let transactions = list(value, |value| {
        let fields = Fields::of(value)?.only(&["name", "steps"])?;
        let name = fields.take("name", text)?.to_owned();
        let steps = fields.take("steps", |value| steps::steps(value, context, 0))?;
        Ok(Transaction { name, steps })
    })?;
    if transactions.is_empty() || transactions.len() > TRANSACTIONS {
        return Err(Fault::new(format!(
            "must hold 1 to {TRANSACTIONS} transactions, got {}",
            transactions.len()
        )));
    }
    let mut names: Vec<&str> = transactions
        .iter()
        .map(|known| known.name.as_str())
        .collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        if let [one, other] = pair
            && one == other
        {
            return Err(Fault::new(format!(
                "two transactions have the name {one:?}"
            )));
        }
    }
    Ok(transactions)
}

fn mix(value: &Value, transactions: usize) -> Parsed<Weights> {
    let mix = list(value, |value| integer(value, 0, u64::from(u32::MAX)))?;
    if mix.len() != transactions {
        return Err(Fault::new(format!(
            "must hold one weight a transaction ({transactions}), got {}",
            mix.len()
        )));
    }
    weights(&mix)
}

fn roles(fields: Fields, users: u32, transactions: usize) -> Parsed<Vec<(u32, Weights)>> {
    if !fields.has("roles") {
        return Ok(Vec::new());
    }
    let mut end = 0;
    fields.take("roles", |value| {
        list(value, |value| {
            let [count, weights] = tuple(value)?;
            end += small(count, users - end)?;
            Ok((end, mix(weights, transactions)?))
        })
    })
}

/// Makes a pace of its time.
type MakePace = fn(Draw) -> Pace;

/// Kinds of pace: the operand of each, and what becomes of it.
const PACES: [(&str, (&str, MakePace)); 3] = [
    ("closed", ("think", Pace::Closed)),
    ("every", ("period", Pace::Every)),
    ("arrivals", ("gap", Pace::Arrivals)),
];

fn pace(value: &Value, context: &Context) -> Parsed<Pace> {
    let fields = Fields::of(value)?;
    let (operand, make) = fields.take("kind", |value| value::choice(value, &PACES))?;
    let fields = fields.only(&["kind", operand])?;
    let time = fields.take(operand, |value| draw(value, context))?;
    if let Draw::SizeOf(_) = time {
        return Err(Fault::new("a size of an entry is no time").at_key(operand));
    }
    Ok(make(time))
}

fn stop(value: &Value) -> Parsed<Option<u64>> {
    let fields = Fields::of(value)?.only(&["duration_ns", "transactions"])?;
    fields.take("duration_ns", |value| {
        nullable(value, |value| integer(value, 0, draws::LARGEST))
    })?;
    fields.take("transactions", |value| {
        nullable(value, |value| integer(value, 0, draws::LARGEST))
    })
}
