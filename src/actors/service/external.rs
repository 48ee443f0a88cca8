//! What programs outside submit for the companions that they play: votes, and words.

use std::time::Duration;

use ractor::{MessagingErr, RpcReplyPort};
use tokio::sync::oneshot;

use super::ActorBackend;
use super::desk::unavailable;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::turn_taking_manager::{ManagerMessage, VoteError};
use crate::actors::runtime::actor_keys::{ChannelActorKey, TurnTakingManagerKey};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::Refused;
use crate::ports::backend::messages::Words;
use crate::ports::backend::room::RoomId;

/// How long it may take until a vote, or words, are on record.
const PATIENCE: Duration = Duration::from_secs(10);

impl ActorBackend {
    pub(super) async fn take_vote(&self, room: &RoomId, state: State) -> Result<(), Refused> {
        let channel_key = self.stage_of(room, &state.from)?;
        let channel_place = ChannelActorKey(channel_key.channel.clone());
        let held_by = self.context.directory.find(&channel_place).map(|channel| channel.get_id());
        if let Some(manager) = self.context.directory.find(&TurnTakingManagerKey(channel_key.channel)) {
            let state = state.clone();
            match asked(|reply| manager.cast(ManagerMessage::Submit { state, reply })).await {
                Ok(taken) => return taken.map_err(|objection| refused(&objection)),
                Err(Unanswered::Late) => return Err(not_known()),
                // A manager ends with its round, and a vote that it did not read is lost with it. The channel knows of the round.
                Err(Unanswered::WriteError) => {}
            }
        }
        // Whoever watches may know of a round before its manager is there; the channel does, too.
        let Some(channel) = self.context.directory.find(&channel_place) else {
            return Err(refused(&VoteError::NoRound));
        };
        if held_by.is_some_and(|id| id != channel.get_id()) {
            // Another channel than the one that may have taken the vote.
            return Err(refused(&VoteError::Gone));
        }
        answered(asked(|reply| channel.cast(ChannelMessage::Voted { state: Box::new(state), reply })).await)
    }

    pub(super) async fn take_words(&self, room: &RoomId, words: Words) -> Result<Seq, Refused> {
        let channel_key = self.stage_of(room, &words.from)?;
        let Words { from, message_id, text } = words;
        let message_id = message_id.to_string();
        let Some(channel) = self.context.directory.find(&ChannelActorKey(channel_key.channel)) else {
            // A channel that sleeps gave nobody the floor.
            return Err(refused(&VoteError::NotSelected { from, message_id }));
        };
        answered(asked(|reply| channel.cast(ChannelMessage::SubmitStatement { from, message_id, text, reply })).await)
    }

    /// Where this companion is present and is played by a program outside.
    fn stage_of(&self, room: &RoomId, companion: &CompanionId) -> Result<ChannelKey, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        if !self.is_written_here(room) {
            let platform = self.platform(room);
            return Err(Refused::Conflict(format!(
                "external companions cannot be in channels of {platform} yet; let {companion} vote and speak in a room of the console"
            )));
        }
        match (membership.companions.contains(companion), membership.is_external(companion)) {
            (true, true) => Ok(channel_key),
            (true, false) => Err(refused(&VoteError::NotExternal { from: companion.clone() })),
            (false, _) => Err(Refused::Conflict(format!(
                "{companion} is not in room {room}; PUT /api/rooms/{room} with {{\"id\": \"{companion}\", \"external\": true}} among its \
                 companions lets it in"
            ))),
        }
    }
}

/// Why an actor did not answer.
enum Unanswered {
    /// It is gone, and so is what it was asked.
    WriteError,
    /// It may still answer.
    Late,
}

/// Asks an actor, and waits for what it says.
async fn asked<T, M>(
    ask: impl FnOnce(RpcReplyPort<Result<T, VoteError>>) -> Result<(), MessagingErr<M>>,
) -> Result<Result<T, VoteError>, Unanswered> {
    let (sender, answer) = oneshot::channel();
    ask(RpcReplyPort::from(sender)).map_err(|_| Unanswered::WriteError)?;
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(|_| Unanswered::WriteError),
        Err(_) => Err(Unanswered::Late),
    }
}

/// What a channel's answer means.
fn answered<T>(answer: Result<Result<T, VoteError>, Unanswered>) -> Result<T, Refused> {
    match answer {
        Ok(taken) => taken.map_err(|objection| refused(&objection)),
        Err(Unanswered::WriteError) => Err(refused(&VoteError::Gone)),
        Err(Unanswered::Late) => Err(not_known()),
    }
}

fn not_known() -> Refused {
    unavailable("it is not known yet whether this was taken; the state of the room tells")
}

fn refused(objection: &VoteError) -> Refused {
    match objection {
        VoteError::Gone => unavailable(&objection.to_string()),
        _ => Refused::Conflict(objection.to_string()),
    }
}
