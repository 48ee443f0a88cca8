//! A chat platform outside this server: its capabilities, and posting statements on it, each part at most once.
//!
//! The console does not need this port: a statement of the console is posted when it is stored.

#[cfg(any(test, feature = "samples"))]
pub mod fake;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use tokio::time::sleep;

use super::backend::room::{is_of_console, platform_in};
use crate::domain::attachment::Attachment;
#[cfg(doc)]
use crate::domain::attachment::MOST_BYTES;
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Seq, Ticket};
use crate::domain::tools::built_in::Poll;
use crate::settings::safety::Safety;
use crate::texts::{self, Language};

/// The capabilities of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest part of a statement that the platform accepts, in UTF-16 code units.
    pub longest_part: usize,
    /// After this time, a sent request has either arrived or never will.
    pub request_timeout: Duration,
    /// How long a typing indicator is shown. `None`: the platform has no typing indicator.
    pub typing_shows: Option<Duration>,
    /// Whether people write there through this server, as in rooms of the console, and external companions can take part. If false, the platform
    /// reports the messages of people.
    pub is_written_here: bool,
}

/// A part of a statement, small enough for its platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub guild: GuildId,
    /// The channel to post in.
    pub channel: ChannelId,
    pub companion: CompanionId,
    /// The display name under which the part is posted.
    pub name: Arc<str>,
    /// The https URL of the companion's picture, if it has one.
    pub picture: Option<Arc<str>>,
    /// The text. Together with the notice it has at most [`Capabilities::longest_part`] UTF-16 code units. Empty: the notice of a statement that was
    /// spoken, posted by the server's own account.
    pub text: Arc<str>,
    /// A plain-text notice of the server below the text, in the same message. The text is shorter by its length.
    pub notice: Option<Arc<str>>,
    /// An idempotency key. It is the same for every attempt to send this part, and unique among all parts of all channels.
    pub nonce: Arc<str>,
}

/// Why a part was not sent. Each variant corresponds to the caller's next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// The part was not posted, and may be sent again.
    #[error("not now: {detail}")]
    Later {
        /// The delay that the platform asked for, if it did.
        after: Option<Duration>,
        /// The error, for logs.
        detail: String,
    },
    /// The part may have been posted, or may still be posted later. Call [`ChatPlatform::find`] before sending it again.
    #[error("the outcome is unknown: {detail}")]
    Unknown {
        /// The error, for logs.
        detail: String,
        /// The part will not be posted after this time.
        within: Duration,
    },
    /// The platform rejects this part. The adapter reports that to the operator, once for each channel.
    #[error("refused: {0}")]
    Refused(String),
    /// The platform rejects this part, and would reject every other part in this channel until a person changes the channel: a permission is
    /// missing, or the channel does not exist.
    #[error("refused, as every other statement in this channel would be: {0}")]
    Unpostable(String),
}

/// Why it is unknown whether a part was posted, or why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRead {
    /// It cannot be read at present; call again.
    #[error("not now: {detail}")]
    Later {
        /// The delay that the platform asked for, if it did.
        after: Option<Duration>,
        /// The error, for logs.
        detail: String,
    },
    /// It will never be readable: a permission is missing, the file is refused, or too many messages were posted since.
    #[error("it cannot be determined: {0}")]
    Never(String),
}

impl NotRead {
    /// It cannot be read at present, for this reason.
    pub fn later(detail: impl ToString) -> Self {
        Self::Later { after: None, detail: detail.to_string() }
    }
}

