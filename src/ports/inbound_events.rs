//! The way in for platforms that are not ours: what was said there, changed and taken back.
//!
//! Whoever hears hands over what happened in one channel in its order, one thing after the other; what is `Ok` is committed. Ids are the
//! platform's, and the same thing twice is once on record.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::chat_platform::Serves;
use crate::domain::id::{ChannelId, GuildId, Seq};
use crate::domain::message::{Author, Modality, Role};
use crate::domain::moment::Moment;

/// Where something was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelRef {
    /// The guild; of a direct message `dm:<channel>`.
    pub guild: GuildId,
    /// The channel or thread.
    pub channel: ChannelId,
    /// The channel that a thread or a forum post is in.
    pub parent: Option<ChannelId>,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundMessage {
    /// The platform's id of it.
    pub id: Arc<str>,
    /// Who said it, as the platform knows them: `discord:<user>`.
    pub from: Author,
    /// What a model reads.
    pub text: Arc<str>,
    /// What was really written: names are looked for in this alone.
    pub own_words: Arc<str>,
    /// Typed or spoken.
    pub modality: Modality,
    /// A voice utterance that ends a lull (docs/design/gate.md G-4): whoever hears knows that the speaker has finished.
    pub lull_endpoint: bool,
    /// When it was said, by this machine's clock, whatever the platform's says; a moment that is still to come counts as now.
    pub at: Moment,
    /// Whom it mentions, as ids like those of authors.
    pub mentions: Vec<Arc<str>>,
    /// It turns to all companions that are there: it mentions the account that they share, or was said to that alone. One that mentions the
    /// account in a guild and names companions that are there turns to these only.
    pub to_all: bool,
    /// What it answers.
    pub answers: Option<Answers>,
}

/// What an utterance answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// The platform's id of the message; it need not be on record.
    pub message: Arc<str>,
    /// Whose it is, where the platform tells.
    pub by: Option<Answered>,
}

/// Whose a message is that is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// A companion's, under the name that it bore; none: it bore none.
    Ours(Option<Arc<str>>),
    /// Somebody else's: the id and what they are.
    Other(Arc<str>, Role),
}

/// What became of an utterance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// It is on record under this number.
    New(Seq),
    /// It was on record already.
    Known(Seq),
    /// It is not taken in: nobody lives there, the person is not to be heard, or foreign bots are not.
    Not,
}

/// How far a channel is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The platform's id of the newest message on record that was heard there, if there is one: not of what companions said, which is on
    /// record whether or not anybody listened.
    pub newest: Option<Arc<str>>,
    /// Since when somebody lives there.
    pub since: Moment,
}

/// What was left out when a channel was read after a downtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The platform's id of the message after which something is missing.
    pub after: Arc<str>,
    /// The platform's id before which something is missing.
    pub before: Arc<str>,
    /// Why, as a stable code: `too_many`, `too_old`, `refused`, `nothing_shown`, `unreachable`.
    pub why: &'static str,
}

/// Why something was not taken; it may be handed over again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InboundError {
    /// Not at the moment, or nobody knows whether it was.
    #[error("not now: {detail}")]
    Later {
        /// How long to wait.
        after: Duration,
        /// What is in the way.
        detail: String,
    },
    /// It will never be: something of ours is broken, and was logged where it broke.
    #[error("{0}")]
    Broken(String),
}

/// The core, as whoever hears sees it.
#[async_trait]
pub trait InboundEvents: Send + Sync + 'static {
    /// Whether anything that is said here may be taken in: somebody lives there, in the channel that a thread is in, or would in a direct
    /// message. What is said elsewhere is nobody's business, and is kept nowhere.
    fn listens(&self, channel_ref: &ChannelRef) -> bool;

    /// How far a channel is on record; none: nobody lives there.
    async fn reached(&self, channel_ref: &ChannelRef) -> Result<Option<Reached>, InboundError>;

    /// Takes in what was said. What says nothing visible is not taken in; what was said long ago is, and answered no more (docs/design/gate.md G-22,
    /// `gate.stale_after_secs`).
    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError>;

    /// A message reads otherwise now; with nothing visible left it is taken back. One that is not on record, or reads so already, changes
    /// nothing; neither does what we said ourselves, which nobody else can change, or what a person said who is not to be heard.
    async fn edited(&self, channel_ref: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError>;

    /// Messages were taken back: they leave buffers and history. Those that are not on record change nothing. A statement of several parts
    /// goes as a whole with any of them: what a moderator took away must not be read on. While one is on its way, of which this may be a
    /// part, it has to be handed over again.
    async fn deleted(&self, channel_ref: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError>;

    /// A channel was read after a downtime: so many messages were handed over, and this was left out. That nothing was missed is not put on
    /// record; the same gap is, once.
    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Missed>) -> Result<(), InboundError>;

    /// A channel is gone for good, and with it what was said in it and in its threads.
    async fn channel_gone(&self, guild: &GuildId, channel: &ChannelId) -> Result<(), InboundError>;

    /// The bot is in a guild no more: what goes on there ends. What is on record stays, should it come back.
    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError>;

    /// Every guild in which somebody lives in one of these channels, direct messages among them, in the order of ids.
    fn guilds(&self, channels: Serves) -> Vec<GuildId>;
}
