//! Discord as a chat platform: statements through a webhook of their channel, direct messages through the bot.

mod inbound_events;
mod reading;
mod sending;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::cache::{Cache, WebhookTarget};
use super::clock::Clocks;
use super::delivery_errors::DeliveryErrors;
use super::outgoing::{self, render};
use super::permissions::Need;
use super::rest::{Failed, Request, Rest};
use super::snowflake::Snowflake;
use super::webhooks::Webhooks;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;
use crate::ports::chat_platform::{Capabilities, ChatPlatform, NotRead, NotSent, Part};
use crate::ports::clock::Clock;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::instruments::Instruments;

/// A part is shorter than the 2,000 characters that Discord takes, so that there is room for what `outgoing.rs` adds to it.
const LONGEST_PART: usize = 1_900;
/// How long Discord shows that somebody is typing (Discord's documentation, "Channels Resource", "Trigger Typing Indicator").
const TYPING_SHOWS: Duration = Duration::from_secs(10);
/// Where typing was refused it is not tried again for so long, and twice as long each time: each refusal counts as an invalid request.
const TYPING_PAUSE: Duration = Duration::from_secs(600);
/// The longest of these pauses.
const LONGEST_TYPING_PAUSE: Duration = Duration::from_secs(24 * 3_600);
/// Channels of which it is remembered; of more, those that may be tried soonest are forgotten.
const MOST_UNTYPED: usize = 10_000;
/// Where nothing can be posted it is not tried again for so long, and no model is asked what to say there.
const POSTING_PAUSE: Duration = Duration::from_secs(600);
/// How far our clock and Discord's may be apart, where the newest message of a channel is not known.
const CLOCKS_APART: Duration = Duration::from_secs(60);

/// Discord, for one bot.
pub struct Discord {
    rest: Rest,
    webhooks: Webhooks,
    cache: Cache,
    delivery_errors: DeliveryErrors,
    bot: OnceCell<Bot>,
    /// Channels where typing was refused.
    untyped: Mutex<BTreeMap<Snowflake, Untyped>>,
    /// Whether the newest session was promised the text of all messages.
    reads_all: Mutex<Option<bool>>,
    clocks: Arc<Clocks>,
    mention_people: bool,
    embed_links: bool,
}

/// A channel where typing was refused.
#[derive(Clone, Copy, Debug)]
struct Untyped {
    /// It is not tried before this.
    until: Instant,
    pause: Duration,
}

/// Who we are on Discord.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bot {
    /// The application, which owns the webhooks.
    pub application: Snowflake,
    /// The bot's user, which writes the direct messages.
    pub user: Snowflake,
}

impl Discord {
    /// Discord as the settings have it, with the bot's token. Nothing is asked yet.
    ///
    /// # Errors
    /// The address or the token cannot be used.
    pub fn new(settings: &Settings, token: SecretString, clock: Arc<dyn Clock>) -> Result<Self, Problem> {
        let clocks = Arc::new(Clocks::new(clock));
        Ok(Self {
            rest: Rest::new(settings, token, Arc::clone(&clocks))?,
            webhooks: Webhooks::default(),
            cache: Cache::default(),
            delivery_errors: DeliveryErrors::default(),
            bot: OnceCell::new(),
            untyped: Mutex::default(),
            reads_all: Mutex::default(),
            clocks,
            mention_people: settings.mention_people,
            embed_links: settings.embed_links,
        })
    }

    /// The same, measured here.
    pub fn measured(self, instruments: Instruments) -> Self {
        Self { rest: self.rest.measured(instruments), ..self }
    }

    /// Who we are, told by whoever knows; else it is asked for.
    pub fn is(&self, bot: Bot) {
        // Who it is never changes.
        let _ = self.bot.set(bot);
    }

    /// The API, with the limits that everything shares.
    pub const fn rest(&self) -> &Rest {
        &self.rest
    }

    /// What is known of channels; whoever hears from Discord feeds it.
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Something changed about the webhooks of a channel: the next statement looks for them again.
    pub fn webhooks_changed(&self, channel: Snowflake) {
        self.webhooks.changed(channel);
    }

    /// A channel is gone, or the bot is not in its guild any more.
    pub fn channel_gone(&self, channel: Snowflake) {
        self.webhooks.forget(channel);
        self.cache.forget(channel);
        self.delivery_errors.over(channel);
        self.may_be_typed(channel);
    }

