//! Voice states over REST.
//!
//! <https://docs.discord.com/developers/resources/voice>

use super::super::{Id, Refusal, State, Unknown};
use super::{Call, Reply, ok};

impl State {
    pub fn current_voice_state(&mut self, call: &Call) -> Reply {
        let bot = self.world.bot();
        self.voice_state_of(call.id("guild"), bot)
    }

    pub fn user_voice_state(&mut self, call: &Call) -> Reply {
        self.voice_state_of(call.id("guild"), call.id("user"))
    }

    fn voice_state_of(&self, guild: Id, user: Id) -> Reply {
        self.world.joined_guild(guild)?;
        let state = self.world.voice_states.get(&(guild, user)).ok_or_else(|| Refusal::unknown(Unknown::VoiceState))?;
        ok(state.json(&self.world))
    }
}
