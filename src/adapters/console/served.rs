//! What the console serves: the core, or for a while only the reason why it cannot.

use std::sync::Arc;
use std::time::Duration;

use super::Common;
use crate::ports::backend::keeping::{Readiness, ReadyPart};
use crate::ports::backend::{Backend, Refused};
use crate::ports::companion_setup::CompanionSetup;
use crate::ports::model_setup::ModelSetup;

/// The time after which a client should try again while the store is closed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// What the console serves.
pub enum Served {
    /// The core.
    Core { backend: Backend, models: Arc<dyn ModelSetup>, companions: Arc<dyn CompanionSetup> },
    /// Nothing: the store is closed. The function tells what happens to it, and how far that is.
    Closed(Box<dyn Fn() -> String + Send + Sync>),
}

impl Common {
    pub(super) fn backend(&self) -> Result<&Backend, Refused> {
        match &self.served {
            Served::Core { backend, .. } => Ok(backend),
            Served::Closed(progress) => Err(closed(&progress())),
        }
    }

    pub(super) fn models(&self) -> Result<&dyn ModelSetup, Refused> {
        match &self.served {
            Served::Core { models, .. } => Ok(&**models),
            Served::Closed(progress) => Err(closed(&progress())),
        }
    }

    pub(super) fn companions(&self) -> Result<&dyn CompanionSetup, Refused> {
        match &self.served {
            Served::Core { companions, .. } => Ok(&**companions),
            Served::Closed(progress) => Err(closed(&progress())),
        }
    }

    pub(super) async fn readiness(&self) -> Readiness {
        match &self.served {
            Served::Core { backend, .. } => backend.maintenance.readiness().await,
            Served::Closed(progress) => {
                let store = ReadyPart { part: "store".into(), ready: false, detail: progress(), ..ReadyPart::default() };
                Readiness { ready: false, parts: vec![store], models: None }
            }
        }
    }
}

fn closed(progress: &str) -> Refused {
    Refused::Unavailable { detail: format!("the store is {progress}"), retry_after: Some(RETRY_AFTER) }
}
