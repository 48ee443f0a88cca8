//! Dispatches accepted events to their channels, and wakes channels that are not running.

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::runtime::actor_keys::{ChannelActorKey, GuildKey, GuildsKey, SwitchboardKey};
use crate::actors::runtime::context::ActorContext;
use crate::actors::runtime::directory::{Registration, Sort};
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;
use crate::telemetry::instruments::kinds::Counted;

pub struct Switchboard;

pub struct State {
    context: ActorContext,
    _registration: Registration,
    _counted: Counted,
}

impl Actor for Switchboard {
    type Msg = SwitchboardMessage;
    type State = State;
    type Arguments = ActorContext;

    async fn pre_start(&self, myself: ActorRef<SwitchboardMessage>, context: ActorContext) -> Result<State, ActorProcessingErr> {
        let registration = context.directory.register(&SwitchboardKey(), &myself);
        let counted = context.recorder.instruments().actors.one([Sort::Switchboard.as_str()]);
        Ok(State { context, _registration: registration, _counted: counted })
    }

    async fn handle(
        &self,
        _: ActorRef<SwitchboardMessage>,
        message: SwitchboardMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SwitchboardMessage::Wake(guild, channel) => wake(guild, channel, &state.context),
        }
        Ok(())
    }
}

/// Dispatches an accepted event to its channel. A channel that is not running is woken, and reads the event from its record.
pub fn deliver(guild: &GuildId, channel: &ChannelId, recorded: Recorded, committed: Moment, context: &ActorContext) {
    let inbound = ChannelMessage::Inbound(Box::new(recorded), committed);
    let handed_over = context.directory.hand_over(&ChannelActorKey(channel.clone()), inbound);
    if !handed_over && let Some(switchboard) = context.directory.find(&SwitchboardKey()) {
        // If the switchboard is being restarted, the event is not lost: accepted events are pending.
        let _ = switchboard.cast(SwitchboardMessage::Wake(guild.clone(), channel.clone()));
    }
}

fn wake(guild: GuildId, channel: ChannelId, context: &ActorContext) {
    let opened = context
        .directory
        .find(&GuildKey(guild.clone()))
        .is_some_and(|actor| actor.cast(GuildMessage::Open(channel.clone())).is_ok());
    if !opened && let Some(guilds) = context.directory.find(&GuildsKey()) {
        // The same holds for the supervisor of the guilds.
        let _ = guilds.cast(GuildsMessage::Open(guild, Some(channel)));
    }
}
