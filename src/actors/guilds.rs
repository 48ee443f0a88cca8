//! Supervises the guilds: one that keeps failing is started again as a whole once, then kept away for a while; the others do not notice.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use super::directory::{Registration, Sort};
use super::guild::{self, Guild, GuildMessage};
use super::kit::Kit;
use super::places::{GuildPlace, GuildsPlace};
use super::quarantine::{Quarantine, QuarantinePolicy, Quarantined, Ruling};
use super::supervision::child::{ChildSpec, Lasting};
use super::supervision::children::{Children, Report, Upkeep};
use super::supervision::restarts::RestartPolicy;
use crate::domain::id::{ChannelId, GuildId};
use crate::telemetry::instruments::NONE;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::operations::{self, ActorFacts};
use crate::telemetry::plain::Plain;

/// How guilds that die by themselves are started again. Their number is no reason to fail: the sum is without a limit that matters.
const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_millis(200),
    longest_delay: Duration::from_secs(30),
    child_limit: 16,
    total_limit: 100_000,
    window: Duration::from_secs(60),
};
/// How long a guild is kept away: five minutes, doubling to six hours; a day without trouble and its past is forgotten.
const QUARANTINE: QuarantinePolicy = QuarantinePolicy {
    first: Duration::from_secs(300),
    longest: Duration::from_secs(6 * 3_600),
    forget_after: Duration::from_secs(86_400),
};

/// The actor.
pub struct Guilds;

/// What the guilds' supervisor is told.
pub enum GuildsMessage {
    /// A channel of a guild has something to do; none: the guild as a whole.
    Open(GuildId, Option<ChannelId>),
    /// Which guilds are kept away?
    Quarantined(RpcReplyPort<Vec<Quarantined>>),
    /// An operator lets a guild go. Answers whether it was kept away.
    Release(GuildId, RpcReplyPort<bool>),
    /// The end of a quarantine may be due.
    QuarantineOver,
    /// What its supervision tells itself.
    Upkeep(Upkeep<GuildId>),
}

impl From<Upkeep<GuildId>> for GuildsMessage {
    fn from(upkeep: Upkeep<GuildId>) -> Self {
        Self::Upkeep(upkeep)
    }
}

/// What it keeps.
pub struct State {
    kit: Kit,
    myself: ActorRef<GuildsMessage>,
    children: Children<GuildId, GuildsMessage>,
    quarantine: Quarantine,
    /// Those in quarantine, as they are counted.
    kept_away: BTreeMap<GuildId, Counted>,
    _registration: Registration,
    _counted: Counted,
}

impl Actor for Guilds {
    type Msg = GuildsMessage;
    type State = State;
    type Arguments = Kit;

    async fn pre_start(&self, myself: ActorRef<GuildsMessage>, kit: Kit) -> Result<State, ActorProcessingErr> {
        let registration = kit.directory.register(&GuildsPlace(), &myself);
        Ok(State {
            children: Children::new(myself.clone(), RESTARTS, kit.chance.clone()),
            _counted: kit.recorder.instruments().actors.one([Sort::Guilds.as_str()]),
            kit,
            myself,
            quarantine: Quarantine::new(QUARANTINE),
            kept_away: BTreeMap::new(),
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<GuildsMessage>,
        message: GuildsMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            GuildsMessage::Open(guild, channel) => state.open(&guild, channel),
            GuildsMessage::Quarantined(reply) => drop(reply.send(state.quarantine.list().cloned().collect())),
            GuildsMessage::Release(guild, reply) => {
                let was_away = state.quarantine.release(&guild).is_some();
                if was_away {
                    state.kept_away.remove(&guild);
                    state.open(&guild, None);
                }
                drop(reply.send(was_away));
            }
            GuildsMessage::QuarantineOver => {
                for guild in state.quarantine.take_due(state.kit.clock.now()) {
                    state.kept_away.remove(&guild);
                    state.open(&guild, None);
                }
            }
            GuildsMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.carry_on(report);
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<GuildsMessage>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let report = state.children.observe(event);
        state.carry_on(report);
        Ok(())
    }
}

impl State {
    /// A guild that is new wakes what is pending by itself; what is kept away hears nothing until it is back.
    fn open(&mut self, guild: &GuildId, channel: Option<ChannelId>) {
        if self.quarantine.get(guild).is_some() {
            return;
        }
        let arguments = guild::Arguments { guild: guild.clone(), kit: self.kit.clone() };
        self.children.start(guild.clone(), ChildSpec::of(Lasting::Bulkhead, move || (Guild, arguments.clone())));
        if let (Some(channel), Some(actor)) = (channel, self.kit.directory.find(&GuildPlace(guild.clone()))) {
            // What is accepted is pending: a guild that is gone, or not there yet, wakes it by itself.
            let _ = actor.cast(GuildMessage::Open(channel));
        }
    }

    fn carry_on(&mut self, report: Option<Report<GuildId>>) {
        match report {
            None | Some(Report::Started { .. }) => {}
            Some(Report::Restarting { child, ending, after }) => {
                operations::restarted(&self.kit.recorder, &self.facts(&child, &ending.to_string()), after);
                ending.measure(Sort::Guild.as_str(), self.kit.recorder.instruments());
            }
            Some(Report::Ended { child, ending }) => self.rule(&child, &ending.to_string()),
            Some(Report::Escalate { child, escalation }) => self.rule(&child, &escalation.to_string()),
        }
    }

    fn rule(&mut self, guild: &GuildId, reason: &str) {
        let now = self.kit.clock.now();
        match self.quarantine.over_limit(guild, reason, now) {
            Ruling::RestartWhole => {
                operations::restarted(&self.kit.recorder, &self.facts(guild, reason), Duration::ZERO);
                self.open(guild, None);
            }
            Ruling::KeepAway { until } => {
                operations::escalated(&self.kit.recorder, &self.facts(guild, reason));
                if let Entry::Vacant(entry) = self.kept_away.entry(guild.clone()) {
                    let instruments = self.kit.recorder.instruments();
                    instruments.quarantines.add(1, NONE);
                    entry.insert(instruments.guilds_quarantined.one(NONE));
                }
                let guild = Plain(guild.as_str());
                tracing::error!(%guild, reason, for_secs = until.since(now).as_secs(), "a guild is kept away; release it or wait");
                self.myself.send_after(until.since(now), || GuildsMessage::QuarantineOver);
            }
        }
    }

    fn facts<'a>(&self, guild: &'a GuildId, ending: &'a str) -> ActorFacts<'a> {
        ActorFacts { sort: Sort::Guild.as_str(), address: guild.as_str(), ending, at: self.kit.clock.now() }
    }
}
