//! The actions of the channel after the commit of a batch of events: asking questions, starting replies, publishing States,
//! writing spans.

use super::traces::TraceRecord;
use crate::domain::event::{Event, Made, RoundClosed};
use crate::domain::id::{CompanionId, Seq, Ticket};
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
    /// Execute this tool call. If it has ended, continue its reply, and record that a confirmed call has ended.
    FollowCall {
        /// `None`: only continue the reply.
        call: Option<Ticket>,
        reply: Ticket,
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
    /// Report to an external caller that its request is committed.
    Confirm(Box<dyn FnOnce() + Send>),
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
                // A call that requires confirmation is executed after the confirmation is committed.
                let call = Some(called.call).filter(|_| called.until.is_none());
                actions.push(PostCommitAction::FollowCall { call, reply: called.ticket });
            }
            Event::ToolConfirmed(confirmed) if confirmed.is_confirmed => {
                actions.push(PostCommitAction::FollowCall { call: Some(confirmed.call), reply: confirmed.ticket });
            }
            Event::ToolAnswered(answered) => {
                actions.push(PostCommitAction::FollowCall { call: Some(answered.call), reply: answered.ticket });
            }
            Event::RoundClosed(closed) => actions.push(PostCommitAction::EndRound(Box::new(closed.clone()))),
            _ => {}
        }
    }
    actions
}
