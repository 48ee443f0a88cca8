//! What platforms that are not ours tell: said, changed, taken back, read after a downtime, and gone.

mod answered;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::actors::erasure::deletion::{RewriteError, delete_messages, replace_words};
use crate::actors::inbound::{Inbound, Speech};
use crate::actors::membership::changes::{self, MembershipError};
use crate::actors::messages::writer;
use crate::actors::messages::writer::{MetaWriteError, WriteError};
use crate::actors::runtime::actor_keys::ChannelActorKey;
use crate::domain::event::{Event, Gap, Recorded};
use crate::domain::id::{ChannelId, GuildId, PersonId, Seq};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::record::PartRecord;
use crate::ports::chat_platform::Serves;
use crate::ports::inbound_events::{
    Acceptance, Answers, ChannelRef, InboundError, InboundEvents, InboundMessage, Missed, Reached,
};
use crate::telemetry::plain::Plain;
use answered::replied;

/// When to try again what cannot be done for the moment.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Events read at once.
const PAGE: usize = 128;
/// So many channels of a guild that is gone are cleared at one moment.
const CLEARED_AT_ONCE: usize = 16;

#[async_trait]
impl InboundEvents for Inbound {
    fn listens(&self, channel_ref: &ChannelRef) -> bool {
        self.is_of_its_guild(channel_ref) && changes::would_open(&self.context, channel_ref)
    }

    async fn reached(&self, channel_ref: &ChannelRef) -> Result<Option<Reached>, InboundError> {
        if !self.listens(channel_ref) {
            return Ok(None);
        }
        let newest = self.newest_id(&channel_key_of(channel_ref)).await.map_err(unread)?;
        Ok(self.since(channel_ref).map(|since| Reached { newest, since }))
    }

    async fn said(&self, channel_ref: &ChannelRef, inbound_message: InboundMessage) -> Result<Acceptance, InboundError> {
        // What says nothing could not be told from what was taken back.
        if !self.is_of_its_guild(channel_ref)
            || self.is_ignored(channel_ref, &inbound_message.from.id)
            || is_blank(&inbound_message.text)
        {
            return Ok(Acceptance::Ignored);
        }
        match changes::open_within(&self.context, channel_ref).await {
            Ok(true) => {}
            Ok(false) => return Ok(Acceptance::Ignored),
            Err(MembershipError::SharedName(shared)) => {
                let channel = Plain(channel_ref.channel.as_str());
                tracing::warn!(%channel, %shared, "nobody can live here, and nothing that is said is heard; give one of the two another name");
                return Ok(Acceptance::Ignored);
            }
            Err(error) => return Err(membership_error(error)),
        }
        let channel_key = channel_key_of(channel_ref);
        let reply_to = match &inbound_message.answers {
            Some(answers) => self.replied(&channel_key, answers).await.map_err(unread)?,
            None => None,
        };
        let InboundMessage { id, from, text, own_words, modality, lull_endpoint, at, mentions, to_all, answers: _ } =
            inbound_message;
        let speech = Speech {
            id: Some(id),
            from,
            text,
            own_words: Some(own_words),
            modality,
            lull_endpoint,
            mentions,
            reply_to,
            to_all,
            said_at: Some(at),
        };
        let accepted = self.say(&channel_key, speech).await.map_err(refused)?;
        Ok(accepted.map_or(Acceptance::Ignored, |accepted| {
            if accepted.is_new { Acceptance::New(accepted.seq) } else { Acceptance::Duplicate(accepted.seq) }
        }))
    }

    async fn edited(&self, channel_ref: &ChannelRef, id: &str, text: Arc<str>) -> Result<(), InboundError> {
        if is_blank(&text) {
            return self.deleted(channel_ref, &[id.into()]).await;
        }
        let channel_key = channel_key_of(channel_ref);
        let Some((seq, recorded)) = self.on_record(&channel_key, id).await.map_err(unread)? else { return Ok(()) };
        // What companions said, nobody but we could change, and we do not.
        let is_to_change = matches!(&recorded.event, Event::Said { message, .. }
            if message.from.role != Role::Companion && !self.is_ignored(channel_ref, &message.from.id));
        if is_to_change {
            replace_words(&self.context, &channel_key, seq, text).await.map_err(rewrite_error)?;
        }
        Ok(())
    }

