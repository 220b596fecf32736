//! Holding a mutex whatever became of the thread that held it before.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lock, also after a panic elsewhere: every state behind these locks is valid between two statements.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
