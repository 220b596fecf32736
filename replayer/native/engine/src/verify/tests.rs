use super::Verification;
use super::file::{Fate, Record};
use super::judge::{judge_bytes, judge_end};
use super::memory::Memory;
use super::sight::Sight;
use super::stamp::{CELL, Cell, Origin, cell_of, each_stamped, fill, index_of};
use super::tally::{Count, Violation};
use super::verifier::{Laid, Verifier};
use crate::program::{Content, Identity, Naming, file_of};
use proptest::prelude::*;
use rustix::fs::OFlags;

const RUN: u32 = 77;

fn identity() -> Identity {
    Identity {
        run: RUN,
        naming: Naming::Paths,
    }
}

fn origin(path: &[u8], seq: u64) -> Origin {
    Origin {
        run: RUN,
        user: 3,
        file: file_of(identity().key(path)),
        round: 1,
        seq,
    }
}

fn data(path: &[u8], offset: u64, len: usize, seq: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(&mut bytes, offset, &origin(path, seq), 0);
    bytes
}

fn record(range: std::ops::Range<u64>, floor: u64) -> Record {
    Record {
        id: 9,
        open: 9,
        user: 1,
        start: range.start,
        end: range.end,
        floor,
        first: floor,
        last: floor,
        closed: Some(50),
        moved: false,
    }
}

/// What a reader of `a` must see: the write 40 of all of its 8 KiB.
fn sight() -> Sight {
    Sight {
        files: vec![file_of(identity().key(b"a"))],
        records: vec![record(0..8192, 40)],
        begun: 1,
        run: RUN,
        by_path: true,
        ..Sight::default()
    }
}

fn judged(sight: &Sight, offset: u64, bytes: &[u8]) -> (Option<Violation>, Count) {
    let mut count = Count::default();
    let found = judge_bytes(sight, offset, bytes, &mut count);
    (found, count)
}

#[test]
fn what_was_written_last_is_right_to_the_byte() {
    let bytes = data(b"a", 0, 8192, 40);
    let (found, count) = judged(&sight(), 0, &bytes);
    assert_eq!((found, count.verified, count.unverified), (None, 8192, 0));
    let (found, count) = judged(&sight(), 100, &bytes[100..8000]);
    assert_eq!(found, None);
    assert_eq!((count.verified, count.unverified), (7872, 28));
}

#[test]
fn older_data_are_stale_and_newer_ones_are_not() {
    let found = |seq| judged(&sight(), 0, &data(b"a", 0, 8192, seq));
    let (kind, count) = found(39);
    assert_eq!((kind, count.blocks), (Some(Violation::Stale), [0, 0, 0, 2]));
    assert_eq!(found(41).0, None);
    assert_eq!(found(0).0, Some(Violation::Stale));
}

#[test]
fn an_old_cell_of_which_a_write_changed_no_byte_is_not_stale() {
    let sight = Sight {
        records: vec![record(0..4097, 40)],
        ..sight()
    };
    let mut bytes = data(b"a", 0, 8192, 30);
    bytes[..4096].copy_from_slice(&data(b"a", 0, 4096, 40));
    assert_eq!(judged(&sight, 0, &bytes).0, None);
}

#[test]
fn a_block_with_half_of_a_write_is_torn() {
    let mut bytes = data(b"a", 0, 8192, 40);
    bytes[2048..4096].copy_from_slice(&data(b"a", 2048, 2048, 30));
    let (kind, count) = judged(&sight(), 0, &bytes);
    assert_eq!((kind, count.blocks), (Some(Violation::Torn), [1, 0, 0, 0]));
    bytes[2048..4096].fill(0);
    assert_eq!(judged(&sight(), 0, &bytes).0, Some(Violation::Torn));
}

#[test]
fn data_of_another_file_place_or_run_are_swapped() {
    for bytes in [data(b"b", 4096, 4096, 40), data(b"a", 0, 4096, 40)] {
        let (kind, count) = judged(&sight(), 4096, &bytes);
        assert_eq!(
            (kind, count.blocks),
            (Some(Violation::Swapped), [0, 1, 0, 0])
        );
    }
    let other = Sight { run: 78, ..sight() };
    let bytes = data(b"a", 0, 4096, 40);
    assert_eq!(judged(&other, 0, &bytes).0, Some(Violation::Swapped));
}

#[test]
fn zeros_are_lost_where_something_was_written_and_nothing_elsewhere() {
    let (kind, count) = judged(&sight(), 4096, &[0; 8192]);
    assert_eq!((kind, count.blocks), (Some(Violation::Lost), [0, 0, 1, 0]));
    assert_eq!((count.verified, count.unverified), (4096, 4096));
    let laid = Sight {
        records: Vec::new(),
        laid: 4096,
        ..sight()
    };
    assert_eq!(judged(&laid, 0, &[0; 4096]).0, Some(Violation::Lost));
}

