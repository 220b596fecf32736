//! Whether an event ended as it was recorded. Pure: what is different and why that may be so, nothing is counted here.

use crate::ops::{Flag, OK, Op, outcome_name, outcome_of_errno};
use crate::replay::program::Recorded;
use crate::sys::Answer;
use rustix::io::Errno;

/// Why a result may differ from the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Allowance {
    /// A signal broke the recorded call off.
    Interrupted,
    /// File systems return the entries of a directory in batches of their own.
    ListingBatches,
    /// Positions within directories and of holes are the file system's own.
    SeekPosition,
    /// What the file system supports, and its own figures.
    FileSystem,
    /// The recorded user was not allowed to; root is.
    RootPermitted,
    /// The recorded user was not allowed to change something, which is not tried: its name is looked up.
    Denied,
    /// An NFS client renamed a file that was removed while it was open.
    NfsNames,
}

impl Allowance {
    pub(crate) const NAMES: [&'static str; 7] = [
        "interrupted",
        "listing-batches",
        "seek-position",
        "file-system",
        "root-permitted",
        "denied",
        "nfs-names",
    ];
}

/// What was got where it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Got {
    Outcome(u8),
    /// It went well, with a smaller number than recorded.
    Less,
    More,
}

impl Got {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Got::Outcome(outcome) => outcome_name(outcome),
            Got::Less => "less",
            Got::More => "more",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Matched,
    /// The log does not say what it returned.
    Unknown,
    Allowed(Allowance),
    Diverged(Got),
}

/// What is known of an event beside its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) op: Op,
    pub(crate) recorded: Recorded,
    /// `SEEK_DATA`, `SEEK_HOLE`, or a directory's descriptor.
    pub(crate) seeks_freely: bool,
    pub(crate) path: &'a [u8],
}

/// Judge an answer that is not plainly the recorded one.
#[cold]
pub(crate) fn judge(facts: Facts<'_>, answer: Answer) -> Verdict {
    let got = match (answer, facts.recorded) {
        (_, Recorded::Unknown) => return Verdict::Unknown,
        (Ok(_), Recorded::Well) => return Verdict::Matched,
        (Ok(got), Recorded::Exactly(recorded)) if got == recorded => return Verdict::Matched,
        (Err(errno), Recorded::Error(recorded) | Recorded::Denied(recorded))
            if errno.raw_os_error() == recorded =>
        {
            return Verdict::Matched;
        }
        (Ok(got), Recorded::Exactly(recorded)) if got < recorded => Got::Less,
        (Ok(_), Recorded::Exactly(_)) => Got::More,
        (Ok(_), Recorded::Error(_) | Recorded::Denied(_)) => Got::Outcome(OK),
        (Err(errno), _) => Got::Outcome(outcome_of_errno(errno.raw_os_error())),
    };
    match allowance(facts, answer) {
        Some(allowance) => Verdict::Allowed(allowance),
        None => Verdict::Diverged(got),
    }
}

fn allowance(facts: Facts<'_>, answer: Answer) -> Option<Allowance> {
    let recorded = match facts.recorded {
        Recorded::Denied(_) => return is_found_out(answer).then_some(Allowance::Denied),
        Recorded::Error(errno) => Some(Errno::from_raw_os_error(errno)),
        _ => None,
    };
    if recorded == Some(Errno::INTR) {
        return Some(Allowance::Interrupted);
    }
    if facts.op == Op::Lseek && facts.seeks_freely {
        return Some(Allowance::SeekPosition);
    }
    if depends_on_file_system(facts.op, recorded, answer) {
        return Some(Allowance::FileSystem);
    }
    let forbidden = matches!(recorded, Some(Errno::ACCESS | Errno::PERM));
    if forbidden && answer.is_ok() && rustix::process::geteuid().is_root() {
        return Some(Allowance::RootPermitted);
    }
    let mut names = facts.path.split(|byte| *byte == b'/');
    names
        .any(|name| name.starts_with(b".nfs"))
        .then_some(Allowance::NfsNames)
}

/// Whether a look-up tells what there is at a name: that may be nothing, for what was denied may have been the making of it.
fn is_found_out(answer: Answer) -> bool {
    matches!(
        answer,
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM)
    )
}

