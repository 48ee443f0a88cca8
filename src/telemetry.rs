//! Spans, logs and their export: each name once.
//!
//! Spans are the record. Those of a turn are written from what is finished, with their own times ([`recorder`]), so none is held
//! open across actors; [`decisions`] is the one place where a gate's decision is recorded. Logs are for people, on stderr.

use std::io::IsTerminal;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, ParseError, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

pub mod attributes;
pub mod decisions;
pub mod export;
pub mod gateway;
pub mod instruments;
pub mod memory;
pub mod messages;
pub mod metrics;
pub mod model_calls;
pub mod operations;
pub mod panics;
pub mod plain;
pub mod recorder;
pub mod rounds;
pub mod sampling;
pub mod trace;
pub mod turns;

#[cfg(test)]
mod tests;

use crate::settings::telemetry::{LogFormat, Telemetry as Settings};
use export::{ExportError, ExportPlan, Ledger};
use metrics::{Metrics, MetricsError, MetricsPlan};
use recorder::Recorder;
use sampling::Sampling;

/// The instrumentation scope of our spans, and the root of our targets.
const SCOPE: &str = "tertulia";

/// How long a shutdown waits for what is still to be exported.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log directives do not parse.
    #[error(
        "telemetry.log = \"{directives}\" is not a list of log directives such as \"info\" or \"warn,tertulia=debug\": {error}"
    )]
    Directives {
        /// What was given.
        directives: String,
        /// What is wrong with it.
        error: ParseError,
    },
    /// The exporter cannot be made.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Metrics cannot be read.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// Somebody else in this process has set a subscriber.
    #[error("logging is already set up in this process: {0}")]
    AlreadySet(#[from] tracing::subscriber::SetGlobalDefaultError),
}

/// Telemetry at work. Shut it down on every way out of `main`, after the runtime; dropping it does the same.
#[derive(Debug)]
pub struct Telemetry {
    recorder: Recorder,
    ledger: Ledger,
    metrics: Metrics,
    provider: Option<SdkTracerProvider>,
    patience: Duration,
}

/// Where spans and metrics go; nowhere by default.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    /// Where spans go.
    pub spans: Option<ExportPlan>,
    /// Where metrics go besides `/metrics`.
    pub metrics: Option<MetricsPlan>,
}

impl Plans {
    /// What the standard variables say.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        Self { spans: ExportPlan::from_variables(&variable), metrics: MetricsPlan::from_variables(&variable) }
    }
}

impl From<Option<ExportPlan>> for Plans {
    fn from(spans: Option<ExportPlan>) -> Self {
        Self { spans, metrics: None }
    }
}

/// Sets the process's subscriber: log lines to stderr, spans to the OTLP endpoint that the environment names, if it names one.
///
/// # Errors
/// The directives or the endpoint are wrong, or a subscriber is set already.
pub fn init(options: &Settings) -> Result<Telemetry, TelemetryError> {
    let plans = Plans::from_variables(|name| std::env::var(name).ok());
    let colours = std::io::stderr().is_terminal();
    let plan = plans.spans.clone();
    let (subscriber, telemetry) = build(options, plans, std::io::stderr, colours)?;
    tracing::subscriber::set_global_default(subscriber)?;
    panics::listen();
    announce(options, plan.as_ref());
    Ok(telemetry)
}

