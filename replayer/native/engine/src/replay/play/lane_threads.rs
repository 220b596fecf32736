//! The threads of a user that play the lanes of its performances: its own, and helpers that wait between performances.

use super::files::{Fault, Site, lay_out, remove};
use super::helper::{Duty, HelperThread, Role, Task};
use super::helper_group::HelperGroup;
use super::lane_replay::{LaneContext, LaneReplay, Tools};
use super::line::{Line, Post};
use super::log::open_log;
use super::performance::{Performance, PerformanceId, Timing};
use crate::clock::{now_ns, since_ns};
use crate::error::errno_of;
use crate::interpreter::{Halt, Journal, Setting, Shift};
use crate::ops::{Op, outcome_of_errno};
use crate::program::{Pipeline, Replay, ReplayPace};
use crate::replay::names::Names;
use crate::replay::program::ReplayProgram;
use crate::segment::Segment;
use crate::sys::files::close;
use crate::sys::{Folder, Kernel};
use crate::thread_state::{ABANDONED, CUT, Place, ThreadState};
use crate::user_threads::{NAG, interrupt};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::park_timeout;

/// With recorded times, helpers get so long to wake before the performance begins (chosen: a wake-up takes some tens of microseconds).
const LEAD_NS: u64 = 200_000;
/// A performance that was broken off has so long to remove its files (chosen: half of what a user gets before it is given up on).
const TIDYING_NS: u64 = 1_000_000_000;

/// The threads of one user, and what it remembers of its performances.
pub(crate) struct LaneThreads {
    setting: Arc<Setting>,
    thread_state: Arc<ThreadState>,
    helpers: Vec<HelperThread>,
    tools: Tools,
    site: Option<(u16, Arc<Folder>)>,
    /// Performances of each trace in this segment.
    given: Vec<u64>,
    performances: u64,
}

/// A performance that is being given.
struct Given {
    performance: Arc<Performance>,
    folder: Arc<Folder>,
    keeps_files: bool,
}

impl LaneThreads {
    pub(crate) fn new(setting: &Arc<Setting>, thread_state: &Arc<ThreadState>) -> LaneThreads {
        LaneThreads {
            setting: Arc::clone(setting),
            thread_state: Arc::clone(thread_state),
            helpers: Vec::new(),
            tools: Tools::default(),
            site: None,
            given: Vec::new(),
            performances: 0,
        }
    }

    pub(crate) fn thread_state(&self) -> Arc<ThreadState> {
        Arc::clone(&self.thread_state)
    }

    /// A segment begins: its performances are counted anew.
    pub(crate) fn enter(&mut self, target: u16, folder: &Arc<Folder>) {
        self.site = Some((target, Arc::clone(folder)));
        self.given.clear();
    }

    /// Give one performance, and wait for its end.
    pub(crate) fn perform<K: Kernel>(
        &mut self,
        kernel: &K,
        journal: &mut Journal,
        replay: &Replay,
        replay_program: &Arc<ReplayProgram>,
    ) -> Result<(), Halt> {
        let before_ns = now_ns();
        let prepared = self.prepare::<K>(journal, replay, replay_program);
        self.put_aside(journal, before_ns);
        let given = prepared?;
        let performance = &given.performance;
        self.launch(&given, journal);
        let context = LaneContext {
            setting: &self.setting,
            kernel,
            thread_state: &self.thread_state,
            journal: &mut *journal,
            tools: &mut self.tools,
        };
        let own = {
            let _leaving = OwnLane(performance);
            LaneReplay::new(context, performance, 0).play()
        };
        self.wait_for_helpers(&performance.helper_group);
        let outcome = performance.helper_group.outcome();
        let result = match (own, outcome.result) {
            (Err(Halt::Cut), _) | (_, Err(Halt::Cut)) if self.thread_state.is_cut() => {
                Err(Halt::Cut)
            }
            (Ok(()), Ok(())) => Ok(()),
            _ => Err(Halt::Failed),
        };
        journal.join(outcome.bytes, outcome.latest_ns, outcome.failed);
        let ended_ns = now_ns();
        self.clean_up(&given);
        self.put_aside(journal, ended_ns);
        self.setting.ledger.count_performance(performance.id.target);
        result
    }

