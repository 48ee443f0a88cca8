//! Spans, logs and their export. Each name is defined once.
//!
//! Spans of a turn are written when their work is finished, with their own times ([`recorder`]). So no span is held open across
//! actors. A gate's decision is recorded in one place, [`decisions`]. Logs are for people, and go to stderr.

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
#[cfg(any(test, feature = "samples"))]
pub mod fake;
pub mod gateway;
pub mod instruments;
pub mod messages;
pub mod metrics;
pub mod model_calls;
pub mod operations;
pub mod panics;
pub mod plain;
pub mod recorder;
pub mod rounds;
pub mod sampling;
pub mod speech;
mod targets;
pub mod tool_calls;
pub mod trace;
pub mod turns;

#[cfg(test)]
mod tests;

use tertulia_domain as domain;
use tertulia_http_client as http_client;
use tertulia_ports as ports;
use tertulia_settings as settings;

use crate::settings::telemetry::{LogFormat, Telemetry as Settings};
use export::{ExportError, ExportPlan, Ledger, Signal, Target};
use metrics::Metrics;
use recorder::Recorder;
use sampling::Sampling;
use targets::Shown;

/// The instrumentation scope of our spans, and the root of our targets.
const SCOPE: &str = "tertulia";

/// How long a shutdown waits for pending exports.
const FLUSH_DEADLINE: Duration = Duration::from_secs(5);

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log directives do not parse.
    #[error(
        "telemetry.log = \"{directives}\" is not a list of log directives such as \"info\" or \"warn,tertulia=debug\": {error}"
    )]
    Directives { directives: String, error: ParseError },
    /// An exporter cannot be created.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The reader for `/metrics` cannot be created.
    #[error("the Prometheus exporter cannot be created: {0}")]
    Prometheus(String),
    /// Another subscriber is installed in this process.
    #[error("logging is already set up in this process: {0}")]
    AlreadySet(#[from] tracing::subscriber::SetGlobalDefaultError),
}

/// Running telemetry. Shut it down on every path out of `main`, after the runtime. Dropping it does the same.
pub struct Telemetry {
    recorder: Recorder,
    ledger: Ledger,
    metrics: Metrics,
    provider: Option<SdkTracerProvider>,
    flush_timeout: Duration,
}

/// The destinations of spans and metrics. By default, none are exported.
#[derive(Clone, Debug, Default)]
pub struct Plans {
    pub spans: Option<ExportPlan>,
    /// The export of metrics, besides `/metrics`.
    pub metrics: Option<Target>,
    /// Requests of the variables that are not possible.
    pub refused: Vec<String>,
    /// A sign that an address is not meant as it is read.
    pub hint: Option<String>,
}

impl Plans {
    /// Reads the standard OTEL variables. If they set no endpoint, `telemetry.otlp_endpoint` is used.
    pub fn new(options: &Settings, variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name: &str| {
            let set = variable(name).filter(|value| !value.trim().is_empty());
            set.or_else(|| options.otlp_endpoint.clone().filter(|_| name == export::ENDPOINT))
        };
        let mut spans = ExportPlan::from_variables(variable);
        let mut metrics = Target::from_variables(Signal::Metrics, variable);
        let (no_spans, no_metrics) = (export::refused(Signal::Spans, variable), export::refused(Signal::Metrics, variable));
        let refused =
            no_spans.filter(|_| spans.take().is_some()).into_iter().chain(no_metrics.filter(|_| metrics.take().is_some()));
        let refused = refused.collect();
        let hint = variable(export::ENDPOINT).and_then(|general| {
            let added = format!("{}/v1/", general.trim().trim_end_matches('/'));
            let mut targets = spans.iter().map(|plan| &plan.target).chain(&metrics);
            let is_used = targets.any(|target| target.endpoint.starts_with(&added));
            let is_set = options.otlp_endpoint.as_ref() == Some(&general);
            let name = if is_set { "telemetry.otlp_endpoint" } else { export::ENDPOINT };
            export::doubled_path(name, &general).filter(|_| is_used)
        });
        Self { spans, metrics, refused, hint }
    }
}

/// Installs the process's subscriber. Log lines go to stderr, and spans to the OTLP endpoint, if one is set.
///
/// # Errors
/// Returns an error if the directives or the endpoint are invalid, or if a subscriber is installed already.
pub fn init(options: &Settings) -> Result<Telemetry, TelemetryError> {
    let plans = Plans::new(options, |name| std::env::var(name).ok());
    let colours = std::io::stderr().is_terminal();
    let (plan, warnings) = (plans.spans.clone(), [plans.refused.clone(), plans.hint.clone().into_iter().collect()].concat());
    let (subscriber, telemetry) = build(options, plans, std::io::stderr, colours)?;
    tracing::subscriber::set_global_default(subscriber)?;
    panics::listen();
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    announce(options, plan.as_ref());
    Ok(telemetry)
}

