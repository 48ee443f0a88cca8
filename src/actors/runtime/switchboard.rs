//! Dispatches accepted events to their channels, and wakes channels that are not running: for an event, or because a companion may start a
//! conversation there.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::time::Instant;

use crate::actors::messages::channel::{ChannelMessage, Received};
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::models::Models;
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey, GuildsKey, SwitchboardKey};
use crate::actors::runtime::context::{ActorContext, Registered};
use crate::actors::runtime::owned_task::OwnedTask;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;
use crate::settings::Settings;

/// The pause between two channels that are woken because a companion may start a conversation. After a restart, many may be overdue.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest timer. The machine's clock may be set while it runs.
const LONGEST_TIMER: Duration = Duration::from_secs(60);

pub struct Switchboard;

pub struct State {
    context: ActorContext,
    sleeping: Sleeping,
    /// Until then no further channel is woken.
    pause_until: Instant,
    timer: Option<OwnedTask>,
    _registration: Registered,
}

impl Actor for Switchboard {
    type Msg = SwitchboardMessage;
    type State = State;
    type Arguments = ActorContext;

    async fn pre_start(&self, myself: ActorRef<SwitchboardMessage>, context: ActorContext) -> Result<State, ActorProcessingErr> {
        let registration = context.register(&SwitchboardKey(), &myself);
        Ok(State {
            context,
            sleeping: Sleeping::default(),
            pause_until: Instant::now(),
            timer: None,
            _registration: registration,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<SwitchboardMessage>,
        message: SwitchboardMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SwitchboardMessage::Wake(guild, channel) => wake(guild, channel, &state.context),
            SwitchboardMessage::WakeAt(guild, channel, due) => {
                state.sleeping.set(guild, channel, due);
                state.arm(&myself);
            }
            SwitchboardMessage::Due => {
                let due = state.sleeping.take_due(state.context.clock.now());
                // A room that was deleted in the meantime is not woken.
                if let Some((guild, channel)) = due.filter(|(_, channel)| state.context.memberships.get(channel).is_some()) {
                    wake(guild, channel, &state.context);
                    state.pause_until = Instant::now() + PAUSE;
                }
                state.arm(&myself);
            }
        }
        Ok(())
    }
}

impl State {
    /// Sets the timer for the next sleeping channel.
    fn arm(&mut self, myself: &ActorRef<SwitchboardMessage>) {
        self.timer = self.sleeping.next().map(|due| {
            let pause = self.pause_until.saturating_duration_since(Instant::now());
            let span = due.since(self.context.clock.now()).clamp(pause, LONGEST_TIMER);
            myself.send_after(span, || SwitchboardMessage::Due).into()
        });
    }
}

/// The sleeping channels in which a companion may start a conversation, ordered by the time when it may.
#[derive(Default)]
struct Sleeping {
    due: BTreeSet<(Moment, ChannelId)>,
    channels: HashMap<ChannelId, (Moment, GuildId)>,
}

impl Sleeping {
    fn set(&mut self, guild: GuildId, channel: ChannelId, due: Option<Moment>) {
        if let Some((before, _)) = self.channels.remove(&channel) {
            self.due.remove(&(before, channel.clone()));
        }
        if let Some(due) = due {
            self.due.insert((due, channel.clone()));
            self.channels.insert(channel, (due, guild));
        }
    }

    fn next(&self) -> Option<Moment> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Removes and returns the channel that has been due for longest.
    fn take_due(&mut self, now: Moment) -> Option<(GuildId, ChannelId)> {
        self.next().filter(|due| *due <= now)?;
        let (_, channel) = self.due.pop_first()?;
        let (_, guild) = self.channels.remove(&channel)?;
        Some((guild, channel))
    }
}

/// Dispatches accepted events to their channel. A channel that is not running is woken, and reads the events from its record.
pub fn deliver(guild: &GuildId, channel: &ChannelId, inbound: ChannelMessage, context: &ActorContext) {
    let handed_over = context.directory.hand_over(&ChannelActorKey(channel.clone()), inbound);
    if !handed_over && let Some(switchboard) = context.directory.find(&SwitchboardKey()) {
        // If the switchboard is being restarted, the events are not lost: accepted events are pending.
        let _ = switchboard.cast(SwitchboardMessage::Wake(guild.clone(), channel.clone()));
    }
}

/// Replaces the models. Companions that back off from the old models stop waiting.
pub fn replace_models(settings: Settings, models: Models, context: &ActorContext) {
    context.pool.replace(settings.models.clone(), models);
    context.put_in_force(settings);
    for (channel, _) in context.memberships.all() {
        // A sleeping channel has no companion that backs off.
        context.directory.hand_over(&ChannelActorKey(channel), ChannelMessage::Received(Received::ModelsReplaced));
    }
}

fn wake(guild: GuildId, channel: ChannelId, context: &ActorContext) {
    let opened = context
        .directory
        .find(&GuildKey(guild.clone()))
        .is_some_and(|actor| actor.cast(GuildMessage::Open(channel.clone())).is_ok());
    if !opened && let Some(guilds) = context.directory.find(&GuildsKey()) {
        // A supervisor that is being restarted opens pending channels when it starts.
        let _ = guilds.cast(GuildsMessage::Open(guild, Some(channel)));
    }
}