    async fn deleted(&self, channel_ref: &ChannelRef, ids: &[Arc<str>]) -> Result<(), InboundError> {
        let (channel_key, reader) = (channel_key_of(channel_ref), self.reader());
        // Before it is looked up what is on record: a statement comes there and leaves the outbox in one.
        let on_its_way = match self.on_its_way(&channel_key).await {
            // A statement that cannot be read is posted by nobody.
            Err(error) if error.is_damage() => Vec::new(),
            read => read.map_err(unread)?,
        };
        let (mut messages, mut unknown, mut illegible) = (BTreeSet::new(), Vec::new(), None);
        for id in ids {
            match reader.message(&channel_key, id).await {
                Ok(Some(seq)) => drop(messages.insert(seq)),
                Ok(None) => unknown.push(id),
                // It keeps no other from being taken back.
                Err(error) if error.is_damage() => illegible = Some(error),
                Err(error) => return Err(unread(error)),
            }
        }
        if !messages.is_empty() {
            delete_messages(&self.context, &channel_key, &messages).await.map_err(rewrite_error)?;
        }
        let may_be_known_soon = |part: &PartRecord| match part {
            PartRecord::Sent { id } => unknown.contains(&id),
            PartRecord::Sending { .. } => !unknown.is_empty(),
            PartRecord::Owed | PartRecord::Unconfirmed => false,
        };
        if on_its_way.iter().any(may_be_known_soon) {
            let detail = "a statement is on its way, which this may be a part of".into();
            return Err(InboundError::Later { after: RETRY_AFTER, detail });
        }
        illegible.map_or(Ok(()), |error| Err(unread(error)))
    }

    async fn caught_up(&self, channel_ref: &ChannelRef, read: u32, missed: Option<Missed>) -> Result<(), InboundError> {
        let is_kept = self.is_of_its_guild(channel_ref) && self.context.memberships.get(&channel_ref.channel).is_some();
        if !is_kept || (read == 0 && missed.is_none()) {
            return Ok(());
        }
        // A gap is told once, however often it is read up to it.
        let id = missed.as_ref().map(|missed| Arc::from(format!("gap:{}-{}", missed.after, missed.before)));
        let missed = missed.map(|Missed { after, before, why }| Gap { after, before, why: why.into() });
        self.accept(&channel_key_of(channel_ref), Event::CaughtUp { read, missed }, id).await.map(drop).map_err(refused)
    }

    async fn channel_gone(&self, guild: &GuildId, channel: &ChannelId) -> Result<(), InboundError> {
        changes::gone(&self.context, guild, channel).await.map_err(membership_error)
    }

    async fn guild_gone(&self, guild: &GuildId) -> Result<(), InboundError> {
        let all = self.context.memberships.all().into_iter();
        let actor_keys: Vec<_> = all
            .filter(|(_, membership)| membership.guild == *guild)
            .map(|(channel, membership)| ChannelKey::new(&membership.guild, &channel))
            .collect();
        let clear = |channel_key: ChannelKey| async move {
            self.accept(&channel_key, Event::Cleared, None).await.map(drop).map_err(refused)
        };
        stream::iter(actor_keys).map(clear).buffer_unordered(CLEARED_AT_ONCE).try_collect().await
    }

    fn guilds(&self, channels: Serves) -> Vec<GuildId> {
        let memberships = &self.context.memberships;
        let rooms = memberships.all().into_iter();
        let has_members = rooms.filter(|(channel, _)| channels(channel) && memberships.has_members(channel) == Some(true));
        has_members.map(|(_, membership)| membership.guild).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

impl Inbound {
    fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.context.store)
    }

    /// Nothing of one guild gets into another, whatever a platform tells.
    fn is_of_its_guild(&self, channel_ref: &ChannelRef) -> bool {
        self.context.memberships.guild_of(&channel_ref.channel).is_none_or(|guild| guild == channel_ref.guild)
    }

    fn is_ignored(&self, channel_ref: &ChannelRef, author: &str) -> bool {
        self.context.opt_outs.holds(&channel_ref.guild, &PersonId::from(author))
    }

    /// Since when somebody lives there, or in the channel that a thread is in, by which it would. In a direct message that is none yet,
    /// nobody does before now.
    fn since(&self, channel_ref: &ChannelRef) -> Option<Moment> {
        let memberships = &self.context.memberships;
        let own = memberships.get(&channel_ref.channel);
        let within = own.as_ref().map_or(channel_ref.parent.as_ref(), Membership::inherits_from);
        let parent = within.and_then(|parent| memberships.get(parent));
        let has_members = [&own, &parent].into_iter().flatten().map(Membership::members_since).max();
        has_members.or_else(|| Some(changes::would_be(&self.context, channel_ref)?.created_at))
    }

    /// The id of the newest message that was heard; one whose words were taken out has no id any more. What companions said tells nothing:
    /// it is on record as soon as it is posted, though what was said before it may still have to be read.
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

