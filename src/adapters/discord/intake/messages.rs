//! Messages: whether anybody listens, and what becomes of them.

use std::sync::PoisonError;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use super::super::incoming::{IgnoreReason, Incoming};
use super::super::rest::Request;
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::conversion;
use super::handover::until_accepted;
use super::lanes::{ReceivedMessage, Work};
use super::{Intake, SharedIntake};
use crate::domain::message::Role;
use crate::ports::inbound_events::{Acceptance, ChannelRef};

/// If Discord did not tell the time, it is asked again after this.
const TIME_ASKED_AGAIN: Duration = Duration::from_secs(30);
/// A message waits so long for the time at most.
const TIME_AWAITED: Duration = Duration::from_secs(3);

impl Intake {
    /// Somebody said something.
    pub(super) fn said(&self, at: wire::MessageLocation, data: Box<RawValue>) -> Vec<Work> {
        let (channel, message) = (at.channel_id.0, at.id.0);
        let work = self.received(at, data, false);
        if !work.is_empty() || self.shared.discord.cache().has_channel(channel) {
            self.shared.discord.cache().message_seen(channel, message);
        }
        work
    }

    /// Somebody wrote a message anew.
    pub(super) fn edited(&self, at: wire::MessageLocation, data: Box<RawValue>) -> Vec<Work> {
        self.received(at, data, true)
    }

    fn received(&self, at: wire::MessageLocation, data: Box<RawValue>, is_edit: bool) -> Vec<Work> {
        let (guild, channel, message) = (at.guild_id.map(|id| id.0), at.channel_id.0, at.id.0);
        if !self.shared.may_listen(guild, channel) {
            if !is_edit {
                self.shared.count("elsewhere");
            }
            return Vec::new();
        }
        vec![Work::Message(ReceivedMessage { guild, channel, message, data, is_edit })]
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

impl SharedIntake {
    /// Takes in what was said, or written anew. Returns whether it was handed over.
    pub(super) async fn message(&self, received: &ReceivedMessage) -> bool {
        self.catch_panic(received.channel, self.process(received)).await.unwrap_or(false)
    }

    async fn process(&self, received: &ReceivedMessage) -> bool {
        let points_at_something = ["<@&", "<#"].iter().any(|mark| received.data.get().contains(mark));
        self.look_up_missing(received.guild, received.channel, points_at_something).await;
        let channel_ref = self.discord.cache().channel_ref(received.guild, received.channel);
        if !self.inbound_events.listens(&channel_ref) {
            if !received.is_edit {
                self.count("elsewhere");
            }
            return false;
        }
        let bot = self.who().await;
        self.refresh_clock().await;
        let message: wire::Message = match serde_json::from_str(received.data.get()) {
            Ok(message) => message,
            Err(error) => {
                self.unreadable(if received.is_edit { "MESSAGE_UPDATE" } else { "MESSAGE_CREATE" }, &error);
                self.marks.mark(&channel_ref.guild, received.channel, received.message);
                return false;
            }
        };
        let incoming = conversion::classify_message(&message, bot, self.discord.cache().names(received.guild));
        if received.is_edit {
            self.edited(received, &channel_ref, incoming).await
        } else {
            self.said(received, &channel_ref, &message, incoming).await
        }
    }

    async fn edited(&self, received: &ReceivedMessage, channel_ref: &ChannelRef, incoming: Incoming) -> bool {
        let Incoming::Message(message) = incoming else { return false };
        let (id, text) = (message.id.to_string(), message.text.into());
        let edited = || self.inbound_events.edited(channel_ref, &id, std::sync::Arc::clone(&text));
        until_accepted(self, received.channel, edited).await.is_some()
    }

    async fn said(
        &self,
        received: &ReceivedMessage,
        channel_ref: &ChannelRef,
        message: &wire::Message,
        incoming: Incoming,
    ) -> bool {
        let said = match incoming {
            Incoming::Message(said) => said,
            Incoming::Ours(_) => return self.left_out(received, channel_ref, "ours"),
            Incoming::Ignored(IgnoreReason::NotConversation) => return self.left_out(received, channel_ref, "no_talk"),
            Incoming::Ignored(IgnoreReason::NotPublic) => return self.left_out(received, channel_ref, "not_for_all"),
            Incoming::Ignored(IgnoreReason::Empty) => return self.left_out(received, channel_ref, "empty"),
        };
        let cache = self.discord.cache();
        let from = said.from.clone();
        let person = Snowflake::of_person(&from.id).filter(|_| from.role == Role::Person);
        let own_role = received.guild.and_then(|guild| cache.own_role(guild));
        let to_all = received.guild.is_none() || own_role.is_some_and(|role| message.mentions_role(role));
        if received.guild.is_none() && person.is_some() {
            cache.set_direct(received.channel, &from.name);
        }
        let inbound_message = conversion::to_inbound(said, to_all, self.discord.clocks());
        let taken =
            until_accepted(self, received.channel, || self.inbound_events.said(channel_ref, inbound_message.clone())).await;
        match taken {
            Some(Acceptance::New(_) | Acceptance::Known(_)) => {
                if let Some(person) = person {
                    cache.person_spoke(received.guild, received.channel, person, &from.name);
                }
                self.count(if matches!(taken, Some(Acceptance::New(_))) { "taken" } else { "known" });
            }
            Some(Acceptance::Not) => {
                if let Some(person) = person {
                    cache.person_opted_out(received.channel, person);
                }
                self.left_out(received, channel_ref, "not_taken");
            }
            None => {
                self.left_out(received, channel_ref, "broken");
            }
        }
        taken.is_some()
    }

    /// Has Discord tell the time, if this machine's clock was set since it told it last: else the age of what is said is not known.
    /// One message waits for that, at most [`TIME_AWAITED`]. The others go on.
    async fn refresh_clock(&self) {
        if !self.discord.clocks().was_set() {
            return;
        }
        {
            let mut asked_at = self.clock_requested_at.lock().unwrap_or_else(PoisonError::into_inner);
            if asked_at.is_some_and(|at| at.elapsed() < TIME_ASKED_AGAIN) {
                return;
            }
            *asked_at = Some(Instant::now());
        }
        match timeout(TIME_AWAITED, self.discord.rest().send(&Request::gateway())).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%error, "this machine's clock was set, and Discord does not tell the time"),
            Err(_) => tracing::debug!("this machine's clock was set, and Discord does not tell the time soon"),
        }
    }

    /// A message that is not on record was heard all the same: it need not be read after a downtime.
    fn left_out(&self, received: &ReceivedMessage, channel_ref: &ChannelRef, why: &'static str) -> bool {
        self.count(why);
        self.marks.mark(&channel_ref.guild, received.channel, received.message);
        false
    }

    fn count(&self, fate: &'static str) {
        self.instruments.discord_messages.add(1, [fate]);
    }

    /// Whether somebody may listen in a channel. Where it is not known what the channel is, that has to be found out first.
    pub(super) fn may_listen(&self, guild: Option<Snowflake>, channel: Snowflake) -> bool {
        let cache = self.discord.cache();
        self.inbound_events.listens(&cache.channel_ref(guild, channel))
            || (!cache.has_channel(channel) && self.has_members(guild))
    }
}
