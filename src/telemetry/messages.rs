//! Records that a message was journaled, or sent to its platform, by the OpenTelemetry conventions for messaging.

use opentelemetry::KeyValue;
use opentelemetry::trace::SpanKind;

use super::attributes as name;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::{SpanRef, TurnTrace};
use crate::domain::id::{ChannelId, CompanionId, GuildId, Seq};
use crate::domain::moment::Moment;
use crate::domain::voice::interruption::Interrupted;

/// A journaled message.
#[derive(Clone, Debug)]
pub struct AppendFacts<'a> {
    /// The trace of the turn that it led to, or that ended with it.
    pub trace: TurnTrace,
    /// The turn's id, the same after a restart.
    pub turn_id: &'a str,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
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
    /// The trace of its turn. The span's parent is the root.
    pub trace: TurnTrace,
    /// The turn's id, the same after a restart.
    pub turn_id: &'a str,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    /// The platform's name.
    pub platform: &'a str,
    pub companion: &'a CompanionId,
    /// When the words were written.
    pub started: Moment,
    /// When the platform accepted it. On a platform of our own, when it was committed.
    pub ended: Moment,
}

/// Records that a message was journaled: `history.append`.
pub fn record_append(recorder: &Recorder, facts: &AppendFacts<'_>) -> Option<SpanRef> {
    if !recorder.is_on() {
        return None;
    }
    let times = (facts.started, facts.ended);
    write(recorder, name::SPAN_APPEND.to_owned(), SpanKind::Internal, facts.trace, times, append_attributes(facts))
}

/// Records that spoken words became messages: `voice.utterance`, from the beginning of the first of them.
pub fn record_utterance(recorder: &Recorder, facts: &UtteranceFacts<'_>) -> Option<SpanRef> {
    if !recorder.is_on() {
        return None;
    }
    let UtteranceFacts { append, cause, segments, messages } = facts;
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let mut attributes = append_attributes(append);
    attributes.push(KeyValue::new(name::HAND_OVER_CAUSE, *cause));
    attributes.push(KeyValue::new(name::HAND_OVER_SEGMENTS, count(*segments)));
    attributes.push(KeyValue::new(name::HAND_OVER_MESSAGES, count(*messages)));
    let times = (append.started, append.ended);
    write(recorder, name::SPAN_UTTERANCE.to_owned(), SpanKind::Internal, append.trace, times, attributes)
}

/// A spoken reply that was played, whole or in part.
pub struct PlaybackFacts<'a> {
    /// The trace of its turn. The span's parent is the root.
    pub trace: TurnTrace,
    /// The turn's id, the same after a restart.
    pub turn_id: &'a str,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    /// The companion that speaks.
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

/// Records how a spoken reply was played: `voice.playback`.
pub fn record_playback(recorder: &Recorder, facts: &PlaybackFacts<'_>) -> Option<SpanRef> {
    if !recorder.is_on() {
        return None;
    }
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let attributes = vec![
        KeyValue::new(name::TURN_ID, facts.turn_id.to_owned()),
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, facts.channel.as_str().to_owned()),
        KeyValue::new(name::COMPANION_ID, facts.companion.as_str().to_owned()),
        KeyValue::new(name::PLAYBACK_OUTCOME, facts.outcome),
        KeyValue::new(name::PLAYBACK_SENTENCES, count(facts.sentences)),
        KeyValue::new(name::PLAYBACK_DROPPED, count(facts.dropped)),
        KeyValue::new(name::PLAYBACK_PLAYED_MS, i64::try_from(facts.played_ms).unwrap_or(i64::MAX)),
    ];
    let times = (facts.started, facts.ended);
    write(recorder, name::SPAN_PLAYBACK.to_owned(), SpanKind::Internal, facts.trace, times, attributes)
}

/// An interruption of a spoken reply that came out.
pub struct InterruptionFacts<'a> {
    /// The trace of its turn. The span's parent is the root.
    pub trace: TurnTrace,
    /// The turn's id, the same after a restart.
    pub turn_id: &'a str,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    /// The companion that speaks.
    pub companion: &'a CompanionId,
    pub interrupted: &'a Interrupted,
    pub at: Moment,
}

