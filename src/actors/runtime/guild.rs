//! A guild: a bulkhead around its companions and channels. It restarts its children. If that does not help, only this guild
//! fails.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};

use crate::actors::calls::voice_call::{self, VoiceCall};
use crate::actors::channel::{self, Channel, GuildBudgets};
use crate::actors::companion::{self, Companion};
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::guild::{Child, GuildMessage};
use crate::actors::messages::guilds::{Cause, GuildsMessage, Suspended};
use crate::actors::messages::supervision::Ending;
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey, GuildsKey};
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::dead_letters::{self, Suspects};
use crate::actors::runtime::directory::Sort;
use crate::actors::runtime::in_flight::InFlight;
use crate::actors::runtime::owned_task::OwnedTask;
use crate::actors::runtime::pending;
use crate::actors::runtime::quarantine::{self};
use crate::actors::runtime::supervision::child::{ChildSpec, Escalation, RestartType};
use crate::actors::runtime::supervision::children::{Children, Report};
use crate::actors::runtime::supervision::reports_children;
use crate::actors::runtime::supervision::restarts::RestartPolicy;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::plain::Plain;

/// How a guild restarts its actors: at once, then after 0.2 s, doubling to 30 s. After more than 8 restarts of one actor in a row, or 64 of all of
/// them in a minute, the guild itself is restarted.
pub const RESTARTS: RestartPolicy = RestartPolicy {
    first_delay: Duration::from_millis(200),
    longest_delay: Duration::from_secs(30),
    child_limit: 8,
    total_limit: 64,
    window: Duration::from_secs(60),
};
/// How often expired uses are dropped from the budgets.
const PRUNE_EVERY: Duration = Duration::from_secs(600);

/// After a start, channels with pending work are woken in groups of this size, with a pause after each group. This spreads overdue work,
/// so that neither models nor platforms are flooded.
const WOKEN_AT_ONCE: usize = 100;
const WAKE_PAUSE: Duration = Duration::from_millis(100);

/// A channel that is killed with its guild ends within this time unless it hangs.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a channel that cannot continue from its record is suspended. It is the same as a guild's first quarantine.
const SUSPENSION: Duration = Duration::from_secs(300);

pub struct Guild;

#[derive(Clone)]
pub struct Arguments {
    pub guild: GuildId,
    pub context: ActorContext,
}

/// The state of a guild. All of it can be rebuilt when the guild is restarted.
pub struct State {
    guild: GuildId,
    /// Shared by all channels of the guild.
    context: Arc<ActorContext>,
    myself: ActorRef<GuildMessage>,
    children: Children<Child, GuildMessage>,
    budgets: Arc<GuildBudgets>,
    in_flight: HashMap<ChannelId, Arc<InFlight>>,
    /// Channels to reopen because they received work while they went to sleep.
    wanted: BTreeSet<ChannelId>,
    /// Suspended channels, and the timers that end the suspensions.
    suspended: BTreeMap<ChannelId, OwnedTask>,
    suspects: Suspects,
    _registration: Registered,
}

impl Actor for Guild {
    type Msg = GuildMessage;
    type State = State;
    type Arguments = Arguments;

    async fn pre_start(&self, myself: ActorRef<GuildMessage>, arguments: Arguments) -> Result<State, ActorProcessingErr> {
        let Arguments { guild, context } = arguments;
        let registration = context.register(&GuildKey(guild.clone()), &myself);
        let predecessors = if registration.is_successor() { channels_of(&guild, &context) } else { Vec::new() };
        wake_pending(guild.clone(), context.clone(), myself.clone(), predecessors);
        myself.send_interval(PRUNE_EVERY, || GuildMessage::Prune);
        Ok(State {
            children: Children::new(myself.clone(), RESTARTS, context.rng.clone()),
            myself,
            guild,
            context: Arc::new(context),
            budgets: Arc::default(),
            in_flight: HashMap::new(),
            wanted: BTreeSet::new(),
            suspended: BTreeMap::new(),
            suspects: Suspects::default(),
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<GuildMessage>,
        message: GuildMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            GuildMessage::Open(channel) => state.open(channel),
            GuildMessage::MembershipChanged(channel) => state.membership_changed(channel),
            GuildMessage::Close(channel) => state.close(&channel),
            GuildMessage::TryAgain(channel) => {
                if state.end_suspension(&channel) {
                    state.open(channel);
                }
            }
            GuildMessage::Prune => state.prune(),
            GuildMessage::Upkeep(upkeep) => {
                let report = state.children.upkeep(upkeep);
                state.handle_report(report)?;
            }
        }
        Ok(())
    }

    reports_children!(GuildMessage);
}

impl State {
    fn open(&mut self, channel: ChannelId) {
        let is_deleting = self.context.memberships.deleted_at(&channel).is_some();
        if is_deleting || self.context.platforms.is_disabled(&channel) || self.suspended.contains_key(&channel) {
            return;
        }
        if let Some(membership) = self.context.memberships.get(&channel) {
            for companion in membership.companions {
                self.ensure_companion(companion);
            }
        }
        let in_flight = self.in_flight.entry(channel.clone()).or_default().clone();
        let channel_key = ChannelKey::new(&self.guild, &channel);
        if let Some(call) = self.context.calls.get(&channel) {
            let arguments = voice_call::Arguments { call, context: self.context.clone() };
            let spec = ChildSpec::of(RestartType::Transient, move || (VoiceCall, arguments.clone()));
            self.children.start(Child::VoiceCall(channel.clone()), spec);
        }
        let arguments =
            channel::Arguments { channel_key, context: self.context.clone(), budgets: self.budgets.clone(), in_flight };
        let spec = ChildSpec::of(RestartType::Transient, move || (Channel, arguments.clone()));
        let is_new = self.children.start(Child::Channel(channel.clone()), spec);
        if !is_new && self.context.directory.find(&ChannelActorKey(channel.clone())).is_none() {
            self.wanted.insert(channel);
        }
    }