    /// What was done since a time is no part of any transaction.
    fn put_aside(&self, journal: &mut Journal, since_ns: u64) {
        let now_ns = now_ns();
        let ns = now_ns.saturating_sub(since_ns);
        journal.aside(ns);
        journal.busy_until(now_ns);
        self.thread_state.add_outside(ns);
    }

    /// Everything that is not timed: names, files, threads, logs. Where that fails, nothing of it is left.
    fn prepare<K: Kernel>(
        &mut self,
        journal: &mut Journal,
        replay: &Replay,
        replay_program: &Arc<ReplayProgram>,
    ) -> Result<Given, Halt> {
        let Some((target, folder)) = self.site.clone() else {
            return Err(Halt::Failed);
        };
        let turn = self.take_turn(replay.trace);
        let names = Arc::new(Names::new(
            &replay_program.paths,
            self.thread_state.user,
            turn,
        ));
        self.thread_state.set_names(&names);
        let setting = Arc::clone(&self.setting);
        let lanes = usize::from(replay_program.lanes).max(1);
        self.hire::<K>(lanes - 1).map_err(|errno| {
            self.refuse(journal, Op::Clone, errno, b"thread of a lane".to_vec())
        })?;
        if K::REAL {
            let site = Site {
                folder: folder.file.as_fd(),
                names: &names,
                replay_program,
                thread_state: &self.thread_state,
            };
            lay_out(&site, turn, &setting.written).map_err(|(errno, path)| {
                let halt = self.refuse(journal, Op::Open, errno, path);
                // What cannot be removed goes with the run's folder; why nothing works here was just told.
                let _removed = self.remove_files(&site);
                halt
            })?;
        }
        let performance = self.performances;
        self.performances += 1;
        let id = PerformanceId {
            user: self.thread_state.user,
            performance,
            trace: replay.trace,
            target,
            transaction: journal.transaction(),
        };
        self.tools.log = open_log(&setting, id, 0);
        let is_led = replay.pace == ReplayPace::Timed && lanes > 1;
        let timing = Timing {
            pace: replay.pace,
            speed_percent: replay.speed_percent,
            begin_ns: now_ns() + if is_led { LEAD_NS } else { 0 },
        };
        let is_only = turn == 0 && setting.program.transactions_per_user == Some(1);
        Ok(Given {
            performance: Arc::new(Performance::new(replay_program, &names, id, timing)),
            folder,
            keeps_files: is_only || !K::REAL,
        })
    }

    /// The number of this performance of a trace within the segment.
    fn take_turn(&mut self, trace: u16) -> u64 {
        let trace = usize::from(trace);
        if self.given.len() <= trace {
            self.given.resize(trace + 1, 0);
        }
        let turn = self.given.get(trace).copied().unwrap_or(0);
        if let Some(given) = self.given.get_mut(trace) {
            *given += 1;
        }
        turn
    }

    /// A performance that cannot be given.
    fn refuse(&self, journal: &mut Journal, op: Op, errno: Errno, path: Vec<u8>) -> Halt {
        if self.thread_state.is_cut() {
            return Halt::Cut;
        }
        let outcome = outcome_of_errno(errno.raw_os_error());
        journal.report_error(op, outcome, now_ns(), || path);
        Halt::Failed
    }

    /// Have so many helpers.
    fn hire<K: Kernel>(&mut self, count: usize) -> Result<(), Errno> {
        while self.helpers.len() < count {
            let lane = self.helpers.len() + 1;
            let helper = HelperThread::start::<K>(&self.setting, &self.thread_state, lane);
            self.helpers.push(helper.map_err(|error| errno_of(&error))?);
        }
        Ok(())
    }

    fn launch(&self, given: &Given, journal: &Journal) {
        let lanes = given.performance.lanes();
        let place = (given.performance.id.target, &given.folder);
        for (lane, helper) in (1..lanes).zip(&self.helpers) {
            helper.give(Task::Lane(Role {
                performance: Arc::clone(&given.performance),
                user: Arc::clone(&self.thread_state),
                duty: duty(lane, place, journal),
            }));
        }
    }

