//! Calls to the writer, the channels and the guilds.

use std::sync::Arc;

use serde_json::json;

use super::ActorBackend;
use super::errors::no_room;
use crate::actors::messages::writer::Accepted;
use crate::actors::writer::requests;
use crate::domain::event::Event;
use crate::domain::id::Ward;
use crate::domain::moment::Moment;
use crate::journal::channel_key::ChannelKey;
use crate::journal::membership::Membership;
use crate::journal::reader::Reader;
use crate::ports::backend::room::RoomId;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::backend::{Detail, Refused};
use crate::ports::store::Write;

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
        self.inbound.accept(channel_key, event, id).await.map_err(Refused::from)
    }

    pub(super) async fn write_meta(&self, ward: Ward, writes: Vec<Write>) -> Result<(), Refused> {
        requests::write_meta(&self.context, ward, writes).await.map_err(Refused::from)
    }

    /// Whether people write in a room through this server rather than on another platform.
    pub(super) fn is_written_here(&self, room: &RoomId) -> bool {
        self.context.platforms.is_written_here(&room.channel())
    }

    /// Rejects rooms of other platforms. People write there on the platform, under their names on it.
    pub(super) fn check_writable(&self, room: &RoomId) -> Result<(), Refused> {
        if self.is_written_here(room) {
            return Ok(());
        }
        let platform = self.platform(room);
        let values = json!({ "room": self.name_of(room), "platform": platform });
        Err(Refused::conflict(Detail::of("refusals.write_there", values)))
    }

    pub(super) fn no_room(&self, room: &RoomId) -> Refused {
        match self.context.memberships.deleted_at(&room.channel()) {
            Some(at) => Refused::not_found(self.being_deleted(room, at)),
            None => Refused::not_found(no_room(room.as_str(), &format!(": {}", self.how_to_create(room)))),
        }
    }

    /// The error for a room with a pending deletion, and how to undo it.
    pub(super) fn being_deleted(&self, room: &RoomId, at: Moment) -> Detail {
        let (name, at) = (self.name_of(room), rfc3339(at));
        let detail = format!("room {name} is deleted at {at}; until then POST /api/rooms/{room}/undelete brings it back");
        Detail::from(detail).coded("refusals.room_being_deleted", json!({ "room": name }))
    }

    /// The display name of a room: its title, or its id if it has no title.
    pub(super) fn name_of(&self, room: &RoomId) -> Arc<str> {
        let recorded = self.context.memberships.recorded(&room.channel());
        recorded.and_then(|membership| self.title_of(room, &membership)).unwrap_or_else(|| room.as_str().into())
    }

    /// The title of a room: its title on its platform, or the title that a person set.
    pub(super) fn title_of(&self, room: &RoomId, membership: &Membership) -> Option<Arc<str>> {
        self.context.title_of(&room.channel(), membership)
    }

    /// A hint how to create a room.
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
