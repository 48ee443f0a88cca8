use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message as _;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::decisions::{Answer, DecisionFacts};
use super::fake::{Lines, subscribe};
use super::trace::{InTurn, TurnTrace};
use super::turns::TurnFacts;
use super::*;
use crate::domain::id::{ChannelId, CompanionId, GuildId, Seq, Ticket};
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;

#[tokio::test]
async fn a_recorded_decision_arrives_over_otlp_under_its_turn() {
    let collector = Collector::start(StatusCode::OK).await;
    let mut plan = collector.plan();
    plan.iter_mut().for_each(|plan| plan.target.service_name = Some("salon".to_owned()));
    let (_, telemetry) = build(&options("info", LogFormat::Text), to(plan), io::sink, false).expect("it starts");
    let recorder = telemetry.recorder();

    decide(&recorder, "console:lobby", Answer::Decided { decision: "NO", reason: "other_addressed" });
    end_turn(&recorder);
    let ledger = telemetry.ledger();
    shutdown(telemetry).await;

    let (decision, turn) = (collector.span("decision.gate"), collector.span("conversation.turn"));
    assert_eq!(decision.trace_id, TRACE.as_u128().to_be_bytes());
    assert_eq!((&decision.trace_id, &decision.parent_span_id), (&turn.trace_id, &turn.span_id));
    assert!(turn.parent_span_id.is_empty());
    assert_eq!((decision.start_time_unix_nano, decision.end_time_unix_nano), (5_000_000_000, 5_250_000_000));
    let count = ("decision.message_count".to_owned(), "4".to_owned());
    assert!(texts(&decision.attributes).contains(&count), "{decision:?}");
    let resources = collector.resources();
    for (name, value) in [("service.name", "salon"), ("service.version", env!("CARGO_PKG_VERSION"))] {
        assert!(resources.contains(&(name.to_owned(), value.to_owned())), "{resources:?}");
    }
    assert_eq!((ledger.exported(), ledger.failed(), ledger.dropped(), ledger.waiting()), (2, 0, 0, 0));
}

#[tokio::test]
async fn ractors_span_of_an_actor_is_neither_exported_nor_a_parent() {
    let collector = Collector::start(StatusCode::OK).await;
    // With the widest filter, ractor's span is visible.
    let (subscriber, telemetry) =
        build(&options("trace", LogFormat::Text), to(collector.plan()), io::sink, false).expect("it starts");
    let subscribed = subscribe(subscriber);

    let (worker, ended) = Actor::spawn(None, Worker(telemetry.recorder()), ()).await.expect("it starts");
    worker.send_message(()).expect("it lives");
    ended.await.expect("it ends");
    drop(subscribed);
    shutdown(telemetry).await;

    let mut names = collector.names();
    names.sort();
    assert_eq!(names, ["conversation.turn", "work"]);
    assert!(collector.spans().iter().all(|span| span.parent_span_id.is_empty()));
}

#[tokio::test]
async fn a_useless_endpoint_costs_spans_but_no_time_and_no_memory() {
    for (fault, url) in [
        ("never answers", silent_endpoint().await),
        ("is overloaded", Collector::start(StatusCode::SERVICE_UNAVAILABLE).await.url),
        ("is not there", absent_endpoint().await),
        ("dies in the middle", dying_endpoint().await),
    ] {
        let options = Settings { span_queue: 100, ..options("off", LogFormat::Text) };
        let (_, mut telemetry) = build(&options, to(Some(ExportPlan::to(url))), io::sink, false).expect("it starts");
        telemetry.flush_timeout = Duration::from_millis(200);
        let (recorder, ledger) = (telemetry.recorder(), telemetry.ledger());

        for _ in 0..10_000 {
            end_turn(&recorder);
            assert!(ledger.waiting() <= 100, "the endpoint {fault}: {} wait", ledger.waiting());
        }
        let began = tokio::time::Instant::now();
        shutdown(telemetry).await;

        // The exporter's own timeout is ten seconds.
        assert!(began.elapsed() < Duration::from_secs(5), "the endpoint {fault}");
        assert_eq!(ledger.exported(), 0, "the endpoint {fault}");
        assert_eq!(ledger.failed() + ledger.dropped() + ledger.waiting(), 10_000, "the endpoint {fault}");
    }
}

