//! Messages: whether anybody listens, and what becomes of them.

use std::sync::PoisonError;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::super::incoming::{IgnoreReason, Incoming};
use super::super::rest::Request;
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::lanes::{Told, Work};
use super::telling::patiently;
use super::wording;
use super::{Ears, Intake};
use crate::domain::message::Role;
use crate::ports::inbound_events::{Acceptance, ChannelRef};

/// If Discord did not tell the time, it is asked again after this.
const TIME_ASKED_AGAIN: Duration = Duration::from_secs(30);
/// A message waits so long for the time at most.
const TIME_AWAITED: Duration = Duration::from_secs(3);

impl Intake {
    /// Somebody said something.
    pub(super) fn said(&self, at: wire::Whereabouts, data: Box<RawValue>) -> Vec<Work> {
        let (channel, message) = (at.channel_id.0, at.id.0);
        let work = self.told(at, data, false);
        if !work.is_empty() || self.ears.discord.cache().has_channel(channel) {
            self.ears.discord.cache().message_seen(channel, message);
        }
        work
    }

    /// Somebody wrote a message anew.
    pub(super) fn edited(&self, at: wire::Whereabouts, data: Box<RawValue>) -> Vec<Work> {
        self.told(at, data, true)
    }

    fn told(&self, at: wire::Whereabouts, data: Box<RawValue>, is_edit: bool) -> Vec<Work> {
        let (guild, channel, message) = (at.guild_id.map(|id| id.0), at.channel_id.0, at.id.0);
        if !self.ears.may_listen(guild, channel) {
            if !is_edit {
                self.ears.count("elsewhere");
            }
            return Vec::new();
        }
        vec![Work::Message(Told { guild, channel, message, data, is_edit })]
    }

    /// Messages were taken back. That is told wherever it was: what is on record goes, also where nobody lives any more.
    pub(super) fn deleted(&self, guild: Option<wire::Id>, channel: wire::Id, messages: &[wire::Id]) -> Vec<Work> {
        if messages.is_empty() {
            return Vec::new();
        }
        let messages = messages.iter().map(|id| id.0.to_string().into()).collect();
        vec![Work::Deleted { guild: guild.map(|id| id.0), channel: channel.0, messages }]
    }
}

impl Ears {
    /// Takes in what was said, or written anew. Returns whether it was handed over.
    pub(super) async fn message(&self, told: &Told) -> bool {
        self.unless_it_panics(told.channel, self.take_in(told)).await.unwrap_or(false)
    }

    async fn take_in(&self, told: &Told) -> bool {
        let points_at_something = ["<@&", "<#"].iter().any(|mark| told.data.get().contains(mark));
        self.get_acquainted(told.guild, told.channel, points_at_something).await;
        let channel_ref = self.discord.cache().channel_ref(told.guild, told.channel);
        if !self.inbound_events.listens(&channel_ref) {
            if !told.is_edit {
                self.count("elsewhere");
            }
            return false;
        }
        let bot = self.who().await;
        self.know_the_time().await;
        let message: wire::Message = match serde_json::from_str(told.data.get()) {
            Ok(message) => message,
            Err(error) => {
                self.unreadable(if told.is_edit { "MESSAGE_UPDATE" } else { "MESSAGE_CREATE" }, &error);
                self.marks.mark(&channel_ref.guild, told.channel, told.message);
                return false;
            }
        };
        let heard = wording::read(&message, bot, self.discord.cache().names(told.guild));
        if told.is_edit {
            self.edited(told, &channel_ref, heard).await
        } else {
            self.said(told, &channel_ref, &message, heard).await
        }
    }

    async fn edited(&self, told: &Told, channel_ref: &ChannelRef, heard: Incoming) -> bool {
        let Incoming::Message(said) = heard else { return false };
        let (id, text) = (said.id.to_string(), said.text.into());
        let edited = || self.inbound_events.edited(channel_ref, &id, std::sync::Arc::clone(&text));
        patiently(self, told.channel, edited).await.is_some()
    }

    async fn said(&self, told: &Told, channel_ref: &ChannelRef, message: &wire::Message, heard: Incoming) -> bool {
        let said = match heard {
            Incoming::Message(said) => said,
            Incoming::Ours(_) => return self.left_out(told, channel_ref, "ours"),
            Incoming::Ignored(IgnoreReason::NotConversation) => return self.left_out(told, channel_ref, "no_talk"),
            Incoming::Ignored(IgnoreReason::NotPublic) => return self.left_out(told, channel_ref, "not_for_all"),
            Incoming::Ignored(IgnoreReason::Empty) => return self.left_out(told, channel_ref, "empty"),
        };
        let cache = self.discord.cache();
        let from = said.from.clone();
        let person = Snowflake::of_person(&from.id).filter(|_| from.role == Role::Person);
        let own_role = told.guild.and_then(|guild| cache.own_role(guild));
        let to_all = told.guild.is_none() || own_role.is_some_and(|role| message.mentions_role(role));
        if told.guild.is_none() && person.is_some() {
            cache.is_direct(told.channel, &from.name);
        }
        let inbound_message = wording::worded(said, to_all, self.discord.clocks());
        let taken = patiently(self, told.channel, || self.inbound_events.said(channel_ref, inbound_message.clone())).await;
        match taken {
            Some(Acceptance::New(_) | Acceptance::Known(_)) => {
                if let Some(person) = person {
                    cache.person_spoke(told.guild, told.channel, person, &from.name);
                }
                self.count(if matches!(taken, Some(Acceptance::New(_))) { "taken" } else { "known" });
            }
            Some(Acceptance::Not) => {
                if let Some(person) = person {
                    cache.person_opted_out(told.channel, person);
                }
                self.left_out(told, channel_ref, "not_taken");
            }
            None => {
                self.left_out(told, channel_ref, "broken");
            }
        }
        taken.is_some()
    }

    /// Has Discord tell the time, if this machine's clock was set since it told it last: else the age of what is said is not known.
    /// One message waits for that, at most [`TIME_AWAITED`]. The others go on.
    async fn know_the_time(&self) {
        if !self.discord.clocks().was_set() {
            return;
        }
        {
            let mut asked_at = self.asked_the_time.lock().unwrap_or_else(PoisonError::into_inner);
            if asked_at.is_some_and(|at| at.elapsed() < TIME_ASKED_AGAIN) {
                return;
            }
            *asked_at = Some(Instant::now());
        }
        match timeout(TIME_AWAITED, self.discord.rest().tell(&Request::gateway())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "this machine's clock was set, and Discord does not tell the time"),
            Err(_) => tracing::debug!("this machine's clock was set, and Discord does not tell the time soon"),
        }
    }

    /// A message that is not on record was heard all the same: it need not be read after a downtime.
    fn left_out(&self, told: &Told, channel_ref: &ChannelRef, why: &'static str) -> bool {
        self.count(why);
        self.marks.mark(&channel_ref.guild, told.channel, told.message);
        false
    }

    fn count(&self, fate: &'static str) {
        self.instruments.discord_messages.add(1, [fate]);
    }

    /// Whether somebody may listen in a channel. Where it is not known what the channel is, that has to be found out first.
    pub(super) fn may_listen(&self, guild: Option<Snowflake>, channel: Snowflake) -> bool {
        let cache = self.discord.cache();
        self.inbound_events.listens(&cache.channel_ref(guild, channel)) || (!cache.has_channel(channel) && self.lives_in(guild))
    }
}
