//! Where a performance gets its batches from: memory, or a thread that decodes the trace ahead of the players.

use super::schedule::Schedule;
use crate::replay::program::{CallBatch, CallBatches, Script};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Batches that wait for the players (chosen: with those being made and played about 20 MiB a performance).
const AHEAD: usize = 2;

/// All batches in memory, shared by all performances.
#[derive(Debug)]
pub(crate) struct Kept(pub(crate) Arc<[Arc<CallBatch>]>);

impl Script for Kept {
    fn play(&self) -> Box<dyn CallBatches> {
        Box::new(KeptBatches {
            batches: Arc::clone(&self.0),
            next: 0,
        })
    }
}

struct KeptBatches {
    batches: Arc<[Arc<CallBatch>]>,
    next: usize,
}

impl CallBatches for KeptBatches {
    fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String> {
        let batch = self.batches.get(self.next).cloned();
        self.next += 1;
        Ok(batch)
    }
}

/// Batches that are made anew for each performance, from a trace whose files are open.
#[derive(Debug)]
pub(crate) struct Streamed(pub(crate) Arc<Schedule>);

impl Script for Streamed {
    fn play(&self) -> Box<dyn CallBatches> {
        let (give, take) = sync_channel(AHEAD);
        let schedule = Arc::clone(&self.0);
        let build = move || {
            // A failed send says that the performance is over.
            let built = schedule.build(|batch| give.send(Ok(Some(Arc::new(batch)))).is_ok());
            let _ = give.send(built.map(|_| None));
        };
        let thread = std::thread::Builder::new().name("trace".to_owned());
        Box::new(match thread.spawn(build) {
            Ok(_) => StreamedBatches::Coming(take),
            Err(error) => StreamedBatches::Failed(format!("a thread to read the trace: {error}")),
        })
    }
}

enum StreamedBatches {
    Coming(Receiver<Result<Option<Arc<CallBatch>>, String>>),
    Failed(String),
}

impl CallBatches for StreamedBatches {
    fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String> {
        match self {
            StreamedBatches::Coming(take) => take
                .recv()
                .unwrap_or_else(|_| Err("reading the trace broke off".to_owned())),
            StreamedBatches::Failed(message) => Err(message.clone()),
        }
    }
}
