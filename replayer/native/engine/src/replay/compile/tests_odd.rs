//! Events that no importer would write: the compiler stays within its bounds.

use super::batches::BatchBuilder;
use super::tests::{TWO_THREADS, imported, imported_below, omitted, scheduled, source_of, whole};
use super::*;
use crate::replay::program::{Call, DataCall, ReplayCall};
use proptest::prelude::*;
use replayer_ops::{Flag, Op};
use replayer_trace::Event;
use std::collections::BTreeMap;

fn odd() -> impl Strategy<Value = Option<i64>> {
    let odd = prop_oneof![
        Just(None),
        (-3..10_i64).prop_map(Some),
        any::<i64>().prop_map(Some),
        Just(Some(i64::MIN)),
        Just(Some(i64::MAX)),
        (0..4096_i64).prop_map(Some),
    ];
    odd.boxed()
}

fn some(most: u32) -> impl Strategy<Value = Option<u32>> {
    prop_oneof![
        Just(None),
        (0..most).prop_map(Some),
        any::<u32>().prop_map(Some)
    ]
}

prop_compose! {
    fn event()(
        thread in 0..4_u32,
        op in prop::sample::select(Op::with(Flag::trace).collect::<Vec<_>>()),
        ids in (some(6), some(6), some(6), some(6)),
        numbers in prop::collection::vec(odd(), 12),
        text in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
    ) -> Event {
        Event {
            thread,
            start_ns: numbers[0].unwrap_or(0),
            duration_ns: numbers[1],
            gap_ns: numbers[2].unwrap_or(0),
            after: numbers[3].and_then(|row| row.try_into().ok()),
            after_ns: numbers[4],
            op,
            path: ids.0,
            to_path: ids.1,
            file: ids.2,
            to_file: ids.3,
            flags: numbers[3],
            mode: numbers[4],
            size: numbers[5],
            offset: numbers[6],
            entries: numbers[7],
            uid: numbers[8],
            gid: numbers[9],
            atime_ns: numbers[10],
            mtime_ns: numbers[11],
            text,
            result: numbers[1].unwrap_or(0),
        }
    }
}

