//! What has happened before the next event of a task: what its parent had done when it was started, and what processes did that
//! it or its parents had waited for, and what came before what it has read from pipes. A shell whose own calls are no events hands on in this way what each of its commands did.

use crate::cause::{Cause, Reason};
use std::rc::Rc;

/// Kept of a task; of more the oldest are forgotten, which costs edges (chosen: more are seldom waited for before the next is started).
const MOST: usize = 128;

/// Events that the next one waits for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behind {
    /// With their numbers, in the order in which they were learned; shared with the tasks that were started since.
    known: Rc<Vec<(u64, Cause)>>,
    next: u64,
    /// Those with lower numbers were there when the task was started.
    own_from: u64,
    /// Who started it, and the number that it would have given to the next one.
    born: Option<(u64, u64)>,
}

/// What is left of a task that has ended, until somebody waits for it.
#[derive(Debug)]
pub(super) struct Left {
    events: Vec<Cause>,
    /// By whom and before what it was started, if it had events: they came after what was known then.
    born: Option<(u64, u64)>,
}

impl Behind {
    pub(super) fn learn(&mut self, cause: Cause) {
        let known = Rc::make_mut(&mut self.known);
        if known.len() >= MOST {
            known.drain(..MOST / 2);
        }
        known.push((self.next, cause));
        self.next += 1;
    }

    /// What is behind a task that another one starts, whose last event is given.
    pub(super) fn of_child(&self, parent: u64, last: Option<Cause>) -> Self {
        let mut child = Self {
            born: Some((parent, self.next)),
            ..self.clone()
        };
        if let Some(last) = last {
            child.learn(last);
        }
        child.own_from = child.next;
        child
    }

    /// The next event is here, and waits for all of it.
    pub(crate) fn take(&mut self) -> Vec<Cause> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let known = std::mem::take(&mut self.known);
        known.iter().map(|&(_, cause)| cause).collect()
    }

    /// What is left of the task when it ends, if that is anything.
    pub(super) fn leave(&self, last: Option<Cause>) -> Option<Left> {
        let own = self.known.iter().filter(|one| one.0 >= self.own_from);
        let events: Vec<Cause> = last.into_iter().chain(own.map(|one| one.1)).collect();
        let born = self.born.filter(|_| last.is_some());
        (!events.is_empty()).then_some(Left { events, born })
    }

    /// What is behind it that no event has waited for yet, the last one first.
    pub(super) fn pending(&self) -> impl Iterator<Item = Cause> + '_ {
        self.known.iter().rev().map(|&(_, cause)| cause)
    }

    /// The task has waited for another one that had ended.
    pub(super) fn reap(&mut self, number: u64, left: Left) {
        if let Some((parent, next)) = left.born
            && parent == number
        {
            Rc::make_mut(&mut self.known).retain(|one| one.0 >= next);
        }
        for cause in left.events {
            self.learn(Cause {
                reason: Reason::Wait,
                ..cause
            });
        }
    }
}
