use std::sync::Arc;
use std::time::Duration;

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
fn the_parts_of_the_tokens_and_the_time_to_the_first_chunk_are_in_the_span_if_they_are_known() {
    let (memory, (request, identity)) = (SpanMemory::new(), world());
    let names = [
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_write.input_tokens",
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.request.stream",
        "gen_ai.response.time_to_first_chunk",
    ];

    record(&memory.recorder(false), &facts(&request, &identity, Ok(&answer())));
    record(&memory.recorder(false), &facts(&request, &identity, Ok(&cached())));

    let spans = memory.named("chat gpt-9-mini");
    let [plain, cached] = [&spans[0], &spans[1]].map(|span| names.map(|name| attribute(span, name).unwrap_or_default()));
    assert_eq!(plain, ["120", "", "", "", "7", "", "", ""]);
    assert_eq!(cached, ["120", "96", "16", "16", "7", "0", "true", "0.25"]);
}

#[test]
fn the_share_of_cached_tokens_and_the_time_to_the_first_chunk_are_measured() {
    let (metrics, (request, identity)) = (Metrics::local(), world());
    let recorder = Recorder::new(None, false, metrics.instruments());
    let total = |name: &str| metrics.total(&format!("gen_ai_client_{name}"), &[("model_role", "side")]);
    let series =
        |name: &str| metrics.exposition().unwrap().lines().any(|line| line.starts_with(&format!("gen_ai_client_{name}{{")));

    record(&recorder, &facts(&request, &identity, Ok(&answer())));
    let is_known_before = series("inference_usage_cache_read_input_tokens_total");
    record(&recorder, &facts(&request, &identity, Ok(&cached())));

    assert!(!is_known_before, "nobody reported it");
    assert!(series("inference_usage_reasoning_output_tokens_total"), "0 was reported");
    let usage = ["input", "cache_read_input", "cache_write_input", "output", "reasoning_output"]
        .map(|kind| total(&format!("inference_usage_{kind}_tokens_total")));
    assert_eq!(usage, [240.0, 96.0, 16.0, 14.0, 0.0]);
    assert_eq!(metrics.total("gen_ai_client_inference_usage_input_tokens_total", &[("gen_ai_token_modality", "text")]), 240.0);
    let first_chunk = ["count", "sum"].map(|of| total(&format!("inference_time_to_first_chunk_seconds_{of}")));
    assert_eq!(first_chunk, [1.0, 0.25]);
    // The names of version 1.41 are still written.
    for name in ["operation_duration_seconds_count", "inference_duration_seconds_count"] {
        assert_eq!(total(name), 2.0, "{name}");
    }
    let by_call = ["inference_operation_input_tokens_sum", "inference_operation_output_tokens_sum"].map(total);
    let before = ["input", "output"].map(|kind| metrics.total("gen_ai_client_token_usage_sum", &[("gen_ai_token_type", kind)]));
    assert_eq!((by_call, before), ([240.0, 14.0], [240.0, 14.0]));
}

#[test]
fn cached_tokens_cost_less_where_they_have_a_price() {
    let (metrics, (_, identity)) = (Metrics::local(), world());
    let recorder = Recorder::new(None, false, metrics.instruments());
    let usage = TokenUsage { cache_read_tokens: Some(900_000), ..TokenUsage::new(1_000_000, 0) };
    let price = Price::per_million(1.0, 2.0, "EUR");

    record_cost(&recorder, &identity, ModelRole::Side, &usage, &price);
    record_cost(&recorder, &identity, ModelRole::Main, &usage, &price.with_cache(Some(0.1), None));

    let cost = |role| metrics.total("tertulia_model_cost_total", &[("model_role", role)]);
    assert_eq!([cost("side"), cost("main")], [1.0, 0.19]);
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
    let (usage, price) = (TokenUsage::new(1_000_000, 500_000), Price::per_million(0.5, 1.5, "EUR"));

    record_cost(&recorder, &identity, ModelRole::Side, &usage, &price);
    record_cost(&recorder, &identity, ModelRole::Side, &usage, &price);
    record_cost(&recorder, &identity, ModelRole::Main, &TokenUsage::default(), &price);

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

/// A streamed answer whose endpoint reports all parts of its tokens.
fn cached() -> Answer {
    let usage = TokenUsage {
        cache_read_tokens: Some(96),
        cache_write_tokens: Some(16),
        reasoning_tokens: Some(0),
        ..TokenUsage::new(120, 7)
    };
    Answer { usage, time_to_first_chunk: Some(Duration::from_millis(250)), ..answer() }
}

fn answer() -> Answer {
    Answer {
        model: Some("gpt-9-mini-2026".to_owned()),
        response_id: Some("r-1".to_owned()),
        finish_reason: Some("stop".to_owned()),
        ..Answer::of_text("a secret answer", TokenUsage::new(120, 7))
    }
}
