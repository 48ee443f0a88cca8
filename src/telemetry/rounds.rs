//! Records rounds: the selection of a speaker, changes of the closing stage, and measurements of repetition.

use std::sync::Arc;

use opentelemetry::KeyValue;

use super::attributes::{self as name, whole};
use super::instruments::NONE;
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::{InTurn, SpanRef, TurnTrace};
use crate::domain::closing::{Cause, Stage};
use crate::domain::event::RoundClosed;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Ticket};
use crate::domain::moment::Moment;
use crate::domain::round::is_tied;
use crate::domain::vote::Stance;

/// A change of one companion's closing stage.
#[derive(Clone, Debug)]
pub struct ClosingFacts {
    /// The turn that caused it, if any.
    pub under: Option<TurnTrace>,
    pub companion: CompanionId,
    pub from: Stage,
    pub to: Stage,
    pub cause: Cause,
    pub at: Moment,
}

/// A judgement of how much the last statements repeat each other.
#[derive(Clone, Debug)]
pub struct RepetitionFacts {
    /// The turn of the judged statement, if it is known.
    pub under: Option<TurnTrace>,
    /// The question, if a model was asked. The span of its call is a child of this one.
    pub ticket: Option<Ticket>,
    /// From 0 to 1.
    pub score: f64,
    /// Consecutive detections, including this one.
    pub detections: u32,
    /// `lexical` or `model`.
    pub judge: &'static str,
    /// The error code if the model gave no judgement. The score is 0 then.
    pub error_type: Option<Arc<str>>,
    pub started: Moment,
    pub ended: Moment,
}

/// Records a selection: `decision.select_speaker`, and a log line. `missing` is the number of companions that were asked but did not answer. The
/// times are those of the round.
pub fn record_selection(
    recorder: &Recorder,
    turn: &InTurn<'_>,
    closed: &RoundClosed,
    missing: usize,
    times: (Moment, Moment),
) -> Option<SpanRef> {
    let selected = closed.selected.as_ref();
    let (states, candidates) = (closed.states.len(), usize::from(selected.is_some()) + closed.others.len());
    let (channel, named, trace) = (Plain(turn.channel.as_str()), Plain(selected.map_or("-", CompanionId::as_str)), turn.trace);
    tracing::info!(%channel, states, candidates, missing, selected = %named, %trace, "round");
    let instruments = recorder.instruments();
    let speak = closed.states.iter().filter(|state| state.state == Stance::Speak).count();
    instruments.rounds.add(1, [if selected.is_some() { "selected" } else { "nobody" }]);
    instruments.round_duration.record(times.1.since(times.0).as_secs_f64(), NONE);
    instruments.round_votes.add(speak as u64, ["speak"]);
    instruments.round_votes.add((states - speak) as u64, ["listen"]);
    instruments.round_missing_votes.add(missing as u64, NONE);
    instruments.round_ties.add(u64::from(selected.is_some_and(|selected| is_tied(&closed.states, selected))), NONE);
    recorder.record(|| {
        let mut attributes = turn.attributes();
        attributes.extend([
            KeyValue::new(name::ROUND_MESSAGE_ID, closed.message.to_string()),
            KeyValue::new(name::ROUND_STATES, whole(states)),
            KeyValue::new(name::ROUND_CANDIDATES, whole(candidates)),
            KeyValue::new(name::ROUND_MISSING, whole(missing)),
        ]);
        attributes.extend(selected.map(|selected| KeyValue::new(name::ROUND_SELECTED, selected.to_string())));
        FinishedSpan::new(name::SPAN_SELECT_SPEAKER, Place::Under(turn.trace.root()), times, attributes)
    })
}

/// Records a change of the closing stage: `decision.closing`, and a log line.
pub fn record_closing(recorder: &Recorder, guild: &GuildId, channel: &ChannelId, facts: &ClosingFacts) -> Option<SpanRef> {
    let (plain, companion) = (Plain(channel.as_str()), Plain(facts.companion.as_str()));
    let trace = facts.under.map(tracing::field::display);
    tracing::info!(channel = %plain, %companion, from = %facts.from, to = %facts.to, cause = %facts.cause, trace, "closing");
    recorder.instruments().closing_transitions.add(1, [facts.to.as_str(), facts.cause.as_str()]);
    recorder.record(|| {
        let attributes = vec![
            KeyValue::new(name::GUILD_ID, guild.to_string()),
            KeyValue::new(name::CHANNEL_ID, channel.to_string()),
            KeyValue::new(name::COMPANION_ID, facts.companion.to_string()),
            KeyValue::new(name::CLOSING_FROM, facts.from.as_str()),
            KeyValue::new(name::CLOSING_TO, facts.to.as_str()),
            KeyValue::new(name::CLOSING_CAUSE, facts.cause.as_str()),
        ];
        let place = facts.under.map_or(Place::Alone, |turn| Place::Under(turn.root()));
        FinishedSpan::new(name::SPAN_CLOSING, place, (facts.at, facts.at), attributes)
    })
}

/// Records a judgement: `decision.repetition`, and a log line.
pub fn record_repetition(recorder: &Recorder, guild: &GuildId, channel: &ChannelId, facts: &RepetitionFacts) -> Option<SpanRef> {
    let plain = Plain(channel.as_str());
    let error = facts.error_type.as_deref().map(|code| tracing::field::display(Plain(code)));
    let trace = facts.under.map(tracing::field::display);
    let (score, detections, judge) = (facts.score, facts.detections, facts.judge);
    tracing::info!(channel = %plain, score, detections, %judge, error, trace, "repetition");
    let found = if facts.detections > 0 { "true" } else { "false" };
    recorder.instruments().repetition_judgements.add(1, [facts.judge, found]);
    recorder.instruments().repetition_score.record(facts.score, NONE);
    recorder.record(|| {
        let attributes = vec![
            KeyValue::new(name::GUILD_ID, guild.to_string()),
            KeyValue::new(name::CHANNEL_ID, channel.to_string()),
            KeyValue::new(name::REPETITION_SCORE, facts.score),
            KeyValue::new(name::REPETITION_DETECTIONS, i64::from(facts.detections)),
            KeyValue::new(name::REPETITION_JUDGE, facts.judge),
        ];
        let place = facts.under.map_or(Place::Alone, |turn| Place::in_turn(turn, facts.ticket));
        let times = (facts.started, facts.ended);
        FinishedSpan::new(name::SPAN_REPETITION, place, times, attributes).failed(facts.error_type.as_deref())
    })
}
