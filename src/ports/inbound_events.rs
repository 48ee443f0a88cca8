//! Inbound events of platforms other than the console: messages, edits, deletions, and channels and guilds that are gone.
//!
//! The adapter delivers the events of one channel in order, one at a time. After `Ok` the event is committed. Ids are the platform's. If the same
//! event is delivered twice, it is recorded once.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::chat_platform::Serves;
use super::companion_setup::Base64;
use crate::domain::attachment::{Attachment, DESCRIPTION_CHARS, MOST_FILES};
use crate::domain::event::Gap;
use crate::domain::id::{ChannelId, GuildId, PersonId, Seq};
use crate::domain::message::{Author, Modality, Quoted, Role, Sender, Standing};
use crate::domain::moment::Moment;

/// The channel of an inbound event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRef {
    /// The guild. For a direct message it is `dm:<channel>`.
    pub guild: GuildId,
    /// The channel or thread.
    pub channel: ChannelId,
    /// The channel that contains a thread or a forum post. `None` for other channels.
    pub parent: Option<ChannelId>,
}

/// A message from a platform or a client. As JSON it is the body of a request to the console, which cannot set every field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundMessage {
    /// The platform's id of the message, or the sender's own, of 1 to 128 characters. A message with a known `id` is a duplicate.
    #[schemars(length(min = 1, max = 128))]
    pub id: Option<Arc<str>>,
    /// The author. In a request it is the name, of 1 to 64 characters. At least one character must be visible, and control and bidirectional
    /// formatting characters are not allowed. On the console the name is also the person's id.
    #[serde(deserialize_with = "person")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub from: Author,
    /// The text as a model reads it. In a request it has at most `server.max_text_chars` characters, at least one of them visible, and no control
    /// characters except `\n` and `\t`.
    #[schemars(length(min = 1))]
    pub text: Arc<str>,
    /// The text that the author wrote, if it differs from `text`. Only this text is searched for names.
    #[serde(skip)]
    pub own_words: Option<Arc<str>>,
    #[serde(skip)]
    pub modality: Modality,
    /// Whether this is a voice utterance that ends a lull (docs/design/gate.md G-4): the adapter knows that the speaker has finished.
    #[serde(skip)]
    pub lull_endpoint: bool,
    /// When the message was written or spoken, if that is known better than by its arrival. The time is by this machine's clock, not the
    /// platform's. A moment in the future counts as now.
    #[serde(skip)]
    pub said_at: Option<Moment>,
    /// The mentioned people and companions, by author id or by a companion's name. A request can have at most 64, each of 1 to 64 characters.
    /// `@name` in the text counts, too.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    pub mentions: Vec<Arc<str>>,
    /// Whether the message addresses all companions that are present. It does so if it mentions their shared account, or is a direct message to
    /// that account. If a message in a guild mentions the account and names companions that are present, it addresses only these.
    #[serde(skip)]
    pub to_all: bool,
    /// The `seq` of the message that this one replies to.
    #[schemars(with = "Option<Seq>")]
    pub reply_to: Option<ReplyTo>,
    /// The kind of an event that must be acknowledged, such as a raid or a new subscription (docs/design/gate.md G-33): 1 to 32 lower-case letters
    /// a-z, digits and _. The author is the person in the event.
    #[serde(skip)]
    pub kind: Option<Arc<str>>,
    /// Whether the author may address companions.
    #[serde(skip)]
    pub standing: Standing,
    /// The length of the voice note that the message is.
    #[serde(skip)]
    pub voice_note: Option<Duration>,
    /// Who sends it to a room of the console, whatever its author's name. `None`: it is unknown, so that the name is only a label.
    #[serde(skip)]
    pub sender: Option<Sender>,
    /// Its files. `text` describes each in a line ([`attachment`](crate::domain::attachment)).
    #[serde(skip)]
    pub attachments: Vec<Attachment>,
    /// Whether it is only there to be read, such as a vote in a poll: no companion is asked about it.
    #[serde(default)]
    pub background: bool,
    /// Pictures and text files for the message. With them, `text` may be empty. A body with files needs a `Content-Length`.
    #[serde(default, rename = "files")]
    #[schemars(length(max = MOST_FILES))]
    pub uploads: Vec<Upload>,
    /// The files whose bytes are stored with the message. File n belongs to the attachment with the id n.
    #[serde(skip)]
    pub files: Vec<StoredFile>,
}

/// A file in a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upload {
    /// The file's name, of which 80 characters are kept.
    #[serde(default)]
    pub name: Arc<str>,
    /// What a picture shows, in up to 300 characters: for people who cannot see it, and for models that read no pictures.
    #[serde(default)]
    #[schemars(length(max = DESCRIPTION_CHARS))]
    pub description: Arc<str>,
    /// Whether a picture is hidden until somebody clicks it. Models do not get it then.
    #[serde(default)]
    pub spoiler: bool,
    /// The bytes: a PNG, JPEG, WebP or GIF of up to 4 MiB and 4,096 pixels a side, or UTF-8 text of up to 64 KiB. A voice note is a message of nothing
    /// but an Ogg with Opus of up to two minutes.
    pub data: Base64,
}

/// A file that is stored with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The media type with which it is served.
    pub media_type: Arc<str>,
    pub bytes: Arc<[u8]>,
}

impl InboundMessage {
    /// A typed message without an id, mentions and a reply.
    pub fn new(from: Author, text: Arc<str>) -> Self {
        Self { from, text, ..Self::default() }
    }
}