#[test]
fn an_end_before_what_was_written_is_a_loss() {
    let mut count = Count::default();
    assert_eq!(judge_end(&sight(), 8191, &mut count), Some(Violation::Lost));
    assert_eq!(judge_end(&sight(), 8192, &mut count), None);
    assert_eq!(count.blocks, [0, 0, 1, 0]);
}

#[test]
fn a_broken_cell_is_torn_unless_writes_may_meet_in_it() {
    let mut bytes = data(b"a", 0, 4096, 40);
    bytes[70] ^= 1;
    assert_eq!(judged(&sight(), 0, &bytes).0, Some(Violation::Torn));
    let ragged = Sight {
        ragged: vec![2],
        ..sight()
    };
    let (kind, count) = judged(&ragged, 0, &bytes);
    assert_eq!((kind, count.unverified), (None, CELL as u64));
    let busy = Sight {
        busy: true,
        ..sight()
    };
    let (kind, count) = judged(&busy, 0, &bytes);
    assert_eq!((kind, count.mixed), (None, CELL as u64));
}

#[test]
fn a_cell_that_goes_on_with_zeros_is_told_from_one_that_happens_to_end_with_one() {
    for seq in 40..4000 {
        let cell = data(b"a", 0, CELL, seq);
        for left in 0..CELL {
            let mut longer = cell.clone();
            longer[left..].fill(0);
            let is_there = longer.iter().any(|byte| *byte != 0);
            assert_eq!(judged(&sight(), 0, &longer).0.is_none(), is_there);
        }
        let mut flipped = cell;
        flipped[4] ^= 4;
        assert_eq!(judged(&sight(), 0, &flipped).0, Some(Violation::Torn));
    }
}

#[test]
fn the_zeros_of_compressible_data_are_no_loss() {
    let mut chunks = Vec::new();
    let mut scratch = Vec::new();
    let extent = (10_000, Content::Compressible(50));
    let made = each_stamped(identity(), b"a", extent, &mut scratch, |chunk| {
        chunks.extend_from_slice(chunk);
        Ok::<_, ()>(())
    });
    assert!(made.is_ok());
    let zeros = chunks
        .iter()
        .fold(0, |sum, byte| sum + usize::from(*byte == 0));
    assert!((5904..6000).contains(&zeros), "{zeros}");
    let laid = Sight {
        records: Vec::new(),
        laid: 10_000,
        zeros: 2048,
        ..sight()
    };
    let (kind, count) = judged(&laid, 0, &chunks);
    assert_eq!(kind, None);
    assert_eq!(count.verified, 2 * 2048);
    chunks[2048..4096].fill(0);
    assert_eq!(judged(&laid, 0, &chunks).0, Some(Violation::Lost));
}

#[test]
fn writes_of_two_descriptors_at_a_time_may_win_in_any_order() {
    let memory = Memory::new();
    let (first, second) = (memory.tick(), memory.tick());
    let floors = memory.note(1, |file| {
        file.enter(100, 0);
        file.enter(200, 1);
        let one = file.write(100, first);
        let other = file.write(200, second);
        file.leave(100, 0, 900);
        let alone = file.write(200, 901);
        (one, other, alone)
    });
    assert_eq!(floors, Some((first, first, 901)));
    assert!(memory.look(1, |file| file.is_busy(0, 1)).unwrap());
    assert!(memory.look(1, |file| file.is_busy(1, 899)).unwrap());
    assert!(!memory.look(1, |file| file.is_busy(1, 901)).unwrap());
}

#[test]
fn a_change_of_a_name_voids_what_was_opened_before() {
    let memory = Memory::new();
    let before = memory.tick();
    assert!(memory.is_untouched(5) && memory.is_solid(5, before));
    let change = memory.change(5);
    let during = memory.tick();
    assert!(!memory.is_solid(5, during));
    let other = memory.change(5);
    assert!(!memory.returned(change).1);
    memory.changed(change);
    let (tick, alone) = memory.returned(other);
    assert!(!alone && !memory.is_solid(5, tick));
    memory.settle(other, tick);
    assert!(!memory.is_solid(5, during) && memory.is_solid(5, tick));
    assert!(!memory.is_untouched(5));
    memory.begin();
    assert!(memory.is_untouched(5));
}