#[tokio::test]
async fn spans_that_an_endpoint_rejects_are_counted_and_it_gets_new_ones_once_it_recovers() {
    let collector = Collector::start(StatusCode::BAD_REQUEST).await;
    let (_, telemetry) = build(&options("off", LogFormat::Text), to(collector.plan()), io::sink, false).expect("it starts");
    let (recorder, ledger) = (telemetry.recorder(), telemetry.ledger());
    let flush = async |telemetry: &Telemetry| {
        let provider = telemetry.provider.clone().expect("spans are exported");
        let _ = tokio::task::spawn_blocking(move || provider.force_flush()).await.expect("it does not panic");
    };

    end_turn(&recorder);
    flush(&telemetry).await;
    collector.answers(StatusCode::OK);
    end_turn(&recorder);
    flush(&telemetry).await;

    assert_eq!((ledger.failed(), ledger.exported(), ledger.waiting()), (1, 1, 0));
}

#[tokio::test]
async fn spans_that_an_endpoint_rejects_from_an_accepted_export_count_as_failed() {
    let collector = Collector::start(StatusCode::OK).await;
    let partial_success = Some(ExportTracePartialSuccess { rejected_spans: 2, error_message: "quota".to_owned() });
    collector.says(ExportTraceServiceResponse { partial_success });
    let (_, telemetry) = build(&options("off", LogFormat::Text), to(collector.plan()), io::sink, false).expect("it starts");
    let (recorder, ledger) = (telemetry.recorder(), telemetry.ledger());

    (0..3).for_each(|_| end_turn(&recorder));
    shutdown(telemetry).await;

    assert_eq!((ledger.exported(), ledger.failed(), ledger.waiting()), (1, 2, 0));
}

#[tokio::test]
async fn telemetry_may_be_dropped_on_an_async_thread() {
    // Nothing answers there. The test is that nothing panics.
    let plan = ExportPlan::to("http://127.0.0.1:9/v1/traces");
    let (_, telemetry) = build(&options("info", LogFormat::Text), to(Some(plan)), io::sink, false).expect("it starts");

    drop(telemetry);
}

#[test]
fn a_decision_or_a_missing_answer_is_one_line_of_log() {
    for (channel, answer, expected) in [
        (
            "console:lobby",
            Answer::Decided { decision: "NO", reason: "model_no" },
            "interjection channel=console:lobby trigger=lull decision=NO companion=aria msgs=4 reason=model_no",
        ),
        // No name of a channel forges a decision.
        (
            "x\ninterjection decision=YES\u{1b}[2K",
            Answer::Decided { decision: "NO", reason: "model_no" },
            "interjection channel=x_interjection_decision_YES_[2K trigger=lull decision=NO companion=aria msgs=4 reason=model_no",
        ),
        (
            "console:lobby",
            Answer::Missing { error_type: "timeout" },
            "evaluation without an answer channel=console:lobby trigger=lull companion=aria msgs=4 error=timeout",
        ),
    ] {
        let lines = logged(&options("info", LogFormat::Text), |telemetry| decide(&telemetry.recorder(), channel, answer));

        assert_eq!(
            lines.after(" tertulia::telemetry::decisions: "),
            [format!("{expected} trace=00112233445566778899aabbccddeeff")]
        );
    }
}

#[test]
fn a_json_log_has_one_object_per_line() {
    let lines = logged(&options("info", LogFormat::Json), |telemetry| {
        decide(&telemetry.recorder(), "console:lobby", Answer::Decided { decision: "YES", reason: "model_yes" });
    });

    let line: serde_json::Value = serde_json::from_str(lines.text().trim_end()).expect("it is JSON");
    assert_eq!((&line["message"], &line["decision"], &line["msgs"]), (&"interjection".into(), &"YES".into(), &4.into()));
    assert_eq!(line["target"], "tertulia::telemetry::decisions");
}

