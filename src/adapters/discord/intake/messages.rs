//! Handles messages: checks whether their channel has companions, and hands them over.

use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::value::RawValue;

use super::super::incoming::{IgnoreReason, Incoming, classify};
use super::super::rest::Request;
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::handover::until_accepted;
use super::lanes::{ReceivedMessage, Work};
use super::{Intake, SharedIntake};
use crate::domain::id::PersonId;
use crate::domain::message::{Author, Role, Sender, Standing};
use crate::ports::inbound_events::{Acceptance, ChannelRef, InboundError, ReactionChange};

/// The wait before the rules for roles are read again.
const NOT_READ: Duration = Duration::from_secs(1);

impl Intake {
    pub(super) fn message_created(&self, at: wire::MessageLocation, data: Box<RawValue>) -> Vec<Work> {
        let (channel, message) = (at.channel_id, at.id);
        let work = self.received(at, data, false);
        if !work.is_empty() || self.shared.discord.cache().has_channel(channel) {
            self.shared.discord.cache().message_seen(channel, message);
        }
        work
    }

    pub(super) fn message_edited(&self, at: wire::MessageLocation, data: Box<RawValue>) -> Vec<Work> {
        self.received(at, data, true)
    }

    fn received(&self, at: wire::MessageLocation, data: Box<RawValue>, is_edit: bool) -> Vec<Work> {
        let (guild, channel, message) = (at.guild_id, at.channel_id, at.id);
        if !self.shared.may_listen(guild, channel) {
            if !is_edit {
                self.shared.count("elsewhere");
            }
            return Vec::new();
        }
        // A forum post has the same id as its first message. Discord reports any other new thread before its first message.
        let cache = self.shared.discord.cache();
        let is_first = message == channel || (cache.has_channel(channel) && cache.newest(channel).is_none());
        vec![Work::Message(ReceivedMessage { guild, channel, message, data, is_edit, is_first })]
    }

    /// Deletions are handed over for every channel. A deleted message is also deleted from the records of channels that have no companions any
    /// more.
    pub(super) fn messages_deleted(&self, guild: Option<Snowflake>, channel: Snowflake, messages: &[Snowflake]) -> Vec<Work> {
        if messages.is_empty() {
            return Vec::new();
        }
        let messages = messages.iter().map(|id| id.to_string().into()).collect();
        vec![Work::Deleted { guild, channel, messages }]
    }

    /// Reactions of bots are left out.
    pub(super) fn reacted(&self, reaction: &wire::Reaction, removed: bool) -> Vec<Work> {
        let (guild, channel) = (reaction.guild_id, reaction.channel_id);
        let is_own = reaction.user_id.is_some() && reaction.user_id == self.shared.discord.user();
        let is_kept = self.shared.keeps_reactions && !is_own && !reaction.is_by_bot();
        // An addition names the person and the emoji.
        let is_whole = removed || reaction.user_id.is_some() && reaction.emoji().is_some_and(|emoji| !emoji.is_empty());
        if !is_kept || !is_whole || !self.shared.may_listen(guild, channel) {
            return Vec::new();
        }
        let change = ReactionChange {
            message: reaction.message_id.to_string().into(),
            by: reaction.user_id.map(Snowflake::person),
            emoji: reaction.emoji().map(Into::into),
            removed,
        };
        vec![Work::Reacted { guild, channel, change }]
    }
}

impl SharedIntake {
    /// Handles a new or edited message. Returns whether it was handed over.
    pub(super) async fn message(&self, received: &ReceivedMessage) -> bool {
        self.catch_panic(received.channel, self.process(received)).await.unwrap_or(false)
    }

    async fn process(&self, received: &ReceivedMessage) -> bool {
        let has_references = ["<@&", "<#"].iter().any(|mark| received.data.get().contains(mark));
        self.look_up_missing(received.guild, received.channel, has_references).await;
        let channel_ref = self.discord.cache().channel_ref(received.guild, received.channel);
        if !self.inbound_events.listens(&channel_ref) {
            if !received.is_edit {
                self.count("elsewhere");
            }
            return false;
        }
        let bot = self.bot_ids().await;
        if self.discord.clocks().must_ask() {
            let discord = self.discord.clone();
            // No message waits for this request. Any response contains the time.
            tokio::spawn(async move { drop(discord.rest().send(&Request::gateway()).await) });
        }
        let mut message: wire::Message = match serde_json::from_str(received.data.get()) {
            Ok(message) => message,
            Err(error) => {
                self.unreadable(if received.is_edit { "MESSAGE_UPDATE" } else { "MESSAGE_CREATE" }, &error);
                self.marks.mark(&channel_ref.guild, received.channel, received.message);
                return false;
            }
        };
        if message.has_forward() {
            self.discord.withhold_opted_out(&mut message, &self.inbound_events.opted_out(&channel_ref)).await;
        }
        let mut incoming = classify(&message, bot, &self.discord.cache().names(received.guild));
        let proxied = if received.is_edit { None } else { self.proxies.author_of(received.channel, &message) };
        if let (Incoming::Message(inbound), Some(author)) = (&mut incoming, proxied) {
            // The name of the webhook stays.
            inbound.from = Author { id: author.person().as_str().into(), role: Role::Person, ..inbound.from.clone() };
            inbound.sender = Some(Sender::Proxy);
        } else if let (Incoming::Message(inbound), Some(bridge)) = (&mut incoming, self.bridge_of(&message)) {
            let id = PersonId::behind(&bridge.person(), &inbound.from.name);
            inbound.from = Author { id: id.as_str().into(), role: Role::Person, ..inbound.from.clone() };
        }
        if received.is_edit {
            self.hand_over_edit(received, &channel_ref, incoming).await
        } else {
            self.hand_over_new(received, &channel_ref, &message, incoming).await
        }
    }

