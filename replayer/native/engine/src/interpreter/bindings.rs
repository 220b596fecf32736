//! Slots: what a path operand means, and the descriptor that an open left there.
#![expect(
    clippy::inline_always,
    reason = "on the way of every op: a call that returns after a system call is mispredicted"
)]

use super::Interpreter;
use crate::path;
use crate::program::{
    Dataset, Draw, Entry, EntryKind, Part, PickRule, Picker, Scope, Step, write_number,
};
use crate::rng::scale;
use crate::sys::{Kernel, Prefix, Text, c_path};
use crate::thread_state::Place;
use crate::verify::{Laid, zeros_of};
use std::ffi::CStr;
use std::os::fd::RawFd;

#[derive(Debug)]
pub(super) struct Slot<'a> {
    /// Below the run's folder; `None` when not bound, or bound to a path that is not valid.
    path: Option<&'a CStr>,
    /// The same, for whoever watches.
    place: Place,
    /// What it is bound to, or named after.
    entry: &'a Entry,
    dataset: u16,
    /// Where the path within the dataset begins.
    within: u32,
    pub(super) file: Option<RawFd>,
    /// Where paths are put together.
    text: &'a Text,
    /// The dataset whose directory the text begins with.
    begun: Option<u16>,
}

impl<'a> Slot<'a> {
    pub(super) fn new(text: &'a Text) -> Slot<'a> {
        Slot {
            path: None,
            place: Place::NOWHERE,
            entry: &Entry::UNKNOWN,
            dataset: 0,
            within: 0,
            file: None,
            text,
            begun: None,
        }
    }

    /// Forget what it was bound to, but for its descriptor.
    pub(super) fn unbind(&mut self) {
        self.path = None;
        self.place = Place::NOWHERE;
        self.entry = &Entry::UNKNOWN;
        self.within = 0;
    }
}

/// The directory of a dataset for one user, with a slash.
pub(super) struct Root {
    text: Vec<u8>,
    prefix: Prefix,
    /// Its length.
    within: u32,
}

impl Root {
    pub(super) fn of(dataset: &Dataset, user: u32) -> Root {
        let text = [&dataset.root_of(user)[..], b"/"].concat();
        Root {
            prefix: Prefix::new(&text),
            within: u32::try_from(text.len()).unwrap_or(0),
            text,
        }
    }
}

impl<'a, K: Kernel> Interpreter<'a, K> {
    pub(super) fn slot(&self, slot: u8) -> Option<&Slot<'a>> {
        self.slots.get(usize::from(slot))
    }

