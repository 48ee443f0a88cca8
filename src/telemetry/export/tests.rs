use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::error::OTelSdkError;
use std::sync::mpsc;

use super::super::instruments::Instruments;
use super::super::recorder::{FinishedSpan, Place, Recorder};
use super::*;
use crate::domain::moment::Moment;

#[test]
fn nothing_is_exported_unless_an_endpoint_is_named() {
    assert_eq!(plan(&[]), None);
    assert_eq!(plan(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), None);
}

#[test]
fn a_general_endpoint_gets_the_path_of_traces() {
    let named = plan(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/")]);

    assert_eq!(named.map(|plan| plan.endpoint).as_deref(), Some("http://collector:4318/v1/traces"));
}

#[test]
fn an_endpoint_of_traces_is_taken_as_it_is() {
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
fn an_endpoint_that_is_no_url_is_an_error_that_names_it() {
    let plan = ExportPlan { endpoint: "not a url".to_owned(), service_name: None };

    let error = plan.provider(1, &Ledger::default()).map(drop).expect_err("it is no URL");

    assert!(error.to_string().starts_with("spans cannot be exported to not a url (OTEL_EXPORTER_OTLP_ENDPOINT or"), "{error}");
}

#[test]
fn lost_spans_are_complained_of_now_and_then_only() {
    let mut complaints = Complaints::default();
    let now = Instant::now();

    assert!(!complaints.is_due(0, now));
    assert!(complaints.is_due(1, now));
    assert!(!complaints.is_due(2, now + COMPLAINT_INTERVAL / 2));
    assert!(complaints.is_due(2, now + COMPLAINT_INTERVAL));
    assert!(!complaints.is_due(2, now + COMPLAINT_INTERVAL * 3));
}

#[test]
fn spans_beyond_the_limit_are_dropped_and_counted() {
    let (release, released) = mpsc::channel();
    let ledger = Ledger::default();
    let stuck = Stuck { released: Mutex::new(released) };
    let provider = SdkTracerProvider::builder()
        .with_span_processor(CountedProcessor::new(Watched::new(stuck, ledger.clone()), 10, ledger.clone()))
        .build();
    let recorder = Recorder::new(Some(provider.tracer("test")), false, Instruments::unread());

    for _ in 0..25 {
        recorder.write(span());
    }

    assert_eq!((ledger.waiting(), ledger.dropped()), (10, 15));
    release.send(Ok(())).expect("it waits");
    provider.shutdown().expect("it ends");
    assert_eq!((ledger.waiting(), ledger.exported(), ledger.failed()), (0, 10, 0));
}

#[test]
fn a_failing_endpoint_costs_the_spans_and_nothing_else() {
    let (release, released) = mpsc::channel();
    let ledger = Ledger::default();
    let stuck = Stuck { released: Mutex::new(released) };
    let provider = SdkTracerProvider::builder()
        .with_span_processor(CountedProcessor::new(Watched::new(stuck, ledger.clone()), 10, ledger.clone()))
        .build();
    release.send(Err(OTelSdkError::InternalFailure("refused".to_owned()))).expect("it waits");

    Recorder::new(Some(provider.tracer("test")), false, Instruments::unread()).write(span());

    let _ = provider.shutdown();
    assert_eq!((ledger.waiting(), ledger.exported(), ledger.failed()), (0, 0, 1));
}

/// Exports when it is told to.
#[derive(Debug)]
struct Stuck {
    released: Mutex<mpsc::Receiver<OTelSdkResult>>,
}

impl SpanExporter for Stuck {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        self.released.lock().expect("not poisoned").recv().expect("the test releases it")
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
