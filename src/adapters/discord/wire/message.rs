//! Messages, and their edits and deletions.

use serde::Deserialize;
use twilight_model::channel::AttachmentFlags;
use twilight_model::channel::message::{MessageFlags, MessageReferenceType, MessageType};

use super::super::names::shown;
use super::super::snowflake::Snowflake;
use super::lenient::{kind, list, maybe, maybe_kind};

/// The location of a message. It is parsed before the rest of the message.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct MessageLocation {
    pub id: Snowflake,
    /// The channel or thread.
    pub channel_id: Snowflake,
    /// The guild; none for a direct message.
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

/// The fields that show whether a MESSAGE_UPDATE is an edit. Discord also sends it for embeds, pins and flags.
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
    /// Whether the author edited the message. An event with only a part of the message is not an edit.
    pub const fn is_edit(&self) -> bool {
        self.edited_timestamp.is_some() && self.content.is_some() && self.author.is_some()
    }
}

/// A message as Discord sends it. Embeds are left out, except those of forwarded messages: they repeat links, or come from bots.
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
    /// The users that it mentions. The author of the answered message may be among them.
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
    /// The name that is unique on Discord. A webhook may use any name.
    #[serde(default, deserialize_with = "maybe")]
    pub username: String,
    /// The display name for all guilds.
    #[serde(default, deserialize_with = "maybe")]
    pub global_name: Option<String>,
    pub bot: Option<bool>,
    /// Whether it belongs to Discord itself.
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
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Attachment {
    #[serde(default, deserialize_with = "maybe")]
    pub filename: String,
    /// Its media type, `image/png`.
    #[serde(default, deserialize_with = "maybe")]
    pub content_type: String,
    #[serde(default, deserialize_with = "maybe")]
    pub size: u64,
    /// The sender's description: a picture's alternative text.
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

/// The emoji of a poll's answer: a character, or the name of one of the guild's own.
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

/// What a link or a bot shows in a box below a message.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Embed {
    #[serde(default, deserialize_with = "maybe")]
    pub title: String,
    #[serde(default, deserialize_with = "maybe")]
    pub description: String,
}

/// The sender of a message, as Discord reports it.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The author. For a message of a webhook: the webhook, with the name that it used.
    pub author: &'a User,
    /// The author's nickname in this guild.
    pub nick: Option<&'a str>,
    pub webhook: Option<Snowflake>,
    /// The application that owns the webhook, or that answered a command.
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

    /// The message that it forwards.
    pub fn forward(&self) -> Option<&Forwarded> {
        self.message_reference.as_ref().filter(|reference| reference.kind == Some(MessageReferenceType::Forward))?;
        self.message_snapshots.first().map(|snapshot| &snapshot.message)
    }

    /// Whether it forwards a message, or answers one that does.
    pub fn has_forward(&self) -> bool {
        self.forward().is_some() || self.referenced_message.as_ref().is_some_and(|answered| answered.forward().is_some())
    }

    /// Where the message is that it forwards: channel and message.
    pub fn forwarded_from(&self) -> Option<(Snowflake, Snowflake)> {
        self.forward()?;
        let reference = self.message_reference.as_ref()?;
        reference.channel_id.zip(reference.message_id)
    }

    /// The message that it answers: without it if it was deleted, or Discord did not look it up.
    pub fn answers(&self) -> Option<(Snowflake, Option<&Self>)> {
        // Other messages have references too: pins, and posts from another server.
        let reference = self.message_reference.as_ref().filter(|_| self.kind == MessageType::Reply)?;
        Some((reference.message_id?, self.referenced_message.as_deref()))
    }

    /// The name of a user that it mentions, or that the forwarded message does. The forwarding message itself lists no mentions.
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