#[test]
fn ractor_logs_only_warnings_and_rmcp_nothing_whatever_the_settings_say() {
    let lines = logged(&options("trace,ractor=trace,rmcp=trace", LogFormat::Text), |_| {
        tracing::error!(target: "rmcp::service", "a private result");
        tracing::info!(target: "ractor::actor", "chatter");
        tracing::warn!(target: "ractor::actor", "trouble");
    });

    assert_eq!(lines.after("ractor::actor: "), ["trouble"]);
    assert!(!lines.text().contains("private"));
}

#[test]
fn a_directive_with_the_path_of_a_module_silences_it() {
    for (directives, lines) in [("info,tertulia::telemetry=warn", 0), ("warn,tertulia::telemetry::decisions=info", 1)] {
        let logged = logged(&options(directives, LogFormat::Text), |telemetry| {
            decide(&telemetry.recorder(), "console:lobby", Answer::Decided { decision: "YES", reason: "model_yes" });
        });

        assert_eq!(logged.text().lines().count(), lines, "{directives}");
    }
}

#[test]
fn invalid_directives_are_reported_with_examples() {
    let error =
        build(&options("tertulia=loud", LogFormat::Text), Plans::default(), io::sink, false).map(drop).expect_err("it is wrong");

    let expected =
        "telemetry.log = \"tertulia=loud\" is not a list of log directives such as \"info\" or \"warn,tertulia=debug\"";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[test]
fn the_setting_is_the_endpoint_unless_a_variable_sets_one() {
    let of = |setting: Option<&str>, variables: &[(&str, &str)]| {
        let options = Settings { otlp_endpoint: setting.map(str::to_owned), ..options("info", LogFormat::Text) };
        let variable = |name: &str| variables.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned());
        let plans = Plans::new(&options, variable);
        [plans.spans.map(|plan| plan.target.endpoint), plans.metrics.map(|plan| plan.endpoint)].map(Option::unwrap_or_default)
    };
    let endpoints = |variables: &[(&str, &str)]| of(Some("http://set:4318/"), variables);

    assert_eq!(of(None, &[]), ["", ""]);
    assert_eq!(endpoints(&[]), ["http://set:4318/v1/traces", "http://set:4318/v1/metrics"]);
    assert_eq!(endpoints(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), ["http://set:4318/v1/traces", "http://set:4318/v1/metrics"]);
    assert_eq!(endpoints(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b")]), ["http://b/v1/traces", "http://b/v1/metrics"]);
    let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/here");
    assert_eq!(endpoints(&[traces]), ["http://t/here", "http://set:4318/v1/metrics"]);
    let metrics = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m/here");
    assert_eq!(endpoints(&[metrics]), ["http://set:4318/v1/traces", "http://m/here"]);
    assert_eq!(endpoints(&[("OTEL_SDK_DISABLED", "TRUE")]), ["", ""]);
    assert_eq!(endpoints(&[("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")]), ["", ""]);
}

#[test]
fn an_export_that_should_use_grpc_is_refused_by_name() {
    let options = Settings { otlp_endpoint: Some("http://set:4318".to_owned()), ..options("info", LogFormat::Text) };
    let exported = |variables: &[(&str, &str)]| {
        let variable = |name: &str| variables.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned());
        let plans = Plans::new(&options, variable);
        (plans.spans.is_some(), plans.metrics.is_some(), plans.refused)
    };
    let (all, traces, metrics) =
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL");

    let (has_spans, has_metrics, refused) = exported(&[(all, "grpc")]);
    let mixed = exported(&[(all, "grpc"), (metrics, "http/protobuf")]);
    let one = exported(&[(traces, " gRPC ")]);

    assert_eq!((has_spans, has_metrics, refused.len()), (false, false, 2));
    assert!(refused[0].starts_with("spans are not exported: OTEL_EXPORTER_OTLP_PROTOCOL=grpc") && refused[0].contains("4318"));
    assert_eq!((mixed.0, mixed.1, mixed.2.len()), (false, true, 1));
    assert!(!one.0 && one.1 && one.2[0].contains("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc"), "{one:?}");
    assert_eq!(exported(&[(all, "http/json")]), (true, true, Vec::new()));
    assert_eq!(exported(&[(all, "grpc"), ("OTEL_SDK_DISABLED", "true")]), (false, false, Vec::new()));
}

#[test]
fn an_address_that_ends_in_the_path_that_is_added_to_it_gets_a_hint() {
    let hint = |setting: Option<&str>, variables: &[(&str, &str)]| {
        let options = Settings { otlp_endpoint: setting.map(str::to_owned), ..options("info", LogFormat::Text) };
        let variable = |name: &str| variables.iter().find(|(each, _)| *each == name).map(|(_, value)| (*value).to_owned());
        Plans::new(&options, variable).hint
    };
    let general = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let (traces, metrics) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");

    let of_variable = hint(None, &[(general, "http://ana:secret@here:4318/v1/traces/")]).expect("a hint");
    let of_setting = hint(Some("http://here:4318/base/v1/metrics"), &[]).expect("a hint");

    let expected = "OTEL_EXPORTER_OTLP_ENDPOINT is http://here:4318/v1/traces, but /v1/traces is added to it by itself: set it to http://here:4318,";
    assert!(of_variable.starts_with(expected), "{of_variable}");
    assert!(of_setting.starts_with("telemetry.otlp_endpoint is") && of_setting.contains("set it to http://here:4318/base,"));
    assert_eq!(hint(None, &[(general, "http://here:4318")]), None);
    assert_eq!(hint(None, &[(traces, "http://here:4318/v1/traces")]), None);
    let unused = [(general, "http://here/v1/traces"), (traces, "http://there/v1/traces"), (metrics, "http://there/v1/metrics")];
    assert_eq!(hint(None, &unused), None);
    assert_eq!(hint(None, &[(general, "http://here/v1/traces"), ("OTEL_SDK_DISABLED", "true")]), None);
}

/// What is logged meanwhile.
fn logged(options: &Settings, run: impl FnOnce(&Telemetry)) -> Lines {
    let lines = Lines::default();
    let (subscriber, telemetry) = build(options, Plans::default(), lines.clone(), false).expect("it starts");
    let _subscribed = subscribe(subscriber);
    run(&telemetry);
    lines
}

const TRACE: TurnTrace = TurnTrace::new(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);

fn options(log: &str, log_format: LogFormat) -> Settings {
    let settings = crate::settings::samples::settings(serde_json::json!({}));
    Settings { log: log.to_owned(), log_format, span_queue: 1_000, ..settings.telemetry }
}

fn decide(recorder: &Recorder, channel: &str, answer: Answer<'_>) {
    let (guild, channel, companion) = (GuildId::from("home"), ChannelId::from(channel), CompanionId::from("aria"));
    let facts = DecisionFacts {
        turn: InTurn { trace: TRACE, message: Seq(1), guild: &guild, channel: &channel },
        ticket: Some(Ticket(1)),
        companion: &companion,
        trigger: Trigger::Lull,
        answer,
        message_count: 4,
        check_count: 1,
        threshold: Some(9),
        vote: None,
        floor: None,
        started: Moment::from_micros(5_000_000),
        ended: Moment::from_micros(5_250_000),
    };
    decisions::record(recorder, &facts);
}

fn end_turn(recorder: &Recorder) {
    let (guild, channel) = (GuildId::from("home"), ChannelId::from("console:lobby"));
    let facts = TurnFacts {
        turn: InTurn { trace: TRACE, message: Seq(1), guild: &guild, channel: &channel },
        trigger: Trigger::Lull,
        outcome: "silence",
        error_type: None,
        follows: None,
        awaited_since: Moment::from_micros(4_000_000),
        overhead: std::time::Duration::from_millis(1),
        heard_since: None,
        started: Moment::from_micros(4_000_000),
        ended: Moment::from_micros(6_000_000),
    };
    turns::record(recorder, &facts);
}

/// Shuts down on a blocking thread, because the only async thread serves the collector.
async fn shutdown(telemetry: Telemetry) {
    tokio::task::spawn_blocking(|| telemetry.shutdown()).await.expect("it does not panic");
}

/// Accepts connections and never answers. The listener lives as long as the test's runtime.
async fn silent_endpoint() -> String {
    let (listener, url) = bound().await;
    tokio::spawn(async move {
        let _kept = listener;
        std::future::pending::<()>().await;
    });
    url
}

async fn absent_endpoint() -> String {
    bound().await.1
}

/// Reads a little, answers 200, and closes in the middle of the body.
async fn dying_endpoint() -> String {
    let (listener, url) = bound().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 100]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nso").await;
        }
    });
    url
}

