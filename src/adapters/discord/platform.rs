//! Discord as a chat platform. Statements are posted through a webhook of their channel; in direct messages, by the bot itself.

mod inbound_events;
mod reading;
mod sending;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::cache::{Cache, WebhookTarget};
use super::clock::Clocks;
use super::delivery_errors::DeliveryErrors;
use super::outgoing::{self, HELP_FOR, render};
use super::permissions::Need;
use super::rest::{Failed, Request, Rest};
use super::roles::Roles;
use super::snowflake::Snowflake;
use super::webhooks::Webhooks;
use super::wire;
pub use super::wire::Bot;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::message::Standing;
use crate::domain::moment::Moment;
use crate::ports::chat_platform::{Capabilities, ChatPlatform, Help, NotRead, NotSent, Part};
use crate::ports::clock::Clock;
use crate::ports::lease::Lease;
use crate::ports::notes::NoteError;
use crate::settings::Problem;
use crate::settings::discord::Discord as Settings;
use crate::settings::safety::Safety;
use crate::telemetry::instruments::Instruments;
use crate::texts::{self, Language};

/// Shorter than Discord's limit of 2,000 characters, to leave room for what `outgoing.rs` adds.
const MAX_PART_CHARS: usize = 1_900;
/// How long Discord shows the typing indicator (Discord's documentation, "Channels Resource", "Trigger Typing Indicator").
const TYPING_SHOWS: Duration = Duration::from_secs(10);
/// The first pause after Discord refused the typing indicator in a channel. It doubles with each refusal, because each refusal counts as an invalid
/// request.
const TYPING_PAUSE: Duration = Duration::from_secs(600);
const MAX_TYPING_PAUSE: Duration = Duration::from_secs(24 * 3_600);
/// The limit of channels with a pause. Beyond it, the pause that ends first is dropped.
const MAX_TYPING_REFUSALS: usize = 10_000;
/// The pause after a refusal that applies to every message in a channel. During it, no model is called for the channel.
const POSTING_PAUSE: Duration = Duration::from_secs(600);
/// The assumed maximal difference between our clock and Discord's, for channels whose newest message is unknown.
const CLOCKS_APART: Duration = Duration::from_secs(60);

pub struct Discord {
    rest: Rest,
    webhooks: Webhooks,
    cache: Cache,
    delivery_errors: DeliveryErrors,
    bot: OnceCell<Bot>,
    typing_refusals: Mutex<BTreeMap<Snowflake, TypingRefusal>>,
    /// Whether the newest session has the Message Content intent. `None`: unknown.
    reads_all: Mutex<Option<bool>>,
    clocks: Arc<Clocks>,
    mention_people: bool,
    embed_links: bool,
    /// The bot's introduction to users: that it is AI, who runs it, and where the privacy text is.
    about: Arc<str>,
    /// Who runs the bot.
    operator: Option<Arc<str>>,
    /// The address of the privacy text.
    privacy: Option<Arc<str>>,
    /// The help shown to a person at risk. `None`: the built-in text in the person's language.
    crisis_text: Option<Arc<str>>,
    /// The rules for roles. `None`: there are none.
    roles: Option<Roles>,
}

/// A pause of the typing indicator in a channel.
#[derive(Clone, Copy, Debug)]
struct TypingRefusal {
    until: Instant,
    pause: Duration,
}

impl Discord {
    /// Creates a client for one bot. It sends only while the lease is held.
    ///
    /// # Errors
    /// Returns an error if the address or the token cannot be used.
    pub fn new(settings: &Settings, token: SecretString, clock: Arc<dyn Clock>, lease: Arc<dyn Lease>) -> Result<Self, Problem> {
        let clocks = Arc::new(Clocks::new(clock));
        Ok(Self {
            rest: Rest::new(settings, token, Arc::clone(&clocks), lease)?,
            webhooks: Webhooks::default(),
            cache: Cache::default(),
            delivery_errors: DeliveryErrors::default(),
            bot: OnceCell::new(),
            typing_refusals: Mutex::default(),
            reads_all: Mutex::default(),
            clocks,
            mention_people: settings.mention_people,
            embed_links: settings.embed_links,
            about: Language::English.say("notice.ai", &[]).into(),
            operator: None,
            privacy: None,
            crisis_text: None,
            roles: None,
        })
    }

    /// Records the client's metrics with these instruments.
    pub fn measured(self, instruments: Instruments) -> Self {
        Self { rest: self.rest.measured(instruments), ..self }
    }

