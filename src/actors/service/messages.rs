//! Posts, edits and deletes messages of a room, and clears rooms.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ActorBackend;
use super::errors::{broken, invalid};
use crate::actors::erasure::deletion::{delete_messages, replace_statement, replace_words};
use crate::actors::inbound::{Replied, Speech};
use crate::actors::writer::requests::fence;
use crate::domain::address::at_names;
use crate::domain::event::Event;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::{Author, Modality, Role};
use crate::journal::channel_key::ChannelKey;
use crate::journal::redaction::is_redacted;
use crate::ports::backend::Refused;
use crate::ports::backend::messages::{NewEvent, NewMessage};
use crate::ports::backend::room::RoomId;

impl ActorBackend {
    pub(super) async fn accept_message(&self, room: &RoomId, message: NewMessage) -> Result<Seq, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.check_writable(room)?;
        // The first message with an id counts, whatever the text of a second one.
        if let Some(id) = &message.id
            && let Some(known) = self.known_as(&channel_key, id).await?
        {
            return Ok(known);
        }
        let reply_to = match message.reply_to {
            Some(seq) => Some(self.answered(&channel_key, seq).await?),
            None => None,
        };
        let mut mentions = message.mentions;
        mentions.extend(at_names(&message.text).into_iter().map(Arc::from));
        let speech = Speech {
            id: message.id,
            from: Author { id: message.from.clone(), name: message.from, role: Role::Person },
            text: message.text,
            own_words: None,
            modality: message.modality,
            lull_endpoint: message.lull_endpoint,
            mentions,
            reply_to,
            to_all: false,
            kind: None,
            said_at: None,
        };
        let accepted = self.inbound.say(&channel_key, speech).await?;
        accepted.map(|accepted| accepted.seq).ok_or_else(|| broken("a person's message was not admitted"))
    }

    pub(super) async fn accept_event(&self, room: &RoomId, event: NewEvent) -> Result<Seq, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.check_writable(room)?;
        if let Some(known) = self.known_as(&channel_key, &event.id).await? {
            return Ok(known);
        }
        let speech = Speech {
            id: Some(event.id),
            from: Author { id: event.who.clone(), name: event.who, role: Role::Person },
            mentions: at_names(&event.text).into_iter().map(Arc::from).collect(),
            text: event.text,
            own_words: None,
            modality: Modality::Text,
            lull_endpoint: false,
            reply_to: None,
            to_all: false,
            kind: Some(event.kind),
            said_at: None,
        };
        let accepted = self.inbound.say(&channel_key, speech).await?;
        accepted.map(|accepted| accepted.seq).ok_or_else(|| broken("an event was not admitted"))
    }

    pub(super) fn companion_named(&self, room: &RoomId, name: &str) -> Result<Option<CompanionId>, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        Ok(self.context.memberships.names(&channel_key.guild).and_then(|names| names.owner(name).cloned()))
    }

    pub(super) async fn edit_message(&self, room: &RoomId, seq: Seq, text: Arc<str>) -> Result<Seq, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.check_writable(room)?;
        if replace_words(&self.context, &channel_key, seq, text).await? { Ok(seq) } else { Err(no_message(room, seq)) }
    }

    pub(super) async fn replace_statement(&self, room: &RoomId, statement: Seq) -> Result<(), Refused> {
        let channel_key = self.deletable(room, statement).await?;
        let conversation = self.current_state(&channel_key).await?.inspection.conversation;
        conversation.check_again(statement).map_err(|not_again| Refused::Conflict(not_again.to_string()))?;
        replace_statement(&self.context, &channel_key, statement).await.map_err(Refused::from)
    }

    /// The channel of a room whose messages may be deleted here, if this message exists.
    async fn deletable(&self, room: &RoomId, seq: Seq) -> Result<ChannelKey, Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.check_writable(room)?;
        let recorded = self.reader().event(&channel_key, seq).await?;
        recorded.filter(|recorded| matches!(recorded.event, Event::Said { .. })).ok_or_else(|| no_message(room, seq))?;
        Ok(channel_key)
    }

    pub(super) async fn delete_one(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused> {
        let channel_key = self.deletable(room, seq).await?;
        delete_messages(&self.context, &channel_key, &BTreeSet::from([seq])).await?;
        Ok(seq)
    }

    pub(super) async fn clear_room(&self, room: &RoomId) -> Result<(), Refused> {
        let (channel_key, _) = self.room_of(room)?;
        self.accept(&channel_key, Event::Cleared, None).await.map(drop)
    }

    /// The number of the message with this id. Waits for a fence, because what can be read may not be durable yet.
    async fn known_as(&self, channel_key: &ChannelKey, id: &str) -> Result<Option<Seq>, Refused> {
        if self.reader().message(channel_key, id).await?.is_none() {
            return Ok(None);
        }
        fence(&self.context, channel_key).await?;
        // If the message was lost after all, it is no longer there, and is accepted as new.
        self.reader().message(channel_key, id).await.map_err(Refused::from)
    }

    async fn answered(&self, channel_key: &ChannelKey, seq: Seq) -> Result<Replied, Refused> {
        let recorded = self.reader().event(channel_key, seq).await?;
        match recorded.map(|recorded| recorded.event) {
            Some(Event::Said { message, .. }) if !is_redacted(&message) => {
                Ok(Replied { seq: Some(seq), author: message.from.id, role: message.from.role })
            }
            _ => Err(invalid(
                "reply_to",
                format!("there is no message {seq} in this room; leave it out, or name an existing message"),
            )),
        }
    }
}

fn no_message(room: &RoomId, seq: Seq) -> Refused {
    Refused::NotFound(format!("there is no message {seq} in room {room}"))
}
