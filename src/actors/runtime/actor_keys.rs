//! The key of each type of actor: its address in the directory, and the type of its messages.

use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::companion::DecisionRequest;
use crate::actors::messages::guild::GuildMessage;
use crate::actors::messages::guilds::GuildsMessage;
use crate::actors::messages::models::PoolMessage;
use crate::actors::messages::platforms::PlatformsMessage;
use crate::actors::messages::shard::ShardMessage;
use crate::actors::messages::switchboard::SwitchboardMessage;
use crate::actors::messages::turn_taking_manager::ManagerMessage;
use crate::actors::messages::voice_call::{CallMessage, RecognitionMessage, VoiceUserMessage};
use crate::actors::messages::writer::WriterMessage;
use crate::actors::runtime::directory::{ActorKey, Address};
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId};

macro_rules! actor_keys {
    ($($(#[$doc:meta])* $name:ident($($field:ident: $type:ty),*) => $address:expr, $message:ty;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug)]
            pub struct $name($(pub $type),*);

            impl ActorKey for $name {
                type Message = $message;

                fn address(&self) -> Address {
                    let Self($($field),*) = self;
                    $address
                }
            }
        )+
    };
}

actor_keys! {
    WriterKey() => Address::Writer, WriterMessage;
    PoolKey() => Address::SideModels, PoolMessage;
    SwitchboardKey() => Address::Switchboard, SwitchboardMessage;
    GuildsKey() => Address::Guilds, GuildsMessage;
    /// The supervisor of the connections to platforms.
    PlatformsKey() => Address::Platforms, PlatformsMessage;
    /// A connection to a platform: the platform's name, and the number of the connection.
    ShardKey(platform: &'static str, number: u32) => Address::Shard(platform, *number), ShardMessage;
    GuildKey(guild: GuildId) => Address::Guild(guild.clone()), GuildMessage;
    /// A companion in a guild.
    CompanionKey(guild: GuildId, companion: CompanionId) => Address::Companion(guild.clone(), companion.clone()), DecisionRequest;
    ChannelActorKey(channel: ChannelId) => Address::Channel(channel.clone()), ChannelMessage;
    /// The turn-taking manager of a channel. It exists while a round is open.
    TurnTakingManagerKey(channel: ChannelId) => Address::TurnTakingManager(channel.clone()), ManagerMessage;
    VoiceCallKey(channel: ChannelId) => Address::VoiceCall(channel.clone()), CallMessage;
    /// The actor that decodes a person's audio in a call.
    VoiceUserKey(channel: ChannelId, user: PersonId) => Address::VoiceUser(channel.clone(), user.clone()), VoiceUserMessage;
    /// The actor that recognises a person's speech.
    RecognitionKey(channel: ChannelId, user: PersonId) => Address::Recognition(channel.clone(), user.clone()), RecognitionMessage;
}
