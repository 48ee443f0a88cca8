//! Exported spans and log lines: they are complete, and contain no message content unless that is enabled.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use serde_json::{Value, json};

use crate::harness::Premises;

/// Unique words in a message, its sender, a companion's settings, and a model's answers.
const PLANTED: [&str; 7] =
    ["xylomessage", "xylosender", "xylopersona", "xylochattiness", "xyloalias", "xylothought", "xylostatement"];

const SECRET: &str = "xylosecret";

#[tokio::test]
async fn message_content_is_neither_in_spans_nor_in_the_log() {
    let outside = Outside::start().await;
    let premises = premises(&outside);

    let log = hold_a_talk(&premises).await;

    let spans = outside.spans();
    for name in [
        "history.append",
        "decision.gate",
        "chat side-model",
        "invoke_agent Aria",
        "chat main-model",
        "send console",
        "conversation.turn",
    ] {
        assert!(spans.contains(&format!("name: \"{name}\"")), "no span {name}: {spans}");
    }
    for line in ["interjection", "evaluation without an answer", "a model gives no answer", "statement"] {
        assert!(log.contains(line), "no line {line:?}:\n{log}");
    }
    for word in PLANTED {
        assert!(!spans.contains(word), "{word} is in a span: {spans}");
        assert!(!log.contains(word), "{word} is in the log:\n{log}");
    }
}

#[tokio::test]
async fn with_capture_content_message_content_is_in_spans_but_not_in_the_log() {
    let outside = Outside::start().await;
    let premises = premises(&outside).with("telemetry.capture_content", "true");

    let log = hold_a_talk(&premises).await;

    let spans = outside.spans();
    for word in PLANTED {
        assert!(spans.contains(word), "{word} is in no span: {spans}");
        assert!(!log.contains(word), "{word} is in the log:\n{log}");
    }
}

#[tokio::test]
async fn headers_for_the_collector_are_sent_but_not_logged() {
    let outside = Outside::start().await;
    let endpoint = outside.url.replacen("http://", &format!("http://ana:{SECRET}@"), 1);
    let premises = premises(&outside).with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);

    let log = hold_a_talk(&premises).await;

    assert!(outside.headers().iter().all(|headers| headers["x-token"] == SECRET) && !outside.headers().is_empty());
    assert!(log.contains("spans are exported") && log.contains(&outside.url), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[tokio::test]
async fn the_collector_can_be_set_in_the_settings() {
    let outside = Outside::start().await;
    let premises = premises(&outside).with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", "");

    let log = hold_a_talk(&premises.with("telemetry.otlp_endpoint", &outside.url)).await;

    assert!(outside.spans().contains("name: \"conversation.turn\""), "{log}");
}

#[tokio::test]
async fn every_log_line_of_a_decision_names_the_recorded_trace() {
    let premises = Premises::shipped().with("telemetry.log_format", "json").with("turn_taking.turn_delay_secs", "0");
    let server = premises.start().await;
    let mut watch = server.watch("lobby", None).await;

    server.say("lobby", "Ana", "Aria, Bruno, Cleo: what do you think of boats?").await;
    let on_record = loop {
        let decision = watch.event("decision").await;
        if decision["reason"] == "loop_guard" {
            break server.get("/api/decisions?room=lobby").await["decisions"].clone();
        }
    };
    server.signal("TERM").await;
    let (_, log) = server.ended().await;

    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_telemetry = |line: &&Value| line["target"].as_str().is_some_and(|target| target.starts_with("tertulia::telemetry::"));
    let records: Vec<_> = lines.iter().filter(is_telemetry).filter(|line| !line["channel"].is_null()).collect();
    for kind in ["interjection", "round", "closing", "repetition", "statement"] {
        assert!(records.iter().any(|line| line["message"] == kind), "no line {kind}:\n{log}");
    }
    let is_trace = |trace: &str| trace.len() == 32 && trace.bytes().all(|byte| byte.is_ascii_hexdigit());
    for line in &records {
        assert!(line["trace"].as_str().is_some_and(is_trace), "{line}");
    }
    for decision in on_record.as_array().expect("decisions").iter().filter(|decision| !decision["trace"].is_null()) {
        let is_of_decision = |line: &&&Value| line["trace"] == decision["trace"] && line["companion"] == decision["companion"];
        assert!(records.iter().any(|line| is_of_decision(&line)), "{decision}:\n{log}");
    }
}

/// A server whose models and collector are `outside`.
fn premises(outside: &Outside) -> Premises {
    let aria = "name = \"Aria\"\naliases = [\"xyloalias\"]\nchattiness = \"xylochattiness\"\npersona = \"xylopersona\"\n";
    let base = format!("{}/v1", outside.url);
    Premises::new()
        .with_companion("aria", aria)
        .with("models.side.base_url", &base)
        .with("models.side.model", "side-model")
        .with("models.main.base_url", &base)
        .with("models.main.model", "main-model")
        .with("prompt.summary_after", "1")
        .with("telemetry.log", "info,tertulia=trace")
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &outside.url)
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", &format!("x-token={SECRET}"))
        .with_variable("OTEL_EXPORTER_OTLP_TIMEOUT", "2000")
}

/// Sends two messages: the model refuses the first question with an error that quotes it, and answers the second. Returns the server's log.
async fn hold_a_talk(premises: &Premises) -> String {
    let server = premises.start().await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "xylosender", "xyloalias, xylomessage?").await;
    watch.event("error").await;
    server.say("lobby", "xylosender", "Aria, xylomessage!").await;
    watch.event("statement").await;
    server.signal("TERM").await;
    server.ended().await.1
}

/// A stand-in for the collector and for two models.
struct Outside {
    url: String,
    exports: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
}

impl Outside {
    async fn start() -> Self {
        let exports = Arc::<Mutex<Vec<_>>>::default();
        let received = exports.clone();
        let take = async move |headers: HeaderMap, body: Bytes| received.lock().expect("not poisoned").push((headers, body));
        let has_refused = Arc::new(Mutex::new(false));
        let answer = async move |Json(request): Json<Value>| {
            let is_first = !std::mem::replace(&mut *has_refused.lock().expect("not poisoned"), true);
            if is_first {
                let error = format!("I do not like {}", request["messages"]);
                return (StatusCode::FORBIDDEN, Json(json!({ "error": { "message": error } })));
            }
            let text = if request["model"] == "main-model" { "xylostatement" } else { "xylothought\nYES" };
            (StatusCode::OK, Json(json!({ "choices": [{ "message": { "content": text }, "finish_reason": "stop" }] })))
        };
        let router = Router::new().route("/v1/traces", post(take)).route("/v1/chat/completions", post(answer));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        tokio::spawn(axum::serve(listener, router).into_future());
        Self { url, exports }
    }

    /// The exported spans in their debug format.
    fn spans(&self) -> String {
        let exports = self.exports.lock().expect("not poisoned");
        let decoded = exports.iter().map(|(_, body)| ExportTraceServiceRequest::decode(body.clone()).expect("it is OTLP"));
        decoded.map(|request| format!("{request:?}\n")).collect()
    }

    fn headers(&self) -> Vec<HeaderMap> {
        self.exports.lock().expect("not poisoned").iter().map(|(headers, _)| headers.clone()).collect()
    }
}
