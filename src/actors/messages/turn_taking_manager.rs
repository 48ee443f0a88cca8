//! Messages to a turn-taking manager, and why it rejects a vote.

use std::time::Duration;

use ractor::RpcReplyPort;

use crate::domain::id::{CompanionId, Seq};
use crate::domain::round::Round;
use crate::domain::vote::State;

pub enum ManagerMessage {
    /// An external companion votes. Answered once the vote is journaled.
    Vote {
        state: State,
        /// Answered with whether the vote counts.
        reply: RpcReplyPort<Result<(), VoteError>>,
    },
    StateRecorded(Box<State>),
    /// Another round was opened.
    RoundOpened(Box<OpenRound>),
    /// The round of this message is over, with these States. After the last round, the manager stops.
    RoundClosed {
        message: Seq,
        states: Vec<State>,
    },
    /// The deadline for missing States in the round of this message has passed.
    Due(Seq),
    /// Wait this much longer for missing States in the round of this message.
    ExtendDeadline {
        message: Seq,
        timeout: Duration,
    },
}

pub struct OpenRound {
    /// The round with the States that are journaled.
    pub round: Round,
    /// The time that is left until its deadline.
    pub timeout: Duration,
}

/// Why a vote or a statement of an external companion, or the Stop button, was rejected. Each message says what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoteError {
    #[error("no round is open here; wait for a `round_opened` that names you under `asked`")]
    NoRound,
    /// The round does not ask for this companion's vote.
    #[error("{from} is not asked in this round; wait for a `round_opened` that names it under `asked`")]
    NotAsked { from: CompanionId },
    /// The vote is for a round that is not open.
    #[error("messageId {given:?} is not that of the open round, which is {open:?}; vote with that one, if it asks you")]
    OtherRound {
        /// The `messageId` of the vote.
        given: String,
        open: String,
    },
    /// The companion has already voted or spoken in this round.
    #[error("{from} has done this already, and only the first counts; wait for the next round")]
    Twice { from: CompanionId },
    /// The companion is not external: the server plays it itself.
    #[error("{from} is not external here, the server plays it; make it external in the room's companions, or send as another")]
    NotExternal { from: CompanionId },
    /// The companion does not have the floor.
    #[error("{from} was not selected for message_id {message_id:?}; wait for a `respond` that names it")]
    NotSelected {
        from: CompanionId,
        /// The `message_id` of the statement.
        message_id: String,
    },
    /// The companion had the floor, and its time ran out.
    #[error(
        "{from} had the floor, but its statement came too late; post it sooner (turn_taking.external_statement_timeout_secs), or wait for \
         the next round"
    )]
    TooLate { from: CompanionId },
    /// The Stop button was pressed for a companion that owes no reply, or whose reply is being posted.
    #[error("{companion} is not writing here, so there is nothing to stop")]
    NotWriting { companion: CompanionId },
    /// The call of a tool cannot be confirmed any more.
    #[error(
        "this call cannot be confirmed any more: its two minutes are over, it was decided on before, or its message was deleted; ask the companion again"
    )]
    NotOpen,
    /// The channel ended before it answered.
    #[error("the channel is being restarted, and it is not known whether this counts; send it again")]
    Gone,
}
