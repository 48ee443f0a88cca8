//! The state of the server behind the console: the core, or the reason why the core is not available.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::Common;
use crate::ports::backend::keeping::{Readiness, ReadyPart};
use crate::ports::backend::{Backend, Detail, Refused};
use crate::ports::companion_setup::CompanionSetup;
use crate::ports::model_setup::ModelSetup;
use crate::ports::nodes::{Nodes, NodesView};
use crate::ports::settings_setup::SettingsSetup;
use crate::ports::tools::Tools;

/// The time after which a client should try again while the store is closed.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The time after which a client should try again while no node runs the channels, or another one does.
const TAKEN_OVER_AFTER: Duration = Duration::from_secs(2);

/// The state of the server behind the console.
pub enum Served {
    /// The core is running.
    Core {
        backend: Box<Backend>,
        models: Arc<dyn ModelSetup>,
        settings: Arc<dyn SettingsSetup>,
        companions: Arc<dyn CompanionSetup>,
        nodes: Arc<dyn Nodes>,
        tools: Arc<dyn Tools>,
    },
    /// The core is not running, because another node owns the store.
    StandingBy(Arc<dyn Nodes>),
    /// The core is not running, because the store is closed. The function returns the current operation on the store, and its
    /// progress.
    Closed(Box<dyn Fn() -> String + Send + Sync>),
}

/// Parts of the core, each with the reason if the core is not running.
macro_rules! parts_of_core {
    ($($part:ident: $Part:ty),+) => {
        impl Common {
            $(pub(super) fn $part(&self) -> Result<&$Part, Refused> {
                match &self.served {
                    Served::Core { $part, .. } => Ok(&**$part),
                    Served::Closed(progress) => Err(closed(&progress())),
                    Served::StandingBy(nodes) => Err(standing_by(&nodes.nodes())),
                }
            })+
        }
    };
}

parts_of_core! {
    backend: Backend,
    models: dyn ModelSetup,
    settings: dyn SettingsSetup,
    companions: dyn CompanionSetup,
    tools: dyn Tools
}

impl Common {
    /// The nodes that share the store.
    ///
    /// # Errors
    /// Returns an error while the store is closed.
    pub(super) fn nodes(&self) -> Result<NodesView, Refused> {
        match &self.served {
            Served::Core { nodes, .. } | Served::StandingBy(nodes) => Ok(nodes.nodes()),
            Served::Closed(progress) => Err(closed(&progress())),
        }
    }

    /// The nodes, if this node is a standby; otherwise `None`.
    pub(super) fn stands_by(&self) -> Option<NodesView> {
        if let Served::StandingBy(nodes) = &self.served { Some(nodes.nodes()) } else { None }
    }

    pub(super) async fn readiness(&self) -> Readiness {
        match &self.served {
            Served::Core { backend, .. } => backend.maintenance.readiness().await,
            Served::Closed(progress) => {
                let store = ReadyPart { part: "store".into(), ready: false, detail: progress(), ..ReadyPart::default() };
                Readiness { parts: vec![store], ..Readiness::default() }
            }
            Served::StandingBy(nodes) => {
                let nodes = nodes.nodes();
                let store = ReadyPart { part: "store".into(), ready: false, detail: who_owns(&nodes), ..ReadyPart::default() };
                let active = nodes.active().and_then(|partition| partition.address.clone());
                Readiness { parts: vec![store], stands_by: nodes.active().is_some(), active, ..Readiness::default() }
            }
        }
    }
}

fn standing_by(nodes: &NodesView) -> Refused {
    let detail = Detail::from(format!("this node stands by: {}", who_owns(nodes))).coded("refusals.stands_by", json!({}));
    Refused::Unavailable { detail, retry_after: Some(TAKEN_OVER_AFTER) }
}

/// A sentence that names the owner of the store.
fn who_owns(nodes: &NodesView) -> String {
    if let Some(problem) = &nodes.problem {
        return format!("the database cannot be reached ({problem})");
    }
    match nodes.active().map(|partition| (partition.owner.as_deref().unwrap_or_default(), partition.address.as_deref())) {
        Some((owner, Some(address))) => {
            format!("node {owner} runs the channels; go to {address}, with commands by --server {address}")
        }
        Some((owner, None)) => format!("node {owner} runs the channels; it has no cluster.address"),
        None => "no node runs the channels at the moment".to_owned(),
    }
}

fn closed(progress: &str) -> Refused {
    let detail = Detail::from(format!("the store is {progress}")).coded("refusals.store_closed", json!({}));
    Refused::Unavailable { detail, retry_after: Some(RETRY_AFTER) }
}