async fn bound() -> (tokio::net::TcpListener, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
    let url = format!("http://{}/v1/traces", listener.local_addr().expect("it is bound"));
    (listener, url)
}

/// Receives spans over OTLP on loopback.
struct Collector {
    url: String,
    received: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    answer: Arc<Mutex<(StatusCode, Vec<u8>)>>,
}

impl Collector {
    async fn start(answer: StatusCode) -> Self {
        let received = Arc::<Mutex<Vec<_>>>::default();
        let answer = Arc::new(Mutex::new((answer, Vec::new())));
        let (kept, answers) = (received.clone(), answer.clone());
        let take = async move |body: Bytes| {
            kept.lock().push(ExportTraceServiceRequest::decode(body).expect("it is OTLP"));
            answers.lock().clone()
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let url = format!("http://{}/v1/traces", listener.local_addr().expect("it is bound"));
        tokio::spawn(axum::serve(listener, Router::new().route("/v1/traces", post(take))).into_future());
        Self { url, received, answer }
    }

    /// Sets the answer from now on.
    fn answers(&self, answer: StatusCode) {
        self.answer.lock().0 = answer;
    }

    /// Sets the body of its answers.
    fn says(&self, answer: ExportTraceServiceResponse) {
        self.answer.lock().1 = answer.encode_to_vec();
    }

    fn plan(&self) -> Option<ExportPlan> {
        Some(ExportPlan::to(self.url.clone()))
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.received.lock();
        let scopes = received.iter().flat_map(|request| &request.resource_spans).flat_map(|spans| &spans.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }

    fn names(&self) -> Vec<String> {
        self.spans().into_iter().map(|span| span.name).collect()
    }

    fn span(&self, name: &str) -> Span {
        self.spans().into_iter().find(|span| span.name == name).expect("the span arrived")
    }

    fn resources(&self) -> Vec<(String, String)> {
        let received = self.received.lock();
        let spans = received.iter().flat_map(|request| request.resource_spans.clone());
        spans.filter_map(|spans| spans.resource).flat_map(|resource| texts(&resource.attributes)).collect()
    }
}

fn texts(attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue]) -> Vec<(String, String)> {
    let text = |value: Option<Value>| match value {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        other => panic!("unexpected value {other:?}"),
    };
    attributes
        .iter()
        .map(|attribute| (attribute.key.clone(), text(attribute.value.clone().and_then(|value| value.value))))
        .collect()
}

/// Opens a span of its own, ends a turn, and stops.
struct Worker(Recorder);

impl Actor for Worker {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, myself: ActorRef<()>, (): (), (): &mut ()) -> Result<(), ActorProcessingErr> {
        tracing::info_span!("work").in_scope(|| myself.stop(None));
        end_turn(&self.0);
        Ok(())
    }
}

fn to(spans: Option<ExportPlan>) -> Plans {
    Plans { spans, ..Plans::default() }
}
