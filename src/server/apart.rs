//! The system without its doors: store, models and actors, for whoever measures them from within.

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
use crate::actors::service::ActorBackend;
use crate::actors::service::rooms::load_rooms;
use crate::adapters::store::sled::{SledStore, disk_bytes, disk_free};
use crate::settings::Loaded;
use crate::telemetry::Telemetry;

/// A system at work, without console and platforms.
pub struct Apart {
    /// What its actors work with.
    pub context: ActorContext,
    backend: ActorBackend,
    inbound: Inbound,
    root: ActorRef<RootMessage>,
    tree: tokio::task::JoinHandle<()>,
}

impl Apart {
    /// Opens the store in this folder and starts the actors on it, with these models instead of those of the settings. The rooms of the
    /// settings are not made.
    ///
    /// # Errors
    /// The store cannot be used, or the actors cannot be started.
    pub async fn start(loaded: Loaded, models: Models, data: &Path, telemetry: &Telemetry) -> Result<Self, Ended> {
        let store: Arc<SledStore> = open(data, &opening(telemetry, false))?;
        let (used, free) = (data.to_path_buf(), data.to_path_buf());
        telemetry.metrics().observe_disk(move || disk_bytes(&used).ok(), move || disk_free(&free).ok());
        let (failed, _) = watch::channel(None);
        let context = context(loaded, models, telemetry.recorder(), store.clone(), failed, Arc::default());
        let begun = async {
            let (root, tree) = Actor::spawn(None, Root, context.clone()).await.context("the actors cannot be started")?;
            load_rooms(&context, &[]).await.context("the rooms cannot be set up")?;
            root.cast(RootMessage::WakePending).context("the actors are gone")?;
            anyhow::Ok((root, tree))
        };
        let (root, tree) = begun.await.map_err(Ended::Failed)?;
        Ok(Self {
            backend: ActorBackend::new(context.clone(), store),
            inbound: Inbound::new(context.clone()),
            context,
            root,
            tree,
        })
    }

    /// What the console asks.
    pub const fn backend(&self) -> &ActorBackend {
        &self.backend
    }

    /// Where messages come in.
    pub const fn inbound(&self) -> &Inbound {
        &self.inbound
    }

    /// Stops the actors; what is owed stays on record.
    pub async fn stop(self) {
        self.root.stop(None);
        // However it ended, it has.
        let _ = self.tree.await;
    }
}
