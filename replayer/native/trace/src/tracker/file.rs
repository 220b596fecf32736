//! Calls on descriptors: which description they mean, what they teach, and the events they become.

use crate::call::{Args, Call, FileArg, FileKind, LockChange, Outcome};
use crate::constants::{
    F_RDLCK, FALLOC_FL_KEEP_SIZE, LOCK_SH, RWF_APPEND, RWF_NOAPPEND, SEEK_DATA, SEEK_END, SEEK_HOLE,
};
use crate::error::TraceError;
use crate::open_files::Description;
use crate::order::Access;
use crate::paths::PathId;
use crate::tasks::FdTarget;
use crate::tracker::path::mark_now;
use crate::tracker::resolve::SPECIAL;
use crate::tracker::{Disposition, Operands, Tracker};
use crate::tree::NodeId;
use replayer_ops::numbers::{EACCES, EAGAIN};
use replayer_ops::{Class, Op};

/// ioctls that ask a file something and can be asked again anywhere.
const KNOWN_IOCTLS: [&[u8]; 7] = [
    b"TCGETS",
    b"TCGETS2",
    b"TIOCGWINSZ",
    b"FIONREAD",
    b"FS_IOC_GETFLAGS",
    b"FS_IOC_FSGETXATTR",
    b"FIGETBSZ",
];

/// Which pages were touched is known where they had to be mapped first.
const MAPPED_IN_PART: &str = "mmap (in part)";

/// Calls whose descriptor no recorded call has given out: it was received (`SCM_RIGHTS`, `pidfd_getfd`), or came with the command.
const UNTOLD: &str = "calls on descriptors whose opening was not recorded";

impl Tracker {
    pub(crate) fn on_file(
        &mut self,
        call: &Call<'_>,
        op: Op,
        file: FileArg<'_>,
        args: &Args<'_>,
    ) -> Result<Disposition, TraceError> {
        let id = match self.held(call.task, file) {
            Some(FdTarget::Inside(id)) => id,
            held => return Ok(self.on_none_of_the_trace(call, op, held.as_ref())),
        };
        let node = self.files.get(id).and_then(|one| one.node);
        if self.tree.is_special(node) {
            return Ok(self.leave_out(call, SPECIAL));
        }
        let text = args.text.as_deref().unwrap_or_default();
        if op == Op::Ioctl && !KNOWN_IOCTLS.iter().any(|known| text.starts_with(known)) {
            let name = format!("ioctl({})", String::from_utf8_lossy(text));
            self.counts.not_representable.add(&name);
            return Ok(Disposition::Other);
        }
        let Some(used) = self.files.get(id).map(UsedFile::of) else {
            return Ok(Disposition::Other);
        };
        let used = self.record_foreign_changes(call, op, (id, used), args)?;
        let maps = op == Op::Mmap && self.sees_pages && call.outcome.is_ok();
        if let (true, Some(range)) = (maps, call.outcome.value().zip(args.size)) {
            self.unmapped(call, range, None)?;
        }
        if let (Op::Getdents, Some(node), true) = (op, used.node, call.outcome.is_ok()) {
            self.tree.was_entered(node);
        }
        let operands = Operands::of_file(used.slot);
        let mut written = std::borrow::Cow::Borrowed(args);
        match op {
            Op::Futimens => mark_now(written.to_mut()),
            Op::Getdents if self.lists_outside(used.node) => written.to_mut().entries = None,
            _ => {}
        }
        self.emit(call, op, operands, &written)?;
        self.order.file(used.slot, Access::of_call(op.moves()));
        if let (Op::Getdents, Some(node)) = (op, used.node) {
            self.order.list(node);
        }
        match op {
            Op::Lseek => self.learn_end(used, args, call.outcome.value()),
            Op::Flock | Op::Lock => self.learn_refusal(used, call.outcome),
            _ => {}
        }
        if let Outcome::Value(value) = call.outcome {
            self.learn_use(op, id, used, &written, value);
        }
        if maps {
            self.mapped(call, id, args);
        }
        Ok(Disposition::Event)
    }