/// What is dangerous about a call.
fn is_bounded(call: &ReplayCall) -> bool {
    match call {
        ReplayCall::Plain(Call::Open { flags, mode, .. }) => {
            flags & !crate::program::OPEN_FLAGS == 0 && *mode <= 0o1777
        }
        ReplayCall::Inherit { flags, .. } => flags & 0o1300 == 0,
        ReplayCall::Read(DataCall { size, .. }) | ReplayCall::Write(DataCall { size, .. }) => {
            *size <= replayer_trace::MOST_DATA
        }
        ReplayCall::Plain(Call::Truncate { size, .. } | Call::Ftruncate { size, .. }) => {
            *size <= operands::MOST_BYTES
        }
        ReplayCall::Plain(Call::Fallocate { size, offset, .. }) => {
            *size <= operands::MOST_BYTES && i64::try_from(*offset).is_ok()
        }
        ReplayCall::Plain(
            Call::Chmod { mode, .. } | Call::Fchmod { mode, .. } | Call::Mknod { mode, .. },
        ) => *mode <= 0o1777,
        ReplayCall::Plain(Call::SetList { mode, .. }) => *mode <= 0o777,
        ReplayCall::Plain(Call::Rename { flags, .. }) => *flags <= 3,
        _ => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_event_can_break_the_compiler_or_leave_its_bounds(events in prop::collection::vec(event(), 1..200)) {
        let (_folder, trace) = imported(TWO_THREADS, "d\td\t0\t755\t\nl\tl\t0\t777\td/new\n");
        let source = source_of(&trace);
        let mut schedule = whole(&source);
        let mut spans = Vec::new();
        for (row, event) in (0_u64..).zip(&events) {
            prop_assert!(lanes::note(&mut spans, event.thread, row));
        }
        schedule.lanes = Lanes::deal(&spans);
        schedule.rows = (0, events.len() as u64);
        let mut batch_builder = BatchBuilder::new(&schedule);
        let mut tree_state = tree_state::TreeState::begin(&source.path_map);
        for (row, event) in (0_u64..).zip(&events) {
            let earlier = [row / 2, row.saturating_sub(1)];
            batch_builder.push(row, event, &earlier);
            tree_state.take(event);
        }
        let batch = batch_builder.take().unwrap();
        let mut count = 0;
        for scheduled in batch.lanes.iter().flatten() {
            count += 1;
            prop_assert!(is_bounded(&scheduled.call), "{:?}", scheduled.call);
            let (first, waits) = (scheduled.waits.0 as usize, scheduled.waits.1 as usize);
            for wait in &batch.waits[first..first + waits] {
                prop_assert!(wait.row < scheduled.row);
            }
        }
        prop_assert_eq!(count, events.len());
        let needs = batch_builder.needs();
        prop_assert!(needs.read_bytes <= 4 << 20);
    }
}

/// An upload that is moved to its place: rename and `copy_file_range` say that it lies on another file system, so it is copied.
const UPLOAD: &str = "\
10 1700000000.000000 rename(\"/tmp/up\", \"/r/photo\") = -1 EXDEV (Invalid cross-device link) <0.000010>
10 1700000000.000100 link(\"/r/photo\", \"/r/other\") = -1 EXDEV (Invalid cross-device link) <0.000010>
10 1700000000.000200 openat(AT_FDCWD, \"/tmp/up\", O_RDONLY) = 3 <0.000010>
10 1700000000.000300 openat(AT_FDCWD, \"/r/photo\", O_WRONLY|O_CREAT|O_EXCL, 0600) = 4 <0.000010>
10 1700000000.000400 copy_file_range(3, NULL, 4, NULL, 100, 0) = -1 EXDEV (Invalid cross-device link) <0.000010>
10 1700000000.000500 read(3, \"\"..., 100) = 100 <0.000010>
10 1700000000.000600 write(4, \"\"..., 100) = 100 <0.000010>
10 1700000000.000700 rename(\"/tmp/up\", \"/r/up\") = 0 <0.000010>
";

#[test]
fn what_was_refused_between_two_roots_is_left_out_and_nothing_else() {
    let (_folder, trace) = imported_below(&["/r", "/tmp"], UPLOAD, "");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let left_out = BTreeMap::from([("between roots on different file systems", 2)]);
    assert_eq!(omitted(&replay_program), left_out);
}

/// `cp` of three bytes from outside of the root, a `sendfile` to a socket that was full, and one that took less than was asked for.
const OUTSIDE: &str = "\
10 1700000000.000000 openat(AT_FDCWD, \"/etc/hostname\", O_RDONLY) = 3</etc/hostname> <0.000010>
10 1700000000.000100 openat(AT_FDCWD, \"/r/h\", O_RDWR|O_CREAT|O_EXCL, 0600) = 4</r/h> <0.000010>
10 1700000000.000200 copy_file_range(3</etc/hostname>, NULL, 4</r/h>, NULL, 9223372035781033984, 0) = 3 <0.000010>
10 1700000000.000300 copy_file_range(3</etc/hostname>, NULL, 4</r/h>, NULL, 9223372035781033984, 0) = 0 <0.000010>
10 1700000000.000400 sendfile(5<socket:[1]>, 4</r/h>, [0] => [2], 65536) = 2 <0.000010>
10 1700000000.000500 sendfile(5<socket:[1]>, 4</r/h>, [2], 65536) = -1 EAGAIN (Resource temporarily unavailable) <0.000010>
10 1700000000.000600 sendfile(5<socket:[1]>, 4</r/h>, [3] => [3], 65536) = 0 <0.000010>
10 1700000000.000700 read(4</r/h>, 0x1, 100) = -1 EFAULT (Bad address) <0.000010>
";

#[test]
fn what_comes_from_outside_is_as_much_as_came() {
    let (_folder, trace) = imported_below(&["/r"], OUTSIDE, "");
    let replay_program = compile_whole(&source_of(&trace), true).unwrap();
    let sizes = scheduled(&replay_program).into_iter().flatten();
    let moved: Vec<_> = sizes
        .filter_map(|(scheduled, _)| match scheduled.call {
            ReplayCall::Transfer { size, .. } => Some(size),
            _ => None,
        })
        .collect();
    assert_eq!(moved, [3, 0, 2, 4096]);
    let left_out = BTreeMap::from([
        ("failed transfer to or from outside of the trace", 1),
        ("with memory that the program did not have", 1),
    ]);
    assert_eq!(omitted(&replay_program), left_out);
}
