//! Voice states, and the voice server of a call (Discord's documentation, "Voice Resource", "Gateway Events", "Voice").

use std::sync::Arc;

use secrecy::SecretString;
use serde::Deserialize;

use super::super::snowflake::Snowflake;
use super::lenient::maybe;
use super::message::User;

/// VOICE_STATE_UPDATE, and the entries of `voice_states` in GUILD_CREATE.
#[derive(Debug, Deserialize)]
pub struct VoiceState {
    /// Absent in GUILD_CREATE.
    pub guild_id: Option<Snowflake>,
    /// The voice channel. `None`: the user has left voice.
    pub channel_id: Option<Snowflake>,
    pub user_id: Snowflake,
    #[serde(default, deserialize_with = "maybe")]
    pub member: VoiceMember,
    /// The session of the user's gateway connection. A voice connection of the user must name it.
    pub session_id: SecretString,
    /// Whether a moderator muted the user.
    #[serde(default, deserialize_with = "maybe")]
    pub mute: bool,
    /// Whether a moderator deafened the user.
    #[serde(default, deserialize_with = "maybe")]
    pub deaf: bool,
    #[serde(default, deserialize_with = "maybe")]
    self_mute: bool,
    /// Whether the user is in the audience of a stage and may not speak.
    #[serde(default, deserialize_with = "maybe")]
    pub suppress: bool,
}

/// The member of a voice state.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VoiceMember {
    #[serde(default, deserialize_with = "maybe")]
    pub user: Option<User>,
    /// The nickname in this guild.
    #[serde(default, deserialize_with = "maybe")]
    pub nick: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub roles: Option<Arc<[Snowflake]>>,
}

impl VoiceState {
    /// Whether the user's audio is off: muted by the user or a moderator, or suppressed.
    pub const fn is_muted(&self) -> bool {
        self.mute || self.self_mute || self.suppress
    }
}

/// VOICE_SERVER_UPDATE.
#[derive(Clone, Debug, Deserialize)]
pub struct VoiceServer {
    pub token: SecretString,
    pub guild_id: Snowflake,
    /// The host and port. `None`: the server is gone, and Discord will name another one.
    pub endpoint: Option<String>,
}