    /// Take a call on a descriptor that holds no file below the roots, or one that cannot be opened again.
    fn on_none_of_the_trace(
        &mut self,
        call: &Call<'_>,
        op: Op,
        held: Option<&FdTarget>,
    ) -> Disposition {
        if let Some(FdTarget::Pipe(end)) = held {
            self.through_pipe(call, op, *end);
        } else if let Some(task) = self.tasks.get_mut(call.task) {
            task.has_used_another();
        }
        match held {
            Some(FdTarget::Lost(why)) => return self.leave_out(call, why),
            Some(_) => self.counts.out_of_scope.add(call.name),
            None => {
                self.counts.unknown_file.add(call.name);
                if self.knows_descriptors && call.outcome.is_ok() {
                    self.counts.blind.add(UNTOLD);
                }
            }
        }
        Disposition::Other
    }

    fn learn_use(&mut self, op: Op, id: u32, used: UsedFile, args: &Args<'_>, value: i64) {
        match op.class() {
            Class::Mark => self.usage.changed(used.path),
            Class::Read if op != Op::Getdents && op != Op::Mmap => {
                self.counts.bytes_read += u64::try_from(value).unwrap_or(0);
            }
            Class::Write if !matches!(op, Op::Ftruncate | Op::Fallocate) => {
                self.counts.bytes_written += u64::try_from(value).unwrap_or(0);
            }
            _ => {}
        }
        match op {
            Op::Read | Op::Readv => {
                self.learn_read(used, used.offset, (args.size.unwrap_or(value), value));
                self.advance(id, value);
            }
            Op::Pread | Op::Preadv => {
                self.learn_read(used, args.offset, (args.size.unwrap_or(value), value));
            }
            Op::Write | Op::Writev => {
                self.learn_write(used.flagged(args), used.offset, value);
                self.advance(id, value);
            }
            Op::Pwrite | Op::Pwritev => self.learn_write(used.flagged(args), args.offset, value),
            Op::Lseek => self.seek(id, value),
            _ => self.learn_other_use(op, id, used, args),
        }
    }

    fn learn_other_use(&mut self, op: Op, id: u32, used: UsedFile, args: &Args<'_>) {
        let Some(node) = used.node else {
            return;
        };
        match op {
            Op::Getdents => {
                if let Some(node) = self.tree.node_mut(node) {
                    node.listed = true;
                }
                self.learn_entries(id, node, args.entries);
            }
            Op::Fstat => {
                let kind = args.seen.map_or(FileKind::Unknown, |seen| seen.kind);
                if self.tree.kind(node) == FileKind::Unknown && kind != FileKind::Unknown {
                    self.tree.set_kind(node, kind);
                }
                self.learn_seen(node, args);
            }
            Op::Ftruncate => {
                let size = args.size.unwrap_or(0);
                self.order.data(node, (size, i64::MAX), Access::Write);
                self.tree.resized(node, size);
                self.usage.changed(used.path);
            }
            Op::Fallocate if args.flags.unwrap_or(0) & FALLOC_FL_KEEP_SIZE == 0 => {
                let placed = UsedFile {
                    appends: false,
                    ..used
                };
                self.learn_write(placed, args.offset, args.size.unwrap_or(0));
            }
            Op::Flock | Op::Lock => self.learn_lock(op, id, node, args),
            Op::Mmap => {
                let start = args.offset.unwrap_or(0);
                let writes = args.mode.unwrap_or(0) & 2 != 0 && args.flags.unwrap_or(0) & 1 != 0;
                let end = start.saturating_add(args.size.unwrap_or(0));
                self.order.data(node, (start, end), Access::of_call(writes));
                self.counts.blind.add(if self.sees_pages {
                    MAPPED_IN_PART
                } else {
                    "mmap"
                });
                if writes {
                    self.usage.changed(used.path);
                }
            }
            _ => {}
        }
    }

