//! The paths of a replay program, numbered: own ones first.

use super::path_map::PathMap;
use crate::replay::program::{PathId, Paths, Span};
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

/// Texts that are being put together.
#[derive(Default)]
struct Draft {
    text: Vec<u8>,
    spans: Vec<Span>,
    own: u32,
}

impl Draft {
    fn push(&mut self, path: &[u8], own_end: u32) -> Result<PathId, String> {
        let sizes = (
            u32::try_from(self.text.len()),
            u32::try_from(path.len()),
            u32::try_from(self.spans.len()),
        );
        let (Ok(start), Ok(len), Ok(number)) = sizes else {
            return Err("its paths exceed 4 GiB".to_owned());
        };
        self.text.extend_from_slice(path);
        self.text.push(0);
        self.spans.push(Span {
            start,
            len,
            own_end,
        });
        Ok(number)
    }

    /// All paths of a side are there.
    fn end(&mut self, side: Side) {
        if side == Side::Own {
            self.own = u32::try_from(self.spans.len()).unwrap_or(0);
        }
    }

    fn finish(self) -> Arc<Paths> {
        Arc::new(Paths {
            text: self.text.into_boxed_slice(),
            spans: self.spans.into_boxed_slice(),
            own: self.own,
        })
    }
}

impl Table {
    pub(crate) fn of_all(path_map: &PathMap) -> Result<Table, String> {
        let mut numbers = vec![None; path_map.rows() as usize];
        let mut draft = Draft::default();
        for side in [Side::Own, Side::Shared] {
            for (row, place) in (0..).zip(&mut numbers) {
                if let Some(path) = side.path(path_map, row) {
                    *place = Some(draft.push(path, path_map.own_end(row))?);
                }
            }
            draft.end(side);
        }
        Ok(Table {
            paths: draft.finish(),
            numbers: Numbers::All(numbers.into_boxed_slice()),
            more: HashMap::new(),
        })
    }

    /// Number some rows (each once), and some own paths that have none.
    pub(crate) fn of_some(
        path_map: &PathMap,
        rows: &[u32],
        own: &[Box<[u8]>],
    ) -> Result<Table, String> {
        let mut numbers = HashMap::with_capacity(rows.len());
        let mut more = HashMap::with_capacity(own.len());
        let mut draft = Draft::default();
        for path in own {
            let end = u32::try_from(path_map.own_end_of(path)).unwrap_or(0);
            more.insert(path.clone(), draft.push(path, end)?);
        }
        for side in [Side::Own, Side::Shared] {
            for row in rows {
                if let Some(path) = side.path(path_map, *row) {
                    numbers.insert(*row, draft.push(path, path_map.own_end(*row))?);
                }
            }
            draft.end(side);
        }
        Ok(Table {
            paths: draft.finish(),
            numbers: Numbers::Some(numbers),
            more,
        })
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

/// Who has a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Own,
    Shared,
}

impl Side {
    /// The path of a row, if it is on this side.
    fn path(self, path_map: &PathMap, row: u32) -> Option<&[u8]> {
        let is_own = path_map.own_end(row) > 0;
        path_map.path(row).filter(|_| is_own == (self == Side::Own))
    }
}
