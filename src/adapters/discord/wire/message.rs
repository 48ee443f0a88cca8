//! Messages, and their edits and deletions.

use serde::Deserialize;
use twilight_model::channel::AttachmentFlags;
use twilight_model::channel::message::{MessageFlags, MessageReferenceType, MessageType};

use super::super::names::{plain, shown};
use super::super::snowflake::Snowflake;
use super::lenient::{kind, list, maybe, maybe_kind};

/// The limit of characters of an emoji that consists of several.
const MAX_EMOJI_CHARS: usize = 32;

/// The location of a message. It is parsed before the rest of the message.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct MessageLocation {
    pub id: Snowflake,
    /// The channel or thread.
    pub channel_id: Snowflake,
    /// The guild. `None` for a direct message.
    pub guild_id: Option<Snowflake>,
}

/// MESSAGE_DELETE.
pub type MessageDeleted = MessageLocation;

/// MESSAGE_DELETE_BULK.
#[derive(Debug, Deserialize)]
pub struct MessagesDeleted {
    #[serde(default, deserialize_with = "list")]
    pub ids: Vec<Snowflake>,
    pub channel_id: Snowflake,
    pub guild_id: Option<Snowflake>,
}

/// MESSAGE_REACTION_ADD, MESSAGE_REACTION_REMOVE, and the removal of all reactions or of all with one emoji, which name no user.
#[derive(Debug, Deserialize)]
pub struct Reaction {
    pub channel_id: Snowflake,
    pub message_id: Snowflake,
    pub guild_id: Option<Snowflake>,
    pub user_id: Option<Snowflake>,
    #[serde(default, deserialize_with = "maybe")]
    member: ReactingMember,
    #[serde(default, deserialize_with = "maybe")]
    emoji: Option<ReactionEmoji>,
}

#[derive(Debug, Default, Deserialize)]
struct ReactingMember {
    user: Option<User>,
}

#[derive(Debug, Deserialize)]
struct ReactionEmoji {
    id: Option<Snowflake>,
    /// `None` for a deleted emoji of a server.
    name: Option<String>,
}

impl Reaction {
    /// Whether a bot reacted. Discord does not say that of a removal.
    pub fn is_by_bot(&self) -> bool {
        self.member.user.as_ref().is_some_and(|user| user.bot == Some(true))
    }

    /// The emoji, or `:name:` for one of a server, cleaned.
    pub fn emoji(&self) -> Option<String> {
        let emoji = self.emoji.as_ref()?;
        let name = emoji.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        Some(match (emoji.id, name) {
            (Some(_), name) => format!(":{}:", plain(name.unwrap_or("unknown"))),
            (None, name) => plain(name.unwrap_or_default()).chars().take(MAX_EMOJI_CHARS).collect(),
        })
    }
}

/// The fields that distinguish an edit among MESSAGE_UPDATE events. Discord sends this event also for embeds, pins and flags.
#[derive(Debug, Deserialize)]
pub struct Update {
    #[serde(default, deserialize_with = "maybe")]
    edited_timestamp: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    content: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    author: Option<User>,
}

impl Update {
    /// Whether the author edited the message. A partial event is not an edit.
    pub const fn is_edit(&self) -> bool {
        self.edited_timestamp.is_some() && self.content.is_some() && self.author.is_some()
    }
}

/// A message as Discord sends it. Embeds are omitted except in forwarded messages, because they repeat links or come from bots.
#[derive(Clone, Debug, Deserialize)]
pub struct Message {
    pub id: Snowflake,
    /// Most types report events, such as a new member.
    #[serde(rename = "type", default = "regular", deserialize_with = "kind")]
    pub kind: MessageType,
    pub flags: Option<MessageFlags>,
    pub author: User,
    #[serde(default, deserialize_with = "maybe")]
    pub member: Member,
    pub webhook_id: Option<Snowflake>,
    pub application_id: Option<Snowflake>,
    pub content: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub edited_timestamp: Option<String>,
    /// The mentioned users. The author of the message being replied to may be among them.
    #[serde(default, deserialize_with = "list")]
    pub mentions: Vec<User>,
    #[serde(default, deserialize_with = "list")]
    pub mention_roles: Vec<Snowflake>,
    #[serde(default, deserialize_with = "list")]
    pub attachments: Vec<Attachment>,
    #[serde(default, deserialize_with = "list")]
    pub sticker_items: Vec<Sticker>,
    #[serde(default, deserialize_with = "maybe")]
    pub poll: Option<Poll>,
    #[serde(default, deserialize_with = "maybe")]
    pub message_reference: Option<Reference>,
    #[serde(default, deserialize_with = "list")]
    pub message_snapshots: Vec<Snapshot>,
    #[serde(default, deserialize_with = "maybe")]
    pub referenced_message: Option<Box<Message>>,
}

const fn regular() -> MessageType {
    MessageType::Regular
}

