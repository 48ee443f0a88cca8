//! How the backend reaches the writer, the channels and the guilds, and what it says when it cannot.

use std::sync::Arc;
use std::time::Duration;

use super::ActorBackend;
use crate::actors::erasure::deletion::RewriteError;
use crate::actors::membership::changes::MembershipError;
use crate::actors::messages::channel::Inspection;
use crate::actors::messages::writer;
use crate::actors::messages::writer::{Accepted, MetaWriteError, WriteError};
use crate::actors::writer::requests;
use crate::domain::event::Event;
use crate::domain::id::{ChannelId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::reader::{ReadError, Reader};
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;
use crate::ports::store::Write;

/// When to try again what cannot be done for the moment.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl ActorBackend {
    /// A room that is there, and who lives in it.
    pub(super) fn room_of(&self, room: &RoomId) -> Result<(ChannelKey, Membership), Refused> {
        let channel = room.channel();
        let membership = self.context.memberships.get(&channel).ok_or_else(|| self.no_room(room))?;
        Ok((ChannelKey::new(&membership.guild, &channel), membership))
    }

    pub(super) fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.context.store)
    }

    pub(super) async fn accept(&self, channel_key: &ChannelKey, event: Event, id: Option<Arc<str>>) -> Result<Accepted, Refused> {
        self.inbound.accept(channel_key, event, id).await.map_err(refused)
    }

    pub(super) async fn write_meta(&self, ward: Ward, writes: Vec<Write>) -> Result<(), Refused> {
        requests::write_meta(&self.context, ward, writes).await.map_err(|error| meta_write_error(&error))
    }

    /// The number of the journal's last event, once everything that was asked for before is settled and handed to its channel.
    pub(super) async fn fence(&self, channel_key: &ChannelKey) -> Result<Seq, Refused> {
        requests::fence(&self.context, channel_key).await.map_err(|lost| refused_write(&lost))
    }

    /// How a channel stands, if it is awake and answers in time. It has then handled all that was handed to it before.
    pub(super) async fn look(&self, channel: &ChannelId) -> Option<Inspection> {
        requests::look(&self.context, channel).await
    }

    /// Whether people write in a room through this server.
    pub(super) fn is_written_here(&self, room: &RoomId) -> bool {
        self.context.platforms.is_written_here(&room.channel())
    }

    /// What is said in channels of other platforms is said there, under the names that people have there.
    pub(super) fn check_writable(&self, room: &RoomId) -> Result<(), Refused> {
        if self.is_written_here(room) {
            return Ok(());
        }
        let platform = self.platform(room);
        Err(Refused::Conflict(format!(
            "what people say in room {room} is said on {platform}, and changed there; write it on {platform}"
        )))
    }

    pub(super) fn no_room(&self, room: &RoomId) -> Refused {
        Refused::NotFound(format!("there is no room {room}: {}", self.way_in(room)))
    }

    /// How a room is made.
    pub(super) fn way_in(&self, room: &RoomId) -> String {
        if self.is_written_here(room) {
            return format!("PUT /api/rooms/{room} makes it");
        }
        format!("a companion is let into it on {}, with /tertulia join", self.platform(room))
    }

    /// What the platform of a room in which nobody writes through this server is called.
    pub(super) fn platform(&self, room: &RoomId) -> String {
        let channel = room.channel();
        let mut chars = self.context.platforms.name(&channel).chars();
        chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
    }
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

/// What is stored cannot be read; it is logged here.
pub(super) fn damaged(detail: String) -> Refused {
    tracing::error!(detail, "the record cannot be read");
    Refused::Damaged(detail)
}

pub(super) fn unread(error: ReadError) -> Refused {
    if error.is_damage() { damaged(error.to_string()) } else { broken(&error.to_string()) }
}

pub(super) fn refused(error: writer::Refused) -> Refused {
    match error {
        writer::Refused::Busy { retry_after } => {
            Refused::TooMany { detail: "too many messages wait to be taken in, try again".into(), retry_after }
        }
        writer::Refused::WriteError(lost) => refused_write(&lost),
    }
}

/// Why words could not be taken out of the record, or replaced.
pub(super) fn rewrite_error(error: RewriteError) -> Refused {
    match error {
        RewriteError::Unread(error) => unread(error),
        RewriteError::Unstored(error) => refused(error),
    }
}

fn meta_write_error(error: &MetaWriteError) -> Refused {
    match error {
        MetaWriteError::Exists { .. } => Refused::Conflict(error.to_string()),
        MetaWriteError::WriteError(lost) => refused_write(lost),
    }
}

/// Why who lives in a room could not be changed.
pub(super) fn membership_error(error: MembershipError) -> Refused {
    match error {
        MembershipError::SharedName(_) => Refused::Conflict(error.to_string()),
        MembershipError::Unstored(error) => meta_write_error(&error),
        MembershipError::Unheard(error) => refused(error),
    }
}

fn refused_write(lost: &WriteError) -> Refused {
    match lost {
        WriteError::Unknown => unavailable("it is not known whether this was stored, try again with the same id"),
        WriteError::Unreadable(why) => damaged(why.to_string()),
        WriteError::Unavailable(_) => unavailable("nothing can be stored at the moment, try again"),
        WriteError::Deleted => unavailable("the room is being deleted, try again"),
        WriteError::Unfit(why) => broken(why),
    }
}
