//! Open descriptors of a performance. No lane can use a number that another lane has closed meanwhile: it would be somebody else's.

use crate::clock::{now_ns, since_ns};
use crate::lock::hold;
use crate::replay::program::{PathId, Slot};
use crate::sys::files::close;
use std::os::fd::RawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::yield_now;

/// One use of a descriptor that is under way, in the upper half of the word.
const USE: u64 = 1 << 32;
/// A close waits so long for uses that no order keeps apart; then the descriptor is closed after the performance (chosen).
const PATIENCE_NS: u64 = 10_000_000;

/// A place for a descriptor.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place {
    /// The descriptor plus 1 (0: none), and how many calls use it.
    word: AtomicU64,
    path: AtomicU32,
    is_directory: AtomicBool,
    /// It is read and written past the page cache.
    is_direct: AtomicBool,
    /// Entries of the listing under way: as recorded, and as they were.
    recorded: AtomicU64,
    listed: AtomicU64,
}

fn file_of(word: u64) -> Option<RawFd> {
    let number = u32::try_from(word & (USE - 1)).unwrap_or(0);
    RawFd::try_from(number.checked_sub(1)?).ok()
}

/// A descriptor that stays open while this lives.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    pub(crate) file: RawFd,
    place: &'a Place,
    is_counted: bool,
}

impl Held<'_> {
    #[inline]
    pub(crate) fn path(&self) -> PathId {
        self.place.path.load(Ordering::Relaxed)
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.place.is_directory.load(Ordering::Relaxed)
    }

    /// Flags that a program has given it, of which one matters here.
    pub(crate) fn mark(&self, flags: u32) {
        let is_direct = flags & libc::O_DIRECT.cast_unsigned() != 0;
        self.place.is_direct.store(is_direct, Ordering::Relaxed);
    }

    /// Entries that a listing call returned, as recorded and now; the sums of the listing so far.
    pub(crate) fn list(&self, recorded: u64, listed: u64) -> (u64, u64) {
        let place = self.place;
        place.is_directory.store(true, Ordering::Relaxed);
        (
            place.recorded.fetch_add(recorded, Ordering::Relaxed) + recorded,
            place.listed.fetch_add(listed, Ordering::Relaxed) + listed,
        )
    }

    /// The listing begins anew.
    pub(crate) fn rewind(&self) {
        self.place.recorded.store(0, Ordering::Relaxed);
        self.place.listed.store(0, Ordering::Relaxed);
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_counted {
            self.place.word.fetch_sub(USE, Ordering::SeqCst);
        }
    }
}

/// What taking a descriptor out of its slot gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Nothing,
    /// Nobody else uses it any more.
    File(RawFd, PathId),
    /// Another lane still uses it: it will be closed after the performance.
    Busy,
}

#[derive(Debug)]
pub(crate) struct Slots {
    places: Box<[Place]>,
    /// Several lanes use them: uses are counted.
    is_shared: bool,
    /// To be closed after the performance: taken while they were used, or in nobody's slot.
    late: Mutex<Vec<RawFd>>,
}

impl Slots {
    pub(crate) fn new(slots: Slot, lanes: usize) -> Slots {
        Slots {
            places: (0..slots).map(|_| Place::default()).collect(),
            is_shared: lanes > 1,
            late: Mutex::default(),
        }
    }

