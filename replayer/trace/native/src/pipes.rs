//! Pipes and pairs of sockets between tasks: which events came before the write that brought what a read got.

use crate::cause::Cause;
use std::collections::VecDeque;

/// Streams that are remembered, the newest (chosen: a shell makes two for each command of a line).
const MOST_STREAMS: usize = 4096;
/// Writes of a stream that nobody has read yet and that are remembered (chosen: a pipe holds 16 pages).
const MOST_SENT: usize = 4096;

/// What a descriptor of a pipe or of a pair of sockets reads from and writes to: numbers of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    reads: Option<u64>,
    writes: Option<u64>,
}

/// Bytes that go one way.
#[derive(Debug, Default)]
struct Stream {
    written: u64,
    read: u64,
    sent: VecDeque<Sent>,
    /// The task that has read last.
    reader: Option<u64>,
}

/// A write, or several between which its task had no event.
#[derive(Debug)]
struct Sent {
    /// What had been written by its end.
    end: u64,
    causes: Vec<Cause>,
}

/// All streams.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    streams: VecDeque<Stream>,
    /// The number of the first one.
    first: u64,
}

impl Pipes {
    /// The two ends of a new pipe, or of a new pair of sockets, which goes both ways.
    pub(crate) fn pair(&mut self, both_ways: bool) -> [End; 2] {
        let to_first = Some(self.add());
        let to_second = both_ways.then(|| self.add());
        [(to_first, to_second), (to_second, to_first)].map(|(reads, writes)| End { reads, writes })
    }

    fn add(&mut self) -> u64 {
        if self.streams.len() >= MOST_STREAMS {
            self.streams.pop_front();
            self.first += 1;
        }
        self.streams.push_back(Stream::default());
        self.first + self.streams.len() as u64 - 1
    }

    fn stream(&mut self, number: Option<u64>) -> Option<&mut Stream> {
        let at = usize::try_from(number?.checked_sub(self.first)?).ok()?;
        self.streams.get_mut(at)
    }

    /// The task that reads what is written to an end, as far as one has.
    pub(crate) fn reader(&mut self, end: End) -> Option<u64> {
        self.stream(end.writes)?.reader
    }

    /// So many bytes were written, after these events. Returns who has got some of them already: a log may tell of a read before it
    /// tells of the write.
    pub(crate) fn write(&mut self, end: End, count: u64, causes: &[Cause]) -> Option<u64> {
        let stream = self.stream(end.writes)?;
        let before = stream.written;
        stream.written = before.saturating_add(count);
        let was_read = before < stream.read;
        let end = stream.written;
        match stream.sent.back_mut() {
            Some(last) if last.causes == causes => last.end = end,
            _ => stream.sent.push_back(Sent {
                end,
                causes: causes.to_vec(),
            }),
        }
        if stream.sent.len() > MOST_SENT {
            stream.sent.pop_front();
        }
        stream.reader.filter(|_| was_read)
    }

    /// A task has read so many bytes. Returns the events that came before these were written.
    pub(crate) fn read(&mut self, end: End, count: u64, task: u64) -> Vec<Cause> {
        let Some(stream) = self.stream(end.reads) else {
            return Vec::new();
        };
        stream.reader = Some(task);
        let begin = stream.read;
        stream.read = begin.saturating_add(count);
        let mut causes = Vec::new();
        // Of a write that was read in part the rest is to come.
        while let Some(sent) = stream.sent.front() {
            causes.extend_from_slice(&sent.causes);
            if sent.end > stream.read {
                break;
            }
            stream.sent.pop_front();
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Reason;
    use crate::seat::Seat;

    fn after(row: u64) -> Cause {
        Cause {
            seat: Seat { row, thread: 0 },
            reason: Reason::Pipe,
            end_ns: None,
            calls: 0,
        }
    }

    fn rows(causes: &[Cause]) -> Vec<u64> {
        causes.iter().map(|cause| cause.seat.row).collect()
    }

    #[test]
    fn what_is_read_comes_after_what_came_before_it_was_written() {
        let mut pipes = Pipes::default();
        let [out, into] = pipes.pair(false);
        for (row, count) in [(1, 10), (1, 10), (2, 5), (3, 1)] {
            assert_eq!(pipes.write(into, count, &[after(row)]), None);
        }
        assert_eq!(rows(&pipes.read(out, 5, 7)), [1]);
        assert_eq!(rows(&pipes.read(out, 15, 7)), [1, 2]);
        assert_eq!(rows(&pipes.read(out, 6, 7)), [2, 3]);
        assert_eq!(pipes.reader(into), Some(7));
        assert!(pipes.read(into, 6, 7).is_empty(), "nobody writes there");
    }

    #[test]
    fn a_read_may_be_told_of_before_the_write() {
        let mut pipes = Pipes::default();
        let [one, other] = pipes.pair(true);
        assert!(pipes.read(one, 4, 7).is_empty());
        assert_eq!(pipes.write(other, 4, &[after(1)]), Some(7));
        assert_eq!(pipes.write(other, 4, &[after(2)]), None);
        assert_eq!(pipes.write(one, 4, &[after(3)]), None, "the other way");
        assert_eq!(rows(&pipes.read(other, 4, 8)), [3]);
    }

    #[test]
    fn of_many_streams_and_writes_the_oldest_are_forgotten() {
        let mut pipes = Pipes::default();
        let [old, _] = pipes.pair(false);
        let [out, into] = pipes.pair(false);
        for _ in 1..MOST_STREAMS {
            pipes.pair(false);
        }
        assert!(pipes.stream(old.reads).is_none());
        for row in 0..=MOST_SENT as u64 {
            pipes.write(into, 1, &[after(row)]);
        }
        assert_eq!(rows(&pipes.read(out, 1, 7)), [1]);
    }
}
