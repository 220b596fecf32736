//! Work under way on native threads: its progress, its first error, its finding, and what its threads are at: a call that hangs can be
//! named while it does.

use crate::clock;
use crate::lock::hold;
use crate::sys::{self, below};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Threads of a task at most (chosen: beyond it no server gets faster).
const MOST_THREADS: usize = 64;

/// Why a task ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its caller cancelled it.
    Cancelled,
    /// The kernel refused: the errno and the path below the run's folder.
    Os(Errno, String),
}

impl Fault {
    /// An errno at a path.
    pub(crate) fn at(path: &[u8]) -> impl Fn(Errno) -> Self + '_ {
        move |errno| Self::Os(errno, String::from_utf8_lossy(path).into_owned())
    }
}

/// What the threads of a task share with those who watch it.
#[derive(Default)]
pub(crate) struct Job {
    pub(crate) total_entries: AtomicU64,
    pub(crate) total_bytes: AtomicU64,
    done_bytes: AtomicU64,
    files: AtomicU64,
    directories: AtomicU64,
    links: AtomicU64,
    mismatches: AtomicU64,
    /// The one whose path sorts first, so that threads do not change what is said.
    first_mismatch: Mutex<Option<(Vec<u8>, String)>>,
    cancelled: AtomicBool,
    fault: Mutex<Option<Fault>>,
    failed: AtomicBool,
    posts: Posts,
}

/// What was dealt with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Done {
    File,
    Directory,
    Link,
}