/// The interface of a chat platform.
#[async_trait]
pub trait ChatPlatform: Send + Sync + 'static {
    /// The platform's name in metrics, logs and texts: `discord`.
    fn name(&self) -> &'static str;

    /// Whether a channel belongs to this platform.
    fn serves(&self, channel: &ChannelId) -> bool;

    /// The platform's limits and abilities.
    fn capabilities(&self) -> Capabilities;

    /// The platform's id of the newest known message in a channel, including those in `on_record`. It makes no request.
    fn newest(&self, channel: &ChannelId, on_record: &[Arc<str>]) -> Option<Arc<str>>;

    /// Posts a part. Returns the platform's id of the message.
    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent>;

    /// Looks for a part among the messages posted after `after`. Returns the platform's id of the message if the part is found. Messages in `taken`
    /// belong to other parts, whatever their text.
    async fn find(&self, part: &Part, after: Option<&str>, taken: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead>;

    /// Replaces the text of a posted part and the notice below it, or deletes the part if `text` is `None`. A part that does not exist any more counts
    /// as deleted.
    async fn change(
        &self,
        guild: &GuildId,
        channel: &ChannelId,
        posted: &str,
        text: Option<&str>,
        notice: Option<&str>,
    ) -> Result<(), NotSent>;

    /// Whether posting in a channel was rejected recently in a way that affects every message, and no change is known since. It returns false from
    /// time to time, so that posting is tried again.
    fn is_unpostable(&self, _: &ChannelId) -> bool {
        false
    }

    /// The display name of a channel, if it is known without a request: `#general · Home`, `a post · #forum · Home`, `direct message with Ana`. The
    /// name is untrusted text.
    fn title(&self, _: &ChannelId) -> Option<String> {
        None
    }

    /// The topic of a channel, if it is known without a request. For a thread it is the topic of its channel. The topic is untrusted text.
    fn topic(&self, _: &ChannelId) -> Option<String> {
        None
    }

    /// Whether everybody in the guild can read a channel and its earlier messages, if it is known without a request. A channel with an age limit is
    /// not public.
    fn is_public(&self, _: &ChannelId) -> bool {
        false
    }

    /// The ids of a person's roles in a guild, as they are now. `None`: there are none, or they cannot be read.
    async fn roles(&self, _: &GuildId, _: &PersonId) -> Option<BTreeSet<Arc<str>>> {
        None
    }

    /// Offers a person who may be at risk a help text that only this person can read (docs/design/safety.md N-10). Repeated calls for one message
    /// offer it only once.
    ///
    /// # Errors
    /// Returns an error if the offer could not be sent; see [`NotSent`].
    async fn offer_help(&self, _: &Help<'_>) -> Result<(), NotSent> {
        Ok(())
    }

    /// Posts a text with two buttons of these labels, with which people confirm or decline the call of a tool (docs/design/tools.md X-15). Repeated
    /// calls post it only once.
    ///
    /// # Errors
    /// Returns an error if the offer could not be sent; see [`NotSent`].
    async fn offer_call(&self, _: &ChannelId, _: Ticket, _: &str, _: [&str; 2]) -> Result<(), NotSent> {
        Ok(())
    }

    /// Posts the poll of a call, which people answer on the platform. Repeated calls post it only once.
    ///
    /// # Errors
    /// Returns an error if it could not be sent; see [`NotSent`].
    async fn post_poll(&self, _: &ChannelId, _: Ticket, _: &Poll) -> Result<(), NotSent> {
        Ok(())
    }

    /// Posts a message of the server itself in a channel. Texts with the same nonce are posted only once.
    ///
    /// # Errors
    /// Returns an error if it could not be sent; see [`NotSent`].
    async fn announce(&self, _: &ChannelId, _: &str, _: &str) -> Result<(), NotSent> {
        Ok(())
    }

    /// Reads a file of the message with this id, of at most [`MOST_BYTES`], from the platform's own hosts only. `None`: the recording of a voice note.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    async fn file(&self, _: &ChannelId, _message: &str, _: Option<&Attachment>) -> Result<Vec<u8>, NotRead> {
        Err(NotRead::Never("this platform has no files".to_owned()))
    }

    /// Shows the author of a message that it stopped a statement in progress. Failures are ignored.
    async fn acknowledge_stop(&self, _: &ChannelId, _message: &str) {}

    /// Shows a typing indicator for a companion. Failures are ignored.
    async fn typing(&self, guild: &GuildId, channel: &ChannelId);
}

/// Sends a message of the server itself, at most five times. Sending it again after an error must be safe.
///
/// # Errors
/// Returns the last error.
pub async fn insist<'a>(send: impl Fn() -> BoxFuture<'a, Result<(), NotSent>>) -> Result<(), NotSent> {
    const TRIES: u32 = 5;
    const PAUSE: Duration = Duration::from_secs(2);
    let mut tried = 1;
    loop {
        let after = match send().await {
            Err(NotSent::Later { after, .. }) if tried < TRIES => after,
            Err(NotSent::Unknown { .. }) if tried < TRIES => None,
            outcome => return outcome,
        };
        sleep(after.unwrap_or_default().max(PAUSE * tried)).await;
        tried += 1;
    }
}

