//! From an event to a call: files become slots, paths their numbers in the replay program; what cannot be made again becomes an omission.

use super::locks::Locks;
use super::operands::{Operands, SET_STATUS};
use super::path_map::PathMap;
use super::slots::{LaneRow, NOT_OPEN, Reason, SPECIAL, Slots};
use super::table::Table;
use crate::path;
use crate::program::OPEN_FLAGS;
use crate::replay::program::{Call, PathId, Place, ReplayCall, Slot, TextId};
use crate::sys::Through;
use replayer_ops::Class;
use replayer_trace::{Event, MOST_DATA, Op};
use std::collections::HashSet;

const CREAT: u32 = 0o100;
/// `O_CREAT` and the bit of `O_TMPFILE`: only they take a mode (openat2(2)).
const MAKES: u32 = CREAT | 0o20_000_000;
/// `O_PATH` neither makes nor cuts, whatever stands beside it.
const PATH: u32 = 0o10_000_000;
/// What openat2 takes beside `O_PATH`.
const WITH_PATH: u32 = PATH | 0o200_000 | 0o400_000 | 0o2_000_000;
/// `O_CREAT`, `O_EXCL`, `O_TRUNC` and `O_TMPFILE`: a file that was open before is only opened.
const ONLY_ONCE: u32 = CREAT | 0o200 | 0o1000 | 0o20_000_000;
const NO_PATH: Reason = "path that is not replayed";
/// One target holds all roots: what was refused would succeed there, and take away what the program goes on with.
pub(super) const BETWEEN_ROOTS: Reason = "between roots on different file systems";
/// Paths are kept without their detours, and there are no other mounts: what openat2 refused would succeed.
const LEADS_OUT: Reason = "open that would leave its directory or file system";
/// `EXDEV` (errno(3)), as a result.
const CROSSES: i64 = -18;
/// `EBADF`.
const BAD_FILE: i64 = -9;
/// `EFAULT`.
const FAULTS: i64 = -14;
pub(crate) const UNKNOWN: Reason = "call that is not replayed";
/// The largest buffer that a performance is given (chosen: 1024 of it, as one readv takes them, hold the most a read moves).
const BUFFER_BYTES: u64 = MOST_DATA.div_ceil(1024).next_multiple_of(4096);

/// What an event becomes, and the state of the files that it needs.
#[derive(Debug)]
pub(crate) struct Translator<'a> {
    pub(crate) path_map: &'a PathMap,
    pub(crate) table: &'a Table,
    /// Users that share the trace's directories.
    users: u32,
    /// Of the event that is translated.
    pub(super) lane_row: LaneRow,
    pub(crate) slots: Slots,
    pub(super) locks: Locks,
    /// Files that were opened with `O_PATH`.
    places: HashSet<u32>,
    /// Rows of paths where nothing is made.
    special: HashSet<u32>,
    /// Texts of the batch that is being filled.
    pub(crate) texts: Vec<u8>,
    /// What the event must wait for besides what the trace says.
    pub(crate) waits: Vec<LaneRow>,
    pub(crate) read_bytes: u64,
    /// A symlink was made whose text is rewritten.
    pub(crate) rewrites: bool,
}

impl<'a> Translator<'a> {
    pub(crate) fn new(path_map: &'a PathMap, table: &'a Table, users: u32) -> Self {
        Self {
            path_map,
            table,
            users,
            lane_row: (0, 0),
            slots: Slots::default(),
            locks: Locks::default(),
            places: HashSet::new(),
            special: HashSet::new(),
            texts: Vec::new(),
            waits: Vec::new(),
            read_bytes: 0,
            rewrites: false,
        }
    }

    /// What an event does. Waits are appended to `waits`.
    pub(crate) fn call(&mut self, lane_row: LaneRow, event: &Event) -> ReplayCall {
        self.lane_row = lane_row;
        if event.result == FAULTS {
            let reason = "with memory that the program did not have";
            return ReplayCall::Omit { reason };
        }
        let call = match event.op {
            _ if is_denied_change(event) => self.denied_change(event),
            Op::Open | Op::Inherit => self.open(event),
            Op::Close | Op::CloseExit | Op::CloseDup => self.close(event),
            Op::Exit => Ok(ReplayCall::End),
            Op::Meanwhile => self.meanwhile(event),
            _ if event.path.is_some() => self.path_call(event),
            Op::Link => self.link_open(event),
            _ => self.file_call(event),
        };
        call.unwrap_or_else(|reason| ReplayCall::Omit { reason })
    }

    /// The look-up of what a denied change named (of a rename or link: what was to be moved or linked).
    fn denied_change(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        if event.path.is_none() {
            return Err(DENIED);
        }
        let at = self.place(event.path, event.to_file)?;
        Ok(if follows(event) {
            ReplayCall::Plain(Call::Stat { at })
        } else {
            ReplayCall::Plain(Call::Lstat { at })
        })
    }