    fn learn_lock(&mut self, op: Op, id: u32, node: crate::tree::NodeId, args: &Args<'_>) {
        let Some(description) = self.files.get_mut(id) else {
            return;
        };
        description.locks = true;
        // Of a lock that is let go in part nothing is known to be left.
        if let Some(change) = args.change_of_lock(op) {
            let holders = self.holders.entry(node).or_default();
            holders.retain(|&slot| slot != description.slot);
            if change != LockChange::Free {
                holders.push(description.slot);
            }
        }
        let shared = if op == Op::Flock {
            args.flags.unwrap_or(0) & LOCK_SH != 0
        } else {
            args.mode == Some(F_RDLCK)
        };
        if args.unlocks(op) {
            self.order.unlock(node, description.slot);
        } else {
            let access = Access::of_call(!shared);
            self.order.lock(node, description.slot, access);
        }
    }

    /// A lock that is not waited for is refused because others have it; one that is waited for ends otherwise if it fails.
    fn learn_refusal(&mut self, used: UsedFile, outcome: Outcome) {
        let is_refused = matches!(outcome, Outcome::Error(EAGAIN | EACCES));
        if let Some(node) = used.node.filter(|_| is_refused) {
            self.order.refuse(node, used.slot);
        }
    }

    pub(crate) fn learn_read(
        &mut self,
        used: UsedFile,
        offset: Option<i64>,
        (asked, got): (i64, i64),
    ) {
        if let (Some(node), Some(offset)) = (used.node, offset) {
            self.tree.saw_read(node, offset, got, asked);
            self.order
                .data(node, (offset, offset.saturating_add(asked)), Access::Read);
        }
    }

    /// Learn from a seek that looks for the end of a file, or for its data or holes.
    fn learn_end(&mut self, used: UsedFile, args: &Args<'_>, reached: Option<i64>) {
        let (Some(node), asked) = (used.node, args.offset.unwrap_or(0)) else {
            return;
        };
        let start = match (args.flags, reached) {
            (Some(SEEK_END), Some(reached)) => {
                let size = reached.saturating_sub(asked);
                let followed = self.tree.size(node);
                self.tree.saw_end(node, size);
                // Its last byte too: who wrote that made the end what it is.
                size.min(followed).saturating_sub(1).max(0)
            }
            (Some(SEEK_DATA | SEEK_HOLE), _) => asked,
            _ => return,
        };
        self.order.data(node, (start, i64::MAX), Access::Read);
    }

    /// Learn from a write at a position; with `O_APPEND` it went to the end all the same (BUGS of `pwrite(2)`).
    pub(crate) fn learn_write(&mut self, used: UsedFile, offset: Option<i64>, count: i64) {
        self.usage.changed(used.path);
        let Some(node) = used.node else {
            return;
        };
        let (offset, access) = if used.appends {
            (Some(self.tree.size(node)), Access::Add)
        } else {
            (offset, Access::Write)
        };
        // Where it is not known, it may be anywhere.
        let span = offset.map_or((0, i64::MAX), |start| (start, start.saturating_add(count)));
        self.order.data(node, span, access);
        self.tree.wrote(node, offset.unwrap_or(0), count);
    }

    pub(crate) fn advance(&mut self, id: u32, count: i64) {
        if let Some(description) = self.files.get_mut(id) {
            description.offset = description
                .offset
                .map(|offset| offset.saturating_add(count));
        }
    }

    pub(crate) fn seek(&mut self, id: u32, offset: i64) {
        if let Some(description) = self.files.get_mut(id) {
            description.offset = Some(offset);
            description.listing = None;
        }
    }