    /// Sets the bot's introduction, and the help for people at risk.
    pub fn introduced(self, about: String, safety: &Safety) -> Self {
        let Safety { operator, privacy, crisis_text, .. } = safety.clone();
        Self { about: about.into(), operator, privacy, crisis_text, ..self }
    }

    /// Applies the rules that the managers of guilds set for roles.
    pub fn with_roles(self, roles: Roles) -> Self {
        Self { roles: Some(roles), ..self }
    }

    /// The rules for roles, if they can be set.
    pub(super) const fn roles(&self) -> Option<&Roles> {
        self.roles.as_ref()
    }

    /// Whether a person may address companions in a guild. `roles`: the person's roles, if Discord has sent them; otherwise they are requested. A
    /// person whose roles remain unknown may not, where there are rules.
    ///
    /// # Errors
    /// Returns an error if the rules cannot be read.
    pub(super) async fn standing(
        &self,
        guild: Snowflake,
        person: Snowflake,
        roles: Option<&[Snowflake]>,
    ) -> Result<Standing, NoteError> {
        let Some(rules) = &self.roles else { return Ok(Standing::Free) };
        let rules = rules.of(guild).await?;
        if rules.are_none() {
            return Ok(Standing::Free);
        }
        if let Some(roles) = roles {
            return Ok(rules.standing(guild, roles));
        }
        let member = self.rest.ask::<wire::ServerMember>(Request::member(guild, person)).await;
        Ok(member.map_or(Standing::MayNotAddress, |member| rules.standing(guild, &member.roles)))
    }

    /// The help for a person at risk who reads this language.
    pub(super) fn crisis_text(&self, language: &str) -> String {
        self.crisis_text.as_deref().map_or_else(|| texts::help(language), str::to_owned)
    }

    /// The bot's introduction to users.
    pub(super) fn about(&self) -> &str {
        &self.about
    }

    /// Who runs the bot, and the address of the privacy text, if the settings name them.
    pub(super) fn responsible(&self) -> (Option<&str>, Option<&str>) {
        (self.operator.as_deref(), self.privacy.as_deref())
    }

    /// Sets the bot's ids, as a session reported them. Without this call, they are requested when needed.
    pub fn set_bot(&self, bot: Bot) {
        // The ids never change, so errors of further calls are ignored.
        let _ = self.bot.set(bot);
    }

    /// The REST client. All requests of the bot share its limits.
    pub const fn rest(&self) -> &Rest {
        &self.rest
    }

    /// The cache of guilds and channels, which the intake updates.
    pub const fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Handles a change of a channel's webhooks. The next statement fetches them again.
    pub fn webhooks_changed(&self, channel: Snowflake) {
        self.webhooks.invalidate(channel);
    }

    /// Drops all data about a channel, because it was deleted or the bot left its guild.
    pub fn channel_gone(&self, channel: Snowflake) {
        self.webhooks.remove_channel(channel);
        self.cache.remove_channel(channel);
        self.delivery_errors.clear(channel);
        self.clear_typing_refusal(channel);
    }

    /// Handles a change of the bot's permissions in a guild, or in one of its channels and that channel's threads. Delivery errors of these
    /// channels no longer block posting, so the next statement is tried.
    pub fn access_changed(&self, guild: Snowflake, channel: Option<Snowflake>) {
        let is_affected = |other: Snowflake| match channel {
            Some(channel) => other == channel || self.cache.webhook_target(other).is_some_and(|target| target.root == channel),
            None => self.cache.guild_of(other).is_none_or(|other_guild| other_guild == guild),
        };
        self.delivery_errors.unblock(is_affected);
    }

    pub const fn delivery_errors(&self) -> &DeliveryErrors {
        &self.delivery_errors
    }

    pub fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// The time of day by Discord's clock.
    pub(super) fn now(&self) -> Moment {
        self.clocks.now()
    }

