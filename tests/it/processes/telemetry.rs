//! Exported spans and log lines: they are complete, and contain no message content unless that is enabled.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::harness::model::{Answer, Model};
use crate::harness::{Collector, Premises};

/// Unique words in a message, its sender, a companion's settings, and a model's answers.
const PLANTED: [&str; 7] =
    ["xylomessage", "xylosender", "xylopersona", "xylochattiness", "xyloalias", "xylothought", "xylostatement"];

const SECRET: &str = "xylosecret";

#[tokio::test]
async fn message_content_is_neither_in_spans_nor_in_the_log_and_the_collectors_headers_are_not_logged() {
    let collector = Collector::start().await;
    let endpoint = collector.url.replacen("http://", &format!("http://ana:{SECRET}@"), 1);
    let premises = premises().await.with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);

    let log = hold_a_talk(&premises).await;

    let spans = collector.spans();
    for name in
        ["history.append", "decision.gate", "chat side", "invoke_agent Aria", "chat main", "send console", "conversation.turn"]
    {
        assert!(spans.contains(&format!("name: \"{name}\"")), "no span {name}: {spans}");
    }
    for line in ["interjection", "evaluation without an answer", "a model gives no answer", "statement"] {
        assert!(log.contains(line), "no line {line:?}:\n{log}");
    }
    for word in PLANTED {
        assert!(!spans.contains(word), "{word} is in a span: {spans}");
        assert!(!log.contains(word), "{word} is in the log:\n{log}");
    }
    assert!(collector.headers().iter().all(|headers| headers["x-token"] == SECRET) && !collector.headers().is_empty());
    assert!(log.contains("spans are exported") && log.contains(&collector.url), "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

/// Here the settings name the collector.
#[tokio::test]
async fn with_capture_content_message_content_is_in_spans_but_not_in_the_log() {
    let collector = Collector::start().await;
    let premises = premises().await.with("telemetry.otlp_endpoint", &collector.url);

    let log = hold_a_talk(&premises.with("telemetry.capture_content", "true")).await;

    let spans = collector.spans();
    for word in PLANTED {
        assert!(spans.contains(word), "{word} is in no span: {spans}");
        assert!(!log.contains(word), "{word} is in the log:\n{log}");
    }
}

#[tokio::test]
async fn every_log_line_of_a_decision_names_the_recorded_trace() {
    let vote = r#"{"reason": "So.", "decision": "YES", "importance": 5, "selected": false, "closing": "pre-closing"}"#;
    let answer = move |request: &Value| Answer::from(if request["model"] == "main" { "I like them." } else { vote });
    let model = Model::start(answer).await;
    let premises =
        model.serving(Premises::shipped()).with("telemetry.log_format", "json").with("turn_taking.turn_delay_secs", "0");
    let server = premises.start().await;
    let mut watch = server.watch("lobby", None).await;

    server.say("lobby", "Ana", "Aria, Bruno, Cleo: what do you think of boats?").await;
    let on_record = loop {
        let decision = watch.event("decision").await;
        if decision["reason"] == "loop_guard" {
            break server.get("/api/decisions?room=lobby").await["decisions"].clone();
        }
    };
    let log = server.stop().await;

    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_telemetry = |line: &&Value| line["target"].as_str().is_some_and(|target| target.starts_with("tertulia::telemetry::"));
    let records: Vec<_> = lines.iter().filter(is_telemetry).filter(|line| !line["channel"].is_null()).collect();
    for kind in ["interjection", "round", "closing", "statement"] {
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

/// A server whose model refuses the first question with an error that quotes it.
async fn premises() -> Premises {
    let has_refused = AtomicBool::new(false);
    let answer = move |request: &Value| match (has_refused.swap(true, Ordering::SeqCst), request["model"] == "main") {
        (false, _) => Answer::Refused(403, format!("I do not like {}", request["messages"])),
        (true, true) => "xylostatement".into(),
        (true, false) => "xylothought\nYES".into(),
    };
    let aria = "name = \"Aria\"\naliases = [\"xyloalias\"]\nchattiness = \"xylochattiness\"\npersona = \"xylopersona\"\n";
    Model::start(answer)
        .await
        .serving(Premises::new())
        .with_companion("aria", aria)
        .with("prompt.summary_after", "1")
        .with("telemetry.log", "info,tertulia=trace")
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
    server.stop().await
}
