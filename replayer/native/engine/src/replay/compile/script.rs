//! Where a performance gets its chunks from: memory, or a thread that decodes the trace ahead of the players.

use super::recipe::Recipe;
use crate::replay::reel::{Chunk, Chunks, Script};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// Chunks that wait for the players (chosen: with those being made and played about 20 MiB a performance).
const AHEAD: usize = 2;

/// All chunks in memory, shared by all performances.
#[derive(Debug)]
pub(crate) struct Kept(pub(crate) Arc<[Arc<Chunk>]>);

impl Script for Kept {
    fn play(&self) -> Box<dyn Chunks> {
        Box::new(KeptChunks {
            chunks: Arc::clone(&self.0),
            next: 0,
        })
    }
}

struct KeptChunks {
    chunks: Arc<[Arc<Chunk>]>,
    next: usize,
}

impl Chunks for KeptChunks {
    fn next(&mut self) -> Result<Option<Arc<Chunk>>, String> {
        let chunk = self.chunks.get(self.next).cloned();
        self.next += 1;
        Ok(chunk)
    }
}

/// Chunks that are made anew for each performance, from a trace whose files are open.
#[derive(Debug)]
pub(crate) struct Streamed(pub(crate) Arc<Recipe>);

impl Script for Streamed {
    fn play(&self) -> Box<dyn Chunks> {
        let (give, take) = sync_channel(AHEAD);
        let recipe = Arc::clone(&self.0);
        let cook = move || {
            // A failed send says that the performance is over.
            let cooked = recipe.cook(|chunk| give.send(Ok(Some(Arc::new(chunk)))).is_ok());
            let _ = give.send(cooked.map(|_| None));
        };
        let thread = std::thread::Builder::new().name("trace".to_owned());
        Box::new(match thread.spawn(cook) {
            Ok(_) => StreamedChunks::Coming(take),
            Err(error) => StreamedChunks::Failed(format!("a thread to read the trace: {error}")),
        })
    }
}

enum StreamedChunks {
    Coming(Receiver<Result<Option<Arc<Chunk>>, String>>),
    Failed(String),
}

impl Chunks for StreamedChunks {
    fn next(&mut self) -> Result<Option<Arc<Chunk>>, String> {
        match self {
            StreamedChunks::Coming(take) => take
                .recv()
                .unwrap_or_else(|_| Err("reading the trace broke off".to_owned())),
            StreamedChunks::Failed(message) => Err(message.clone()),
        }
    }
}
