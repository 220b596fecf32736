//! Why nothing can be recorded.

use std::path::PathBuf;

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
            Self::Unusable { need, .. } => need,
            Self::File { .. } | Self::Ended => "",
        }
    }

    pub(crate) fn unusable(reason: impl Into<String>, need: impl Into<String>) -> Self {
        Self::Unusable {
            reason: reason.into(),
            need: need.into(),
        }
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
        let own = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let need = match number {
            Some(libc::EPERM | libc::EACCES) => {
                "the capabilities CAP_BPF and CAP_PERFMON (root has them; in a container: --cap-add BPF --cap-add PERFMON --pid host), \
                 and a kernel that is not locked down for confidentiality".to_owned()
            }
            Some(libc::ENOMEM | libc::E2BIG) => {
                "more memory for its ring: a higher limit of the control group, or of locked memory (ulimit -l)".to_owned()
            }
            _ => format!("Linux 5.14 or later with BTF, for x86-64 (this is Linux {})", own.trim()),
        };
        let last = causes
            .last()
            .map(|cause| cause.lines().next().unwrap_or_default().to_owned());
        Self::unusable(format!("{step}: {}", last.unwrap_or_default()), need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the program cannot be loaded")]
    struct Refusal(#[source] std::io::Error);

    #[test]
    fn what_the_kernel_refuses_is_said_in_one_line_with_what_is_needed() {
        let cases = [
            (
                libc::EPERM,
                "Operation not permitted",
                "CAP_BPF and CAP_PERFMON",
            ),
            (
                libc::ENOMEM,
                "Cannot allocate memory",
                "more memory for its ring",
            ),
            (
                libc::EINVAL,
                "Invalid argument",
                "Linux 5.14 or later with BTF, for x86-64 (this is Linux ",
            ),
        ];
        for (number, reason, need) in cases {
            let refusal = Refusal(std::io::Error::from_raw_os_error(number));
            let error = RecorderError::refused("eBPF cannot be used", &refusal);
            let said = error.to_string();
            assert!(
                said.starts_with(&format!("eBPF cannot be used: {reason}")),
                "{said}"
            );
            assert!(!said.contains('\n'));
            assert!(error.need().contains(need), "{}", error.need());
        }
    }
}