    /// The bot's ids. Requested once, unless [`Self::set_bot`] was called.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn bot(&self) -> Result<Bot, Failed> {
        self.bot
            .get_or_try_init(|| async { Ok(self.rest.ask::<wire::Application>(Request::application()).await?.bot()) })
            .await
            .copied()
    }

    /// The channel that owns a channel's webhooks. Cached, or requested once.
    async fn webhook_target(&self, channel: Snowflake) -> Result<WebhookTarget, Failed> {
        if let Some(target) = self.cache.webhook_target(channel) {
            return Ok(target);
        }
        let found: wire::Channel = self.rest.ask(Request::channel(channel)).await?;
        // Without a type, the channel might be a thread.
        if found.kind.is_none() {
            return Err(Failed::NotNow {
                after: None,
                detail: format!("Discord does not say what kind of channel {channel} is"),
            });
        }
        Ok(self.cache.set_parent(channel, found.parent()))
    }

    /// Renders a part, with the server's notice in small print below it. `None` if nothing in the text is visible, or if it is too long with the
    /// notice.
    fn rendered_part(&self, channel: Snowflake, text: &str, notice: Option<&str>) -> Option<outgoing::Part> {
        let mut mentionables = self.cache.mentionables(channel);
        if !self.mention_people {
            mentionables.people.clear();
        }
        let mut parts = render(text, &mentionables);
        let is_one = parts.len() <= 1;
        // The words of a spoken statement are not posted, only its notice.
        parts.extend((text.is_empty() && notice.is_some()).then(outgoing::Part::default));
        let rendered = parts.pop()?.with_notice(notice).filter(|_| is_one);
        // With mentions and emojis rendered, the part is too long. The plain text is sent instead, which mentions no one.
        rendered.or_else(|| outgoing::Part { content: text.to_owned(), mentions: Vec::new() }.with_notice(notice))
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
            longest_part: MAX_PART_CHARS,
            request_timeout: self.rest.timeout(),
            typing_shows: Some(TYPING_SHOWS),
            is_written_here: false,
        }
    }

    /// Always `Some` for a Discord channel. If no message is known, returns an id older than any message sent from now on.
    fn newest(&self, channel: &ChannelId, on_record: &[Arc<str>]) -> Option<Arc<str>> {
        let channel = Snowflake::of_channel(channel)?;
        let long_ago = || Snowflake::at(self.now() - CLOCKS_APART);
        let on_record = on_record.iter().filter_map(|id| id.parse().ok());
        let newest = on_record.chain(self.cache.newest(channel)).max().unwrap_or_else(long_ago);
        Some(newest.to_string().into())
    }

    async fn send(&self, part: &Part) -> Result<Arc<str>, NotSent> {
        let channel = Snowflake::of_channel(&part.channel);
        let channel = channel.ok_or_else(|| NotSent::Refused(format!("{} is not a channel of Discord", part.channel)))?;
        // An empty part is not the channel's fault, so it is not recorded as a delivery error.
        let rendered = self.rendered_part(channel, &part.text, part.notice.as_deref());
        let rendered = rendered.ok_or_else(|| NotSent::Refused("nothing in the text is visible".to_owned()))?;
        let sent = self.post(channel, part, &rendered).await;
        let (why, pause) = match &sent {
            Ok(_) => {
                if self.delivery_errors.clear(channel) {
                    tracing::info!(%channel, "companions can speak in this channel again");
                }
                return sent;
            }
            Err(NotSent::Refused(why)) => (why, None),
            // Without the notice, companions can still speak in the call.
            Err(NotSent::Unpostable(why)) => (why, (!part.text.is_empty()).then_some(POSTING_PAUSE)),
            // The caller retries.
            Err(NotSent::Later { .. } | NotSent::Unknown { .. }) => return sent,
        };
        if self.delivery_errors.record(channel, why, self.clocks.here(), pause) {
            tracing::warn!(%channel, why, "companions cannot speak in this channel; logged again only after they could speak or for another reason");
        }
        sent
    }

    async fn change(&self, guild: &GuildId, channel: &ChannelId, posted: &str, text: Option<&str>) -> Result<(), NotSent> {
        let (Some(channel), Ok(message)) = (Snowflake::of_channel(channel), posted.parse()) else {
            return Err(NotSent::Refused(format!("{posted} in {channel} is not a message of Discord")));
        };
        self.change_posted(guild, channel, message, text).await
    }

    async fn find(&self, part: &Part, after: Option<&str>, taken: &BTreeSet<Arc<str>>) -> Result<Option<Arc<str>>, NotRead> {
        let channel = Snowflake::of_channel(&part.channel);
        let channel = channel.ok_or_else(|| NotRead::Never(format!("{} is not a channel of Discord", part.channel)))?;
        let after = after.and_then(|after| after.parse().ok());
        let after = after.ok_or_else(|| NotRead::Never("the newest message before it was sent is not on record".to_owned()))?;
        let Some(rendered) = self.rendered_part(channel, &part.text, part.notice.as_deref()) else { return Ok(None) };
        let taken = taken.iter().filter_map(|id| id.parse().ok()).collect();
        let found = self.read_back(channel, part, &rendered, after, &taken).await?;
        if let Some(message) = found {
            self.cache.message_seen(channel, message);
        }
        Ok(found.map(|message| message.to_string().into()))
    }

    async fn offer_help(&self, help: &Help<'_>) -> Result<(), NotSent> {
        let channel = Snowflake::of_channel(help.channel);
        let channel = channel.ok_or_else(|| NotSent::Refused(format!("{} is not a channel of Discord", help.channel)))?;
        let nonce = format!("{channel}/help/{}", help.message);
        if Snowflake::of_direct_guild(help.guild).is_some() {
            return self.post_as_bot(channel, help.text, &nonce).await;
        }
        let words = if help.tell { "risk.told" } else { "risk.line" };
        let button = (Language::English.say("risk.read", &[]), format!("{HELP_FOR}{}", help.person));
        self.post_with_button(channel, &Language::English.say(words, &[]), &button, &nonce).await
    }

    fn title(&self, channel: &ChannelId) -> Option<String> {
        self.cache.title(channel)
    }

    fn topic(&self, channel: &ChannelId) -> Option<String> {
        self.cache.topic(channel)
    }

    fn is_public(&self, channel: &ChannelId) -> bool {
        self.cache.is_public(channel)
    }

    fn is_unpostable(&self, channel: &ChannelId) -> bool {
        Snowflake::of_channel(channel).is_some_and(|channel| self.delivery_errors.is_blocked(channel))
    }

    async fn typing(&self, _: &GuildId, channel: &ChannelId) {
        let Some(channel) = Snowflake::of_channel(channel) else { return };
        if self.is_typing_paused(channel) {
            return;
        }
        match self.rest.try_send(&Request::typing(channel)).await {
            Ok(Some(_)) => self.clear_typing_refusal(channel),
            Err(Failed::Refused(refusal)) => {
                self.typing_refused(channel);
                tracing::debug!(%channel, why = refusal.explain(Need::Send), "Discord refuses the typing indicator");
            }
            Ok(None) | Err(_) => {}
        }
    }
}

