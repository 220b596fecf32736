//! What steps refer to by number must be there, and what they move must fit their buffers.

use crate::call::Call;
use crate::document::{Fault, Parsed, refused};
use crate::ops::Op;
use crate::plan::TRANSACTIONS;
use crate::program::{
    Dataset, Draw, Each, Part, Replay, Replays, Step, StepCall, Timed, Transaction, Until,
};
use std::fmt;

/// Steps nest at most so deep: bounds the stack of a user's thread.
const DEPTH: usize = 16;
/// The largest single read (chosen: buffers of this size are shared by the users).
const READ_BYTES: u64 = 1 << 30;

/// The parts of a plan that steps refer to, and what checking the steps finds out.
pub(super) struct Check<'a> {
    tables: &'a [Box<[u64]>],
    datasets: usize,
    pickers: usize,
    /// The traces, and what steps have played of them so far.
    pub(super) replays: Replays,
    /// Largest size of an entry.
    largest: u64,
    /// Largest single write and read seen so far.
    pub(super) write_bytes: u64,
    pub(super) read_bytes: u64,
}

impl<'a> Check<'a> {
    pub(super) fn new(
        tables: &'a [Box<[u64]>],
        datasets: &[Dataset],
        pickers: usize,
        replays: Replays,
    ) -> Check<'a> {
        let entries = datasets.iter().flat_map(|dataset| &dataset.entries);
        Check {
            tables,
            datasets: datasets.len(),
            pickers,
            replays,
            largest: entries.map(|entry| entry.size).max().unwrap_or(0),
            write_bytes: 0,
            read_bytes: 1 << 16,
        }
    }

    pub(super) fn transactions(&mut self, transactions: &[Transaction]) -> Parsed<()> {
        for (index, transaction) in transactions.iter().enumerate() {
            let way = format_args!(".transactions[{index}].steps").to_string();
            self.steps(&transaction.steps, 0)
                .map_err(|fault| fault.at(way))?;
        }
        let fault = |message| Err(Fault::new(message).at(".transactions"));
        let count = transactions.len();
        if count == 0 || count > TRANSACTIONS {
            return fault(format!(
                "must hold 1 to {TRANSACTIONS} transactions, got {count}"
            ));
        }
        let mut names: Vec<&str> = transactions.iter().map(|each| &*each.name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair.first() == pair.last()) {
            Some(pair) => fault(format!(
                "two transactions have the name {:?}",
                pair.concat()
            )),
            None => Ok(()),
        }
    }

    /// Whether the pool holds the largest single write.
    pub(super) fn pool(&self, bytes: u64) -> Parsed<()> {
        if !bytes.is_multiple_of(8) {
            return Err(Fault::new(refused("a multiple of 8", &bytes)));
        }
        let least = self.write_bytes.saturating_add(4096);
        if bytes < least {
            let what = format!("at least {least} (the largest single write + 4096)");
            return Err(Fault::new(refused(what, &bytes)));
        }
        Ok(())
    }

    fn steps(&mut self, steps: &[Step], depth: usize) -> Parsed<()> {
        if depth >= DEPTH {
            return Err(Fault::new(format!("steps may nest at most {DEPTH} deep")));
        }
        for (index, step) in steps.iter().enumerate() {
            let checked = self.step(step, depth + 1);
            checked.map_err(|fault| fault.at(format_args!("[{index}]")))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, depth: usize) -> Parsed<()> {
        match step {
            Step::Pick { picker, .. } => exists("pick", *picker, self.pickers, "picker"),
            Step::Name { dataset, parts, .. } => {
                exists("name.dataset", *dataset, self.datasets, "dataset")?;
                self.draws("name.parts", parts.iter().filter_map(Part::draw))
            }
            Step::Root { dataset, .. } => self.dataset(*dataset),
            Step::Repeat { times, steps } => {
                self.draws("times", [*times])?;
                self.block(".steps", steps, depth)
            }
            Step::Choose { branches, .. } => {
                let mut branches = branches.iter().enumerate();
                branches.try_for_each(|(index, steps)| {
                    self.block(format_args!(".branches[{index}][1]"), steps, depth)
                })
            }
            Step::Each(each) => self.each(each, depth),
            Step::Pipeline(pipeline) => {
                let mut stages = pipeline.stages.iter().enumerate();
                stages.try_for_each(|(index, each)| {
                    let checked = self.each(each, depth + 1);
                    checked.map_err(|fault| fault.at(format_args!(".steps[{index}]")))
                })
            }
            Step::Think(time) => self.draws("time", [*time]),
            Step::Call(timed) => self.call(timed),
            Step::Replay(replay) => self.replay(replay),
            Step::Signal(_) => Ok(()),
            Step::Await(step) => self.draws("limit", [step.limit]),
            Step::Until(until) => self.until(until, depth),
        }
    }

    fn block(&mut self, key: impl fmt::Display, steps: &[Step], depth: usize) -> Parsed<()> {
        self.steps(steps, depth).map_err(|fault| fault.at(key))
    }

    fn dataset(&self, dataset: u16) -> Parsed<()> {
        exists("dataset", dataset, self.datasets, "dataset")
    }

    fn each(&mut self, each: &Each, depth: usize) -> Parsed<()> {
        self.dataset(each.dataset)?;
        self.block(".f", &each.file, depth)?;
        self.block(".d", &each.directory, depth)?;
        self.block(".l", &each.link, depth)
    }

    fn replay(&mut self, replay: &Replay) -> Parsed<()> {
        exists("trace", replay.trace, self.replays.traces.len(), "trace")?;
        self.replays
            .note(replay.trace, replay.request.as_ref().map(|label| &*label.0));
        Ok(())
    }

    fn until(&mut self, until: &Until, depth: usize) -> Parsed<()> {
        self.block(".steps", &until.steps, depth)?;
        if let Some(step) = until.steps.iter().find(|step| !may_be_repeated(step)) {
            let what = format!("{step:?}");
            let word = what.split([' ', '(']).next().unwrap_or_default();
            let message = format!("may hold names and calls that do not write only, got {word}");
            return Err(Fault::new(message).at(".steps"));
        }
        self.draws("every", [until.every])?;
        self.draws("limit", [until.limit])
    }

    fn call(&mut self, timed: &Timed) -> Parsed<()> {
        if let StepCall::Plain(Call::Open { slot: Some(_), .. }) = timed.call {
            return Err(Fault::new("unknown field `slot`"));
        }
        self.operands(&timed.call)
    }

    /// Whether the numbers of a call fit. Remembers how large a buffer it needs.
    pub(super) fn operands(&mut self, call: &StepCall) -> Parsed<()> {
        call.draws()
            .into_iter()
            .try_for_each(|draw| self.draw(draw))?;
        match call {
            StepCall::Read { size, .. }
            | StepCall::Pread { size, .. }
            | StepCall::PreadRandom { size, .. } => {
                let most = self.highest(*size);
                if most > READ_BYTES {
                    let message = format!(
                        "a single read must be at most {READ_BYTES} bytes, this can be {most}"
                    );
                    return Err(Fault::new(message).at(".size"));
                }
                self.read_bytes = self.read_bytes.max(most);
            }
            StepCall::Pwrite { size, .. }
            | StepCall::PwriteRandom { size, .. }
            | StepCall::Plain(Call::Setxattr { size, .. }) => {
                self.write_bytes = self.write_bytes.max(self.highest(*size));
            }
            StepCall::Write(pieces) | StepCall::Append(pieces) => {
                let first = pieces.first.map_or(0, |first| self.highest(first));
                let piece = first.max(self.highest(pieces.block));
                let most = self.highest(pieces.total).min(piece);
                self.write_bytes = self.write_bytes.max(most);
            }
            _ => {}
        }
        Ok(())
    }

    fn draws(&self, key: &str, draws: impl IntoIterator<Item = Draw>) -> Parsed<()> {
        let checked = draws.into_iter().try_for_each(|draw| self.draw(draw));
        checked.map_err(|fault| fault.at(format_args!(".{key}")))
    }

    pub(super) fn draw(&self, draw: Draw) -> Parsed<()> {
        match draw {
            Draw::Table(table) => exists("table", table, self.tables.len(), "table"),
            _ => Ok(()),
        }
    }

    /// The largest value that a draw can take.
    fn highest(&self, draw: Draw) -> u64 {
        match draw {
            Draw::Const(value) => value,
            Draw::Uniform(_, 0) => u64::MAX,
            Draw::Uniform(low, count) => low + (count - 1),
            Draw::Table(index) => {
                let table = self.tables.get(usize::from(index));
                let most = table.and_then(|table| table.iter().copied().max());
                most.unwrap_or(0)
            }
            Draw::SizeOf(_) => self.largest,
        }
    }
}

/// Refuse the number of something that is not there.
pub(super) fn exists(key: &str, number: u16, count: usize, what: &str) -> Parsed<()> {
    if usize::from(number) < count {
        return Ok(());
    }
    let what = format!("the number of a {what} (there are {count})");
    Err(Fault::new(refused(what, &number)).at(format_args!(".{key}")))
}

/// Whether doing a step again and again leaves nothing behind that depends on how often: no picked entry, no written data.
fn may_be_repeated(step: &Step) -> bool {
    match step {
        Step::Name { .. } | Step::Root { .. } => true,
        Step::Call(timed) => {
            ![Op::Write, Op::Append, Op::Pwrite, Op::PwriteRandom].contains(&timed.op)
        }
        _ => false,
    }
}
