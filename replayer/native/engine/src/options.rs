//! What an engine is made with, checked.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::pace::Turn;
use crate::program::Program;
use crate::record::RecorderConfig;
use crate::sys::{Doorbell, Folder, open_directory};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// What an engine is made with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory that recordings are written into.
    pub record: Option<String>,
    /// Length of an interval of the recording, 1 ms or more.
    pub interval_ns: u64,
    /// A call that lasts longer is reported, 1 ms or more.
    pub stuck_after_ns: u64,
    /// Make no call: what is measured is the engine itself.
    pub null: bool,
    /// A directory for the event logs of replays.
    pub event_log: Option<String>,
    /// Which users of the plan are this engine's.
    pub turn: Turn,
    /// Measure targets at the same time: user n works on target n % targets alone, as user n / targets of the plan.
    pub abreast: bool,
}

type Parts<'a> = (&'a Arc<Doorbell>, &'a Arc<OnceLock<std::sync::Weak<Core>>>);

impl Options {
    pub(crate) fn check(&self, targets: &[Vec<Arc<Folder>>]) -> Result<()> {
        if targets.is_empty()
            || targets.iter().any(Vec::is_empty)
            || targets.len() > usize::from(u16::MAX)
        {
            return Err(Error::value(
                "targets must be at least one, each with at least one sandbox",
            ));
        }
        for (what, value) in [
            ("interval_ns", self.interval_ns),
            ("stuck_after_ns", self.stuck_after_ns),
        ] {
            if value < 1_000_000 {
                return Err(Error::value(format!(
                    "{what} must be at least 1000000 (1 ms), got {value}"
                )));
            }
        }
        let Turn { first, of } = self.turn;
        if first >= of {
            return Err(Error::value(format!(
                "turn must be (first, of) with first below of, got ({first}, {of})"
            )));
        }
        Ok(())
    }

    /// The directory for event logs, opened.
    pub(crate) fn event_log(&self) -> Result<Option<OwnedFd>> {
        let open = |path| open_directory(path).map_err(|errno| Error::os(errno, path));
        self.event_log.as_deref().map(open).transpose()
    }

    pub(crate) fn recorder_config(
        &self,
        program: &Program,
        targets: usize,
        (begin_ns, begin_epoch_ns): (u64, u64),
        (doorbell, core): Parts<'_>,
    ) -> RecorderConfig {
        let doorbell = Arc::clone(doorbell);
        let [of_users, of_rest] = [core, core].map(Arc::clone);
        let users = move || {
            let core = of_users.get()?.upgrade()?;
            u32::try_from(core.user_threads.running()).ok()
        };
        let rested = move || of_rest.get()?.upgrade()?.user_threads.rested_ns();
        RecorderConfig {
            transactions: program.transaction_names().map(str::to_owned).collect(),
            interval_ns: self.interval_ns,
            homes: if self.abreast { targets } else { 0 },
            directory: self.record.as_ref().map(PathBuf::from),
            begin_epoch_ns,
            begin_ns,
            users: Box::new(move || users().unwrap_or(0)),
            rested: Box::new(rested),
            doorbell: Box::new(move || doorbell.ring()),
        }
    }
}
