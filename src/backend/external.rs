//! Calls to the channels and the managers of rounds for external companions and the Stop button, and the errors if they do not respond.

use std::time::Duration;

use ractor::{MessagingErr, RpcReplyPort};
use tokio::sync::oneshot;

use super::ActorBackend;
use super::errors::unavailable;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::domain::id::CompanionId;
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::Refused;
use crate::ports::backend::room::RoomId;

/// The time limit until a vote or a statement is recorded.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

impl ActorBackend {
    /// The channel, if this companion is an external member of it.
    pub(super) fn external_member(&self, room: &RoomId, companion: &CompanionId) -> Result<ChannelKey, Refused> {
        let (channel_key, membership) = self.room_of(room)?;
        if !self.is_written_here(room) {
            let platform = self.platform(room);
            return Err(Refused::conflict(format!(
                "external companions cannot be in channels of {platform} yet; use {companion} in a room of the console"
            )));
        }
        match (membership.companions.contains(companion), membership.is_external(companion)) {
            (true, true) => Ok(channel_key),
            (true, false) => Err(VoteError::NotExternal { from: companion.clone() }.into()),
            (false, _) => Err(Refused::conflict(format!(
                "{companion} is not in room {}; add it by PUT /api/rooms/{room} with {{\"id\": \"{companion}\", \"external\": true}} \
                 among its companions",
                self.name_of(room)
            ))),
        }
    }
}

/// Why an actor did not respond.
pub(super) enum Unanswered {
    /// The actor has ended, and the request is lost.
    Gone,
    /// The actor may still respond.
    Late,
}

/// Calls an actor, and waits for its response.
pub(super) async fn call<T, M>(
    send: impl FnOnce(RpcReplyPort<Result<T, VoteError>>) -> Result<(), MessagingErr<M>>,
) -> Result<Result<T, VoteError>, Unanswered> {
    let (sender, answer) = oneshot::channel();
    send(RpcReplyPort::from(sender)).map_err(|_| Unanswered::Gone)?;
    match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|_| Unanswered::Gone),
        Err(_) => Err(Unanswered::Late),
    }
}

pub(super) fn answered<T>(answer: Result<Result<T, VoteError>, Unanswered>) -> Result<T, Refused> {
    match answer {
        Ok(result) => result.map_err(Refused::from),
        Err(Unanswered::Gone) => Err(VoteError::Gone.into()),
        Err(Unanswered::Late) => Err(not_known()),
    }
}

pub(super) fn not_known() -> Refused {
    unavailable("it is not known yet whether this counts; see the state of the room")
}
