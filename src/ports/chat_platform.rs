//! A place where people talk that is not ours: what it can do, and how a companion's words get there, each at most once.
//!
//! The console needs none of this: there a statement is posted by being stored.

#[cfg(test)]
pub(crate) mod fake;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::backend::room::{is_of_console, platform_in};
use crate::domain::id::{ChannelId, CompanionId, GuildId};

/// What a platform can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest part of a statement that it takes, in UTF-16 code units.
    pub longest_part: usize,
    /// A request that was sent so long ago, nobody knows when, has arrived by now, or never will.
    pub request_timeout: Duration,
    /// How long a typing sign shows; none: it has none.
    pub typing_shows: Option<Duration>,
    /// People write there through this server, as in rooms of the console, and programs may play companions there. Else it is the platform that
    /// tells what is said.
    pub is_written_here: bool,
}

/// A part of a statement, small enough for its platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Whose channel.
    pub guild: GuildId,
    /// Where.
    pub channel: ChannelId,
    /// Who speaks.
    pub companion: CompanionId,
    /// Under which name.
    pub name: Arc<str>,
    /// Where its picture is, if it has one: an address with https.
    pub picture: Option<Arc<str>>,
    /// The words.
    pub text: Arc<str>,
    /// The same for the same part, whenever and however often it is sent; unique among all parts of all channels.
    pub nonce: Arc<str>,
}

/// Why a part was not sent, named for what is done next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// It was certainly not posted, and may be sent again.
    #[error("not now: {detail}")]
    Later {
        /// What the platform asked for, if it did.
        after: Option<Duration>,
        /// What happened.
        detail: String,
    },
    /// It may have been posted, or may still be: look before it is sent again.
    #[error("nobody knows: {detail}")]
    Unknown {
        /// What happened.
        detail: String,
        /// What was not posted after this time never will be.
        within: Duration,
    },
    /// The platform will not take it. It tells whoever runs the server, once for a channel.
    #[error("refused: {0}")]
    Refused(String),
    /// The same, and it would take no other words in this channel either, until somebody changes something there: no permission, no such
    /// channel.
    #[error("refused, as anything else would be: {0}")]
    Unpostable(String),
}

/// Why it cannot be read whether a part was posted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// Not now; ask again.
    #[error("not now: {detail}")]
    Later {
        /// What the platform asked for, if it did.
        after: Option<Duration>,
        /// What happened.
        detail: String,
    },
    /// Never: it may not be read here, or too much was posted since.
    #[error("it cannot be known: {0}")]
    Never(String),
}

/// A platform, as the core sees it.
#[async_trait]
pub trait ChatPlatform: Send + Sync + 'static {
    /// Its name in what is measured and told: `discord`.
    fn name(&self) -> &'static str;

    /// Whether a channel is one of its own.
    fn serves(&self, channel: &ChannelId) -> bool;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The platform's id of the newest message that it knows of in a channel, those on record among them, without asking anybody.
    fn newest(&self, channel: &ChannelId, on_record: &[Arc<str>]) -> Option<Arc<str>>;

    /// Posts a part: the platform's id of the message.
    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent>;

    /// Looks for a part among what was posted after this message: the platform's id of it, if it is there. Those that are taken are
    /// something else, whatever they say.
    async fn find(&self, part: &Part, after: Option<&str>, taken: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead>;

    /// Whether posting in a channel was refused lately in a way that concerns all words, and nothing is known to have changed since. False
    /// again once in a while, so that it is tried.
    fn is_unpostable(&self, channel: &ChannelId) -> bool {
        let _ = channel;
        false
    }

    /// What people call a channel, if that is known without asking anybody: `#general · Home`, `a post · #forum · Home`, `direct message
    /// with Ana`. Text from outside.
    fn title(&self, channel: &ChannelId) -> Option<String> {
        let _ = channel;
        None
    }

    /// Shows that a companion is writing. Whether it works is nobody's concern.
    async fn typing(&self, guild: &GuildId, channel: &ChannelId);
}

/// Whether a channel is a platform's own.
pub type Serves = fn(&ChannelId) -> bool;

/// The platforms besides the console. Cheap to clone.
#[derive(Clone, Default)]
pub struct Platforms {
    there: Arc<[Arc<dyn ChatPlatform>]>,
    away: Option<Serves>,
}

impl Platforms {
    /// These platforms.
    pub fn new(platforms: impl IntoIterator<Item = Arc<dyn ChatPlatform>>) -> Self {
        Self { there: platforms.into_iter().collect(), away: None }
    }

    /// The same, and the platform that serves these channels is not used now: they sleep until it is.
    pub fn without(self, away: Serves) -> Self {
        Self { away: Some(away), ..self }
    }

    /// The platform of a channel; none for one that posts by storing, as the console does.
    pub fn of(&self, channel: &ChannelId) -> Option<&Arc<dyn ChatPlatform>> {
        self.there.iter().find(|platform| platform.serves(channel))
    }

    /// The name of a channel's platform. One that posts by storing, or is not used now, has nothing but the channel's id to tell it.
    pub fn name<'a>(&self, channel: &'a ChannelId) -> &'a str {
        self.of(channel).map_or_else(|| platform_in(channel), |platform| platform.name())
    }

    /// Whether a channel belongs to a platform that is not used now: nothing can be posted there.
    pub fn is_away(&self, channel: &ChannelId) -> bool {
        self.of(channel).is_none() && self.away.is_some_and(|serves| serves(channel))
    }

    /// Whether people write in a channel [through this server](Capabilities::is_written_here).
    pub fn is_written_here(&self, channel: &ChannelId) -> bool {
        self.of(channel).map_or_else(|| is_of_console(channel), |platform| platform.capabilities().is_written_here)
    }
}

impl fmt::Debug for Platforms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Platforms").field("there", &self.there.len()).finish_non_exhaustive()
    }
}
