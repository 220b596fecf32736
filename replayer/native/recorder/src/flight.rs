//! A recording that goes on for as long as it likes, of which the latest records are kept in memory and written on demand.

use crate::drain::{BUSY, IDLE};
use crate::error::RecorderError;
pub use crate::kept::Place;
use crate::kept::{Bounds, KeptLog, KeptRecords};
use crate::probe::Probe;
use crate::recorder::{file_head, now_ns};
use crate::slow::{CallLimit, SlowCall, slow_call};
use aya::maps::{MapData, RingBuf};
use replayer_trace::bpf::Record;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};

/// Records taken from the ring before others may have their turn (chosen: some ms).
const AT_ONCE: usize = 20_000;
/// So often at most the ring is emptied until nothing more comes (chosen: it holds a tenth of that).
const MOST_TURNS: usize = 100;
/// So many looks at open files fall into what is kept (chosen), each at least, and at most, so long after the one before.
const LOOKS: u64 = 5;
const LEAST_NS: u64 = 1_000_000_000;
const MOST_NS: u64 = 60_000_000_000;

/// What is kept, and what it may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The ring between the kernel and this process.
    pub ring_bytes: u32,
    /// Records are kept for so long at least, if they have room.
    pub least_ns: u64,
    /// The memory for them.
    pub most_bytes: u64,
}

/// How it stands.
#[derive(Debug)]
pub struct State {
    /// Threads that are recorded and have not ended.
    pub live: u64,
    /// Records that did not fit into the ring: what was kept before them is of no use.
    pub lost: u64,
    /// How far back the records reach.
    pub kept_ns: u64,
    /// The memory that they take.
    pub bytes: u64,
    /// Calls that took, or take, longer than the limit.
    pub slow: Vec<SlowCall>,
}

/// A log that was written.
#[derive(Debug)]
pub struct Dump {
    /// When it begins, in ns since 1970.
    pub begin_wall_ns: u64,
    /// And on the recorder's clock.
    pub begin_ns: u64,
    /// How much time it covers.
    pub kept_ns: u64,
    /// How many records it holds.
    pub records: u64,
    /// Calls that had not returned.
    pub pending: Vec<SlowCall>,
    /// Where processes stood when it begins.
    pub places: Vec<Place>,
}

/// What both threads use.
struct Keeper {
    ring: RingBuf<MapData>,
    records: KeptRecords,
}

impl Keeper {
    /// Take what is in the ring, up to a bound. Returns how many records there were.
    fn take(&mut self, most: usize) -> usize {
        let mut count = 0;
        while count < most
            && let Some(item) = self.ring.next()
        {
            count += 1;
            let length = Record::length(&item).unwrap_or(0);
            self.records.take(item.get(..length).unwrap_or_default());
        }
        count
    }

    /// Take all of the ring, and return a time before which there is nothing more in it.
    fn take_all(&mut self) -> u64 {
        let mut now = now_ns(libc::CLOCK_MONOTONIC);
        for _ in 0..MOST_TURNS {
            if self.take(AT_ONCE) == 0 {
                break;
            }
            now = now_ns(libc::CLOCK_MONOTONIC);
        }
        now
    }
}

/// A flight recorder.
pub struct FlightRecorder {
    probe: Probe,
    keeper: Arc<Mutex<Keeper>>,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    limit: CallLimit,
    has_limit: bool,
    look_every_ns: u64,
    lost: u64,
    /// Calls that were over the limit when it was last looked, and when they had begun.
    suspects: Vec<(u32, u64)>,
}

impl FlightRecorder {
    /// Load the probe. Nobody is recorded yet.
    ///
    /// # Errors
    /// eBPF cannot be used here.
    pub fn open(limits: Limits, limit: Option<CallLimit>) -> Result<Self, RecorderError> {
        let (probe, ring) = Probe::load(limits.ring_bytes)?;
        let has_limit = limit.is_some();
        let limit = limit.unwrap_or_else(CallLimit::none);
        let bounds = Bounds {
            least_ns: limits.least_ns,
            most_bytes: limits.most_bytes,
        };
        let records = KeptRecords::new(bounds, limit.limits.clone());
        let keeper = Arc::new(Mutex::new(Keeper { ring, records }));
        let is_ending = Arc::new(AtomicBool::new(false));
        let (own, end) = (Arc::clone(&keeper), Arc::clone(&is_ending));
        let thread = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || keep(&own, &end));
        let thread = thread.map_err(|error| RecorderError::refused("a thread", &error))?;
        Ok(Self {
            probe,
            keeper,
            is_ending,
            thread: Some(thread),
            limit,
            has_limit,
            look_every_ns: (limits.least_ns / LOOKS).clamp(LEAST_NS, MOST_NS),
            lost: 0,
            suspects: Vec::new(),
        })
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Record processes that run, and all that descends from them from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_to(&mut self, processes: &[u32]) -> Result<(), RecorderError> {
        {
            let mut keeper = self.keeper();
            let now = keeper.take_all();
            if keeper.records.begin_ns().is_none() {
                keeper.records.begin(now);
            }
        }
        self.probe.attach_to(processes)?;
        self.keep_places();
        Ok(())
    }

