//! The key `verify`: what a plan must be like so that reads can be checked, and how its files are told apart.

use crate::call::Call;
use crate::document::{Fault, Parsed};
use crate::program::{
    Content, Dataset, EntryKind, Identity, Naming, Replays, Step, StepCall, Transaction,
};
use crate::verify::is_empty;

/// How files are told apart.
pub(super) fn identity(
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
