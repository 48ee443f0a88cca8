//! Guilds that are kept away, channels that are left alone, and messages that were set aside because they killed their handler.
//!
//! A message that was set aside is passed over whenever its channel is restored, and stays so: trying it again means hearing it once more, as a
//! new event at the end of the journal, and taking the old one back. Giving it up hides the entry and nothing else.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::ActorBackend;
use super::desk::{rewrite_error, unavailable, unread};
use crate::actors::erasure::deletion::take_messages_out;
use crate::actors::messages::guilds::{Cause, GuildsMessage, Quarantined, Suspended};
use crate::actors::runtime::actor_keys::GuildsKey;
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::ReadError;
use crate::journal::record::{DeadLetterRecord, decode, encode};
use crate::journal::redaction::redact;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{DeadLetter, Quarantine, QuarantinedGuild, SuspendedChannel};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::state::OutOfService;
use crate::ports::store::Write;
use crate::ports::store::key::{ChannelNo, Key, Kind};

/// How long it is waited for who is kept away, where something else is asked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the entry of a channel begins with: a guild may have the same id as one of its channels.
const CHANNEL: &str = "channel:";

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
        key::dead_letter(self.ward, self.no, self.seq)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.ward.0, self.no.0, self.seq)
    }
}

impl ActorBackend {
    pub(super) async fn list_quarantine(&self) -> Result<Quarantine, Refused> {
        let kept_away = self.ask_guilds(GuildsMessage::OutOfService).await?;
        let guilds = kept_away.guilds.into_iter().map(|entry| QuarantinedGuild {
            id: entry.guild,
            since: entry.since.into(),
            until: entry.until.into(),
            detail: entry.reason,
        });
        let channels = kept_away.channels.into_iter().map(|entry| SuspendedChannel {
            id: format!("{CHANNEL}{}", entry.channel).into(),
            room: room_of(&entry.channel),
            guild: entry.guild,
            since: entry.since.into(),
            until: entry.until.into(),
            detail: entry.reason,
        });
        let mut messages = Vec::new();
        for ward in (0..=u8::MAX).map(Ward) {
            messages.extend(self.dead_letters_in(ward).await.map_err(unread)?);
        }
        messages.sort_by_key(|entry| entry.at);
        Ok(Quarantine { guilds: guilds.collect(), channels: channels.collect(), messages })
    }

    /// Why nothing goes on in a channel, if it is left alone, or its guild is kept away; none as well, if nobody says so in time.
    pub(super) async fn kept_away(&self, channel_key: &ChannelKey) -> Option<OutOfService> {
        let asked = tokio::time::timeout(PATIENCE, self.ask_guilds(GuildsMessage::OutOfService)).await;
        let crate::actors::messages::guilds::OutOfService { guilds, channels } = asked.ok()?.ok()?;
        if let Some(Quarantined { guild, until, reason, .. }) = guilds.into_iter().find(|entry| entry.guild == channel_key.guild)
        {
            let detail = format!("its guild is kept away for a while, because it kept failing ({reason}); release it or wait");
            return Some(OutOfService { id: Some(guild.as_str().into()), until: Some(until.into()), detail });
        }
        let Suspended { channel, cause, until, reason, .. } =
            channels.into_iter().find(|entry| entry.channel == channel_key.channel)?;
        let detail = match cause {
            Cause::Died => format!(
                "it is left alone for a while, because it died whenever it went on from its record ({reason}); release it or wait, and if \
                 that goes on, go back to a backup, or delete the room"
            ),
            Cause::Unreadable => {
                format!(
                    "it is left alone, and tried again after a while or when it is released, because its record cannot be read: {reason}"
                )
            }
        };
        Some(OutOfService { id: Some(format!("{CHANNEL}{channel}").into()), until: Some(until.into()), detail })
    }

    pub(super) async fn release_entry(&self, entry: &str) -> Result<(), Refused> {
        if self.ask_guilds(|reply| GuildsMessage::Release(entry.into(), reply)).await? {
            return Ok(());
        }
        let Some(channel) = entry.strip_prefix(CHANNEL) else {
            return Err(Refused::NotFound(format!("guild {entry} is not in quarantine")));
        };
        let was_alone = self.ask_guilds(|reply| GuildsMessage::TryAgain(channel.into(), reply)).await?;
        if was_alone { Ok(()) } else { Err(Refused::NotFound(format!("channel {channel} is not left alone"))) }
    }