/// Help for a person who may be at risk.
#[derive(Clone, Copy, Debug)]
pub struct Help<'a> {
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    pub person: &'a PersonId,
    /// The message that caused the offer.
    pub message: Seq,
    /// The help text, in the language of the channel. Where no other person can read the channel, it is posted as it is.
    pub text: &'a str,
    /// Whether the channel shows everybody that help was offered.
    pub tell: bool,
}

/// The notice for people on a platform: companions are AI, whether they take notes, the operator of the server, and the address of the privacy text.
pub fn notice(safety: &Safety, takes_notes: bool, language: &str) -> String {
    let language = Language::of_code(language).unwrap_or_default();
    let operator = safety.operator.as_ref().map(|operator| language.say("notice.operator", &[("operator", operator)]));
    // In angle brackets, the address is shown without a preview below the message.
    let privacy =
        safety.privacy.as_ref().map(|privacy| language.say("notice.privacy", &[("privacy", &format_args!("<{privacy}>"))]));
    let notes = takes_notes.then(|| language.say("notice.notes", &[]));
    [Some(language.say("notice.ai", &[])), notes, operator, privacy].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The notice for the people of a channel whose voice notes are recognised: by whom. `None`: the default language.
pub fn voice_notes_notice(by: &str, language: Option<&str>) -> String {
    language.and_then(Language::of_code).unwrap_or_default().say("notice.voice_notes", &[("service", &by)])
}

/// The help text for a person at risk, in this language.
pub fn crisis_text(safety: &Safety, language: &str) -> String {
    safety.crisis_text.as_deref().map_or_else(|| texts::help(language), str::to_owned)
}

/// A predicate: whether a channel belongs to a platform.
pub type Serves = fn(&ChannelId) -> bool;

/// All platforms except the console. Cheap to clone; all clones share them.
#[derive(Clone, Default)]
pub struct Platforms(Arc<RwLock<InUse>>);

#[derive(Clone, Default)]
struct InUse {
    enabled: Vec<Arc<dyn ChatPlatform>>,
    disabled: Vec<Serves>,
}

impl Platforms {
    /// Adds a platform.
    pub fn with(self, platform: Arc<dyn ChatPlatform>) -> Self {
        let mut in_use = self.0.read().clone();
        in_use.enabled.push(platform);
        Self(Arc::new(RwLock::new(in_use)))
    }

    /// Uses these platforms from now on. Channels of a platform that is disabled now end with the former one.
    pub fn replace(&self, other: &Self) {
        let mut new = other.0.read().clone();
        let mut in_use = self.0.write();
        if new.enabled.is_empty() {
            new.enabled = std::mem::take(&mut in_use.enabled);
        }
        *in_use = new;
    }

    /// Adds a platform that is not in use now, given by its channels. Its channels sleep until the platform is in use.
    pub fn with_disabled(self, disabled: Serves) -> Self {
        let mut in_use = self.0.read().clone();
        in_use.disabled.push(disabled);
        Self(Arc::new(RwLock::new(in_use)))
    }

    /// The platform of a channel. `None` for a channel of the console, where a statement is posted when it is stored.
    pub fn of(&self, channel: &ChannelId) -> Option<Arc<dyn ChatPlatform>> {
        self.0.read().enabled.iter().find(|platform| platform.serves(channel)).cloned()
    }

    /// The name of a channel's platform. For the console, or a platform that is not in use, it is taken from the channel's id.
    pub fn name<'a>(&self, channel: &'a ChannelId) -> &'a str {
        self.of(channel).map_or_else(|| platform_in(channel), |platform| platform.name())
    }

    /// Whether a channel belongs to a platform that is not in use now, so that posting there is impossible.
    pub fn is_disabled(&self, channel: &ChannelId) -> bool {
        self.0.read().disabled.iter().any(|serves| serves(channel))
    }

    /// Whether everybody in the guild can read a channel. On the console, rooms are open to all.
    pub fn is_public(&self, channel: &ChannelId) -> bool {
        self.of(channel).map_or_else(|| is_of_console(channel), |platform| platform.is_public(channel))
    }

    /// Whether people write in a channel [through this server](Capabilities::is_written_here).
    pub fn is_written_here(&self, channel: &ChannelId) -> bool {
        self.of(channel).map_or_else(|| is_of_console(channel), |platform| platform.capabilities().is_written_here)
    }
}
