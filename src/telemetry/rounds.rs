//! Records what belongs to rounds: who was selected, how stages of closing changed, and how repetitive the talk was found.

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::attributes as name;
use super::instruments::{Instruments, NONE};
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::{SpanRef, TurnTrace};
use crate::domain::closing::{Cause, Stage};
use crate::domain::id::{ChannelId, CompanionId, GuildId, Seq};
use crate::domain::moment::Moment;

/// A round from its opening to the selection.
#[derive(Clone, Debug)]
pub struct SelectionFacts<'a> {
    /// The trace of its turn; the span lies under the root.
    pub trace: TurnTrace,
    /// The turn, through restarts.
    pub turn_id: &'a str,
    /// Where.
    pub guild: &'a GuildId,
    /// Where.
    pub channel: &'a ChannelId,
    /// What the round was about.
    pub message: Seq,
    /// How many took part.
    pub states: usize,
    /// How many of them want to speak.
    pub speak: usize,
    /// How many of them could be selected.
    pub candidates: usize,
    /// How many were asked and gave no answer.
    pub missing: usize,
    /// Whether equal wishes had to be told apart.
    pub is_tied: bool,
    /// Who was selected, if somebody was.
    pub selected: Option<&'a CompanionId>,
    /// When it was opened.
    pub started: Moment,
    /// When it was closed.
    pub ended: Moment,
}

/// A change of one companion's stage.
#[derive(Clone, Debug)]
pub struct ClosingFacts<'a> {
    /// The turn that led to it, if one did.
    pub under: Option<SpanRef>,
    /// Where.
    pub guild: &'a GuildId,
    /// Where.
    pub channel: &'a ChannelId,
    /// Whose.
    pub companion: &'a CompanionId,
    /// Where it was.
    pub from: Stage,
    /// Where it is.
    pub to: Stage,
    /// Why.
    pub cause: Cause,
    /// When.
    pub at: Moment,
}

/// A judgement of how much the last messages repeat each other.
#[derive(Clone, Debug)]
pub struct RepetitionFacts<'a> {
    /// The turn of the statement that was judged, if it is known.
    pub under: Option<SpanRef>,
    /// Where.
    pub guild: &'a GuildId,
    /// Where.
    pub channel: &'a ChannelId,
    /// From 0 to 1.
    pub score: f64,
    /// Detections in a row, this one included.
    pub detections: u32,
    /// `lexical` or `model`.
    pub judge: &'static str,
    /// When.
    pub at: Moment,
}

/// Records a selection: `decision.select_speaker`, and a log line.
pub fn record_selection(recorder: &Recorder, facts: &SelectionFacts<'_>) -> Option<SpanRef> {
    let selected = facts.selected.map_or("-", CompanionId::as_str);
    let (channel, selected) = (Plain(facts.channel.as_str()), Plain(selected));
    tracing::info!(%channel, states = facts.states, candidates = facts.candidates, missing = facts.missing, %selected, "round");
    measure_selection(recorder.instruments(), facts);
    if !recorder.is_on() {
        return None;
    }
    let mut attributes = vec![
        KeyValue::new(name::TURN_ID, facts.turn_id.to_owned()),
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, facts.channel.as_str().to_owned()),
        KeyValue::new(name::ROUND_MESSAGE_ID, facts.message.to_string()),
        KeyValue::new(name::ROUND_STATES, count(facts.states)),
        KeyValue::new(name::ROUND_CANDIDATES, count(facts.candidates)),
        KeyValue::new(name::ROUND_MISSING, count(facts.missing)),
    ];
    attributes.extend(facts.selected.map(|selected| KeyValue::new(name::ROUND_SELECTED, selected.as_str().to_owned())));
    write(recorder, name::SPAN_SELECT_SPEAKER, Some(facts.trace.root()), (facts.started, facts.ended), attributes)
}

/// Records a change of stage: `decision.closing`, and a log line.
pub fn record_closing(recorder: &Recorder, facts: &ClosingFacts<'_>) -> Option<SpanRef> {
    let (channel, companion) = (Plain(facts.channel.as_str()), Plain(facts.companion.as_str()));
    tracing::info!(%channel, %companion, from = %facts.from, to = %facts.to, cause = %facts.cause, "closing");
    recorder.instruments().closing_transitions.add(1, [facts.to.as_str(), facts.cause.as_str()]);
    if !recorder.is_on() {
        return None;
    }
    let attributes = vec![
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, facts.channel.as_str().to_owned()),
        KeyValue::new(name::COMPANION_ID, facts.companion.as_str().to_owned()),
        KeyValue::new(name::CLOSING_FROM, facts.from.as_str()),
        KeyValue::new(name::CLOSING_TO, facts.to.as_str()),
        KeyValue::new(name::CLOSING_CAUSE, facts.cause.as_str()),
    ];
    write(recorder, name::SPAN_CLOSING, facts.under, (facts.at, facts.at), attributes)
}

