//! Parses Discord's objects leniently: an optional field may be missing, unknown, or of another type.
//!
//! Fields that decide the sender and the recipients of a message are parsed strictly: an object without them is rejected. Source: Discord's
//! documentation, "Gateway Events", "Messages Resource", "Channels Resource", "Guild Resource", "Application Resource".

mod access;
mod application;
mod guild;
mod lenient;
mod message;
mod voice;

#[cfg(test)]
mod tests;

pub use access::{Server, ServerChannel, ServerMember, ServerRole};
pub use application::{Application, Bot, GatewayBot, Ready, SessionStartLimit, WithId};
pub use guild::{
    Changed, Channel, ChannelDeleted, Emoji, Emojis, Guild, GuildDeleted, Role, RoleChanged, RoleDeleted, Threads,
    WebhooksChanged,
};
pub(super) use lenient::maybe;
#[cfg(test)]
pub use message::{Answer, Media, PollEmoji, Reference, Snapshot};
pub use message::{
    Attachment, Embed, Forwarded, Member, Message, MessageDeleted, MessageLocation, MessagesDeleted, Origin, Poll, Reaction,
    Sticker, Update, User,
};
pub use voice::{VoiceMember, VoiceServer, VoiceState};
