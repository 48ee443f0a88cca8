//! A whole system for benchmarks, with a model that answers at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tertulia::actors::models::Models;
use tertulia::actors::runtime::context::{ActorContext, Environment};
use tertulia::actors::service::ActorBackend;
use tertulia::adapters::system::{SystemClock, SystemRng};
use tertulia::ports::backend::Backend;
use tertulia::ports::backend::room::RoomId;
use tertulia::ports::language_model::{Answer, Draft, Identity, LanguageModel, NoAnswer, Request, Usage};
use tertulia::ports::store::Store;
use tertulia::settings::Settings;
use tertulia::settings::companion::{Companion, CompanionFile};
use tertulia::telemetry::recorder::Recorder;
use tokio::sync::mpsc;

/// Says NO, at once.
struct Instantly(Identity);

#[async_trait]
impl LanguageModel for Instantly {
    async fn ask(&self, _: &Request, _: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let text = "Not mine.\nNO".to_owned();
        Ok(Answer::of_text(text, Usage::default()))
    }

    fn identity(&self) -> &Identity {
        &self.0
    }
}

/// What the actors work with: Aria, no limits to how often she is addressed, and the model.
pub fn context(store: Arc<dyn Store>, recorder: Recorder) -> anyhow::Result<ActorContext> {
    // Who talks so much would be over budget.
    kit_of(&["aria".to_owned()], json!({ "gate": { "addresses_per_minute": 1_000_000 } }), store, recorder)
}

/// What the actors work with: companions of these ids, the default settings but for these, and a model that says NO at once.
pub fn kit_of(
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
            recorder,
            settings,
            companions: cast,
        })
    })
}

/// A room's id.
pub fn room(id: &str) -> RoomId {
    RoomId::parse(id).expect("a room's name")
}

/// Has Ana say something.
pub async fn say(backend: &ActorBackend, id: &str, text: &str) -> anyhow::Result<()> {
    let message = serde_json::from_value(json!({ "from": "Ana", "text": text }))?;
    backend.say(&room(id), message).await?;
    Ok(())
}

/// The value below which so great a part lies, in milliseconds.
pub fn millis(sorted: &[std::time::Duration], part: f64) -> f64 {
    let index = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(index.saturating_sub(1)).map_or(f64::NAN, |span| span.as_secs_f64() * 1e3)
}