    /// What the bot may do changed in a guild, or in one of its channels and the threads in it: where nothing could be posted it is tried
    /// with the next words.
    pub fn access_changed(&self, guild: Snowflake, channel: Option<Snowflake>) {
        let is_there = |troubled: Snowflake| match channel {
            Some(channel) => troubled == channel || self.cache.place(troubled).is_some_and(|place| place.root == channel),
            None => self.cache.guild_of(troubled).is_none_or(|known| known == guild),
        };
        self.delivery_errors.try_again(is_there);
    }

    /// What went wrong where something was said.
    pub const fn delivery_errors(&self) -> &DeliveryErrors {
        &self.delivery_errors
    }

    /// This machine's clock and Discord's.
    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// The time of day on Discord.
    pub(super) fn now(&self) -> Moment {
        self.clocks.now()
    }

    /// Who we are: asked for once.
    async fn bot(&self) -> Result<Bot, Failed> {
        self.bot
            .get_or_try_init(|| async { self.rest.ask::<Application>(Request::application()).await.map(Bot::from) })
            .await
            .copied()
    }

    /// Where a channel's webhooks belong: asked for once, if nobody told.
    async fn place(&self, channel: Snowflake) -> Result<WebhookTarget, Failed> {
        if let Some(place) = self.cache.place(channel) {
            return Ok(place);
        }
        let found: Found = self.rest.ask(Request::channel(channel)).await?;
        Ok(self.cache.set_parent(channel, found.parent_id.filter(|_| found.is_thread())))
    }

    /// A part as it is sent; none if nothing in it can be seen.
    fn worded(&self, channel: Snowflake, text: &str) -> Option<outgoing::Part> {
        let company = self.cache.mentionables(channel);
        let mut parts = company.with(self.mention_people, |mentionables| render(text, mentionables));
        if parts.len() > 1 {
            // What was added to it does not fit. It is only for the eye: nobody is called by words alone.
            return Some(outgoing::Part { content: text.to_owned(), calls: Vec::new() });
        }
        parts.pop()
    }
}

#[async_trait]
impl ChatPlatform for Discord {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn serves(&self, channel: &ChannelId) -> bool {
        Snowflake::is_of_discord(channel)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            longest_part: LONGEST_PART,
            request_timeout: self.rest.timeout(),
            typing_shows: Some(TYPING_SHOWS),
            is_written_here: false,
        }
    }

    /// Always there for a channel of Discord's: of one where nothing was seen yet, an id that is older than anything that is sent now.
    fn newest(&self, channel: &ChannelId, on_record: &[Arc<str>]) -> Option<Arc<str>> {
        let channel = Snowflake::of_channel(channel)?;
        let long_ago = || Snowflake::at(self.now() - CLOCKS_APART);
        let on_record = on_record.iter().filter_map(|id| id.parse().ok());
        let newest = on_record.chain(self.cache.newest(channel)).max().unwrap_or_else(long_ago);
        Some(newest.to_string().into())
    }

    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent> {
        let channel = Snowflake::of_channel(&part.channel);
        let channel = channel.ok_or_else(|| NotSent::Refused(format!("{} is no channel of Discord's", part.channel)))?;
        // No trouble of the channel's.
        let words = self.worded(channel, &part.text);
        let words = words.ok_or_else(|| NotSent::Refused("nothing in the words can be seen".to_owned()))?;
        let sent = self.post(channel, part, &words).await;
        let (why, pause) = match &sent {
            Ok(_) => {
                if self.delivery_errors.over(channel) {
                    tracing::info!(%channel, "companions can speak in this channel again");
                }
                return sent;
            }
            Err(NotSent::Refused(why)) => (why, None),
            Err(NotSent::Unpostable(why)) => (why, Some(POSTING_PAUSE)),
            // The others are tried again.
            Err(NotSent::Later { .. } | NotSent::Unknown { .. }) => return sent,
        };
        if self.delivery_errors.note(channel, why, self.clocks.here(), pause) {
            tracing::warn!(%channel, why, "companions cannot speak in this channel; it is told again once they could meanwhile");
        }
        sent
    }

    async fn find(&self, part: &Part, after: Option<&str>, taken: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        let channel = Snowflake::of_channel(&part.channel);
        let channel = channel.ok_or_else(|| NotRead::Never(format!("{} is no channel of Discord's", part.channel)))?;
        let after = after.and_then(|after| after.parse().ok());
        let after = after.ok_or_else(|| NotRead::Never("it is not on record what was there before it was sent".to_owned()))?;
        let Some(words) = self.worded(channel, &part.text) else { return Ok(None) };
        let taken = taken.iter().filter_map(|id| id.parse().ok()).collect();
        let found = self.read_back(channel, part, &words, after, &taken).await?;
        if let Some(message) = found {
            self.cache.message_seen(channel, message);
        }
        Ok(found.map(|message| message.to_string().into()))
    }

    fn title(&self, channel: &ChannelId) -> Option<String> {
        self.cache.title(channel)
    }

    fn is_unpostable(&self, channel: &ChannelId) -> bool {
        Snowflake::of_channel(channel).is_some_and(|channel| self.delivery_errors.bar(channel))
    }

    async fn typing(&self, _: &GuildId, channel: &ChannelId) {
        let Some(channel) = Snowflake::of_channel(channel) else { return };
        if self.is_untyped(channel) {
            return;
        }
        match self.rest.tell_now(&Request::typing(channel)).await {
            Ok(Some(_)) => self.may_be_typed(channel),
            Err(Failed::Refused(refusal)) => {
                self.refuses_typing(channel);
                tracing::debug!(%channel, why = refusal.lacking(Need::Send), "nobody can be shown that a companion is typing");
            }
            Ok(None) | Err(_) => {}
        }
    }
}

