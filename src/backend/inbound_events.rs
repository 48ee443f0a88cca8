//! Inbound events of other platforms: messages, edits, deletions, messages that were read after a downtime, and deleted channels.

mod answered;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::actors::erasure::deletion::{Change, change_message, delete_messages};
use crate::actors::erasure::named::forget_quotations;
use crate::actors::inbound::{Inbound, Replied};
use crate::actors::membership::changes::{self, MembershipError};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::domain::event::{Event, Gap, Recorded};
use crate::domain::id::{ChannelId, GuildId, PersonId, Seq};
use crate::domain::message::{Author, Quoted, Role};
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::record::PartRecord;
use crate::journal::redaction::is_redacted;
use crate::ports::chat_platform::Serves;
use crate::ports::inbound_events::{
    Acceptance, Answered, ChannelRef, InboundError, InboundEvents, InboundMessage, Reached, ReactionChange, ReplyTo,
};
use crate::telemetry::plain::Plain;
use answered::replied;

/// The delay before a retry after a temporary failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The limits of recorded reactions on a statement: in all, and by one person. Removed ones count. Removals are recorded beyond it, but each
/// removes a reaction that is on record.
const MAX_REACTIONS: usize = 200;
const MAX_REACTIONS_BY_PERSON: usize = 20;
/// The number of events per read.
const PAGE: usize = 128;
/// The number of channels of a removed guild that are cleared concurrently.
const MAX_CONCURRENT_CLEARS: usize = 16;

#[async_trait]
impl InboundEvents for Inbound {
    fn listens(&self, channel_ref: &ChannelRef) -> bool {
        self.is_of_its_guild(channel_ref) && changes::would_open(self.context(), channel_ref)
    }

    fn opted_out(&self, channel_ref: &ChannelRef) -> HashSet<PersonId> {
        self.context().opt_outs.filtered(&channel_ref.guild, |()| true).into_iter().collect()
    }

    async fn reached(&self, channel_ref: &ChannelRef) -> Result<Option<Reached>, InboundError> {
        if !self.listens(channel_ref) {
            return Ok(None);
        }
        let newest = self.newest_id(&channel_key_of(channel_ref)).await?;
        Ok(self.since(channel_ref).map(|since| Reached { newest, since }))
    }

    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError> {
        // An empty message could not be distinguished from a deleted one.
        if self.is_ignored(channel_ref, &inbound_message.from.id) || is_blank(&inbound_message.text) {
            return Ok(Acceptance::Ignored);
        }
        if !self.opens(channel_ref).await? {
            return Ok(Acceptance::Ignored);
        }
        let channel_key = channel_key_of(channel_ref);
        let is_behind_bridge = PersonId::from(&*inbound_message.from.id).is_behind_bridge();
        let names = self.context().memberships.names(&channel_ref.guild).filter(|_| is_behind_bridge);
        if names.is_some_and(|names| names.namesake(&inbound_message.from.name).is_some()) {
            // A second bridge relays what a companion said, and answers to it would come back as well.
            return Ok(Acceptance::Ignored);
        }
        let replied = match &inbound_message.reply_to {
            Some(ReplyTo::Foreign { id, by, quoted }) => {
                let quoted = quoted.as_ref().filter(|quoted| !self.is_ignored(channel_ref, &quoted.from.id));
                self.replied(&channel_key, id, by.as_ref(), quoted).await?
            }
            Some(ReplyTo::Recorded(_)) | None => None,
        };
        let accepted = self.say(&channel_key, inbound_message, replied).await?;
        Ok(accepted.map_or(Acceptance::Ignored, |accepted| {
            if accepted.is_new { Acceptance::New(accepted.seq) } else { Acceptance::Duplicate(accepted.seq) }
        }))
    }

