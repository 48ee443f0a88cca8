//! Guilds that are kept away, and messages that were set aside because they killed their handler.
//!
//! A message that was set aside is passed over whenever its channel is restored, and stays so: trying it again means hearing it once more, as a
//! new event at the end of the journal, and taking the old one back. Giving it up hides the entry and nothing else.

use std::fmt;
use std::sync::Arc;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::ActorHouse;
use super::desk::{not_rewritten, unavailable, unread};
use crate::actors::guilds::GuildsMessage;
use crate::actors::places::GuildsPlace;
use crate::actors::taking_back::take_messages_out;
use crate::domain::event::Event;
use crate::domain::id::{Seq, Ward};
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::reader::ReadError;
use crate::journal::record::{SetAsideRecord, decode, encode};
use crate::journal::redaction::without_words;
use crate::ports::house::Refused;
use crate::ports::house::keeping::{Quarantine, QuarantinedGuild, SetAside};
use crate::ports::house::room::RoomId;
use crate::ports::store::Write;
use crate::ports::store::key::{ChannelNo, Key, Kind};

/// How an entry is named outside: by where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EntryId {
    ward: Ward,
    no: ChannelNo,
    seq: Seq,
}

impl EntryId {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let id = Self {
            ward: Ward(parts.next()?.parse().ok()?),
            no: ChannelNo(parts.next()?.parse().ok()?),
            seq: Seq(parts.next()?.parse().ok()?),
        };
        parts.next().is_none().then_some(id)
    }

    fn of(key: &Key) -> Option<Self> {
        let ward = Ward(*key.as_bytes().first()?);
        Some(Self { ward, no: key::channel_in(key)?, seq: Seq(key.last_number()?) })
    }

    fn key(self) -> Key {
        key::set_aside(self.ward, self.no, self.seq)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.ward.0, self.no.0, self.seq)
    }
}

impl ActorHouse {
    pub(super) async fn list_quarantine(&self) -> Result<Quarantine, Refused> {
        let (sender, answer) = oneshot::channel();
        self.tell_guilds(GuildsMessage::Quarantined(RpcReplyPort::from(sender)))?;
        let guilds = answer.await.map_err(|_| unavailable("the guilds are being restarted, try again"))?;
        let guilds = guilds.into_iter().map(|entry| QuarantinedGuild {
            id: entry.guild,
            since: entry.since.into(),
            until: entry.until.into(),
            detail: entry.reason,
        });
        let mut messages = Vec::new();
        for ward in (0..=u8::MAX).map(Ward) {
            messages.extend(self.set_aside_in(ward).await.map_err(unread)?);
        }
        messages.sort_by_key(|entry| entry.at);
        Ok(Quarantine { guilds: guilds.collect(), messages })
    }

    pub(super) async fn release_guild(&self, guild: &str) -> Result<(), Refused> {
        let (sender, answer) = oneshot::channel();
        self.tell_guilds(GuildsMessage::Release(guild.into(), RpcReplyPort::from(sender)))?;
        let was_away = answer.await.map_err(|_| unavailable("the guilds are being restarted, try again"))?;
        if was_away { Ok(()) } else { Err(Refused::NotFound(format!("guild {guild} is not in quarantine"))) }
    }

    pub(super) async fn retry_entry(&self, entry: &str) -> Result<(), Refused> {
        let (id, record) = self.entry(entry).await?;
        let place = Place::new(&record.guild, &record.channel);
        if let Some(old) = self.reader().event(&place, record.seq).await.map_err(unread)? {
            if !old.event.is_heard() {
                let (seq, channel) = (record.seq, &record.channel);
                let detail =
                    format!("event {seq} of {channel} is nothing that was heard, so it cannot be heard again; drop it instead");
                return Err(Refused::Conflict(detail));
            }
            // With an id, so that trying again after a failure in the middle hears it once only.
            let again: Arc<str> = again_as(id.ward, id.no, id.seq).into();
            let accepted = self.accept(&place, heard_again(&old.event), Some(again)).await?;
            if let Event::Said { message, .. } = &old.event {
                let _turn = self.kit.rewriting.of(&place).await;
                // Whoever changes or takes back the message where it was said means the one that is read now.
                if let Some(its_own) = &message.id {
                    let key = key::message_id(id.ward, id.no, its_own);
                    self.administer(id.ward, vec![Write::Put(key, encode(&accepted.seq))]).await?;
                }
                self.accept(&place, Event::Deleted { messages: vec![old.seq] }, None).await?;
                // With the words goes what was set aside.
                let bare = vec![without_words(&old)];
                return take_messages_out(&self.kit, &place, &[old.seq], bare, Vec::new()).await.map_err(not_rewritten);
            }
        }
        self.hide(id, record).await
    }

    pub(super) async fn give_up_entry(&self, entry: &str) -> Result<(), Refused> {
        let (id, record) = self.entry(entry).await?;
        self.hide(id, record).await
    }

    /// The record stays: it says that the message must never be handled.
    async fn hide(&self, id: EntryId, record: SetAsideRecord) -> Result<(), Refused> {
        let hidden = SetAsideRecord { is_closed: true, ..record };
        self.administer(id.ward, vec![Write::Put(id.key(), encode(&hidden))]).await
    }

    async fn entry(&self, entry: &str) -> Result<(EntryId, SetAsideRecord), Refused> {
        let missing = || Refused::NotFound(format!("nothing is set aside as {entry}"));
        let id = EntryId::parse(entry).ok_or_else(missing)?;
        let value = self.kit.store.get(id.key()).await.map_err(|error| unread(error.into()))?.ok_or_else(missing)?;
        let record: SetAsideRecord = decode(&id.key(), &value).map_err(|error| unread(error.into()))?;
        if record.is_closed { Err(missing()) } else { Ok((id, record)) }
    }

    async fn set_aside_in(&self, ward: Ward) -> Result<Vec<SetAside>, ReadError> {
        let mut entries = Vec::new();
        for (key, value) in self.reader().all(Key::new(ward, Kind::SetAside)).await? {
            let record: SetAsideRecord = decode(&key, &value)?;
            let Some(id) = EntryId::of(&key).filter(|_| !record.is_closed) else { continue };
            entries.push(SetAside {
                id: id.to_string().into(),
                room: RoomId::of(&record.channel).map_or_else(|| record.channel.as_str().into(), |room| room.as_str().into()),
                guild: record.guild,
                seq: record.seq,
                at: record.at.into(),
                attempts: record.deaths,
                detail: record.error.to_string(),
            });
        }
        Ok(entries)
    }

    fn tell_guilds(&self, message: GuildsMessage) -> Result<(), Refused> {
        let told = self.kit.directory.find(&GuildsPlace()).is_some_and(|guilds| guilds.cast(message).is_ok());
        if told { Ok(()) } else { Err(unavailable("the guilds are being restarted, try again")) }
    }
}

/// The id under which a message that was set aside is heard again.
pub(super) fn again_as(ward: Ward, no: ChannelNo, seq: Seq) -> String {
    format!("retry:{}", EntryId { ward, no, seq })
}

/// The same event, to be heard once more.
fn heard_again(event: &Event) -> Event {
    let mut again = event.clone();
    if let Event::Said { message, reply, said_at, .. } = &mut again {
        // It would be taken for the newest of its platform, a reply is fulfilled only once, and however long ago it was said, it is to be
        // handled now.
        message.id = None;
        *reply = None;
        *said_at = None;
    }
    again
}