    /// The bridge that relayed a message of somebody elsewhere.
    fn bridge_of(&self, message: &wire::Message) -> Option<Snowflake> {
        let is_of_program = message.webhook_id.is_some() || message.author.bot == Some(true);
        let of_message = [message.webhook_id, message.application_id, Some(message.author.id)];
        of_message.into_iter().flatten().find(|id| is_of_program && self.bridges.contains(id))
    }

    async fn hand_over_edit(&self, received: &ReceivedMessage, channel_ref: &ChannelRef, incoming: Incoming) -> bool {
        let Incoming::Message(message) = incoming else { return false };
        let id = received.message.to_string();
        let edited = || self.inbound_events.edited(channel_ref, &id, message.text.clone());
        until_accepted(self, received.channel, edited).await.is_some()
    }

    async fn hand_over_new(
        &self,
        received: &ReceivedMessage,
        channel_ref: &ChannelRef,
        message: &wire::Message,
        incoming: Incoming,
    ) -> bool {
        let mut inbound_message = match incoming {
            Incoming::Message(inbound_message) => *inbound_message,
            Incoming::Ours(_) => return self.skip(received, channel_ref, "ours"),
            Incoming::Ignored(IgnoreReason::NotConversation) => return self.skip(received, channel_ref, "no_talk"),
            Incoming::Ignored(IgnoreReason::NotPublic) => return self.skip(received, channel_ref, "not_for_all"),
            Incoming::Ignored(IgnoreReason::Empty) => return self.skip(received, channel_ref, "empty"),
        };
        let cache = self.discord.cache();
        let from = inbound_message.from.clone();
        // The account behind a proxied name is not mentioned.
        let is_own_name = message.webhook_id.is_none();
        let person = Snowflake::of_person(&from.id).filter(|_| from.role == Role::Person && is_own_name);
        let own_role = received.guild.and_then(|guild| cache.own_role(guild));
        if let Some(title) = cache.thread_title(received.channel).filter(|_| received.is_first) {
            // The person who begins a thread also wrote its title.
            let own_words = inbound_message.own_words.unwrap_or_default();
            inbound_message.own_words = Some(format!("{title}\n{own_words}").into());
        }
        inbound_message.standing = self.standing(received, message, &from).await;
        inbound_message.said_at = Some(self.discord.clocks().said_at(message.id));
        inbound_message.to_all |= received.guild.is_none() || own_role.is_some_and(|role| message.mention_roles.contains(&role));
        if received.guild.is_none() && person.is_some() {
            cache.set_direct(received.channel, &from.name);
        }
        let accepted =
            until_accepted(self, received.channel, || self.inbound_events.said(channel_ref, inbound_message.clone())).await;
        match accepted {
            Some(Acceptance::New(_) | Acceptance::Duplicate(_)) => {
                if let Some(person) = person {
                    cache.person_spoke(received.guild, received.channel, person, &from.name);
                }
                self.count(if matches!(accepted, Some(Acceptance::New(_))) { "taken" } else { "known" });
            }
            Some(Acceptance::Ignored) => {
                if let Some(person) = person {
                    cache.person_opted_out(received.channel, person);
                }
                self.skip(received, channel_ref, "not_taken");
            }
            None => {
                self.skip(received, channel_ref, "broken");
            }
        }
        accepted.is_some()
    }

    /// Whether the author may address companions, by the roles that the guild's managers chose. Roles of webhooks are those of the person behind a
    /// proxied message.
    async fn standing(&self, received: &ReceivedMessage, message: &wire::Message, from: &Author) -> Standing {
        let is_webhook = message.webhook_id.is_some();
        let author = Snowflake::of_person(&from.id).filter(|_| !is_webhook || from.role == Role::Person);
        let (Some(guild), Some(author)) = (received.guild, author) else { return Standing::Free };
        let roles = message.member.roles.as_deref().filter(|_| !is_webhook);
        let standing = || async move {
            let standing = self.discord.standing(guild, author, roles).await;
            standing.map_err(|error| InboundError::Later { after: NOT_READ, detail: error.to_string() })
        };
        until_accepted(self, received.channel, || standing().boxed()).await.unwrap_or(Standing::MayNotAddress)
    }

    /// Marks a message as received without journaling it, so that the backfill does not read it again after downtime.
    fn skip(&self, received: &ReceivedMessage, channel_ref: &ChannelRef, why: &'static str) -> bool {
        self.count(why);
        self.marks.mark(&channel_ref.guild, received.channel, received.message);
        false
    }

    fn count(&self, fate: &'static str) {
        self.instruments.discord_messages.add(1, [fate]);
    }

    /// Whether a channel may have companions. If the channel is unknown, returns whether its guild has any.
    pub(super) fn may_listen(&self, guild: Option<Snowflake>, channel: Snowflake) -> bool {
        let cache = self.discord.cache();
        self.inbound_events.listens(&cache.channel_ref(guild, channel))
            || (!cache.has_channel(channel) && self.has_members(guild))
    }
}
