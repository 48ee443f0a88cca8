//! What can happen, whoever causes it: the world changes and everybody who is concerned is told.
//!
//! <https://docs.discord.com/developers/events/gateway-events#receive-events>

mod channels;
mod guilds;
mod messages;

pub use messages::Said;
