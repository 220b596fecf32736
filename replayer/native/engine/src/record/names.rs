//! Names of transactions: the plan's, and the free ones of interactive users.

use crate::lock::hold;
use std::sync::{Arc, Mutex};

/// Transactions by number.
pub(crate) struct Names {
    names: Mutex<Vec<Arc<str>>>,
    limit: usize,
}

impl Names {
    /// Names beside the plan's that interactive users may bring (contract).
    pub(crate) const FREE: usize = 256;

    pub(crate) fn new(transactions: &[String]) -> Self {
        let names: Vec<Arc<str>> = transactions
            .iter()
            .map(|name| name.as_str().into())
            .collect();
        let limit = (names.len() + Self::FREE).min(usize::from(u16::MAX));
        Self {
            names: Mutex::new(names),
            limit,
        }
    }

    /// The number of a name; a new one where there is room for it.
    pub(crate) fn number(&self, name: &str) -> Option<u16> {
        let mut names = hold(&self.names);
        let number = names
            .iter()
            .position(|known| **known == *name)
            .unwrap_or(names.len());
        if number == names.len() {
            if number >= self.limit {
                return None;
            }
            names.push(name.into());
        }
        u16::try_from(number).ok()
    }

    pub(crate) fn name(&self, number: u16) -> Arc<str> {
        let names = hold(&self.names);
        names
            .get(usize::from(number))
            .map_or_else(|| "-".into(), Arc::clone)
    }
}
