//! The engine as its callers see it: users, queues, the end; its segments have a file of their own.

mod segments;

pub use segments::Course;

use crate::clock::{self, epoch_ns, now_ns};
use crate::core::{Confinement, Core, OutcomeData, TransactionData};
use crate::error::{Error, Result, errno_of};
use crate::interactive::{self, Inbox, Order};
use crate::interpreter::Setting;
use crate::layout::{Bound, Task, read_back};
use crate::lock::hold;
use crate::options::Options;
use crate::pace::Turn;
use crate::plan::{Command, parse_command};
use crate::program::Program;
use crate::record::event::StuckData;
use crate::record::{IntervalData, Recorder, RowData};
use crate::sandbox::RunFolder;
use crate::sys::{Doorbell, Folder, can_jail, file_limit_raised, install_wake_signal};
use crate::thread_state::{CUT, STOP, ThreadState};
use crate::user;
use crate::user_threads::Refusal;
use crate::verify::Verification;
use crate::watch::Watcher;
use crossbeam_queue::ArrayQueue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// After breaking off, a call that still does not return is given up on.
const PATIENCE: Duration = Duration::from_secs(2);
/// At most so many stuck ops are listed.
const STUCK: usize = 100;
/// The transaction of interactive ops outside of any.
const OUTSIDE: &str = "-";

/// The users of one plan on one or more targets: native threads, recorded natively.
pub struct Engine {
    core: Arc<Core>,
    begin_epoch_ns: u64,
    stuck_after_ns: u64,
    turn: Turn,
    watcher: Watcher,
    inboxes: Mutex<HashMap<u32, Arc<Inbox>>>,
    tickets: AtomicU64,
    closed: AtomicBool,
}

/// How path calls are kept inside the run's folder in this process: `jailed` or `guarded`.
#[must_use]
pub fn confinement() -> &'static str {
    match confined() {
        Confinement::Jailed => "jailed",
        Confinement::Guarded | Confinement::Null => "guarded",
    }
}

fn confined() -> Confinement {
    let forced = std::env::var_os("REPLAYER_CONFINEMENT").is_some_and(|value| value == "guarded");
    if !forced && can_jail() {
        Confinement::Jailed
    } else {
        Confinement::Guarded
    }
}

impl Engine {
    /// Make an engine for a plan: one list of mount points for each target.
    ///
    /// # Errors
    /// The options do not fit, or the kernel refuses.
    pub fn open(
        program: Arc<Program>,
        targets: &[Vec<&RunFolder>],
        options: &Options,
    ) -> Result<Engine> {
        let folders = |mounts: &Vec<&RunFolder>| {
            let folders = mounts.iter().map(|mount| Arc::clone(&mount.folder));
            folders.collect()
        };
        Engine::new(program, targets.iter().map(folders).collect(), options)
    }

