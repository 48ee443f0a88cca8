//! Discord's objects as they come, read leniently: what is not needed may be missing, new, or of another kind.
//!
//! What decides whose a message is and whom it is for is read strictly: an object in which that cannot be read is none. The pages that
//! are followed are Discord's documentation, "Gateway Events", "Messages Resource", "Channels Resource", "Guild Resource".

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
