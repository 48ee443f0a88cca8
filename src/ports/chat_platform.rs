//! A chat platform outside this server: what it can do, and how statements are posted there, each part at most once.
//!
//! The console does not need this port: storing a statement posts it there.

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::backend::room::{is_of_console, platform_in};
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Seq};
use crate::settings::safety::Safety;
use crate::texts::{self, Language};

/// What a platform can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest part of a statement that it takes, in UTF-16 code units.
    pub longest_part: usize,
    /// A request that was sent this long ago has arrived by now, or never will.
    pub request_timeout: Duration,
    /// How long a typing indicator shows; none: the platform has no such indicator.
    pub typing_shows: Option<Duration>,
    /// People write there through this server, as in rooms of the console, and programs may play companions there. Otherwise the platform
    /// reports what people say.
    pub is_written_here: bool,
}

/// A part of a statement, small enough for its platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub guild: GuildId,
    /// The channel to post in.
    pub channel: ChannelId,
    pub companion: CompanionId,
    /// The display name under which it is posted.
    pub name: Arc<str>,
    /// The https URL of its picture, if it has one.
    pub picture: Option<Arc<str>>,
    /// The text, with the notice at most [`Capabilities::longest_part`] long.
    pub text: Arc<str>,
    /// What the server itself says below the text, in plain words, in the same message. The text is shorter by as much.
    pub notice: Option<Arc<str>>,
    /// An idempotency key: the same for every attempt to send this part, and unique among all parts of all channels.
    pub nonce: Arc<str>,
}

/// Why a part was not sent. Each variant is named for what the caller does next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// It was not posted, and may be sent again.
    #[error("not now: {detail}")]
    Later {
        /// The delay that the platform asked for, if it did.
        after: Option<Duration>,
        /// What happened, for logs.
        detail: String,
    },
    /// It may have been posted, or may still be posted later. Call [`ChatPlatform::find`] before it is sent again.
    #[error("the outcome is unknown: {detail}")]
    Unknown {
        /// What happened, for logs.
        detail: String,
        /// A part that is not posted after this time never will be.
        within: Duration,
    },
    /// The platform rejects this part. The platform reports that to the operator, once for each channel.
    #[error("refused: {0}")]
    Refused(String),
    /// The platform rejects this part, and would reject any other in this channel, until somebody changes something there: a permission is
    /// missing, or the channel does not exist.
    #[error("refused, as every other statement in this channel would be: {0}")]
    Unpostable(String),
}

/// Why it cannot be determined whether a part was posted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// Not now; call again.
    #[error("not now: {detail}")]
    Later {
        /// The delay the platform asked for, if it did.
        after: Option<Duration>,
        /// What happened, for logs.
        detail: String,
    },
    /// Never: the messages may not be read, or too many were posted since.
    #[error("it cannot be determined: {0}")]
    Never(String),
}

/// A chat platform, as the core uses it.
#[async_trait]
pub trait ChatPlatform: Send + Sync + 'static {
    /// Its name in metrics, logs and texts: `discord`.
    fn name(&self) -> &'static str;

    /// Whether a channel belongs to this platform.
    fn serves(&self, channel: &ChannelId) -> bool;

    /// Its limits and abilities.
    fn capabilities(&self) -> Capabilities;

    /// The platform's id of the newest message that it knows of in a channel, `on_record` included. It makes no request.
    fn newest(&self, channel: &ChannelId, on_record: &[Arc<str>]) -> Option<Arc<str>>;

    /// Posts a part. Returns the platform's id of the message.
    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent>;

    /// Looks for a part among the messages posted after `after`, and returns the platform's id of it, if it is there. Messages in `taken` are
    /// other parts, whatever their text.
    async fn find(&self, part: &Part, after: Option<&str>, taken: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead>;

    /// Replaces the text of a posted part, or deletes the part if there is no text. A part that is gone counts as deleted.
    async fn change(&self, guild: &GuildId, channel: &ChannelId, posted: &str, text: Option<&str>) -> Result<(), NotSent>;

    /// Whether posting in a channel was rejected lately in a way that concerns every message, and no change is known since. It returns false
    /// once in a while, so that posting is tried again.
    fn is_unpostable(&self, channel: &ChannelId) -> bool {
        let _ = channel;
        false
    }

    /// The display name of a channel, if it is known without a request: `#general · Home`, `a post · #forum · Home`, `direct message with Ana`.
    /// It is text from outside.
    fn title(&self, channel: &ChannelId) -> Option<String> {
        let _ = channel;
        None
    }

    /// What a channel is for, as people there describe it, if that is known without a request: for a thread, the topic of its channel. It is text
    /// from outside.
    fn topic(&self, channel: &ChannelId) -> Option<String> {
        let _ = channel;
        None
    }

    /// Offers somebody who may be at risk what only this person is to read (docs/design/safety.md N-10). The same message is offered once, however often
    /// this is called.
    ///
    /// # Errors
    /// See [`NotSent`].
    async fn offer_help(&self, _: &Help<'_>) -> Result<(), NotSent> {
        Ok(())
    }

    /// Shows that a companion is writing. Failures are ignored.
    async fn typing(&self, guild: &GuildId, channel: &ChannelId);
}

