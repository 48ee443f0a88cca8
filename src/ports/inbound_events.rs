//! Inbound events of other platforms: messages, edits and deletions.
//!
//! The adapter hands over the events of one channel in their order, one at a time. After `Ok` the event is committed. Ids are the
//! platform's. The same event handed over twice is recorded once.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::chat_platform::Serves;
use crate::domain::event::Gap;
use crate::domain::id::{ChannelId, GuildId, PersonId, Seq};
use crate::domain::message::{Author, Modality, Quoted, Role};
use crate::domain::moment::Moment;

/// The channel of an inbound event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRef {
    /// The guild; of a direct message `dm:<channel>`.
    pub guild: GuildId,
    /// The channel or thread.
    pub channel: ChannelId,
    /// The channel that a thread or a forum post is in.
    pub parent: Option<ChannelId>,
}

/// A message from outside. As JSON it is the body of a request of the console, which cannot set every field.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InboundMessage {
    /// The platform's id of the message, or the sender's own, of 1 to 128 characters. The same `id` again is the same message.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    pub id: Option<Arc<str>>,
    /// The author. In a request: the name, of 1 to 64 characters, at least one of them visible, none of them a control or bidirectional formatting
    /// character; on the console it is also the person's id.
    #[serde(deserialize_with = "person")]
    #[schemars(with = "String", length(min = 1, max = 64))]
    pub from: Author,
    /// The text as a model reads it. In a request: at least one visible character, no control characters but `\n` and `\t`, at most
    /// `server.max_text_chars` characters.
    #[schemars(length(min = 1))]
    pub text: Arc<str>,
    /// The text that the author wrote, if it differs from `text`. Only this is searched for names.
    #[serde(skip)]
    pub own_words: Option<Arc<str>>,
    #[serde(skip)]
    pub modality: Modality,
    /// A voice utterance that ends a lull (docs/design/gate.md G-4): the adapter knows that the speaker has finished.
    #[serde(skip)]
    pub lull_endpoint: bool,
    /// When it was said, by this machine's clock and not the platform's, if that is known better than by its arrival. A moment in the future
    /// counts as now.
    #[serde(skip)]
    pub said_at: Option<Moment>,
    /// The mentioned people and companions, by author id or by a companion's name. In a request: at most 64, each 1 to 64 characters. `@name` in the
    /// text counts, too.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)))]
    pub mentions: Vec<Arc<str>>,
    /// It addresses all companions that are present: it mentions the account that they share, or is a direct message to that account. A message
    /// that mentions the account in a guild and names companions that are present addresses only these.
    #[serde(skip)]
    pub to_all: bool,
    /// The message that it replies to: its `seq`.
    #[serde(default)]
    #[schemars(with = "Option<Seq>")]
    pub reply_to: Option<ReplyTo>,
    /// For an event that must be acknowledged, such as a raid or a new subscription (docs/design/gate.md G-33): its kind, of 1 to 32 lower-case
    /// letters a-z, digits and _. The author is the person that it is about.
    #[serde(skip)]
    pub kind: Option<Arc<str>>,
}

impl InboundMessage {
    /// Typed words without an id, which mention and answer nobody.
    pub fn new(from: Author, text: Arc<str>) -> Self {
        let (id, own_words, reply_to, kind, said_at) = (None, None, None, None, None);
        let (modality, lull_endpoint, mentions, to_all) = (Modality::Text, false, Vec::new(), false);
        Self { id, from, text, own_words, modality, lull_endpoint, said_at, mentions, to_all, reply_to, kind }
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
    /// A message of the platform, which need not be on record: its id, and its author and its beginning, where the platform reports them. The author of
    /// a companion's message has no id here.
    Foreign { id: Arc<str>, by: Option<Answered>, quoted: Option<Quoted> },
}

impl From<Seq> for ReplyTo {
    fn from(seq: Seq) -> Self {
        Self::Recorded(seq)
    }
}

impl ReplyTo {
    /// The number of the message, if it is one on record.
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
    /// A companion, with the name under which the message was posted; none: it had no name.
    Ours(Option<Arc<str>>),
    /// Somebody else, with id and role.
    Other(Arc<str>, Role),
}

/// What happened to an inbound message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It was recorded under this number.
    New(Seq),
    /// It was on record already, under this number.
    Duplicate(Seq),
    /// It was not recorded: no companion is a member, the person has opted out, or it comes from a foreign bot, and those are ignored.
    Ignored,
}

/// How far a channel is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The platform's id of the newest message on record that was received from there, if there is one. Statements of companions do not count:
    /// they are on record whether or not a connection was up.
    pub newest: Option<Arc<str>>,
    /// When the first of the current members joined.
    pub since: Moment,
}

/// When the caller should retry after a temporary failure.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why an inbound event was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InboundError {
    /// Not now, or the outcome is unknown: hand it over again.
    #[error("not now: {detail}")]
    Later {
        /// The time to wait before that.
        after: Duration,
        /// What prevents it.
        detail: String,
    },
    /// It never will be: something on our side is broken. It was logged where it broke.
    #[error("{0}")]
    Broken(String),
}

impl InboundError {
    /// An internal error. Logs it.
    pub fn not_recorded(detail: &str) -> Self {
        tracing::error!(detail, "an inbound event cannot be put on record");
        Self::Broken("the record cannot be read or written; the server's log says more".into())
    }
}

/// The core, as an adapter that receives events sees it.
#[async_trait]
pub trait InboundEvents: Send + Sync + 'static {
    /// Whether messages of this channel may be accepted: a companion is a member of it, or of the channel that a thread is in, or would become
    /// one in a direct message. The content of other channels is not stored anywhere.
    fn listens(&self, channel_ref: &ChannelRef) -> bool;

    /// The people who opted out where this channel is: nothing that they wrote is handed over, whoever repeats it.
    fn opted_out(&self, channel_ref: &ChannelRef) -> HashSet<PersonId>;

    /// How far a channel is on record; none: it has no members.
    async fn reached(&self, channel_ref: &ChannelRef) -> Result<Option<Reached>, InboundError>;

    /// Accepts a message. One without visible content is ignored. One that was said long ago is recorded but no longer answered
    /// (docs/design/gate.md G-22, `gate.stale_after_secs`).
    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError>;

    /// Accepts the new text of a message. A message without visible content left is deleted. The edit changes nothing if the message is not on
    /// record, reads so already, is a companion's statement (only we can change those), or is by a person who has opted out.
    async fn edited(&self, channel_ref: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError>;

    /// Accepts deletions: the messages leave buffers and history. Messages that are not on record change nothing. If any part of a statement is
    /// deleted, the whole statement is: what a moderator removed must not be read again. While a statement is being posted that the message may
    /// be a part of, this fails and has to be handed over again.
    async fn deleted(&self, channel_ref: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError>;

    /// Reports that a channel was read after a downtime: `read` messages were handed over, and `missed` was left out. It is recorded only if
    /// something was missed, and the same gap only once.
    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Gap>) -> Result<(), InboundError>;

    /// A channel was deleted, and with it everything that was said in it and in its threads.
    async fn channel_gone(&self, guild: &GuildId, channel: &ChannelId) -> Result<(), InboundError>;

    /// The bot is no longer in a guild: work in progress there ends. The records stay, in case it comes back.
    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError>;

    /// The guilds in which one of these channels has members, direct messages included, ordered by id.
    fn guilds(&self, channels: Serves) -> Vec<GuildId>;
}
