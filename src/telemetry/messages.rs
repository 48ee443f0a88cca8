//! Records that a message was journaled, or sent to its platform, following the OpenTelemetry conventions for messaging.

use std::borrow::Cow;
use std::collections::BTreeMap;

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::attributes::{self as name, whole};
use super::plain::Plain;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::InTurn;
use crate::domain::event::Disclosed;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::message::HandedOver;
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::Interrupted;

/// A journaled message.
#[derive(Clone, Copy, Debug)]
pub struct Append {
    pub seq: Seq,
    /// When the writer received it.
    pub taken: Moment,
    pub committed: Moment,
    /// The hand-over that contained it, if it was spoken in a call.
    pub utterance: Option<Utterance>,
}

/// A hand-over: the segments of a voice call become messages.
#[derive(Clone, Copy, Debug)]
pub struct Utterance {
    /// When the first segment began.
    pub started: Moment,
    /// What triggered the hand-over.
    pub cause: HandedOver,
    pub segments: usize,
    pub messages: usize,
}

/// The progress of a spoken reply's playback.
#[derive(Clone, Debug)]
pub struct Playback {
    pub began: Moment,
    /// The time of the last progress report.
    pub until: Moment,
    /// For each sentence that began to play: the played audio in milliseconds, and whether the rest was dropped.
    pub sentences: BTreeMap<u32, (u64, bool)>,
}

/// Records that a message was journaled: `history.append`. The message is part of the turn, or ended it. For a spoken message,
/// also records the hand-over: `voice.utterance`, from the beginning of its first segment.
pub fn record_append(recorder: &Recorder, turn: &InTurn<'_>, append: &Append) {
    let seq = KeyValue::new(name::HISTORY_SEQ, whole(append.seq.0));
    recorder.record(|| span(turn, name::SPAN_APPEND, (append.taken, append.committed), [seq.clone()]));
    let Some(utterance) = append.utterance else { return };
    recorder.record(|| {
        let more = [
            seq.clone(),
            KeyValue::new(name::HAND_OVER_CAUSE, utterance.cause.as_str()),
            KeyValue::new(name::HAND_OVER_SEGMENTS, whole(utterance.segments)),
            KeyValue::new(name::HAND_OVER_MESSAGES, whole(utterance.messages)),
        ];
        span(turn, name::SPAN_UTTERANCE, (utterance.started, append.taken), more)
    });
}

/// Records how a spoken reply was played: `voice.playback`. The outcome is `whole`, `cut` or `unheard`.
pub fn record_playback(
    recorder: &Recorder,
    turn: &InTurn<'_>,
    companion: &CompanionId,
    playback: &Playback,
    outcome: &'static str,
) {
    let sentences = playback.sentences.values();
    recorder.record(|| {
        let more = [
            KeyValue::new(name::COMPANION_ID, companion.to_string()),
            KeyValue::new(name::PLAYBACK_OUTCOME, outcome),
            KeyValue::new(name::PLAYBACK_SENTENCES, whole(sentences.len())),
            KeyValue::new(name::PLAYBACK_DROPPED, whole(sentences.clone().filter(|(_, is_dropped)| *is_dropped).count())),
            KeyValue::new(name::PLAYBACK_PLAYED_MS, whole(sentences.clone().map(|(ms, _)| ms).sum::<u64>())),
        ];
        span(turn, name::SPAN_PLAYBACK, (playback.began, playback.until), more)
    });
}

/// Records the verdict of an interruption: `voice.interruption`. It does not name the person.
pub fn record_interruption(
    recorder: &Recorder,
    turn: &InTurn<'_>,
    companion: &CompanionId,
    interrupted: &Interrupted,
    at: Moment,
) {
    recorder.record(|| {
        let Interrupted { draw, tolerance, verdict, at_ms, .. } = interrupted;
        let more = [
            KeyValue::new(name::COMPANION_ID, companion.to_string()),
            KeyValue::new(name::INTERRUPTION_VERDICT, verdict.as_str()),
            KeyValue::new(name::INTERRUPTION_TOLERANCE, *tolerance),
            KeyValue::new(name::INTERRUPTION_AT_MS, whole(*at_ms)),
        ];
        let draw = draw.map(|draw| KeyValue::new(name::INTERRUPTION_DRAW, draw));
        span(turn, name::SPAN_INTERRUPTION, (at, at), more.into_iter().chain(draw))
    });
}

/// Records that people received the AI disclosure with a statement: `safety.notice`, and a log line. It does not name the people.
pub fn record_notice(recorder: &Recorder, turn: &InTurn<'_>, disclosed: &Disclosed, at: Moment) {
    let (occasion, people) = (disclosed.owed.occasion.as_str(), disclosed.owed.people.len());
    let (guild, channel) = (Plain(turn.guild.as_str()), Plain(turn.channel.as_str()));
    tracing::info!(%guild, %channel, occasion, people, trace = %turn.trace, "people were told that companions are AI");
    recorder.record(|| {
        let more = [KeyValue::new(name::NOTICE_OCCASION, occasion), KeyValue::new(name::NOTICE_PEOPLE, whole(people))];
        span(turn, name::SPAN_NOTICE, (at, at), more)
    });
}

/// Records that a statement was sent: `send {platform}`, from the end of writing until the platform accepted it. On a platform of
/// our own, until it was committed.
pub fn record_send(recorder: &Recorder, turn: &InTurn<'_>, companion: &CompanionId, platform: &str, times: (Moment, Moment)) {
    recorder.record(|| {
        let more = [
            KeyValue::new(name::MESSAGING_SYSTEM, platform.to_owned()),
            KeyValue::new(name::MESSAGING_OPERATION_NAME, "send"),
            KeyValue::new(name::MESSAGING_OPERATION_TYPE, "send"),
            KeyValue::new(name::MESSAGING_DESTINATION_NAME, turn.channel.to_string()),
            KeyValue::new(name::COMPANION_ID, companion.to_string()),
        ];
        FinishedSpan { kind: SpanKind::Producer, ..span(turn, format!("send {platform}"), times, more) }
    });
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
