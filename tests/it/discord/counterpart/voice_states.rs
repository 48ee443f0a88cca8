//! Who is in which voice channel, and its JSON.
//!
//! <https://docs.discord.com/developers/resources/voice#voice-state-object>

use serde_json::{Value, json};

use super::voice::sessions::Seat;
use super::{Channel, Id, Permissions, World};

/// A user in a voice channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceState {
    pub guild: Id,
    pub channel: Id,
    pub user: Id,
    /// The session that joined. Of the bot, this is its session of the gateway.
    pub session: String,
    pub self_mute: bool,
    pub self_deaf: bool,
    /// Whether a moderator muted the user.
    pub mute: bool,
    /// Whether a moderator deafened the user.
    pub deaf: bool,
    /// Whether the user lacks the permission to speak, or is in the audience of a stage.
    pub suppress: bool,
}

impl VoiceState {
    pub fn seat(&self) -> Seat {
        Seat { channel: self.channel, user: self.user }
    }

    /// Whether the voice server sends the user nothing.
    pub fn is_deafened(&self) -> bool {
        self.self_deaf || self.deaf
    }

    /// The state in GUILD_CREATE: without its guild.
    pub fn partial_json(&self) -> Value {
        json!({
            "channel_id": self.channel,
            "user_id": self.user,
            "session_id": self.session,
            "deaf": self.deaf,
            "mute": self.mute,
            "self_deaf": self.self_deaf,
            "self_mute": self.self_mute,
            "self_video": false,
            "suppress": self.suppress,
            "request_to_speak_timestamp": null,
        })
    }

    /// The state in VOICE_STATE_UPDATE and over REST.
    pub fn json(&self, world: &World) -> Value {
        let mut json = self.partial_json();
        json["guild_id"] = json!(self.guild);
        let member = world.guilds.get(&self.guild).and_then(|guild| guild.members.get(&self.user));
        if let Some((member, user)) = member.zip(world.users.get(&self.user)) {
            json["member"] = member.json(user);
        }
        json
    }
}

impl World {
    /// The voice states of a guild.
    pub fn voice_states_of(&self, guild: Id) -> impl Iterator<Item = &VoiceState> {
        self.voice_states.values().filter(move |state| state.guild == guild)
    }

    /// Checks that a user can join a voice channel.
    ///
    /// # Errors
    ///
    /// Why not. Discord does not answer then.
    pub fn may_join(&self, channel: &Channel, user: Id) -> Result<(), &'static str> {
        let permissions = self.permissions(channel, user);
        let guild = channel.guild.ok_or("no channel of a guild")?;
        let here = |state: &&VoiceState| state.channel == channel.id && state.user != user;
        let is_full = channel.user_limit > 0 && self.voice_states_of(guild).filter(here).count() >= channel.user_limit;
        if !channel.kind.has_call() {
            Err("no voice channel")
        } else if !permissions.contains(Permissions::VIEW_CHANNEL | Permissions::CONNECT) {
            Err("the permission to view or to connect is missing")
        } else if is_full && !permissions.contains(Permissions::MOVE_MEMBERS) {
            Err("the channel is full")
        } else {
            Ok(())
        }
    }
}
