//! Intents: the groups of events that a session can request.
//!
//! <https://docs.discord.com/developers/events/gateway#list-of-intents>

/// For events that need no intent.
pub const NONE: u64 = 0;
pub const GUILDS: u64 = 1 << 0;
pub const GUILD_MEMBERS: u64 = 1 << 1;
pub const GUILD_EXPRESSIONS: u64 = 1 << 3;
pub const GUILD_WEBHOOKS: u64 = 1 << 5;
pub const GUILD_PRESENCES: u64 = 1 << 8;
pub const GUILD_MESSAGES: u64 = 1 << 9;
pub const GUILD_MESSAGE_TYPING: u64 = 1 << 11;
pub const DIRECT_MESSAGES: u64 = 1 << 12;
pub const DIRECT_MESSAGE_TYPING: u64 = 1 << 14;
pub const MESSAGE_CONTENT: u64 = 1 << 15;

/// Intents that the application's owner must enable in the portal.
pub const PRIVILEGED: u64 = GUILD_MEMBERS | GUILD_PRESENCES | MESSAGE_CONTENT;
/// Every defined bit: 0 to 16, 20, 21, 24 and 25.
pub const KNOWN: u64 = ((1 << 17) - 1) | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25;
