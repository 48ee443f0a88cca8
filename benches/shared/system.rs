//! A whole system for benchmarks, with a model that answers at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tertulia::actors::models::Models;
use tertulia::actors::runtime::context::{ActorContext, Environment};
use tertulia::adapters::system::{SystemClock, SystemRng};
use tertulia::ports::backend::Backend;
use tertulia::ports::backend::room::RoomId;
use tertulia::ports::language_model::{Answer, Draft, Identity, LanguageModel, NoAnswer, Request, TokenUsage};
use tertulia::ports::store::Store;
use tertulia::server::speech::built_in;
use tertulia::settings::Settings;
use tertulia::settings::companion::{Companion, CompanionFile};
use tertulia::telemetry::recorder::Recorder;
use tokio::sync::mpsc;

/// Answers NO at once.
struct Instantly(Identity);

#[async_trait]
impl LanguageModel for Instantly {
    async fn ask(&self, _: &Request, _: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let text = "Not mine.\nNO".to_owned();
        Ok(Answer::of_text(text, TokenUsage::default()))
    }

    fn identity(&self) -> &Identity {
        &self.0
    }
}

/// The actor context with Aria, the model, and no limits on addresses.
pub fn context(store: Arc<dyn Store>, recorder: Recorder) -> anyhow::Result<ActorContext> {
    // The load would exceed the default budgets.
    context_with(&["aria".to_owned()], json!({ "gate": { "addresses_per_minute": 1_000_000 } }), store, recorder)
}

/// The actor context with companions of these ids, the default settings with these overrides, and a model that answers NO at once.
pub fn context_with(
    ids: &[String],
    generous: serde_json::Value,
    store: Arc<dyn Store>,
    recorder: Recorder,
) -> anyhow::Result<ActorContext> {
    let settings = Arc::new(Settings::overlay(generous).map_err(|problems| anyhow::anyhow!("{problems}"))?);
    let model: Arc<dyn LanguageModel> =
        Arc::new(Instantly(Identity { provider: "bench".into(), model: "instant".into(), endpoint: "bench".into() }));
    let mut cast = BTreeMap::new();
    for id in ids {
        let file: CompanionFile = serde_json::from_value(json!({ "id": id }))?;
        let companion = Companion::from_file(file, None, &settings.companion_defaults);
        let companion = companion.map_err(|_| anyhow::anyhow!("{id} cannot be made"))?;
        cast.insert(companion.id.clone(), companion);
    }
    Ok(ActorContext {
        store_failed: Arc::new(|detail| eprintln!("the store failed: {detail}")),
        ..ActorContext::new(Environment {
            store,
            clock: Arc::new(SystemClock),
            rng: Arc::new(SystemRng),
            models: Models::new(model.clone(), model),
            speech: built_in(),
            recorder,
            settings,
            companions: cast,
        })
    })
}

/// Parses a room's id.
pub fn room(id: &str) -> RoomId {
    RoomId::parse(id).expect("a room's name")
}

/// Sends a message from Ana.
pub async fn say(backend: &Backend, id: &str, text: &str) -> anyhow::Result<()> {
    let message = serde_json::from_value(json!({ "from": "Ana", "text": text }))?;
    backend.messages.say(&room(id), message).await?;
    Ok(())
}

/// A quantile in milliseconds.
pub fn millis(sorted: &[std::time::Duration], part: f64) -> f64 {
    let index = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(index.saturating_sub(1)).map_or(f64::NAN, |span| span.as_secs_f64() * 1e3)
}
