//! The system without console and platforms: store, models and actors, for benchmarks that measure it in their own process.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use ractor::{Actor, ActorRef};
use tokio::sync::watch;

use super::{Ended, context, open, opening};
use crate::actors::inbound::Inbound;
use crate::actors::models::Models;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::root::{Root, RootMessage};
use crate::actors::service;
use crate::actors::service::loading::load_rooms;
use crate::adapters::store::sled::{SledStore, disk_bytes, disk_free};
use crate::ports::backend::Backend;
use crate::settings::Loaded;
use crate::telemetry::Telemetry;

/// A running system without console and platforms.
pub struct Apart {
    /// The context of its actors.
    pub context: ActorContext,
    backend: Backend,
    inbound: Inbound,
    root: ActorRef<RootMessage>,
    tree: tokio::task::JoinHandle<()>,
}

impl Apart {
    /// Opens the store in this folder and starts the actors, with these models instead of those of the settings. The rooms of the settings
    /// are not created.
    ///
    /// # Errors
    /// The store cannot be used, or the actors cannot be started.
    pub async fn start(loaded: Loaded, models: Models, data: &Path, telemetry: &Telemetry) -> Result<Self, Ended> {
        let store: Arc<SledStore> = open(data, &opening(telemetry, false))?;
        let (used, free) = (data.to_path_buf(), data.to_path_buf());
        telemetry.metrics().observe_disk(move || disk_bytes(&used).ok(), move || disk_free(&free).ok());
        let (failed, _) = watch::channel(None);
        let context = context(loaded, models, telemetry.recorder(), store.clone(), failed, Arc::default())?;
        let started = async {
            let (root, tree) = Actor::spawn(None, Root, context.clone()).await.context("the actors cannot be started")?;
            load_rooms(&context, &[]).await.context("the rooms cannot be set up")?;
            root.cast(RootMessage::WakePending).context("the actors have stopped")?;
            anyhow::Ok((root, tree))
        };
        let (root, tree) = started.await.map_err(Ended::Failed)?;
        Ok(Self {
            backend: service::backend(context.clone(), store),
            inbound: Inbound::new(context.clone()),
            context,
            root,
            tree,
        })
    }

    pub const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Receives inbound messages.
    pub const fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// Stops the actors. Pending replies stay on record.
    pub async fn stop(self) {
        self.root.stop(None);
        // The way in which the task ended does not matter.
        let _ = self.tree.await;
    }
}
