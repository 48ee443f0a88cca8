//! Channels of a platform that is not ours, and messages there.

use super::world::World;
use crate::actors::inbound::Inbound;
use crate::domain::id::ChannelId;
use crate::domain::message::{Author, Role};
use crate::ports::inbound_events::{Acceptance, ChannelRef, InboundEvents, InboundMessage};

pub(super) fn channel_ref(guild: &str, channel: &str) -> ChannelRef {
    ChannelRef { guild: guild.into(), channel: channel.into(), parent: None }
}

/// The channel `discord:10` of the guild `discord:1`.
pub(super) fn general() -> ChannelRef {
    channel_ref("discord:1", "discord:10")
}

/// A thread in it.
pub(super) fn thread(id: &str) -> ChannelRef {
    ChannelRef { channel: id.into(), parent: Some(general().channel), ..general() }
}

/// A direct message with the bot.
pub(super) fn direct() -> ChannelRef {
    channel_ref("dm:discord:77", "discord:77")
}

/// A message by Ana, sent now and addressed to nobody.
pub(super) fn ana(world: &World, id: &str, text: &str) -> InboundMessage {
    let from = Author { id: "discord:5".into(), name: "Ana".into(), role: Role::Person };
    let said_at = Some(world.context.clock.now());
    InboundMessage { id: Some(id.into()), said_at, ..InboundMessage::new(from, text.into()) }
}

/// Delivers a message that must be new. In a direct message it addresses every companion.
pub(super) async fn deliver(world: &World, channel_ref: &ChannelRef, inbound_message: InboundMessage) {
    let inbound_message = InboundMessage { to_all: channel_ref.guild.as_str().starts_with("dm:"), ..inbound_message };
    let taken = Inbound::new(world.context.clone()).said(channel_ref, inbound_message).await.unwrap();
    assert!(matches!(taken, Acceptance::New(_)), "the message is accepted");
}

/// Whether it is a channel of Discord.
pub(super) fn is_of_discord(channel: &ChannelId) -> bool {
    channel.as_str().starts_with("discord:")
}
