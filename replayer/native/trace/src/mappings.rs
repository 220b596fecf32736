//! What a process has mapped: which part of which open description stands at an address.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Mappings are of whole pages.
pub(crate) const PAGE: i64 = 4096;

/// A piece of a mapping.
#[derive(Debug, Clone)]
struct Mapping {
    end: i64,
    /// Where it begins in the file.
    offset: i64,
    /// Others see what is written.
    is_shared: bool,
    /// The description: all pieces of one mapping, and their copies in children, hold it together.
    file: Rc<u32>,
}

/// The mappings of files of one address space, by their begin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mappings(BTreeMap<i64, Mapping>);

impl Mappings {
    /// Map a part of a file, where nothing is mapped.
    pub(crate) fn map(
        &mut self,
        (start, size): (i64, i64),
        offset: i64,
        (file, is_shared): (u32, bool),
    ) {
        let piece = Mapping {
            end: pages_end(start, size),
            offset,
            is_shared,
            file: Rc::new(file),
        };
        self.0.insert(start, piece);
    }

    /// Unmap a range. Returns the descriptions that nothing maps any more.
    pub(crate) fn unmap(&mut self, (start, size): (i64, i64)) -> Vec<u32> {
        let pieces = self.take((start, pages_end(start, size)));
        let files = pieces.into_iter().map(|(_, piece)| piece.file);
        files.filter_map(Rc::into_inner).collect()
    }

    /// Take what is mapped in a range out; what reaches out of it stays.
    fn take(&mut self, (start, end): (i64, i64)) -> Vec<(i64, Mapping)> {
        let touched = self.0.range(..end).rev();
        let touched = touched.take_while(|(_, piece)| piece.end > start);
        let starts: Vec<i64> = touched.map(|(&start, _)| start).collect();
        let mut taken = Vec::new();
        for first in starts {
            let Some(piece) = self.0.remove(&first) else {
                continue;
            };
            if first < start {
                let (end, file) = (start, Rc::clone(&piece.file));
                self.0.insert(first, Mapping { end, file, ..piece });
            }
            let behind = |at: i64| piece.offset.saturating_add(at.saturating_sub(first));
            if piece.end > end {
                let (offset, file) = (behind(end), Rc::clone(&piece.file));
                let rest = Mapping {
                    offset,
                    file,
                    ..piece
                };
                self.0.insert(end, rest);
            }
            let begin = first.max(start);
            let kept = Mapping {
                end: piece.end.min(end),
                offset: behind(begin),
                ..piece
            };
            taken.push((begin, kept));
        }
        taken
    }

    /// Move what begins at an address, and give it another size. Returns the descriptions that nothing maps any more.
    pub(crate) fn remap(&mut self, from: (i64, i64), to: (i64, i64)) -> Vec<u32> {
        let moved = self.take((from.0, pages_end(from.0, from.1)));
        let gone = self.unmap(to);
        let first = moved.into_iter().find(|(start, _)| *start == from.0);
        if let Some((_, piece)) = first {
            let end = pages_end(to.0, to.1);
            self.0.insert(to.0, Mapping { end, ..piece });
        }
        gone
    }

    /// The description that is mapped at an address, the place in its file, and whether others see what is written there.
    pub(crate) fn at(&self, address: i64) -> Option<(u32, i64, bool)> {
        let (start, piece) = self.0.range(..=address).next_back()?;
        let offset = piece.offset.saturating_add(address.saturating_sub(*start));
        (address < piece.end).then_some((*piece.file, offset, piece.is_shared))
    }
}

/// Where the last page of a mapping ends.
fn pages_end(start: i64, size: i64) -> i64 {
    let size = size.max(0).saturating_add(PAGE - 1) / PAGE * PAGE;
    start.saturating_add(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unmapped_in_the_middle_leaves_both_ends_and_the_last_piece_lets_the_file_go() {
        let mut mappings = Mappings::default();
        mappings.map((10 * PAGE, 8 * PAGE - 100), 2 * PAGE, (7, false));
        assert_eq!(mappings.at(10 * PAGE), Some((7, 2 * PAGE, false)));
        assert_eq!(mappings.at(17 * PAGE + 5), Some((7, 9 * PAGE + 5, false)));
        assert_eq!(mappings.at(18 * PAGE), None);
        assert_eq!(mappings.unmap((12 * PAGE, PAGE)), [0; 0]);
        assert_eq!(mappings.at(12 * PAGE), None);
        assert_eq!(mappings.at(11 * PAGE), Some((7, 3 * PAGE, false)));
        assert_eq!(mappings.at(13 * PAGE), Some((7, 5 * PAGE, false)));
        let child = mappings.clone();
        assert_eq!(mappings.unmap((0, 100 * PAGE)), [0; 0]);
        assert_eq!({ child }.unmap((0, 100 * PAGE)), [7]);
    }

    #[test]
    fn a_mapping_that_grows_takes_its_place_in_the_file_along() {
        let mut mappings = Mappings::default();
        mappings.map((10 * PAGE, PAGE), 3 * PAGE, (7, true));
        mappings.map((20 * PAGE, PAGE), 0, (8, false));
        assert_eq!(
            mappings.remap((10 * PAGE, PAGE), (19 * PAGE, 2 * PAGE)),
            [8]
        );
        assert_eq!(mappings.at(10 * PAGE), None);
        assert_eq!(mappings.at(20 * PAGE), Some((7, 4 * PAGE, true)));
        assert_eq!(mappings.remap((40 * PAGE, PAGE), (50 * PAGE, PAGE)), [0; 0]);
    }
}
