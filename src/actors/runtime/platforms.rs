//! Supervises the connections to platforms: asks each platform how many connections it wants, and restarts each one that fails.
//!
//! Failing connections do not affect other actors. Guilds continue with the events that they have.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::platforms::{PlatformsMessage, ShardName};
use crate::actors::runtime::actor_keys::{GuildKey, PlatformsKey};
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::directory::Sort;
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::runtime::pending;
use crate::actors::runtime::shard::{self, Connection};
use crate::actors::runtime::supervision::backoff::Backoff;
use crate::actors::runtime::supervision::child::{ChildSpec, Escalation, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::reports_children;
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::ports::chat_platform::Platforms;
use crate::ports::gateway::{Disconnected, Gateway, Gateways, Shard};

/// A connection that dies is restarted at once, then after 1 s, doubling to a minute. After 60 deaths in a row, which take most of an hour,
/// another restart does not help.
const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_secs(1),
    longest_delay: Duration::from_secs(60),
    child_limit: 60,
    total_limit: 10_000,
    window: Duration::from_secs(120),
};
/// How long a platform may take to answer how many connections it wants.
const SHARD_COUNT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait before trying again when a person has to fix something first.
const LONG_PAUSE: Duration = Duration::from_secs(600);

/// A reason that was logged is logged again only after this time, and only if it ended a connection that was up for a while.
const RECENTLY: Duration = Duration::from_secs(60);

pub struct Connections;

pub struct State {
    context: ActorContext,
    myself: ActorRef<PlatformsMessage>,
    children: Children<ShardName, PlatformsMessage>,
    platforms: BTreeMap<&'static str, Platform>,
    _registration: Registered,
}

/// The state of one platform.
struct Platform {
    /// The request for the number of connections, or the timer for the next one.
    request: Option<OwnedTask>,
    backoff: Backoff,
    /// How many connections to start, once those of an earlier number have ended.
    wanted: Option<NonZeroU32>,
    /// The last logged reason why the platform cannot be connected, and the time of the log entry.
    logged: Option<(String, Instant)>,
}

impl Actor for Connections {
    type Msg = PlatformsMessage;
    type State = State;
    type Arguments = ActorContext;

    async fn pre_start(&self, myself: ActorRef<PlatformsMessage>, context: ActorContext) -> Result<State, ActorProcessingErr> {
        let registration = context.register(&PlatformsKey(), &myself);
        let mut state = State {
            children: Children::new(myself.clone(), RESTARTS, context.rng.clone()),
            context,
            myself,
            platforms: BTreeMap::new(),
            _registration: registration,
        };
        state.begin();
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<PlatformsMessage>,
        message: PlatformsMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PlatformsMessage::Ask(platform) => state.ask(platform),
            PlatformsMessage::Counted(platform, count) => state.counted(platform, count),
            PlatformsMessage::Replaced => state.replace(),
            PlatformsMessage::Blocked { platform, reason, was_up } => state.give_up(platform, reason, was_up),
            PlatformsMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.handle_report(report)?;
            }
        }
        Ok(())
    }

    reports_children!(PlatformsMessage);
}

impl State {
    /// Asks all platforms how many connections they want, once the connections to earlier platforms have ended.
    fn begin(&mut self) {
        if self.children.names().next().is_some() {
            return;
        }
        for gateway in self.context.gateways.all() {
            let name = gateway.name();
            let request = Some(ask(gateway, self.myself.clone()));
            self.platforms.insert(name, Platform { request, backoff: Backoff::default(), wanted: None, logged: None });
        }
    }

    fn replace(&mut self) {
        self.platforms.clear();
        let shards: Vec<_> = self.children.names().copied().collect();
        for actor in shards.iter().filter_map(|shard| self.children.dismiss(shard)) {
            actor.stop(None);
        }
        self.begin();
    }

    fn ask(&mut self, platform: &'static str) {
        if let (Some(gateway), Some(entry)) = (self.context.gateways.named(platform), self.platforms.get_mut(platform)) {
            entry.request = Some(ask(gateway, self.myself.clone()));
        }
    }

    fn counted(&mut self, platform: &'static str, count: Result<NonZeroU32, Disconnected>) {
        let Some(entry) = self.platforms.get_mut(platform) else { return };
        entry.request = None;
        match count {
            Ok(count) => {
                entry.backoff = Backoff::default();
                entry.wanted = Some(count);
                self.end_outdated(platform, count);
                self.connect(platform);
            }
            Err(Disconnected::Later { after, detail }) => self.ask_later(platform, after, &detail),
            Err(Disconnected::Never(reason)) => self.give_up(platform, reason.to_string(), false),
        }
    }

    fn ask_after(&mut self, platform: &'static str, after: Duration) {
        if let Some(entry) = self.platforms.get_mut(platform) {
            entry.request = Some(self.myself.send_after(after, move || PlatformsMessage::Ask(platform)).into());
        }
    }

