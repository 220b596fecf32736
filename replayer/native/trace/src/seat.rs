//! Where an event stands in a trace.

/// An event's thread and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seat {
    pub(crate) row: u64,
    pub(crate) thread: u32,
}

/// Keep the last event of each thread.
pub(crate) fn put(seats: &mut Vec<Seat>, now: Seat) {
    match seats.iter_mut().find(|seat| seat.thread == now.thread) {
        Some(seat) => *seat = now,
        None => seats.push(now),
    }
}
