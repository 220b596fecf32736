//! Whose data a run's files hold, where reads are verified.

use crate::clock::epoch_ns;
use crate::rng::{GOLDEN, mix64};

/// Chosen: keeps these numbers apart from others of the same seed.
pub(crate) const SALT: u64 = 0x7E57_5741_4D50_C311;

/// How the files of a run are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By path.
    Paths,
    /// By the last component: directories may be moved, or have several names.
    Names,
}

/// Whose data they are: drawn anew for each run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) run: u32,
    pub(crate) naming: Naming,
}

impl Identity {
    /// The same of a run that is told apart from all others.
    pub(crate) fn drawn(self) -> Identity {
        let now = epoch_ns() ^ u64::from(std::process::id()).rotate_left(32);
        let run = file_of(mix64(now));
        Identity { run, ..self }
    }

    /// The number of a file below the run's folder.
    pub(crate) fn key(self, path: &[u8]) -> u64 {
        let name = match self.naming {
            Naming::Paths => path,
            Naming::Names => path.rsplit(|byte| *byte == b'/').next().unwrap_or_default(),
        };
        name.chunks(8).fold(SALT, |sum, word| {
            let mut bytes = [0; 8];
            bytes
                .iter_mut()
                .zip(word)
                .for_each(|(to, from)| *to = *from);
            mix64(sum.wrapping_add(GOLDEN) ^ u64::from_le_bytes(bytes))
        })
    }
}

/// The part of a key that stamps bear.
pub(crate) fn file_of(key: u64) -> u32 {
    u32::try_from(key >> 32).unwrap_or(0)
}