    pub(super) async fn retry_entry(&self, entry: &str) -> Result<(), Refused> {
        let (id, record) = self.entry(entry).await?;
        let channel_key = ChannelKey::new(&record.guild, &record.channel);
        if let Some(old) = self.reader().event(&channel_key, record.seq).await.map_err(unread)? {
            if !old.event.is_heard() {
                let (seq, channel) = (record.seq, &record.channel);
                let detail =
                    format!("event {seq} of {channel} is nothing that was heard, so it cannot be heard again; drop it instead");
                return Err(Refused::Conflict(detail));
            }
            // With an id, so that trying again after a failure in the middle hears it once only.
            let again: Arc<str> = again_as(id.ward, id.no, id.seq).into();
            let accepted = self.accept(&channel_key, heard_again(&old.event), Some(again)).await?;
            if let Event::Said { message, .. } = &old.event {
                let _turn = self.context.rewrite_locks.of(&channel_key).await;
                // Whoever changes or takes back the message where it was said means the one that is read now.
                if let Some(its_own) = &message.id {
                    let key = key::message_id(id.ward, id.no, its_own);
                    self.write_meta(id.ward, vec![Write::Put(key, encode(&accepted.seq))]).await?;
                }
                self.accept(&channel_key, Event::Deleted { messages: vec![old.seq] }, None).await?;
                // With the words goes what was set aside.
                let bare = vec![redact(&old)];
                return take_messages_out(&self.context, &channel_key, &[old.seq], bare, Vec::new()).await.map_err(rewrite_error);
            }
        }
        self.hide(id, record).await
    }

    pub(super) async fn give_up_entry(&self, entry: &str) -> Result<(), Refused> {
        let (id, record) = self.entry(entry).await?;
        self.hide(id, record).await
    }

    /// The record stays: it says that the message must never be handled.
    async fn hide(&self, id: EntryId, record: DeadLetterRecord) -> Result<(), Refused> {
        let hidden = DeadLetterRecord { is_closed: true, ..record };
        self.write_meta(id.ward, vec![Write::Put(id.key(), encode(&hidden))]).await
    }

    async fn entry(&self, entry: &str) -> Result<(EntryId, DeadLetterRecord), Refused> {
        let missing = || Refused::NotFound(format!("nothing is set aside as {entry}"));
        let id = EntryId::parse(entry).ok_or_else(missing)?;
        let value = self.context.store.get(id.key()).await.map_err(|error| unread(error.into()))?.ok_or_else(missing)?;
        let record: DeadLetterRecord = decode(&id.key(), &value).map_err(|error| unread(error.into()))?;
        if record.is_closed { Err(missing()) } else { Ok((id, record)) }
    }

    async fn dead_letters_in(&self, ward: Ward) -> Result<Vec<DeadLetter>, ReadError> {
        let mut entries = Vec::new();
        for (key, value) in self.reader().all(Key::new(ward, Kind::DeadLetter)).await? {
            // Nobody can do anything about it here; its room cannot go on from it, and is told of.
            let Ok(record) = decode::<DeadLetterRecord>(&key, &value)
                .inspect_err(|error| tracing::debug!(%error, "what was set aside is not listed"))
            else {
                continue;
            };
            let Some(id) = EntryId::of(&key).filter(|_| !record.is_closed) else { continue };
            entries.push(DeadLetter {
                id: id.to_string().into(),
                room: room_of(&record.channel),
                guild: record.guild,
                seq: record.seq,
                at: record.at.into(),
                attempts: record.deaths,
                detail: record.error.to_string(),
            });
        }
        Ok(entries)
    }

    async fn ask_guilds<T>(&self, message: impl FnOnce(RpcReplyPort<T>) -> GuildsMessage) -> Result<T, Refused> {
        let restarted = || unavailable("the guilds are being restarted, try again");
        let (sender, answer) = oneshot::channel();
        let guilds = self.context.directory.find(&GuildsKey()).ok_or_else(restarted)?;
        guilds.cast(message(RpcReplyPort::from(sender))).map_err(|_| restarted())?;
        answer.await.map_err(|_| restarted())
    }
}

/// How the room of an entry is called outside.
fn room_of(channel: &ChannelId) -> Arc<str> {
    RoomId::of(channel).map_or_else(|| channel.as_str().into(), |room| room.as_str().into())
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
