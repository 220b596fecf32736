//! Calls on open files.

use super::operands::{Operands, SET_STATUS};
use super::slots::{NOT_OPEN, Reason};
use super::translator::{BETWEEN_ROOTS, Translator};
use super::translator_lock::whole_lock;
use crate::replay::program::{Call, DataCall, ReplayCall, Slot, Subject};
use crate::sys::controls::asking;
use replayer_trace::{END_BYTES, Event, Op};

/// The largest buffer of a listing (chosen: glibc asks for 32 KiB, Samba for 1 MiB).
const LISTING_BYTES: u64 = 1 << 20;
/// Modes of fallocate that are known (as plan format 1 has it).
const ALLOCATE_MODES: u32 = 0x7F;
/// `O_APPEND`, `O_NONBLOCK`, `O_DIRECT` and `O_NOATIME`: what `F_SETFL` changes, `O_ASYNC` left out.
const STATUS_FLAGS: u64 = 0o2000 | 0o4000 | 0o40_000 | 0o1_000_000;
const GET_DESCRIPTOR: u32 = 1;
const SET_DESCRIPTOR: u32 = 2;
const GET_STATUS: u32 = 3;
/// `PROT_READ` and `PROT_WRITE`: nothing is ever executed.
const PROTECTION: u32 = 3;
/// `MAP_SHARED` and `MAP_PRIVATE`, and whether the pages are read at once: `MAP_POPULATE`, and `MAP_NONBLOCK`, which forbids it again.
const MAP_FLAGS: u32 = 3 | 0x8000 | 0x1_0000;
impl Translator<'_> {
    pub(super) fn file_call(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        if matches!(
            event.op,
            Op::CopyFileRange | Op::Clone | Op::Splice | Op::Sendfile
        ) {
            return self.two_files(event);
        }
        let slot = self.slot(event.file)?;
        match event.op {
            Op::Lock => self.record_lock(slot, event),
            _ => self.data_call(slot, event),
        }
    }

    fn two_files(&mut self, event: &Event) -> Result<ReplayCall, Reason> {
        let opened = [event.file, event.to_file].map(|file| self.slots.path(file?));
        if self.crosses_roots(event, opened) {
            return Err(BETWEEN_ROOTS);
        }
        let from = self.some_slot(event.file)?;
        let to = self.some_slot(event.to_file)?;
        if from.is_none() && to.is_none() {
            return Err(NOT_OPEN);
        }
        self.copy(event, from, to)
    }

    fn copy(
        &mut self,
        event: &Event,
        from: Option<Slot>,
        to: Option<Slot>,
    ) -> Result<ReplayCall, Reason> {
        if event.op == Op::Clone {
            let to = to.ok_or(NOT_OPEN)?;
            return Ok(ReplayCall::Clone { from, to });
        }
        let operands = Operands(event);
        let size = match (from, to) {
            (Some(_), Some(_)) => operands.copied()?,
            (None, _) => operands.moved()?,
            (_, None) => match operands.moved()? {
                0 => operands.buffer(END_BYTES)?,
                moved => moved,
            },
        };
        // Data sizes fit: MOST_DATA is below 2^31.
        let short = u32::try_from(size).unwrap_or(u32::MAX);
        let (from_offset, to_offset) = (operands.some_offset()?, operands.to_offset()?);
        if to.is_none() {
            self.reads(size);
        }
        Ok(ReplayCall::Transfer {
            op: event.op,
            from,
            to,
            size: short,
            from_offset,
            to_offset,
        })
    }

    fn data_call(&mut self, slot: Slot, event: &Event) -> Result<ReplayCall, Reason> {
        let operands = Operands(event);
        Ok(match event.op {
            Op::Read | Op::Pread | Op::Readv | Op::Preadv => {
                let call = moved(slot, event)?;
                self.reads(call.size);
                ReplayCall::Read(call)
            }
            Op::MmapRead => ReplayCall::ReadMapped(DataCall {
                slot,
                size: operands.data()?,
                offset: Some(operands.offset()?),
                vector: None,
            }),
            Op::Write | Op::Pwrite | Op::Writev | Op::Pwritev => {
                ReplayCall::Write(moved(slot, event)?)
            }
            Op::Lseek => ReplayCall::Plain(Call::Lseek {
                slot,
                offset: event.offset.unwrap_or(0).cast_unsigned(),
                whence: operands.command(4)?,
            }),
            Op::Getdents => ReplayCall::List {
                slot,
                size: self.reads(operands.buffer(LISTING_BYTES)?),
            },
            _ => return self.plain_call(slot, event),
        })
    }

    fn plain_call(&mut self, slot: Slot, event: &Event) -> Result<ReplayCall, Reason> {
        let operands = Operands(event);
        let (uid, gid) = operands.owner();
        Ok(ReplayCall::Plain(match event.op {
            Op::Fstat | Op::Stat | Op::Lstat => match operands.sync() {
                Some(sync) => Call::StatxFile { slot, sync },
                None => Call::Fstat { slot },
            },
            Op::Fiemap => Call::Fiemap { slot },
            Op::Fstatfs => Call::Fstatfs { slot },
            Op::Fsync => Call::Fsync { slot },
            Op::Fdatasync => Call::Fdatasync { slot },
            Op::Syncfs => Call::Syncfs { slot },
            Op::Ftruncate => Call::Ftruncate {
                slot,
                size: operands.bytes()?,
            },
            Op::Fchmod => Call::Fchmod {
                slot,
                mode: operands.permissions(),
            },
            Op::Fchown => Call::Fchown {
                slot,
                uid,
                gid,
                through: self.through(event),
            },
            Op::Futimens => Call::Futimens {
                slot,
                times: Box::new(operands.times()),
                through: self.through(event),
            },
            Op::SyncFileRange => Call::SyncRange {
                slot,
                offset: operands.offset()?,
                size: operands.bytes()?,
                flags: operands.flags(7)?,
            },
            Op::Fallocate => Call::Fallocate {
                slot,
                offset: operands.offset()?,
                size: operands.bytes()?,
                mode: operands.flags(ALLOCATE_MODES)?,
            },
            Op::Fadvise => Call::Advise {
                slot,
                offset: operands.offset()?,
                size: operands.bytes()?,
                advice: operands.command(5)?,
            },
            Op::Readahead => Call::Readahead {
                slot,
                offset: operands.offset()?,
                size: operands.bytes()?,
            },
            _ => return self.command_call(slot, event),
        }))
    }

    fn command_call(&mut self, slot: Slot, event: &Event) -> Result<ReplayCall, Reason> {
        let operands = Operands(event);
        Ok(match event.op {
            Op::Mmap => ReplayCall::Map {
                slot,
                offset: operands.offset()?,
                size: operands.mapped()?,
                protection: operands.mode_bits(PROTECTION),
                flags: operands.lenient_flags(MAP_FLAGS),
            },
            Op::Flock => whole_lock(slot, &operands)?,
            Op::Fcntl => status_command(slot, event)?,
            Op::Ioctl => {
                let name = event.text.as_deref().unwrap_or_default();
                let command = asking(name).ok_or("ioctl that is not replayed")?;
                ReplayCall::Ioctl { slot, command }
            }
            _ => return self.attribute(Subject::File(slot), event),
        })
    }
}

