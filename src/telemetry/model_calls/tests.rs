use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::{SpanId, Status};

use super::super::memory::{SpanMemory, attribute};
use super::super::metrics::Metrics;
use super::super::trace::TurnTrace;
use super::*;
use crate::ports::language_model::{Asker, Message};

#[test]
fn a_call_is_a_client_span_named_for_its_model() {
    let memory = SpanMemory::new();
    let (request, identity, channel) = world();
    let trace = TurnTrace::new(42);
    let answer = answer();

    let facts = CallFacts { under: Some(trace.root()), channel: Some(&channel), ..facts(&request, &identity, Ok(&answer)) };
    record(&memory.recorder(false), &facts);

    let [span] = &memory.named("chat gpt-9-mini")[..] else { panic!("not one span") };
    assert_eq!(span.span_kind, SpanKind::Client);
    assert_eq!(u64::from_be_bytes(span.parent_span_id.to_bytes()), trace.root().span_id());
    let expected = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-9-mini"),
        ("gen_ai.request.max_tokens", "64"),
        ("gen_ai.response.model", "gpt-9-mini-2026"),
        ("gen_ai.response.id", "r-1"),
        ("gen_ai.response.finish_reasons", "[\"stop\"]"),
        ("gen_ai.usage.input_tokens", "120"),
        ("gen_ai.usage.output_tokens", "7"),
        ("gen_ai.conversation.id", "console:lobby"),
        ("gen_ai.agent.id", "aria"),
        ("gen_ai.agent.name", "Aria"),
        ("model.role", "side"),
    ];
    for (name, value) in expected {
        assert_eq!(attribute(span, name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn a_call_without_an_answer_is_an_error_with_its_code() {
    let memory = SpanMemory::new();
    let (request, identity, _) = world();
    let error = NoAnswer::TimedOut { after: Duration::from_secs(8) };

    record(&memory.recorder(false), &facts(&request, &identity, Err(&error)));

    let span = &memory.spans()[0];
    assert_eq!(span.status, Status::error("timeout"));
    assert_eq!(attribute(span, "error.type").as_deref(), Some("timeout"));
    assert_eq!(attribute(span, "gen_ai.usage.input_tokens"), None);
}

#[test]
fn a_call_outside_a_turn_is_a_separate_trace() {
    let memory = SpanMemory::new();
    let (request, identity, _) = world();

    record(&memory.recorder(false), &facts(&request, &identity, Ok(&answer())));

    assert_eq!(memory.spans()[0].parent_span_id, SpanId::INVALID);
}

#[test]
fn texts_are_in_the_span_only_if_content_is_captured() {
    let (request, identity, _) = world();
    let (discreet, open) = (SpanMemory::new(), SpanMemory::new());

    record(&discreet.recorder(false), &facts(&request, &identity, Ok(&answer())));
    record(&open.recorder(true), &facts(&request, &identity, Ok(&answer())));

    assert!(!format!("{:?}", discreet.spans()).contains("secret"));
    let input = attribute(&open.spans()[0], "gen_ai.input.messages").expect("it is captured");
    let output = attribute(&open.spans()[0], "gen_ai.output.messages").expect("it is captured");
    assert!(input.contains(r#""content":"a secret question","type":"text""#), "{input}");
    assert!(output.contains(r#""role":"assistant""#) && output.contains("a secret answer"), "{output}");
}

#[test]
fn a_question_that_never_left_the_queue_is_not_measured_as_a_call() {
    let (metrics, (request, identity, _)) = (Metrics::local(), world());
    let recorder = Recorder::new(None, false, metrics.instruments());
    let error = NoAnswer::Overloaded { endpoint: "here".into(), detail: "too many wait".to_owned(), retry_after: None };
    let calls = || metrics.total("gen_ai_client_operation_duration_seconds_count", &[]);

    record(&recorder, &CallFacts { attempts: 0, ..facts(&request, &identity, Err(&error)) });
    let shed = calls();
    record(&recorder, &facts(&request, &identity, Err(&error)));

    assert_eq!((shed, calls()), (0.0, 1.0));
}

#[test]
fn the_cost_of_calls_is_summed_by_model_role_and_currency() {
    let (metrics, (_, identity, _)) = (Metrics::local(), world());
    let recorder = Recorder::new(None, false, metrics.instruments());
    let (usage, price) = (Usage { input_tokens: 1_000_000, output_tokens: 500_000 }, Price::per_million(0.5, 1.5, "EUR"));

    record_cost(&recorder, &identity, ModelRole::Side, &usage, &price);
    record_cost(&recorder, &identity, ModelRole::Side, &usage, &price);
    record_cost(&recorder, &identity, ModelRole::Main, &Usage::default(), &price);

    let text = metrics.exposition().expect("readable");
    let mut costs: Vec<&str> = text.lines().filter(|line| line.starts_with("tertulia_model_cost_total{")).collect();
    costs.sort_unstable();
    let line = |role, cost| {
        let model = &identity.model;
        format!(
            "tertulia_model_cost_total{{cost_currency=\"EUR\",gen_ai_request_model=\"{model}\",model_role=\"{role}\"}} {cost}"
        )
    };
    assert_eq!(costs, [line("main", "0"), line("side", "2.5")]);
}

fn facts<'a>(request: &'a Request, identity: &'a Identity, outcome: Result<&'a Answer, &'a NoAnswer>) -> CallFacts<'a> {
    CallFacts {
        under: None,
        channel: None,
        request,
        identity,
        outcome,
        attempts: 1,
        waited_ms: 20,
        started: Moment::from_micros(1),
        ended: Moment::from_micros(2),
    }
}

fn world() -> (Request, Identity, ChannelId) {
    let request = Request {
        companion: Some(Asker { id: "aria".into(), name: "Aria".into() }),
        messages: Message::prompt("secret instructions".to_owned(), "a secret question".to_owned()),
        ..Request::new(ModelRole::Side, "home".into(), 64)
    };
    let identity = Identity { provider: "openai".into(), model: "gpt-9-mini".into(), endpoint: Arc::from("https://api.example") };
    (request, identity, "console:lobby".into())
}

fn answer() -> Answer {
    Answer {
        model: Some("gpt-9-mini-2026".to_owned()),
        response_id: Some("r-1".to_owned()),
        finish_reason: Some("stop".to_owned()),
        ..Answer::of_text("a secret answer", Usage { input_tokens: 120, output_tokens: 7 })
    }
}
