//! Why nothing can be recorded.

use aya::programs::ProgramError;
use std::path::PathBuf;

const NO_EBPF: &str = "eBPF cannot be used";
/// The first version that has all that the probe needs.
const FIRST: (u32, u32) = (5, 14);

/// What went wrong, in words a user can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// This machine has what no program of this user may use, or nothing to use.
    #[error("{reason}")]
    Unusable {
        /// What is missing.
        reason: String,
        /// What would be needed.
        need: String,
    },
    /// The kernel does not accept the probe, though it has all that the probe needs: a defect of the probe.
    #[error("{reason}")]
    Rejected {
        /// The kernel's or its verifier's words.
        reason: String,
        /// What would be needed.
        need: String,
    },
    /// The file of the recording cannot be written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The recorder was ended already.
    #[error("the recording has ended")]
    Ended,
}

impl RecorderError {
    /// What would be needed, or an empty string.
    #[must_use]
    pub fn need(&self) -> &str {
        match self {
            Self::Unusable { need, .. } | Self::Rejected { need, .. } => need,
            Self::File { .. } | Self::Ended => "",
        }
    }

    pub(crate) fn unusable(reason: impl Into<String>, need: impl Into<String>) -> Self {
        Self::Unusable {
            reason: reason.into(),
            need: need.into(),
        }
    }

    /// Say why a program was not loaded.
    pub(crate) fn not_loaded(program: &str, error: &ProgramError) -> Self {
        let ProgramError::LoadError { verifier_log, .. } = error else {
            return Self::refused(NO_EBPF, error);
        };
        Self::of_verifier(program, &verifier_log.to_string(), &release())
            .unwrap_or_else(|| Self::refused(NO_EBPF, error))
    }

    /// What the verifier said of a program; nothing if it was not asked, or if this machine is the reason.
    fn of_verifier(program: &str, log: &str, release: &str) -> Option<Self> {
        let said = last_words(log)?;
        if !is_supported(release) || is_withheld(said) {
            return None;
        }
        let reason = format!("{NO_EBPF}: the verifier refuses the program {program}: {said}");
        Some(Self::rejected(reason, release))
    }

    fn rejected(reason: String, release: &str) -> Self {
        let need = format!("a probe that Linux {release} accepts: please report it");
        Self::Rejected { reason, need }
    }

    /// Say why the kernel refused a step.
    pub(crate) fn refused(step: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut causes = vec![error.to_string()];
        let mut next = error.source();
        let mut number = None;
        while let Some(cause) = next {
            let io = cause.downcast_ref::<std::io::Error>();
            number = number.or(io.and_then(std::io::Error::raw_os_error));
            causes.push(cause.to_string());
            next = cause.source();
        }
        let last = causes
            .last()
            .map(|cause| cause.lines().next().unwrap_or_default().to_owned());
        let reason = format!("{step}: {}", last.unwrap_or_default());
        Self::by_number(reason, number, &release())
    }

    /// Of what the kernel says by a number, tell whether this machine or the probe is to be changed.
    fn by_number(reason: String, number: Option<i32>, release: &str) -> Self {
        let need = match number {
            Some(libc::EPERM | libc::EACCES) => {
                "the capabilities CAP_BPF and CAP_PERFMON (root has them; in a container: --cap-add BPF --cap-add PERFMON --pid host), \
                 and a kernel that is not locked down for confidentiality".to_owned()
            }
            Some(libc::ENOMEM | libc::E2BIG) => {
                "more memory for its ring: a higher limit of the control group, or of locked memory (ulimit -l)".to_owned()
            }
            Some(libc::ENOSYS) => "a kernel with CONFIG_BPF_SYSCALL".to_owned(),
            _ if is_supported(release) => return Self::rejected(reason, release),
            _ => format!("Linux {}.{} or later with BTF, for x86-64 (this is Linux {release})", FIRST.0, FIRST.1),
        };
        Self::unusable(reason, need)
    }
}

/// The version of this kernel.
fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease");
    text.unwrap_or_default().trim().to_owned()
}

fn is_supported(release: &str) -> bool {
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= FIRST
}

/// What the verifier ends with, before it counts its work; nothing if it was not asked.
fn last_words(log: &str) -> Option<&str> {
    let counts = [
        "processed ",
        "insns processed ",
        "stack depth ",
        "verification time ",
    ];
    let mut said = log
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !counts.iter().any(|count| line.starts_with(count)));
    said.next_back()
}

/// Whether a helper is missing that a kernel which is locked down for confidentiality gives to nobody.
fn is_withheld(said: &str) -> bool {
    said.contains("bpf_probe_read_kernel")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the program cannot be loaded")]
    struct Refusal(#[source] std::io::Error);

    #[test]
    fn what_the_kernel_refuses_is_said_in_one_line_with_what_is_needed() {
        let cases = [
            (Some(libc::EPERM), "6.1.0", "CAP_BPF and CAP_PERFMON", true),
            (
                Some(libc::ENOMEM),
                "6.1.0",
                "more memory for its ring",
                true,
            ),
            (
                Some(libc::EINVAL),
                "5.10.0-32-cloud",
                "Linux 5.14 or later with BTF, for x86-64 (this is Linux 5.10.0",
                true,
            ),
            (
                Some(libc::EINVAL),
                "5.14.0-1",
                "a probe that Linux 5.14.0-1 accepts",
                false,
            ),
            (
                None,
                "6.18.44-fc",
                "a probe that Linux 6.18.44-fc accepts",
                false,
            ),
        ];
        for (number, release, need, is_of_the_machine) in cases {
            let error = RecorderError::by_number("a reason".to_owned(), number, release);
            assert_eq!(error.to_string(), "a reason");
            assert!(error.need().contains(need), "{}", error.need());
            assert_eq!(
                matches!(error, RecorderError::Unusable { .. }),
                is_of_the_machine
            );
        }
        let refusal = Refusal(std::io::Error::from_raw_os_error(libc::EPERM));
        let said = RecorderError::refused(NO_EBPF, &refusal).to_string();
        assert!(said.starts_with("eBPF cannot be used: Operation not permitted"));
        assert!(!said.contains('\n'));
    }

    #[test]
    fn what_the_verifier_refuses_is_a_defect_of_the_probe() {
        let log = "0: R1=ctx()\nR1 invalid mem access 'scalar'\nverification time 9 usec\nstack depth 152+0\nprocessed 9 insns (limit 1000000)\n";
        let of = |log, release| RecorderError::of_verifier("on_enter", log, release);
        let error = of(log, "6.1.0").unwrap();
        let said = "eBPF cannot be used: the verifier refuses the program on_enter: R1 invalid mem access 'scalar'";
        assert_eq!(error.to_string(), said);
        assert!(matches!(error, RecorderError::Rejected { .. }));
        // Without the capability, nobody asks it; a kernel that is locked down keeps a helper back.
        let locked = "program of this type cannot use helper bpf_probe_read_kernel#113\n";
        for (log, release) in [("", "6.1.0"), (locked, "6.1.0"), (log, "5.10.0")] {
            assert!(of(log, release).is_none(), "{log}");
        }
    }
}
