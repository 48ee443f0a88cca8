//! Emits the finished parts of a turn as spans and log lines, once their events are committed.

use std::sync::Arc;

use super::turn::{PendingCall, Turn, Vote};
use crate::actors::channel::channel_context::ChannelContext;
use crate::actors::runtime::context::ActorContext;
use crate::domain::event::{Decided, Disclosed, Outvoted, RoundClosed};
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::message::Author;
use crate::domain::moment::Moment;
use crate::domain::tools::ToolAnswered;
use crate::domain::voice::interruption::Interrupted;
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::decisions::{self, Answer, DecisionFacts};
use crate::telemetry::messages::{self, Append, Playback};
use crate::telemetry::rounds::{self, ClosingFacts, RepetitionFacts};
use crate::telemetry::tool_calls;
use crate::telemetry::trace::{InTurn, SpanRef};
use crate::telemetry::turns::{self, StatementFacts, TurnFacts};

/// A finished part of a turn.
pub(in crate::actors::channel) enum TraceRecord {
    /// A message that triggered a turn, or the statement that ended one, was journaled.
    Appended {
        turn: Turn,
        append: Append,
    },
    /// A decision was made. In a round, `floor` is the result of the vote for the floor.
    Decided {
        decided: Box<Decided>,
        call: PendingCall,
        floor: Option<&'static str>,
        at: Moment,
    },
    /// A question failed or timed out.
    Unanswered {
        companion: CompanionId,
        ticket: Ticket,
        error: Arc<str>,
        call: PendingCall,
        at: Moment,
    },
    /// A round closed.
    Selection {
        turn: Turn,
        closed: Box<RoundClosed>,
        missing: usize,
        since: Moment,
        at: Moment,
    },
    /// A companion's closing stage changed.
    Closing(ClosingFacts),
    /// Repetition was judged.
    Repetition(RepetitionFacts),
    /// A spoken reply that had begun to play has ended.
    Played {
        turn: Turn,
        companion: CompanionId,
        playback: Box<Playback>,
        /// `whole`, `cut` or `unheard`.
        outcome: &'static str,
    },
    /// A person talked into a spoken reply, or stopped it.
    Interruption {
        turn: Turn,
        companion: CompanionId,
        interrupted: Box<Interrupted>,
        at: Moment,
    },
    /// A call of a tool has ended.
    ToolCalled {
        under: Option<SpanRef>,
        answered: Box<ToolAnswered>,
        times: (Moment, Moment),
    },
    /// No statement was written.
    StatementFailed {
        companion: CompanionId,
        ticket: Ticket,
        error: Arc<str>,
        call: PendingCall,
        at: Moment,
    },
    /// A statement was written, posted and journaled.
    Posted {
        by: Author,
        ticket: Ticket,
        call: PendingCall,
        append: Append,
    },
    /// The statement of the turn carried the notice that companions are AI.
    Disclosed {
        turn: Turn,
        disclosed: Box<Disclosed>,
        at: Moment,
    },
    Ended {
        turn: Turn,
        outcome: &'static str,
        error: Option<Arc<str>>,
        heard_since: Option<Moment>,
    },
}

impl TraceRecord {
    /// The record of a vote to speak, once it is known whether the companion won the floor.
    pub(super) fn vote((decided, call, at): Vote, selected: Option<&CompanionId>, others: &[Outvoted]) -> Self {
        let is_of = |companion: &CompanionId| decided.companions.contains(companion);
        let floor = match selected {
            Some(selected) if is_of(selected) => "won",
            _ if others.iter().any(|other| is_of(&other.companion)) => "lost",
            _ => "none",
        };
        Self::Decided { decided: Box::new(decided), call, floor: Some(floor), at }
    }