    fn ask_later(&mut self, platform: &'static str, asked_for: Option<Duration>, detail: &str) {
        let Some(entry) = self.platforms.get_mut(platform) else { return };
        let after = entry.backoff.pause(asked_for, self.context.rng.fraction());
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(platform, after_ms, detail, "a platform does not say how many connections it wants; it is asked again");
        self.ask_after(platform, after);
    }

    fn end_outdated(&mut self, platform: &'static str, count: NonZeroU32) {
        let is_outdated = |(name, shard): &&ShardName| *name == platform && shard.of != count;
        let outdated: Vec<_> = self.children.names().filter(is_outdated).copied().collect();
        for shard in outdated {
            if let Some(actor) = self.children.dismiss(&shard) {
                actor.stop(None);
            }
        }
    }

    /// Starts the wanted connections that are not running yet, once all connections of an earlier number have ended.
    fn connect(&mut self, platform: &'static str) {
        let (Some(gateway), Some(entry)) = (self.context.gateways.named(platform), self.platforms.get_mut(platform)) else {
            return;
        };
        let Some(of) = entry.wanted else { return };
        if self.children.names().any(|(name, shard)| *name == platform && shard.of != of) {
            return;
        }
        entry.wanted = None;
        tracing::info!(platform, connections = of.get(), "connecting");
        for number in 0..of.get() {
            let shard = Shard { number, of };
            let (gateway, supervisor, context) = (gateway.clone(), self.myself.clone(), self.context.clone());
            let arguments = shard::Arguments { gateway, shard, supervisor, exclusive: Arc::default(), context };
            let spec = ChildSpec::of(RestartType::Transient, move || (Connection, arguments.clone()));
            self.children.start((platform, shard), spec);
        }
    }

    /// Logs the reason once, however many connections report it, and tries again after a long pause.
    fn give_up(&mut self, platform: &'static str, reason: String, was_up: bool) {
        let Some(entry) = self.platforms.get_mut(platform) else { return };
        // The other connections report the same at about the same time.
        let is_new = match &entry.logged {
            Some((logged, at)) if *logged == reason => was_up && at.elapsed() >= RECENTLY,
            _ => true,
        };
        if is_new {
            let again_secs = LONG_PAUSE.as_secs();
            tracing::error!(platform, reason, again_secs, "a platform cannot be connected until somebody fixes the reason");
            entry.logged = Some((reason, Instant::now()));
        }
        if entry.request.is_none() {
            self.ask_after(platform, LONG_PAUSE);
        }
    }

    fn handle_report(&mut self, report: Option<Report<ShardName>>) -> Result<(), ActorProcessingErr> {
        match report {
            None | Some(Report::Started { .. }) => {}
            Some(Report::Ended { .. }) if self.platforms.is_empty() => self.begin(),
            Some(Report::Ended { child: (platform, _), .. }) => self.connect(platform),
            Some(Report::Restarting { child, ending, after }) => {
                self.context.restarting(Sort::Shard, &address(&child), &ending, after);
            }
            Some(Report::Escalate { child, escalation }) => {
                let escalation = Escalation { child: address(&child), ..escalation };
                self.context.escalated(Sort::Shard, &escalation.child, &escalation.to_string());
                return Err(escalation.into());
            }
        }
        Ok(())
    }
}

/// Puts these platforms into force. Channels of the platforms until now are closed, and continue where they stopped if one of these serves them.
pub fn replace_platforms(platforms: &Platforms, gateways: &Gateways, context: &ActorContext) {
    let mut closed = context.memberships.all();
    closed.retain(|(channel, _)| context.platforms.of(channel).is_some());
    context.platforms.replace(platforms);
    context.gateways.replace(gateways);
    for (channel, membership) in closed {
        if let Some(guild) = context.directory.find(&GuildKey(membership.guild)) {
            // A guild that is being restarted has no open channels.
            let _ = guild.cast(GuildMessage::Close(channel));
        }
    }
    if let Some(connections) = context.directory.find(&PlatformsKey()) {
        // A supervisor that is being restarted begins with the new ones.
        let _ = connections.cast(PlatformsMessage::Replaced);
    }
    pending::recover(context.clone());
}

/// The address of a connection in telemetry, such as `discord/3`.
fn address((platform, shard): &ShardName) -> String {
    format!("{platform}/{}", shard.number)
}

fn ask(gateway: Arc<dyn Gateway>, supervisor: ActorRef<PlatformsMessage>) -> OwnedTask {
    let task = tokio::spawn(async move {
        let request = AssertUnwindSafe(gateway.shards()).catch_unwind();
        let not_now = |detail: &str| Err(Disconnected::Later { after: None, detail: detail.into() });
        let count = match tokio::time::timeout(SHARD_COUNT_TIMEOUT, request).await {
            Ok(Ok(count)) => count,
            Ok(Err(_panic)) => not_now("asking panicked"),
            Err(_elapsed) => not_now("no answer in time"),
        };
        // A supervisor that is being restarted asks again when it starts.
        let _ = supervisor.cast(PlatformsMessage::Counted(gateway.name(), count));
    });
    task.into()
}