    /// The parts of statements that are being posted: they are on record, and known by their ids, once all of a statement is. Nobody posts
    /// anything where the channel sleeps, or is kept away.
    async fn on_its_way(&self, channel_key: &ChannelKey) -> Result<Vec<PartRecord>, ReadError> {
        if self.context.directory.find(&ChannelActorKey(channel_key.channel.clone())).is_none() {
            return Ok(Vec::new());
        }
        let owed = self.reader().outbox(channel_key).await?;
        Ok(owed.into_iter().flat_map(|(_, owed)| owed.parts).collect())
    }

    async fn replied(
        &self,
        channel_key: &ChannelKey,
        answers: &Answers,
    ) -> Result<Option<crate::actors::inbound::Replied>, ReadError> {
        let on_record = match self.on_record(channel_key, &answers.message).await {
            // What is said to it is heard all the same.
            Err(ReadError::Illegible { .. }) => None,
            read => read?,
        };
        let names = self.context.memberships.names(&channel_key.guild);
        Ok(replied(on_record.as_ref().map(|(_, recorded)| recorded), answers.by.as_ref(), names.as_deref()))
    }

    async fn on_record(&self, channel_key: &ChannelKey, id: &str) -> Result<Option<(Seq, Recorded)>, ReadError> {
        let Some(seq) = self.reader().message(channel_key, id).await? else { return Ok(None) };
        Ok(self.reader().event(channel_key, seq).await?.map(|recorded| (seq, recorded)))
    }
}

fn channel_key_of(channel_ref: &ChannelRef) -> ChannelKey {
    ChannelKey::new(&channel_ref.guild, &channel_ref.channel)
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn refused(error: writer::Refused) -> InboundError {
    match error {
        writer::Refused::Busy { retry_after } => {
            InboundError::Later { after: retry_after, detail: "too much waits to be stored".into() }
        }
        writer::Refused::WriteError(lost) => write_error(lost),
    }
}

fn write_error(lost: WriteError) -> InboundError {
    match lost {
        // A backup that is put back takes it in.
        WriteError::Unknown | WriteError::Unavailable(_) | WriteError::Unreadable(_) | WriteError::Deleted => {
            InboundError::Later { after: RETRY_AFTER, detail: lost.to_string() }
        }
        WriteError::Unfit(why) => broken(why),
    }
}

fn membership_error(error: MembershipError) -> InboundError {
    match error {
        MembershipError::SharedName(_) => InboundError::Broken(error.to_string()),
        MembershipError::Unstored(MetaWriteError::WriteError(lost)) => write_error(lost),
        MembershipError::Unstored(meta_write_error @ MetaWriteError::Exists { .. }) => broken(&meta_write_error.to_string()),
        MembershipError::Unheard(error) => refused(error),
    }
}

fn rewrite_error(error: RewriteError) -> InboundError {
    match error {
        RewriteError::Unread(error) => unread(error),
        RewriteError::Unstored(error) => refused(error),
    }
}

/// A store that does not answer may answer again; what is damaged stays so.
fn unread(error: ReadError) -> InboundError {
    let detail = error.to_string();
    if error.is_damage() { broken(&detail) } else { InboundError::Later { after: RETRY_AFTER, detail } }
}

/// Something of ours is wrong; it is logged here.
fn broken(detail: &str) -> InboundError {
    tracing::error!(detail, "what was heard cannot be put on record");
    InboundError::Broken("the record cannot be read or written; the server's log says more".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::store::StoreError;

    #[test]
    fn what_may_succeed_later_is_told_apart_from_what_never_will() {
        let after = Duration::from_secs(7);
        let channel_key = ChannelKey::new(&"home".into(), &"discord:1".into());
        for (error, later) in [
            (refused(writer::Refused::Busy { retry_after: after }), Some(after)),
            (refused(WriteError::Unknown.into()), Some(RETRY_AFTER)),
            (refused(WriteError::Unavailable("the disk is full".into()).into()), Some(RETRY_AFTER)),
            (refused(WriteError::Deleted.into()), Some(RETRY_AFTER)),
            (refused(WriteError::Unfit("nonsense").into()), None),
            (membership_error(MembershipError::Unstored(WriteError::Unknown.into())), Some(RETRY_AFTER)),
            (membership_error(MembershipError::Unheard(WriteError::Unknown.into())), Some(RETRY_AFTER)),
            (rewrite_error(RewriteError::Unstored(WriteError::Unknown.into())), Some(RETRY_AFTER)),
            (unread(StoreError::Failed("gone".into()).into()), Some(RETRY_AFTER)),
            (unread(StoreError::Damaged("torn".into()).into()), None),
            (unread(ReadError::Gap { channel_key, expected: Seq(1), found: Seq(2) }), None),
        ] {
            let told = match &error {
                InboundError::Later { after, .. } => Some(*after),
                InboundError::Broken(_) => None,
            };
            assert_eq!(told, later, "{error}");
        }
    }
}
