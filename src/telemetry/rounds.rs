//! Records rounds: the selection of a speaker, changes of the closing stage, and measurements of repetition.

use opentelemetry::KeyValue;

use super::attributes::{self as name, whole};
use super::instruments::{Instruments, NONE};
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::{InTurn, SpanRef, TurnTrace};
use crate::domain::closing::{Cause, Stage};
use crate::domain::id::{ChannelId, CompanionId, GuildId, Seq, Ticket};
use crate::domain::moment::Moment;

/// A round from its opening to the selection.
#[derive(Clone, Debug)]
pub struct SelectionFacts<'a> {
    pub turn: InTurn<'a>,
    /// The newest event when the round was opened.
    pub message: Seq,
    /// Number of companions in the round.
    pub states: usize,
    /// Number of companions that want to speak.
    pub speak: usize,
    /// Number of companions that could be selected.
    pub candidates: usize,
    /// Number of companions that were asked but did not answer.
    pub missing: usize,
    /// Whether the selection had to break a tie.
    pub is_tied: bool,
    pub selected: Option<&'a CompanionId>,
    pub started: Moment,
    pub ended: Moment,
}

/// A change of one companion's closing stage.
#[derive(Clone, Debug)]
pub struct ClosingFacts<'a> {
    /// The turn that caused it, if any.
    pub under: Option<TurnTrace>,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    pub companion: &'a CompanionId,
    pub from: Stage,
    pub to: Stage,
    pub cause: Cause,
    pub at: Moment,
}

/// A judgement of how much the last statements repeat each other.
#[derive(Clone, Debug)]
pub struct RepetitionFacts<'a> {
    /// The turn of the judged statement, if it is known.
    pub under: Option<TurnTrace>,
    /// The question, if a model was asked. The span of its call is a child of this one.
    pub ticket: Option<Ticket>,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    /// From 0 to 1.
    pub score: f64,
    /// Consecutive detections, including this one.
    pub detections: u32,
    /// `lexical` or `model`.
    pub judge: &'static str,
    /// The error code if the model gave no judgement. The score is 0 then.
    pub error_type: Option<&'a str>,
    pub started: Moment,
    pub ended: Moment,
}

/// Records a selection: `decision.select_speaker`, and a log line.
pub fn record_selection(recorder: &Recorder, facts: &SelectionFacts<'_>) -> Option<SpanRef> {
    let selected = facts.selected.map_or("-", CompanionId::as_str);
    let (channel, selected) = (Plain(facts.turn.channel.as_str()), Plain(selected));
    let (states, candidates, missing, trace) = (facts.states, facts.candidates, facts.missing, facts.turn.trace);
    tracing::info!(%channel, states, candidates, missing, %selected, %trace, "round");
    measure_selection(recorder.instruments(), facts);
    recorder.record(|| {
        let mut attributes = facts.turn.attributes();
        attributes.extend([
            KeyValue::new(name::ROUND_MESSAGE_ID, facts.message.to_string()),
            KeyValue::new(name::ROUND_STATES, whole(facts.states)),
            KeyValue::new(name::ROUND_CANDIDATES, whole(facts.candidates)),
            KeyValue::new(name::ROUND_MISSING, whole(facts.missing)),
        ]);
        attributes.extend(facts.selected.map(|selected| KeyValue::new(name::ROUND_SELECTED, selected)));
        let place = Place::Under(facts.turn.trace.root());
        FinishedSpan::new(name::SPAN_SELECT_SPEAKER, place, (facts.started, facts.ended), attributes)
    })
}

/// Records a change of the closing stage: `decision.closing`, and a log line.
pub fn record_closing(recorder: &Recorder, facts: &ClosingFacts<'_>) -> Option<SpanRef> {
    let (channel, companion) = (Plain(facts.channel.as_str()), Plain(facts.companion.as_str()));
    let trace = facts.under.map(tracing::field::display);
    tracing::info!(%channel, %companion, from = %facts.from, to = %facts.to, cause = %facts.cause, trace, "closing");
    recorder.instruments().closing_transitions.add(1, [facts.to.as_str(), facts.cause.as_str()]);
    recorder.record(|| {
        let attributes = vec![
            KeyValue::new(name::GUILD_ID, facts.guild),
            KeyValue::new(name::CHANNEL_ID, facts.channel),
            KeyValue::new(name::COMPANION_ID, facts.companion),
            KeyValue::new(name::CLOSING_FROM, facts.from.as_str()),
            KeyValue::new(name::CLOSING_TO, facts.to.as_str()),
            KeyValue::new(name::CLOSING_CAUSE, facts.cause.as_str()),
        ];
        let place = facts.under.map_or(Place::Alone, |turn| Place::Under(turn.root()));
        FinishedSpan::new(name::SPAN_CLOSING, place, (facts.at, facts.at), attributes)
    })
}

/// Records a judgement: `decision.repetition`, and a log line.
pub fn record_repetition(recorder: &Recorder, facts: &RepetitionFacts<'_>) -> Option<SpanRef> {
    let channel = Plain(facts.channel.as_str());
    let error = facts.error_type.map(|code| tracing::field::display(Plain(code)));
    let trace = facts.under.map(tracing::field::display);
    let (score, detections, judge) = (facts.score, facts.detections, facts.judge);
    tracing::info!(%channel, score, detections, %judge, error, trace, "repetition");
    let found = if facts.detections > 0 { "true" } else { "false" };
    recorder.instruments().repetition_judgements.add(1, [facts.judge, found]);
    recorder.instruments().repetition_score.record(facts.score, NONE);
    recorder.record(|| {
        let attributes = vec![
            KeyValue::new(name::GUILD_ID, facts.guild),
            KeyValue::new(name::CHANNEL_ID, facts.channel),
            KeyValue::new(name::REPETITION_SCORE, facts.score),
            KeyValue::new(name::REPETITION_DETECTIONS, i64::from(facts.detections)),
            KeyValue::new(name::REPETITION_JUDGE, facts.judge),
        ];
        let place = facts.under.map_or(Place::Alone, |turn| Place::in_turn(turn, facts.ticket));
        let times = (facts.started, facts.ended);
        FinishedSpan::new(name::SPAN_REPETITION, place, times, attributes).failed(facts.error_type)
    })
}

fn measure_selection(instruments: &Instruments, facts: &SelectionFacts<'_>) {
    instruments.rounds.add(1, [if facts.selected.is_some() { "selected" } else { "nobody" }]);
    instruments.round_duration.record(facts.ended.since(facts.started).as_secs_f64(), NONE);
    instruments.round_votes.add(facts.speak as u64, ["speak"]);
    instruments.round_votes.add(facts.states.saturating_sub(facts.speak) as u64, ["listen"]);
    instruments.round_missing_votes.add(facts.missing as u64, NONE);
    instruments.round_ties.add(u64::from(facts.is_tied), NONE);
}
