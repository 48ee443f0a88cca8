//! The payloads sent on a connection (Discord's documentation, "Gateway Events", "Send Events").

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use twilight_model::gateway::presence::{ActivityType, Status};
use twilight_model::gateway::{Intents, OpCode};

use super::super::snowflake::Snowflake;
use super::session::Session;
use crate::ports::gateway::Shard;

/// A heartbeat, with the number of the newest event that arrived.
pub fn heartbeat(newest: Option<u64>) -> Value {
    json!({ "op": OpCode::Heartbeat, "d": newest })
}

/// Starts a session for a shard with these intents.
pub fn identify(token: &SecretString, shard: Shard, intents: Intents, custom_status: Option<&str>) -> Value {
    let properties = json!({ "os": std::env::consts::OS, "browser": "tertulia", "device": "tertulia" });
    let mut data = json!({
        "token": token.expose_secret(),
        "properties": properties,
        "intents": intents,
        "shard": [shard.number, shard.of],
    });
    if custom_status.is_some() {
        data["presence"] = presence(custom_status);
    }
    json!({ "op": OpCode::Identify, "d": data })
}

/// Resumes a session after the last accepted event.
pub fn resume(token: &SecretString, session: &Session) -> Value {
    json!({ "op": OpCode::Resume, "d": { "token": token.expose_secret(), "session_id": session.id, "seq": session.accepted } })
}

/// Sets or removes the bot's custom status.
pub fn update_presence(custom_status: Option<&str>) -> Value {
    json!({ "op": OpCode::PresenceUpdate, "d": presence(custom_status) })
}

/// Moves the bot to this voice channel of a guild, or out of voice. The bot is neither muted nor deafened.
pub fn voice_state(guild: Snowflake, channel: Option<Snowflake>) -> Value {
    json!({ "op": OpCode::VoiceStateUpdate, "d": { "guild_id": guild, "channel_id": channel, "self_mute": false, "self_deaf": false } })
}

/// A presence with or without a custom status.
fn presence(custom_status: Option<&str>) -> Value {
    // Discord shows only the state, but requires a name (Discord's documentation, "Gateway Events", "Activity Object").
    let activity = custom_status.map(|text| json!({ "name": "Custom Status", "type": ActivityType::Custom, "state": text }));
    json!({ "since": null, "activities": activity.into_iter().collect::<Vec<_>>(), "status": Status::Online, "afk": false })
}