    /// Have helpers do the stages of a pipeline, and wait for their end.
    pub(crate) fn man<K: Kernel>(
        &mut self,
        journal: &mut Journal,
        pipeline: &Arc<Pipeline>,
        shift: Shift,
        segment: &Segment,
    ) -> Result<(), Halt> {
        let before_ns = now_ns();
        let hired = self
            .hire::<K>(pipeline.stages.len())
            .map_err(|errno| self.refuse(journal, Op::Clone, errno, b"thread of a stage".to_vec()));
        self.put_aside(journal, before_ns);
        hired?;
        let Some((target, folder)) = &self.site else {
            return Err(Halt::Failed);
        };
        let line = Arc::new(Line::new(pipeline));
        for (number, helper) in self.helpers.iter().take(pipeline.stages.len()).enumerate() {
            helper.give(Task::Stage(Post {
                line: Arc::clone(&line),
                number,
                duty: duty(number + 1, (*target, folder), journal),
                shift,
                segment: segment.clone(),
            }));
        }
        self.wait_for_stages(&line.helper_group);
        let outcome = line.helper_group.outcome();
        journal.join(outcome.bytes, outcome.latest_ns, outcome.failed);
        match outcome.result {
            Err(_) if self.thread_state.is_cut() => Err(Halt::Cut),
            Err(_) => Err(Halt::Failed),
            Ok(()) => Ok(()),
        }
    }

    /// Wait until all stages have ended; where one fails, the calls of the others are broken off.
    fn wait_for_stages(&self, helper_group: &HelperGroup) {
        while helper_group.remaining() > 0 && !helper_group.is_halted() {
            park_timeout(NAG);
        }
        if helper_group.remaining() == 0 {
            return;
        }
        self.thread_state
            .each_mate(|mate| mate.thread_state.raise(CUT));
        self.wait_for_helpers(helper_group);
        self.thread_state
            .each_mate(|mate| mate.thread_state.lower(CUT));
        // Somebody else may have told the user so meanwhile, and with it them.
        self.thread_state.raise(self.thread_state.flags() & CUT);
    }

    fn wait_for_helpers(&self, helper_group: &HelperGroup) {
        while helper_group.remaining() > 0 {
            if helper_group.is_halted() {
                self.thread_state
                    .each_mate(|mate| interrupt(&mate.thread_state, &mate.thread));
            }
            park_timeout(NAG);
        }
    }

    /// Close what is open and remove the files of the performance: not timed.
    fn clean_up(&self, given: &Given) {
        for file in given.performance.slots.drain() {
            // The program ended with it open: its result was never asked for.
            let _closed = self
                .thread_state
                .show(Op::Close, Place::NOWHERE, || close(file));
        }
        if given.keeps_files {
            return;
        }
        let site = Site {
            folder: given.folder.file.as_fd(),
            names: &given.performance.names,
            replay_program: &given.performance.replay_program,
            thread_state: &self.thread_state,
        };
        if let Err((errno, path)) = self.remove_files(&site) {
            let path = String::from_utf8_lossy(&path).into_owned();
            let message = format!("files of a performance stay: {path}: {errno}");
            self.setting.warn(self.thread_state.user, message);
        }
    }

    /// Remove the files of a performance, as far as they are there.
    fn remove_files(&self, site: &Site<'_>) -> Result<(), Fault> {
        let begin_ns = now_ns();
        let thread_state = &self.thread_state;
        let is_over = || {
            let is_late = thread_state.is_cut() && since_ns(begin_ns) > TIDYING_NS;
            is_late || thread_state.flags() & ABANDONED != 0
        };
        remove(site, &is_over)
    }
}

/// What the thread of this lane does for the transaction under way.
fn duty(lane: usize, (target, folder): (u16, &Arc<Folder>), journal: &Journal) -> Duty {
    Duty {
        lane,
        target,
        folder: Arc::clone(folder),
        transaction: journal.transaction(),
        began: journal.began(),
    }
}

/// Says that the lane of the user's own thread has ended, whatever ended it.
struct OwnLane<'a>(&'a Performance);

impl Drop for OwnLane<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.halt();
        }
        self.0.leave_own();
    }
}

impl Drop for LaneThreads {
    fn drop(&mut self) {
        // All of them are told first that there are no more tasks.
        let threads: Vec<_> = self.helpers.drain(..).map(|helper| helper.thread).collect();
        for thread in threads {
            // It can only have ended by a panic of its own, which has been shown already.
            let _ended = thread.join();
        }
    }
}
