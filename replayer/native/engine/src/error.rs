//! Every way the engine can refuse. Python sees one exception for each.

use rustix::io::Errno;

/// What the engine refuses.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum Error {
    /// An argument breaks the contract: `ValueError`.
    #[error("{0}")]
    Value(String),
    /// The same, with what to do about it: a `ValueError` of two arguments.
    #[error("{message}")]
    Hinted { message: String, hint: &'static str },
    /// The call does not fit the state: `RuntimeError`.
    #[error("{0}")]
    State(String),
    /// The kernel refused: `OSError` with errno and path.
    #[error("{path}: {errno}")]
    Os { errno: Errno, path: String },
}

/// What may be refused.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn os(errno: Errno, path: impl Into<String>) -> Error {
        Error::Os {
            errno,
            path: path.into(),
        }
    }

    pub(crate) fn value(message: impl Into<String>) -> Error {
        Error::Value(message.into())
    }

    pub(crate) fn hinted(message: impl Into<String>, hint: &'static str) -> Error {
        Error::Hinted {
            message: message.into(),
            hint,
        }
    }

    pub(crate) fn state(message: impl Into<String>) -> Error {
        Error::State(message.into())
    }
}

/// The errno of a standard I/O error (EIO when it has none).
pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
