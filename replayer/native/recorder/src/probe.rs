//! The probe: loaded, attached, and asked.

use crate::error::RecorderError;
use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{BtfTracePoint, Iter};
use aya::{Btf, Ebpf, EbpfLoader};
use replayer_trace::bpf::{LIBAIO, RINGS, end_record, probe_table};
use std::io::Read;
use std::path::Path;

/// The probe as `just bpf` built it from its source.
static OBJECT: &[u8] = include_bytes!("../bpf/probe.bpf.o");
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The first PID namespace (`PROC_PID_INIT_INO`): the probe knows tasks by their numbers there.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// Its programs, and where they are attached.
const POINTS: [(&str, &str); 5] = [
    ("on_exit", "sched_process_exit"),
    ("on_exec", "sched_process_exec"),
    ("on_fork", "sched_process_fork"),
    ("on_return", "sys_exit"),
    ("on_enter", "sys_enter"),
];
/// The same at faults for pages of files. Kernels before 6.11 do not tell of which file a page is: there none of them is used.
const FAULTS: [(&str, &str); 4] = [
    ("on_pages_mapped", "mm_filemap_map_pages"),
    ("on_page_needed", "mm_filemap_fault"),
    ("on_fault", "page_fault_user"),
    ("on_fault_in_call", "page_fault_kernel"),
];
/// Those that record requests of `io_uring`, each with where it may be attached, by what kernels have: of each the first that can be, or none at all.
const RING_POINTS: [[(&str, &str); 2]; 2] = [
    [
        ("on_submit", "io_uring_submit_req"),
        ("on_submit", "io_uring_submit_sqe"),
    ],
    [
        ("on_complete", "io_uring_complete"),
        ("on_complete_by_value", "io_uring_complete"),
    ],
];
/// Programs that go through all tasks, or all their open files, once.
const WALKS: [(&str, &str); 3] = [
    ("attach_tasks", "task"),
    ("tell_pending", "task"),
    ("tell_files", "task_file"),
];

/// What cannot be recorded where their programs are not accepted.
const PAGES: &str = "pages of mappings";
const REQUESTS: &str = "requests of io_uring";

/// The loaded probe. It detaches when it is dropped, or this process ends.
pub(crate) struct Probe {
    ebpf: Ebpf,
    /// Of the programs that record requests of `io_uring`: none where the kernel tells too little of them.
    rings: Vec<&'static str>,
    links: Vec<BtfTracePointLink>,
    /// The programs at faults, where they can be used.
    faults: Vec<&'static str>,
    /// What cannot be recorded on this kernel, and why.
    left_out: Vec<(&'static str, RecorderError)>,
    controls: Array<MapData, Control>,
}

/// What the probe counts: records lost, the time of the first of them, tasks that live, calls of 32-bit programs, who launches the next one, and
/// requests of `io_uring` and libaio that stand for calls which are not known (`struct control`).
type Control = [u64; 6];

/// The counts of the probe.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) lost: u64,
    first_lost_ns: u64,
    pub(crate) live: u64,
    /// Calls of 32-bit programs that are not recorded.
    compat: u64,
    /// Requests of `io_uring` and libaio that are not recorded.
    unknown: u64,
    /// Which of both are.
    requests: u64,
}

impl Counts {
    /// The record that ends a file.
    pub(crate) fn end_record(self, now_ns: u64) -> Vec<u8> {
        let told = [
            self.lost,
            self.first_lost_ns,
            self.compat,
            self.requests,
            self.unknown,
        ];
        end_record(now_ns, told)
    }
}