fn person<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Author, D::Error> {
    Arc::deserialize(deserializer).map(Author::of_name)
}

/// The message that an inbound message replies to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Seq")]
pub enum ReplyTo {
    /// A message on record.
    Recorded(Seq),
    /// A message of the platform, which need not be on record: its id, and its author and beginning if the platform reports them. If a
    /// companion wrote it, `by` has only the name under which it was posted.
    Foreign { id: Arc<str>, by: Option<Answered>, quoted: Option<Quoted> },
}

impl From<Seq> for ReplyTo {
    fn from(seq: Seq) -> Self {
        Self::Recorded(seq)
    }
}

impl ReplyTo {
    /// The number of the message, if it is on record.
    pub const fn recorded(&self) -> Option<Seq> {
        match self {
            Self::Recorded(seq) => Some(*seq),
            Self::Foreign { .. } => None,
        }
    }
}

/// The author of a message that is replied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// A companion, with the name under which the message was posted. `None`: it had no name.
    Ours(Option<Arc<str>>),
    /// Another author, with id and role.
    Other(Arc<str>, Role),
}

/// The result of delivering an inbound message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The message was recorded under this number.
    New(Seq),
    /// The message was already on record under this number.
    Duplicate(Seq),
    /// The message was not recorded: the channel has no members, the author has opted out, the text is not visible, or the author is a bot that
    /// `gate.foreign_bots` does not admit.
    Ignored,
}

/// A change of the reactions on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReactionChange {
    /// The platform's id of the message.
    pub message: Arc<str>,
    /// The person. `None`: all people, for a removal.
    pub by: Option<PersonId>,
    /// The emoji, or `:name:` for one of a server. `None`: all emojis, for a removal.
    pub emoji: Option<Arc<str>>,
    pub removed: bool,
}

/// The progress of the record in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The platform's id of the newest recorded message that was received from the channel, if there is one. Statements of companions do not count,
    /// because they are recorded whether or not a connection is up.
    pub newest: Option<Arc<str>>,
    /// Since when the channel has members.
    pub since: Moment,
}

/// The delay before a retry after a temporary failure.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why an inbound event was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InboundError {
    /// The event cannot be accepted at present, or the outcome is unknown. Deliver it again.
    #[error("not now: {detail}")]
    Later {
        /// The delay before the retry.
        after: Duration,
        /// The cause.
        detail: String,
    },
    /// The event cannot be accepted, because of an internal error. The error has been logged.
    #[error("{0}")]
    Broken(String),
}

impl InboundError {
    /// Creates an internal error, and logs it.
    pub fn not_recorded(detail: &str) -> Self {
        tracing::error!(detail, "an inbound event cannot be put on record");
        Self::Broken("the record cannot be read or written; the server's log says more".into())
    }
}

/// The core, as seen by adapters that receive events.
#[async_trait]
pub trait InboundEvents: Send + Sync + 'static {
    /// Whether messages of this channel may be accepted. The channel must have members, or get some with its first message: a
    /// thread from its parent, a direct message from the settings. The content of other channels is not stored anywhere.
    fn listens(&self, channel_ref: &ChannelRef) -> bool;

    /// The people who have opted out in the guild of this channel. Their messages must not be delivered, even as quotes in the messages of others.
    fn opted_out(&self, channel_ref: &ChannelRef) -> HashSet<PersonId>;

    /// The progress of the record in a channel. `None`: the channel has no members.
    async fn reached(&self, channel_ref: &ChannelRef) -> Result<Option<Reached>, InboundError>;

    /// Accepts a message. A message without visible content is ignored. An old message is recorded, but no longer answered (docs/design/gate.md
    /// G-22, `gate.stale_after_secs`).
    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError>;

    /// Accepts the new text of a message. If the new text has no visible content, the message is deleted. The edit changes nothing if the message
    /// already has this text, is a companion's statement (only the server can change those), or is by a person who has opted out. Of a message that
    /// is not on record, only the quotes in other messages change.
    async fn edited(&self, channel_ref: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError>;

    /// Accepts deletions. The messages are removed from buffers and history. Of messages that are not on record, only the quotes in other messages
    /// are removed. If any part of a statement is deleted, the whole statement is, because text that a moderator removed must not be read again. This
    /// fails while a statement is being posted to which one of the messages may belong. The deletion must then be delivered again.
    async fn deleted(&self, channel_ref: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError>;

    /// Accepts a change of the reactions on a companion's statement. It is not recorded for other messages, for statements followed by many events,
    /// for people who have opted out, and beyond the bounds for a statement and a person.
    async fn reacted(&self, channel_ref: &ChannelRef, change: ReactionChange) -> Result<(), InboundError>;

    /// Reports that a channel was read after a downtime: `read` messages were delivered, and `missed` was skipped. It is recorded only if
    /// messages were read or a gap was left, and the same gap only once.
    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Gap>) -> Result<(), InboundError>;

    /// Reports that a channel was deleted, with all messages in it and in its threads.
    async fn channel_gone(&self, guild: &GuildId, channel: &ChannelId) -> Result<(), InboundError>;

    /// Reports that the bot is no longer in a guild. Work in progress there is cancelled. The records are kept in case the bot returns.
    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError>;

    /// The guilds, including direct messages, in which one of these channels has members, ordered by id.
    fn guilds(&self, channels: Serves) -> Vec<GuildId>;
}
