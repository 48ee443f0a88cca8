use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkError;
use std::sync::mpsc;

use super::super::instruments::Instruments;
use super::super::recorder::{FinishedSpan, Place, Recorder};
use super::*;
use crate::domain::moment::Moment;

#[test]
fn nothing_is_exported_unless_an_endpoint_is_set() {
    assert_eq!(plan(&[]), None);
    assert_eq!(plan(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
}

#[test]
fn a_general_endpoint_gets_the_path_of_traces() {
    let named = plan(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")]);

    assert_eq!(named.map(|plan| plan.endpoint).as_deref(), Some("http://collector:4318/v1/traces"));
}

#[test]
fn an_endpoint_for_traces_is_used_unchanged() {
    let named = plan(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/here"),
    ]);

    assert_eq!(named.map(|plan| plan.endpoint).as_deref(), Some("http://traces:4318/here"));
}

#[test]
fn export_can_be_switched_off() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

    assert_eq!(plan(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), None);
    assert_eq!(plan(&[endpoint, ("OTEL_TRACES_EXPORTER", "none")]), None);
    assert!(plan(&[endpoint, ("OTEL_SDK_DISABLED", "false"), ("OTEL_TRACES_EXPORTER", "otlp")]).is_some());
}

#[test]
fn an_invalid_endpoint_is_an_error_that_names_it() {
    let plan = ExportPlan::to("not a url");

    let error = plan.provider(1, &Ledger::default()).map(drop).expect_err("the URL is invalid");

    assert!(error.to_string().starts_with("spans cannot be exported to not a url (OTEL_EXPORTER_OTLP_ENDPOINT or"), "{error}");
}

#[test]
fn an_hour_without_a_collector_is_two_lines_of_log() {
    let mut losses = Losses::default();
    let now = Instant::now();
    let at = |secs| now + Duration::from_secs(secs);

    let down: Vec<_> = (1..=720).filter_map(|export| losses.update(export, at(export * 5))).collect();
    let up: Vec<_> = (721..=1_440).filter_map(|export| losses.update(720, at(export * 5))).collect();

    assert_eq!(down, [Change::Begin]);
    assert_eq!(up, [Change::End]);
    assert_eq!(losses.update(721, at(7_300)), Some(Change::Begin), "new losses are reported again");
}

#[test]
fn nothing_is_reported_while_nothing_is_lost() {
    assert_eq!(Losses::default().update(0, Instant::now()), None);
}

#[test]
fn the_standard_sampler_variable_sets_the_exported_share() {
    let sampled = |sampler, arg| {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");
        plan(&[endpoint, ("OTEL_TRACES_SAMPLER", sampler), ("OTEL_TRACES_SAMPLER_ARG", arg)])
    };
    let ratio = |sampler, arg| sampled(sampler, arg).expect("spans are exported").sample_ratio;

    assert_eq!(sampled("always_off", ""), None);
    assert_eq!(sampled("parentbased_always_off", ""), None);
    assert_eq!(ratio("always_on", ""), Some(1.0));
    assert_eq!(ratio("traceidratio", "0.25"), Some(0.25));
    assert_eq!(ratio("parentbased_traceidratio", "0.5"), Some(0.5));
    assert_eq!(ratio("traceidratio", ""), Some(1.0));
    for (sampler, arg) in [("jaeger_remote", ""), ("traceidratio", "often"), ("traceidratio", "7")] {
        let plan = sampled(sampler, arg).expect("spans are exported");
        assert_eq!((plan.sample_ratio, plan.unknown_sampler.as_deref()), (None, Some(sampler)));
    }
}

#[test]
fn an_endpoint_is_shown_without_its_secrets() {
    let shown = |endpoint: &str| ExportPlan::to(endpoint).shown_endpoint();

    assert_eq!(shown("https://ana:secret@host:4318/v1/traces?key=secret#x"), "https://host:4318/v1/traces");
    assert_eq!(shown("http://127.0.0.1:4318/v1/traces"), "http://127.0.0.1:4318/v1/traces");
    assert_eq!(shown("ana:secret@host"), "host");
    assert!(!format!("{:?}", ExportPlan::to("https://ana:secret@host")).contains("secret"));
    for endpoint in
        ["http://ana:sec/secret@host:4318/v1", "http://ana:secret?x@host", "http://ana:secret#x@host", "http://h/?k=secret@x"]
    {
        assert!(!shown(endpoint).contains("secret"), "{}", shown(endpoint));
    }
}

#[test]
fn spans_over_the_limit_are_dropped_and_counted() {
    let (release, ledger, provider) = stuck();
    let recorder = Recorder::new(Some(provider.tracer("test")), false, Instruments::noop());

    for _ in 0..25 {
        recorder.write(span());
    }

    assert_eq!((ledger.waiting(), ledger.dropped()), (10, 15));
    release.send(Ok(())).expect("the exporter waits");
    provider.shutdown().expect("the provider shuts down");
    assert_eq!((ledger.waiting(), ledger.exported(), ledger.failed()), (0, 10, 0));
}

#[test]
fn spans_sent_to_a_failing_endpoint_are_counted_as_failed() {
    let (release, ledger, provider) = stuck();
    release.send(Err(OTelSdkError::InternalFailure("refused".to_owned()))).expect("the exporter waits");

    Recorder::new(Some(provider.tracer("test")), false, Instruments::noop()).write(span());

    let _ = provider.shutdown();
    assert_eq!((ledger.waiting(), ledger.exported(), ledger.failed()), (0, 0, 1));
}

/// Spans to an exporter that a test releases, at most ten of them waiting.
fn stuck() -> (mpsc::Sender<OTelSdkResult>, Ledger, SdkTracerProvider) {
    let (release, released) = mpsc::channel();
    let ledger = Ledger::default();
    let exporter = Monitored::new(Stuck { released: Mutex::new(released) }, String::new(), ledger.clone());
    let counted = CountedProcessor::new(exporter, 10, ledger.clone());
    (release, ledger, SdkTracerProvider::builder().with_span_processor(counted).build())
}

/// Exports when the test releases it.
#[derive(Debug)]
struct Stuck {
    released: Mutex<mpsc::Receiver<OTelSdkResult>>,
}

impl SpanExporter for Stuck {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        self.released.lock().recv().expect("the test releases it")
    }
}

fn span() -> FinishedSpan {
    FinishedSpan {
        name: "x".into(),
        kind: opentelemetry::trace::SpanKind::Internal,
        place: Place::Alone,
        started: Moment::ZERO,
        ended: Moment::ZERO,
        attributes: Vec::new(),
        error: None,
        links: Vec::new(),
    }
}

fn plan(variables: &[(&str, &str)]) -> Option<ExportPlan> {
    let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ExportPlan::from_variables(|name| variables.iter().find(|(each, _)| each == name).map(|(_, value)| value.clone()))
}
