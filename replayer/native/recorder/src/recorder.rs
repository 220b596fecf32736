//! One recording, from the loading of the probe to the end of its file.

use crate::drain::{Drain, Shared, finish};
use crate::error::RecorderError;
use crate::probe::{Counts, Probe};
use aya::maps::{MapData, RingBuf};
use replayer_trace::bpf::MAGIC;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// How far a recording is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Records in the file, and lost behind its limit.
    pub records: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Records that did not fit into the ring.
    pub lost: u64,
    /// Threads that are recorded and have not ended.
    pub live: u64,
    /// Whether the file has reached its limit.
    pub is_full: bool,
    /// Why the file could not be written.
    pub trouble: Option<String>,
}

/// A recording that runs.
pub struct Recorder {
    probe: Probe,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Drain>>,
    /// Of a recording that has ended.
    ring: Option<RingBuf<MapData>>,
    path: PathBuf,
}

/// One clock.
pub(crate) fn now_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    #[allow(
        unsafe_code,
        reason = "clock_gettime writes into the structure that it is given"
    )]
    // SAFETY: `time` is a timespec that lives through the call.
    unsafe {
        libc::clock_gettime(clock, &raw mut time);
    }
    let [seconds, part] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + part
}

/// What a recording begins with.
pub(crate) fn file_head() -> Vec<u8> {
    let offset = now_ns(libc::CLOCK_REALTIME).wrapping_sub(now_ns(libc::CLOCK_MONOTONIC));
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&offset.to_le_bytes());
    head
}

/// Make a file, and begin to empty the ring into it.
fn start(
    path: &Path,
    ring: RingBuf<MapData>,
    shared: &Arc<Shared>,
    limit_bytes: u64,
) -> Result<JoinHandle<Drain>, RecorderError> {
    let failed = |source| RecorderError::File {
        path: path.to_owned(),
        source,
    };
    let mut file = File::create(path).map_err(failed)?;
    file.write_all(&file_head()).map_err(failed)?;
    let drain = Drain {
        ring,
        file,
        shared: Arc::clone(shared),
        limit_bytes,
        buffer: Vec::new(),
    };
    let thread = std::thread::Builder::new().name("recorder".into());
    thread.spawn(move || drain.run()).map_err(failed)
}

impl Recorder {
    /// Load the probe and open the file of the recording. Nobody is recorded yet.
    ///
    /// # Errors
    /// eBPF cannot be used here, or the file cannot be made.
    pub fn open(path: &Path, ring_bytes: u32, limit_bytes: u64) -> Result<Self, RecorderError> {
        let (probe, ring) = Probe::load(ring_bytes)?;
        let shared = Arc::new(Shared::default());
        let thread = start(path, ring, &shared, limit_bytes)?;
        Ok(Self {
            probe,
            shared,
            thread: Some(thread),
            ring: None,
            path: path.to_owned(),
        })
    }

    /// Record once more, into another file. Nobody is recorded yet. Does nothing unless the recording has ended.
    ///
    /// # Errors
    /// The kernel refuses, or the file cannot be made.
    pub fn restart(&mut self, path: &Path, limit_bytes: u64) -> Result<(), RecorderError> {
        let Some(ring) = self.ring.take() else {
            return Ok(());
        };
        self.shared = Arc::new(Shared::default());
        path.clone_into(&mut self.path);
        self.thread = Some(start(path, ring, &self.shared, limit_bytes)?);
        self.probe.attach()
    }

    /// What the kernel cannot tell of, each with the reason.
    #[must_use]
    pub fn left_out(&self) -> &[(&'static str, RecorderError)] {
        self.probe.left_out()
    }

    /// Record pages that are touched through mappings of files below these directories, by the numbers of their inodes, until the recording
    /// ends. Kernels before 6.11 do not tell.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn record_pages(&mut self, roots: &[u64]) -> Result<(), RecorderError> {
        self.probe.record_pages(roots)
    }

    /// Record the next process that this thread starts, from its execve on, and all that descends from it.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn arm(&mut self) -> Result<(), RecorderError> {
        self.probe.arm()
    }

    /// Record processes that run, and all that descends from them from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn attach_to(&mut self, processes: &[u32]) -> Result<(), RecorderError> {
        if let Ok(mut known) = self.shared.processes.lock() {
            known.extend(processes);
        }
        self.probe.attach_to(processes)
    }

    /// Tell how far it is.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn progress(&self) -> Result<Progress, RecorderError> {
        let Counts { lost, live, .. } = self.probe.counts()?;
        let shared = &self.shared;
        let trouble = shared
            .trouble
            .lock()
            .ok()
            .and_then(|trouble| trouble.clone());
        Ok(Progress {
            records: shared.records.load(Ordering::Relaxed),
            bytes: shared.bytes.load(Ordering::Relaxed),
            lost,
            live,
            is_full: shared.dropped.load(Ordering::Relaxed) > 0,
            trouble,
        })
    }

    /// The processes that were recorded, as far as records told.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let known = self.shared.processes.lock();
        known
            .map(|known| known.iter().copied().collect())
            .unwrap_or_default()
    }

    /// Detach, write what is left in the ring, and end the file. Does nothing the second time.
    ///
    /// # Errors
    /// The kernel refuses, or the file cannot be written.
    pub fn finish(&mut self) -> Result<(), RecorderError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let detached = self.probe.detach();
        self.shared.is_ending.store(true, Ordering::Release);
        let Drain { ring, file, .. } = thread.join().map_err(|_| RecorderError::Ended)?;
        self.ring = Some(ring);
        let counts = self.probe.counts()?;
        let end = counts.end_record(now_ns(libc::CLOCK_MONOTONIC));
        let ended = finish(file, &self.path, &end);
        // What no record fitted into may have no room for the end.
        let is_cut = self.shared.dropped.load(Ordering::Relaxed) > 0;
        ended.or_else(|error| if is_cut { Ok(()) } else { Err(error) })?;
        detached
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

/// Make so many calls that follow each other at once: what lies between two of them in a recording is the recorder's.
///
/// # Errors
/// A file cannot be used.
pub fn make_quick_calls(count: u64) -> std::io::Result<()> {
    let mut file = File::open("/dev/null")?;
    (0..count).try_for_each(|_| file.stream_position().map(|_| ()))
}
