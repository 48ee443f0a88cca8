//! What a turn-taking manager is told, and why it does not take a vote.

use std::sync::Arc;
use std::time::Duration;

use ractor::RpcReplyPort;

use super::models::Outcome;
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::vote::State;
use crate::ports::language_model::LazyRequest;

/// What a turn-taking manager is told.
pub enum ManagerMessage {
    /// The question of a companion came to its end.
    Answered {
        /// Which question.
        ticket: Ticket,
        /// What was asked.
        asked: Arc<LazyRequest>,
        /// What came of it.
        outcome: Box<Outcome>,
    },
    /// An external companion votes. Answered once the vote is on record.
    Submit {
        /// Its vote.
        state: State,
        /// Where it is said whether it counts.
        reply: RpcReplyPort<Result<(), VoteError>>,
    },
    /// A State is on record.
    Known(Box<State>),
    /// The round is over; these were its States.
    Over(Vec<State>),
    /// States that are missing are waited for no longer.
    Due,
    /// They are still waited for, for so long.
    Wait(Duration),
}

/// Why a vote or the words of an external companion were not taken. Each says what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoteError {
    /// No round is open.
    #[error("no round is open here; wait for a `round_opened` that names you under `asked`")]
    NoRound,
    /// The round does not ask for this companion's vote.
    #[error("{from} is not asked in this round; wait for a `round_opened` that names it under `asked`")]
    NotAsked {
        /// Who voted.
        from: CompanionId,
    },
    /// The vote is for a round that is not open.
    #[error("messageId {given:?} is not that of the open round, which is {open:?}; vote with that one, if it asks you")]
    OtherRound {
        /// What the vote was for.
        given: String,
        /// What is open.
        open: String,
    },
    /// It did this before.
    #[error("{from} has done this already, and it counts once; wait for the next round")]
    Twice {
        /// Who.
        from: CompanionId,
    },
    /// The server plays this companion itself.
    #[error("{from} is not external here, the server plays it; make it external in the room's companions, or send as another")]
    NotExternal {
        /// Who.
        from: CompanionId,
    },
    /// It does not have the floor.
    #[error("{from} was not selected for message_id {message_id:?}; wait for a `respond` that names it")]
    NotSelected {
        /// Who.
        from: CompanionId,
        /// What the words were for.
        message_id: String,
    },
    /// It had the floor, and lost it again.
    #[error(
        "{from} had the floor and its words came too late; post them sooner (turn_taking.external_statement_timeout_secs), or wait for \
         the next round"
    )]
    TooLate {
        /// Who.
        from: CompanionId,
    },
    /// The channel went away meanwhile.
    #[error("the channel is being restarted and may have taken this or not; send it again")]
    Gone,
}
