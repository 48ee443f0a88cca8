//! Takes what was accepted to its channel, and has a channel woken that sleeps.

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::runtime::directory::{Registration, Sort};
use crate::actors::runtime::kit::Kit;
use crate::actors::runtime::places::{ChannelPlace, GuildPlace, GuildsPlace, SwitchboardPlace};
use crate::domain::event::Recorded;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;
use crate::telemetry::instruments::kinds::Counted;

/// The actor.
pub struct Switchboard;

/// What it keeps.
pub struct State {
    kit: Kit,
    _registration: Registration,
    _counted: Counted,
}

impl Actor for Switchboard {
    type Msg = SwitchboardMessage;
    type State = State;
    type Arguments = Kit;

    async fn pre_start(&self, myself: ActorRef<SwitchboardMessage>, kit: Kit) -> Result<State, ActorProcessingErr> {
        let registration = kit.directory.register(&SwitchboardPlace(), &myself);
        let counted = kit.recorder.instruments().actors.one([Sort::Switchboard.as_str()]);
        Ok(State { kit, _registration: registration, _counted: counted })
    }

    async fn handle(
        &self,
        _: ActorRef<SwitchboardMessage>,
        message: SwitchboardMessage,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SwitchboardMessage::Wake(guild, channel) => wake(guild, channel, &state.kit),
        }
        Ok(())
    }
}

/// Hands an accepted event to its channel. One that is not there reads it from the record once it is woken.
pub fn deliver(guild: &GuildId, channel: &ChannelId, recorded: Recorded, committed: Moment, kit: &Kit) {
    let heard = ChannelMessage::Heard(Box::new(recorded), committed);
    let handed_over = kit.directory.hand_over(&ChannelPlace(channel.clone()), heard);
    if !handed_over && let Some(switchboard) = kit.directory.find(&SwitchboardPlace()) {
        // A switchboard that is being restarted misses nothing for good: what is accepted is pending.
        let _ = switchboard.cast(SwitchboardMessage::Wake(guild.clone(), channel.clone()));
    }
}

fn wake(guild: GuildId, channel: ChannelId, kit: &Kit) {
    let opened = kit
        .directory
        .find(&GuildPlace(guild.clone()))
        .is_some_and(|actor| actor.cast(GuildMessage::Open(channel.clone())).is_ok());
    if !opened && let Some(guilds) = kit.directory.find(&GuildsPlace()) {
        // As above.
        let _ = guilds.cast(GuildsMessage::Open(guild, Some(channel)));
    }
}
