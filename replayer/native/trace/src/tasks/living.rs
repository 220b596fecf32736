//! The tasks that live, by number: a log names the same task again and again, so the last one is found without a search.

use super::Task;
use rustc_hash::FxHashMap;

/// Tasks by number.
#[derive(Debug, Default)]
pub(super) struct Living {
    places: FxHashMap<u64, usize>,
    tasks: Vec<Option<Task>>,
    free: Vec<usize>,
    /// The task that was asked for last, and its place.
    last: Option<(u64, usize)>,
}

impl Living {
    fn place(&self, number: u64) -> Option<usize> {
        match self.last {
            Some((last, place)) if last == number => Some(place),
            _ => self.places.get(&number).copied(),
        }
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.place(number).is_some()
    }

    pub(super) fn get(&self, number: u64) -> Option<&Task> {
        self.tasks.get(self.place(number)?)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Task> {
        let place = self.place(number)?;
        self.last = Some((number, place));
        self.tasks.get_mut(place)?.as_mut()
    }

    /// Put a task in; one that had the number before is gone.
    pub(super) fn insert(&mut self, number: u64, task: Task) {
        if let Some(before) = self.get_mut(number) {
            *before = task;
            return;
        }
        let place = self.free.pop().unwrap_or(self.tasks.len());
        if let Some(free) = self.tasks.get_mut(place) {
            *free = Some(task);
        } else {
            self.tasks.push(Some(task));
        }
        self.places.insert(number, place);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Task> {
        self.last = None;
        let place = self.places.remove(&number)?;
        self.free.push(place);
        self.tasks.get_mut(place)?.take()
    }
}
