//! Parses Discord's objects leniently: a field that is not needed may be missing, unknown, or of another type.
//!
//! Fields that decide the sender and the recipients of a message are parsed strictly: an object without them is rejected. Source: Discord's
//! documentation, "Gateway Events", "Messages Resource", "Channels Resource", "Guild Resource".

mod guild;
mod lenient;
mod message;

#[cfg(test)]
mod tests;

pub use guild::{
    Changed, Channel, ChannelDeleted, Emoji, Emojis, Guild, GuildDeleted, Ready, Role, RoleChanged, RoleDeleted, Threads,
    WebhooksChanged,
};
pub use lenient::Id;
pub(super) use lenient::maybe;
pub use message::{Message, MessageDeleted, MessageLocation, MessagesDeleted, Update};
