//! Records what services for speech do: spans, and the amounts.

use opentelemetry::trace::SpanKind;
use opentelemetry::{KeyValue, StringValue};

use super::attributes as name;
use super::recorder::{FinishedSpan, Place, Recorder};
use super::trace::SpanRef;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::moment::Moment;
use crate::domain::price::UnitPrice;
use crate::domain::service::Service;

/// Work of a service for speech: an utterance, or a sentence. Nothing in it names a person or has words.
#[derive(Clone, Copy, Debug)]
pub struct SpeechFacts<'a> {
    pub service: Service,
    /// As in the span attribute `gen_ai.provider.name`.
    pub provider: &'static str,
    pub guild: &'a GuildId,
    pub channel: &'a ChannelId,
    /// The companion that speaks. `None`: people are heard.
    pub companion: Option<&'a CompanionId>,
    /// The parent span. `None`: it is not known to which turn the work belongs.
    pub under: Option<SpanRef>,
    /// The seconds of audio that were recognised, or made.
    pub audio_secs: f64,
    /// The characters that were given to be spoken.
    pub characters: u64,
    pub error: Option<&'static str>,
    pub started: Moment,
    pub ended: Moment,
}

/// Records work: `voice.recognise`, from the first sound of an utterance to its last words, or `voice.synthesise`, from the request to the last audio.
pub fn record(recorder: &Recorder, facts: &SpeechFacts<'_>) -> Option<SpanRef> {
    let SpeechFacts { service, provider, audio_secs, characters, .. } = *facts;
    let is_synthesis = service == Service::SpeechSynthesis;
    if is_synthesis {
        recorder.instruments().speech_synthesised.add(characters, [provider]);
    } else {
        recorder.instruments().speech_recognised.add(audio_secs, [provider]);
    }
    if !recorder.is_on() {
        return None;
    }
    let mut attributes = vec![
        KeyValue::new(name::GEN_AI_PROVIDER_NAME, provider),
        KeyValue::new(name::GUILD_ID, facts.guild.as_str().to_owned()),
        KeyValue::new(name::CHANNEL_ID, facts.channel.as_str().to_owned()),
        KeyValue::new(name::SPEECH_AUDIO_SECS, audio_secs),
    ];
    if is_synthesis {
        attributes.push(KeyValue::new(name::SPEECH_CHARACTERS, i64::try_from(characters).unwrap_or(i64::MAX)));
    }
    attributes.extend(facts.companion.map(|companion| KeyValue::new(name::COMPANION_ID, companion.as_str().to_owned())));
    attributes.extend(facts.error.map(|error| KeyValue::new(name::ERROR_TYPE, error)));
    recorder.write(FinishedSpan {
        name: if is_synthesis { name::SPAN_SYNTHESISE } else { name::SPAN_RECOGNISE }.into(),
        kind: SpanKind::Client,
        place: facts.under.map_or(Place::Alone, Place::Under),
        started: facts.started,
        ended: facts.ended,
        attributes,
        error: facts.error.map(Into::into),
        links: Vec::new(),
    })
}

/// Counts the cost of so many units. It writes no span, because the work has one.
pub fn record_cost(recorder: &Recorder, service: Service, price: &UnitPrice, units: u64) {
    let labels: [StringValue; 2] = [service.as_str().into(), price.currency.clone().into()];
    recorder.instruments().speech_cost.add(price.of(units).as_units(), labels);
}
