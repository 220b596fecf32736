//! Every way the trace room can refuse.

use std::path::PathBuf;

/// What to do about a damaged trace.
const IMPORT_AGAIN: &str = "the trace is damaged: import or copy it again";

/// What went wrong, in words a user can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The kernel refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was touched.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The user asked for something that cannot be meant.
    #[error("{message}")]
    Asked {
        /// Thing, value and bound.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// A file is not what it should be.
    #[error("{}: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// What to do next.
        hint: String,
    },
    /// The Parquet library refused.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: parquet::errors::ParquetError,
    },
    /// Somebody asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// For those who refuse in words.
impl From<TraceError> for String {
    fn from(error: TraceError) -> Self {
        error.to_string()
    }
}

impl TraceError {
    /// What to do next, or an empty string.
    #[must_use]
    pub fn hint(&self) -> &str {
        match self {
            Self::Asked { hint, .. } | Self::Damaged { hint, .. } => hint,
            Self::Parquet { .. } => IMPORT_AGAIN,
            Self::Io { .. } | Self::Interrupted => "",
        }
    }

    /// Refuse what a user asked for.
    pub(crate) fn asked(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Asked {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Say that a file is not what it should be.
    pub(crate) fn damaged(
        path: impl Into<PathBuf>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Damaged {
            path: path.into(),
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Say what is wrong with a file of a trace folder.
    pub(crate) fn broken(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::damaged(path, message, IMPORT_AGAIN)
    }

    /// Put a path beside what the kernel said.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        // The name is made where it is needed: this stands beside every line that is read.
        move |source| Self::Io {
            path: path.into(),
            source,
        }
    }

    /// Put a path beside what the Parquet library said.
    pub(crate) fn parquet(
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        move |source| Self::Parquet {
            path: path.into(),
            source,
        }
    }
}