/// What a call reads or writes.
fn moved(slot: Slot, event: &Event) -> Result<DataCall, Reason> {
    let operands = Operands(event);
    let is_vectored = matches!(event.op, Op::Readv | Op::Preadv | Op::Writev | Op::Pwritev);
    let is_placed = matches!(event.op, Op::Pread | Op::Pwrite | Op::Preadv | Op::Pwritev);
    Ok(DataCall {
        slot,
        size: if is_vectored {
            operands.vector_data()?
        } else {
            operands.data()?
        },
        offset: is_placed.then(|| operands.offset()).transpose()?,
        vector: is_vectored.then(|| operands.vector_flags()).transpose()?,
    })
}

fn status_command(slot: Slot, event: &Event) -> Result<ReplayCall, Reason> {
    let command = Operands(event).command(u32::MAX)?;
    let argument = u64::try_from(event.size.unwrap_or(0)).unwrap_or(0);
    let argument = match command {
        GET_DESCRIPTOR | GET_STATUS => 0,
        // Descriptors stay closed on exec, whatever the program wanted.
        SET_DESCRIPTOR => 1,
        SET_STATUS => argument & STATUS_FLAGS,
        _ => return Err("fcntl that is not replayed"),
    };
    Ok(ReplayCall::Fcntl {
        slot,
        command,
        argument,
    })
}
