//! Emits the finished parts of a turn as spans and log lines, once their events are committed.

use std::sync::Arc;

use super::turn::{Append, PendingCall, Playback, Turn};
use crate::actors::channel::channel_context::ChannelContext;
use crate::actors::runtime::context::ActorContext;
use crate::domain::closing::{Cause, Stage};
use crate::domain::event::{Decided, RoundClosed};
use crate::domain::id::{CompanionId, Ticket};
use crate::domain::message::Author;
use crate::domain::moment::Moment;
use crate::domain::round;
use crate::domain::voice::interruption::Interrupted;
use crate::domain::vote::Stance;
use crate::journal::channel_key::ChannelKey;
use crate::telemetry::decisions::{self, Answer, DecisionFacts, VoteFacts};
use crate::telemetry::messages::{self, AppendFacts, InterruptionFacts, PlaybackFacts, SendFacts, UtteranceFacts};
use crate::telemetry::rounds::{self, ClosingFacts, RepetitionFacts, SelectionFacts};
use crate::telemetry::trace::{InTurn, TurnTrace};
use crate::telemetry::turns::{self, StatementFacts, TurnFacts};

/// A finished part of a turn.
pub(in crate::actors::channel) enum TraceRecord {
    /// A message that triggered a turn, or the statement that ended one, was journaled.
    Appended {
        turn: Turn,
        append: Append,
    },
    /// A decision was made. In a round `floor` says whether the companion won the floor.
    Decided {
        decided: Box<Decided>,
        call: PendingCall,
        floor: Option<&'static str>,
        at: Moment,
    },
    /// A question got no answer.
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
    Closing {
        companion: CompanionId,
        from: Stage,
        to: Stage,
        cause: Cause,
        at: Moment,
        under: Option<TurnTrace>,
    },
    /// Repetition was judged.
    Repetition {
        score: f64,
        detections: u32,
        /// The question for a judgement, and when it was asked.
        asked: Option<(Ticket, Moment)>,
        is_by_model: bool,
        error: Option<Arc<str>>,
        at: Moment,
        under: Option<TurnTrace>,
    },
    /// A spoken reply is over that had begun to play.
    Played {
        turn: Turn,
        companion: CompanionId,
        playback: Box<Playback>,
        /// `whole`, `cut` or `unheard`.
        outcome: &'static str,
    },
    /// Somebody talked into a spoken reply, or stopped it.
    Interruption {
        turn: Turn,
        companion: CompanionId,
        interrupted: Box<Interrupted>,
        at: Moment,
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
    Ended {
        turn: Turn,
        outcome: &'static str,
        error: Option<Arc<str>>,
        heard_since: Option<Moment>,
    },
}

impl TraceRecord {
    pub(in crate::actors::channel) fn emit(self, channel: &ChannelContext) {
        let (channel_key, context) = (&channel.key, &*channel.context);
        match self {
            Self::Appended { turn, append } => {
                let facts = AppendFacts {
                    turn: in_turn(&turn, channel_key),
                    seq: append.seq,
                    started: append.taken,
                    ended: append.committed,
                };
                messages::record_append(&context.recorder, &facts);
                if let Some(utterance) = append.utterance {
                    let spoken = UtteranceFacts {
                        append: AppendFacts { started: utterance.started, ended: append.taken, ..facts },
                        cause: utterance.cause.as_str(),
                        segments: utterance.segments,
                        messages: utterance.messages,
                    };
                    messages::record_utterance(&context.recorder, &spoken);
                }
            }
            Self::Played { turn, companion, playback, outcome } => {
                let facts = PlaybackFacts {
                    turn: in_turn(&turn, channel_key),
                    companion: &companion,
                    outcome,
                    sentences: playback.sentences.len(),
                    dropped: playback.sentences.values().filter(|(_, is_dropped)| *is_dropped).count(),
                    played_ms: playback.sentences.values().map(|(ms, _)| ms).sum(),
                    started: playback.began,
                    ended: playback.until,
                };
                messages::record_playback(&context.recorder, &facts);
            }
            Self::Interruption { turn, companion, interrupted, at } => {
                let facts =
                    InterruptionFacts { turn: in_turn(&turn, channel_key), companion: &companion, interrupted: &interrupted, at };
                messages::record_interruption(&context.recorder, &facts);
            }
            Self::Decided { decided, call, floor, at } => emit_decision(&decided, &call, floor, at, channel_key, context),
            Self::Unanswered { companion, ticket, error, call, at } => {
                let outcome =
                    DecisionOutcome { ticket: Some(ticket), answer: Answer::Missing { error_type: &error }, vote: None, at };
                emit_question(&call, &companion, outcome, channel_key, context);
            }
            Self::Selection { turn, closed, missing, since, at } => {
                let facts = SelectionFacts {
                    turn: in_turn(&turn, channel_key),
                    message: closed.message,
                    states: closed.states.len(),
                    speak: closed.states.iter().filter(|state| state.state == Stance::Speak).count(),
                    candidates: usize::from(closed.selected.is_some()) + closed.others.len(),
                    missing,
                    is_tied: closed.selected.as_ref().is_some_and(|selected| round::is_tied(&closed.states, selected)),
                    selected: closed.selected.as_ref(),
                    started: since,
                    ended: at,
                };
                rounds::record_selection(&context.recorder, &facts);
            }
            Self::Closing { companion, from, to, cause, at, under } => {
                let facts = ClosingFacts {
                    under,
                    guild: &channel_key.guild,
                    channel: &channel_key.channel,
                    companion: &companion,
                    from,
                    to,
                    cause,
                    at,
                };
                rounds::record_closing(&context.recorder, &facts);
            }
            Self::Repetition { score, detections, asked, is_by_model, error, at, under } => {
                let facts = RepetitionFacts {
                    under,
                    ticket: asked.map(|(ticket, _)| ticket),
                    guild: &channel_key.guild,
                    channel: &channel_key.channel,
                    score,
                    detections,
                    judge: if is_by_model { "model" } else { "lexical" },
                    error_type: error.as_deref(),
                    started: asked.map_or(at, |(_, since)| since),
                    ended: at,
                };
                rounds::record_repetition(&context.recorder, &facts);
            }
            Self::StatementFailed { companion, ticket, error, call, at } => {
                let known = context.memberships.companion(&channel_key.channel, &companion);
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
                turns::record_statement(&context.recorder, &facts);
            }
            Self::Posted { by, ticket, call, append } => emit_statement(&by, ticket, &call, append, channel_key, context),
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
                turns::record(&context.recorder, &facts);
            }
        }
    }
}

