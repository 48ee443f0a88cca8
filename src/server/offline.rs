//! A backend in which nobody lives: what commands about stored data ask while no server runs.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ractor::Actor;

use super::{CACHE_BYTES, Ended, OPEN_DEADLINE, not_moved_in, open};
use crate::actors::erasure::retention::{self, Passed};
use crate::actors::models::Models;
use crate::actors::runtime::actor_keys::WriterKey;
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::actors::service::ActorBackend;
use crate::actors::service::rooms::load_rooms;
use crate::actors::writer::{self, Writer};
use crate::adapters::llm::rehearsal::Rehearsal;
use crate::adapters::store::sled::{OpenOptions, SledStore};
use crate::adapters::system::{SystemClock, SystemRng};
use crate::domain::id::GuildId;
use crate::domain::moment::Moment;
use crate::ports::backend::{Backend, Refused};
use crate::ports::rng::Rng as _;
use crate::settings::Loaded;
use crate::telemetry::instruments::Instruments;
use crate::telemetry::recorder::Recorder;

/// How a store is opened by a command: what is missing is never passed over.
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

/// Opens the store and asks the backend of it. Of the actors only the writer is there: what is written is on record as ever, nobody is woken
/// by it, and no model is asked; channels learn of it when a server starts.
///
/// # Errors
/// [`Ended::Store`] when the store cannot be opened; [`Ended::Failed`] when the backend cannot be made.
pub fn ask<T>(loaded: Loaded, question: impl AsyncFnOnce(&dyn Backend) -> T) -> Result<T, Ended> {
    inhabit(loaded, async |backend, _| question(backend).await)
}

/// What is deleted for its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// What the settings keep no longer.
    AsSet,
    /// What is older than this.
    Over(Duration),
    /// Everything, however young it is, and whatever the clock says.
    Any,
}

/// Deletes what has this age; in one guild, or in all.
///
/// # Errors
/// As for [`ask`]; [`Refused::NotFound`] if there is no such guild.
pub fn expire(loaded: Loaded, guild: Option<GuildId>, age: Age) -> Result<Result<Passed, Refused>, Ended> {
    inhabit(loaded, async |backend, context| {
        if let Some(guild) = &guild {
            backend.check_guild(guild).await?;
        }
        let now = context.clock.now();
        let kept_from = |asked: &GuildId| match (&guild, age) {
            (Some(guild), _) if guild != asked => None,
            (_, Age::AsSet) => retention::kept_from(context, asked),
            (_, Age::Over(span)) => Some(Moment::from_micros(now.as_micros().saturating_sub(span.as_micros() as u64))),
            (_, Age::Any) => Some(Moment::from_micros(u64::MAX)),
        };
        Ok(retention::pass_older(context, &kept_from).await)
    })
}

fn inhabit<T>(loaded: Loaded, work: impl AsyncFnOnce(&ActorBackend, &ActorContext) -> T) -> Result<T, Ended> {
    let store = open(&loaded.settings.storage.path, &open_options())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be made")
        .map_err(Ended::Failed)?;
    runtime.block_on(answer(loaded, store, work))
}

async fn answer<T>(
    loaded: Loaded,
    store: Arc<SledStore>,
    work: impl AsyncFnOnce(&ActorBackend, &ActorContext) -> T,
) -> Result<T, Ended> {
    let context = context(loaded, store.clone());
    let (writer, ended) = Actor::spawn(None, Writer, writer_arguments(&context))
        .await
        .map_err(|error| Ended::Failed(anyhow::anyhow!("the writer cannot be started: {error}")))?;
    let registration = context.directory.register(&WriterKey(), &writer);
    // No room of the settings is made here: what was never stored is not there.
    load_rooms(&context, &[]).await.map_err(|error| not_moved_in(error, "the rooms cannot be read"))?;
    let backend = ActorBackend::new(context.clone(), store);
    let outcome = work(&backend, &context).await;
    drop((backend, context, registration));
    writer.stop(None);
    // A writer that failed has said so; what it accepted is stored either way.
    let _ = ended.await;
    Ok(outcome)
}

fn context(loaded: Loaded, store: Arc<SledStore>) -> ActorContext {
    let Loaded { settings, companions, .. } = loaded;
    // Nobody asks it; keys of real models need not be readable for this.
    let model = || Arc::new(Rehearsal::new(&settings.models.rehearsal));
    let models = Models::new(model(), model());
    ActorContext::new(Environment {
        store,
        clock: Arc::new(SystemClock),
        rng: Arc::new(SystemRng),
        models,
        recorder: Recorder::silent(),
        settings: Arc::new(settings),
        companions,
    })
}

fn writer_arguments(context: &ActorContext) -> writer::Arguments {
    let failed = context.store_failed.clone();
    writer::Arguments {
        platforms: context.platforms.clone(),
        store: context.store.clone(),
        clock: context.clock.clone(),
        hub: context.hub.clone(),
        instruments: context.recorder.instruments().clone(),
        deliver: Arc::new(|_, _, _, _| {}),
        report: Arc::new(move |writer::Fate::StoreFailed(detail)| failed(detail)),
        bounds: writer::Bounds::default(),
    }
}
