//! Records that a message was journaled, or sent to its platform, by the OpenTelemetry conventions for messaging.

use std::borrow::Cow;

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::attributes::{self as name, whole};
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::{InTurn, SpanRef};
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::Interrupted;

/// A journaled message.
#[derive(Clone, Debug)]
pub struct AppendFacts<'a> {
    /// The turn that it led to, or that ended with it.
    pub turn: InTurn<'a>,
    pub seq: Seq,
    /// When the writer received it.
    pub started: Moment,
    /// When it was committed.
    pub ended: Moment,
}

/// Words of a voice call that became messages. The append is that of the message that led to the turn; its times are those of the utterance.
#[derive(Clone, Debug)]
pub struct UtteranceFacts<'a> {
    pub append: AppendFacts<'a>,
    /// Why they became messages when they did.
    pub cause: &'static str,
    pub segments: usize,
    pub messages: usize,
}

/// A statement that was sent to its platform.
#[derive(Clone, Debug)]
pub struct SendFacts<'a> {
    pub turn: InTurn<'a>,
    pub platform: &'a str,
    pub companion: &'a CompanionId,
    /// When the words were written.
    pub started: Moment,
    /// When the platform accepted it. On a platform of our own, when it was committed.
    pub ended: Moment,
}

/// A spoken reply that was played, whole or in part.
pub struct PlaybackFacts<'a> {
    pub turn: InTurn<'a>,
    pub companion: &'a CompanionId,
    /// `whole`, `cut` or `unheard`.
    pub outcome: &'static str,
    /// The number of sentences that began to play.
    pub sentences: usize,
    /// The number of these whose rest was dropped.
    pub dropped: usize,
    /// The audio that was played, in milliseconds.
    pub played_ms: u64,
    pub started: Moment,
    pub ended: Moment,
}

/// An interruption of a spoken reply that came out.
pub struct InterruptionFacts<'a> {
    pub turn: InTurn<'a>,
    pub companion: &'a CompanionId,
    pub interrupted: &'a Interrupted,
    pub at: Moment,
}

/// Records that a message was journaled: `history.append`.
pub fn record_append(recorder: &Recorder, facts: &AppendFacts<'_>) -> Option<SpanRef> {
    recorder.record(|| appended(facts, name::SPAN_APPEND, []))
}

/// Records that spoken words became messages: `voice.utterance`, from the beginning of the first of them.
pub fn record_utterance(recorder: &Recorder, facts: &UtteranceFacts<'_>) -> Option<SpanRef> {
    recorder.record(|| {
        let more = [
            KeyValue::new(name::HAND_OVER_CAUSE, facts.cause),
            KeyValue::new(name::HAND_OVER_SEGMENTS, whole(facts.segments)),
            KeyValue::new(name::HAND_OVER_MESSAGES, whole(facts.messages)),
        ];
        appended(&facts.append, name::SPAN_UTTERANCE, more)
    })
}

/// Records how a spoken reply was played: `voice.playback`.
pub fn record_playback(recorder: &Recorder, facts: &PlaybackFacts<'_>) -> Option<SpanRef> {
    recorder.record(|| {
        let more = [
            KeyValue::new(name::COMPANION_ID, facts.companion),
            KeyValue::new(name::PLAYBACK_OUTCOME, facts.outcome),
            KeyValue::new(name::PLAYBACK_SENTENCES, whole(facts.sentences)),
            KeyValue::new(name::PLAYBACK_DROPPED, whole(facts.dropped)),
            KeyValue::new(name::PLAYBACK_PLAYED_MS, whole(facts.played_ms)),
        ];
        span(&facts.turn, name::SPAN_PLAYBACK, (facts.started, facts.ended), more)
    })
}

/// Records how an interruption came out: `voice.interruption`. Nothing names the person.
pub fn record_interruption(recorder: &Recorder, facts: &InterruptionFacts<'_>) -> Option<SpanRef> {
    recorder.record(|| {
        let Interrupted { draw, tolerance, verdict, at_ms, .. } = facts.interrupted;
        let more = [
            KeyValue::new(name::COMPANION_ID, facts.companion),
            KeyValue::new(name::INTERRUPTION_VERDICT, verdict.as_str()),
            KeyValue::new(name::INTERRUPTION_TOLERANCE, *tolerance),
            KeyValue::new(name::INTERRUPTION_AT_MS, whole(*at_ms)),
        ];
        let draw = draw.map(|draw| KeyValue::new(name::INTERRUPTION_DRAW, draw));
        span(&facts.turn, name::SPAN_INTERRUPTION, (facts.at, facts.at), more.into_iter().chain(draw))
    })
}

/// Records that a statement was sent: `send {platform}`.
pub fn record_send(recorder: &Recorder, facts: &SendFacts<'_>) -> Option<SpanRef> {
    recorder.record(|| {
        let more = [
            KeyValue::new(name::MESSAGING_SYSTEM, facts.platform.to_owned()),
            KeyValue::new(name::MESSAGING_OPERATION_NAME, "send"),
            KeyValue::new(name::MESSAGING_OPERATION_TYPE, "send"),
            KeyValue::new(name::MESSAGING_DESTINATION_NAME, facts.turn.channel),
            KeyValue::new(name::COMPANION_ID, facts.companion),
        ];
        let sent = span(&facts.turn, format!("send {}", facts.platform), (facts.started, facts.ended), more);
        FinishedSpan { kind: SpanKind::Producer, ..sent }
    })
}

fn appended(facts: &AppendFacts<'_>, span_name: &'static str, more: impl IntoIterator<Item = KeyValue>) -> FinishedSpan {
    let seq = KeyValue::new(name::HISTORY_SEQ, whole(facts.seq.0));
    span(&facts.turn, span_name, (facts.started, facts.ended), [seq].into_iter().chain(more))
}

/// A span under the root of a turn.
fn span(
    turn: &InTurn<'_>,
    span_name: impl Into<Cow<'static, str>>,
    times: (Moment, Moment),
    more: impl IntoIterator<Item = KeyValue>,
) -> FinishedSpan {
    let mut attributes = turn.attributes();
    attributes.extend(more);
    FinishedSpan::new(span_name, Place::Under(turn.trace.root()), times, attributes)
}
