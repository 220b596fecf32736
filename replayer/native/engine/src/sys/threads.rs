//! The threads of users: their root, their signals, their name for the kernel.
#![expect(
    unsafe_code,
    reason = "unshare, sigaction, tgkill and prctl have no safe form"
)]

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use std::os::fd::BorrowedFd;
use std::sync::Once;

/// Give this thread a root, working directory and umask of its own (umask 0); false when that is not permitted.
pub(crate) fn own_folder_state() -> bool {
    // SAFETY: CLONE_FS concerns root, working directory and umask only; no memory or descriptor changes hands.
    let unshared = unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) };
    if unshared.is_ok() {
        rustix::process::umask(Mode::empty());
    }
    unshared.is_ok()
}

/// Make a folder the root and working directory of this thread, which must own its folder state.
pub(crate) fn enter_jail(folder: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::process::fchdir(folder)?;
    rustix::process::chroot(c".")?;
    rustix::process::chdir(c"/")
}

/// Whether threads can be jailed, tried on a thread that ends at once.
pub(crate) fn can_jail() -> bool {
    let trial = std::thread::Builder::new()
        .spawn(|| own_folder_state() && rustix::process::chroot(c"/").is_ok());
    trial.is_ok_and(|thread| thread.join().unwrap_or(false))
}

fn wake_signal() -> libc::c_int {
    libc::SIGRTMIN() + 7
}

extern "C" fn ignore_signal(_: libc::c_int) {}

/// Install the handler whose only effect is that a waiting call returns EINTR.
pub(crate) fn install_wake_signal() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: an all-zero sigaction is valid: no flags (thus no SA_RESTART), an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int) = ignore_signal;
        action.sa_sigaction = handler as usize;
        // SAFETY: a valid handler that does nothing, for a signal that only this engine uses.
        let installed =
            unsafe { libc::sigaction(wake_signal(), &raw const action, std::ptr::null_mut()) };
        debug_assert_eq!(installed, 0);
    });
}

/// Interrupt the call that a thread of this process is in.
pub(crate) fn wake_thread(thread: i32) {
    let process = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: no memory is involved; a thread that has ended is answered with ESRCH.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, wake_signal()) };
}

/// The kernel's number of this thread.
pub(crate) fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Leave every signal but ours (and those of faults) to other threads, and wake from sleeps on time.
pub(crate) fn prepare_thread() {
    // SAFETY: `set` is initialised by sigfillset before it is read; the mask is this thread's own.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        for open in [
            wake_signal(),
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGABRT,
        ] {
            libc::sigdelset(&raw mut set, open);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64);
    }
}
