use super::LaneThreads;
use crate::clock::now_ns;
use crate::interpreter::{FailedOp, Halt, Journal, Setting};
use crate::overhead::setting;
use crate::program::{EntryKind, Replay, ReplayPace};
use crate::replay::program::{
    CallBatch, CallBatches, DataCall, Entry, PathId, Paths, Place, Recorded, ReplayCall,
    ReplayProgram, ScheduledCall, Script, TextId, Wait,
};
use crate::sys::{Folder, Guarded, Jailed, Kernel, Null, own_folder_state};
use crate::thread_state::ThreadState;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod bounds;
mod every_call;
mod hanging;
mod lanes;
mod locks;
mod one_lane;
mod refused;
mod safety;
mod speed;

/// A replay program that is written by hand.
#[derive(Clone, Default)]
struct Tape {
    own: Vec<(String, u32)>,
    shared: Vec<String>,
    lanes: Vec<Vec<ScheduledCall>>,
    waits: Vec<Wait>,
    texts: Vec<u8>,
    entries: Vec<Entry>,
    tops: Vec<PathId>,
    slots: u32,
    rows: u64,
}

impl Tape {
    fn new(lanes: usize) -> Tape {
        Tape {
            lanes: vec![Vec::new(); lanes],
            slots: 64,
            ..Tape::default()
        }
    }

    /// A path of the performance's own; before any shared one.
    fn own(&mut self, path: &str, own_end: usize) -> PathId {
        assert!(self.shared.is_empty());
        self.own
            .push((path.to_owned(), u32::try_from(own_end).unwrap()));
        u32::try_from(self.own.len() - 1).unwrap()
    }

    fn path(&mut self, path: &str) -> PathId {
        self.shared.push(path.to_owned());
        u32::try_from(self.own.len() + self.shared.len() - 1).unwrap()
    }

    fn at(&mut self, path: &str) -> Place {
        place(self.path(path))
    }

    fn text(&mut self, text: &str) -> TextId {
        let start = u32::try_from(self.texts.len()).unwrap();
        self.texts.extend_from_slice(text.as_bytes());
        self.texts.push(0);
        TextId {
            start,
            len: u32::try_from(text.len()).unwrap(),
            own_end: 0,
        }
    }

    fn entry(&mut self, path: PathId, kind: EntryKind, size: u64, link: &str) {
        self.entries.push(Entry {
            path,
            kind,
            size,
            mode: 0o755,
            link: link.as_bytes().into(),
            link_own_end: 0,
        });
    }

    /// Add an event to a lane; its row.
    fn add(&mut self, lane: usize, call: ReplayCall, recorded: Recorded) -> u64 {
        self.add_after(lane, call, recorded, &[])
    }

    fn add_after(
        &mut self,
        lane: usize,
        call: ReplayCall,
        recorded: Recorded,
        after: &[Wait],
    ) -> u64 {
        let row = self.rows;
        self.rows += 1;
        let first = u32::try_from(self.waits.len()).unwrap();
        self.waits.extend_from_slice(after);
        self.lanes[lane].push(ScheduledCall {
            row,
            thread: u32::try_from(lane).unwrap(),
            start_ns: 0,
            gap_ns: 0,
            after_ns: 0,
            recorded,
            waits: (first, u32::try_from(after.len()).unwrap()),
            call,
        });
        row
    }

    fn paths(&self) -> Arc<Paths> {
        let mut paths = Paths::default();
        let shared = self.shared.iter().map(|path| (path.clone(), 0));
        for (path, own_end) in self.own.iter().cloned().chain(shared) {
            paths.push(path.as_bytes(), own_end).unwrap();
        }
        Arc::new(paths)
    }

    /// All in one batch.
    fn replay_program(&self) -> Arc<ReplayProgram> {
        let batch = CallBatch {
            lanes: self.lanes.iter().map(|lane| lane.clone().into()).collect(),
            waits: self.waits.clone().into(),
            texts: self.texts.clone().into(),
        };
        self.replay_program_of(vec![Arc::new(batch)])
    }

    fn replay_program_of(&self, batches: Vec<Arc<CallBatch>>) -> Arc<ReplayProgram> {
        Arc::new(ReplayProgram {
            script: Box::new(Cut(batches)),
            lanes: u16::try_from(self.lanes.len()).unwrap(),
            slots: self.slots,
            paths: self.paths(),
            own: self.entries.clone().into(),
            tops: self.tops.clone().into(),
            laid_out: false,
            read_bytes: 0,
        })
    }
}

fn place(path: PathId) -> Place {
    Place {
        path,
        from: None,
        rest: 0,
    }
}

#[derive(Debug)]
struct Cut(Vec<Arc<CallBatch>>);

impl Script for Cut {
    fn play(&self) -> Box<dyn CallBatches> {
        Box::new(Playing(self.0.clone().into_iter()))
    }
}

struct Playing(std::vec::IntoIter<Arc<CallBatch>>);

impl CallBatches for Playing {
    fn next(&mut self) -> Result<Option<Arc<CallBatch>>, String> {
        Ok(self.0.next())
    }
}

