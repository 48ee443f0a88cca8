//! What is said in a room, changed, taken back, and cleared.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ActorHouse;
use super::desk::{broken, check_writable, invalid, unread};
use super::forget::told_of;
use crate::actors::inbound::Utterance;
use crate::domain::address::at_names;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::Seq;
use crate::domain::message::{Author, Message, Modality, Role};
use crate::journal::place::Place;
use crate::journal::redaction::is_wordless;
use crate::ports::house::Refused;
use crate::ports::house::messages::NewMessage;
use crate::ports::house::room::RoomId;

impl ActorHouse {
    pub(super) async fn take_in(&self, room: &RoomId, message: NewMessage) -> Result<Seq, Refused> {
        let (place, _) = self.room_of(room)?;
        check_writable(room)?;
        // The first to come with this id counts, whatever the second says.
        if let Some(id) = &message.id
            && let Some(known) = self.reader().message(&place, id).await.map_err(unread)?
        {
            return Ok(known);
        }
        let reply_to = match message.reply_to {
            Some(seq) => Some(self.answered(&place, seq).await?),
            None => None,
        };
        let mut mentions = message.mentions;
        mentions.extend(at_names(&message.text).into_iter().map(Arc::from));
        let utterance = Utterance {
            id: message.id,
            from: Author { id: message.from.clone(), name: message.from, role: Role::Person },
            text: message.text,
            modality: Modality::Text,
            lull_endpoint: false,
            mentions,
            reply_to,
            direct: false,
        };
        let accepted = self.inbound.say(&place, utterance).await.map_err(super::desk::refused)?;
        accepted.map(|accepted| accepted.seq).ok_or_else(|| broken("what a person says was not admitted"))
    }

    pub(super) async fn replace_words(&self, room: &RoomId, seq: Seq, text: Arc<str>) -> Result<Seq, Refused> {
        let (place, _) = self.room_of(room)?;
        check_writable(room)?;
        self.said(room, &place, seq).await?;
        self.accept(&place, Event::Edited { message: seq, text: text.clone() }, None).await?;
        // Read again: it may have been edited or taken back meanwhile.
        let (mut recorded, message) = self.said(room, &place, seq).await?;
        if let Event::Said { message: said, .. } = &mut recorded.event {
            *said = Message { text, ..message };
        }
        self.scrub(&place, vec![recorded], Vec::new()).await?;
        Ok(seq)
    }

    pub(super) async fn take_back(&self, room: &RoomId, seq: Seq) -> Result<Seq, Refused> {
        let (place, _) = self.room_of(room)?;
        check_writable(room)?;
        let recorded = self.reader().event(&place, seq).await.map_err(unread)?;
        let said =
            recorded.filter(|recorded| matches!(recorded.event, Event::Said { .. })).ok_or_else(|| no_message(room, seq))?;
        if matches!(&said.event, Event::Said { message, .. } if is_wordless(message)) {
            return Ok(seq);
        }
        self.accept(&place, Event::Deleted { messages: vec![seq] }, None).await?;
        let told = told_of(&self.reader(), &place, &BTreeSet::from([seq])).await.map_err(unread)?;
        self.take_words_out(&place, told, Vec::new()).await?;
        Ok(seq)
    }

    pub(super) async fn drop_what_goes_on(&self, room: &RoomId) -> Result<(), Refused> {
        let (place, _) = self.room_of(room)?;
        self.accept(&place, Event::Cleared, None).await.map(drop)
    }

    async fn answered(&self, place: &Place, seq: Seq) -> Result<(Seq, Arc<str>, Role), Refused> {
        let recorded = self.reader().event(place, seq).await.map_err(unread)?;
        match recorded.map(|recorded| recorded.event) {
            Some(Event::Said { message, .. }) if !is_wordless(&message) => Ok((seq, message.from.id, message.from.role)),
            _ => Err(invalid(
                "reply_to",
                format!("there is no message {seq} in this room; leave it out, or name one that is there"),
            )),
        }
    }

    /// A message that is still there.
    async fn said(&self, room: &RoomId, place: &Place, seq: Seq) -> Result<(Recorded, Message), Refused> {
        let recorded = self.reader().event(place, seq).await.map_err(unread)?.ok_or_else(|| no_message(room, seq))?;
        match &recorded.event {
            Event::Said { message, .. } if !is_wordless(message) => {
                let message = message.clone();
                Ok((recorded, message))
            }
            _ => Err(no_message(room, seq)),
        }
    }
}

fn no_message(room: &RoomId, seq: Seq) -> Refused {
    Refused::NotFound(format!("there is no message {seq} in room {room}"))
}