/// Builds a subscriber that writes log lines to `writer`, without installing it: for tests, which share a process.
///
/// # Errors
/// Returns an error if the directives or the endpoint are invalid.
pub fn build<W: for<'w> MakeWriter<'w> + Send + Sync + 'static>(
    options: &Settings,
    plans: Plans,
    writer: W,
    colours: bool,
) -> Result<(impl Subscriber + Send + Sync + use<W>, Telemetry), TelemetryError> {
    let filter = log_filter(&options.log)?;
    let ledger = Ledger::default();
    let sampling = Sampling::share(share(options, plans.spans.as_ref()), options.span_queue);
    let provider = plans.spans.map(|plan| plan.provider(&options.service_name, options.span_queue, &ledger)).transpose()?;
    let name = plans.metrics.as_ref().and_then(|plan| plan.service_name.as_deref());
    let resource = export::resource(name.unwrap_or(&options.service_name));
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
    let shown = |mark| Shown { writer, mark };
    let lines = match options.log_format {
        LogFormat::Text => tracing_subscriber::fmt::layer().with_writer(shown("")).with_ansi(colours).boxed(),
        LogFormat::Json => {
            tracing_subscriber::fmt::layer().with_writer(shown("\"target\":\"")).json().flatten_event(true).boxed()
        }
    };
    let subscriber = Registry::default().with(spans).with(lines.with_filter(filter));
    let recorder = Recorder::new(tracer, options.capture_content, metrics.instruments()).sampled(sampling);
    Ok((subscriber, Telemetry { recorder, ledger, metrics, provider, flush_timeout: FLUSH_DEADLINE }))
}

impl Telemetry {
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// The counts of exported and lost spans.
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }

    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// Exports pending spans and metrics for at most five seconds, and ends. Blocks: do not call it on an async thread.
    pub fn shutdown(mut self) {
        self.flush_and_end();
    }

    fn flush_and_end(&mut self) {
        let provider = self.provider.take();
        let metrics = self.metrics.clone();
        // On a separate thread, because the blocking HTTP client must not run inside a runtime, and to enforce the deadline.
        let (done, finished) = mpsc::channel();
        let flush_timeout = self.flush_timeout;
        let flushing = thread::Builder::new().name("telemetry-flush".to_owned()).spawn(move || {
            let flushed = provider.map_or(Ok(()), |provider| provider.shutdown_with_timeout(flush_timeout));
            metrics.shutdown(flush_timeout);
            let _ = done.send(flushed);
        });
        let outcome = flushing.map(|_| finished.recv_timeout(flush_timeout + flush_timeout / 5));
        if !matches!(outcome, Ok(Ok(Ok(())))) {
            tracing::warn!(waiting = self.ledger.waiting(), "spans were not exported in time and are lost");
        }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.flush_and_end();
    }
}

/// The share of traces that is exported. The environment overrides the settings.
fn share(options: &Settings, plan: Option<&ExportPlan>) -> f64 {
    plan.and_then(|plan| plan.sample_ratio).unwrap_or(options.sample_ratio)
}

/// Logs the destination of spans.
fn announce(options: &Settings, plan: Option<&ExportPlan>) {
    let Some(export) = plan else {
        tracing::debug!("spans are not exported; set telemetry.otlp_endpoint to export them to a collector");
        return;
    };
    if let Some(sampler) = &export.unknown_sampler {
        let known = "always_on, always_off, traceidratio with a ratio from 0 to 1, or one of these with parentbased_";
        tracing::warn!(sampler, known, "the sampler in OTEL_TRACES_SAMPLER is not known; using telemetry.sample_ratio");
    }
    let content = options.capture_content;
    tracing::info!(endpoint = export.target.shown_endpoint(), sample_ratio = share(options, plan), content, "spans are exported");
}

fn log_filter(directives: &str) -> Result<EnvFilter, TelemetryError> {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(targets::directives(directives))
        .map_err(|error| TelemetryError::Directives { directives: directives.to_owned(), error })?;
    // ractor keeps a span open for the lifetime of an actor. Nothing may be logged inside that span, whatever the settings say.
    let ractor =
        "ractor=warn".parse().map_err(|error| TelemetryError::Directives { directives: "ractor=warn".to_owned(), error })?;
    Ok(filter.add_directive(ractor))
}

/// Selects the spans of this program. Above all it excludes ractor's span for the lifetime of an actor, which would become the parent of all its
/// spans.
fn is_our_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && targets::is_ours(metadata.target()) && *metadata.level() <= LevelFilter::INFO
}