/// A user, or a webhook as an author.
#[derive(Clone, Debug, Deserialize)]
pub struct User {
    pub id: Snowflake,
    /// The unique name on Discord. A webhook may use any name.
    #[serde(default, deserialize_with = "maybe")]
    pub username: String,
    /// The display name for all guilds.
    #[serde(default, deserialize_with = "maybe")]
    pub global_name: Option<String>,
    pub bot: Option<bool>,
    /// Whether the user is Discord itself.
    pub system: Option<bool>,
    /// Present for mentioned users.
    #[serde(default, deserialize_with = "maybe")]
    pub member: Member,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Member {
    /// The nickname in this guild.
    #[serde(default, deserialize_with = "maybe")]
    pub nick: Option<String>,
    /// The roles in this guild. Absent in messages that were requested.
    #[serde(default, deserialize_with = "maybe")]
    pub roles: Option<Vec<Snowflake>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Attachment {
    #[serde(default, deserialize_with = "maybe")]
    pub id: Option<Snowflake>,
    /// Where Discord serves it. The address expires.
    #[serde(default, deserialize_with = "maybe")]
    pub url: String,
    /// In pixels, for a picture.
    #[serde(default, deserialize_with = "maybe")]
    pub width: Option<u32>,
    #[serde(default, deserialize_with = "maybe")]
    pub height: Option<u32>,
    #[serde(default, deserialize_with = "maybe")]
    pub filename: String,
    /// The media type, such as `image/png`.
    #[serde(default, deserialize_with = "maybe")]
    pub content_type: String,
    #[serde(default, deserialize_with = "maybe")]
    pub size: u64,
    /// The sender's description, such as a picture's alternative text.
    #[serde(default, deserialize_with = "maybe")]
    pub description: String,
    /// The length of a voice message, in seconds.
    #[serde(default, deserialize_with = "maybe")]
    pub duration_secs: Option<f64>,
    #[serde(default, deserialize_with = "maybe")]
    pub flags: Option<AttachmentFlags>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Sticker {
    pub name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Poll {
    pub question: Media,
    #[serde(default, deserialize_with = "list")]
    pub answers: Vec<Answer>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Answer {
    pub poll_media: Media,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Media {
    #[serde(default, deserialize_with = "maybe")]
    pub text: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    pub emoji: Option<PollEmoji>,
}

/// The emoji of a poll's answer: a character, or the name of a custom emoji of the guild.
#[derive(Clone, Debug, Deserialize)]
pub struct PollEmoji {
    #[serde(default, deserialize_with = "maybe")]
    pub name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Reference {
    #[serde(rename = "type", default, deserialize_with = "maybe_kind")]
    pub kind: Option<MessageReferenceType>,
    #[serde(default, deserialize_with = "maybe")]
    pub message_id: Option<Snowflake>,
    #[serde(default, deserialize_with = "maybe")]
    pub channel_id: Option<Snowflake>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Snapshot {
    pub message: Forwarded,
}

/// A forwarded message. Discord does not report its author.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Forwarded {
    #[serde(default, deserialize_with = "maybe")]
    pub content: String,
    #[serde(default, deserialize_with = "list")]
    pub attachments: Vec<Attachment>,
    #[serde(default, deserialize_with = "list")]
    pub sticker_items: Vec<Sticker>,
    #[serde(default, deserialize_with = "list")]
    pub mentions: Vec<User>,
    #[serde(default, deserialize_with = "maybe")]
    pub flags: Option<MessageFlags>,
    #[serde(default, deserialize_with = "maybe")]
    pub poll: Option<Poll>,
    #[serde(default, deserialize_with = "list")]
    pub embeds: Vec<Embed>,
}

/// A box below a message, with a link's preview or a bot's content.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Embed {
    #[serde(default, deserialize_with = "maybe")]
    pub title: String,
    #[serde(default, deserialize_with = "maybe")]
    pub description: String,
}

/// The fields that identify a message's sender.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The author. For a webhook's message, the webhook under the name that it used.
    pub author: &'a User,
    /// The author's nickname in this guild.
    pub nick: Option<&'a str>,
    pub webhook: Option<Snowflake>,
    /// The application that owns the webhook or answered a command.
    pub application: Option<Snowflake>,
}

impl Message {
    pub fn content(&self) -> &str {
        self.content.as_deref().unwrap_or_default()
    }

    pub fn origin(&self) -> Origin<'_> {
        let nick = self.member.nick.as_deref();
        Origin { author: &self.author, nick, webhook: self.webhook_id, application: self.application_id }
    }

    /// The forwarded message, if this message forwards one.
    pub fn forward(&self) -> Option<&Forwarded> {
        self.message_reference.as_ref().filter(|reference| reference.kind == Some(MessageReferenceType::Forward))?;
        self.message_snapshots.first().map(|snapshot| &snapshot.message)
    }

    /// Whether this message, or the one that it replies to, forwards a message.
    pub fn has_forward(&self) -> bool {
        self.forward().is_some() || self.referenced_message.as_ref().is_some_and(|answered| answered.forward().is_some())
    }

    /// The channel and the id of the forwarded message.
    pub fn forwarded_from(&self) -> Option<(Snowflake, Snowflake)> {
        self.forward()?;
        let reference = self.message_reference.as_ref()?;
        reference.channel_id.zip(reference.message_id)
    }

    /// The message that this one replies to: its id, and the message itself unless it was deleted or Discord did not look it up.
    pub fn answers(&self) -> Option<(Snowflake, Option<&Self>)> {
        // Other messages have references, too: pins, and posts from other servers.
        let reference = self.message_reference.as_ref().filter(|_| self.kind == MessageType::Reply)?;
        Some((reference.message_id?, self.referenced_message.as_deref()))
    }

    /// The name of a user that is mentioned in this message or in the message that it forwards. Discord lists no mentions for the
    /// forwarding message itself.
    pub fn mentioned(&self, user: Snowflake) -> Option<String> {
        if let Some(listed) = self.mentions.iter().find(|mentioned| mentioned.id == user) {
            return Some(listed.shown(listed.member.nick.as_deref()));
        }
        let mut forwarded = self.message_snapshots.iter().flat_map(|snapshot| &snapshot.message.mentions);
        Some(forwarded.find(|mentioned| mentioned.id == user)?.shown(None))
    }
}

impl User {
    /// The name that people in this guild see, cleaned.
    pub fn shown(&self, nick: Option<&str>) -> String {
        shown([nick, self.global_name.as_deref(), Some(&*self.username)].into_iter().flatten(), self.id)
    }
}