    fn new(
        program: Arc<Program>,
        targets: Vec<Vec<Arc<Folder>>>,
        options: &Options,
    ) -> Result<Engine> {
        options.check(&targets)?;
        let read_bytes = program.replays.needs()?.read_bytes.max(program.read_bytes);
        file_limit_raised();
        clock::prepare();
        install_wake_signal();
        let doorbell = Doorbell::new().map_err(|errno| Error::os(errno, "eventfd"))?;
        let doorbell = Arc::new(doorbell);
        let (begin_ns, begin_epoch_ns) = (now_ns(), epoch_ns());
        let users = Arc::new(OnceLock::new());
        let config = options.recorder_config(
            &program,
            targets.len(),
            (begin_ns, begin_epoch_ns),
            (&doorbell, &users),
        );
        let record = options.record.as_deref().unwrap_or("the recorder");
        let recorder = Recorder::start(config).map_err(|error| os(record, &error))?;
        let setting = Setting {
            verification: Verification::of(&program, targets.len()).map(Arc::new),
            event_log: options.event_log()?,
            ..Setting::new(program, recorder, begin_ns, read_bytes)?
        };
        let confinement = if options.null {
            Confinement::Null
        } else {
            confined()
        };
        let core = Core::new(setting, targets, confinement, doorbell);
        let core = Arc::new(core.abreast(options.abreast));
        // The only value it is ever given.
        let _first = users.set(Arc::downgrade(&core));
        let watcher =
            Watcher::start(&core, options.stuck_after_ns).map_err(|error| os("watcher", &error))?;
        Ok(Engine {
            core,
            begin_epoch_ns,
            stuck_after_ns: options.stuck_after_ns,
            turn: options.turn,
            watcher,
            inboxes: Mutex::default(),
            tickets: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// A descriptor that can be read when something waits to be drained.
    #[must_use]
    pub fn doorbell(&self) -> i32 {
        self.core.doorbell.descriptor()
    }

    /// How many users run.
    #[must_use]
    pub fn running_users(&self) -> usize {
        self.core.user_threads.running()
    }

    /// How many users are within a transaction.
    #[must_use]
    pub fn busy_users(&self) -> usize {
        self.core.user_threads.busy()
    }

    /// Whether finished transactions are kept to be drained.
    pub fn watch_transactions(&self, watched: bool) {
        self.core.watched.store(watched, Ordering::Relaxed);
    }

    /// Take the users that take no further part.
    #[must_use]
    pub fn drain_finished(&self) -> Vec<u32> {
        self.core.drain_finished()
    }

    /// How long users' threads waited for a CPU.
    #[must_use]
    pub fn run_queue_delay_ns(&self) -> u64 {
        self.core.setting.run_queue.delay_ns()
    }

    /// When it began, on the wall clock.
    #[must_use]
    pub fn begin_epoch_ns(&self) -> u64 {
        self.begin_epoch_ns
    }

    /// Nanoseconds since it began.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.core.since_begin(now_ns())
    }

    fn recorder(&self) -> &Recorder {
        &self.core.setting.recorder
    }

    fn check_target(&self, target: u16) -> Result<()> {
        let targets = self.core.targets.len();
        if usize::from(target) >= targets {
            return Err(Error::value(format!(
                "target must be below {targets}, got {target}"
            )));
        }
        Ok(())
    }

    /// Start a user in the open segment.
    ///
    /// # Errors
    /// It runs already, or no thread can be had.
    pub fn start_user(&self, user: u32) -> Result<()> {
        let started = user::start(&self.core, user)
            .map_err(|error| os(&format!("thread of user {user}"), &error))?;
        started.map_err(|refusal| refused(user, refusal))
    }

    /// Have a user end after its transaction.
    pub fn tell_stop(&self, user: u32) {
        self.core.user_threads.tell(user, STOP);
    }

    /// Have a user end now, within its transaction.
    pub fn tell_cancel(&self, user: u32) {
        self.core.user_threads.tell(user, STOP | CUT);
    }

    /// Have all users end now.
    pub fn interrupt(&self) {
        self.core.user_threads.tell_all(STOP | CUT);
    }

    /// Ops in the kernel for longer than the limit, longest first.
    #[must_use]
    pub fn stuck(&self) -> Vec<StuckData> {
        let now_ns = now_ns();
        let thread_states = self.core.user_threads.threads();
        let mut stuck: Vec<StuckData> = thread_states
            .iter()
            .filter_map(|thread_state| Some((thread_state, thread_state.doing()?)))
            .filter(|(_, doing)| now_ns.saturating_sub(doing.since_ns) > self.stuck_after_ns)
            .map(|(thread_state, doing)| self.core.stuck(thread_state, doing, now_ns))
            .collect();
        stuck.sort_by_key(|stuck| std::cmp::Reverse(stuck.age_ns));
        stuck.truncate(STUCK);
        stuck
    }

    /// Take the finished transactions, and how many there was no room for.
    pub fn drain_transactions(&self) -> (Vec<TransactionData>, u64) {
        self.core.doorbell.answer();
        let drained = drained(&self.core.transactions);
        (drained, self.core.dropped.swap(0, Ordering::Relaxed))
    }

    /// Take the answers to commands of interactive users.
    pub fn drain_outcomes(&self) -> Vec<OutcomeData> {
        self.core.doorbell.answer();
        drained(&self.core.outcomes)
    }

    /// Start a user that takes commands.
    ///
    /// # Errors
    /// It runs already, or the target is none.
    pub fn start_interactive(&self, user: u32, target: u16) -> Result<()> {
        self.check_target(target)?;
        if self.core.setting.verification.is_some() {
            return Err(Error::state(
                "the plan has 'verify', which interactive users do not support",
            ));
        }
        let outside = self.transaction_id(OUTSIDE)?;
        let inbox = Arc::new(Inbox::new(target, outside));
        let started = interactive::start(&self.core, user, &inbox);
        let started = started.map_err(|error| os(&format!("thread of user {user}"), &error))?;
        started.map_err(|refusal| refused(user, refusal))?;
        hold(&self.inboxes).insert(user, inbox);
        Ok(())
    }

    fn transaction_id(&self, name: &str) -> Result<u16> {
        let number = self.recorder().transaction_id(name);
        number.ok_or_else(|| {
            Error::value(format!(
                "must have at most 256 names of transactions, {name:?} is one more"
            ))
        })
    }

    /// Give a command to an interactive user, and return its ticket.
    ///
    /// # Errors
    /// It cannot be read, or too many wait.
    pub fn submit(&self, user: u32, command: &[u8]) -> Result<u64> {
        let setting = &self.core.setting;
        let (written, read) = (setting.written.len(), setting.scratch.bytes());
        let order = match parse_command(command, written, read)? {
            Command::Begin(name) => Order::Begin {
                transaction: self.transaction_id(&name)?,
                name: Arc::from(name),
            },
            Command::End { name, failed } => Order::End {
                transaction: self.transaction_id(&name)?,
                failed,
            },
            Command::Call { timed, texts } => Order::Call { timed, texts },
        };
        let inbox = hold(&self.inboxes).get(&user).cloned();
        let inbox = inbox.ok_or_else(|| Error::state(format!("user {user} is not interactive")))?;
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        if !inbox.push(ticket, order) {
            return Err(Error::state(format!(
                "1024 commands of user {user} wait already"
            )));
        }
        self.core.user_threads.wake(user);
        Ok(ticket)
    }

    /// Time in calls of all users, those that have ended too.
    #[must_use]
    pub fn in_call_ns(&self) -> u64 {
        self.sum(&self.core.in_call_ns, ThreadState::in_call_ns)
    }

    fn sum(&self, ended_ns: &AtomicU64, of_user: impl Fn(&ThreadState) -> u64) -> u64 {
        let ended_ns = ended_ns.load(Ordering::Relaxed);
        let users = self.core.user_threads.thread_states();
        let running = users.iter().map(|thread_state| of_user(thread_state));
        running.fold(ended_ns, u64::saturating_add)
    }

    /// Time in which users worked for replays outside of calls, those that have ended too.
    #[must_use]
    pub fn outside_ns(&self) -> u64 {
        self.sum(&self.core.outside_ns, ThreadState::outside_ns)
    }

    /// Take the intervals that are complete.
    pub fn drain_intervals(&self) -> Vec<IntervalData> {
        self.core.doorbell.answer();
        self.recorder().drain_intervals()
    }

    /// What was recorded in all.
    #[must_use]
    pub fn totals(&self) -> Vec<RowData> {
        self.recorder().totals()
    }

    /// What replays found, as JSON.
    #[must_use]
    pub fn divergences(&self) -> String {
        self.core.setting.ledger.json(&self.core.names)
    }

    /// What verifying found, as JSON; `None`: nothing is verified.
    #[must_use]
    pub fn verification(&self) -> Option<String> {
        let verification = self.core.setting.verification.as_ref();
        verification.map(|found| found.json())
    }

    /// Start reading back what users wrote on a target.
    ///
    /// # Errors
    /// Nothing is verified, or the target is none.
    pub fn read_back(&self, target: u16, bound: Bound) -> Result<Task> {
        self.check_target(target)?;
        let verification = self.core.setting.verification.as_ref();
        let verification =
            verification.ok_or_else(|| Error::state("the plan does not ask for 'verify'"))?;
        let folders = self.core.targets.get(usize::from(target));
        let folders = folders.cloned().unwrap_or_default();
        let first = folders.first().map(|folder| folder.file.try_clone());
        let first = first.ok_or_else(|| Error::state("the target has no folder"))?;
        let first = first.map_err(|error| os("the run's folder", &error))?;
        Ok(read_back(first, folders, verification, target, bound))
    }

    /// The first write of the recording that failed.
    #[must_use]
    pub fn record_error(&self) -> Option<(&'static str, i32)> {
        self.recorder().write_error()
    }

    /// End all users and the recording; what is still in the kernel is returned.
    pub fn close(&self) -> Vec<StuckData> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return Vec::new();
        }
        let given_up = self.core.user_threads.close(PATIENCE);
        let stuck = self.report(given_up);
        self.watcher.end();
        self.recorder().close();
        stuck
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// What waits now: others may go on to add.
fn drained<T>(queue: &ArrayQueue<T>) -> Vec<T> {
    let each = std::iter::from_fn(|| queue.pop());
    each.take(queue.len()).collect()
}

fn os(what: &str, error: &std::io::Error) -> Error {
    Error::os(errno_of(error), what)
}

fn refused(user: u32, refusal: Refusal) -> Error {
    Error::state(match refusal {
        Refusal::Running => format!("user {user} is already running"),
        Refusal::GivenUp => {
            format!("user {user} was abandoned: its thread is still in the kernel")
        }
        Refusal::Closed => "the engine is closed".to_owned(),
    })
}