    async fn edited(&self, channel_ref: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError> {
        if is_blank(&text) {
            return self.deleted(channel_ref, &[id.into()]).await;
        }
        let channel_key = channel_key_of(channel_ref);
        let Some((seq, recorded)) = self.on_record(&channel_key, id).await? else {
            // A quote of the message must not contain text that the author has removed.
            return Ok(forget_quotations(self.context(), &channel_key, id, Some(&text)).await?);
        };
        // Only the bot can edit the companions' statements. The record has such an edit before Discord reports it.
        let is_editable = matches!(&recorded.event, Event::Said { message, .. }
            if message.from.role != Role::Companion && !self.is_ignored(channel_ref, &message.from.id));
        if is_editable {
            change_message(self.context(), &channel_key, seq, Change::Text(text)).await?;
        }
        Ok(())
    }

    async fn deleted(&self, channel_ref: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError> {
        let (channel_key, reader) = (channel_key_of(channel_ref), self.reader());
        // The outbox is read before the record: a statement is recorded and removed from the outbox in one batch, so it is found in one of them.
        let in_delivery = match self.in_delivery(&channel_key).await {
            // A part with an unreadable outbox entry is not being posted.
            Err(error) if error.is_damage() => Vec::new(),
            read => read?,
        };
        let (mut messages, mut unknown, mut illegible) = (BTreeSet::new(), Vec::new(), None);
        for id in ids {
            match reader.message(&channel_key, id).await {
                Ok(Some(seq)) => drop(messages.insert(seq)),
                Ok(None) => unknown.push(id),
                // An unreadable entry must not prevent the deletion of the others.
                Err(error) if error.is_damage() => {
                    illegible = Some(error);
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            forget_quotations(self.context(), &channel_key, id, None).await?;
        }
        if !messages.is_empty() {
            delete_messages(self.context(), &channel_key, &messages).await?;
        }
        let may_be_recorded_soon = |part: &PartRecord| match part {
            PartRecord::Sent { id } => unknown.contains(&id),
            PartRecord::Sending { .. } => !unknown.is_empty(),
            PartRecord::Owed | PartRecord::Unconfirmed => false,
        };
        if in_delivery.iter().any(may_be_recorded_soon) {
            let detail = "this may be a part of a statement that is being posted".into();
            return Err(InboundError::Later { after: RETRY_AFTER, detail });
        }
        illegible.map_or(Ok(()), |error| Err(error.into()))
    }

    async fn reacted(&self, channel_ref: &ChannelRef, change: ReactionChange) -> Result<(), InboundError> {
        if !self.is_of_its_guild(channel_ref) {
            return Ok(());
        }
        let channel_key = channel_key_of(channel_ref);
        let in_delivery = self.in_delivery(&channel_key).await?;
        let Some((message, recorded)) = self.on_record(&channel_key, &change.message).await? else {
            let is_of_it = |part: &PartRecord| matches!(part, PartRecord::Sent { id } if *id == change.message);
            let detail = || "this is a part of a statement that is being posted".into();
            let later = || InboundError::Later { after: RETRY_AFTER, detail: detail() };
            return in_delivery.iter().any(is_of_it).then(later).map_or(Ok(()), Err);
        };
        let is_statement = matches!(&recorded.event, Event::Said { message, .. }
            if message.from.role == Role::Companion && !is_redacted(message));
        let (recorded, is_all) = self.reader().reactions_on(&channel_key, message).await?;
        if !is_statement || !is_all {
            return Ok(());
        }
        for (by, emoji) in self.changed_reactions(channel_ref, &change, &recorded) {
            let event = Event::Reacted { message, by, emoji, removed: change.removed };
            self.accept(&channel_key, event, None).await?;
        }
        Ok(())
    }

    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Gap>) -> Result<(), InboundError> {
        let is_kept = self.is_of_its_guild(channel_ref) && self.context().memberships.get(&channel_ref.channel).is_some();
        if !is_kept || (read == 0 && missed.is_none()) {
            return Ok(());
        }
        // The id ensures that a gap is recorded only once, even if it is reported repeatedly.
        let id = missed.as_ref().map(|missed| Arc::from(format!("gap:{}-{}", missed.after, missed.before)));
        self.accept(&channel_key_of(channel_ref), Event::CaughtUp { read, missed }, id).await?;
        Ok(())
    }

    async fn channel_gone(&self, guild: &GuildId, channel: &ChannelId) -> Result<(), InboundError> {
        Ok(changes::gone(self.context(), guild, channel).await?)
    }

    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError> {
        let all = self.context().memberships.all().into_iter();
        let channel_keys: Vec<_> = all
            .filter(|(_, membership)| membership.guild == *guild)
            .map(|(channel, membership)| ChannelKey::new(&membership.guild, &channel))
            .collect();
        let clear = |channel_key: ChannelKey| async move {
            self.accept(&channel_key, Event::cleared(), None).await.map(drop).map_err(InboundError::from)
        };
        stream::iter(channel_keys).map(clear).buffer_unordered(MAX_CONCURRENT_CLEARS).try_collect().await
    }

    fn guilds(&self, channels: Serves) -> Vec<GuildId> {
        let memberships = &self.context().memberships;
        let rooms = memberships.all().into_iter();
        let has_members = rooms.filter(|(channel, _)| channels(channel) && memberships.has_members(channel) == Some(true));
        has_members.map(|(_, membership)| membership.guild).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl Inbound {
    fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.context().store)
    }

    /// The reactions that a change adds to those on record, or removes from them.
    fn changed_reactions(
        &self,
        channel_ref: &ChannelRef,
        change: &ReactionChange,
        recorded: &[Recorded],
    ) -> Vec<(PersonId, Arc<str>)> {
        let (mut present, mut own) = (BTreeSet::new(), 0);
        for recorded in recorded {
            let Event::Reacted { by, emoji, removed, .. } = &recorded.event else { continue };
            own += usize::from(Some(by) == change.by.as_ref());
            let reaction = (by.clone(), emoji.clone());
            if *removed {
                present.remove(&reaction);
            } else {
                present.insert(reaction);
            }
        }
        if change.removed {
            let is_meant = |(by, emoji): &(PersonId, Arc<str>)| {
                change.by.as_ref().is_none_or(|of| of == by) && change.emoji.as_ref().is_none_or(|of| of == emoji)
            };
            return present.into_iter().filter(is_meant).collect();
        }
        let added = change.by.clone().zip(change.emoji.clone());
        let is_bounded = own < MAX_REACTIONS_BY_PERSON && recorded.len() < MAX_REACTIONS;
        let is_new = |added: &(PersonId, Arc<str>)| {
            is_bounded && !present.contains(added) && !self.is_ignored(channel_ref, added.0.as_str())
        };
        added.filter(is_new).into_iter().collect()
    }

    /// Whether the channel belongs to the guild that the platform names. Events of one guild must never get into another.
    fn is_of_its_guild(&self, channel_ref: &ChannelRef) -> bool {
        self.context().memberships.guild_of(&channel_ref.channel).is_none_or(|guild| guild == channel_ref.guild)
    }

    /// Whether a channel is a room. If companions would be its members, it becomes a room now. False: events of the channel are ignored.
    pub(super) async fn opens(&self, channel_ref: &ChannelRef) -> Result<bool, InboundError> {
        if !self.is_of_its_guild(channel_ref) {
            return Ok(false);
        }
        match changes::ensure_room(self.context(), channel_ref).await {
            Ok(is_room) => Ok(is_room),
            Err(MembershipError::SharedName(shared)) => {
                let channel = Plain(channel_ref.channel.as_str());
                tracing::warn!(
                    %channel,
                    %shared,
                    "no companion can be a member of this channel, and its messages are ignored; give one of the two another name"
                );
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn is_ignored(&self, channel_ref: &ChannelRef, author: &str) -> bool {
        self.context().opt_outs.holds(&channel_ref.guild, &PersonId::from(author))
    }

    /// Since when the channel, or the parent channel from which a thread inherits, has members. A direct message that is no room yet has members
    /// from now on.
    fn since(&self, channel_ref: &ChannelRef) -> Option<Moment> {
        let memberships = &self.context().memberships;
        let own = memberships.get(&channel_ref.channel);
        let within = own.as_ref().map_or(channel_ref.parent.as_ref(), Membership::inherits_from);
        let parent = within.and_then(|parent| memberships.get(parent));
        let has_members = [&own, &parent].into_iter().flatten().map(Membership::members_since).max();
        has_members.or_else(|| Some(changes::default_membership(self.context(), channel_ref)?.created_at))
    }

    /// The platform's id of the newest inbound message. Redacted messages have no id. Statements of companions do not count: they are recorded as
    /// soon as they are posted, although earlier messages of others may not have been read yet.
    async fn newest_id(&self, channel_key: &ChannelKey) -> Result<Option<Arc<str>>, ReadError> {
        let mut before = None;
        loop {
            let range = Range { after: Seq::NONE, before, limit: PAGE, newest_first: true };
            let page = self.reader().legible(channel_key, range).await?;
            let id = page.events.iter().find_map(|recorded| match &recorded.event {
                Event::Said { message, .. } if message.from.role != Role::Companion => message.id.clone(),
                _ => None,
            });
            if id.is_some() || page.looked_at() < PAGE {
                return Ok(id);
            }
            before = page.last;
        }
    }

    /// The parts of statements that are being posted. They can be found by their ids when the whole statement is recorded. If the channel is not
    /// running, nothing is being posted.
    async fn in_delivery(&self, channel_key: &ChannelKey) -> Result<Vec<PartRecord>, ReadError> {
        if self.context().directory.find(&ChannelActorKey(channel_key.channel.clone())).is_none() {
            return Ok(Vec::new());
        }
        let owed = self.reader().outbox(channel_key).await?;
        Ok(owed.into_iter().flat_map(|(_, owed)| owed.parts).collect())
    }

    async fn replied(
        &self,
        channel_key: &ChannelKey,
        id: &str,
        by: Option<&Answered>,
        quoted: Option<&Quoted>,
    ) -> Result<Option<Replied>, ReadError> {
        let (on_record, quoted) = match self.on_record(channel_key, id).await {
            // The answer itself is accepted even if the message that it answers cannot be read.
            Err(ReadError::Illegible { .. }) => (None, None),
            read => (read?, quoted),
        };
        let names = self.context().memberships.names(&channel_key.guild);
        let replied = replied(on_record.as_ref().map(|(_, recorded)| recorded), by, names.as_deref());
        // Text that was deleted here is not quoted, even if the platform still shows it.
        let quoted = quoted.filter(|_| on_record.is_none());
        Ok(replied.map(|replied| {
            let quoted = quoted.map(|quoted| {
                let from = Author { id: replied.author.clone(), ..quoted.from.clone() };
                Quoted { id: Some(id.into()), from, ..quoted.clone() }
            });
            Replied { quoted, ..replied }
        }))
    }

    async fn on_record(&self, channel_key: &ChannelKey, id: &str) -> Result<Option<(Seq, Recorded)>, ReadError> {
        let Some(seq) = self.reader().message(channel_key, id).await? else { return Ok(None) };
        Ok(self.reader().event(channel_key, seq).await?.map(|recorded| (seq, recorded)))
    }
}

pub(super) fn channel_key_of(channel_ref: &ChannelRef) -> ChannelKey {
    ChannelKey::new(&channel_ref.guild, &channel_ref.channel)
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
