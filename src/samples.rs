//! Sample data for tests that need more than the domain: those of `domain/samples.rs`, and what surrounds an actor.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::actors::models::Models;
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::adapters::llm::rehearsal::Rehearsal;
use crate::adapters::store::memory::MemoryStore;
use crate::adapters::system::SystemClock;
use crate::domain::id::Seq;
pub(crate) use crate::domain::samples::*;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::OutboxRecord;
use crate::ports::rng::Rng;
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

/// The entry of the outbox for Aria's reply to the first message.
pub(crate) fn outbox_record(trigger: Trigger) -> OutboxRecord {
    OutboxRecord::new("aria".into(), trigger, vec![Seq(1)], Seq(1))
}

/// A channel of the guild `home`.
pub(crate) fn channel_key(channel: &str) -> ChannelKey {
    ChannelKey::new(&"home".into(), &channel.into())
}

/// The room `lobby` of the guild `home`.
pub(crate) fn lobby() -> ChannelKey {
    channel_key("console:lobby")
}

/// Chance that draws no jitter, the same fraction each time, and ids from 1 on.
pub(crate) struct Draws {
    fraction: f64,
    ids: AtomicU64,
    panics: AtomicU64,
}

impl Draws {
    pub(crate) const fn of(fraction: f64) -> Self {
        Self { fraction, ids: AtomicU64::new(0), panics: AtomicU64::new(0) }
    }

    /// This many of the next draws of a jitter panic.
    pub(crate) fn panics(&self, draws: u64) {
        self.panics.store(draws, Ordering::Relaxed);
    }
}

impl Default for Draws {
    fn default() -> Self {
        Self::of(0.5)
    }
}

impl Rng for Draws {
    fn jitter(&self) -> i8 {
        assert!(!take_one(&self.panics), "as the test planned");
        0
    }

    fn fraction(&self) -> f64 {
        self.fraction
    }

    fn id(&self) -> u128 {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

/// Takes one if any is left.
pub(crate) fn take_one(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}
