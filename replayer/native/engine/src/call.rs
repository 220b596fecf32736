//! A system call with its operands, in the words of whoever asks for it, and how it is made: steps of plans and events of traces alike.
//!
//! What moves data is a `StepCall` or a `ReplayCall`, as is what no program calls.

use crate::document::{given, integer, word};
use crate::ops::Op;
use crate::program::{LockKind, Owner, open_flags};
use crate::sys::controls::{self, LockRange};
use crate::sys::{
    ACCESS_LIST, Answer, At, Attributed, How, Kernel, Links, Scratch, Through, Times, access_list,
    files,
};
use serde::Deserialize;
use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt::Debug;
use std::os::fd::RawFd;

/// What operands are for whoever asks for a call.
pub(crate) trait Operands: Clone + Debug {
    /// An open file.
    type File: Clone + Debug;
    type Place: Clone + Debug;
    /// What an attribute belongs to.
    type Subject: Clone + Debug;
    /// The name of an attribute.
    type Name: Clone + Debug;
    /// Where a symlink points.
    type Target: Clone + Debug;
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

/// The buffer for attributes: the largest value of one, and the longest list of names (xattr(7)).
fn attribute_bytes() -> u64 {
    64 << 10
}

/// A system call. Plans have the names of the variants as ops, with the fields that are not skipped (plan format 1).
#[derive(Clone, Debug, Deserialize)]
#[serde(
    rename_all = "snake_case",
    deny_unknown_fields,
    bound(
        deserialize = "O::File: Deserialize<'de>, O::Place: Deserialize<'de>, O::Subject: Deserialize<'de>, O::Name: Deserialize<'de>, \
                       O::Target: Deserialize<'de>, O::Number: Deserialize<'de>, O::Mode: Deserialize<'de>, O::Id: Deserialize<'de>, \
                       O::Times: Deserialize<'de>"
    )
)]
#[rustfmt::skip]
pub(crate) enum Call<O: Operands> {
    /// `slot`: the one that it fills; a plan's is that of the path, and an event that was recorded to fail has none.
    Open {
        #[serde(rename = "path")] at: O::Place, #[serde(default, deserialize_with = "given")] slot: Option<O::File>,
        #[serde(deserialize_with = "open_flags")] flags: u32, mode: O::Mode, #[serde(skip)] resolve: u32,
    },
    Close { #[serde(rename = "file")] slot: O::File },
    /// `offset`: the bits of a signed number; a plan's are not below 0.
    Lseek { #[serde(rename = "file")] slot: O::File, offset: O::Number, #[serde(deserialize_with = "integer::<_, _, 0, 2>")] whence: u32 },
    Flock { #[serde(rename = "file")] slot: O::File, #[serde(deserialize_with = "word")] kind: LockKind, wait: bool },
    FlockUnlock { #[serde(rename = "file")] slot: O::File },
    /// `offset` and `size`: the bits of signed numbers; `before`: what it goes back to where it was refused when it was recorded.
    FcntlLock {
        #[serde(rename = "file")] slot: O::File, #[serde(deserialize_with = "word")] kind: LockKind, wait: bool,
        offset: O::Number, size: O::Number, #[serde(skip)] whence: u32, #[serde(skip)] before: LockKind,
    },
    FcntlUnlock { #[serde(rename = "file")] slot: O::File, offset: O::Number, size: O::Number },
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
    Symlink { #[serde(rename = "path")] at: O::Place, target: O::Target },
    Getxattr { #[serde(rename = "path")] on: O::Subject, name: O::Name, #[serde(skip, default = "attribute_bytes")] size: u64 },
    Setxattr { #[serde(rename = "path")] on: O::Subject, name: O::Name, size: O::Number, #[serde(skip)] flags: u32 },
    /// Set the access control list that says the same as a mode.
    #[serde(skip)]
    SetList { on: O::Subject, mode: u32, flags: u32 },
    Removexattr { #[serde(rename = "path")] on: O::Subject, name: O::Name },
    Listxattr { #[serde(rename = "path")] on: O::Subject, #[serde(skip, default = "attribute_bytes")] size: u64 },
}

impl<O: Operands> Call<O> {
    /// Its paths, if it has some.
    pub(crate) fn places(&mut self) -> [Option<&mut O::Place>; 2] {
        match self {
            Call::Rename { at, to, .. } | Call::Link { at, to, .. } => [Some(at), Some(to)],
            Call::Open { at, .. }
            | Call::Symlink { at, .. }
            | Call::Stat { at }
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
            | Call::FcntlLock { offset, size, .. }
            | Call::FcntlUnlock { offset, size, .. }
            | Call::Fallocate { offset, size, .. }
            | Call::Advise { offset, size, .. }
            | Call::Readahead { offset, size, .. } => [Some(offset), Some(size)],
            Call::Ftruncate { size, .. }
            | Call::Truncate { size, .. }
            | Call::Setxattr { size, .. }
            | Call::Lseek { offset: size, .. } => [Some(size), None],
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
pub(crate) trait Executor<'c>: Sized {
    type Operands: Operands;
    type Kernel: Kernel;
    type Done;

    fn number(&mut self, number: &NumberOf<'c, Self>) -> u64;
    fn mode_of(&mut self, file: &FileOf<'c, Self>, mode: &ModeOf<'c, Self>) -> u32;
    fn mode_at(&mut self, place: &PlaceOf<'c, Self>, mode: &ModeOf<'c, Self>) -> u32;
    fn owner(&self, uid: &IdOf<'c, Self>, gid: &IdOf<'c, Self>) -> Owner;
    fn times(&mut self, times: &TimesOf<'c, Self>) -> Times;
    fn buffer(&self, size: u64) -> Scratch;
    fn text(&self, name: &'c NameOf<'c, Self>) -> Cow<'c, CStr>;
    /// What an attribute is set to.
    fn value(&self, on: &SubjectOf<'c, Self>, name: &CStr, size: u64) -> &'c [u8];

    /// Call on an open file.
    fn on(self, op: Op, file: &FileOf<'c, Self>, call: impl FnOnce(RawFd) -> Answer) -> Self::Done;
    /// Call at a path.
    fn at(
        self,
        op: Op,
        place: &PlaceOf<'c, Self>,
        call: impl FnOnce(&Self::Kernel, At<'_>) -> Answer,
    ) -> Self::Done;
    /// Call at two paths.
    fn pair(
        self,
        op: Op,
        places: (&PlaceOf<'c, Self>, &PlaceOf<'c, Self>),
        call: impl FnOnce(&Self::Kernel, At<'_>, At<'_>) -> Answer,
    ) -> Self::Done;
    /// Call on what has attributes. The op is that of an open file, of a link itself, or of what a path leads to.
    fn attribute(
        self,
        ops: [Op; 3],
        on: &SubjectOf<'c, Self>,
        call: impl FnOnce(&Self::Kernel, Attributed<'_>) -> Answer,
    ) -> Self::Done;
    fn open(
        self,
        place: &PlaceOf<'c, Self>,
        slot: Option<&FileOf<'c, Self>>,
        how: How,
    ) -> Self::Done;
    fn close(self, file: &FileOf<'c, Self>) -> Self::Done;
    fn symlink(self, place: &PlaceOf<'c, Self>, target: &TargetOf<'c, Self>) -> Self::Done;

    /// Move the position of a file.
    #[inline]
    fn seek(self, file: &FileOf<'c, Self>, offset: i64, whence: u32) -> Self::Done {
        self.on(Op::Lseek, file, |file| files::lseek(file, offset, whence))
    }
    /// Take a lock; and how what was held before comes back.
    #[inline]
    fn lock(
        self,
        op: Op,
        file: &FileOf<'c, Self>,
        take: impl FnOnce(RawFd) -> Answer,
        _give_back: impl FnOnce(RawFd) -> Answer,
    ) -> Self::Done {
        self.on(op, file, take)
    }
}

type OperandsOf<'c, E> = <E as Executor<'c>>::Operands;
pub(crate) type FileOf<'c, E> = <OperandsOf<'c, E> as Operands>::File;
pub(crate) type PlaceOf<'c, E> = <OperandsOf<'c, E> as Operands>::Place;
pub(crate) type SubjectOf<'c, E> = <OperandsOf<'c, E> as Operands>::Subject;
pub(crate) type NameOf<'c, E> = <OperandsOf<'c, E> as Operands>::Name;
pub(crate) type TargetOf<'c, E> = <OperandsOf<'c, E> as Operands>::Target;
pub(crate) type NumberOf<'c, E> = <OperandsOf<'c, E> as Operands>::Number;
pub(crate) type ModeOf<'c, E> = <OperandsOf<'c, E> as Operands>::Mode;
pub(crate) type IdOf<'c, E> = <OperandsOf<'c, E> as Operands>::Id;
pub(crate) type TimesOf<'c, E> = <OperandsOf<'c, E> as Operands>::Times;

/// Flags of renameat2 that are handed on: NOREPLACE and EXCHANGE.
const RENAME_FLAGS: u32 = 3;

const GET: [Op; 3] = [Op::Fgetxattr, Op::Lgetxattr, Op::Getxattr];
const SET: [Op; 3] = [Op::Fsetxattr, Op::Lsetxattr, Op::Setxattr];
const REMOVE: [Op; 3] = [Op::Fremovexattr, Op::Lremovexattr, Op::Removexattr];
const LIST: [Op; 3] = [Op::Flistxattr, Op::Llistxattr, Op::Listxattr];

/// Make a call: operands are drawn first, then the slot of its file is looked at.
#[inline(always)]
#[expect(clippy::too_many_lines, reason = "a line or two a call")]
#[expect(
    clippy::inline_always,
    reason = "its callers, one for steps and one for events, are not inlined: a second call costs 4 ns"
)]
#[rustfmt::skip]
pub(crate) fn execute<'c, E: Executor<'c>>(call: &'c Call<E::Operands>, mut by: E) -> E::Done {
    match call {
        Call::Open { at, slot, flags, mode, resolve } => {
            let (flags, mode, resolve) = (*flags, by.mode_at(at, mode), *resolve);
            by.open(at, slot.as_ref(), How { flags, mode, resolve })
        }
        Call::Close { slot } => by.close(slot),
        Call::Lseek { slot, offset, whence } => {
            let offset = by.number(offset).cast_signed();
            by.seek(slot, offset, *whence)
        }
        Call::Flock { slot, kind, wait } => {
            // A lock that is changed and refused is lost (flock(2)).
            let give_back = |f| controls::flock(f, LockKind::Unlock, true);
            by.lock(Op::Flock, slot, |f| controls::flock(f, *kind, *wait), give_back)
        }
        Call::FlockUnlock { slot } => by.on(Op::FlockUnlock, slot, |f| controls::flock(f, LockKind::Unlock, true)),
        Call::FcntlLock { slot, kind, wait, offset, size, whence, before } => {
            let (offset, size) = (by.number(offset).cast_signed(), by.number(size).cast_signed());
            let range = LockRange { kind: *kind, whence: *whence, offset, size };
            let before = LockRange { kind: *before, ..range };
            by.lock(Op::Lock, slot, |f| controls::lock(f, range, *wait), |f| controls::lock(f, before, false))
        }
        Call::FcntlUnlock { slot, offset, size } => {
            let (offset, size) = (by.number(offset).cast_signed(), by.number(size).cast_signed());
            let range = LockRange { kind: LockKind::Unlock, whence: 0, offset, size };
            by.on(Op::Lock, slot, |f| controls::lock(f, range, false))
        }
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
        Call::Symlink { at, target } => by.symlink(at, target),
        Call::Getxattr { on, name, size } => {
            let (name, buffer) = (by.text(name), by.buffer(*size));
            by.attribute(GET, on, |k, on| k.getxattr(on, &name, buffer))
        }
        Call::Setxattr { on, name, size, flags } => {
            let (name, size) = (by.text(name), by.number(size));
            let value = by.value(on, &name, size);
            by.attribute(SET, on, |k, on| k.setxattr(on, &name, (value, *flags)))
        }
        Call::SetList { on, mode, flags } => by.attribute(SET, on, |k, on| k.setxattr(on, ACCESS_LIST, (access_list(*mode), *flags))),
        Call::Removexattr { on, name } => {
            let name = by.text(name);
            by.attribute(REMOVE, on, |k, on| k.removexattr(on, &name))
        }
        Call::Listxattr { on, size } => {
            let buffer = by.buffer(*size);
            by.attribute(LIST, on, |k, on| k.listxattr(on, buffer))
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