impl Job {
    pub(crate) fn count(&self, done: Done) {
        let counter = match done {
            Done::File => &self.files,
            Done::Directory => &self.directories,
            Done::Link => &self.links,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_bytes(&self, bytes: usize) {
        self.done_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Posts::goes_on();
    }

    /// This thread begins calls on a path below the run's folder.
    pub(crate) fn at(&self, op: &'static str, path: &[u8]) {
        self.posts.at(op, path);
    }

    /// Count something that is not as planned.
    pub(crate) fn mismatch(&self, path: &[u8], reason: &str) {
        self.mismatches.fetch_add(1, Ordering::Relaxed);
        let mut first = hold(&self.first_mismatch);
        if first
            .as_ref()
            .is_none_or(|(known, _)| path < known.as_slice())
        {
            *first = Some((path.to_vec(), reason.to_owned()));
        }
    }

    /// An error when the task was cancelled: asked between two entries.
    pub(crate) fn proceed(&self) -> Result<(), Fault> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Fault::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Keep the first fault, and let the other threads stop.
    pub(crate) fn fail(&self, fault: Fault) {
        hold(&self.fault).get_or_insert(fault);
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn done_entries(&self) -> u64 {
        let counters = [&self.files, &self.directories, &self.links];
        counters
            .iter()
            .map(|counter| counter.load(Ordering::Relaxed))
            .sum()
    }

    fn finding(&self, begun: Instant) -> Finding {
        let first = hold(&self.first_mismatch).clone();
        Finding {
            files: self.files.load(Ordering::Relaxed),
            directories: self.directories.load(Ordering::Relaxed),
            links: self.links.load(Ordering::Relaxed),
            bytes: self.done_bytes.load(Ordering::Relaxed),
            mismatches: self.mismatches.load(Ordering::Relaxed),
            first_mismatch: first.map(|(path, reason)| {
                let path = String::from_utf8_lossy(&path);
                format!("{path}: {reason}")
            }),
            elapsed_ns: clock::ns(begun.elapsed()),
        }
    }
}

/// The threads of a task, and the folder they work in.
pub(crate) struct Crew {
    pub(crate) job: Arc<Job>,
    folder: OwnedFd,
    pub(crate) threads: usize,
    /// The umask is 0: modes given at creation are exact.
    pub(crate) exact_modes: bool,
}

impl Crew {
    /// The run's folder.
    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Do so many units of work, in any order; stops at the first fault. Each thread has a buffer of its own.
    pub(crate) fn each(
        &self,
        units: usize,
        work: impl Fn(usize, &mut Vec<u8>) -> Result<(), Fault> + Sync,
    ) -> Result<(), Fault> {
        let next = AtomicUsize::new(0);
        self.together(units, || {
            let mut buffer = Vec::new();
            while !self.job.failed() {
                let unit = next.fetch_add(1, Ordering::Relaxed);
                if unit >= units {
                    return Ok(());
                }
                self.job.proceed()?;
                work(unit, &mut buffer)?;
            }
            Ok(())
        })
    }

    /// Let every thread do this; not more of them than units of work.
    pub(crate) fn together(
        &self,
        units: usize,
        work: impl Fn() -> Result<(), Fault> + Sync,
    ) -> Result<(), Fault> {
        let turn = || {
            work().unwrap_or_else(|fault| self.job.fail(fault));
            Posts::away();
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.min(units) {
                // One thread less is no fault: this one goes on in any case.
                let _ = std::thread::Builder::new().spawn_scoped(scope, turn);
            }
            turn();
        });
        hold(&self.job.fault).clone().map_or(Ok(()), Err)
    }
}

enum Course {
    Running(JoinHandle<Result<Finding, Fault>>),
    Over(Result<Finding, Fault>),
    Broken,
}

/// Work under way on native threads: poll it, cancel it, collect its result.
pub struct Task {
    job: Arc<Job>,
    course: Mutex<Course>,
    finished: Arc<AtomicBool>,
}

impl Task {
    /// Start work in a run's folder, on a thread that leads the others.
    pub(crate) fn start(
        folder: OwnedFd,
        threads: usize,
        work: impl FnOnce(&Crew) -> Result<(), Fault> + Send + 'static,
    ) -> Self {
        let job = Arc::new(Job::default());
        let finished = Arc::new(AtomicBool::new(false));
        let ring = Ring(Arc::clone(&finished));
        let mut crew = Crew {
            job: Arc::clone(&job),
            folder,
            threads: threads.clamp(1, MOST_THREADS),
            exact_modes: false,
        };
        let lead = move || {
            let _ring = ring;
            let begun = Instant::now();
            sys::prepare_thread();
            // The threads that this one starts share its umask.
            crew.exact_modes = sys::own_folder_state();
            let base = below::path_of(crew.folder());
            crew.job.posts.below(base.clone());
            let done = work(&crew).map_err(|fault| below(base.as_deref(), fault));
            done.map(|()| crew.job.finding(begun))
        };
        let thread = std::thread::Builder::new()
            .name("layout".to_owned())
            .spawn(lead);
        let course = match thread {
            Ok(thread) => Course::Running(thread),
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
                Course::Over(Err(Fault::Os(errno, "a thread".to_owned())))
            }
        };
        Self {
            job,
            course: Mutex::new(course),
            finished,
        }
    }

    /// Wait for the end. None when the work broke off by a bug.
    #[must_use]
    pub fn wait(&self) -> Option<Result<Finding, Fault>> {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        *course = match std::mem::replace(&mut *course, Course::Broken) {
            Course::Running(thread) => thread.join().map_or(Course::Broken, Course::Over),
            over => over,
        };
        match &*course {
            Course::Over(result) => Some(result.clone()),
            _ => None,
        }
    }
}

/// Says that the work is over, however it ended.
struct Ring(Arc<AtomicBool>);

impl Drop for Ring {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Give the path of a fault as a person sees it.
fn below(base: Option<&str>, fault: Fault) -> Fault {
    match (base, fault) {
        (Some(base), Fault::Os(errno, path)) if path.is_empty() => {
            Fault::Os(errno, base.to_owned())
        }
        (Some(base), Fault::Os(errno, path)) => Fault::Os(errno, format!("{base}/{path}")),
        (_, fault) => fault,
    }
}

impl Task {
    /// Entries that were dealt with.
    #[must_use]
    pub fn done_entries(&self) -> u64 {
        self.job.done_entries()
    }

    /// Entries that there are.
    #[must_use]
    pub fn total_entries(&self) -> u64 {
        self.job.total_entries.load(Ordering::Relaxed)
    }

    /// Bytes that were dealt with.
    #[must_use]
    pub fn done_bytes(&self) -> u64 {
        self.job.done_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that there are.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.job.total_bytes.load(Ordering::Relaxed)
    }

    /// Whether the work is over.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Stop soon, between two entries.
    pub fn cancel(&self) {
        self.job.cancelled.store(true, Ordering::Relaxed);
    }