fn in_turn<'a>(turn: &Turn, channel_key: &'a ChannelKey) -> InTurn<'a> {
    let ChannelKey { guild, channel, .. } = channel_key;
    InTurn { trace: turn.trace, turn_id: turn.shown_id(channel_key), guild, channel }
}

/// Records a statement and its posting. In a channel without a platform, journaling the statement is the posting.
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
    let sent = SendFacts {
        turn: in_turn(&call.turn, channel_key),
        platform: context.platforms.name(&channel_key.channel),
        companion: &CompanionId::from(&*by.id),
        started: call.spoken.unwrap_or(written),
        ended: call.sent.unwrap_or(append.committed),
    };
    messages::record_send(&context.recorder, &sent);
}

/// The outcome of a question, or a decision without a question.
#[derive(Clone, Copy)]
struct DecisionOutcome<'a> {
    ticket: Option<Ticket>,
    answer: Answer<'a>,
    vote: Option<VoteFacts<'a>>,
    at: Moment,
}

fn emit_decision(
    decided: &Decided,
    call: &PendingCall,
    floor: Option<&'static str>,
    at: Moment,
    channel_key: &ChannelKey,
    context: &ActorContext,
) {
    let answer = Answer::Decided { decision: decided.decision.as_str(), reason: decided.reason.as_str() };
    let vote = decided.vote.as_ref().map(|vote| VoteFacts {
        state: vote.state.as_str(),
        importance: vote.importance,
        selected: vote.selected,
        closing: vote.closing.as_str(),
        floor,
    });
    for companion in &decided.companions {
        emit_question(call, companion, DecisionOutcome { ticket: decided.ticket, answer, vote, at }, channel_key, context);
    }
}

fn emit_question(
    call: &PendingCall,
    companion: &CompanionId,
    outcome: DecisionOutcome<'_>,
    channel_key: &ChannelKey,
    context: &ActorContext,
) {
    let DecisionOutcome { ticket, answer, vote, at } = outcome;
    let (message_count, check_count, threshold) = call.counts;
    decisions::record(
        &context.recorder,
        &DecisionFacts {
            turn: in_turn(&call.turn, channel_key),
            ticket,
            companion,
            trigger: call.trigger,
            answer,
            message_count,
            check_count,
            threshold,
            vote,
            started: call.since,
            ended: at,
        },
    );
}