/// Makes a subscriber that writes log lines to `writer`, without setting it: for tests, which share a process.
///
/// # Errors
/// The directives or the endpoint are wrong.
pub fn build<W, P>(
    options: &Settings,
    plans: P,
    writer: W,
    colours: bool,
) -> Result<(impl Subscriber + Send + Sync + use<W, P>, Telemetry), TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
    P: Into<Plans>,
{
    let plans = plans.into();
    let filter = log_filter(&options.log)?;
    let ledger = Ledger::default();
    let sampling = Sampling::share(share(options, plans.spans.as_ref()), options.span_queue);
    let plan = plans.spans.map(|plan| plan.called(&options.service_name));
    let provider = plan.map(|plan| plan.provider(options.span_queue, &ledger)).transpose()?;
    let named = plans.metrics.as_ref().and_then(|plan| plan.service_name.as_deref());
    let resource = export::resource(named.unwrap_or(&options.service_name));
    let metrics = Metrics::new(resource, plans.metrics.as_ref())?;
    metrics.observe_process(&ledger);
    let tracer = provider.as_ref().map(|provider| provider.tracer(SCOPE));
    let spans = tracer.clone().map(|tracer| {
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(is_our_span))
    });
    let lines = match options.log_format {
        LogFormat::Text => tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours).boxed(),
        LogFormat::Json => tracing_subscriber::fmt::layer().with_writer(writer).json().flatten_event(true).boxed(),
    };
    let subscriber = Registry::default().with(spans).with(lines.with_filter(filter));
    let recorder = Recorder::new(tracer, options.capture_content, metrics.instruments()).sampled(sampling);
    Ok((subscriber, Telemetry { recorder, ledger, metrics, provider, patience: FLUSH_DEADLINE }))
}

impl Telemetry {
    /// Writes spans; to be handed to whoever records something.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// What became of the spans.
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    /// What is measured.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Exports what waits, for at most five seconds, and ends. Blocks: not to be called on an async thread.
    pub fn shutdown(mut self) {
        self.flush_and_end();
    }

    fn flush_and_end(&mut self) {
        let provider = self.provider.take();
        let metrics = self.metrics.clone();
        // On a thread of its own, because the blocking HTTP client must not meet a runtime, and to be sure of the deadline.
        let (done, finished) = mpsc::channel();
        let patience = self.patience;
        let flushing = thread::Builder::new().name("telemetry-flush".to_owned()).spawn(move || {
            let flushed = provider.map_or(Ok(()), |provider| provider.shutdown_with_timeout(patience));
            metrics.shutdown(patience);
            let _ = done.send(flushed);
        });
        let outcome = flushing.map(|_| finished.recv_timeout(patience + patience / 5));
        if !matches!(outcome, Ok(Ok(Ok(())))) {
            tracing::warn!(waiting = self.ledger.waiting(), "spans that were not exported in time are lost");
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.flush_and_end();
    }
}

/// The share of traces that is exported: the environment's, if it names one.
fn share(options: &Settings, plan: Option<&ExportPlan>) -> f64 {
    plan.and_then(|plan| plan.sample_ratio).unwrap_or(options.sample_ratio)
}

/// Says where spans go.
fn announce(options: &Settings, plan: Option<&ExportPlan>) {
    let Some(known) = plan else {
        tracing::debug!("spans go nowhere; OTEL_EXPORTER_OTLP_ENDPOINT names a collector for them");
        return;
    };
    if let Some(sampler) = &known.unknown_sampler {
        let known = "always_on, always_off, traceidratio with a ratio from 0 to 1, or one of these with parentbased_";
        tracing::warn!(sampler, known, "the sampler in OTEL_TRACES_SAMPLER is not known, telemetry.sample_ratio decides");
    }
    let content = options.capture_content;
    tracing::info!(endpoint = known.shown_endpoint(), sample_ratio = share(options, plan), content, "spans are exported");
}

fn log_filter(directives: &str) -> Result<EnvFilter, TelemetryError> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(directives)
        .map_err(|error| TelemetryError::Directives { directives: directives.to_owned(), error })?;
    // ractor keeps a span open for as long as an actor lives; nothing should be logged inside it, whatever was asked for.
    let ractor =
        "ractor=warn".parse().map_err(|error| TelemetryError::Directives { directives: "ractor=warn".to_owned(), error })?;
    Ok(filter.add_directive(ractor))
}

/// Only what this crate opens: above all not ractor's lifelong span of each actor, which would become the parent of all it does.
fn is_our_span(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let is_ours = target.strip_prefix(SCOPE).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    metadata.is_span() && is_ours && *metadata.level() <= LevelFilter::INFO
}