    /// Calls in the kernel for longer than a limit, longest first: op, path, age in nanoseconds.
    #[must_use]
    pub fn stuck(&self, after_ns: u64) -> Vec<(&'static str, String, u64)> {
        self.job.posts.hanging(after_ns)
    }
}

/// The result of a task: what was done, and what did not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Finding {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    pub mismatches: u64,
    pub first_mismatch: Option<String>,
    pub elapsed_ns: u64,
}

/// A call under way.
struct Doing {
    op: &'static str,
    path: Vec<u8>,
    since: Instant,
}

type Post = Arc<Mutex<Option<Doing>>>;

thread_local! {
    /// A thread works for one task only.
    static POST: OnceCell<Post> = const { OnceCell::new() };
}

/// One post for each thread of a task.
#[derive(Default)]
pub(crate) struct Posts {
    posts: Mutex<Vec<Post>>,
    base: OnceLock<String>,
}

impl Posts {
    /// The run's folder, as a person sees it.
    pub(crate) fn below(&self, base: Option<String>) {
        if let Some(base) = base {
            // The only value it is ever given.
            let _first = self.base.set(base);
        }
    }

    pub(crate) fn at(&self, op: &'static str, path: &[u8]) {
        let doing = Doing {
            op,
            path: path.to_vec(),
            since: Instant::now(),
        };
        POST.with(|post| {
            let post = post.get_or_init(|| self.new_post());
            *hold(post) = Some(doing);
        });
    }

    fn new_post(&self) -> Post {
        let post = Post::default();
        hold(&self.posts).push(Arc::clone(&post));
        post
    }

    /// A call of this thread has returned; another one on the same path begins.
    pub(crate) fn goes_on() {
        POST.with(|post| {
            if let Some(post) = post.get() {
                hold(post)
                    .iter_mut()
                    .for_each(|doing| doing.since = Instant::now());
            }
        });
    }

    /// This thread makes no calls for now.
    pub(crate) fn away() {
        POST.with(|post| {
            if let Some(post) = post.get() {
                *hold(post) = None;
            }
        });
    }

    /// Calls under way for longer than a limit, longest first: op, path, age in nanoseconds.
    pub(crate) fn hanging(&self, after_ns: u64) -> Vec<(&'static str, String, u64)> {
        let posts = hold(&self.posts).clone();
        let mut hanging: Vec<_> = posts
            .iter()
            .filter_map(|post| hold(post).as_ref().map(|doing| self.seen(doing)))
            .filter(|&(.., age_ns)| age_ns > after_ns)
            .collect();
        hanging.sort_by_key(|&(.., age_ns)| std::cmp::Reverse(age_ns));
        hanging
    }

    fn seen(&self, doing: &Doing) -> (&'static str, String, u64) {
        let base = self.base.get().map_or("", String::as_str);
        let path = String::from_utf8_lossy(&doing.path);
        let path = if path.is_empty() {
            base.to_owned()
        } else {
            format!("{base}/{path}")
        };
        (doing.op, path, clock::ns(doing.since.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_while_it_lasts_and_forgotten_when_it_is_over() {
        let posts = Posts::default();
        posts.below(Some("/mnt/replayer-x".to_owned()));
        posts.at("create", b"files/a");
        let hanging = posts.hanging(0);
        assert_eq!(hanging.len(), 1);
        assert_eq!(
            (hanging[0].0, &*hanging[0].1),
            ("create", "/mnt/replayer-x/files/a")
        );
        assert!(posts.hanging(u64::MAX).is_empty());
        posts.at("unlink", b"");
        assert_eq!(posts.hanging(0)[0].1, "/mnt/replayer-x");
        Posts::away();
        assert!(posts.hanging(0).is_empty());
    }

    #[test]
    fn the_longest_comes_first() {
        let posts = Posts::default();
        posts.at("create", b"old");
        std::thread::scope(|scope| {
            scope.spawn(|| posts.at("create", b"new"));
        });
        let paths: Vec<_> = posts.hanging(0).into_iter().map(|hang| hang.1).collect();
        assert_eq!(paths, ["/old", "/new"]);
        Posts::goes_on();
        let paths: Vec<_> = posts.hanging(0).into_iter().map(|hang| hang.1).collect();
        assert_eq!(paths, ["/new", "/old"]);
    }
}