impl Discord {
    async fn post(&self, channel: Snowflake, part: &Part, rendered: &outgoing::Part) -> Result<Arc<str>, NotSent> {
        let message = match is_by_bot(part) {
            true => self.send_directly(channel, rendered, &part.nonce).await?,
            false => self.send_by_webhook(channel, part, rendered).await?,
        };
        self.cache.message_seen(channel, message);
        Ok(message.to_string().into())
    }

    /// Whether the typing indicator is paused in a channel.
    fn is_typing_paused(&self, channel: Snowflake) -> bool {
        self.typing_refusals.lock().get(&channel).is_some_and(|typing_refusals| Instant::now() < typing_refusals.until)
    }

    /// Starts a pause of the typing indicator in a channel, twice as long as the last one.
    fn typing_refused(&self, channel: Snowflake) {
        let mut all = self.typing_refusals.lock();
        let pause = all.get(&channel).map_or(TYPING_PAUSE, |before| (before.pause * 2).min(MAX_TYPING_PAUSE));
        all.insert(channel, TypingRefusal { until: Instant::now() + pause, pause });
        if all.len() > MAX_TYPING_REFUSALS {
            let soonest = all.iter().min_by_key(|(_, typing_refusals)| typing_refusals.until).map(|(channel, _)| *channel);
            soonest.and_then(|soonest| all.remove(&soonest));
        }
    }

    /// Ends the pause of the typing indicator, because it worked in this channel or something changed there.
    pub(super) fn clear_typing_refusal(&self, channel: Snowflake) {
        self.typing_refusals.lock().remove(&channel);
    }
}

/// Whether a part is a message of the bot itself.
fn is_by_bot(part: &Part) -> bool {
    Snowflake::of_direct_guild(&part.guild).is_some() || part.text.is_empty()
}

impl fmt::Debug for Discord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discord").field("rest", &self.rest).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::system::SystemClock;
    use crate::ports::lease::Unlimited;

    #[tokio::test(start_paused = true)]
    async fn refused_typing_indicators_are_retried_less_and_less_often() {
        let defaults = crate::settings::Settings::defaults().unwrap();
        let settings: Settings = defaults["discord"].clone().try_into().unwrap();
        let discord = Discord::new(&settings, "a.b.c".into(), Arc::new(SystemClock), Arc::new(Unlimited)).unwrap();
        let channel = Snowflake::new(1).unwrap();
        let mut tries = 0;

        for _ in 0..7 * 24 * 60 {
            if !discord.is_typing_paused(channel) {
                tries += 1;
                discord.typing_refused(channel);
            }
            tokio::time::advance(Duration::from_secs(60)).await;
        }

        assert!((10..=15).contains(&tries), "{tries} in a week");
        discord.clear_typing_refusal(channel);
        assert!(!discord.is_typing_paused(channel));
    }
}
