//! Quarantined guilds, suspended channels, and dead letters.
//!
//! A dead letter is always skipped when its channel is restored. A retry appends a copy as a new inbound event at the end of the journal, and
//! deletes the old message. Dropping a dead letter only hides the entry.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::ActorBackend;
use super::errors::unavailable;
use crate::actors::messages::guilds::{Cause, GuildsMessage, Quarantined, Suspended};
use crate::actors::runtime::actor_keys::GuildsKey;
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::ReadError;
use crate::journal::record::{DeadLetterRecord, decode, encode};
use crate::ports::backend::keeping::DeadLetter;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::state::OutOfService;
use crate::ports::backend::{Detail, Refused};
use crate::ports::store::Write;
use crate::ports::store::key::{ChannelNo, Key, Kind};

/// How long other requests wait for the list of quarantined guilds and suspended channels.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// The prefix of the id of a suspended channel. A guild may have the same id as one of its channels, so it is needed.
pub(super) const CHANNEL_PREFIX: &str = "channel:";

/// The id of a dead letter in the API: its ward, channel number and event number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryId {
    pub(super) ward: Ward,
    pub(super) no: ChannelNo,
    pub(super) seq: Seq,
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
    /// Why a channel is out of service: it is suspended, or its guild is quarantined. `None` also if the supervisor does not respond in time.
    pub(super) async fn out_of_service(&self, channel_key: &ChannelKey) -> Option<OutOfService> {
        let listed = tokio::time::timeout(LIST_TIMEOUT, self.ask_guilds(GuildsMessage::OutOfService)).await;
        let crate::actors::messages::guilds::OutOfService { guilds, channels } = listed.ok()?.ok()?;
        if let Some(Quarantined { guild, until, reason, .. }) = guilds.into_iter().find(|entry| entry.guild == channel_key.guild)
        {
            let detail =
                format!("its guild is quarantined for a while, because it crashed repeatedly ({reason}); release it or wait");
            return Some(OutOfService { id: Some(guild.as_str().into()), until: Some(until.into()), detail });
        }
        let Suspended { channel, cause, until, reason, .. } =
            channels.into_iter().find(|entry| entry.channel == channel_key.channel)?;
        let detail = match cause {
            Cause::Died => format!(
                "it is suspended for a while, because it crashed each time it was restored from its record ({reason}); release it or wait, \
                 and if it keeps crashing, restore a backup or delete the room"
            ),
            Cause::Unreadable => {
                format!(
                    "it is suspended, because its record cannot be read ({reason}); it is retried after a while, or when you release it"
                )
            }
        };
        Some(OutOfService { id: Some(format!("{CHANNEL_PREFIX}{channel}").into()), until: Some(until.into()), detail })
    }

    /// Hides the entry. The record stays, because it says that the message must never be handled.
    pub(super) async fn hide(&self, id: EntryId, record: DeadLetterRecord) -> Result<(), Refused> {
        let hidden = DeadLetterRecord { is_closed: true, ..record };
        self.write_meta(id.ward, vec![Write::Put(id.key(), encode(&hidden))]).await
    }

    pub(super) async fn entry(&self, entry: &str) -> Result<(EntryId, DeadLetterRecord), Refused> {
        let missing = || Refused::not_found(format!("there is no dead letter {entry}"));
        let id = EntryId::parse(entry).ok_or_else(missing)?;
        let value = self.context.store.get(id.key()).await?.ok_or_else(missing)?;
        let record: DeadLetterRecord = decode(&id.key(), &value)?;
        if record.is_closed { Err(missing()) } else { Ok((id, record)) }
    }

    pub(super) async fn dead_letters_in(&self, ward: Ward) -> Result<Vec<DeadLetter>, ReadError> {
        let mut entries = Vec::new();
        for (key, value) in self.reader().all(Key::new(ward, Kind::DeadLetter)).await? {
            // An operator cannot act on an unreadable entry here. Its room cannot continue, and is reported.
            let Ok(record) = decode::<DeadLetterRecord>(&key, &value)
                .inspect_err(|error| tracing::debug!(%error, "a dead letter cannot be read and is not listed"))
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

    pub(super) async fn ask_guilds<T>(&self, message: impl FnOnce(RpcReplyPort<T>) -> GuildsMessage) -> Result<T, Refused> {
        let restarted = || unavailable(Detail::key("refusals.restarting"));
        let (sender, answer) = oneshot::channel();
        let guilds = self.context.directory.find(&GuildsKey()).ok_or_else(restarted)?;
        guilds.cast(message(RpcReplyPort::from(sender))).map_err(|_| restarted())?;
        answer.await.map_err(|_| restarted())
    }
}

/// The name of the room in the API.
pub(super) fn room_of(channel: &ChannelId) -> Arc<str> {
    RoomId::of(channel).map_or_else(|| channel.as_str().into(), |room| room.as_str().into())
}

/// The message id for the retry of a dead letter.
pub(super) fn retry_id(ward: Ward, no: ChannelNo, seq: Seq) -> String {
    format!("retry:{}", EntryId { ward, no, seq })
}

/// A copy of the event that can be accepted again.
pub(super) fn retried(event: &Event) -> Event {
    let mut copy = event.clone();
    if let Event::Said { message, reply, said_at, .. } = &mut copy {
        // With its id, the copy would be taken for the newest message of its platform. A reply is fulfilled only once. And the copy must be handled
        // now, however old the message is.
        message.id = None;
        *reply = None;
        *said_at = None;
    }
    copy
}
