//! Votes and statements that external programs submit for their companions, and the Stop button for replies.

use std::time::Duration;

use ractor::{MessagingErr, RpcReplyPort};
use tokio::sync::oneshot;

use super::ActorBackend;
use super::errors::unavailable;
use crate::actors::messages::channel::ChannelMessage;
use crate::actors::messages::turn_taking_manager::{ManagerMessage, VoteError};
use crate::actors::runtime::actor_keys::{ChannelActorKey, TurnTakingManagerKey};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::vote::State;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::Refused;
use crate::ports::backend::messages::Words;
use crate::ports::backend::room::RoomId;

/// How long to wait until a vote or a statement is on record.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl ActorBackend {
    pub(super) async fn submit_vote(&self, room: &RoomId, state: State) -> Result<(), Refused> {
        let channel_key = self.external_member(room, &state.from)?;
        let channel_actor = ChannelActorKey(channel_key.channel.clone());
        let id_before = self.context.directory.find(&channel_actor).map(|channel| channel.get_id());
        if let Some(manager) = self.context.directory.find(&TurnTakingManagerKey(channel_key.channel)) {
            let state = state.clone();
            match call(|reply| manager.cast(ManagerMessage::Submit { state, reply })).await {
                Ok(result) => return result.map_err(Refused::from),
                Err(Unanswered::Late) => return Err(not_known()),
                // A manager ends with its round, and a vote that it did not read is lost with it. The channel knows about the round.
                Err(Unanswered::Gone) => {}
            }
        }
        // A watcher may know about a round before its manager has started. The channel knows about it as well.
        let Some(channel) = self.context.directory.find(&channel_actor) else {
            return Err(VoteError::NoRound.into());
        };
        if id_before.is_some_and(|id| id != channel.get_id()) {
            // The channel was restarted, and its predecessor may have recorded the vote.
            return Err(VoteError::Gone.into());
        }
        answered(call(|reply| channel.cast(ChannelMessage::Voted { state: Box::new(state), reply })).await)
    }

    pub(super) async fn submit_statement(&self, room: &RoomId, words: Words) -> Result<Seq, Refused> {
        let channel_key = self.external_member(room, &words.from)?;
        let Words { from, message_id, text } = words;
        let message_id = message_id.to_string();
        let Some(channel) = self.context.directory.find(&ChannelActorKey(channel_key.channel)) else {
            // A channel that is not running has given nobody the floor.
            return Err(VoteError::NotSelected { from, message_id }.into());
        };
        answered(call(|reply| channel.cast(ChannelMessage::SubmitStatement { from, message_id, text, reply })).await)
    }

    pub(super) async fn press_stop(&self, room: &RoomId, companion: CompanionId) -> Result<(), Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        if !membership.companions.contains(&companion) {
            return Err(Refused::NotFound(format!("{companion} is not in room {room}")));
        }
        let Some(channel) = self.context.directory.find(&ChannelActorKey(channel_key.channel)) else {
            return Err(VoteError::NotWriting { companion }.into());
        };
        answered(call(|reply| channel.cast(ChannelMessage::StopReply { companion, reply })).await)
    }

    /// The channel, after checking that this companion is an external member of it.
    fn external_member(&self, room: &RoomId, companion: &CompanionId) -> Result<ChannelKey, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        if !self.is_written_here(room) {
            let platform = self.platform(room);
            return Err(Refused::Conflict(format!(
                "external companions cannot be in channels of {platform} yet; use {companion} in a room of the console"
            )));
        }
        match (membership.companions.contains(companion), membership.is_external(companion)) {
            (true, true) => Ok(channel_key),
            (true, false) => Err(VoteError::NotExternal { from: companion.clone() }.into()),
            (false, _) => Err(Refused::Conflict(format!(
                "{companion} is not in room {room}; add it by PUT /api/rooms/{room} with {{\"id\": \"{companion}\", \"external\": true}} \
                 among its companions"
            ))),
        }
    }
}

/// Why an actor did not answer.
enum Unanswered {
    /// It has ended, and the request is lost.
    Gone,
    /// It may still answer.
    Late,
}

/// Calls an actor, and waits for its answer.
async fn call<T, M>(
    send: impl FnOnce(RpcReplyPort<Result<T, VoteError>>) -> Result<(), MessagingErr<M>>,
) -> Result<Result<T, VoteError>, Unanswered> {
    let (sender, answer) = oneshot::channel();
    send(RpcReplyPort::from(sender)).map_err(|_| Unanswered::Gone)?;
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|_| Unanswered::Gone),
        Err(_) => Err(Unanswered::Late),
    }
}

fn answered<T>(answer: Result<Result<T, VoteError>, Unanswered>) -> Result<T, Refused> {
    match answer {
        Ok(result) => result.map_err(Refused::from),
        Err(Unanswered::Gone) => Err(VoteError::Gone.into()),
        Err(Unanswered::Late) => Err(not_known()),
    }
}

fn not_known() -> Refused {
    unavailable("it is not known yet whether this counts; see the state of the room")
}
