//! Supervises the connections to platforms: asks each platform how many there are to be, and keeps them alive, each for itself.
//!
//! Whatever becomes of them, nobody else notices: guilds go on with what they have.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::actors::messages::platforms::{PlatformsMessage, ShardName};
use crate::actors::runtime::actor_keys::PlatformsKey;
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Registration, Sort};
use crate::actors::runtime::shard::{self, Connection, Pauses};
use crate::actors::runtime::supervision::child::{ChildSpec, Escalation, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::ports::gateway::{Disconnected, Gateway, Shard};
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::operations::{self, ActorFacts};

/// A connection that dies is made again at once, then after 1 s, doubling to a minute; one that dies 60 times in a row, for most of an hour,
/// is more than making it again can help.
const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_secs(1),
    longest_delay: Duration::from_secs(60),
    child_limit: 60,
    total_limit: 10_000,
    window: Duration::from_secs(120),
};
/// How long a platform may take to say how many connections there are to be.
const ASKING_DEADLINE: Duration = Duration::from_secs(60);
/// After which time it is looked whether a person has done something about what is in the way.
const LONG_PAUSE: Duration = Duration::from_secs(600);

/// What was told so long ago is told again when it is in the way again.
const RECENTLY: Duration = Duration::from_secs(60);

pub struct Connections;

pub struct State {
    context: ActorContext,
    myself: ActorRef<PlatformsMessage>,
    children: Children<ShardName, PlatformsMessage>,
    platforms: BTreeMap<&'static str, Platform>,
    _registration: Registration,
    _counted: Counted,
}

/// How it stands with a platform.
struct Platform {
    /// It is asked, or will be.
    asking: Option<Task>,
    pauses: Pauses,
    /// How many connections are to be started, as soon as those of another number are gone.
    wanted: Option<NonZeroU32>,
    /// What is in the way, once it was told, and when that was.
    told: Option<(String, Instant)>,
}

