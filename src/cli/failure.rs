//! The reason why a command failed, and its exit code.

use std::fmt;
use std::process::ExitCode;

use crate::adapters::store::backup::CopyError;
use crate::cli::{EXIT_STORE, EXIT_USAGE, visible};
use crate::ports::backend::Refused;
use crate::server::Ended;

#[derive(Debug)]
pub enum Failure {
    /// The options or settings are wrong.
    Usage(String),
    /// The store cannot be used.
    Store(String),
    /// Anything else.
    Failed(String),
}

impl Failure {
    /// Prints the failure to standard error, and returns the exit code.
    pub fn report(self) -> ExitCode {
        eprintln!("tertulia: {}", visible::paragraph(&self.to_string()));
        let code = match self {
            Self::Usage(_) => EXIT_USAGE,
            Self::Store(_) => EXIT_STORE,
            Self::Failed(_) => 1,
        };
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(detail) | Self::Store(detail) | Self::Failed(detail)) = self;
        f.write_str(detail)
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Store(_) | CopyError::Open(_) => Self::Store(error.to_string()),
            CopyError::Among { .. } => Self::Usage(error.to_string()),
            CopyError::Exists(_)
            | CopyError::Occupied(_)
            | CopyError::Unwritten { .. }
            | CopyError::Unusable { .. }
            | CopyError::Io { .. } => Self::Failed(error.to_string()),
        }
    }
}

impl From<Ended> for Failure {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Store(_) => Self::Store(ended.to_string()),
            Ended::Settings(_) | Ended::Discord(_) | Ended::Companions(_) => Self::Usage(ended.to_string()),
            Ended::Failed(_) => Self::Failed(ended.to_string()),
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Invalid { .. } => Self::Usage(refused.to_string()),
            Refused::Damaged(detail) => Self::Store(detail.to_string()),
            _ => Self::Failed(refused.to_string()),
        }
    }
}
