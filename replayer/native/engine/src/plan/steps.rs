//! Steps of a plan, down to the timed ones (those are read in `calls`).

use super::calls::timed;
use super::draws::{draw, index, slot, weights};
use super::operands::Operands;
use super::parts::parts;
use super::value::{Fault, Fields, Parsed, boolean, choice, integer, list, tuple};
use super::{Context, looks, replays};
use crate::program::{Each, Pipeline, STAGES, Step, Steps};
use serde_json::Value;
use std::sync::Arc;

/// Steps nest at most so deep: bounds the stack of a user's thread.
const DEPTH: usize = 16;
/// Of a stage's entries (chosen: more than a buffer between two programs holds).
const MOST_BATCH: u64 = 1_000_000;

pub(super) fn steps(value: &Value, context: &mut Context, depth: usize) -> Parsed<Steps> {
    if depth >= DEPTH {
        return Err(Fault::new(format!("steps may nest at most {DEPTH} deep")));
    }
    list(value, |value| step(value, context, depth)).map(Vec::into_boxed_slice)
}

#[derive(Clone, Copy)]
enum Kind {
    Bind,
    Repeat,
    Choose,
    Each,
    Pipeline,
    Think,
    Call,
    Replay,
    Signal,
    Await,
    Until,
}

const KINDS: [(&str, Kind); 11] = [
    ("bind", Kind::Bind),
    ("repeat", Kind::Repeat),
    ("choose", Kind::Choose),
    ("each", Kind::Each),
    ("pipeline", Kind::Pipeline),
    ("think", Kind::Think),
    ("call", Kind::Call),
    ("replay", Kind::Replay),
    ("signal", Kind::Signal),
    ("await", Kind::Await),
    ("until", Kind::Until),
];

fn step(value: &Value, context: &mut Context, depth: usize) -> Parsed<Step> {
    let fields = Fields::of(value)?;
    match fields.take("do", |value| choice(value, &KINDS))? {
        Kind::Bind => bind(fields, context),
        Kind::Repeat => {
            let fields = fields.only(&["do", "times", "steps"])?;
            let times = fields.take("times", |value| draw(value, context))?;
            let steps = fields.take("steps", |value| steps(value, context, depth + 1))?;
            Ok(Step::Repeat { times, steps })
        }
        Kind::Choose => {
            let fields = fields.only(&["do", "branches"])?;
            fields.take("branches", |value| choose(value, context, depth))
        }
        Kind::Each => each(fields, context, depth).map(|each| Step::Each(Box::new(each))),
        Kind::Pipeline => {
            pipeline(fields, context, depth).map(|line| Step::Pipeline(Arc::new(line)))
        }
        Kind::Think => {
            let fields = fields.only(&["do", "time"])?;
            fields
                .take("time", |value| draw(value, context))
                .map(Step::Think)
        }
        Kind::Replay => replays::replay(fields, context),
        Kind::Signal => looks::signal(fields),
        Kind::Await => looks::wait_for(fields, context),
        Kind::Until => {
            let steps = fields.take("steps", |value| steps(value, context, depth + 1))?;
            looks::until(fields, steps, context)
        }
        Kind::Call => {
            timed(&mut Operands::of_plan(fields, context)).map(|call| Step::Call(Box::new(call)))
        }
    }
}

fn bind(fields: Fields, context: &Context) -> Parsed<Step> {
    let slot = fields.take("slot", slot)?;
    if fields.has("pick") {
        let fields = fields.only(&["do", "slot", "pick"])?;
        let picker = fields.take("pick", |value| index(value, context.pickers, "picker"))?;
        return Ok(Step::Pick { slot, picker });
    }
    if fields.has("name") {
        return fields.only(&["do", "slot", "name"])?.take("name", |value| {
            let fields = Fields::of(value)?.only(&["dataset", "parts"])?;
            let dataset =
                fields.take("dataset", |value| index(value, context.datasets, "dataset"))?;
            let parts = fields.take("parts", |value| parts(value, context))?;
            Ok(Step::Name {
                slot,
                dataset,
                parts,
            })
        });
    }
    let fields = fields.only(&["do", "slot", "dataset"])?;
    let dataset = fields.take("dataset", |value| index(value, context.datasets, "dataset"))?;
    Ok(Step::Root { slot, dataset })
}

fn choose(value: &Value, context: &mut Context, depth: usize) -> Parsed<Step> {
    let branches = list(value, |value| {
        let [weight, branch] = tuple(value)?;
        let weight = integer(weight, 0, 1 << 62).map_err(|fault| fault.at_index(0))?;
        let branch = steps(branch, context, depth + 1).map_err(|fault| fault.at_index(1))?;
        Ok((weight, branch))
    })?;
    let (shares, branches): (Vec<u64>, Vec<Steps>) = branches.into_iter().unzip();
    Ok(Step::Choose {
        weights: weights(&shares)?,
        branches: branches.into_boxed_slice(),
    })
}

fn each(fields: Fields, context: &mut Context, depth: usize) -> Parsed<Each> {
    let fields = fields.only(&["do", "dataset", "slot", "reverse", "f", "d", "l"])?;
    let datasets = context.datasets;
    Ok(Each {
        dataset: fields.take("dataset", |value| index(value, datasets, "dataset"))?,
        slot: fields.take("slot", slot)?,
        reverse: fields.take("reverse", boolean)?,
        file: fields.take("f", |value| steps(value, context, depth + 1))?,
        directory: fields.take("d", |value| steps(value, context, depth + 1))?,
        link: fields.take("l", |value| steps(value, context, depth + 1))?,
    })
}

fn pipeline(fields: Fields, context: &mut Context, depth: usize) -> Parsed<Pipeline> {
    let fields = fields.only(&["do", "steps", "batches"])?;
    let stages = fields.take("steps", |value| stages(value, context, depth + 1))?;
    let batches = if fields.has("batches") {
        fields.take("batches", |value| {
            list(value, |value| integer(value, 1, MOST_BATCH))
        })?
    } else {
        vec![1; stages.len() - 1]
    };
    if batches.len() + 1 != stages.len() {
        return Err(Fault::new("every stage but the last must have a batch"));
    }
    Ok(Pipeline {
        stages: stages.into_boxed_slice(),
        batches: batches.into_boxed_slice(),
    })
}

fn stages(value: &Value, context: &mut Context, depth: usize) -> Parsed<Vec<Each>> {
    let stages = list(value, |value| match step(value, context, depth)? {
        stage @ Step::Each(_) if needs_companions(&stage) => Err(Fault::new(
            "a stage may hold neither replays nor other pipelines",
        )),
        Step::Each(each) => Ok(*each),
        _ => Err(Fault::new("a stage must be an each step")),
    })?;
    let first = stages
        .first()
        .filter(|_| (2..=STAGES).contains(&(stages.len() as u64)));
    let Some(first) = first else {
        let message = format!("a pipeline must have 2 to {STAGES} stages");
        return Err(Fault::new(message));
    };
    let way = |each: &Each| (each.dataset, each.reverse);
    if stages.iter().any(|stage| way(stage) != way(first)) {
        let message = "stages must go through one dataset in one order";
        return Err(Fault::new(message));
    }
    Ok(stages)
}

/// Whether a step needs other threads of its user. Nesting is bounded by the parser.
fn needs_companions(step: &Step) -> bool {
    let is_itself = matches!(step, Step::Replay(_) | Step::Pipeline(_));
    let inside = step.blocks();
    is_itself || inside.into_iter().flatten().any(needs_companions)
}
