//! Records the work of speech services: spans, and the amounts.

use opentelemetry::trace::SpanKind;
use opentelemetry::{KeyValue, StringValue};

use super::attributes::{self as name, whole};
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::SpanRef;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::moment::Moment;
use crate::domain::price::UnitPrice;
use crate::domain::service::Service;

/// A unit of work of a speech service: an utterance, or a sentence. It contains no person and no text.
#[derive(Clone, Copy, Debug)]
pub struct SpeechFacts<'a> {
    pub service: Service,
    /// The value of the span attribute `gen_ai.provider.name`.
    pub provider: &'static str,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    /// The companion that speaks. `None`: speech recognition.
    pub companion: Option<&'a CompanionId>,
    /// The parent span. `None`: the turn of the work is unknown.
    pub under: Option<SpanRef>,
    /// The seconds of recognised or synthesised audio.
    pub audio_secs: f64,
    /// The number of synthesised characters.
    pub characters: u64,
    pub error: Option<&'static str>,
    pub started: Moment,
    pub ended: Moment,
}

/// Records a unit of work: `voice.recognise`, from the first audio of an utterance to its final transcript, or
/// `voice.synthesise`, from the request to the last audio.
pub fn record(recorder: &Recorder, facts: &SpeechFacts<'_>) -> Option<SpanRef> {
    let SpeechFacts { service, provider, audio_secs, characters, .. } = *facts;
    let is_synthesis = service == Service::SpeechSynthesis;
    if is_synthesis {
        recorder.instruments().speech_synthesised.add(characters, [provider]);
    } else {
        recorder.instruments().speech_recognised.add(audio_secs, [provider]);
    }
    recorder.record(|| {
        let mut attributes = vec![
            KeyValue::new(name::GEN_AI_PROVIDER_NAME, provider),
            KeyValue::new(name::GUILD_ID, facts.guild.to_string()),
            KeyValue::new(name::CHANNEL_ID, facts.channel.to_string()),
            KeyValue::new(name::SPEECH_AUDIO_SECS, audio_secs),
        ];
        attributes.extend(is_synthesis.then(|| KeyValue::new(name::SPEECH_CHARACTERS, whole(characters))));
        attributes.extend(facts.companion.map(|companion| KeyValue::new(name::COMPANION_ID, companion.to_string())));
        let span = if is_synthesis { name::SPAN_SYNTHESISE } else { name::SPAN_RECOGNISE };
        let place = facts.under.map_or(Place::Alone, Place::Under);
        let done = FinishedSpan::new(span, place, (facts.started, facts.ended), attributes).failed(facts.error);
        FinishedSpan { kind: SpanKind::Client, ..done }
    })
}

/// Counts the cost of a number of units. It writes no span, because the work has one.
pub fn record_cost(recorder: &Recorder, service: Service, price: &UnitPrice, units: u64) {
    let labels: [StringValue; 2] = [service.as_str().into(), price.currency.clone().into()];
    recorder.instruments().speech_cost.add(price.of(units).as_units(), labels);
}
