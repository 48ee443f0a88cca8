//! The connections on which Discord is heard: each is lived over many losses, in this process and the next.

mod asking;
mod commands;
mod connection;
mod end;
mod frame;
#[cfg(test)]
pub(super) mod fuzz;
mod inflate;
mod keeper;
mod ledger;
mod life;
mod line;
mod passing;
mod payload;
mod session;
mod starts;
mod told;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::time::Instant;
use tokio_websockets::Connector;

use self::asking::Asking;
use self::commands::Commands;
use self::frame::Unreadable;
use self::life::Life;
use self::starts::Starts;
use self::told::{Doing, Standing};
use super::dispatch::Intake;
use super::identify;
use super::platform::Discord;
use super::rest::Failed;
use crate::ports::clock::Clock;
use crate::ports::gateway::{Command, Condition, Disconnected, Gateway as Port, Shard, Unsent};
use crate::ports::notes::Notes;
use crate::ports::rng::Rng;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::gateway::GatewayRecorder;

/// Where the gateway is if nobody says otherwise (Discord's documentation, "Gateway", "Connecting").
const COMMON_URL: &str = "wss://gateway.discord.gg";
/// Frames that cannot be read are told of once in this time.
const UNREADABLE_TOLD: Duration = Duration::from_secs(60);

/// Makes whoever takes in what one connection hears.
pub type MakeIntake = Arc<dyn Fn(Shard) -> Box<dyn Intake> + Send + Sync>;

/// How long things may take. All but tests use the default.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Between two identifies that share a place of `max_concurrency`.
    pub apart: Duration,
    /// What the pauses between attempts are multiplied with.
    pub pauses: f64,
    /// To a connection and its first word.
    pub hello: Duration,
    /// From then, from an identify or from the last replayed event to a session.
    pub session: Duration,
    /// For the receipts that are under way when a connection ends.
    pub receipts: Duration,
    /// For an intake that has no room.
    pub stuck: Duration,
    /// Between two notes of how far a session is accepted.
    pub notes: Duration,
    /// How long a session has to last for its identify not to count as one in vain.
    pub lasting: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            apart: identify::APART,
            pauses: 1.0,
            hello: Duration::from_secs(20),
            session: Duration::from_secs(60),
            receipts: Duration::from_secs(10),
            stuck: Duration::from_secs(300),
            notes: Duration::from_secs(1),
            lasting: Duration::from_secs(60),
        }
    }
}

/// What a gateway works with.
pub struct Parts {
    /// What is said; it learns here who it is.
    pub discord: Arc<Discord>,
    /// Where sessions and identifies are kept.
    pub notes: Arc<dyn Notes>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// For pauses.
    pub rng: Arc<dyn Rng>,
    /// Spans and instruments.
    pub recorder: GatewayRecorder,
    /// Makes whoever takes in what one connection hears.
    pub make_intake: MakeIntake,
    /// How long things may take.
    pub times: Times,
}

/// Discord's gateway, for one bot.
pub struct Gateway(Shared);

/// What all connections share.
struct Shared {
    discord: Arc<Discord>,
    notes: Arc<dyn Notes>,
    clock: Arc<dyn Clock>,
    rng: Arc<dyn Rng>,
    recorder: GatewayRecorder,
    make_intake: MakeIntake,
    times: Times,
    /// As the settings have it.
    shards: Option<NonZeroU32>,
    /// As the settings have it.
    url: Option<String>,
    /// As the settings have it.
    is_required: bool,
    token: SecretString,
    /// What stands below the bot's name.
    presence: Option<String>,
    connector: Connector,
    starts: Starts,
    asking: Asking,
    standing: Standing,
    /// Where commands wait for the connections that have a session.
    commands: Commands,
    /// When it was told last that a frame could not be read, and how many could not since.
    unreadable: Mutex<(Option<Instant>, u64)>,
}

impl Gateway {
    /// The gateway as the settings have it, with the bot's token. Nothing is asked yet. Has to be called within a runtime, after a TLS
    /// provider was installed.
    ///
    /// # Errors
    /// The gateway's address cannot be used, or this machine has no certificates to trust.
    pub fn new(settings: &Settings, token: &SecretString, parts: Parts) -> Result<Self, Problem> {
        let Parts { discord, notes, clock, rng, recorder, make_intake, times } = parts;
        let url = settings.gateway()?.map(|url| url.as_str().trim_end_matches('/').to_owned());
        let asking = Asking::new(settings.message_content);
        let connector = Connector::new().map_err(|error| {
            Problem::new(
                "gateway_url",
                format!("cannot be connected to: this machine has no certificates to trust ({error}); install ca-certificates"),
            )
        })?;
        let instruments = recorder.instruments().clone();
        let starts = Starts::new(Arc::clone(&discord), Arc::clone(&notes), Arc::clone(&clock), instruments, times);
        Ok(Self(Shared {
            discord,
            notes,
            clock,
            rng,
            recorder,
            make_intake,
            times,
            shards: settings.shards,
            url,
            is_required: settings.required,
            token: token.clone(),
            presence: settings.presence.clone(),
            connector,
            starts,
            asking,
            standing: Standing::default(),
            commands: Commands::default(),
            unreadable: Mutex::default(),
        }))
    }
}

#[async_trait]
impl Port for Gateway {
    fn name(&self) -> &'static str {
        "discord"
    }

    async fn shards(&self) -> Result<NonZeroU32, Disconnected> {
        let shared = &self.0;
        let (told, _) = tokio::join!(shared.starts.ask(), shared.learn());
        shared.standing.asked(told.as_ref().err().cloned());
        match (told, shared.shards) {
            (Ok(_), Some(shards)) => Ok(shards),
            (Ok(told), None) => Ok(told.shards),
            // Sessions that can be resumed need no answer.
            (Err(Disconnected::Later { .. }), Some(shards)) => Ok(shards),
            (Err(why), _) => Err(why),
        }
    }

    async fn live(&self, shard: Shard) -> Disconnected {
        let why = Life::new(&self.0, shard).live().await;
        if let Disconnected::Never(why) = &why {
            self.0.standing.set(shard, Doing::Stopped(why.clone()), self.0.recorder.instruments());
        }
        why
    }

    fn send(&self, command: Command) -> Result<(), Unsent> {
        self.0.commands.send(&command)
    }

    fn condition(&self) -> Condition {
        let shared = &self.0;
        let told = shared.standing.told(shared.asking.is_deaf().then_some(asking::DEAF));
        Condition { blocks_readiness: shared.is_required && shared.standing.has_stopped(), ..told }
    }
}

impl Shared {
    /// Asks which application this is, if that is not known.
    async fn learn(&self) -> Result<(), Failed> {
        self.asking.learn(&self.discord).await
    }

    /// The common address.
    fn url(&self) -> String {
        self.url.clone().or_else(|| self.starts.url()).unwrap_or_else(|| COMMON_URL.to_owned())
    }

    /// Tells now and then that frames could not be read, and nothing of what was in them.
    fn unreadable(&self, shard: Shard, why: Unreadable) {
        let mut told = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, count) = &mut *told;
        *count += 1;
        if last.is_none_or(|last| last.elapsed() >= UNREADABLE_TOLD) {
            let (shard, why) = (shard.number, why.as_str());
            tracing::warn!(platform = "discord", shard, why, count, "frames of the gateway could not be read and were left out");
            *told = (Some(Instant::now()), 0);
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("url", &self.0.url()).finish_non_exhaustive()
    }
}
