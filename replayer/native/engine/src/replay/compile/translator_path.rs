//! Calls on paths.

use super::operands::Operands;
use super::slots::Reason;
use super::translator::{BETWEEN_ROOTS, Translator, UNKNOWN};
use crate::replay::program::{Call, Place, ReplayCall, Subject, TextId, Traced};
use crate::sys::is_list;
use replayer_ops::Flag;
use replayer_trace::{Event, Op};

/// `AT_EACCESS` and `AT_SYMLINK_NOFOLLOW`.
const ACCESS_FLAGS: u32 = 0x300;
/// `RENAME_NOREPLACE` and `RENAME_EXCHANGE`; a whiteout would be a device.
const RENAME_FLAGS: u32 = 3;
/// `AT_SYMLINK_FOLLOW`.
const LINK_FLAGS: u32 = 0x400;
/// The most bytes of a name and of a value of an attribute (xattr(7)), and one more to be refused.
const NAME_BYTES: usize = 255;
pub(super) const VALUE_BYTES: u64 = (1 << 16) + 1;
/// The longest path that a buffer is given for (limits.h, `PATH_MAX`).
const TARGET_BYTES: u64 = 4096;

fn looked_at(at: Place, event: &Event) -> Call<Traced> {
    let follow = event.op == Op::Stat;
    match Operands(event).sync() {
        Some(sync) => Call::Statx { at, follow, sync },
        None if follow => Call::Stat { at },
        None => Call::Lstat { at },
    }
}

impl Translator<'_> {
    /// What an event does to a path.
    pub(super) fn path_call(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        self.note_special(event)?;
        if event.to_path.is_some() {
            return self.pair_call(event);
        }
        if event.op.is(Flag::xattr) {
            let (path, follow) = (self.path(event)?, event.op.follows());
            return self.attribute(Subject::Path { path, follow }, event);
        }
        let at = self.place(event.path, event.to_file)?;
        self.place_call(at, event)
    }

    fn pair_call(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        if self.crosses_roots(event, [event.path, event.to_path]) {
            return Err(BETWEEN_ROOTS);
        }
        let at = self.place(event.path, event.to_file)?;
        let to = self.place(event.to_path, event.file)?;
        let operands = Operands(event);
        let call = match event.op {
            Op::Rename => Call::Rename {
                at,
                to,
                flags: operands.flags(RENAME_FLAGS)?,
            },
            Op::Link => Call::Link {
                at,
                to,
                flags: operands.flags(LINK_FLAGS)?,
            },
            _ => return Err(UNKNOWN),
        };
        Ok(ReplayCall::Plain(call))
    }

    /// A link of what is open: its second file, where another link has the directory that its first path began at.
    pub(super) fn link_open(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        let opened = event.to_file.and_then(|file| self.slots.path(file));
        if self.crosses_roots(event, [opened, event.to_path]) {
            return Err(BETWEEN_ROOTS);
        }
        let to = self.place(event.to_path, event.file)?;
        let slot = self.slot(event.to_file)?;
        Ok(ReplayCall::LinkOpen { slot, to })
    }

    fn place_call(&mut self, at: Place, event: &Event) -> Result<ReplayCall, Reason> {
        let operands = Operands(event);
        let mode = operands.permissions();
        let (uid, gid) = operands.owner();
        Ok(ReplayCall::Plain(match event.op {
            Op::Stat | Op::Lstat => looked_at(at, event),
            Op::Access => Call::Access {
                at,
                mode: operands.flags(7)?,
                flags: operands.mode_bits(ACCESS_FLAGS),
            },
            Op::Chdir => Call::Chdir { at },
            Op::Statfs => Call::Statfs { at },
            Op::Mkdir => Call::Mkdir { at, mode },
            // Of whatever type: a file stands in for a fifo, a socket or a device.
            Op::Mknod => Call::Mknod { at, mode },
            Op::Rmdir => Call::Rmdir { at },
            Op::Unlink => Call::Unlink { at },
            Op::Readlink => Call::Readlink {
                at,
                size: operands.buffer(TARGET_BYTES)?,
            },
            Op::Symlink => Call::Symlink {
                at,
                target: self.target(event)?,
            },
            Op::Truncate => Call::Truncate {
                at,
                size: operands.bytes()?,
            },
            Op::Chmod => Call::Chmod { at, mode },
            Op::Chown | Op::Lchown => Call::Chown {
                at,
                uid,
                gid,
                follow: event.op == Op::Chown,
            },
            Op::Utimens | Op::Lutimens => Call::Utimens {
                at,
                times: Box::new(operands.times()),
                follow: event.op == Op::Utimens,
            },
            _ => return Err(UNKNOWN),
        }))
    }

    pub(super) fn attribute(&mut self, on: Subject, event: &Event) -> Result<ReplayCall, Reason> {
        let operands = Operands(event);
        Ok(ReplayCall::Plain(match event.op {
            Op::Getxattr | Op::Lgetxattr | Op::Fgetxattr => Call::Getxattr {
                on,
                name: self.attribute_name(event)?,
                size: operands.buffer(VALUE_BYTES)?,
            },
            Op::Setxattr | Op::Lsetxattr | Op::Fsetxattr => {
                let flags = operands.flags(3)?;
                match operands.listed_mode() {
                    Some(mode) => Call::SetList { on, mode, flags },
                    None => Call::Setxattr {
                        on,
                        name: self.users_attribute(event)?,
                        size: operands.buffer(VALUE_BYTES)?,
                        flags,
                    },
                }
            }
            Op::Removexattr | Op::Lremovexattr | Op::Fremovexattr => Call::Removexattr {
                on,
                name: if is_list(event.text.as_deref().unwrap_or_default()) {
                    self.attribute_name(event)?
                } else {
                    self.users_attribute(event)?
                },
            },
            Op::Listxattr | Op::Llistxattr | Op::Flistxattr => Call::Listxattr {
                on,
                size: operands.buffer(VALUE_BYTES)?,
            },
            _ => return Err(UNKNOWN),
        }))
    }

    fn attribute_name(&mut self, event: &Event) -> Result<TextId, Reason> {
        let name = event.text.as_deref().unwrap_or_default();
        if name.is_empty() || name.len() > NAME_BYTES || name.contains(&0) {
            return Err("attribute whose name is none");
        }
        self.text(name, 0)
    }

    /// Only these are changed: others have a meaning for the system.
    fn users_attribute(&mut self, event: &Event) -> Result<TextId, Reason> {
        let name = event.text.as_deref().unwrap_or_default();
        if !name.starts_with(b"user.") {
            return Err("attribute of the system is not changed");
        }
        self.attribute_name(event)
    }
}
