//! A system call with its operands, in the words of whoever asks for it, and how it is made: steps of plans and events of traces alike.
//!
//! What is more than one call, moves data or is judged in a way of its own is a `StepCall` or a `ReplayCall`.

use crate::document::integer;
use crate::ops::Op;
use crate::program::Owner;
use crate::sys::{Answer, At, Kernel, Links, Scratch, Through, Times, files};
use serde::Deserialize;
use std::fmt::Debug;
use std::os::fd::RawFd;

/// What operands are for whoever asks for a call.
pub(crate) trait Operands: Clone + Debug {
    /// An open file.
    type File: Clone + Debug;
    type Place: Clone + Debug;
    /// A size or an offset.
    type Number: Clone + Debug;
    /// Permissions.
    type Mode: Clone + Debug;
    /// A user or a group.
    type Id: Clone + Debug;
    type Times: Clone + Debug;
}

/// The longest path that a buffer is given for (limits.h, `PATH_MAX`).
fn link_bytes() -> u64 {
    4096
}

/// A system call. Plans have the names of the variants as ops, with the fields that are not skipped (plan format 1).
#[derive(Clone, Debug, Deserialize)]
#[serde(
    rename_all = "snake_case",
    deny_unknown_fields,
    bound(
        deserialize = "O::File: Deserialize<'de>, O::Place: Deserialize<'de>, O::Number: Deserialize<'de>, O::Mode: Deserialize<'de>, \
                       O::Id: Deserialize<'de>, O::Times: Deserialize<'de>"
    )
)]
#[rustfmt::skip]
pub(crate) enum Call<O: Operands> {
    Fsync { #[serde(rename = "file")] slot: O::File },
    Fdatasync { #[serde(rename = "file")] slot: O::File },
    #[serde(skip)]
    Syncfs { slot: O::File },
    #[serde(skip)]
    SyncRange { slot: O::File, offset: O::Number, size: O::Number, flags: u32 },
    Fstat { #[serde(rename = "file")] slot: O::File },
    /// Where its data lie: extents are counted, not listed.
    Fiemap { #[serde(rename = "file")] slot: O::File },
    /// fstat that says how fresh attributes must be.
    #[serde(skip)]
    StatxFile { slot: O::File, sync: u32 },
    #[serde(skip)]
    Fstatfs { slot: O::File },
    Ftruncate { #[serde(rename = "file")] slot: O::File, size: O::Number },
    Fallocate { #[serde(rename = "file")] slot: O::File, offset: O::Number, size: O::Number, #[serde(deserialize_with = "integer::<_, _, 0, 0x7F>")] mode: u32 },
    #[serde(skip)]
    Advise { slot: O::File, offset: O::Number, size: O::Number, advice: u32 },
    #[serde(skip)]
    Readahead { slot: O::File, offset: O::Number, size: O::Number },
    Fchmod { #[serde(rename = "file")] slot: O::File, mode: O::Mode },
    Fchown { #[serde(rename = "file")] slot: O::File, uid: O::Id, gid: O::Id, #[serde(skip)] through: Through },
    Futimens { #[serde(rename = "file")] slot: O::File, #[serde(rename = "mtime_ns")] times: O::Times, #[serde(skip)] through: Through },
    Stat { #[serde(rename = "path")] at: O::Place },
    Lstat { #[serde(rename = "path")] at: O::Place },
    /// stat or lstat that says how fresh attributes must be.
    #[serde(skip)]
    Statx { at: O::Place, follow: bool, sync: u32 },
    Access { #[serde(rename = "path")] at: O::Place, #[serde(deserialize_with = "integer::<_, _, 0, 7>")] mode: u32, #[serde(skip)] flags: u32 },
    /// A look-up of a directory: nobody's working directory changes.
    #[serde(skip)]
    Chdir { at: O::Place },
    #[serde(skip)]
    Statfs { at: O::Place },
    Mkdir { #[serde(rename = "path")] at: O::Place, mode: O::Mode },
    /// Regular files only (`mode` has no type bits).
    #[serde(skip)]
    Mknod { at: O::Place, mode: O::Mode },
    Rmdir { #[serde(rename = "path")] at: O::Place },
    Unlink { #[serde(rename = "path")] at: O::Place },
    Readlink { #[serde(rename = "path")] at: O::Place, #[serde(skip, default = "link_bytes")] size: u64 },
    Rename { #[serde(rename = "path")] at: O::Place, to: O::Place, #[serde(deserialize_with = "integer::<_, _, 0, 2>")] flags: u32 },
    Link { #[serde(rename = "path")] at: O::Place, to: O::Place, #[serde(skip)] flags: u32 },
    Truncate { #[serde(rename = "path")] at: O::Place, size: O::Number },
    Chmod { #[serde(rename = "path")] at: O::Place, mode: O::Mode },
    Chown { #[serde(rename = "path")] at: O::Place, uid: O::Id, gid: O::Id, #[serde(skip)] follow: bool },
    Utimens { #[serde(rename = "path")] at: O::Place, #[serde(rename = "mtime_ns")] times: O::Times, #[serde(skip)] follow: bool },
}

impl<O: Operands> Call<O> {
    /// Its paths, if it has some.
    pub(crate) fn places(&mut self) -> [Option<&mut O::Place>; 2] {
        match self {
            Call::Rename { at, to, .. } | Call::Link { at, to, .. } => [Some(at), Some(to)],
            Call::Stat { at }
            | Call::Lstat { at }
            | Call::Statx { at, .. }
            | Call::Access { at, .. }
            | Call::Chdir { at }
            | Call::Statfs { at }
            | Call::Mkdir { at, .. }
            | Call::Mknod { at, .. }
            | Call::Rmdir { at }
            | Call::Unlink { at }
            | Call::Readlink { at, .. }
            | Call::Truncate { at, .. }
            | Call::Chmod { at, .. }
            | Call::Chown { at, .. }
            | Call::Utimens { at, .. } => [Some(at), None],
            _ => [None, None],
        }
    }

    /// Its sizes and offsets.
    pub(crate) fn numbers(&self) -> [Option<&O::Number>; 2] {
        match self {
            Call::SyncRange { offset, size, .. }
            | Call::Fallocate { offset, size, .. }
            | Call::Advise { offset, size, .. }
            | Call::Readahead { offset, size, .. } => [Some(offset), Some(size)],
            Call::Ftruncate { size, .. } | Call::Truncate { size, .. } => [Some(size), None],
            _ => [None, None],
        }
    }

    /// Its times, if it sets some.
    pub(crate) fn times(&self) -> Option<&O::Times> {
        match self {
            Call::Futimens { times, .. } | Call::Utimens { times, .. } => Some(times),
            _ => None,
        }
    }
}

/// Who has calls made: finds out what their operands are, times them, judges and records what they returned.
pub(crate) trait Executor: Sized {
    type Operands: Operands;
    type Kernel: Kernel;
    type Done;

    fn number(&mut self, number: &NumberOf<Self>) -> u64;
    fn mode_of(&mut self, file: &FileOf<Self>, mode: &ModeOf<Self>) -> u32;
    fn mode_at(&mut self, place: &PlaceOf<Self>, mode: &ModeOf<Self>) -> u32;
    fn owner(&self, uid: &IdOf<Self>, gid: &IdOf<Self>) -> Owner;
    fn times(&mut self, times: &TimesOf<Self>) -> Times;
    fn buffer(&self, size: u64) -> Scratch;

    /// Call on an open file.
    fn on(self, op: Op, file: &FileOf<Self>, call: impl FnOnce(RawFd) -> Answer) -> Self::Done;
    /// Call at a path.
    fn at(
        self,
        op: Op,
        place: &PlaceOf<Self>,
        call: impl FnOnce(&Self::Kernel, At<'_>) -> Answer,
    ) -> Self::Done;
    /// Call at two paths.
    fn pair(
        self,
        op: Op,
        places: (&PlaceOf<Self>, &PlaceOf<Self>),
        call: impl FnOnce(&Self::Kernel, At<'_>, At<'_>) -> Answer,
    ) -> Self::Done;
}

pub(crate) type FileOf<E> = <<E as Executor>::Operands as Operands>::File;
pub(crate) type PlaceOf<E> = <<E as Executor>::Operands as Operands>::Place;
pub(crate) type NumberOf<E> = <<E as Executor>::Operands as Operands>::Number;
pub(crate) type ModeOf<E> = <<E as Executor>::Operands as Operands>::Mode;
pub(crate) type IdOf<E> = <<E as Executor>::Operands as Operands>::Id;
pub(crate) type TimesOf<E> = <<E as Executor>::Operands as Operands>::Times;

/// Flags of renameat2 that are handed on: NOREPLACE and EXCHANGE.
const RENAME_FLAGS: u32 = 3;

/// Make a call: operands are drawn first, then the slot of its file is looked at.
#[inline(never)]
#[expect(clippy::too_many_lines, reason = "a line or two a call")]
#[rustfmt::skip]
pub(crate) fn execute<E: Executor>(call: &Call<E::Operands>, mut by: E) -> E::Done {
    match call {
        Call::Fsync { slot } => by.on(Op::Fsync, slot, files::fsync),
        Call::Fdatasync { slot } => by.on(Op::Fdatasync, slot, files::fdatasync),
        Call::Syncfs { slot } => by.on(Op::Syncfs, slot, files::syncfs),
        Call::SyncRange { slot, offset, size, flags } => {
            let range = (by.number(offset), by.number(size));
            by.on(Op::SyncFileRange, slot, |f| files::sync_range(f, range, *flags))
        }
        Call::Fstat { slot } => by.on(Op::Fstat, slot, files::fstat),
        Call::Fiemap { slot } => by.on(Op::Fiemap, slot, files::fiemap),
        Call::StatxFile { slot, sync } => by.on(Op::Fstat, slot, |f| files::statx_of(f, *sync)),
        Call::Fstatfs { slot } => by.on(Op::Fstatfs, slot, files::fstatfs),
        Call::Ftruncate { slot, size } => {
            let size = by.number(size);
            by.on(Op::Ftruncate, slot, |f| files::ftruncate(f, size))
        }
        Call::Fallocate { slot, offset, size, mode } => {
            let range = (by.number(offset), by.number(size));
            by.on(Op::Fallocate, slot, |f| files::fallocate(f, range, *mode))
        }
        Call::Advise { slot, offset, size, advice } => {
            let range = (by.number(offset), by.number(size));
            by.on(Op::Fadvise, slot, |f| files::advise(f, range, *advice))
        }
        Call::Readahead { slot, offset, size } => {
            let range = (by.number(offset), by.number(size));
            by.on(Op::Readahead, slot, |f| files::readahead(f, range))
        }
        Call::Fchmod { slot, mode } => {
            let mode = by.mode_of(slot, mode);
            by.on(Op::Fchmod, slot, |f| files::fchmod(f, mode))
        }
        Call::Fchown { slot, uid, gid, through } => {
            let owner = by.owner(uid, gid);
            by.on(Op::Fchown, slot, |f| files::fchown(f, owner, *through))
        }
        Call::Futimens { slot, times, through } => {
            let times = by.times(times);
            by.on(Op::Futimens, slot, |f| files::futimens(f, times, *through))
        }
        Call::Stat { at } => by.at(Op::Stat, at, Kernel::stat),
        Call::Lstat { at } => by.at(Op::Lstat, at, Kernel::lstat),
        Call::Statx { at, follow, sync } => {
            let (op, links) = either(*follow, [Op::Stat, Op::Lstat]);
            by.at(op, at, |k, at| k.statx(at, links, *sync))
        }
        Call::Access { at, mode, flags } => by.at(Op::Access, at, |k, at| k.access(at, *mode, *flags)),
        Call::Chdir { at } => by.at(Op::Chdir, at, Kernel::look_up),
        Call::Statfs { at } => by.at(Op::Statfs, at, |k, at| k.statfs(at.whole)),
        Call::Mkdir { at, mode } => {
            let mode = by.mode_at(at, mode);
            by.at(Op::Mkdir, at, |k, at| k.mkdir(at, mode))
        }
        Call::Mknod { at, mode } => {
            let mode = by.mode_at(at, mode);
            by.at(Op::Mknod, at, |k, at| k.mknod(at, mode))
        }
        Call::Rmdir { at } => by.at(Op::Rmdir, at, Kernel::rmdir),
        Call::Unlink { at } => by.at(Op::Unlink, at, Kernel::unlink),
        Call::Readlink { at, size } => {
            let buffer = by.buffer(*size);
            by.at(Op::Readlink, at, |k, at| k.readlink(at, buffer))
        }
        Call::Rename { at, to, flags } => {
            by.pair(Op::Rename, (at, to), |k, from, to| k.rename(from, to, flags & RENAME_FLAGS))
        }
        Call::Link { at, to, flags } => {
            let follow = flags & libc::AT_SYMLINK_FOLLOW.cast_unsigned() != 0;
            let (op, links) = either(follow, [Op::Link; 2]);
            by.pair(op, (at, to), |k, from, to| k.link(from, to, links))
        }
        Call::Truncate { at, size } => {
            let size = by.number(size);
            by.at(Op::Truncate, at, |k, at| k.truncate(at.whole, size))
        }
        Call::Chmod { at, mode } => {
            let mode = by.mode_at(at, mode);
            by.at(Op::Chmod, at, |k, at| k.chmod(at, mode))
        }
        Call::Chown { at, uid, gid, follow } => {
            let owner = by.owner(uid, gid);
            let (op, links) = either(*follow, [Op::Chown, Op::Lchown]);
            by.at(op, at, |k, at| k.chown(at, owner, links))
        }
        Call::Utimens { at, times, follow } => {
            let times = by.times(times);
            let (op, links) = either(*follow, [Op::Utimens, Op::Lutimens]);
            by.at(op, at, |k, at| k.utimens(at, times, links))
        }
    }
}

/// The op of a call that follows a link in the last place, or of one that does not.
fn either(follow: bool, [follows, keeps]: [Op; 2]) -> (Op, Links) {
    if follow {
        (follows, Links::Follow)
    } else {
        (keeps, Links::Keep)
    }
}
