//! Channels of a platform that is not ours, and who says something there.

use super::world::World;
use crate::actors::inbound::Inbound;
use crate::domain::id::ChannelId;
use crate::domain::message::{Author, Modality, Role};
use crate::ports::hearing::{Hearing, Spot, Taken, Utterance};

pub(super) fn spot(guild: &str, channel: &str) -> Spot {
    Spot { guild: guild.into(), channel: channel.into(), parent: None }
}

/// The channel `discord:10` of the guild `discord:1`.
pub(super) fn general() -> Spot {
    spot("discord:1", "discord:10")
}

/// A thread in it.
pub(super) fn thread(id: &str) -> Spot {
    Spot { channel: id.into(), parent: Some(general().channel), ..general() }
}

/// A direct message with the bot.
pub(super) fn direct() -> Spot {
    spot("dm:discord:77", "discord:77")
}

/// Ana says something now, to nobody in particular.
pub(super) fn ana(world: &World, id: &str, text: &str) -> Utterance {
    Utterance {
        id: id.into(),
        from: Author { id: "discord:5".into(), name: "Ana".into(), role: Role::Person },
        text: text.into(),
        own_words: text.into(),
        modality: Modality::Text,
        lull_endpoint: false,
        at: world.context.clock.now(),
        mentions: Vec::new(),
        to_all: false,
        answers: None,
    }
}

/// It is said there, and new; in a direct message to everybody.
pub(super) async fn says(world: &World, spot: &Spot, utterance: Utterance) {
    let utterance = Utterance { to_all: spot.guild.as_str().starts_with("dm:"), ..utterance };
    let taken = Inbound::new(world.context.clone()).said(spot, utterance).await.unwrap();
    assert!(matches!(taken, Taken::New(_)), "people are taken in");
}

/// Whether a channel is one of those.
pub(super) fn is_of_discord(channel: &ChannelId) -> bool {
    channel.as_str().starts_with("discord:")
}