/// Help for somebody who may be at risk.
#[derive(Clone, Copy, Debug)]
pub struct Help<'a> {
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    pub person: &'a PersonId,
    /// The message that it is about.
    pub message: Seq,
    /// What is shown, in the language of the channel: where nobody else reads it, it is posted as it is.
    pub text: &'a str,
    /// Whether everybody in the channel is told that somebody was offered help.
    pub tell: bool,
}

/// What people are told on a platform: that companions are AI, who runs the server, and where the privacy text is.
pub fn notice(safety: &Safety, language: &str) -> String {
    let language = Language::of_code(language).unwrap_or_default();
    let operator = safety.operator.as_ref().map(|operator| language.say("notice.operator", &[("operator", operator)]));
    // In angle brackets it is an address without a preview below the message.
    let privacy =
        safety.privacy.as_ref().map(|privacy| language.say("notice.privacy", &[("privacy", &format_args!("<{privacy}>"))]));
    [Some(language.say("notice.ai", &[])), operator, privacy].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What somebody at risk is shown, in this language.
pub fn crisis_text(safety: &Safety, language: &str) -> String {
    safety.crisis_text.as_deref().map_or_else(|| texts::help(language), str::to_owned)
}

/// A predicate: whether a channel belongs to a platform.
pub type Serves = fn(&ChannelId) -> bool;

/// The platforms besides the console. Cheap to clone.
#[derive(Clone, Default)]
pub struct Platforms {
    enabled: Arc<[Arc<dyn ChatPlatform>]>,
    disabled: Arc<[Serves]>,
}

impl Platforms {
    /// The same set with one more platform.
    pub fn with(self, platform: Arc<dyn ChatPlatform>) -> Self {
        Self { enabled: self.enabled.iter().cloned().chain([platform]).collect(), ..self }
    }

    /// The same set, with a platform that is not in use now, given by the channels that it serves. Its channels sleep until it is.
    pub fn with_disabled(self, disabled: Serves) -> Self {
        Self { disabled: self.disabled.iter().copied().chain([disabled]).collect(), ..self }
    }

    /// The platform of a channel; none for a channel of the console, where storing a statement posts it.
    pub fn of(&self, channel: &ChannelId) -> Option<&Arc<dyn ChatPlatform>> {
        self.enabled.iter().find(|platform| platform.serves(channel))
    }

    /// The name of a channel's platform. For the console, or a platform that is not in use, it is taken from the channel's id.
    pub fn name<'a>(&self, channel: &'a ChannelId) -> &'a str {
        self.of(channel).map_or_else(|| platform_in(channel), |platform| platform.name())
    }

    /// Whether a channel belongs to a platform that is not in use now, so that nothing can be posted there.
    pub fn is_disabled(&self, channel: &ChannelId) -> bool {
        self.of(channel).is_none() && self.disabled.iter().any(|serves| serves(channel))
    }

    /// Whether people write in a channel [through this server](Capabilities::is_written_here).
    pub fn is_written_here(&self, channel: &ChannelId) -> bool {
        self.of(channel).map_or_else(|| is_of_console(channel), |platform| platform.capabilities().is_written_here)
    }
}