    fn open(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        if event.result == CROSSES {
            return Err(LEADS_OUT);
        }
        let operands = Operands(event);
        let placed = self.place(event.path, event.to_file);
        let file = event.file.filter(|_| event.result >= 0);
        let (Ok(at), Some(row)) = (placed, event.path) else {
            if let Some(file) = file {
                self.slots.lose(file, placed.err().unwrap_or(NOT_OPEN));
            }
            return Err(placed.err().unwrap_or(NO_PATH));
        };
        let flags = open_flags(&operands);
        let slot = file.and_then(|file| self.slots.open(file, row, self.lane_row));
        if let Some(file) = file {
            self.note_place(file, flags);
        }
        if event.op == Op::Inherit {
            return Ok(ReplayCall::Inherit {
                path: at.path,
                slot: slot.ok_or(NOT_OPEN)?,
                flags: flags & !ONLY_ONCE,
                offset: operands.some_offset()?.unwrap_or(0),
            });
        }
        let mode = if flags & MAKES == 0 {
            0
        } else {
            operands.permissions()
        };
        Ok(ReplayCall::Plain(Call::Open {
            at,
            slot,
            flags,
            mode,
            resolve: operands.resolve(),
        }))
    }

    /// What others than the recorded program did.
    fn meanwhile(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        let operands = Operands(event);
        if event.path.is_some() {
            return Ok(ReplayCall::Grow {
                path: self.place(event.path, None)?.path,
                size: operands.bytes()?,
            });
        }
        Ok(ReplayCall::Stand {
            slot: self.slot(event.file)?,
            offset: operands.some_offset()?.unwrap_or(0),
        })
    }

    /// A file that was open before: it is opened with what its open had.
    pub(crate) fn inherit(
        &mut self,
        lane_row: LaneRow,
        held: &super::tree_state::Inherited,
    ) -> ReplayCall {
        let slot = self.slots.open(held.file, held.path, lane_row);
        self.note_place(held.file, held.flags);
        match (self.number(held.path), slot) {
            (Ok(path), Some(slot)) => ReplayCall::Inherit {
                path,
                slot,
                flags: held.flags & OPEN_FLAGS & !ONLY_ONCE,
                offset: held.offset,
            },
            (Err(reason), _) => {
                self.slots.lose(held.file, reason);
                ReplayCall::Omit { reason }
            }
            (Ok(_), None) => ReplayCall::Omit { reason: NOT_OPEN },
        }
    }

    fn note_place(&mut self, file: u32, flags: u32) {
        if flags & PATH != 0 {
            self.places.insert(file);
        }
    }

    fn close(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        let file = event.file.ok_or(NOT_OPEN)?;
        let path = self.slots.path(file);
        if event.op == Op::CloseDup {
            let slot = self.slots.used(file, self.lane_row, &mut self.waits)?;
            let call = ReplayCall::CloseDuplicate { slot };
            return Ok(self.closing(path, event.thread, call));
        }
        let slot = self.slots.close(file, self.lane_row, &mut self.waits)?;
        if let Some(path) = path {
            self.locks.forget(path, file);
        }
        self.places.remove(&file);
        let call = match event.op {
            Op::CloseExit => ReplayCall::CloseSilently { slot },
            _ => ReplayCall::Plain(Call::Close { slot }),
        };
        Ok(self.closing(path, event.thread, call))
    }

    pub(crate) fn slot(&mut self, file: Option<u32>) -> Result<Slot, Reason> {
        let file = file.ok_or(NOT_OPEN)?;
        self.slots.used(file, self.lane_row, &mut self.waits)
    }

    /// How the attributes of an open file were reached: with `O_PATH` they cannot be by its descriptor.
    pub(super) fn through(&self, event: &Event) -> Through {
        let is_place = event.file.is_some_and(|file| self.places.contains(&file));
        if is_place && event.result != BAD_FILE {
            Through::EmptyPath
        } else {
            Through::Descriptor
        }
    }

    /// The same for a side that may lie outside of the trace.
    pub(crate) fn some_slot(&mut self, file: Option<u32>) -> Result<Option<Slot>, Reason> {
        file.map(|file| self.slots.used(file, self.lane_row, &mut self.waits))
            .transpose()
    }

    /// Whether other users have the file at a path, too.
    pub(super) fn is_for_all(&self, row: u32) -> bool {
        self.users > 1 && self.path_map.own_end(row) == 0
    }

    fn number(&self, row: u32) -> Result<PathId, Reason> {
        if self.is_special(row) {
            return Err(SPECIAL);
        }
        self.table.number(row).ok_or(NO_PATH)
    }

    fn is_special(&self, row: u32) -> bool {
        self.special.contains(&row)
    }

    /// Whether an event was refused because it led from one file system to another, and its two paths have different roots.
    pub(super) fn crosses_roots(&self, event: &Event, rows: [Option<u32>; 2]) -> bool {
        let [from, to] = rows.map(|row| row.and_then(|row| self.path_map.root(row)));
        event.result == CROSSES && from.zip(to).is_some_and(|(from, to)| from != to)
    }

    pub(crate) fn path(&self, event: &Event) -> Result<PathId, Reason> {
        self.number(event.path.ok_or(NO_PATH)?)
    }