    pub(in crate::actors::channel) fn emit(self, channel: &ChannelContext) {
        let (channel_key, context) = (&channel.key, &*channel.context);
        let (ChannelKey { guild, channel, .. }, recorder) = (channel_key, &context.recorder);
        match self {
            Self::Appended { turn, append } => messages::record_append(recorder, &in_turn(&turn, channel_key), &append),
            Self::Played { turn, companion, playback, outcome } => {
                messages::record_playback(recorder, &in_turn(&turn, channel_key), &companion, &playback, outcome);
            }
            Self::Interruption { turn, companion, interrupted, at } => {
                messages::record_interruption(recorder, &in_turn(&turn, channel_key), &companion, &interrupted, at);
            }
            Self::Decided { decided, call, floor, at } => {
                let answer = Answer::Decided { decision: decided.decision.as_str(), reason: decided.reason.as_str() };
                for companion in &decided.companions {
                    let (ticket, vote) = (decided.ticket, decided.vote.as_ref());
                    let facts = DecisionFacts { ticket, vote, floor, ..decision(&call, companion, answer, at, channel_key) };
                    decisions::record(recorder, &facts);
                }
            }
            Self::Unanswered { companion, ticket, error, call, at } => {
                let answer = Answer::Missing { error_type: &error };
                let facts = DecisionFacts { ticket: Some(ticket), ..decision(&call, &companion, answer, at, channel_key) };
                decisions::record(recorder, &facts);
            }
            Self::Selection { turn, closed, missing, since, at } => {
                rounds::record_selection(recorder, &in_turn(&turn, channel_key), &closed, missing, (since, at));
            }
            Self::ToolCalled { under, answered, times } => {
                tool_calls::record(recorder, under, (guild, channel), &answered, times);
            }
            Self::Closing(facts) => drop(rounds::record_closing(recorder, guild, channel, &facts)),
            Self::Repetition(facts) => drop(rounds::record_repetition(recorder, guild, channel, &facts)),
            Self::StatementFailed { companion, ticket, error, call, at } => {
                let known = context.memberships.companion(channel, &companion);
                let facts = StatementFacts {
                    turn: in_turn(&call.turn, channel_key),
                    ticket,
                    companion: &companion,
                    companion_name: known.as_ref().map_or(companion.as_str(), |known| &known.name),
                    trigger: call.trigger,
                    error_type: Some(&error),
                    started: call.since,
                    ended: at,
                };
                turns::record_statement(recorder, &facts);
            }
            Self::Posted { by, ticket, call, append } => emit_statement(&by, ticket, &call, append, channel_key, context),
            Self::Disclosed { turn, disclosed, at } => {
                messages::record_notice(recorder, &in_turn(&turn, channel_key), &disclosed, at);
            }
            Self::Ended { turn, outcome, error, heard_since } => {
                let ended = context.clock.now();
                let facts = TurnFacts {
                    turn: in_turn(&turn, channel_key),
                    trigger: turn.trigger,
                    outcome,
                    error_type: error.as_deref(),
                    follows: turn.follows,
                    started: turn.began,
                    awaited_since: turn.awaited_since(),
                    overhead: turn.overhead(ended),
                    heard_since,
                    ended,
                };
                turns::record(recorder, &facts);
            }
        }
    }
}

fn in_turn<'a>(turn: &Turn, channel_key: &'a ChannelKey) -> InTurn<'a> {
    let ChannelKey { guild, channel, .. } = channel_key;
    InTurn { trace: turn.trace, message: turn.message, guild, channel }
}

/// Records a statement and its posting. In a channel without a platform, journaling is posting.
fn emit_statement(
    by: &Author,
    ticket: Ticket,
    call: &PendingCall,
    append: Append,
    channel_key: &ChannelKey,
    context: &ActorContext,
) {
    let written = call.written.unwrap_or(append.taken);
    let made = StatementFacts {
        turn: in_turn(&call.turn, channel_key),
        ticket,
        companion: &CompanionId::from(&*by.id),
        companion_name: &by.name,
        trigger: call.trigger,
        error_type: None,
        started: call.since,
        ended: written,
    };
    turns::record_statement(&context.recorder, &made);
    let times = (call.spoken.unwrap_or(written), call.sent.unwrap_or(append.committed));
    let platform = context.platforms.name(&channel_key.channel);
    messages::record_send(&context.recorder, &made.turn, made.companion, platform, times);
}

/// The facts of a decision, or of a question that failed.
fn decision<'a>(
    call: &PendingCall,
    companion: &'a CompanionId,
    answer: Answer<'a>,
    at: Moment,
    channel_key: &'a ChannelKey,
) -> DecisionFacts<'a> {
    let (message_count, check_count, threshold) = call.counts;
    DecisionFacts {
        turn: in_turn(&call.turn, channel_key),
        ticket: None,
        companion,
        trigger: call.trigger,
        answer,
        message_count,
        check_count,
        threshold,
        vote: None,
        floor: None,
        started: call.since,
        ended: at,
    }
}