impl Discord {
    async fn post(&self, channel: Snowflake, part: &Part, words: &outgoing::Part) -> Result<Arc<str>, NotSent> {
        let message = match Snowflake::of_direct_guild(&part.guild) {
            Some(_) => self.send_directly(channel, words, &part.nonce).await?,
            None => self.send_by_webhook(channel, part, words).await?,
        };
        self.cache.message_seen(channel, message);
        Ok(message.to_string().into())
    }

    /// Whether typing was refused in a channel lately.
    fn is_untyped(&self, channel: Snowflake) -> bool {
        self.untyped().get(&channel).is_some_and(|untyped| Instant::now() < untyped.until)
    }

    /// Typing was refused in a channel.
    fn refuses_typing(&self, channel: Snowflake) {
        let mut all = self.untyped();
        let pause = all.get(&channel).map_or(TYPING_PAUSE, |before| (before.pause * 2).min(LONGEST_TYPING_PAUSE));
        all.insert(channel, Untyped { until: Instant::now() + pause, pause });
        if all.len() > MOST_UNTYPED {
            let soonest = all.iter().min_by_key(|(_, untyped)| untyped.until).map(|(channel, _)| *channel);
            soonest.and_then(|soonest| all.remove(&soonest));
        }
    }

    /// Typing works in a channel, or may work since something changed there.
    pub(super) fn may_be_typed(&self, channel: Snowflake) {
        self.untyped().remove(&channel);
    }

    fn untyped(&self) -> MutexGuard<'_, BTreeMap<Snowflake, Untyped>> {
        self.untyped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Discord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discord").field("rest", &self.rest).finish_non_exhaustive()
    }
}

/// The application, as Discord tells of it.
#[derive(Deserialize)]
struct Application {
    id: Snowflake,
    #[serde(default)]
    bot: Option<User>,
}

#[derive(Deserialize)]
struct User {
    id: Snowflake,
}

impl From<Application> for Bot {
    fn from(application: Application) -> Self {
        // Since 2016 both have the same id.
        Self { application: application.id, user: application.bot.map_or(application.id, |user| user.id) }
    }
}

/// A channel, as Discord tells of it.
#[derive(Deserialize)]
struct Found {
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default)]
    parent_id: Option<Snowflake>,
}

impl Found {
    /// Discord's documentation, "Channels Resource", "Channel Types": announcement, public and private threads.
    const fn is_thread(&self) -> bool {
        matches!(self.kind, 10..=12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::system::SystemClock;

    #[tokio::test(start_paused = true)]
    async fn where_typing_is_refused_it_is_tried_ever_more_rarely() {
        let defaults = crate::settings::Settings::defaults().unwrap();
        let settings: Settings = defaults["discord"].clone().try_into().unwrap();
        let discord = Discord::new(&settings, "a.b.c".into(), Arc::new(SystemClock)).unwrap();
        let channel = Snowflake::new(1).unwrap();
        let mut tries = 0;

        for _ in 0..7 * 24 * 60 {
            if !discord.is_untyped(channel) {
                tries += 1;
                discord.refuses_typing(channel);
            }
            tokio::time::advance(Duration::from_secs(60)).await;
        }

        assert!((10..=15).contains(&tries), "{tries} in a week");
        discord.may_be_typed(channel);
        assert!(!discord.is_untyped(channel));
    }
}