    fn ensure_companion(&mut self, companion: CompanionId) {
        let (guild, context, id) = (self.guild.clone(), self.context.clone(), companion.clone());
        let spec = ChildSpec::of(RestartType::Permanent, move || {
            let arguments = companion::Arguments { guild: guild.clone(), companion: id.clone(), context: context.clone() };
            (Companion, arguments)
        });
        self.children.start(Child::Companion(companion), spec);
    }

    fn membership_changed(&mut self, channel: Option<ChannelId>) {
        let running: Vec<_> = self.children.running().map(|(child, _)| child.clone()).collect();
        for child in running {
            if let Child::Channel(id) = child
                && channel.as_ref().is_none_or(|changed| *changed == id)
                && let Some(actor) = self.context.directory.find(&ChannelActorKey(id))
            {
                // A channel that is being restarted reads the change when it starts.
                let _ = actor.cast(ChannelMessage::MembershipChanged);
            }
        }
        if let Some(channel) = channel {
            self.open(channel);
        }
    }

    fn close(&mut self, channel: &ChannelId) {
        self.wanted.remove(channel);
        self.end_suspension(channel);
        self.in_flight.remove(channel);
        if let Some(actor) = self.children.dismiss(&Child::Channel(channel.clone())) {
            actor.kill();
        }
        if let Some(actor) = self.children.dismiss(&Child::VoiceCall(channel.clone())) {
            actor.stop(None);
        }
        self.context.calls.close(channel);
        self.budgets.ledger().promise_statements(channel, 0);
    }

    fn prune(&self) {
        self.budgets.ledger().prune(self.context.clock.now());
    }

    fn handle_report(&mut self, report: Option<Report<Child>>) -> Result<(), ActorProcessingErr> {
        match report {
            None | Some(Report::Started { .. }) => {}
            Some(Report::Restarting { child, ending, after }) => {
                self.context.restarting(child.sort(), &child.to_string(), &ending, after);
                self.suspect(&child, &ending);
            }
            Some(Report::Ended { child: Child::VoiceCall(channel), .. }) => {
                self.context.calls.end(&channel);
                // A person may have joined the call in the meantime.
                if self.context.calls.get(&channel).is_some() {
                    self.open(channel);
                }
            }
            Some(Report::Ended { child, .. }) => {
                if let Child::Channel(channel) = child {
                    let in_flight = self.in_flight.remove(&channel);
                    // It may have died between promising a statement and posting it.
                    self.budgets.ledger().promise_statements(&channel, 0);
                    let is_wanted = self.wanted.remove(&channel);
                    if let Some(why) = in_flight.and_then(|in_flight| in_flight.take_unreadable()) {
                        self.suspend(channel, Cause::Unreadable, &why);
                    } else if is_wanted {
                        self.open(channel);
                    }
                }
            }
            Some(Report::Escalate { child, escalation }) => {
                let escalation = Escalation { child: child.to_string(), ..escalation };
                let ending = escalation.to_string();
                self.context.escalated(child.sort(), &escalation.child, &ending);
                if let Child::VoiceCall(channel) = &child {
                    // A call that cannot continue does not affect the guild.
                    self.context.calls.close(channel);
                    return Ok(());
                }
                if let Child::Channel(channel) = child
                    && self.in_flight.get(&channel).is_some_and(|in_flight| in_flight.died_restoring())
                {
                    self.suspend(channel, Cause::Died, &ending);
                    return Ok(());
                }
                self.children.kill_all();
                return Err(escalation.into());
            }
        }
        Ok(())
    }

    /// Counts a death of a channel. A message that keeps killing its channel becomes a dead letter before the guild fails as
    /// well.
    fn suspect(&mut self, child: &Child, ending: &Ending) {
        let Child::Channel(channel) = child else { return };
        let Some(seq) = self.in_flight.get(channel).and_then(|in_flight| in_flight.take_event()) else { return };
        if self.suspects.died(channel, seq) {
            let (guild, plain_channel, error) = (Plain(self.guild.as_str()), Plain(channel.as_str()), ending);
            tracing::error!(%guild, channel = %plain_channel, %seq, %error, "a message kills its handler and becomes a dead letter");
            self.add_dead_letter(channel.clone(), seq, ending.in_full());
        }
    }