impl Probe {
    /// Load and attach. Nothing is recorded until somebody is to be.
    pub(crate) fn load(ring_bytes: u32) -> Result<(Self, RingBuf<MapData>), RecorderError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(RecorderError::unusable(
                "this machine is not an x86-64",
                "an x86-64",
            ));
        }
        if !Path::new(BTF).exists() {
            let reason = format!("the kernel does not describe itself ({BTF} is missing)");
            return Err(RecorderError::unusable(
                reason,
                "a kernel with CONFIG_DEBUG_INFO_BTF",
            ));
        }
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        if namespace.is_ok_and(|name| name != Path::new(FIRST_NAMESPACE)) {
            return Err(RecorderError::unusable(
                "eBPF cannot be used: this program is in a PID namespace of its own",
                "the PID namespace of the machine (in a container: --pid host)",
            ));
        }
        let btf = Btf::from_sys_fs().map_err(|error| RecorderError::refused(BTF, &error))?;
        let table = probe_table();
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .allow_unsupported_maps()
            .override_global("shapes", table.as_slice(), true)
            .map_max_entries("ring", ring_bytes)
            .load(OBJECT)
            .map_err(|error| RecorderError::refused("eBPF cannot be used", &error))?;
        for (name, over) in WALKS {
            let program: &mut Iter = program(&mut ebpf, name)?;
            let loaded = program.load(over, &btf);
            loaded.map_err(|error| RecorderError::not_loaded(name, &error))?;
        }
        load_points(&mut ebpf, &btf, &POINTS)?;
        let mut left_out = Vec::new();
        let faults = load_points(&mut ebpf, &btf, &FAULTS);
        let faults = faults.unwrap_or_else(|error| {
            left_out.push((PAGES, error));
            Vec::new()
        });
        let rings = load_rings(&mut ebpf, &btf);
        let rings = rings.unwrap_or_else(|error| {
            left_out.push((REQUESTS, error));
            Vec::new()
        });
        let ring = RingBuf::try_from(map(&mut ebpf, "ring")?);
        let ring = ring.map_err(|error| RecorderError::refused("ring", &error))?;
        let controls = Array::try_from(map(&mut ebpf, "controls")?);
        let controls = controls.map_err(|error| RecorderError::refused("controls", &error))?;
        let mut probe = Self {
            ebpf,
            rings,
            links: Vec::new(),
            faults,
            left_out,
            controls,
        };
        probe.attach()?;
        Ok((probe, ring))
    }

    /// What cannot be recorded on this kernel, and why.
    pub(crate) fn left_out(&self) -> &[(&'static str, RecorderError)] {
        &self.left_out
    }

    /// Attach once more, with all counts at 0.
    pub(crate) fn attach(&mut self) -> Result<(), RecorderError> {
        let reset = self.controls.set(0, Control::default(), 0);
        reset.map_err(|error| RecorderError::refused("controls", &error))?;
        self.attach_to_points(&POINTS.map(|(name, _)| name))?;
        self.attach_to_points(&self.rings.clone())
    }

    fn attach_to_points(&mut self, names: &[&str]) -> Result<(), RecorderError> {
        for name in names {
            let program: &mut BtfTracePoint = program(&mut self.ebpf, name)?;
            let link = program.attach().and_then(|id| program.take_link(id));
            let link = link.map_err(|error| RecorderError::refused("eBPF cannot be used", &error));
            self.links.push(link?);
        }
        Ok(())
    }

    /// Record faults for pages of files, too, where processes map files below directories of these inodes.
    pub(crate) fn record_pages(&mut self, roots: &[u64]) -> Result<(), RecorderError> {
        let map = self.ebpf.map_mut("roots").ok_or(RecorderError::Ended)?;
        let map = HashMap::<_, u64, u32>::try_from(map);
        let mut map = map.map_err(|error| RecorderError::refused("roots", &error))?;
        for root in roots {
            let done = map.insert(root, 1, 0);
            done.map_err(|error| RecorderError::refused("roots", &error))?;
        }
        let faults = self.faults.clone();
        self.attach_to_points(&faults)
    }

    /// Record the next process that this thread starts, from its execve on.
    pub(crate) fn arm(&mut self) -> Result<(), RecorderError> {
        let mut control = self.control()?;
        control[4] = current_thread().unwrap_or(u64::from(std::process::id()));
        let set = self.controls.set(0, control, 0);
        set.map_err(|error| RecorderError::refused("controls", &error))
    }

    fn control(&self) -> Result<Control, RecorderError> {
        let got = self.controls.get(&0, 0);
        got.map_err(|error| RecorderError::refused("controls", &error))
    }

    pub(crate) fn counts(&self) -> Result<Counts, RecorderError> {
        let [lost, first_lost_ns, live, compat, _, unknown] = self.control()?;
        Ok(Counts {
            lost,
            first_lost_ns,
            live,
            compat,
            unknown,
            requests: LIBAIO | if self.rings.is_empty() { 0 } else { RINGS },
        })
    }

    /// Record all threads of processes that run, and have the ring tell what they have open.
    pub(crate) fn attach_to(&mut self, processes: &[u32]) -> Result<(), RecorderError> {
        self.want(processes, true)?;
        self.walk("attach_tasks")?;
        // A thread that was just being made.
        self.walk("attach_tasks")?;
        self.tell_files(processes)
    }

    /// Have the ring tell what processes that are recorded have open now.
    pub(crate) fn tell_files(&mut self, processes: &[u32]) -> Result<(), RecorderError> {
        self.want(processes, true)?;
        self.walk("tell_files")?;
        self.want(processes, false)
    }

    /// Have the ring tell of calls that have not returned.
    pub(crate) fn tell_pending(&mut self) -> Result<(), RecorderError> {
        self.walk("tell_pending")
    }

    fn want(&mut self, processes: &[u32], is_wanted: bool) -> Result<(), RecorderError> {
        let wanted = self.ebpf.map_mut("wanted").ok_or(RecorderError::Ended)?;
        let wanted = HashMap::<_, u32, u32>::try_from(wanted);
        let mut wanted = wanted.map_err(|error| RecorderError::refused("wanted", &error))?;
        for process in processes {
            let done = if is_wanted {
                wanted.insert(process, 1, 0)
            } else {
                wanted.remove(process)
            };
            done.map_err(|error| RecorderError::refused("wanted", &error))?;
        }
        Ok(())
    }

    /// Detach, and have the ring tell of calls that have not returned.
    pub(crate) fn detach(&mut self) -> Result<(), RecorderError> {
        self.links.clear();
        self.tell_pending()
    }

    /// Have a program go through all tasks.
    fn walk(&mut self, name: &str) -> Result<(), RecorderError> {
        let program: &mut Iter = program(&mut self.ebpf, name)?;
        let link = program.attach().and_then(|id| program.take_link(id));
        let link = link.map_err(|error| RecorderError::refused(name, &error))?;
        let file = link.into_file();
        let mut file = file.map_err(|error| RecorderError::refused(name, &error))?;
        let read = file.read_to_end(&mut Vec::new());
        read.map(drop)
            .map_err(|error| RecorderError::refused(name, &error))
    }
}

