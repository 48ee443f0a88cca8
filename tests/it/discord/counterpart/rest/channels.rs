//! A channel over REST.
//!
//! <https://docs.discord.com/developers/resources/channel#get-channel>

use super::super::id::Id;
use super::super::state::State;
use super::{Reply, ok};

impl State {
    pub(super) fn channel(&self, channel: Id) -> Reply {
        ok(self.world.channel_json(self.world.permitted(channel, 0)?))
    }
}
