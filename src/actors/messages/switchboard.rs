//! Messages to the switchboard.

use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;

pub enum SwitchboardMessage {
    /// An event was accepted for a channel that is not running. The channel reads it when it starts.
    Wake(GuildId, ChannelId),
    /// A channel goes to sleep. With a moment: a companion may start a conversation there at that time.
    WakeAt(GuildId, ChannelId, Option<Moment>),
    /// The next sleeping channel may be due.
    Due,
}
