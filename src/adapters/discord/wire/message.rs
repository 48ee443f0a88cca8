//! Messages, and their edits and deletions.

use serde::Deserialize;

use super::super::incoming::{self, RawMessage};
use super::super::snowflake::Snowflake;
use super::lenient::{Id, list, maybe};

/// The type of a message that answers another one.
const REPLY: u64 = 19;
/// The type of a reference to a forwarded message ("Message Reference Types").
const FORWARD: u64 = 1;
/// The flag of an attachment that is a spoiler.
const IS_SPOILER: u64 = 1 << 3;

/// The location of a message. It is parsed before the rest of the message.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct MessageLocation {
    pub id: Id,
    /// The channel or thread.
    pub channel_id: Id,
    /// The guild; none for a direct message.
    #[serde(default)]
    pub guild_id: Option<Id>,
}

/// MESSAGE_DELETE.
pub type MessageDeleted = MessageLocation;

/// MESSAGE_DELETE_BULK.
#[derive(Debug, Deserialize)]
pub struct MessagesDeleted {
    #[serde(default, deserialize_with = "list")]
    pub ids: Vec<Id>,
    pub channel_id: Id,
    #[serde(default)]
    pub guild_id: Option<Id>,
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

#[derive(Debug, Deserialize)]
pub struct Message {
    id: Id,
    #[serde(rename = "type", default)]
    kind: u64,
    #[serde(default)]
    flags: Option<u64>,
    author: User,
    #[serde(default, deserialize_with = "maybe")]
    member: Option<Member>,
    #[serde(default)]
    webhook_id: Option<Id>,
    #[serde(default)]
    application_id: Option<Id>,
    #[serde(default)]
    content: Option<String>,
    #[serde(default, deserialize_with = "list")]
    mentions: Vec<User>,
    #[serde(default, deserialize_with = "list")]
    mention_roles: Vec<Id>,
    #[serde(default, deserialize_with = "list")]
    attachments: Vec<Attachment>,
    #[serde(default, deserialize_with = "list")]
    sticker_items: Vec<Sticker>,
    #[serde(default, deserialize_with = "maybe")]
    poll: Option<Poll>,
    #[serde(default, deserialize_with = "maybe")]
    message_reference: Option<Reference>,
    #[serde(default, deserialize_with = "list")]
    message_snapshots: Vec<Snapshot>,
    #[serde(default, deserialize_with = "maybe")]
    referenced_message: Option<Referenced>,
}

/// A user, or a webhook as an author.
#[derive(Debug, Deserialize)]
pub(super) struct User {
    id: Id,
    #[serde(default, deserialize_with = "maybe")]
    username: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    global_name: Option<String>,
    #[serde(default)]
    bot: Option<bool>,
    #[serde(default)]
    system: Option<bool>,
    /// Present for mentioned users.
    #[serde(default, deserialize_with = "maybe")]
    member: Option<Member>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Member {
    #[serde(default, deserialize_with = "maybe")]
    nick: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Attachment {
    #[serde(default, deserialize_with = "maybe")]
    filename: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    content_type: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    size: Option<u64>,
    #[serde(default, deserialize_with = "maybe")]
    description: Option<String>,
    #[serde(default, deserialize_with = "maybe")]
    duration_secs: Option<f64>,
    #[serde(default, deserialize_with = "maybe")]
    flags: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Sticker {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Poll {
    question: Media,
    #[serde(default, deserialize_with = "list")]
    answers: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
struct Answer {
    poll_media: Media,
}

#[derive(Debug, Deserialize)]
struct Media {
    #[serde(default, deserialize_with = "maybe")]
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Reference {
    #[serde(rename = "type", default, deserialize_with = "maybe")]
    kind: Option<u64>,
    #[serde(default, deserialize_with = "maybe")]
    message_id: Option<Id>,
}

#[derive(Debug, Deserialize)]
struct Snapshot {
    message: Forwarded,
}

#[derive(Debug, Deserialize)]
struct Forwarded {
    #[serde(default, deserialize_with = "maybe")]
    content: Option<String>,
    #[serde(default, deserialize_with = "list")]
    attachments: Vec<Attachment>,
    #[serde(default, deserialize_with = "list")]
    sticker_items: Vec<Sticker>,
    #[serde(default, deserialize_with = "list")]
    mentions: Vec<User>,
}

#[derive(Debug, Deserialize)]
struct Referenced {
    author: User,
    #[serde(default, deserialize_with = "maybe")]
    member: Option<Member>,
    #[serde(default)]
    webhook_id: Option<Id>,
    #[serde(default)]
    application_id: Option<Id>,
}

impl Message {
    pub const fn id(&self) -> Snowflake {
        self.id.0
    }

    /// Whether it mentions this role.
    pub fn mentions_role(&self, role: Snowflake) -> bool {
        self.mention_roles.contains(&Id(role))
    }

    /// The name of a user that the forwarded message mentions. The forwarding message itself lists no mentions.
    pub fn forwarded_mention(&self, user: Snowflake) -> Option<String> {
        let mut mentioned = self.message_snapshots.iter().flat_map(|snapshot| &snapshot.message.mentions);
        Some(mentioned.find(|mentioned| mentioned.id.0 == user)?.as_incoming(None).shown())
    }

    /// The message in the form that [`incoming::classify`] takes.
    pub fn raw(&self) -> RawMessage<'_> {
        let is_forward = self.message_reference.as_ref().is_some_and(|reference| reference.kind == Some(FORWARD));
        RawMessage {
            id: self.id.0,
            // Larger types are as unknown as the largest one.
            kind: u8::try_from(self.kind).unwrap_or(u8::MAX),
            flags: self.flags.unwrap_or_default(),
            origin: origin(&self.author, self.member.as_ref(), self.webhook_id, self.application_id),
            content: self.content.as_deref().unwrap_or_default(),
            mentions: self.mentions.iter().map(|user| user.as_incoming(user.member.as_ref())).collect(),
            attachments: self.attachments.iter().map(Attachment::as_incoming).collect(),
            stickers: self.sticker_items.iter().map(|sticker| sticker.name.as_str()).collect(),
            poll: self.poll.as_ref().map(Poll::as_incoming),
            forward: self.message_snapshots.first().filter(|_| is_forward).map(|snapshot| snapshot.message.as_incoming()),
            answers: self.answers(),
        }
    }

    fn answers(&self) -> Option<incoming::Answers<'_>> {
        // Other messages have references too: pins, and posts from another server.
        let reference = self.message_reference.as_ref().filter(|_| self.kind == REPLY)?;
        let referenced = self.referenced_message.as_ref();
        let origin = referenced
            .map(|message| origin(&message.author, message.member.as_ref(), message.webhook_id, message.application_id));
        Some(incoming::Answers { message: reference.message_id?.0, origin })
    }
}

fn origin<'a>(
    author: &'a User,
    member: Option<&'a Member>,
    webhook: Option<Id>,
    application: Option<Id>,
) -> incoming::Origin<'a> {
    let (webhook, application) = (webhook.map(|id| id.0), application.map(|id| id.0));
    incoming::Origin { author: author.as_incoming(member), webhook, application }
}

impl User {
    pub(super) fn as_incoming<'a>(&'a self, member: Option<&'a Member>) -> incoming::User<'a> {
        incoming::User {
            id: self.id.0,
            username: self.username.as_deref().unwrap_or_default(),
            global_name: self.global_name.as_deref(),
            nick: member.and_then(|member| member.nick.as_deref()),
            bot: self.bot.unwrap_or_default(),
            system: self.system.unwrap_or_default(),
        }
    }
}

impl Attachment {
    fn as_incoming(&self) -> incoming::Attachment<'_> {
        incoming::Attachment {
            filename: self.filename.as_deref().unwrap_or_default(),
            content_type: self.content_type.as_deref(),
            size: self.size.unwrap_or_default(),
            description: self.description.as_deref(),
            duration_secs: self.duration_secs,
            is_spoiler: self.flags.is_some_and(|flags| flags & IS_SPOILER != 0),
        }
    }
}

impl Poll {
    fn as_incoming(&self) -> incoming::Poll<'_> {
        let question = self.question.text.as_deref().unwrap_or_default();
        incoming::Poll { question, answers: self.answers.iter().filter_map(|answer| answer.poll_media.text.as_deref()).collect() }
    }
}

impl Forwarded {
    fn as_incoming(&self) -> incoming::Forward<'_> {
        incoming::Forward {
            content: self.content.as_deref().unwrap_or_default(),
            attachments: self.attachments.iter().map(Attachment::as_incoming).collect(),
            stickers: self.sticker_items.iter().map(|sticker| sticker.name.as_str()).collect(),
        }
    }
}