    /// Learn from what a call of a listing returned: its end tells how many names there are.
    fn learn_entries(&mut self, id: u32, node: NodeId, entries: Option<i64>) {
        let Some(description) = self.files.get_mut(id) else {
            return;
        };
        // Where it goes on only the directory knows.
        let offset = description.offset.take();
        let begun = description.listing.take();
        let begun = begun.or_else(|| (offset == Some(0)).then(|| self.tree.begin_listing(node)));
        match (begun, entries) {
            (Some(listing), Some(0)) => self.tree.was_listed(node, listing),
            (Some(listing), Some(more)) => description.listing = Some(listing.plus(more)),
            _ => {}
        }
    }
}

/// What a call needs to know of the description it uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsedFile {
    pub(crate) slot: u32,
    pub(crate) path: PathId,
    pub(crate) node: Option<crate::tree::NodeId>,
    pub(crate) offset: Option<i64>,
    pub(crate) appends: bool,
}

impl UsedFile {
    pub(crate) fn of(description: &Description) -> Self {
        Self {
            slot: description.slot,
            path: description.path,
            node: description.node,
            offset: description.offset,
            appends: description.appends,
        }
    }

    /// The same for a write whose flags may say where it goes (pwritev2(2)).
    pub(crate) fn flagged(self, args: &Args<'_>) -> Self {
        let flags = args.flags.unwrap_or(0);
        let appends = flags & RWF_APPEND != 0 || self.appends && flags & RWF_NOAPPEND == 0;
        Self { appends, ..self }
    }
}

impl Tracker {
    /// Take a call that moves bytes from one descriptor to another; one of them may lie outside of the roots.
    pub(crate) fn on_two_files(
        &mut self,
        call: &Call<'_>,
        op: Op,
        both: [FileArg<'_>; 2],
        args: &Args<'_>,
    ) -> Result<Disposition, TraceError> {
        let held = both.map(|file| self.held(call.task, file));
        self.between_pipes(call, &held);
        let lost = held.iter().flatten().find_map(FdTarget::lost);
        let is_inside = held.iter().flatten().any(|held| held.inside().is_some());
        let [source, target] = held.map(|held| self.with_bytes(held?.inside()?));
        if source.is_none() && target.is_none() {
            // Below the roots, and without bytes.
            let special = is_inside.then_some(SPECIAL);
            if let Some(why) = lost.or(special) {
                return Ok(self.leave_out(call, why));
            }
            self.counts.out_of_scope.add(call.name);
            return Ok(Disposition::Other);
        }
        let [from, to] = [source, target].map(|id| {
            let id = id?;
            Some((id, UsedFile::of(self.files.get(id)?)))
        });
        let operands = Operands {
            file: from.map(|(_, used)| used.slot),
            to_file: to.map(|(_, used)| used.slot),
            ..Operands::default()
        };
        self.emit(call, op, operands, args)?;
        for (_, used) in [from, to].into_iter().flatten() {
            self.order.file(used.slot, Access::Write);
        }
        let Outcome::Value(value) = call.outcome else {
            return Ok(Disposition::Event);
        };
        let count = if op == Op::Clone { i64::MAX } else { value };
        if let Some((id, used)) = from {
            let offset = args.offset.or(used.offset).filter(|_| op != Op::Clone);
            self.learn_read(used, offset, (count, count));
            if args.offset.is_none() {
                self.advance(id, count);
            }
            self.counts.bytes_read += u64::try_from(value).unwrap_or(0);
        }
        if let Some((id, used)) = to {
            let placed = args.text.as_deref().and_then(crate::bytes::number);
            self.learn_write(used, placed.or(used.offset), value);
            if placed.is_none() {
                self.advance(id, value);
            }
            self.counts.bytes_written += u64::try_from(value).unwrap_or(0);
        }
        Ok(Disposition::Event)
    }

    /// The same description, unless it is one of a fifo, socket or device: these have no bytes of their own.
    fn with_bytes(&self, id: u32) -> Option<u32> {
        let node = self.files.get(id).and_then(|one| one.node);
        (!self.tree.is_special(node)).then_some(id)
    }
}