/// Records how an interruption came out: `voice.interruption`. Nothing names the person.
pub fn record_interruption(recorder: &Recorder, facts: &InterruptionFacts<'_>) -> Option<SpanRef> {
    if !recorder.is_on() {
        return None;
    }
    let Interrupted { draw, tolerance, verdict, at_ms, .. } = facts.interrupted;
    let mut attributes = vec![
        KeyValue::new(name::TURN_ID, facts.turn_id.to_owned()),
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, facts.channel.as_str().to_owned()),
        KeyValue::new(name::COMPANION_ID, facts.companion.as_str().to_owned()),
        KeyValue::new(name::INTERRUPTION_VERDICT, verdict.as_str()),
        KeyValue::new(name::INTERRUPTION_TOLERANCE, *tolerance),
        KeyValue::new(name::INTERRUPTION_AT_MS, i64::try_from(*at_ms).unwrap_or(i64::MAX)),
    ];
    attributes.extend(draw.map(|draw| KeyValue::new(name::INTERRUPTION_DRAW, draw)));
    let times = (facts.at, facts.at);
    write(recorder, name::SPAN_INTERRUPTION.to_owned(), SpanKind::Internal, facts.trace, times, attributes)
}

fn append_attributes(facts: &AppendFacts<'_>) -> Vec<KeyValue> {
    vec![
        KeyValue::new(name::TURN_ID, facts.turn_id.to_owned()),
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, facts.channel.as_str().to_owned()),
        KeyValue::new(name::HISTORY_SEQ, i64::try_from(facts.seq.0).unwrap_or(i64::MAX)),
    ]
}

/// Records that a statement was sent: `send {platform}`.
pub fn record_send(recorder: &Recorder, facts: &SendFacts<'_>) -> Option<SpanRef> {
    if !recorder.is_on() {
        return None;
    }
    let channel = facts.channel.as_str();
    let span = format!("send {}", facts.platform);
    let attributes = vec![
        KeyValue::new(name::MESSAGING_SYSTEM, facts.platform.to_owned()),
        KeyValue::new(name::MESSAGING_OPERATION_NAME, "send"),
        KeyValue::new(name::MESSAGING_OPERATION_TYPE, "send"),
        KeyValue::new(name::MESSAGING_DESTINATION_NAME, channel.to_owned()),
        KeyValue::new(name::TURN_ID, facts.turn_id.to_owned()),
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, channel.to_owned()),
        KeyValue::new(name::COMPANION_ID, facts.companion.as_str().to_owned()),
    ];
    write(recorder, span, SpanKind::Producer, facts.trace, (facts.started, facts.ended), attributes)
}

fn write(
    recorder: &Recorder,
    span: String,
    kind: SpanKind,
    trace: TurnTrace,
    (started, ended): (Moment, Moment),
    attributes: Vec<KeyValue>,
) -> Option<SpanRef> {
    let place = Place::Under(trace.root());
    recorder.write(FinishedSpan { name: span.into(), kind, place, started, ended, attributes, error: None, links: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::super::memory::{SpanMemory, attribute};
    use super::*;

    #[test]
    fn a_statement_is_sent_to_the_platform_that_its_channel_names() {
        let memory = SpanMemory::new();
        let (guild, channel, companion) = (GuildId::from("home"), ChannelId::from("console:lobby"), CompanionId::from("aria"));
        let facts = SendFacts {
            trace: TurnTrace::new(42),
            turn_id: "console:lobby#7",
            guild: &guild,
            channel: &channel,
            platform: "console",
            companion: &companion,
            started: Moment::from_micros(1),
            ended: Moment::from_micros(2),
        };

        record_send(&memory.recorder(false), &facts);

        let [span] = &memory.named("send console")[..] else { panic!("not one span") };
        assert_eq!((&span.span_kind, span.parent_span_id), (&SpanKind::Producer, 42_u64.into()));
        let expected = [
            ("messaging.system", "console"),
            ("messaging.operation.type", "send"),
            ("messaging.destination.name", "console:lobby"),
        ];
        for (name, value) in expected {
            assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
        }
    }

    #[test]
    fn an_append_lasts_until_the_message_is_committed() {
        let memory = SpanMemory::new();
        let (guild, channel) = (GuildId::from("home"), ChannelId::from("console:lobby"));
        let facts = AppendFacts {
            trace: TurnTrace::new(42),
            turn_id: "console:lobby#7",
            guild: &guild,
            channel: &channel,
            seq: Seq(7),
            started: Moment::from_micros(1_000),
            ended: Moment::from_micros(3_500),
        };

        record_append(&memory.recorder(false), &facts);

        let [span] = &memory.named("history.append")[..] else { panic!("not one span") };
        assert_eq!(span.end_time.duration_since(span.start_time).expect("after").as_micros(), 2_500);
        assert_eq!(attribute(span, "history.seq").as_deref(), Some("7"));
    }
}