/// Load programs. Returns their names.
fn load_points(
    ebpf: &mut Ebpf,
    btf: &Btf,
    points: &[(&'static str, &str)],
) -> Result<Vec<&'static str>, RecorderError> {
    for (name, point) in points {
        let program: &mut BtfTracePoint = program(ebpf, name)?;
        let loaded = program.load(point, btf);
        loaded.map_err(|error| RecorderError::not_loaded(name, &error))?;
    }
    Ok(points.iter().map(|(name, _)| *name).collect())
}

/// Load the programs that record requests of `io_uring`: of each the first way that the kernel accepts.
fn load_rings(ebpf: &mut Ebpf, btf: &Btf) -> Result<Vec<&'static str>, RecorderError> {
    let mut names = Vec::new();
    for [first, second] in RING_POINTS {
        let loaded = load_points(ebpf, btf, &[first]);
        // A program that was refused can be loaded again; where both ways are, the first says more.
        let loaded = loaded.or_else(|error| load_points(ebpf, btf, &[second]).map_err(|_| error));
        names.extend(loaded?);
    }
    Ok(names)
}

fn current_thread() -> Option<u64> {
    let link = std::fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

fn map(ebpf: &mut Ebpf, name: &str) -> Result<aya::maps::Map, RecorderError> {
    ebpf.take_map(name).ok_or(RecorderError::Ended)
}

fn program<'a, P>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, RecorderError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
{
    let found = ebpf.program_mut(name).ok_or(RecorderError::Ended)?;
    found.try_into().map_err(|_| RecorderError::Ended)
}
