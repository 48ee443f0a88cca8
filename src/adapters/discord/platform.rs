//! Discord as a chat platform. Statements are posted through a webhook of their channel; in direct messages, by the bot itself.

mod inbound_events;
mod pauses;
mod reading;
mod sending;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use secrecy::SecretString;
use serde_json::json;
use tokio::sync::OnceCell;

use self::pauses::Pauses;
use super::cache::{Cache, WebhookTarget};
use super::clock::Clocks;
use super::delivery_errors::DeliveryErrors;
use super::files::Files;
use super::outgoing::{self, CONFIRM_CALL, DECLINE_CALL, HELP_FOR, render};
use super::permissions::Need;
use super::rest::{Failed, Request, Rest};
use super::roles::Roles;
use super::snowflake::Snowflake;
use super::webhooks::Webhooks;
use super::wire;
pub use super::wire::Bot;
use crate::domain::attachment::Attachment;
use crate::domain::id::{ChannelId, GuildId, PersonId, Ticket};
use crate::domain::message::Standing;
use crate::domain::moment::Moment;
use crate::domain::tools::built_in::Poll;
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
/// The reaction to a message that stops a statement, percent-encoded: U+1F6D1, a stop sign.
const STOP_SIGN: &str = "%F0%9F%9B%91";
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
    typing_pauses: Pauses,
    reaction_pauses: Pauses,
    acknowledges_stop: bool,
    /// Whether the newest session has the Message Content intent. `None`: unknown.
    reads_all: Mutex<Option<bool>>,
    clocks: Arc<Clocks>,
    files: Files,
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
            typing_pauses: Pauses::default(),
            reaction_pauses: Pauses::default(),
            acknowledges_stop: settings.acknowledge_stop,
            reads_all: Mutex::default(),
            clocks,
            files: Files::new(settings)?,
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
        let channel = to_post_in(&part.channel)?;
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

    async fn change(
        &self,
        guild: &GuildId,
        channel: &ChannelId,
        posted: &str,
        text: Option<&str>,
        notice: Option<&str>,
    ) -> Result<(), NotSent> {
        let (Some(channel), Ok(message)) = (Snowflake::of_channel(channel), posted.parse()) else {
            return Err(NotSent::Refused(format!("{posted} in {channel} is not a message of Discord")));
        };
        self.change_posted(guild, channel, message, text, notice).await
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

    async fn announce(&self, channel: &ChannelId, text: &str, nonce: &str) -> Result<(), NotSent> {
        self.post_as_bot(to_post_in(channel)?, text, nonce).await
    }

    async fn file(&self, channel: &ChannelId, message: &str, file: Option<&Attachment>) -> Result<Vec<u8>, NotRead> {
        let (Some(channel), Ok(message)) = (Snowflake::of_channel(channel), message.parse()) else {
            return Err(NotRead::Never(format!("{message} in {channel} is not a message of Discord")));
        };
        self.read_file(channel, message, file).await
    }

    async fn offer_help(&self, help: &Help<'_>) -> Result<(), NotSent> {
        let channel = to_post_in(help.channel)?;
        let nonce = format!("{channel}/help/{}", help.message);
        if Snowflake::of_direct_guild(help.guild).is_some() {
            return self.post_as_bot(channel, help.text, &nonce).await;
        }
        let words = if help.tell { "risk.told" } else { "risk.line" };
        let button = (Language::English.say("risk.read", &[]), format!("{HELP_FOR}{}", help.person));
        self.post_with_buttons(channel, &Language::English.say(words, &[]), &[button], &nonce).await
    }

    async fn roles(&self, guild: &GuildId, person: &PersonId) -> Option<BTreeSet<Arc<str>>> {
        let (guild, person) = (Snowflake::of_guild(guild)?, Snowflake::of_person(person.as_str())?);
        let member = self.rest.ask::<wire::ServerMember>(Request::member(guild, person)).await.ok()?;
        Some(member.roles.iter().map(|role| role.to_string().into()).collect())
    }

    async fn offer_call(&self, channel: &ChannelId, call: Ticket, text: &str, [yes, no]: [&str; 2]) -> Result<(), NotSent> {
        let channel = to_post_in(channel)?;
        let buttons = [(yes, CONFIRM_CALL), (no, DECLINE_CALL)];
        let buttons = buttons.map(|(label, id)| (label.to_owned(), format!("{id}{call}")));
        self.post_with_buttons(channel, text, &buttons, &format!("{channel}/call/{call}")).await
    }

    async fn post_poll(&self, channel: &ChannelId, call: Ticket, poll: &Poll) -> Result<(), NotSent> {
        let channel = to_post_in(channel)?;
        let answers: Vec<_> = poll.options.iter().map(|option| json!({ "poll_media": { "text": option } })).collect();
        let poll = json!({ "question": { "text": poll.question }, "answers": answers, "duration": 24 });
        self.post_extended(channel, "", ("poll", poll), &format!("{channel}/call/{call}")).await
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
        self.try_optional(&self.typing_pauses, channel, &Request::typing(channel), Need::Send).await;
    }

    async fn acknowledge_stop(&self, channel: &ChannelId, message: &str) {
        let (Some(channel), Ok(message)) = (Snowflake::of_channel(channel), message.parse()) else { return };
        if self.acknowledges_stop {
            let request = Request::react(channel, message, STOP_SIGN);
            self.try_optional(&self.reaction_pauses, channel, &request, Need::React).await;
        }
    }
}

impl Discord {
    /// Sends a request that may be omitted. After a refusal, further ones in this channel are omitted for a while.
    async fn try_optional(&self, pauses: &Pauses, channel: Snowflake, request: &Request, need: Need) {
        if pauses.holds(channel) {
            return;
        }
        match self.rest.try_send(request).await {
            Ok(Some(_)) => pauses.end(channel),
            Err(Failed::Refused(refusal)) => {
                pauses.begin(channel);
                tracing::debug!(%channel, ?request, why = refusal.explain(need), "Discord refuses an optional request");
            }
            Ok(None) | Err(_) => {}
        }
    }

    async fn post(&self, channel: Snowflake, part: &Part, rendered: &outgoing::Part) -> Result<Arc<str>, NotSent> {
        let message = match is_by_bot(part) {
            true => self.send_directly(channel, rendered, &part.nonce).await?,
            false => self.send_by_webhook(channel, part, rendered).await?,
        };
        self.cache.message_seen(channel, message);
        Ok(message.to_string().into())
    }

    /// Ends the pauses of what may be refused in a channel, because it worked there or something changed there.
    pub(super) fn clear_typing_refusal(&self, channel: Snowflake) {
        self.typing_pauses.end(channel);
        self.reaction_pauses.end(channel);
    }

    /// Whether the bot reacts to a message that stops a statement.
    pub(super) const fn acknowledges_stop(&self) -> bool {
        self.acknowledges_stop
    }
}

fn to_post_in(channel: &ChannelId) -> Result<Snowflake, NotSent> {
    Snowflake::of_channel(channel).ok_or_else(|| NotSent::Refused(format!("{channel} is not a channel of Discord")))
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