    /// The descriptor of a slot, for one call.
    #[inline]
    pub(crate) fn hold(&self, slot: Slot) -> Option<Held<'_>> {
        let place = self.places.get(slot as usize)?;
        let word = if self.is_shared {
            place.word.fetch_add(USE, Ordering::SeqCst)
        } else {
            place.word.load(Ordering::Relaxed)
        };
        let is_counted = self.is_shared;
        let Some(file) = file_of(word) else {
            if is_counted {
                place.word.fetch_sub(USE, Ordering::SeqCst);
            }
            return None;
        };
        Some(Held {
            file,
            place,
            is_counted,
        })
    }

    /// Whether the file is read and written past the page cache.
    #[inline]
    pub(crate) fn is_direct(&self, slot: Slot) -> bool {
        let place = self.places.get(slot as usize);
        place.is_some_and(|place| place.is_direct.load(Ordering::Relaxed))
    }

    /// The path that was last to be opened there.
    pub(crate) fn path_of(&self, slot: Slot) -> PathId {
        let place = self.places.get(slot as usize);
        place.map_or(0, |place| place.path.load(Ordering::Relaxed))
    }

    /// A path was to be opened there, but was not.
    #[cold]
    pub(crate) fn name(&self, slot: Slot, path: PathId) {
        if let Some(place) = self.places.get(slot as usize) {
            place.path.store(path, Ordering::Relaxed);
        }
    }

    /// Put a descriptor into a slot. One that is there already (the replay program gave the slot out twice) is closed after the performance.
    #[inline]
    pub(crate) fn put(&self, slot: Slot, file: RawFd, path: PathId) {
        let Some(place) = self.places.get(slot as usize) else {
            hold(&self.late).push(file);
            return;
        };
        let number = u64::from(file.cast_unsigned()) + 1;
        if place.word.load(Ordering::Relaxed) & (USE - 1) != 0 {
            self.make_room(slot);
        }
        place.path.store(path, Ordering::Relaxed);
        place.recorded.store(0, Ordering::Relaxed);
        place.listed.store(0, Ordering::Relaxed);
        place.is_directory.store(false, Ordering::Relaxed);
        place.is_direct.store(false, Ordering::Relaxed);
        if !self.is_shared {
            place.word.store(number, Ordering::Relaxed);
            return;
        }
        // Beside the uses that found nothing; if another lane was faster, that one stays.
        let mut word = place.word.load(Ordering::SeqCst);
        while file_of(word).is_none() {
            let put = place.word.compare_exchange_weak(
                word,
                word + number,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            match put {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        hold(&self.late).push(file);
    }

    #[cold]
    fn make_room(&self, slot: Slot) {
        if let Taken::File(file, _) = self.take(slot) {
            hold(&self.late).push(file);
        }
    }

    /// Take the descriptor of a slot out, to close it.
    #[inline]
    pub(crate) fn take(&self, slot: Slot) -> Taken {
        let Some(place) = self.places.get(slot as usize) else {
            return Taken::Nothing;
        };
        if !self.is_shared {
            let file = file_of(place.word.load(Ordering::Relaxed));
            place.word.store(0, Ordering::Relaxed);
            return file.map_or(Taken::Nothing, |file| {
                Taken::File(file, place.path.load(Ordering::Relaxed))
            });
        }
        self.take_shared(place)
    }

    fn take_shared(&self, place: &Place) -> Taken {
        let path = place.path.load(Ordering::Relaxed);
        let word = place.word.fetch_and(!(USE - 1), Ordering::SeqCst);
        let Some(file) = file_of(word) else {
            return Taken::Nothing;
        };
        let begin_ns = now_ns();
        // Whoever counted itself before saw the descriptor; whoever comes later sees none.
        while place.word.load(Ordering::SeqCst) >= USE {
            if since_ns(begin_ns) > PATIENCE_NS {
                hold(&self.late).push(file);
                return Taken::Busy;
            }
            yield_now();
        }
        Taken::File(file, path)
    }

    /// Take out what is left. Every lane must have ended.
    pub(crate) fn drain(&self) -> Vec<RawFd> {
        let mut files = std::mem::take(&mut *hold(&self.late));
        for place in &self.places {
            files.extend(file_of(place.word.swap(0, Ordering::SeqCst)));
        }
        files
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        for file in self.drain() {
            // Nobody is left who could be told.
            let _closed = close(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::open_sink;
    use std::os::fd::IntoRawFd;

    fn file() -> RawFd {
        open_sink().unwrap().into_raw_fd()
    }

    #[test]
    fn a_descriptor_in_use_is_not_closed() {
        let slots = Slots::new(2, 2);
        let file = file();
        slots.put(1, file, 7);
        let held = slots.hold(1).unwrap();
        assert_eq!((held.file, held.path()), (file, 7));
        assert_eq!(slots.take(1), Taken::Busy);
        assert!(slots.hold(1).is_none());
        assert!(rustix::io::fcntl_getfd(crate::sys::files::borrow(file)).is_ok());
        drop(held);
        assert_eq!(slots.drain(), [file]);
        close(file).unwrap();
    }

    #[test]
    fn lanes_never_use_what_another_lane_has_closed() {
        let slots = Slots::new(1, 2);
        std::thread::scope(|scope| {
            let user = scope.spawn(|| {
                let mut used = 0;
                for _ in 0..20_000 {
                    if let Some(held) = slots.hold(0) {
                        let file = crate::sys::files::borrow(held.file);
                        assert!(rustix::io::fcntl_getfd(file).is_ok());
                        used += 1;
                    }
                }
                used
            });
            while !user.is_finished() {
                slots.put(0, file(), 0);
                yield_now();
                match slots.take(0) {
                    Taken::File(file, _) => assert_eq!(close(file), Ok(0)),
                    other => assert_eq!(other, Taken::Busy),
                }
            }
            user.join().unwrap();
        });
    }

    #[test]
    fn a_slot_that_is_given_out_twice_loses_nothing() {
        let slots = Slots::new(1, 1);
        slots.put(0, file(), 0);
        slots.put(0, file(), 1);
        assert_eq!(slots.hold(0).unwrap().path(), 1);
        slots.put(9, file(), 0);
        let left = slots.drain();
        assert_eq!(left.len(), 3);
        for file in left {
            close(file).unwrap();
        }
    }
}
