//! The actions of the channel after the commit of a batch of events: asking questions, starting replies, publishing States,
//! writing spans.

use ractor::RpcReplyPort;

use super::traces::TraceRecord;
use crate::actors::messages::turn_taking_manager::VoteError;
use crate::domain::event::{Event, Made, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::domain::reminders::NotSet;
use crate::domain::vote::State as Ballot;
use crate::ports::voice_call::CallEffect;

/// An action that runs once a batch is committed.
pub(super) enum PostCommitAction {
    /// Start a manager for this round, if it is still open.
    ManageRound {
        message: Seq,
    },
    /// Ask those of these questions that are still open, or this judgement.
    Ask {
        tickets: Vec<Ticket>,
    },
    /// Start this reply, if it is still owed.
    Reply {
        ticket: Ticket,
    },
    /// Make this call of a tool, if it has not ended.
    MakeCall {
        call: Ticket,
    },
    /// Go on with this reply, if all its calls have ended.
    SettleCalls {
        ticket: Ticket,
    },
    /// Enter the end of this confirmed call as an event.
    AnnounceCall {
        call: Ticket,
    },
    /// Cancel this question or judgement, or stop this reply and its delivery.
    Stop {
        ticket: Ticket,
    },
    /// Offer help to the author of this message, who may be at risk.
    Help {
        message: Seq,
    },
    /// Acknowledge that this message stopped a statement in progress.
    AcknowledgeStop {
        message: Seq,
    },
    /// Publish this State.
    Publish(Box<Ballot>),
    /// Confirm to an external caller that the request is committed.
    Confirm(RpcReplyPort<Result<(), VoteError>>),
    /// Return the number of a reminder that is set to its caller.
    ReminderSet {
        number: u64,
        reply: RpcReplyPort<Result<u64, NotSet>>,
    },
    EndRound(Box<RoundClosed>),
    /// Show that a wish to speak, a turn or a reply was dropped.
    ShowDropped {
        companion: CompanionId,
        ticket: Option<Ticket>,
    },
    /// Carry out this effect in the voice call, if its reply is still spoken.
    Call(CallEffect),
    /// Write spans and log lines.
    Emit(Box<TraceRecord>),
}

/// The actions to run once these events are committed.
pub(super) fn actions_of(made: &[Made]) -> Vec<PostCommitAction> {
    let mut actions = Vec::new();
    for Made { event, .. } in made {
        match event {
            Event::RoundOpened(opened) => actions.push(PostCommitAction::ManageRound { message: opened.message }),
            Event::Evaluated(evaluated) => match actions.last_mut() {
                // The questions of a round are consecutive.
                Some(PostCommitAction::Ask { tickets }) => tickets.push(evaluated.ticket),
                _ => actions.push(PostCommitAction::Ask { tickets: vec![evaluated.ticket] }),
            },
            Event::RepetitionAsked { ticket, .. } => actions.push(PostCommitAction::Ask { tickets: vec![*ticket] }),
            Event::ReplyOwed { ticket, .. } | Event::Replanned { next: ticket, .. } => {
                actions.push(PostCommitAction::Reply { ticket: *ticket })
            }
            Event::ReplyExtended { ticket, next, .. } => {
                actions.push(PostCommitAction::Stop { ticket: *ticket });
                actions.push(PostCommitAction::Reply { ticket: *next });
            }
            Event::Replanning { ticket, .. } => actions.push(PostCommitAction::Stop { ticket: *ticket }),
            Event::Cancelled { ticket, message, .. } => {
                actions.extend(ticket.map(|ticket| PostCommitAction::Stop { ticket }));
                let is_other = |action: &PostCommitAction| !matches!(action, PostCommitAction::AcknowledgeStop { .. });
                // One message can stop several companions.
                actions.extend(
                    message.filter(|_| actions.iter().all(is_other)).map(|message| PostCommitAction::AcknowledgeStop { message }),
                );
            }
            Event::Decided(decided) => {
                actions.extend(decided.at_risk.map(|message| PostCommitAction::Help { message }));
                actions.extend(decided.vote.clone().map(|vote| PostCommitAction::Publish(Box::new(vote))));
            }
            Event::ToolCalled(called) => {
                actions.extend(called.is_made().then_some(PostCommitAction::MakeCall { call: called.call }));
                actions.push(PostCommitAction::SettleCalls { ticket: called.ticket });
            }
            Event::ToolConfirmed(confirmed) if confirmed.is_confirmed => {
                actions.push(PostCommitAction::MakeCall { call: confirmed.call });
            }
            Event::ToolAnswered(answered) => {
                actions.push(PostCommitAction::SettleCalls { ticket: answered.ticket });
                actions.push(PostCommitAction::AnnounceCall { call: answered.call });
            }
            Event::RoundClosed(closed) => actions.push(PostCommitAction::EndRound(Box::new(closed.clone()))),
            _ => {}
        }
    }
    actions
}
