//! What descriptors of tasks hold.

use crate::pipes::End;
use std::rc::Rc;

/// What a descriptor holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    /// An open description of a file below the roots, by number.
    Inside(u32),
    /// Anything else; with its absolute path, where that is known.
    Outside(Option<Rc<[u8]>>),
    /// A pipe, or one of a pair of sockets.
    Pipe(End),
    /// A file below the roots that cannot be opened again, and why: no event stands for what is done with it.
    Lost(&'static str),
}

impl Held {
    /// The open description, if it is one of a file below the roots that events stand for.
    pub(crate) fn inside(&self) -> Option<u32> {
        match self {
            Self::Inside(description) => Some(*description),
            Self::Outside(_) | Self::Pipe(_) | Self::Lost(_) => None,
        }
    }

    /// Why no event stands for what is done with it, if none does.
    pub(crate) fn lost(&self) -> Option<&'static str> {
        match self {
            Self::Lost(why) => Some(why),
            Self::Inside(_) | Self::Outside(_) | Self::Pipe(_) => None,
        }
    }
}
