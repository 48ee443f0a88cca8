//! Sample data for tests that need more than the domain: those of `domain/samples.rs`, and what surrounds an actor.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::actors::models::Models;
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::adapters::llm::rehearsal::Rehearsal;
use crate::adapters::store::memory::MemoryStore;
use crate::adapters::system::SystemClock;
pub(crate) use crate::domain::samples::*;
pub(crate) use crate::journal::samples::*;
pub(crate) use crate::ports::samples::*;
use crate::server::speech::built_in;
pub(crate) use crate::settings::samples::*;
use crate::telemetry::recorder::Recorder;

/// A context whose actors were not started, with the built-in models and without companions.
pub(crate) fn context() -> ActorContext {
    let settings = Arc::new(defaults().clone());
    let model = || Arc::new(Rehearsal::new(&settings.models.rehearsal));
    ActorContext::new(Environment {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock),
        rng: Arc::new(Draws::default()),
        models: Models::new(model(), model()),
        speech: built_in(),
        recorder: Recorder::silent(),
        settings: settings.clone(),
        companions: BTreeMap::new(),
    })
}
