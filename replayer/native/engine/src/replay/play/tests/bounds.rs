use super::*;

const UNKNOWN: Recorded = Recorded::Unknown;

// One deed a line.
#[rustfmt::skip]
fn absurd(size: u64) -> Vec<Deed> {
    let (slot, offset) = (0, size);
    vec![
        Deed::List { slot, size },
        Deed::Fallocate { slot, offset, size, mode: u32::MAX },
        Deed::Advise { slot, offset, size, advice: u32::MAX },
        Deed::Readahead { slot, offset, size },
        Deed::SyncRange { slot, offset, size, flags: u32::MAX },
        Deed::Seek { slot, offset: i64::MIN, whence: u32::MAX },
        Deed::Map { slot, offset, size, protection: u32::MAX, flags: u32::MAX },
        Deed::Map { slot, offset: 0, size, protection: 1, flags: 0x32 },
        Deed::Lock { slot, wait: true, kind: u32::MAX, before: u32::MAX, offset: i64::MIN, size: i64::MAX, whence: 99 },
        Deed::Flock { slot, operation: u32::MAX },
        Deed::Fcntl { slot, command: 1024, argument: 1 },
        Deed::Fcntl { slot, command: 8, argument: 1 },
        Deed::Fcntl { slot, command: 4, argument: u64::MAX },
        Deed::Ioctl { slot, command: 0x4004_6602 },
        Deed::Fstat { slot: u32::MAX },
        Deed::Close { slot: u32::MAX },
    ]
}

fn moves(tape: &mut Tape, size: u64) {
    for offset in [None, Some(u64::MAX), Some((1 << 63) - 1)] {
        for vector in [None, Some(0), Some(2)] {
            let read = Deed::Read {
                slot: 0,
                size,
                offset,
                vector,
            };
            tape.cue(0, read, UNKNOWN);
            let write = Deed::Write {
                slot: 0,
                size: size.min(1 << 20),
                offset: offset.or(Some(0)),
                vector,
            };
            tape.cue(0, write, UNKNOWN);
        }
    }
}

#[test]
fn sizes_and_offsets_of_any_kind_are_the_kernels_to_refuse() {
    let ground = Ground::new();
    ground.write("t/a", 10);
    let mut tape = Tape::new(1);
    let at = tape.at("t/a");
    let open = Deed::Open {
        at,
        slot: Some(0),
        flags: libc::O_RDWR.cast_unsigned(),
        mode: 0,
        resolve: 0,
    };
    tape.cue(0, open, UNKNOWN);
    for size in [u64::MAX, 1 << 63, 1 << 40, (1 << 31) + 1] {
        moves(&mut tape, size);
        for deed in absurd(size) {
            tape.cue(0, deed, UNKNOWN);
        }
    }
    let shown = ground.play(&tape.reel());
    assert_eq!(shown.result, Ok(()));
    assert_eq!(shown.ledger["omitted"]["fcntl"], 8);
    assert_eq!(shown.ledger["omitted"]["ioctl"], 4);
    assert_eq!(names(&ground.run()), ["t", "t/a"]);
}
