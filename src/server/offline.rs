//! A backend without running channels, for commands on stored data while no server runs.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ractor::Actor;
use rustix::process::geteuid;

use super::open_store::{OpenStore, open};
use super::reload::overlay;
use super::{CACHE_BYTES, Ended, OPEN_DEADLINE, cannot_load_rooms, speech};
use crate::actors::erasure::retention::{self, PassReport};
use crate::actors::models::Models;
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::actors::writer::{Arguments, Bounds, Writer};
use crate::adapters::llm::rehearsal::Rehearsal;
use crate::adapters::store::Identity;
use crate::adapters::store::sled::OpenOptions;
use crate::adapters::system::{SystemClock, SystemRng};
use crate::backend;
use crate::backend::loading::load_rooms;
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::ports::backend::{Backend, Refused};
use crate::ports::rng::Rng as _;
use crate::ports::store::Store;
use crate::settings::storage::Storage;
use crate::settings::{self, Loaded, Overlay};
use crate::telemetry::instruments::Instruments;
use crate::telemetry::recorder::Recorder;

/// The options with which commands open a store. Missing records are never accepted.
pub fn open_options() -> OpenOptions {
    OpenOptions {
        accept_loss: false,
        deadline: OPEN_DEADLINE,
        cache_bytes: CACHE_BYTES,
        new_id: SystemRng.id(),
        instruments: Instruments::noop(),
        held: None,
    }
}

/// Opens the store and runs a query on its backend. The writer is the only running actor. Writes are journaled as usual, but start no channel and
/// call no model. Channels see them when a server starts.
///
/// # Errors
/// Returns [`Ended::Store`] if the store cannot be opened, and [`Ended::Failed`] if the backend cannot be created.
pub fn ask<T>(loaded: Loaded, query: impl AsyncFnOnce(&Backend) -> T) -> Result<T, Ended> {
    with_backend(loaded, false, async |backend, _| query(backend).await)
}

/// Like [`ask`], for a query that writes. Owns a database meanwhile.
///
/// # Errors
/// Returns the same errors as [`ask`], and an error if a running node owns the database.
pub fn ask_to_write<T>(loaded: Loaded, query: impl AsyncFnOnce(&Backend) -> T) -> Result<T, Ended> {
    with_backend(loaded, true, async |backend, _| query(backend).await)
}

/// The age of events to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// Events older than the retention in the settings.
    AsSet,
    /// Events older than this duration.
    Over(Duration),
    /// All events, independent of their age and of the clock.
    Any,
}

/// Deletes events of this age, in one guild or in all.
///
/// # Errors
/// Returns the same errors as [`ask_to_write`], and [`Refused::NotFound`] if the guild does not exist.
pub fn expire(loaded: Loaded, guild: Option<GuildId>, age: Age) -> Result<Result<PassReport, Refused>, Ended> {
    with_backend(loaded, true, async |_, context| {
        if let Some(guild) = &guild {
            backend::check_guild(context, guild).await?;
        }
        let now = context.clock.now();
        let kept_from = |asked: &GuildId| match (&guild, age) {
            (Some(guild), _) if guild != asked => None,
            (_, Age::AsSet) => retention::cutoff(context, asked),
            (_, Age::Over(span)) => Some(Moment::from_micros(now.as_micros().saturating_sub(span.as_micros() as u64))),
            (_, Age::Any) => Some(Moment::from_micros(u64::MAX)),
        };
        Ok(retention::pass_older(context, &kept_from).await)
    })
}

/// The companions in a store. `None`: the store cannot be read at present. A store of another user is not opened, because opening writes files.
pub fn kept_companions(storage: &Storage) -> Option<Overlay> {
    let is_ours = fs::metadata(&storage.path).is_ok_and(|data| data.uid() == geteuid().as_raw());
    let store = is_ours.then(|| open(storage, &open_options(), &Identity::command()).ok()).flatten()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(overlay(&*store.store())).ok()
}

fn with_backend<T>(loaded: Loaded, writes: bool, work: impl AsyncFnOnce(&Backend, &ActorContext) -> T) -> Result<T, Ended> {
    let store = open(&loaded.settings.storage, &open_options(), &Identity::command())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be created")
        .map_err(Ended::Failed)?;
    if writes {
        let refused = |owner| {
            Ended::Failed(anyhow::anyhow!("{owner}; stop it first, or let `history forget` ask it with --server ADDRESS"))
        };
        runtime.block_on(store.own()).map_err(refused)?;
    }
    runtime.block_on(run(loaded, store, work))
}

async fn run<T>(mut loaded: Loaded, store: OpenStore, work: impl AsyncFnOnce(&Backend, &ActorContext) -> T) -> Result<T, Ended> {
    // Unreadable companions are reported when a server starts.
    let kept = overlay(&*store.store())
        .await
        .map_err(|error| cannot_load_rooms(error.into(), "the companions in the store cannot be read"))?;
    loaded.companions.extend(settings::in_place(&kept, &loaded.settings).0);
    let context = context(loaded, store.store());
    let arguments = Arguments { context: context.clone(), deliver: Arc::new(|_, _, _| {}), bounds: Bounds::default() };
    let (writer, ended) = Actor::spawn(None, Writer, arguments)
        .await
        .map_err(|error| Ended::Failed(anyhow::anyhow!("the writer cannot be started: {error}")))?;
    // The rooms of the settings are not created here: only stored rooms exist.
    load_rooms(&context, &[], false).await.map_err(|error| cannot_load_rooms(error, "the rooms cannot be read"))?;
    let backend = backend::backend(context.clone(), store.maintenance());
    let outcome = work(&backend, &context).await;
    drop((backend, context));
    writer.stop(None);
    // A failed writer has reported its error. All accepted data is stored in either case.
    let _ = ended.await;
    Ok(outcome)
}

fn context(loaded: Loaded, store: Arc<dyn Store>) -> ActorContext {
    let Loaded { settings, companions, .. } = loaded;
    // The models are never called. Unlike real models, the rehearsal needs no readable keys.
    let model = || Arc::new(Rehearsal::new(&settings.models.rehearsal));
    let models = Models::new(model(), model());
    ActorContext::new(Environment {
        store,
        clock: Arc::new(SystemClock),
        rng: Arc::new(SystemRng),
        models,
        speech: speech::built_in(),
        recorder: Recorder::silent(),
        settings: Arc::new(settings),
        companions,
    })
}
