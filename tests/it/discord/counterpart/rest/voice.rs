//! Voice states over REST.
//!
//! <https://docs.discord.com/developers/resources/voice>

use super::super::{Id, Kind, Permissions, Refusal, State, Unknown};
use super::{Call, Reply, done, ok};

impl State {
    pub fn user_voice_state(&mut self, call: &Call) -> Reply {
        let (guild, user) = (call.id("guild"), call.id("user"));
        self.world.joined_guild(guild)?;
        let state = self.world.voice_states.get(&(guild, user)).ok_or_else(|| Refusal::unknown(Unknown::VoiceState))?;
        ok(state.json(&self.world))
    }

    /// The bot asks to speak on the stage on which it is in the audience. A moderator decides.
    pub fn ask_to_speak(&mut self, call: &Call) -> Reply {
        let (guild, bot) = (call.id("guild"), self.world.bot());
        self.world.joined_guild(guild)?;
        let state = self.world.voice_states.get(&(guild, bot)).ok_or_else(|| Refusal::unknown(Unknown::VoiceState))?;
        let channel = &self.world.channels[&state.channel];
        if Id::read(&call.body["channel_id"]) != Some(channel.id) || channel.kind != Kind::Stage {
            return Err(Refusal::new(400, 50024, "Cannot execute action on this channel type"));
        }
        if !call.body["request_to_speak_timestamp"].is_string() {
            return Err(Refusal::missing(&["request_to_speak_timestamp"]));
        }
        self.world.permitted(channel.id, Permissions::REQUEST_TO_SPEAK)?;
        done()
    }
}