#[test]
fn who_removed_a_name_does_not_forget_what_another_one_gave_it_meanwhile() {
    let memory = Memory::new();
    let removal = memory.change(5);
    let rename = memory.change(5);
    memory.impose(5, |file| file.derive(7));
    assert!(!memory.returned(rename).1);
    memory.impose(5, |file| file.haunted = true);
    memory.forget(removal, Fate::Replaced);
    memory.changed(rename);
    memory.changed(removal);
    let known = memory.look(5, |file| (file.haunted, file.origins.clone()));
    assert_eq!(known, Some((true, vec![7])));
    memory.forget(memory.change(5), Fate::Replaced);
    assert_eq!(memory.look(5, |file| file.haunted), None);
}

#[test]
fn names_are_told_apart_by_their_last_component_where_directories_move() {
    let names = Identity {
        run: 1,
        naming: Naming::Names,
    };
    assert_eq!(names.key(b"d/x/a.php"), names.key(b"e/a.php"));
    assert_ne!(names.key(b"d/x/a.php"), names.key(b"d/x/b.php"));
    assert_ne!(identity().key(b"d/x/a.php"), identity().key(b"e/a.php"));
    assert_ne!(identity().key(b"12345678"), identity().key(b"123456780"));
}

#[test]
fn a_plan_that_does_not_ask_remembers_nothing() {
    let setting = crate::overhead::setting(crate::overhead::PLAN).unwrap();
    assert!(Verification::of(&setting.program, 1).is_none());
}

proptest! {
    #[test]
    fn a_cell_says_what_it_was_given(
        run: u32, user: u32, file: u32, round: u16, seq in 0_u64..1 << 48, index: u32,
    ) {
        let origin = Origin { run, user, file, round, seq };
        let cell = cell_of(&origin, index);
        prop_assert_eq!(Cell::read(&cell), Cell::Stamp(origin, index));
    }

    #[test]
    fn a_changed_byte_breaks_a_cell(at in 0..CELL, change in 1_u8.., seq in 0_u64..1 << 40) {
        let mut cell = cell_of(&origin(b"a", seq), 5);
        cell[at] ^= change;
        prop_assert_eq!(Cell::read(&cell), Cell::Bad);
    }

    #[test]
    fn pieces_make_the_same_file_as_a_whole(cuts in prop::collection::vec(1_usize..200, 1..20)) {
        let len = cuts.iter().sum();
        let whole = data(b"a", 0, len, 4);
        let (mut pieces, mut offset) = (Vec::new(), 0);
        for cut in cuts {
            pieces.extend(data(b"a", offset, cut, 4));
            offset += cut as u64;
        }
        prop_assert_eq!(pieces, whole);
        prop_assert_eq!(index_of(64), 2);
    }
}

/// What an interpreter tells of a file that is written from its begin to its end.
fn write(user: &mut Verifier<'_>, name: &str) {
    let flags = (OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC).bits();
    let opening = user.opening(name.as_bytes(), flags, Laid::default());
    user.opened(0, opening, true);
    let written = user.stamp(0, 32, None);
    user.wrote(0, written, Ok(32));
    user.closed(0, true);
}

/// How many files the last reading reads, and of how many it knows nothing.
fn kept_and_unclear(verification: &Verification) -> (usize, u64) {
    let before = verification.last.json()["unclear_files"].as_u64();
    let kept = verification.kept(0).len();
    verification.last_begins(0, kept as u64);
    let now = verification.last.json()["unclear_files"].as_u64();
    (kept, now.unwrap() - before.unwrap_or(0))
}

#[test]
fn written_files_beyond_the_bound_are_counted_until_the_next_segment() {
    let verification = Verification::new(identity(), 1);
    let mut user = Verifier::new(&verification, (0, 1, 0), Content::Random, 4096).unwrap();
    // All in one of the 64 maps, which has room for 4,096.
    let in_one_map = |name: &String| (identity().key(name.as_bytes()) >> 16).is_multiple_of(64);
    let names = (0..).map(|number| format!("f{number}")).filter(in_one_map);
    let names: Vec<String> = names.take(4100).collect();
    for name in names.iter().chain(&names) {
        write(&mut user, name);
    }
    assert_eq!(kept_and_unclear(&verification), (4096, 4));
    let removal = user.change(names[4099].as_bytes());
    user.removed(removal, true);
    let renaming = (
        user.change(names[4098].as_bytes()),
        user.change(names[4099].as_bytes()),
    );
    user.renamed(renaming.0, renaming.1, names[4099].as_bytes());
    assert_eq!(kept_and_unclear(&verification), (4096, 3));
    let beyond = identity().key(names[4097].as_bytes());
    assert!(!user.memory.is_solid(beyond, user.memory.tick()));
    verification.begin(0);
    write(&mut user, &names[4097]);
    assert_eq!(kept_and_unclear(&verification), (1, 0));
    assert!(user.memory.is_solid(beyond, user.memory.tick()));
}
