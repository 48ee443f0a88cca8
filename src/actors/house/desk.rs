//! How the house reaches the scribe, the channels and the guilds, and what it says when it cannot.

use std::sync::Arc;
use std::time::Duration;

use ractor::RpcReplyPort;
use tokio::sync::oneshot;

use super::ActorHouse;
use crate::actors::channel::{ChannelMessage, Look};
use crate::actors::guild::GuildMessage;
use crate::actors::guilds::GuildsMessage;
use crate::actors::places::{ChannelPlace, GuildPlace, GuildsPlace, ScribePlace};
use crate::actors::scribe::{self, Accepted, Administer, Contested, DeleteChannel, Fence, Lost, Reply, ScribeMessage, Scrub};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{ChannelId, GuildId, Seq, Ward};
use crate::journal::place::Place;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::residence::Residence;
use crate::ports::house::Refused;
use crate::ports::house::room::RoomId;
use crate::ports::store::Write;

/// How long an actor is waited for before the record is asked instead.
const PATIENCE: Duration = Duration::from_secs(2);
/// When to try again what cannot be done for the moment.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl ActorHouse {
    /// A room that is there, and who lives in it.
    pub(super) fn room_of(&self, room: &RoomId) -> Result<(Place, Residence), Refused> {
        let channel = room.channel();
        let residence = self.kit.residents.get(&channel).ok_or_else(|| no_room(room))?;
        Ok((Place::new(&residence.guild, &channel), residence))
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.kit.store)
    }

    pub(super) async fn accept(&self, place: &Place, event: Event, id: Option<Arc<str>>) -> Result<Accepted, Refused> {
        self.inbound.accept(place, event, id).await.map_err(refused)
    }

    pub(super) async fn administer(&self, ward: Ward, writes: Vec<Write>) -> Result<(), Refused> {
        let (reply, done) = Reply::awaited();
        self.tell_scribe(ScribeMessage::Administer(Administer { ward, writes, fresh: Vec::new(), reply }))?;
        done.await.unwrap_or(Err(Lost::Unknown.into())).map_err(|error| match error {
            Contested::Exists { .. } => Refused::Conflict(error.to_string()),
            Contested::Lost(lost) => refused_write(&lost),
        })
    }

    pub(super) async fn scrub(&self, place: &Place, events: Vec<Recorded>, writes: Vec<Write>) -> Result<(), Refused> {
        let (reply, done) = Reply::awaited();
        self.tell_scribe(ScribeMessage::Scrub(Scrub { place: place.clone(), events, writes, reply }))?;
        settled(done).await
    }

    pub(super) async fn delete_journal(&self, place: &Place) -> Result<(), Refused> {
        let (reply, done) = Reply::awaited();
        self.tell_scribe(ScribeMessage::DeleteChannel(DeleteChannel { place: place.clone(), reply }))?;
        settled(done).await
    }

    /// The number of the journal's last event, once everything that was asked for before is settled and handed to its channel.
    pub(super) async fn fence(&self, place: &Place) -> Result<Seq, Refused> {
        let (reply, done) = Reply::awaited();
        self.tell_scribe(ScribeMessage::Fence(Fence { place: place.clone(), reply }))?;
        settled(done).await
    }

    /// How a channel stands, if it is awake and answers in time. It has then handled all that was handed to it before.
    pub(super) async fn look(&self, channel: &ChannelId) -> Option<Look> {
        let actor = self.kit.directory.find(&ChannelPlace(channel.clone()))?;
        let (sender, answer) = oneshot::channel();
        actor.cast(ChannelMessage::Look(RpcReplyPort::from(sender))).ok()?;
        tokio::time::timeout(PATIENCE, answer).await.ok()?.ok().map(|look| *look)
    }

    /// Lets a guild know that who lives in a channel has changed. A guild that is not there is opened, and reads it then.
    pub(super) fn tell_guild(&self, guild: &GuildId, channel: &ChannelId) {
        let told = self
            .kit
            .directory
            .find(&GuildPlace(guild.clone()))
            .is_some_and(|actor| actor.cast(GuildMessage::ResidenceChanged(Some(channel.clone()))).is_ok());
        if !told && let Some(guilds) = self.kit.directory.find(&GuildsPlace()) {
            // A supervisor that is gone is back soon; the channel reads who lives there when it is woken.
            let _ = guilds.cast(GuildsMessage::Open(guild.clone(), Some(channel.clone())));
        }
    }

    fn tell_scribe(&self, message: ScribeMessage) -> Result<(), Refused> {
        let told = self.kit.directory.find(&ScribePlace()).is_some_and(|scribe| scribe.cast(message).is_ok());
        if told { Ok(()) } else { Err(unavailable("the scribe is being restarted, try again")) }
    }
}

async fn settled<T>(done: oneshot::Receiver<Result<T, Lost>>) -> Result<T, Refused> {
    done.await.unwrap_or(Err(Lost::Unknown)).map_err(|lost| refused_write(&lost))
}

pub(super) fn no_room(room: &RoomId) -> Refused {
    Refused::NotFound(format!("there is no room {room}, PUT /api/rooms/{room} makes it"))
}

pub(super) fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Refused {
    Refused::Invalid { field: field.into(), detail: detail.into() }
}

pub(super) fn unavailable(detail: &str) -> Refused {
    Refused::Unavailable { detail: detail.to_owned(), retry_after: Some(RETRY_AFTER) }
}

/// Something of ours is wrong; it is logged here.
pub(super) fn broken(detail: &str) -> Refused {
    tracing::error!(detail, "the record cannot be read or copied");
    Refused::Broken("the record cannot be read; the server's log says more".into())
}

pub(super) fn unread(error: ReadError) -> Refused {
    broken(&error.to_string())
}

pub(super) fn refused(error: scribe::Refused) -> Refused {
    match error {
        scribe::Refused::Busy { retry_after } => {
            Refused::TooMany { detail: "too many messages wait to be stored, try again".into(), retry_after }
        }
        scribe::Refused::Lost(lost) => refused_write(&lost),
    }
}

fn refused_write(lost: &Lost) -> Refused {
    match lost {
        Lost::Unknown => unavailable("it is not known whether this was stored, try again with the same id"),
        Lost::Unavailable(_) => unavailable("nothing can be stored at the moment, try again"),
        Lost::Deleted => unavailable("the room is being deleted, try again"),
        Lost::Unfit(why) => broken(why),
    }
}
