//! Runs the connections to Discord's gateway. A shard keeps its session over many connections and across restarts.

mod commands;
mod connection;
mod end;
mod forwarder;
pub(super) mod frame;
#[cfg(any(test, feature = "samples"))]
pub(super) mod fuzz;
mod inflate;
mod intents;
mod ledger;
mod payload;
mod session;
mod session_writer;
mod shard_loop;
pub(super) mod socket;
mod starts;
mod status;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::time::Instant;
use tokio_websockets::Connector;

use self::commands::Commands;
use self::frame::InvalidFrame;
use self::intents::Intents;
use self::shard_loop::ShardLoop;
use self::starts::Starts;
use self::status::{ShardStatus, Statuses};
use super::check;
use super::dispatch::Intake;
use super::identify;
use super::platform::Discord;
use super::rest::Failed;
use crate::ports::backend::Detail;
use crate::ports::clock::Clock;
use crate::ports::gateway::{Command, Condition, Disconnected, Gateway as Port, Shard, Unsent};
use crate::ports::notes::Notes;
use crate::ports::rng::Rng;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::gateway::GatewayRecorder;

/// The gateway's address if neither the settings nor Discord give one (Discord's documentation, "Gateway", "Connecting").
const DEFAULT_URL: &str = "wss://gateway.discord.gg";
/// The interval between log entries about frames that cannot be parsed.
const INVALID_FRAMES_LOGGED_EVERY: Duration = Duration::from_secs(60);

/// Creates the intake for a connection of a shard.
pub type MakeIntake = Arc<dyn Fn(Shard) -> Box<dyn Intake> + Send + Sync>;

/// Timeouts and intervals. Everything except tests uses the default.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The interval between two identifies that share a rate limit key of `max_concurrency`.
    pub apart: Duration,
    /// The factor for the pauses between attempts.
    pub pauses: f64,
    /// The time limit for opening a connection and receiving HELLO.
    pub hello: Duration,
    /// The time limit from HELLO, an identify or the last replayed event until the session begins.
    pub session: Duration,
    /// How long to wait for open receipts when a connection ends.
    pub receipts: Duration,
    /// How long an intake may have no room before the connection ends.
    pub stuck: Duration,
    /// The interval between two writes of a session's position.
    pub notes: Duration,
    /// How long a session must last, so that its identify does not count as failed.
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

pub struct Parts {
    /// The client for requests. The gateway sets the bot's ids in it.
    pub discord: Arc<Discord>,
    /// Stores sessions and identifies.
    pub notes: Arc<dyn Notes>,
    pub clock: Arc<dyn Clock>,
    /// The source of jitter for pauses.
    pub rng: Arc<dyn Rng>,
    pub recorder: GatewayRecorder,
    pub make_intake: MakeIntake,
    pub times: Times,
}

/// Discord's gateway, for one bot.
pub struct Gateway(Shared);

struct Shared {
    parts: Parts,
    /// `None`: Discord's recommendation.
    shards: Option<NonZeroU32>,
    /// `None`: the address that Discord announces.
    url: Option<String>,
    /// Whether the server becomes unready once Discord has stopped permanently.
    is_required: bool,
    token: SecretString,
    /// The custom status of the bot.
    presence: Option<String>,
    connector: Connector,
    starts: Starts,
    intents: Intents,
    statuses: Statuses,
    /// The command queues of connections with a session.
    commands: Commands,
    /// When invalid frames were last logged, and how many arrived since.
    invalid_frames: Mutex<(Option<Instant>, u64)>,
}

impl Gateway {
    /// Creates the gateway from the settings and the bot's token. It sends nothing yet. Must be called within a runtime, after a TLS provider was
    /// installed.
    ///
    /// # Errors
    /// Returns an error if the gateway's address is invalid, or if this machine has no root certificates.
    pub fn new(settings: &Settings, token: &SecretString, parts: Parts) -> Result<Self, Problem> {
        let url = settings.gateway()?.map(|url| url.as_str().trim_end_matches('/').to_owned());
        let intents = Intents::new(settings.message_content, settings.reactions);
        let connector = Connector::new().map_err(|error| {
            Problem::new(
                "gateway_url",
                format!("cannot be connected to: this machine has no root certificates ({error}); install ca-certificates"),
            )
        })?;
        let Parts { discord, notes, clock, recorder, times, .. } = &parts;
        let instruments = recorder.instruments().clone();
        let starts = Starts::new(Arc::clone(discord), Arc::clone(notes), Arc::clone(clock), instruments, *times);
        Ok(Self(Shared {
            parts,
            shards: settings.shards,
            url,
            is_required: settings.required,
            token: token.clone(),
            presence: settings.presence.clone(),
            connector,
            starts,
            intents,
            statuses: Statuses::default(),
            commands: Commands::default(),
            invalid_frames: Mutex::default(),
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
        let (info, _) = tokio::join!(shared.starts.refresh(), shared.load_application());
        shared.statuses.set_gateway_error(info.as_ref().err().cloned(), shared.parts.clock.now());
        match (info, shared.shards) {
            (Ok(_), Some(shards)) => Ok(shards),
            (Ok(info), None) => Ok(info.shards),
            // A stored session can be resumed without the gateway's limits.
            (Err(Disconnected::Later { .. }), Some(shards)) => Ok(shards),
            (Err(why), _) => Err(why),
        }
    }

    async fn live(&self, shard: Shard) -> Disconnected {
        let end = ShardLoop::new(&self.0, shard).run().await;
        if let Disconnected::Never(why) = &end {
            self.0.set_status(shard, ShardStatus::Stopped(why.clone()));
        }
        end
    }

    fn send(&self, command: Command) -> Result<(), Unsent> {
        self.0.commands.send(&command)
    }

    fn condition(&self) -> Condition {
        let shared = &self.0;
        let condition = shared.statuses.condition(shared.intents.lacks_content().then(intents::without_content));
        Condition {
            servers: shared.parts.discord.cache().guild_names(),
            invitation: shared.intents.application().map(check::invitation),
            blocks_readiness: shared.is_required && shared.statuses.has_stopped(),
            ..condition
        }
    }
}

impl Shared {
    /// Returns an error if another node is connected, so this server must not be.
    fn forbidden(&self) -> Option<Disconnected> {
        let is_permitted = self.parts.discord.rest().is_permitted();
        let later = || Disconnected::Later { after: None, detail: Detail::key("refusals.discord_elsewhere") };
        (!is_permitted).then(later)
    }

    /// Requests the application, unless it is known.
    async fn load_application(&self) -> Result<(), Failed> {
        self.intents.load_application(&self.parts.discord).await
    }

    fn set_status(&self, shard: Shard, status: ShardStatus) {
        self.statuses.set(shard, status, self.parts.clock.now(), self.parts.recorder.instruments());
    }

    /// The address for new sessions.
    fn url(&self) -> String {
        self.url.clone().or_else(|| self.starts.url()).unwrap_or_else(|| DEFAULT_URL.to_owned())
    }

    /// Logs invalid frames at intervals, without their content.
    fn log_invalid_frame(&self, shard: Shard, why: InvalidFrame) {
        let mut state = self.invalid_frames.lock();
        let (last, count) = &mut *state;
        *count += 1;
        if last.is_none_or(|last| last.elapsed() >= INVALID_FRAMES_LOGGED_EVERY) {
            let (shard, why) = (shard.number, why.as_str());
            tracing::warn!(platform = "discord", shard, why, count, "frames of the gateway could not be parsed and were skipped");
            *state = (Some(Instant::now()), 0);
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("url", &self.0.url()).finish_non_exhaustive()
    }
}