    /// A path as the program named it: below a directory that it had open, if there is one.
    pub(crate) fn place(
        &mut self,
        row: Option<u32>,
        directory: Option<u32>,
    ) -> Result<Place, Reason> {
        let row = row.ok_or(NO_PATH)?;
        let path = self.number(row)?;
        let whole = Place {
            path,
            from: None,
            rest: 0,
        };
        let Some(rest) = directory.and_then(|file| self.below(row, file)) else {
            return Ok(whole);
        };
        let from = self.slot(directory).ok();
        Ok(Place {
            rest: if from.is_some() { rest } else { 0 },
            from,
            ..whole
        })
    }

    /// Where the part of a path below an open directory begins.
    fn below(&self, row: u32, directory: u32) -> Option<u32> {
        let outer = self.path_map.path(self.slots.path(directory)?)?;
        let inner = self.path_map.path(row)?.strip_prefix(outer)?;
        let is_below = inner.len() > 1 && inner.first() == Some(&b'/');
        is_below.then(|| u32::try_from(outer.len() + 1).unwrap_or(0))
    }

    /// Note what became of something that was not made.
    pub(crate) fn note_special(&mut self, event: &Event) -> Result<(), Reason> {
        let row = event.path.filter(|row| self.is_special(*row));
        let Some(row) = row.filter(|_| event.result >= 0) else {
            return Ok(());
        };
        match event.op {
            Op::Unlink => {
                self.special.remove(&row);
            }
            Op::Rename => {
                self.special.remove(&row);
                self.special.extend(event.to_path);
            }
            Op::Link => self.special.extend(event.to_path),
            _ => {}
        }
        Err(SPECIAL)
    }

    /// What is not made of what is there before.
    pub(crate) fn begin_special(&mut self) {
        self.special.extend(&self.path_map.special);
    }

    pub(crate) fn reads(&mut self, size: u64) -> u64 {
        self.read_bytes = self.read_bytes.max(size.min(BUFFER_BYTES));
        size
    }

    pub(crate) fn text(&mut self, text: &[u8], own_end: u32) -> Result<TextId, Reason> {
        let sizes = (u32::try_from(self.texts.len()), u32::try_from(text.len()));
        let (Ok(start), Ok(len)) = sizes else {
            return Err(UNKNOWN);
        };
        self.texts.extend_from_slice(text);
        self.texts.push(0);
        Ok(TextId {
            start,
            len,
            own_end,
        })
    }

    /// The text of a symlink that stays inside the run's folder.
    pub(crate) fn target(&mut self, event: &Event) -> Result<TextId, Reason> {
        let row = event.path.ok_or(NO_PATH)?;
        let (Some(path), Some(text)) = (self.path_map.path(row), &event.text) else {
            return Err(NO_PATH);
        };
        if !path::link_stays_inside(path, text) {
            return Err("symlink that leads outside");
        }
        let mark = self.path_map.link_mark(path, text);
        let mark = mark.ok_or("symlink through two own places")?;
        self.rewrites |= mark > 0;
        self.text(text, mark)
    }
}

fn open_flags(operands: &Operands<'_>) -> u32 {
    let flags = operands.lenient_flags(OPEN_FLAGS);
    if flags & PATH != 0 {
        flags & WITH_PATH
    } else {
        flags
    }
}

pub(super) const DENIED: Reason = "change of an open file that was denied";
/// `EPERM` and `EACCES` (errno(3)), as results.
const REFUSALS: [i64; 2] = [-1, -13];
/// `O_ACCMODE`, `O_CREAT`, `O_TRUNC` and the bit of `O_TMPFILE`: an open without them reads.
const OPENS_TO_CHANGE: u32 = 0o3 | 0o100 | 0o1000 | 0o20_000_000;
const NO_FOLLOW: u32 = 0o400_000;
/// `O_CREAT` and `O_EXCL`: a link in the last place is not followed.
const ONLY_NEW: u32 = 0o300;

/// Whether a call was denied that would have changed something.
pub(super) fn is_denied_change(event: &Event) -> bool {
    REFUSALS.contains(&event.result) && changes(event)
}

fn changes(event: &Event) -> bool {
    let operands = Operands(event);
    match event.op {
        Op::Open => {
            let flags = operands.lenient_flags(OPENS_TO_CHANGE | PATH);
            flags != 0 && flags & PATH == 0
        }
        Op::Fcntl => operands.command(u32::MAX) == Ok(SET_STATUS),
        Op::Sendfile | Op::Splice => true,
        op => matches!(
            op.class(),
            Class::Alter | Class::Attribute | Class::Mark | Class::Write
        ),
    }
}

/// Whether a symlink in the last place is followed.
pub(super) fn follows(event: &Event) -> bool {
    match event.op {
        Op::Open => {
            let flags = Operands(event).lenient_flags(NO_FOLLOW | ONLY_NEW);
            flags & NO_FOLLOW == 0 && flags & ONLY_NEW != ONLY_NEW
        }
        op => op.class() == Class::Attribute && op.follows(),
    }
}