    /// Look at open files where that is due, and at calls that take long. To be asked often.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn watch(&mut self) -> Result<State, RecorderError> {
        let counts = self.probe.counts()?;
        let now = now_ns(libc::CLOCK_MONOTONIC);
        let wants_look = {
            let mut keeper = self.keeper();
            if counts.lost > self.lost {
                keeper.take_all();
                keeper.records.forget();
            }
            keeper.records.let_go(now);
            keeper.records.wants_look(now, self.look_every_ns)
        };
        self.lost = counts.lost;
        if wants_look {
            self.look()?;
        }
        let slow = if self.has_limit {
            self.find_slow()?
        } else {
            Vec::new()
        };
        let keeper = self.keeper();
        let begin_ns = keeper.records.begin_ns();
        Ok(State {
            live: counts.live,
            lost: counts.lost,
            kept_ns: begin_ns.map_or(0, |begin| now.saturating_sub(begin)),
            bytes: keeper.records.bytes(),
            slow,
        })
    }

    /// Begin a segment with what is open now.
    fn look(&mut self) -> Result<(), RecorderError> {
        let processes = {
            let mut keeper = self.keeper();
            let now = keeper.take_all();
            keeper.records.begin(now);
            keeper.records.processes()
        };
        self.probe.tell_files(&processes)?;
        self.keep_places();
        Ok(())
    }

    fn keep_places(&self) {
        let processes = {
            let mut keeper = self.keeper();
            keeper.take_all();
            keeper.records.processes()
        };
        let places = processes.into_iter().filter_map(place_of).collect();
        self.keeper().records.place(places);
    }

    fn find_slow(&mut self) -> Result<Vec<SlowCall>, RecorderError> {
        let pending = self.pending()?;
        let slow = self.keeper().records.take_slow();
        let mut found: Vec<SlowCall> = slow
            .iter()
            .filter_map(|bytes| self.limit.look_at(bytes))
            .collect();
        let before = std::mem::take(&mut self.suspects);
        for bytes in &pending {
            let Some(record) = Record::read(bytes) else {
                continue;
            };
            let over = self.limit.limits.get(usize::from(record.number));
            if over.is_some_and(|&limit| record.duration_ns > limit) {
                // A record of a task that was just entering a call may have the begin of the one before.
                let own = (record.task, record.start_ns);
                if before.contains(&own) {
                    found.extend(self.limit.look_at(bytes));
                }
                self.suspects.push(own);
            }
        }
        Ok(found)
    }

    /// The calls that have not returned.
    fn pending(&mut self) -> Result<Vec<Vec<u8>>, RecorderError> {
        self.keeper().records.forget_pending();
        self.probe.tell_pending()?;
        let mut keeper = self.keeper();
        keeper.take_all();
        Ok(keeper.records.pending().map(<[u8]>::to_vec).collect())
    }

    /// Write what is kept as a log. The recording goes on.
    ///
    /// # Errors
    /// The kernel refuses, the file cannot be written, or nothing is kept.
    pub fn dump(&mut self, path: &Path) -> Result<Dump, RecorderError> {
        self.pending()?;
        let now = now_ns(libc::CLOCK_MONOTONIC);
        let log = self.keeper().records.log();
        let mut log = log.ok_or_else(|| {
            let reason = "nothing is kept: the latest calls did not fit into the memory";
            RecorderError::unusable(reason, "a larger --limit")
        })?;
        log.drop_returned();
        // What was lost before it begins is forgotten.
        let mut end = self.probe.counts()?;
        end.lost = 0;
        let records =
            write(&log, path, &end.end_record(now)).map_err(|source| RecorderError::File {
                path: path.to_owned(),
                source,
            })?;
        let ago_ns = now_ns(libc::CLOCK_MONOTONIC).saturating_sub(log.begin_ns);
        Ok(Dump {
            begin_wall_ns: now_ns(libc::CLOCK_REALTIME).saturating_sub(ago_ns),
            begin_ns: log.begin_ns,
            kept_ns: now.saturating_sub(log.begin_ns),
            records,
            pending: log
                .pending()
                .iter()
                .filter_map(|bytes| slow_call(&Record::read(bytes)?))
                .collect(),
            places: log.places().to_vec(),
        })
    }

    /// Detach from the kernel. What is kept can still be written.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn finish(&mut self) -> Result<(), RecorderError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let detached = self.probe.detach();
        self.is_ending.store(true, Ordering::Release);
        thread.join().map_err(|_| RecorderError::Ended)?;
        self.keeper().take_all();
        detached
    }
}

impl Drop for FlightRecorder {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// Empty the ring until the recording ends.
fn keep(keeper: &Mutex<Keeper>, is_ending: &AtomicBool) {
    while !is_ending.load(Ordering::Acquire) {
        let count = {
            let mut keeper = keeper.lock().unwrap_or_else(PoisonError::into_inner);
            keeper.take(AT_ONCE)
        };
        sleep(if count == 0 { IDLE } else { BUSY });
    }
}

fn write(log: &KeptLog, path: &Path, end: &[u8]) -> Result<u64, std::io::Error> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&file_head())?;
    let count = log.write(&mut out, end)?;
    out.flush()?;
    Ok(count)
}

/// Where a process stands now: None where it has ended.
fn place_of(process: u32) -> Option<Place> {
    let proc = format!("/proc/{process}");
    let directory = fs::read_link(format!("{proc}/cwd")).ok()?;
    let status = fs::read(format!("{proc}/status")).ok()?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    Some(Place {
        process,
        directory: directory.into_os_string().into_vec(),
        umask: umask.unwrap_or_default().trim().to_owned(),
    })
}
