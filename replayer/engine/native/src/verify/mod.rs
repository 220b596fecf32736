//! Whether reads return what was written: data that say of themselves where they belong, and what is remembered of writes.
//!
//! Only plans that ask for it (`verify`) come here. What a call costs and how it is recorded is the interpreter's.

mod buffer;
mod file;
mod judge;
mod memory;
mod sight;
mod spent;
mod stamp;
mod tally;
#[cfg(test)]
mod tests;
mod verifier;
mod violation;

pub(crate) use memory::Change;
pub(crate) use spent::Spent;
pub(crate) use stamp::zeros_of;
pub(crate) use stamp::{each_stamped, is_empty};
pub(crate) use verifier::{Laid, Opening, Verifier};
pub(crate) use violation::Violation;

use crate::program::{Identity, Program};
use memory::Memory;
use tally::Tally;

/// What the users of an engine share when it verifies.
#[derive(Debug)]
pub(crate) struct Verification {
    identity: Identity,
    /// One a target.
    memories: Vec<Memory>,
    tally: Tally,
}

impl Verification {
    /// Something to remember with, if the plan wants that.
    pub(crate) fn of(program: &Program, targets: usize) -> Option<Verification> {
        Some(Verification {
            identity: program.verify?,
            memories: (0..targets).map(|_| Memory::new()).collect(),
            tally: Tally::default(),
        })
    }

    /// A target has been laid out anew, or nothing has changed there: what was written before is gone.
    pub(crate) fn begin(&self, target: u16) {
        if let Some(memory) = self.memories.get(usize::from(target)) {
            memory.begin();
        }
    }

    /// What was found until now, as JSON.
    pub(crate) fn json(&self) -> String {
        self.tally.json(&self.memories)
    }
}
