//! Records the work of speech services: usage of the guild, metrics, and a span for each piece of work. None of them contains transcripts.

use std::time::Duration;

use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{Record, Request};
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::send_to_writer;
use crate::domain::id::CompanionId;
use crate::domain::moment::Moment;
use crate::domain::price::UnitPrice;
use crate::domain::service::Service;
use crate::journal::channel_key::ChannelKey;
use crate::journal::record::Used;
use crate::ports::audio::{HEARD_RATE, SPOKEN_RATE};
use crate::ports::inbound_events::ChannelRef;
use crate::ports::speech_recognition::SpeechRecognition;
use crate::ports::speech_synthesis::SpeechSynthesis;
use crate::settings::speech::BUILT_IN;
use crate::telemetry::speech::{self, SpeechFacts};
use crate::telemetry::trace::SpanRef;

use super::providers::Provider;

/// One piece of work of a service. It is recorded and ends when it is dropped.
pub struct Work {
    context: ActorContext,
    channel_ref: ChannelRef,
    service: Service,
    provider: &'static str,
    price: Option<UnitPrice>,
    companion: Option<CompanionId>,
    under: Option<SpanRef>,
    started: Moment,
    /// Samples that were sent to the service, or that it has made.
    samples: u64,
    characters: u64,
    error: Option<&'static str>,
}

impl Work {
    /// Begins recognising speech. `started` is the time of the first sample.
    pub fn recognition(
        context: &ActorContext,
        channel_ref: &ChannelRef,
        by: &Provider<dyn SpeechRecognition>,
        started: Moment,
    ) -> Self {
        Self::begun(context, channel_ref, Service::SpeechRecognition, by.service().provider(), by.price().cloned(), started)
    }

    /// Begins making the audio of a sentence, for the reply whose span is `under`.
    pub fn synthesis(
        context: &ActorContext,
        channel_ref: &ChannelRef,
        by: &Provider<dyn SpeechSynthesis>,
        companion: CompanionId,
        text: &str,
        under: Option<SpanRef>,
    ) -> Self {
        let started = context.clock.now();
        let mut work =
            Self::begun(context, channel_ref, Service::SpeechSynthesis, by.service().provider(), by.price().cloned(), started);
        (work.companion, work.under, work.characters) = (Some(companion), under, text.chars().count() as u64);
        work
    }

    fn begun(
        context: &ActorContext,
        channel_ref: &ChannelRef,
        service: Service,
        provider: &'static str,
        price: Option<UnitPrice>,
        started: Moment,
    ) -> Self {
        let (companion, under, samples, characters, error) = (None, None, 0, 0, None);
        let (context, channel_ref) = (context.clone(), channel_ref.clone());
        Self { context, channel_ref, service, provider, price, companion, under, started, samples, characters, error }
    }

    /// Counts samples that were sent to the service, or that it has made.
    pub fn add(&mut self, samples: usize) {
        self.samples = self.samples.saturating_add(samples as u64);
    }

    pub fn audio(&self) -> Duration {
        Duration::from_micros(self.samples.saturating_mul(1_000_000) / u64::from(HEARD_RATE))
    }

    /// Resets the count: the service did not process the audio.
    pub const fn take_back(&mut self) {
        self.samples = 0;
    }

    pub fn fail(&mut self, error: &'static str) {
        self.error = Some(error);
    }

    /// The number of spoken characters. A sentence without audio was refused or never requested, and counts as 0.
    const fn characters(&self) -> u64 {
        if self.samples > 0 { self.characters } else { 0 }
    }

    fn used(&self) -> Used {
        let audio_ms = self.samples.saturating_mul(1_000) / u64::from(HEARD_RATE);
        let amount = if self.service == Service::SpeechSynthesis { self.characters() } else { audio_ms };
        let (companion, price) = (self.companion.clone(), self.price.clone());
        Used::Speech { service: self.service, companion, provider: self.provider.into(), amount, price }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let (context, channel_ref) = (&self.context, &self.channel_ref);
        let (used, now) = (self.used(), context.clock.now());
        let rate = if self.service == Service::SpeechSynthesis { SPOKEN_RATE } else { HEARD_RATE };
        let facts = SpeechFacts {
            service: self.service,
            provider: self.provider,
            guild: &channel_ref.guild,
            channel: &channel_ref.channel,
            companion: self.companion.as_ref(),
            under: self.under,
            audio_secs: self.samples as f64 / f64::from(rate),
            characters: self.characters(),
            error: self.error,
            started: self.started.min(now),
            ended: now,
        };
        speech::record(&context.recorder, &facts);
        if let Used::Speech { amount, price: Some(price), .. } = &used {
            speech::record_cost(&context.recorder, self.service, price, *amount);
        }
        if let Used::Speech { provider, amount, .. } = &used
            && **provider != *BUILT_IN
        {
            context.calls.allowances().count(&context.in_force().speech, &channel_ref.guild, self.service, *amount, now);
        }
        if matches!(used, Used::Speech { amount: 0, .. }) {
            return;
        }
        let channel_key = ChannelKey::new(&channel_ref.guild, &channel_ref.channel);
        // The outcome is not awaited. If the store does not accept the record now, this usage is lost.
        let record = Record { usage: vec![used], ..Record::new(channel_key, now, Reply::new(drop)) };
        if let Err(error) = send_to_writer(context, Request::Record(record)) {
            tracing::warn!(provider = self.provider, %error, "the usage of a service for speech is not on record");
        }
    }
}
