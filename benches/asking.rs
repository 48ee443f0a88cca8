//! Measures the time until a companion that is addressed is asked, while another companion of the room writes: from the message until the question
//! arrives at the side model. Beside it the same while nobody writes.
//!
//! `cargo bench --bench asking -- [ROOMS] [sled]`. The default is 200 rooms, one after the other, with a store in memory. `sled` uses a sled store in a
//! temporary folder. The writer never finishes. A question that is not asked within two seconds is counted as late.

#[path = "shared/system.rs"]
#[expect(dead_code, reason = "this benchmark needs companions of its own")]
mod system;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ractor::Actor;
use serde_json::json;
use system::{context_with, millis, room, say};
use tertulia::actors::models::{Models, Pool};
use tertulia::actors::runtime::actor_keys::PoolKey;
use tertulia::actors::runtime::context::ActorContext;
use tertulia::actors::runtime::root::{Root, RootMessage};
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::store::sled::{OpenOptions, SledStore};
use tertulia::backend;
use tertulia::backend::loading::load_rooms;
use tertulia::ports::backend::Backend;
use tertulia::ports::language_model::{Answer, Draft, Identity, LanguageModel, ModelRole, NoAnswer, Request, TokenUsage};
use tertulia::telemetry::instruments::Instruments;
use tertulia::telemetry::recorder::Recorder;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Longer times count as late.
const PATIENCE: Duration = Duration::from_secs(2);

/// A companion that says YES to everything, and reports when it is asked or begins to write. It writes forever.
struct Reporting {
    identity: Identity,
    reports: mpsc::UnboundedSender<(ModelRole, String, Instant)>,
}

#[async_trait]
impl LanguageModel for Reporting {
    async fn ask(&self, request: &Request, _: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let companion = request.companion.as_ref().map(|companion| companion.id.to_string()).unwrap_or_default();
        let _ = self.reports.send((request.role, companion, Instant::now()));
        if request.role == ModelRole::Main {
            std::future::pending::<()>().await;
        }
        let vote = json!({ "reason": "Me.", "decision": "YES", "importance": 5, "selected": false, "closing": "none" });
        Ok(Answer::of_text(vote.to_string(), TokenUsage::default()))
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Cargo passes `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let rooms = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(200);
    let is_on_disk = arguments.iter().any(|argument| argument == "sled");
    let folder = tempfile::tempdir()?;
    println!("| what | rooms | 50 %, ms | 99 %, ms | late |\n| --- | ---: | ---: | ---: | ---: |");
    for is_writing in [false, true] {
        let (context, backend, mut reports) = if is_on_disk {
            let instruments = Instruments::noop();
            let options =
                OpenOptions { accept_loss: false, deadline: PATIENCE, cache_bytes: 16 << 20, new_id: 1, instruments, held: None };
            let store = Arc::new(SledStore::open(&folder.path().join(is_writing.to_string()), &options)?);
            let (context, reports) = reporting(context(store.clone())?);
            (context.clone(), backend::backend(context, store), reports)
        } else {
            let store = Arc::new(MemoryStore::new());
            let (context, reports) = reporting(context(store.clone())?);
            (context.clone(), backend::backend(context, store), reports)
        };
        let (root, ended) = Actor::spawn(None, Root, context.clone()).await?;
        load_rooms(&context, &[], false).await?;
        root.cast(RootMessage::WakePending)?;
        let (mut took, mut late) = (Vec::new(), 0);
        for number in 0..rooms {
            match ask(&backend, &format!("r{number}"), is_writing, &mut reports).await? {
                Some(span) => took.push(span),
                None => late += 1,
            }
        }
        took.sort_unstable();
        let what = if is_writing { "another companion writes" } else { "nobody writes" };
        println!("| {what} | {rooms} | {:.2} | {:.2} | {late} |", millis(&took, 0.5), millis(&took, 0.99));
        root.stop(None);
        ended.await?;
    }
    Ok(())
}

fn context(store: Arc<dyn tertulia::ports::store::Store>) -> anyhow::Result<ActorContext> {
    let generous = json!({ "gate": { "addresses_per_minute": 1_000_000 }, "turn_taking": { "turn_delay_secs": 0.0 } });
    context_with(&["aria".to_owned(), "ben".to_owned()], generous, store, Recorder::silent())
}

/// The context with models that report.
fn reporting(context: ActorContext) -> (ActorContext, mpsc::UnboundedReceiver<(ModelRole, String, Instant)>) {
    let (reports, received) = mpsc::unbounded_channel();
    let identity = Identity { provider: "bench".into(), model: "reporting".into(), endpoint: "bench".into() };
    let model: Arc<dyn LanguageModel> = Arc::new(Reporting { identity, reports });
    let directory = context.directory.clone();
    let pool = Pool::new(&context.settings.models, Models::new(model.clone(), model), move || directory.find(&PoolKey()));
    (ActorContext { pool, ..context }, received)
}

/// Addresses Ben in a new room, in which Aria may be writing. Returns how long it took until he was asked, if that was in time.
async fn ask(
    backend: &Backend,
    id: &str,
    is_writing: bool,
    reports: &mut mpsc::UnboundedReceiver<(ModelRole, String, Instant)>,
) -> anyhow::Result<Option<Duration>> {
    let plan = serde_json::from_value(json!({ "guild": "home", "companions": ["aria", "ben"] }))?;
    backend.rooms.put(&room(id), plan).await?;
    if is_writing {
        say(backend, id, "aria, tell us a long story").await?;
        while !matches!(timeout(PATIENCE, reports.recv()).await?, Some((ModelRole::Main, who, _)) if who == "aria") {}
    }
    let began = Instant::now();
    say(backend, id, "ben, is the oven off?!").await?;
    let asked = async {
        loop {
            match reports.recv().await {
                Some((ModelRole::Side, who, at)) if who == "ben" => return at.duration_since(began),
                _ => {}
            }
        }
    };
    let took = timeout(PATIENCE, asked).await.ok();
    // Nobody waits for what is still being written.
    backend.rooms.delete(&room(id)).await?;
    while reports.try_recv().is_ok() {}
    Ok(took)
}
