//! What is said on a connection (Discord's documentation, "Gateway Events", "Send Events").

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::super::snowflake::Snowflake;
use super::session::Session;
use crate::ports::gateway::Shard;

/// Opcode 1: a heartbeat, with the newest event that came.
pub fn heartbeat(newest: Option<u64>) -> Value {
    json!({ "op": 1, "d": newest })
}

/// Opcode 2: a new session for a shard, told of these intents.
pub fn identify(token: &SecretString, shard: Shard, intents: u64, presence_words: Option<&str>) -> Value {
    let properties = json!({ "os": std::env::consts::OS, "browser": "tertulia", "device": "tertulia" });
    let mut data = json!({
        "token": token.expose_secret(),
        "properties": properties,
        "intents": intents,
        "shard": [shard.number, shard.of],
    });
    if presence_words.is_some() {
        data["presence"] = presence(presence_words);
    }
    json!({ "op": 2, "d": data })
}

/// Opcode 6: a session goes on after the last event that was accepted.
pub fn resume(token: &SecretString, session: &Session) -> Value {
    json!({ "op": 6, "d": { "token": token.expose_secret(), "session_id": session.id, "seq": session.accepted } })
}

/// Opcode 3: what stands below the bot's name from now on.
pub fn update_presence(words: Option<&str>) -> Value {
    json!({ "op": 3, "d": presence(words) })
}

/// Opcode 4: the bot is in this voice channel of a guild, or in none.
pub fn voice_state(guild: Snowflake, channel: Option<Snowflake>, is_muted: bool, is_deafened: bool) -> Value {
    json!({ "op": 4, "d": { "guild_id": guild, "channel_id": channel, "self_mute": is_muted, "self_deaf": is_deafened } })
}

/// What stands below the bot's name: a custom status, or nothing.
fn presence(words: Option<&str>) -> Value {
    const CUSTOM: u8 = 4;
    // Discord shows the state alone, but demands a name (Discord's documentation, "Gateway Events", "Activity Object").
    let activity = words.map(|words| json!({ "name": "Custom Status", "type": CUSTOM, "state": words }));
    json!({ "since": null, "activities": activity.into_iter().collect::<Vec<_>>(), "status": "online", "afk": false })
}
