use super::*;
use crate::program::LockKind;
use crate::replay::program::Call;

const UNKNOWN: Recorded = Recorded::Unknown;

// One call a line.
#[rustfmt::skip]
fn absurd(size: u64) -> Vec<ReplayCall> {
    let (slot, offset) = (0, size);
    vec![
        ReplayCall::List { slot, size },
        ReplayCall::Plain(Call::Fallocate { slot, offset, size, mode: u32::MAX }),
        ReplayCall::Plain(Call::Advise { slot, offset, size, advice: u32::MAX }),
        ReplayCall::Plain(Call::Readahead { slot, offset, size }),
        ReplayCall::Plain(Call::SyncRange { slot, offset, size, flags: u32::MAX }),
        ReplayCall::Plain(Call::Lseek { slot, offset: 1 << 63, whence: u32::MAX }),
        ReplayCall::ReadMapped(DataCall { slot, size, offset: Some(offset), vector: None }),
        ReplayCall::Map { slot, offset, size, protection: u32::MAX, flags: u32::MAX },
        ReplayCall::Map { slot, offset: 0, size, protection: 1, flags: 0x32 },
        ReplayCall::Plain(Call::FcntlLock { slot, wait: true, kind: LockKind::Shared, before: LockKind::Shared, offset: 1 << 63, size: u64::MAX >> 1, whence: 99 }),
        ReplayCall::Fcntl { slot, command: 1024, argument: 1 },
        ReplayCall::Fcntl { slot, command: 8, argument: 1 },
        ReplayCall::Fcntl { slot, command: 4, argument: u64::MAX },
        ReplayCall::Ioctl { slot, command: 0x4004_6602 },
        ReplayCall::Plain(Call::Fstat { slot: u32::MAX }),
        ReplayCall::Plain(Call::Close { slot: u32::MAX }),
    ]
}

fn moves(tape: &mut Tape, size: u64) {
    for offset in [None, Some(u64::MAX), Some((1 << 63) - 1)] {
        for vector in [None, Some(0), Some(2)] {
            let read = ReplayCall::Read(DataCall {
                slot: 0,
                size,
                offset,
                vector,
            });
            tape.add(0, read, UNKNOWN);
            let write = ReplayCall::Write(DataCall {
                slot: 0,
                size: size.min(1 << 20),
                offset: offset.or(Some(0)),
                vector,
            });
            tape.add(0, write, UNKNOWN);
        }
    }
}

#[test]
fn sizes_and_offsets_of_any_kind_are_the_kernels_to_refuse() {
    let ground = Ground::new();
    ground.write("t/a", 10);
    let mut tape = Tape::new(1);
    let at = tape.at("t/a");
    let open = ReplayCall::Plain(Call::Open {
        at,
        slot: Some(0),
        flags: libc::O_RDWR.cast_unsigned(),
        mode: 0,
        resolve: 0,
    });
    tape.add(0, open, UNKNOWN);
    for size in [u64::MAX, 1 << 63, 1 << 40, (1 << 31) + 1] {
        moves(&mut tape, size);
        for call in absurd(size) {
            tape.add(0, call, UNKNOWN);
        }
    }
    let shown = ground.play(&tape.replay_program());
    assert_eq!(shown.result, Ok(()));
    assert_eq!(shown.ledger["omitted"]["fcntl"], 8);
    assert_eq!(shown.ledger["omitted"]["ioctl"], 4);
    assert_eq!(names(&ground.run()), ["t", "t/a"]);
}
