//! The paths of a replay program, numbered: own ones first.

use super::path_map::PathMap;
use crate::replay::program::{PathId, Paths};
use std::collections::HashMap;
use std::sync::Arc;

/// Numbers of a trace's paths in a replay program.
#[derive(Debug)]
enum Numbers {
    /// By row: the replay program has every path.
    All(Box<[Option<PathId>]>),
    Some(HashMap<u32, PathId>),
}

/// The paths of a replay program and how the trace's rows are numbered among them.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) paths: Arc<Paths>,
    numbers: Numbers,
    /// Paths that no row of the trace names.
    more: HashMap<Box<[u8]>, PathId>,
}

impl Table {
    fn new(mut paths: Paths, numbers: Numbers, more: HashMap<Box<[u8]>, PathId>) -> Table {
        paths.text.shrink_to_fit();
        paths.spans.shrink_to_fit();
        Table {
            paths: Arc::new(paths),
            numbers,
            more,
        }
    }

    pub(crate) fn of_all(path_map: &PathMap) -> Result<Table, String> {
        let mut numbers = vec![None; path_map.rows() as usize];
        let mut paths = Paths::default();
        for is_own in [true, false] {
            for (row, place) in (0..).zip(&mut numbers) {
                if let Some(path) = path_map.path_if(row, is_own) {
                    *place = Some(paths.push(path, path_map.own_end(row))?);
                }
            }
        }
        let numbers = Numbers::All(numbers.into_boxed_slice());
        Ok(Table::new(paths, numbers, HashMap::new()))
    }

    /// Number some rows (each once), and some own paths that have none.
    pub(crate) fn of_some(
        path_map: &PathMap,
        rows: &[u32],
        own: &[Box<[u8]>],
    ) -> Result<Table, String> {
        let mut numbers = HashMap::with_capacity(rows.len());
        let mut more = HashMap::with_capacity(own.len());
        let mut paths = Paths::default();
        for path in own {
            let end = u32::try_from(path_map.own_end_of(path)).unwrap_or(0);
            more.insert(path.clone(), paths.push(path, end)?);
        }
        for is_own in [true, false] {
            for row in rows {
                if let Some(path) = path_map.path_if(*row, is_own) {
                    numbers.insert(*row, paths.push(path, path_map.own_end(*row))?);
                }
            }
        }
        Ok(Table::new(paths, Numbers::Some(numbers), more))
    }

    /// The number of a row's path; `None` if it may not be used.
    pub(crate) fn number(&self, row: u32) -> Option<PathId> {
        match &self.numbers {
            Numbers::All(numbers) => numbers.get(row as usize).copied().flatten(),
            Numbers::Some(numbers) => numbers.get(&row).copied(),
        }
    }

    /// The number of an own path that has no row.
    pub(crate) fn number_of(&self, path: &[u8]) -> Option<PathId> {
        self.more.get(path).copied()
    }
}