const PLAN: &str = r#"{"format": 1, "name": "replay", "seed": 1, "users": 1, "written": "random",
"pool_bytes": 8192, "tables": [], "mix": [1], "datasets": [], "pickers": [],
"transactions": [{"name": "front", "steps": []}],
"pace": {"kind": "closed", "think": {"const": 0}},
"stop": {"duration_ns": null, "transactions": null}, "warm_up_ns": 0}"#;

/// A folder with a run's folder in it, on tmpfs or on disk.
struct Ground {
    at: tempfile::TempDir,
    folder: Arc<Folder>,
    setting: Arc<Setting>,
}

impl Ground {
    fn new() -> Ground {
        Ground::on("/dev/shm")
    }

    fn on(place: &str) -> Ground {
        let at = tempfile::tempdir_in(place).unwrap();
        let folder = Folder::make(at.path().to_str().unwrap(), "run").unwrap();
        let setting = setting(PLAN).unwrap();
        setting.recorder.begin_segment(0, 0, 0);
        Ground {
            folder: Arc::new(folder),
            setting: Arc::new(setting),
            at,
        }
    }

    /// With an event log; its directory.
    fn logged(mut self) -> (Ground, PathBuf) {
        let log = self.at.path().join("log");
        std::fs::create_dir(&log).unwrap();
        let directory = crate::sys::open_directory(log.to_str().unwrap()).unwrap();
        Arc::get_mut(&mut self.setting).unwrap().event_log = Some(directory);
        (self, log)
    }

    /// What was recorded.
    fn totals(&self) -> Vec<crate::record::RowData> {
        self.setting.recorder.end_segment(None);
        self.setting.recorder.totals()
    }

    fn run(&self) -> PathBuf {
        self.at.path().join("run")
    }

    fn write(&self, path: &str, size: usize) {
        let path = self.run().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![7; size]).unwrap();
    }

    /// One performance asap, jailed where that is permitted.
    fn play(&self, replay_program: &Arc<ReplayProgram>) -> Shown {
        self.show(
            replay_program,
            ReplayPace::Asap,
            1,
            &Arc::new(ThreadState::new(0)),
        )
    }

    fn show(
        &self,
        replay_program: &Arc<ReplayProgram>,
        pace: ReplayPace,
        times: u32,
        thread_state: &Arc<ThreadState>,
    ) -> Shown {
        if crate::sys::can_jail() {
            self.show_in::<Jailed>(replay_program, pace, times, thread_state)
        } else {
            self.show_in::<Guarded>(replay_program, pace, times, thread_state)
        }
    }

    fn show_in<K: Kernel>(
        &self,
        replay_program: &Arc<ReplayProgram>,
        pace: ReplayPace,
        times: u32,
        thread_state: &Arc<ThreadState>,
    ) -> Shown {
        let replay = Replay {
            trace: 0,
            request: None,
            pace,
            speed_percent: 100,
        };
        // As the engine does: lanes that end interrupt the others.
        crate::sys::install_wake_signal();
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            let user = thread.spawn_scoped(scope, || {
                own_folder_state();
                self.perform::<K>(&replay, replay_program, times, thread_state)
            });
            user.unwrap().join().unwrap()
        })
    }

    fn perform<K: Kernel>(
        &self,
        replay: &Replay,
        replay_program: &Arc<ReplayProgram>,
        times: u32,
        thread_state: &Arc<ThreadState>,
    ) -> Shown {
        let kernel = K::enter(&self.folder).unwrap();
        let setting = &self.setting;
        let recorder = Arc::clone(&setting.recorder);
        let shard = recorder.shard(thread_state.user);
        let mut journal = Journal::new(
            recorder,
            shard,
            Arc::clone(thread_state),
            0,
            setting.begin_ns,
        );
        let mut lane_threads = LaneThreads::new(setting, thread_state);
        lane_threads.enter(0, &self.folder);
        let mut shown = Shown {
            result: Ok(()),
            failed: None,
            ledger: Value::Null,
            fastest: (u64::MAX, 0),
            aside_ns: 0,
        };
        for _ in 0..times {
            journal.begin(0, now_ns(), now_ns());
            let (begin_ns, in_call_ns) = (now_ns(), thread_state.in_call_ns());
            shown.result = lane_threads.perform(&kernel, &mut journal, replay, replay_program);
            let ns = now_ns() - begin_ns;
            journal.flush();
            let in_call_ns = thread_state.in_call_ns() - in_call_ns;
            shown.fastest = shown.fastest.min((ns, in_call_ns));
            shown.failed = journal.failed.take();
            shown.aside_ns = journal.intended_without_aside(0, now_ns());
        }
        shown.ledger = serde_json::from_str(&setting.ledger.json(&["front"])).unwrap();
        shown
    }
}

#[derive(Debug)]
struct Shown {
    result: Result<(), Halt>,
    failed: Option<FailedOp>,
    ledger: Value,
    /// The fastest performance: all of it, and what of it was in calls.
    fastest: (u64, u64),
    /// What the next transaction waits for that is not timed.
    aside_ns: u64,
}

impl Shown {
    fn is_clean(&self) -> bool {
        let clean = self.result.is_ok() && self.ledger["diverged"] == json!([]);
        assert!(clean, "{self:?}");
        clean
    }
}

/// Names below a directory, sorted.
fn names(at: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![at.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(at).unwrap().display().to_string());
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}
