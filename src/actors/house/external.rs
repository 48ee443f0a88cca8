//! What programs outside submit for the companions that they play: votes, and words.

use std::time::Duration;

use ractor::{MessagingErr, RpcReplyPort};
use tokio::sync::oneshot;

use super::ActorHouse;
use super::desk::platform;
use super::desk::unavailable;
use crate::actors::channel::ChannelMessage;
use crate::actors::places::{ChannelPlace, TurnTakingManagerPlace};
use crate::actors::turn_taking_manager::{ManagerMessage, NotTaken};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use crate::journal::place::Place;
use crate::ports::house::Refused;
use crate::ports::house::messages::Words;
use crate::ports::house::room::RoomId;

/// How long it may take until a vote, or words, are on record.
const PATIENCE: Duration = Duration::from_secs(10);

impl ActorHouse {
    pub(super) async fn take_vote(&self, room: &RoomId, state: State) -> Result<(), Refused> {
        let place = self.stage_of(room, &state.from)?;
        if let Some(manager) = self.kit.directory.find(&TurnTakingManagerPlace(place.channel.clone())) {
            // A manager that has just gone held a round that is over.
            return asked(|reply| manager.cast(ManagerMessage::Submit { state, reply }), NotTaken::NoRound).await;
        }
        // Whoever watches may know of a round before its manager is there; the channel does, too.
        let Some(channel) = self.kit.directory.find(&ChannelPlace(place.channel)) else {
            return Err(refused(&NotTaken::NoRound));
        };
        asked(|reply| channel.cast(ChannelMessage::Voted { state: Box::new(state), reply }), NotTaken::NoRound).await
    }

    pub(super) async fn take_words(&self, room: &RoomId, words: Words) -> Result<Seq, Refused> {
        let place = self.stage_of(room, &words.from)?;
        let Words { from, message_id, text } = words;
        let message_id = message_id.to_string();
        let Some(channel) = self.kit.directory.find(&ChannelPlace(place.channel)) else {
            // A channel that sleeps gave nobody the floor.
            return Err(refused(&NotTaken::NotSelected { from, message_id }));
        };
        asked(|reply| channel.cast(ChannelMessage::Words { from, message_id, text, reply }), NotTaken::Gone).await
    }

    /// Where this companion is present and is played by a program outside.
    fn stage_of(&self, room: &RoomId, companion: &CompanionId) -> Result<Place, Refused> {
        let (place, residence) = self.room_of(room)?;
        if !room.is_of_console() {
            let platform = platform(room);
            return Err(Refused::Conflict(format!(
                "external companions cannot be in channels of {platform} yet; let {companion} vote and speak in a room of the console"
            )));
        }
        match (residence.companions.contains(companion), residence.is_external(companion)) {
            (true, true) => Ok(place),
            (true, false) => Err(refused(&NotTaken::NotExternal { from: companion.clone() })),
            (false, _) => Err(Refused::Conflict(format!(
                "{companion} is not in room {room}; PUT /api/rooms/{room} with {{\"id\": \"{companion}\", \"external\": true}} among its \
                 companions lets it in"
            ))),
        }
    }
}

/// Asks an actor, and waits for what it says; `instead` is what it means when it is gone.
async fn asked<T, M>(
    ask: impl FnOnce(RpcReplyPort<Result<T, NotTaken>>) -> Result<(), MessagingErr<M>>,
    instead: NotTaken,
) -> Result<T, Refused> {
    let (sender, answer) = oneshot::channel();
    if ask(RpcReplyPort::from(sender)).is_err() {
        return Err(refused(&instead));
    }
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(taken)) => taken.map_err(|objection| refused(&objection)),
        // Dropped with the mailbox.
        Ok(Err(_)) => Err(refused(&NotTaken::Gone)),
        Err(_) => Err(unavailable("it is not known yet whether this was taken; the state of the room tells")),
    }
}

fn refused(objection: &NotTaken) -> Refused {
    match objection {
        NotTaken::Gone => unavailable(&objection.to_string()),
        _ => Refused::Conflict(objection.to_string()),
    }
}
