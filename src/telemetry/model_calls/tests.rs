use std::sync::Arc;

use super::super::fake::{SpanMemory, attribute};
use super::super::metrics::Metrics;
use super::*;
use crate::ports::language_model::{Asker, Message};

#[test]
fn the_span_of_a_call_has_what_the_endpoint_says_about_its_answer() {
    let (memory, (request, identity)) = (SpanMemory::new(), world());

    record(&memory.recorder(false), &facts(&request, &identity, Ok(&answer())));

    let span = &memory.named("chat gpt-9-mini")[0];
    let response = ["model", "id", "finish_reasons"].map(|name| attribute(span, &format!("gen_ai.response.{name}")));
    assert_eq!(response, ["gpt-9-mini-2026", "r-1", "[\"stop\"]"].map(|value| Some(value.to_owned())));
}

#[test]
fn texts_are_in_the_span_only_if_content_is_captured() {
    let (request, identity) = world();
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
    let (metrics, (request, identity)) = (Metrics::local(), world());
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
    let (metrics, (_, identity)) = (Metrics::local(), world());
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

fn world() -> (Request, Identity) {
    let request = Request {
        companion: Some(Asker { id: "aria".into(), name: "Aria".into() }),
        messages: Message::prompt("secret instructions".to_owned(), "a secret question".to_owned()),
        ..Request::new(ModelRole::Side, "home".into(), 64)
    };
    let identity = Identity { provider: "openai".into(), model: "gpt-9-mini".into(), endpoint: Arc::from("https://api.example") };
    (request, identity)
}

fn answer() -> Answer {
    Answer {
        model: Some("gpt-9-mini-2026".to_owned()),
        response_id: Some("r-1".to_owned()),
        finish_reason: Some("stop".to_owned()),
        ..Answer::of_text("a secret answer", Usage { input_tokens: 120, output_tokens: 7 })
    }
}
