//! Work in flight: a reply, a delivery or a turn-taking manager is killed in the middle, and the statement is awaited.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tertulia::actors::membership::memberships::Memberships;
use tertulia::actors::models::{Models, Pool};
use tertulia::actors::runtime::actor_keys::{ChannelActorKey, PoolKey};
use tertulia::actors::runtime::context::ActorContext;
use tertulia::domain::id::{ChannelId, GuildId};
use tertulia::ports::backend::room::is_of_console;
use tertulia::ports::chat_platform::{Capabilities, ChatPlatform, NotRead, NotSent, Part, Platforms};
use tertulia::ports::language_model::{Answer, Draft, Identity, LanguageModel, ModelRole, NoAnswer, Request, TokenUsage};
use tertulia::settings::Settings;
use tertulia::settings::companion::{Companion, CompanionFile};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::system::{millis, room, say};
use super::{MEASURED, PATIENCE, World};

/// How long models and platforms take for the work in flight.
const TAKES: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFlight {
    /// The main model writes.
    Reply,
    /// A statement is being sent to a platform.
    Delivery,
    /// A round is open.
    Manager,
}

/// Answers YES in the measured room. Calls of the measured role take a while.
struct Slow {
    identity: Identity,
    is_slow: bool,
}

#[async_trait]
impl LanguageModel for Slow {
    async fn ask(&self, request: &Request, _: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let is_measured = request.user().contains("in hand") || request.messages[0].words().contains("in hand");
        if is_measured && self.is_slow {
            sleep(TAKES).await;
        }
        let text = match request.role {
            ModelRole::Main => "Here I am.",
            ModelRole::Side if is_measured => "Mine.\nYES",
            ModelRole::Side => "Not mine.\nNO",
        };
        let text = text.to_owned();
        Ok(Answer::of_text(text, TokenUsage::default()))
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// A slow platform in place of the console. It can look up what it posted.
struct SlowPlatform(parking_lot::Mutex<Vec<Arc<str>>>);

#[async_trait]
impl ChatPlatform for SlowPlatform {
    fn name(&self) -> &'static str {
        "console"
    }

    fn serves(&self, channel: &ChannelId) -> bool {
        is_of_console(channel)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { longest_part: 2_000, request_timeout: TAKES, typing_shows: None, is_written_here: true }
    }

    fn newest(&self, _: &ChannelId, _: &[Arc<str>]) -> Option<Arc<str>> {
        None
    }

    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent> {
        sleep(TAKES).await;
        self.0.lock().push(part.nonce.clone());
        Ok(part.nonce.clone())
    }

    async fn change(&self, _: &GuildId, _: &ChannelId, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), NotSent> {
        Ok(())
    }

    async fn find(&self, part: &Part, _: Option<&str>, _: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        let posted = self.0.lock();
        Ok(posted.iter().find(|nonce| **nonce == part.nonce).cloned())
    }

    async fn typing(&self, _: &GuildId, _: &ChannelId) {}
}

fn furnish(mut context: ActorContext, in_flight: InFlight) -> anyhow::Result<ActorContext> {
    let overlay = json!({
        "gate": { "addresses_per_minute": 1_000_000, "guild_statements_per_day": 1_000_000 },
        "turn_taking": { "turn_delay_secs": 0.0 },
        "repetition": { "enabled": false },
    });
    let settings = Arc::new(Settings::overlay(overlay).map_err(|problems| anyhow::anyhow!("{problems}"))?);
    let companion = |id: &str| -> anyhow::Result<Companion> {
        let file: CompanionFile = serde_json::from_value(json!({ "id": id }))?;
        Companion::from_file(file, None, &settings.companion_defaults).map_err(|_| anyhow::anyhow!("{id} is fine"))
    };
    let cast = ["aria", "bruno"].map(companion).into_iter().map(|known| known.map(|known| (known.id.clone(), known)));
    let cast = cast.collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    let model = |is_slow| -> Arc<dyn LanguageModel> {
        let identity = Identity { provider: "bench".into(), model: "slow".into(), endpoint: "bench".into() };
        Arc::new(Slow { identity, is_slow })
    };
    let models = Models::new(model(in_flight == InFlight::Manager), model(in_flight == InFlight::Reply));
    let found = context.directory.clone();
    context.pool = Pool::new(&settings.models, models, move || found.find(&PoolKey()));
    context.memberships = Memberships::new(
        cast,
        settings.companion_defaults.clone(),
        settings.names.common,
        BTreeSet::new(),
        context.recorder.instruments().clone(),
    );
    if in_flight == InFlight::Delivery {
        context.platforms = Platforms::default().with(Arc::new(SlowPlatform(parking_lot::Mutex::default())));
    }
    context.settings = settings;
    Ok(context)
}

impl World {
    /// Addresses Aria, kills the work in flight if it should be killed, and waits for her statement. Returns the time from then on. `None` if the
    /// machine was too busy to check while the work was in flight.
    async fn words(&mut self, text: &str, in_flight: InFlight, is_killed: bool) -> anyhow::Result<Option<Duration>> {
        let names = if in_flight == InFlight::Manager { "aria and bruno" } else { "aria" };
        say(&self.backend, MEASURED, &format!("{names}, in hand: {text}")).await?;
        let channel = self.context.directory.find(&ChannelActorKey(room(MEASURED).channel()));
        let channel = channel.ok_or_else(|| anyhow::anyhow!("the room is not awake"))?;
        let said = Instant::now();
        while channel.get_children().is_empty() {
            if said.elapsed() > 10 * TAKES {
                return Ok(None);
            }
            tokio::task::yield_now().await;
        }
        // During the work in flight the channel has only this child. Earlier work took no time.
        sleep(TAKES / 4).await;
        let Some(child) = channel.get_children().pop() else { return Ok(None) };
        let began = Instant::now();
        if is_killed {
            child.kill();
        }
        loop {
            let event = self.event().await?;
            if event["event"] == "message" && event["role"] == "companion" {
                return Ok(Some(began.elapsed()));
            }
        }
    }
}

pub(super) async fn measure(kills: usize, on_disk: bool) -> anyhow::Result<()> {
    println!(
        "\nmilliseconds until the statement is journaled, from a moment in the {} ms that writing it takes",
        TAKES.as_millis()
    );
    println!("in flight     times  not killed: 50 %   99 %      max  killed: 50 %    99 %      max  never  too late to look");
    for in_flight in [InFlight::Reply, InFlight::Delivery, InFlight::Manager] {
        let (mut left, mut killed, mut lost, mut missed) = (Vec::new(), Vec::new(), 0, 0);
        for kill in 0..kills {
            for is_killed in [false, true] {
                let companions: &[&str] = if in_flight == InFlight::Manager { &["aria", "bruno"] } else { &["aria"] };
                let mut world = World::with(on_disk, |context| furnish(context, in_flight), companions).await?;
                sleep(Duration::from_millis(20)).await;
                match timeout(PATIENCE, world.words(&kill.to_string(), in_flight, is_killed)).await {
                    Ok(took) => match took? {
                        Some(took) => if is_killed { &mut killed } else { &mut left }.push(took),
                        None => missed += 1,
                    },
                    Err(_) => lost += 1,
                }
                world.end().await;
            }
        }
        left.sort_unstable();
        killed.sort_unstable();
        let [a, b, c] = [0.5, 0.99, 1.0].map(|part| millis(&left, part));
        let [d, e, f] = [0.5, 0.99, 1.0].map(|part| millis(&killed, part));
        println!(
            "{:<12} {kills:>6} {a:>17.2} {b:>7.2} {c:>8.2} {d:>13.2} {e:>7.2} {f:>8.2} {lost:>6} {missed:>17}",
            format!("{in_flight:?}")
        );
    }
    Ok(())
}