    pub(super) fn slot_mut(&mut self, slot: u8) -> Option<&mut Slot<'a>> {
        self.used |= 1 << slot;
        self.slots.get_mut(usize::from(slot))
    }

    pub(super) fn file(&self, slot: u8) -> Option<RawFd> {
        self.slot(slot).and_then(|slot| slot.file)
    }

    pub(super) fn size_of(&self, slot: u8) -> u64 {
        self.slot(slot).map_or(0, |slot| slot.entry.size)
    }

    pub(super) fn mode_of(&self, slot: u8) -> u32 {
        let entry = self.slot(slot).map_or(&Entry::UNKNOWN, |slot| slot.entry);
        entry.mode
    }

    /// Where a slot points, for whoever watches.
    #[inline]
    pub(super) fn place(&self, slot: u8) -> Place {
        self.slot(slot).map_or(Place::NOWHERE, |slot| slot.place)
    }

    /// The path of a slot below the run's folder; `None` where no call may be made.
    #[inline]
    pub(super) fn path(&self, slot: u8) -> Option<&'a CStr> {
        self.slot(slot)?.path
    }

    /// What was laid out of the file that a slot is bound to.
    pub(super) fn laid(&self, slot: u8) -> Laid {
        let Some(slot) = self.slot(slot) else {
            return Laid::default();
        };
        let dataset = self.program.datasets.get(usize::from(slot.dataset));
        let linked = slot.entry.kind == EntryKind::Link;
        // A composed name takes the size of its model, not its contents.
        let picked = slot.begun.is_some() || slot.place.is_entry();
        match dataset.filter(|dataset| picked && dataset.laid_out) {
            Some(dataset) => Laid {
                size: slot.entry.size,
                zeros: zeros_of(dataset.content),
                linked,
            },
            None => Laid {
                linked,
                ..Laid::default()
            },
        }
    }

    pub(super) fn is_directory(&self, slot: u8) -> bool {
        self.slot(slot)
            .is_some_and(|slot| slot.entry.kind == EntryKind::Directory)
    }

    /// The target of the link that a slot is bound to, "" if it is none.
    pub(super) fn link_of(&self, slot: u8) -> &'a CStr {
        let link = self.slot(slot).and_then(|slot| {
            let dataset = self.program.datasets.get(usize::from(slot.dataset))?;
            let is_link = slot.entry.kind == EntryKind::Link;
            is_link.then(|| c_path(dataset.link(slot.entry)))
        });
        link.unwrap_or(c"")
    }

    #[inline]
    pub(super) fn draw(&mut self, draw: Draw) -> u64 {
        let slots = &self.slots;
        let size_of = |slot: u8| {
            let slot = slots.get(usize::from(slot));
            slot.map_or(0, |slot| slot.entry.size)
        };
        draw.value(&self.program.tables, &mut self.stream, size_of)
    }

    pub(super) fn bind(&mut self, step: &Step) {
        match step {
            Step::Pick { slot, picker } => self.pick(*slot, usize::from(*picker)),
            Step::Name {
                slot,
                dataset,
                parts,
            } => self.name(*slot, *dataset, parts),
            Step::Root { slot, dataset } => self.root(*slot, *dataset),
            _ => {}
        }
    }

    #[inline(always)]
    pub(super) fn pick(&mut self, slot: u8, index: usize) {
        let Some(picker) = self.program.pickers.get(index) else {
            return;
        };
        let rank = match &picker.rule {
            PickRule::Segments { weights, spans } => {
                let (start, count) = spans
                    .get(weights.pick(&mut self.stream))
                    .copied()
                    .unwrap_or((0, 1));
                start + self.stream.below(count)
            }
            PickRule::Own => self.own(picker),
            PickRule::Sequential => self.sequential(picker, index),
        };
        let rank = usize::try_from(rank).unwrap_or(0);
        if let Some(entry) = picker.candidates.get(rank) {
            self.bind_entry(slot, picker.dataset, *entry);
        }
    }

    fn own(&mut self, picker: &Picker) -> u64 {
        let users = u64::from(self.program.users);
        let first = u64::from(self.thread_state.user) % users;
        let mine = (picker.candidates.len() as u64)
            .saturating_sub(first)
            .div_ceil(users);
        first + users * scale(self.stream.next(), mine)
    }

    #[inline(always)]
    fn sequential(&mut self, picker: &Picker, index: usize) -> u64 {
        let Some(cursor) = self.cursors.get_mut(index) else {
            return 0;
        };
        let rank = *cursor;
        *cursor += 1;
        if *cursor >= picker.candidates.len() {
            *cursor = 0;
        }
        rank as u64
    }

    #[inline(always)]
    pub(super) fn bind_entry(&mut self, number: u8, dataset: u16, index: u32) {
        let (program, at) = (self.program, usize::from(dataset));
        let (Some(data), Some(root)) = (program.datasets.get(at), self.roots.get(at)) else {
            return;
        };
        let Some(entry) = data.entries.get(index as usize) else {
            return;
        };
        let Some(slot) = self.slots.get_mut(usize::from(number)) else {
            return;
        };
        self.used |= 1 << number;
        slot.entry = entry;
        slot.dataset = dataset;
        slot.within = root.within;
        if data.scope == Scope::User {
            // Nobody may look at the old text while a new one is written.
            slot.path = None;
            if slot.begun != Some(dataset) {
                slot.text.begin(&root.prefix);
                slot.begun = Some(dataset);
            }
            let (path, len) = data.path_and_more(entry);
            slot.path = Some(slot.text.join(&root.prefix, path, len));
            slot.place = Place::text(number);
        } else {
            slot.path = Some(c_path(data.full_path(entry)));
            slot.place = Place::entry(dataset, index);
        }
    }

    /// Begin a text with the directory of a dataset and a slash; where it goes on.
    fn begin_text(&mut self, dataset: u16) -> usize {
        if let Some(root) = self.roots.get(usize::from(dataset)) {
            self.text.extend_from_slice(&root.text);
        }
        self.text.len()
    }

    /// Make the composed text that of a slot, which is no longer bound to anything.
    fn publish(&mut self, number: u8, within: usize) {
        let text = std::mem::take(&mut self.text);
        if let Some(slot) = self.slot_mut(number) {
            slot.begun = None;
            slot.text.set(&text);
            slot.path = Some(slot.text.own());
            slot.place = Place::text(number);
            slot.within = u32::try_from(within).unwrap_or(0);
        }
        self.text = text;
    }

    /// Forget what a slot was bound to, but for its descriptor.
    fn unbind(&mut self, slot: u8) {
        if let Some(slot) = self.slot_mut(slot) {
            slot.unbind();
        }
    }

    fn root(&mut self, slot: u8, dataset: u16) {
        self.text.clear();
        self.begin_text(dataset);
        self.text.pop();
        self.unbind(slot);
        self.publish(slot, self.text.len());
        if let Some(slot) = self.slot_mut(slot) {
            slot.entry = &Entry::ROOT;
        }
    }

    fn name(&mut self, slot: u8, dataset: u16, parts: &[Part]) {
        self.text.clear();
        let within = self.begin_text(dataset);
        let mut text = std::mem::take(&mut self.text);
        self.compose(parts, &mut text);
        let model = parts.iter().find_map(|part| match part {
            Part::PathOf(model) | Part::NameOf(model) => self.slot(*model),
            _ => None,
        });
        let model = model.map(|model| (model.dataset, model.entry));
        let is_valid = text
            .get(within..)
            .is_some_and(|path| path::fault(path).is_none());
        self.text = text;
        self.unbind(slot);
        if is_valid {
            self.publish(slot, within);
        }
        if let (Some(slot), Some(model)) = (self.slot_mut(slot), model) {
            (slot.dataset, slot.entry) = model;
        }
    }

    /// Bind a slot to a path that an interactive command spells out.
    pub(crate) fn bind_text(&mut self, slot: u8, path: &str) {
        self.text.clear();
        self.text.extend_from_slice(path.as_bytes());
        self.unbind(slot);
        self.publish(slot, 0);
    }

    pub(super) fn name_after(&mut self, slot: u8, other: u8) {
        self.text.clear();
        if let Some(path) = self.path(other) {
            self.text.extend_from_slice(path.to_bytes());
        }
        self.publish(slot, 0);
    }

    /// Write parts one after the other, drawing from left to right.
    pub(super) fn compose(&mut self, parts: &[Part], text: &mut Vec<u8>) {
        for part in parts {
            match part {
                Part::Text(part) => text.extend_from_slice(part.as_bytes()),
                Part::User => write_number(u64::from(self.thread_state.user), text),
                Part::Round => write_number(u64::from(self.round), text),
                Part::Seq => write_number(self.seq, text),
                Part::Next => write_number(self.seq + 1, text),
                Part::Number(draw) => write_number(self.draw(*draw), text),
                Part::Hex(digits) => write_hex(self.stream.next(), *digits, text),
                Part::PathOf(slot) => text.extend_from_slice(self.within(*slot)),
                Part::NameOf(slot) => {
                    let path = self.within(*slot);
                    text.extend_from_slice(
                        path.rsplit(|byte| *byte == b'/').next().unwrap_or_default(),
                    );
                }
            }
        }
    }

    /// The path of a slot within its dataset, without a NUL.
    fn within(&self, slot: u8) -> &'a [u8] {
        let Some(slot) = self.slot(slot) else {
            return b"";
        };
        let path = slot.path.map_or(&b""[..], CStr::to_bytes);
        path.get(slot.within as usize..).unwrap_or_default()
    }
}

fn write_hex(number: u64, digits: u8, text: &mut Vec<u8>) {
    for digit in (0..u32::from(digits)).map(|place| (number >> (60 - 4 * place)) & 0xF) {
        let digit = u8::try_from(digit).unwrap_or(0);
        text.push(if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        });
    }
}