fn depends_on_file_system(op: Op, recorded: Option<Errno>, answer: Answer) -> bool {
    let says_so = |errno: Errno| {
        matches!(
            errno,
            Errno::OPNOTSUPP | Errno::NODATA | Errno::NOTTY | Errno::NOSYS
        )
    };
    let of_call = |errno: Errno| says_so(errno) || matches!(errno, Errno::INVAL | Errno::XDEV);
    let either = |check: &dyn Fn(Errno) -> bool| {
        recorded.is_some_and(check) || answer.err().is_some_and(check)
    };
    match op {
        Op::Statfs | Op::Fstatfs => true,
        _ if op.is(Flag::xattr) => either(&says_so),
        _ if op.is(Flag::optional) => either(&of_call),
        // Flags of a call that the file system does not have (preadv2(2)).
        Op::Readv | Op::Preadv | Op::Writev | Op::Pwritev => {
            either(&|errno| errno == Errno::OPNOTSUPP)
        }
        // Files that cannot be mapped at all, or not with MAP_SYNC (mmap(2)).
        Op::Mmap => either(&|errno| says_so(errno) || errno == Errno::NODEV),
        _ => false,
    }
}

/// The name of what was recorded.
pub(crate) fn recorded_outcome(recorded: Recorded) -> u8 {
    match recorded {
        Recorded::Error(errno) | Recorded::Denied(errno) => outcome_of_errno(errno),
        Recorded::Exactly(_) | Recorded::Well | Recorded::Unknown => OK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(op: Op, recorded: Recorded, answer: Answer) -> Verdict {
        let facts = Facts {
            op,
            recorded,
            seeks_freely: false,
            path: b"t/a",
        };
        judge(facts, answer)
    }

    #[test]
    fn what_agrees_matches_and_what_differs_says_how() {
        let enoent = Recorded::Error(2);
        assert_eq!(
            verdict(Op::Stat, enoent, Err(Errno::NOENT)),
            Verdict::Matched
        );
        assert_eq!(
            verdict(Op::Read, Recorded::Exactly(5), Ok(5)),
            Verdict::Matched
        );
        assert_eq!(
            verdict(Op::Read, Recorded::Unknown, Err(Errno::IO)),
            Verdict::Unknown
        );
        assert_eq!(
            verdict(Op::Read, Recorded::Exactly(5), Ok(4)),
            Verdict::Diverged(Got::Less)
        );
        assert_eq!(
            verdict(Op::Stat, enoent, Ok(0)),
            Verdict::Diverged(Got::Outcome(OK))
        );
        assert_eq!(
            verdict(Op::Stat, Recorded::Well, Err(Errno::NOENT)),
            Verdict::Diverged(Got::Outcome(2))
        );
    }

    #[test]
    fn allowed_differences_have_names() {
        let allowed = |op, recorded, answer| match verdict(op, recorded, answer) {
            Verdict::Allowed(allowance) => Allowance::NAMES[allowance as usize],
            other => panic!("{other:?}"),
        };
        assert_eq!(allowed(Op::Flock, Recorded::Error(4), Ok(0)), "interrupted");
        assert_eq!(
            allowed(Op::Getxattr, Recorded::Exactly(8), Err(Errno::NODATA)),
            "file-system"
        );
        for op in [Op::Mmap, Op::Preadv] {
            assert_eq!(allowed(op, Recorded::Error(95), Ok(0)), "file-system");
        }
        assert_eq!(
            allowed(Op::Statfs, Recorded::Well, Err(Errno::ACCESS)),
            "file-system"
        );
        if rustix::process::geteuid().is_root() {
            assert_eq!(
                allowed(Op::Open, Recorded::Error(13), Ok(0)),
                "root-permitted"
            );
        }
        for answer in [Ok(0), Err(Errno::NOENT)] {
            assert_eq!(allowed(Op::Lstat, Recorded::Denied(13), answer), "denied");
        }
        let facts = Facts {
            op: Op::Unlink,
            recorded: Recorded::Well,
            seeks_freely: false,
            path: b"t/.nfs00a1",
        };
        let names = Verdict::Allowed(Allowance::NfsNames);
        assert_eq!(judge(facts, Err(Errno::NOENT)), names);
    }
}