/// Records a judgement: `decision.repetition`, and a log line.
pub fn record_repetition(recorder: &Recorder, facts: &RepetitionFacts<'_>) -> Option<SpanRef> {
    let channel = Plain(facts.channel.as_str());
    tracing::info!(%channel, score = facts.score, detections = facts.detections, judge = facts.judge, "repetition");
    let found = if facts.detections > 0 { "true" } else { "false" };
    recorder.instruments().repetition_judgements.add(1, [facts.judge, found]);
    recorder.instruments().repetition_score.record(facts.score, NONE);
    if !recorder.is_on() {
        return None;
    }
    let attributes = vec![
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, facts.channel.as_str().to_owned()),
        KeyValue::new(name::REPETITION_SCORE, facts.score),
        KeyValue::new(name::REPETITION_DETECTIONS, i64::from(facts.detections)),
        KeyValue::new(name::REPETITION_JUDGE, facts.judge),
    ];
    write(recorder, name::SPAN_REPETITION, facts.under, (facts.at, facts.at), attributes)
}

fn measure_selection(instruments: &Instruments, facts: &SelectionFacts<'_>) {
    instruments.rounds.add(1, [if facts.selected.is_some() { "selected" } else { "nobody" }]);
    instruments.round_duration.record(facts.ended.since(facts.started).as_secs_f64(), NONE);
    instruments.round_votes.add(facts.speak as u64, ["speak"]);
    instruments.round_votes.add(facts.states.saturating_sub(facts.speak) as u64, ["listen"]);
    instruments.round_missing_votes.add(facts.missing as u64, NONE);
    instruments.round_ties.add(u64::from(facts.is_tied), NONE);
}

fn write(
    recorder: &Recorder,
    span: &'static str,
    under: Option<SpanRef>,
    (started, ended): (Moment, Moment),
    attributes: Vec<KeyValue>,
) -> Option<SpanRef> {
    let place = under.map_or(Place::Alone, Place::Under);
    let kind = SpanKind::Internal;
    recorder.write(FinishedSpan { name: span.into(), kind, place, started, ended, attributes, error: None, links: Vec::new() })
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::memory::{SpanMemory, attribute};
    use super::*;

    #[test]
    fn a_round_without_a_speaker_names_nobody_and_counts_who_was_missing() {
        let memory = SpanMemory::new();
        let (guild, channel) = (GuildId::from("home"), ChannelId::from("console:lobby"));
        let facts = SelectionFacts {
            trace: TurnTrace::new(42),
            turn_id: "console:lobby#7",
            guild: &guild,
            channel: &channel,
            message: Seq(7),
            states: 3,
            speak: 0,
            candidates: 0,
            missing: 2,
            is_tied: false,
            selected: None,
            started: Moment::from_micros(1),
            ended: Moment::from_micros(2),
        };

        record_selection(&memory.recorder(false), &facts);

        let span = &memory.named("decision.select_speaker")[0];
        assert_eq!(u64::from_be_bytes(span.parent_span_id.to_bytes()), TurnTrace::new(42).root().span_id());
        for (name, value) in [("round.message_id", "7"), ("round.states", "3"), ("round.candidates", "0"), ("round.missing", "2")]
        {
            assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(attribute(span, "round.selected"), None);
    }

    #[test]
    fn a_stage_that_changed_says_from_where_to_where_and_why() {
        let memory = SpanMemory::new();
        let (guild, channel, companion) = (GuildId::from("home"), ChannelId::from("console:lobby"), CompanionId::from("aria"));
        let facts = ClosingFacts {
            under: None,
            guild: &guild,
            channel: &channel,
            companion: &companion,
            from: Stage::None,
            to: Stage::PreClosing,
            cause: Cause::Repetition,
            at: Moment::from_micros(1),
        };

        record_closing(&memory.recorder(false), &facts);

        let span = &memory.named("decision.closing")[0];
        for (name, value) in [("closing.from", "none"), ("closing.to", "pre-closing"), ("closing.cause", "repetition")] {
            assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
        }
    }

    #[test]
    fn a_judgement_says_who_judged() {
        let memory = SpanMemory::new();
        let (guild, channel) = (GuildId::from("home"), ChannelId::from("console:lobby"));
        let at = Moment::from_micros(1);
        let facts =
            RepetitionFacts { under: None, guild: &guild, channel: &channel, score: 0.75, detections: 1, judge: "lexical", at };

        record_repetition(&memory.recorder(false), &facts);

        let span = &memory.named("decision.repetition")[0];
        assert_eq!(attribute(span, "repetition.score").as_deref(), Some("0.75"));
        assert_eq!(attribute(span, "repetition.judge").as_deref(), Some("lexical"));
    }
}