/// A task that ends when this is dropped.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Actor for Connections {
    type Msg = PlatformsMessage;
    type State = State;
    type Arguments = ActorContext;

    async fn pre_start(&self, myself: ActorRef<PlatformsMessage>, context: ActorContext) -> Result<State, ActorProcessingErr> {
        let registration = context.directory.register(&PlatformsKey(), &myself);
        let mut platforms = BTreeMap::new();
        for gateway in context.gateways.iter() {
            let asking = Some(ask(gateway.clone(), myself.clone()));
            platforms.insert(gateway.name(), Platform { asking, pauses: Pauses::new(), wanted: None, told: None });
        }
        Ok(State {
            children: Children::new(myself.clone(), RESTARTS, context.rng.clone()),
            _counted: context.recorder.instruments().actors.one([Sort::Platforms.as_str()]),
            context,
            myself,
            platforms,
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<PlatformsMessage>,
        message: PlatformsMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            PlatformsMessage::Ask(platform) => state.ask(platform),
            PlatformsMessage::Counted(platform, said) => state.hear(platform, said),
            PlatformsMessage::Blocked { platform, reason, was_up } => state.give_up(platform, reason, was_up),
            PlatformsMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.carry_on(report)?;
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<PlatformsMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.carry_on(report)
    }
}

impl State {
    fn ask(&mut self, platform: &'static str) {
        if let (Some(gateway), Some(standing)) = (self.context.gateways.named(platform), self.platforms.get_mut(platform)) {
            standing.asking = Some(ask(gateway.clone(), self.myself.clone()));
        }
    }

    fn hear(&mut self, platform: &'static str, said: Result<NonZeroU32, Disconnected>) {
        let Some(standing) = self.platforms.get_mut(platform) else { return };
        standing.asking = None;
        match said {
            Ok(of) => {
                standing.pauses = Pauses::new();
                standing.wanted = Some(of);
                self.end_outdated(platform, of);
                self.connect(platform);
            }
            Err(Disconnected::Later { after, detail }) => self.ask_later(platform, after, &detail),
            Err(Disconnected::Never(reason)) => self.give_up(platform, reason, false),
        }
    }

    fn ask_after(&mut self, platform: &'static str, after: Duration) {
        if let Some(standing) = self.platforms.get_mut(platform) {
            let timer = self.myself.send_after(after, move || PlatformsMessage::Ask(platform));
            standing.asking = Some(Task(timer.abort_handle()));
        }
    }

    fn ask_later(&mut self, platform: &'static str, asked_for: Option<Duration>, detail: &str) {
        let Some(standing) = self.platforms.get_mut(platform) else { return };
        let after = standing.pauses.pause(asked_for, self.context.rng.fraction());
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(
            platform,
            after_ms,
            detail,
            "a platform does not say how many connections there are to be; it is asked again"
        );
        self.ask_after(platform, after);
    }

    fn end_outdated(&mut self, platform: &'static str, of: NonZeroU32) {
        let is_outdated = |(known, shard): &&ShardName| *known == platform && shard.of != of;
        let outdated: Vec<_> = self.children.names().filter(is_outdated).copied().collect();
        for shard in outdated {
            if let Some(actor) = self.children.dismiss(&shard) {
                actor.stop(None);
            }
        }
    }

    /// Starts what is wanted and not there yet, once nothing of another number is there any more.
    fn connect(&mut self, platform: &'static str) {
        let (Some(gateway), Some(standing)) = (self.context.gateways.named(platform).cloned(), self.platforms.get_mut(platform))
        else {
            return;
        };
        let Some(of) = standing.wanted else { return };
        if self.children.names().any(|(known, shard)| *known == platform && shard.of != of) {
            return;
        }
        standing.wanted = None;
        tracing::info!(platform, connections = of.get(), "connecting");
        for number in 0..of.get() {
            let shard = Shard { number, of };
            let (gateway, supervisor, context) = (gateway.clone(), self.myself.clone(), self.context.clone());
            let arguments = shard::Arguments { gateway, shard, supervisor, alone: Arc::default(), context };
            let spec = ChildSpec::of(RestartType::Transient, move || (Connection, arguments.clone()));
            self.children.start((platform, shard), spec);
        }
    }

    /// It is told once, however many connections say so, and looked at again after a long while.
    fn give_up(&mut self, platform: &'static str, reason: String, was_up: bool) {
        let Some(standing) = self.platforms.get_mut(platform) else { return };
        // The other connections say the same at once.
        let is_news = match &standing.told {
            Some((known, at)) if *known == reason => was_up && at.elapsed() >= RECENTLY,
            _ => true,
        };
        if is_news {
            let again_secs = LONG_PAUSE.as_secs();
            tracing::error!(
                platform,
                reason,
                again_secs,
                "a platform cannot be heard before somebody has done something about it"
            );
            standing.told = Some((reason, Instant::now()));
        }
        if standing.asking.is_none() {
            self.ask_after(platform, LONG_PAUSE);
        }
    }

    fn carry_on(&mut self, report: Option<Report<ShardName>>) -> Result<(), ActorProcessingErr> {
        match report {
            None | Some(Report::Started { .. }) => {}
            Some(Report::Ended { child: (platform, _), .. }) => self.connect(platform),
            Some(Report::Restarting { child, ending, after }) => {
                let (address, ending_told) = (address(&child), ending.to_string());
                operations::restarted(&self.context.recorder, &self.facts(&address, &ending_told), after);
                ending.measure(Sort::Shard.as_str(), self.context.recorder.instruments());
            }
            Some(Report::Escalate { child, escalation }) => {
                let escalation = Escalation { child: address(&child), ..escalation };
                let ending = escalation.to_string();
                operations::escalated(&self.context.recorder, &self.facts(&escalation.child, &ending));
                return Err(escalation.into());
            }
        }
        Ok(())
    }

    fn facts<'a>(&self, address: &'a str, ending: &'a str) -> ActorFacts<'a> {
        ActorFacts { sort: Sort::Shard.as_str(), address, ending, at: self.context.clock.now() }
    }
}

/// `discord/3`.
fn address((platform, shard): &ShardName) -> String {
    format!("{platform}/{}", shard.number)
}

fn ask(gateway: Arc<dyn Gateway>, supervisor: ActorRef<PlatformsMessage>) -> Task {
    let task = tokio::spawn(async move {
        let asked = AssertUnwindSafe(gateway.shards()).catch_unwind();
        let not_now = |detail: &str| Err(Disconnected::Later { after: None, detail: detail.to_owned() });
        let said = match tokio::time::timeout(ASKING_DEADLINE, asked).await {
            Ok(Ok(said)) => said,
            Ok(Err(_panic)) => not_now("asking panicked"),
            Err(_elapsed) => not_now("no answer in time"),
        };
        // A supervisor that is gone asks anew when it is back.
        let _ = supervisor.cast(PlatformsMessage::Counted(gateway.name(), said));
    });
    Task(task.abort_handle())
}
