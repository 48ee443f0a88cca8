//! Changes to the world, caused by the test or by a client. Each change sends its events to the sessions that it concerns.
//!
//! <https://docs.discord.com/developers/events/gateway-events#receive-events>

mod channels;
mod guilds;
mod messages;
mod voice;
