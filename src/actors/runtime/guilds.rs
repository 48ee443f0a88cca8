//! Supervises the guilds. A guild that keeps failing is first restarted as a whole, then quarantined. Other guilds are not affected.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef};

use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::guilds::{GuildsMessage, OutOfService, Suspended};
use crate::actors::runtime::actor_keys::{GuildKey, GuildsKey};
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::directory::Sort;
use crate::actors::runtime::guild::{self, Guild};
use crate::actors::runtime::quarantine::{Quarantine, QuarantinePolicy, Ruling};
use crate::actors::runtime::supervision::child::{ChildSpec, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::reports_children;
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::domain::id::{ChannelId, GuildId};
use crate::telemetry::instruments::NONE;
use crate::telemetry::instruments::kinds::Counted;
use crate::telemetry::plain::Plain;

/// How guilds that die are restarted. The total limit is so high that it is never reached: many dying guilds are no reason to fail.
const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_millis(200),
    longest_delay: Duration::from_secs(30),
    child_limit: 16,
    total_limit: 100_000,
    window: Duration::from_secs(60),
};
/// How long a guild is quarantined: five minutes, doubling to six hours. After a day without failures the count starts again.
const QUARANTINE: QuarantinePolicy = QuarantinePolicy {
    first: Duration::from_secs(300),
    longest: Duration::from_secs(6 * 3_600),
    forget_after: Duration::from_secs(86_400),
};

pub struct Guilds;

pub struct State {
    context: ActorContext,
    myself: ActorRef<GuildsMessage>,
    children: Children<GuildId, GuildsMessage>,
    quarantine: Quarantine,
    /// The instrument guards of guilds in quarantine.
    quarantined: BTreeMap<GuildId, Counted>,
    suspended: BTreeMap<ChannelId, Suspended>,
    _registration: Registered,
}

impl Actor for Guilds {
    type Msg = GuildsMessage;
    type State = State;
    type Arguments = ActorContext;

    async fn pre_start(&self, myself: ActorRef<GuildsMessage>, context: ActorContext) -> Result<State, ActorProcessingErr> {
        let registration = context.register(&GuildsKey(), &myself);
        Ok(State {
            children: Children::new(myself.clone(), RESTARTS, context.rng.clone()),
            context,
            myself,
            quarantine: Quarantine::new(QUARANTINE),
            quarantined: BTreeMap::new(),
            suspended: BTreeMap::new(),
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
            GuildsMessage::OutOfService(reply) => {
                let (guilds, channels) = (state.quarantine.list().cloned(), state.suspended.values().cloned());
                drop(reply.send(OutOfService { guilds: guilds.collect(), channels: channels.collect() }));
            }
            GuildsMessage::Release(guild, reply) => {
                let was_quarantined = state.quarantine.release(&guild).is_some();
                if was_quarantined {
                    state.quarantined.remove(&guild);
                    state.open(&guild, None);
                }
                drop(reply.send(was_quarantined));
            }
            GuildsMessage::TryAgain(channel, reply) => drop(reply.send(state.try_again(channel))),
            GuildsMessage::Suspended(by, entry) => state.suspend(by, entry),
            GuildsMessage::Resumed(channel) => drop(state.suspended.remove(&channel)),
            GuildsMessage::QuarantineOver => {
                for guild in state.quarantine.take_due(state.context.clock.now()) {
                    state.quarantined.remove(&guild);
                    state.open(&guild, None);
                }
            }
            GuildsMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.handle_report(report)?;
            }
        }
        Ok(())
    }

    reports_children!(GuildsMessage);
}

impl State {
    /// Starts a guild, or forwards the channel to it. A new guild wakes its pending channels itself. A quarantined guild receives
    /// nothing until it is released.
    fn open(&mut self, guild: &GuildId, channel: Option<ChannelId>) {
        if self.quarantine.get(guild).is_some() {
            return;
        }
        let arguments = guild::Arguments { guild: guild.clone(), context: self.context.clone() };
        self.children.start(guild.clone(), ChildSpec::of(RestartType::Bulkhead, move || (Guild, arguments.clone())));
        if let (Some(channel), Some(actor)) = (channel, self.context.directory.find(&GuildKey(guild.clone()))) {
            // Accepted events are pending, so a guild that is restarting or still starting wakes the channel itself.
            let _ = actor.cast(GuildMessage::Open(channel));
        }
    }

    fn try_again(&mut self, channel: ChannelId) -> bool {
        let Some(entry) = self.suspended.remove(&channel) else { return false };
        if let Some(guild) = self.context.directory.find(&GuildKey(entry.guild)) {
            // A guild that is being restarted retries all of its channels.
            let _ = guild.cast(GuildMessage::TryAgain(channel));
        }
        true
    }

    /// A guild's last message may arrive after the guild has ended. Its suspensions ended with it, and its successor retries all
    /// of its channels.
    fn suspend(&mut self, by: ActorId, entry: Suspended) {
        if self.children.get(&entry.guild).is_some_and(|guild| guild.get_id() == by) {
            self.suspended.insert(entry.channel.clone(), entry);
        }
    }

    /// A guild that is restarted retries all of its channels.
    fn forget_suspended(&mut self, guild: &GuildId) {
        self.suspended.retain(|_, entry| entry.guild != *guild);
    }

    fn handle_report(&mut self, report: Option<Report<GuildId>>) -> Result<(), ActorProcessingErr> {
        match report {
            None => {}
            // The last message of its predecessor may have arrived after the predecessor's end.
            Some(Report::Started { child, .. }) => self.forget_suspended(&child),
            Some(Report::Restarting { child, ending, after }) => {
                self.forget_suspended(&child);
                self.context.restarting(Sort::Guild, child.as_str(), &ending, after);
            }
            Some(Report::Ended { child, ending }) => self.rule(&child, &ending.to_string()),
            Some(Report::Escalate { child, escalation }) => self.rule(&child, &escalation.to_string()),
        }
        Ok(())
    }

    fn rule(&mut self, guild: &GuildId, reason: &str) {
        self.forget_suspended(guild);
        let now = self.context.clock.now();
        match self.quarantine.over_limit(guild, reason, now) {
            Ruling::RestartWhole => {
                self.context.restarted(Sort::Guild, guild.as_str(), reason, Duration::ZERO);
                self.open(guild, None);
            }
            Ruling::Quarantine { until } => {
                self.context.escalated(Sort::Guild, guild.as_str(), reason);
                if let Entry::Vacant(entry) = self.quarantined.entry(guild.clone()) {
                    let instruments = self.context.recorder.instruments();
                    instruments.quarantines.add(1, NONE);
                    entry.insert(instruments.guilds_quarantined.one(NONE));
                }
                let guild = Plain(guild.as_str());
                tracing::error!(%guild, reason, for_secs = until.since(now).as_secs(), "a guild is quarantined; release it or wait");
                self.myself.send_after(until.since(now), || GuildsMessage::QuarantineOver);
            }
        }
    }
}
