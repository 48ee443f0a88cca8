//! Calls to the writer, the channels and the guilds, and the errors when they fail.

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

/// When the caller should retry after a temporary failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl ActorBackend {
    /// An existing room and its membership.
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

    /// The number of the journal's last event, once all earlier requests are finished and dispatched to the channel.
    pub(super) async fn fence(&self, channel_key: &ChannelKey) -> Result<Seq, Refused> {
        requests::fence(&self.context, channel_key).await.map_err(|lost| refused_write(&lost))
    }

    /// The current state of a channel, if it is running and answers in time. It has then handled all events that were dispatched before.
    pub(super) async fn inspect(&self, channel: &ChannelId) -> Option<Inspection> {
        requests::look(&self.context, channel).await
    }

    /// Whether people write in a room through this server, not on another platform.
    pub(super) fn is_written_here(&self, room: &RoomId) -> bool {
        self.context.platforms.is_written_here(&room.channel())
    }

    /// Rejects rooms of other platforms: people write there on the platform, under the names that they have there.
    pub(super) fn check_writable(&self, room: &RoomId) -> Result<(), Refused> {
        if self.is_written_here(room) {
            return Ok(());
        }
        let platform = self.platform(room);
        Err(Refused::Conflict(format!(
            "room {room} is a channel of {platform}; write, edit and delete its messages on {platform}"
        )))
    }

    pub(super) fn no_room(&self, room: &RoomId) -> Refused {
        Refused::NotFound(format!("there is no room {room}: {}", self.how_to_create(room)))
    }

    /// Says how a room is created.
    pub(super) fn how_to_create(&self, room: &RoomId) -> String {
        if self.is_written_here(room) {
            return format!("PUT /api/rooms/{room} creates it");
        }
        format!("add a companion to it on {}, with /tertulia join", self.platform(room))
    }

    /// The capitalised name of the platform of a room that is not the console's.
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

/// An internal error. Logs it.
pub(super) fn broken(detail: &str) -> Refused {
    tracing::error!(detail, "the record cannot be read or copied");
    Refused::Broken("the record cannot be read; the server's log says more".into())
}

/// Stored data cannot be read. Logs it.
pub(super) fn damaged(detail: String) -> Refused {
    tracing::error!(detail, "the record cannot be read");
    Refused::Damaged(detail)
}

pub(super) fn read_error(error: ReadError) -> Refused {
    if error.is_damage() { damaged(error.to_string()) } else { broken(&error.to_string()) }
}

pub(super) fn refused(error: writer::Refused) -> Refused {
    match error {
        writer::Refused::Busy { retry_after } => {
            Refused::TooMany { detail: "too many messages wait to be stored, try again".into(), retry_after }
        }
        writer::Refused::WriteError(lost) => refused_write(&lost),
    }
}

pub(super) fn rewrite_error(error: RewriteError) -> Refused {
    match error {
        RewriteError::Read(error) => read_error(error),
        RewriteError::Write(error) => refused(error),
    }
}

fn meta_write_error(error: &MetaWriteError) -> Refused {
    match error {
        MetaWriteError::Exists { .. } => Refused::Conflict(error.to_string()),
        MetaWriteError::WriteError(lost) => refused_write(lost),
    }
}

pub(super) fn membership_error(error: MembershipError) -> Refused {
    match error {
        MembershipError::SharedName(_) => Refused::Conflict(error.to_string()),
        MembershipError::Metadata(error) => meta_write_error(&error),
        MembershipError::Journal(error) => refused(error),
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
