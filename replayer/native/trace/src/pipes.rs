//! Pipes and pairs of sockets between tasks: which events came before the write that brought what a read got, and before the read that
//! made room for a write.

use crate::order::Predecessor;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Streams that are remembered, those used last (chosen: programs have some dozens open at a time).
const MOST_STREAMS: usize = 1024;
/// Writes that nobody has read yet and that are remembered; beyond, all are forgotten, which costs edges (chosen: 16 MiB with what came before each).
const MOST_SENT: usize = 1 << 16;

/// What a descriptor of a pipe or of a pair of sockets reads from and writes to: numbers of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PipeEnd {
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
    /// What it made by that.
    room: PipeSpace,
    /// When it was used last, in uses of any.
    used: u64,
}

/// A write, or several between which its task had no event.
#[derive(Debug)]
struct Sent {
    /// What had been written by its begin, and by its end.
    begin: u64,
    end: u64,
    causes: Vec<Predecessor>,
}

/// The room that a read has made for writes.
#[derive(Debug, Default)]
pub(crate) struct PipeSpace {
    /// When the read ended, on the log's clock.
    pub(crate) end_ns: Option<i64>,
    /// The reader's events before.
    pub(crate) causes: Vec<Predecessor>,
}

#[derive(Debug, Default)]
pub(crate) struct Pipes {
    streams: FxHashMap<u64, Stream>,
    next: u64,
    uses: u64,
    /// Writes of all streams that nobody has read yet.
    sent: usize,
}

impl Pipes {
    /// The two ends of a new pipe, or of a new pair of sockets, which goes both ways.
    pub(crate) fn pair(&mut self, both_ways: bool) -> [PipeEnd; 2] {
        let to_first = Some(self.add());
        let to_second = both_ways.then(|| self.add());
        [(to_first, to_second), (to_second, to_first)]
            .map(|(reads, writes)| PipeEnd { reads, writes })
    }

    fn add(&mut self) -> u64 {
        if self.streams.len() >= MOST_STREAMS {
            let oldest = self.streams.iter().min_by_key(|(_, stream)| stream.used);
            let oldest = oldest.map(|(&number, _)| number);
            let gone = oldest.and_then(|oldest| self.streams.remove(&oldest));
            self.sent -= gone.map_or(0, |gone| gone.sent.len());
        }
        let number = self.next;
        self.next += 1;
        self.streams.insert(number, Stream::default());
        self.stream(Some(number));
        number
    }

    fn stream(&mut self, number: Option<u64>) -> Option<&mut Stream> {
        let stream = self.streams.get_mut(&number?)?;
        self.uses += 1;
        stream.used = self.uses;
        Some(stream)
    }

    fn forget_sent(&mut self) {
        for stream in self.streams.values_mut() {
            stream.sent.clear();
        }
        self.sent = 0;
    }

    /// The task that reads what is written to an end, as far as one has.
    pub(crate) fn reader(&mut self, end: PipeEnd) -> Option<u64> {
        self.stream(end.writes)?.reader
    }

    /// A read from an end has made room.
    pub(crate) fn made(&mut self, end: PipeEnd, room: PipeSpace) {
        if let Some(stream) = self.stream(end.reads) {
            stream.room = room;
        }
    }

    /// What came before the last read of what is written to an end, if that ended at a time or later.
    pub(crate) fn room(&self, end: PipeEnd, since_ns: i64) -> &[Predecessor] {
        let stream = end.writes.and_then(|number| self.streams.get(&number));
        let room = stream.map(|stream| &stream.room);
        let made = room.filter(|room| room.end_ns.is_some_and(|end_ns| end_ns >= since_ns));
        made.map_or(&[], |room| &room.causes)
    }

    /// So many bytes were written, after these events. Returns who has got some of them already: a log may tell of a read before it
    /// tells of the write.
    pub(crate) fn write(
        &mut self,
        end: PipeEnd,
        count: u64,
        causes: &[Predecessor],
    ) -> Option<u64> {
        if self.sent >= MOST_SENT {
            self.forget_sent();
        }
        let stream = self.stream(end.writes)?;
        let begin = stream.written;
        let end = begin.saturating_add(count);
        stream.written = end;
        let late = stream.reader.filter(|_| begin < stream.read);
        match stream.sent.back_mut() {
            _ if end <= stream.read => {}
            Some(last) if last.causes == causes => last.end = end,
            _ => {
                stream.sent.push_back(Sent {
                    begin,
                    end,
                    causes: causes.to_vec(),
                });
                self.sent += 1;
            }
        }
        late
    }

    /// A task has read so many bytes. Returns the events that came before these were written.
    pub(crate) fn read(&mut self, end: PipeEnd, count: u64, task: u64) -> Vec<Predecessor> {
        let Some(stream) = self.stream(end.reads) else {
            return Vec::new();
        };
        stream.reader = Some(task);
        stream.read = stream.read.saturating_add(count);
        let end = stream.read;
        let (mut causes, mut popped) = (Vec::new(), 0);
        while let Some(sent) = stream.sent.front().filter(|sent| sent.begin < end) {
            causes.extend_from_slice(&sent.causes);
            if sent.end > end {
                break; // the rest is to come
            }
            stream.sent.pop_front();
            popped += 1;
        }
        self.sent -= popped;
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::EdgeReason;
    use crate::order::EventRef;

    fn after(row: u64) -> Predecessor {
        Predecessor {
            event_ref: EventRef { row, thread: 0 },
            reason: EdgeReason::Pipe,
            end_ns: None,
            calls: 0,
        }
    }

    fn rows(causes: &[Predecessor]) -> Vec<u64> {
        causes.iter().map(|cause| cause.event_ref.row).collect()
    }

    #[test]
    fn what_is_read_comes_after_what_came_before_it_was_written() {
        let mut pipes = Pipes::default();
        let [out, into] = pipes.pair(false);
        for (row, count) in [(1, 10), (1, 10), (2, 5), (3, 1)] {
            assert_eq!(pipes.write(into, count, &[after(row)]), None);
        }
        assert_eq!(rows(&pipes.read(out, 5, 7)), [1]);
        assert_eq!(rows(&pipes.read(out, 15, 7)), [1]);
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
        let [out, into] = pipes.pair(false);
        let [old, _] = pipes.pair(false);
        for _ in 1..MOST_STREAMS {
            pipes.write(into, 1, &[after(1)]);
            pipes.pair(false);
        }
        assert!(pipes.stream(old.reads).is_none());
        assert_eq!(rows(&pipes.read(out, 1, 7)), [1]);
        for row in 0..MOST_SENT as u64 {
            pipes.write(into, 1, &[after(row)]);
        }
        assert_eq!(pipes.sent, 1);
        assert_eq!(pipes.streams.len(), MOST_STREAMS);
    }
}