    /// Suspends a channel that dies while it continues from its journal, or cannot read it. The cause is in that journal, so no
    /// other part of the guild is affected.
    fn suspend(&mut self, channel: ChannelId, cause: Cause, reason: &str) {
        let (guild, plain_channel, for_secs) = (Plain(self.guild.as_str()), Plain(channel.as_str()), SUSPENSION.as_secs());
        match cause {
            Cause::Died => tracing::error!(
                %guild,
                channel = %plain_channel,
                error = reason,
                for_secs,
                "this channel dies whenever it continues from its record and is suspended for a while; its accepted messages are stored. \
                 Release it or wait; if it keeps failing, restore a backup, or delete the room"
            ),
            Cause::Unreadable => tracing::error!(
                %guild,
                channel = %plain_channel,
                error = reason,
                for_secs,
                "this channel cannot continue because its record cannot be read. It is suspended and tried again after a while; its \
                 accepted messages are stored"
            ),
        }
        self.in_flight.remove(&channel);
        self.budgets.ledger().promise_statements(&channel, 0);
        let since = self.context.clock.now();
        let entry = Suspended {
            guild: self.guild.clone(),
            channel: channel.clone(),
            cause,
            reason: quarantine::shown(reason),
            since,
            until: since + SUSPENSION,
        };
        self.send_to_guilds(GuildsMessage::Suspended(self.myself.get_id(), entry));
        let retried = channel.clone();
        let timer = self.myself.send_after(SUSPENSION, move || GuildMessage::TryAgain(retried));
        self.suspended.insert(channel, timer.into());
    }

    /// False: the channel was not suspended.
    fn end_suspension(&mut self, channel: &ChannelId) -> bool {
        let was_suspended = self.suspended.remove(channel).is_some();
        if was_suspended {
            self.send_to_guilds(GuildsMessage::Resumed(channel.clone()));
        }
        was_suspended
    }

    /// If the supervisor is not running, this guild ends with it, and its successor retries all of its channels. So nothing needs
    /// to be sent then.
    fn send_to_guilds(&self, message: GuildsMessage) {
        if let Some(guilds) = self.context.directory.find(&GuildsKey()) {
            let _ = guilds.cast(message);
        }
    }

    fn add_dead_letter(&self, channel: ChannelId, seq: Seq, error: String) {
        let (channel_key, context) = (ChannelKey::new(&self.guild, &channel), self.context.clone());
        tokio::spawn(async move {
            // If the record is lost, the message kills three more handlers and is recorded then.
            if !dead_letters::put(&context, &channel_key, seq, &error).await {
                tracing::warn!(
                    channel = %Plain(channel_key.channel.as_str()),
                    %seq,
                    "a dead letter could not be recorded; it is tried again when the message has killed its handler again"
                );
            }
        });
    }
}

impl Child {
    const fn sort(&self) -> Sort {
        match self {
            Self::Companion(_) => Sort::Companion,
            Self::Channel(_) => Sort::Channel,
            Self::VoiceCall(_) => Sort::VoiceCall,
        }
    }
}

impl std::fmt::Display for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Companion(companion) => companion.fmt(f),
            Self::Channel(channel) => channel.fmt(f),
            Self::VoiceCall(channel) => write!(f, "the call of {channel}"),
        }
    }
}

/// The running channels of a guild.
fn channels_of(guild: &GuildId, context: &ActorContext) -> Vec<ActorCell> {
    let of_guild = context.memberships.all().into_iter().filter(|(_, membership)| membership.guild == *guild);
    of_guild.filter_map(|(channel, _)| Some(context.directory.find(&ChannelActorKey(channel))?.get_cell())).collect()
}

/// Wakes the channels of the guild that have pending work.
fn wake_pending(guild: GuildId, context: ActorContext, myself: ActorRef<GuildMessage>, predecessors: Vec<ActorCell>) {
    tokio::spawn(async move {
        // Until the predecessors have ended, accepted events are dispatched to them although they no longer handle them. Nothing
        // is lost, because events are journaled before they are dispatched.
        let ended = join_all(predecessors.iter().map(|channel| channel.wait(Some(SHUTDOWN_TIMEOUT))));
        if ended.await.iter().any(Result::is_err) {
            tracing::warn!(
                guild = %Plain(guild.as_str()),
                "a channel of a killed guild is still running; messages that are dispatched to it may be delayed"
            );
        }
        let pending = pending::of_ward(&context, Ward::of(&guild)).await;
        pending::wake_when_due(&context, pending.due.into_iter().filter(|(record, _)| record.guild == guild));
        for (index, record) in pending.channels.into_iter().filter(|record| record.guild == guild).enumerate() {
            if index % WOKEN_AT_ONCE == WOKEN_AT_ONCE - 1 {
                tokio::time::sleep(WAKE_PAUSE).await;
            }
            // A guild that is being restarted wakes them when it starts.
            let _ = myself.cast(GuildMessage::Open(record.channel));
        }
    });
}
