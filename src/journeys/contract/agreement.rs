//! Metrics and spans of one system agree.

use std::collections::BTreeMap;

use opentelemetry::trace::Status;
use opentelemetry_sdk::trace::SpanData;

use crate::telemetry::fake::{SpanMemory, attribute};

/// Counts by labels, in the order of the requested labels.
type Counts = BTreeMap<Vec<String>, u64>;

/// A series, the spans that it counts, and the attributes that are its labels.
type Pair = (&'static str, fn(&SpanData) -> bool, &'static [&'static str]);

const PAIRS: &[Pair] = &[
    ("tertulia_decisions_total", is_decision, &["decision.trigger", "decision", "decision.reason"]),
    ("tertulia_evaluations_unanswered_total", is_unanswered, &["decision.trigger", "error.type"]),
    ("tertulia_turns_total", |span| span.name == "conversation.turn", &["decision.trigger", "turn.outcome"]),
    ("tertulia_turn_duration_seconds_count", |span| span.name == "conversation.turn", &["decision.trigger", "turn.outcome"]),
    ("tertulia_rounds_total", |span| span.name == "decision.select_speaker", &[]),
    ("tertulia_round_duration_seconds_count", |span| span.name == "decision.select_speaker", &[]),
    (
        "tertulia_round_wishes_total",
        |span| is_decision(span) && is(span, "decision", "YES") && has(span, "decision.floor"),
        &["decision.floor"],
    ),
    ("tertulia_closing_transitions_total", |span| span.name == "decision.closing", &["closing.to", "closing.cause"]),
    ("tertulia_repetition_judgements_total", |span| span.name == "decision.repetition", &["repetition.judge"]),
    ("tertulia_repetition_score_ratio_count", |span| span.name == "decision.repetition", &[]),
    (
        "tertulia_statements_failed_total",
        |span| span.name.starts_with("invoke_agent ") && has(span, "error.type"),
        &["error.type"],
    ),
    ("tertulia_voice_interruptions_total", |span| span.name == "voice.interruption", &["interruption.verdict"]),
    ("tertulia_platform_sends_total", |span| span.name.starts_with("send "), &[]),
    (
        "gen_ai_client_inference_duration_seconds_count",
        |span| span.name.starts_with("chat "),
        &["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "model.role", "error.type"],
    ),
    ("tertulia_actor_restarts_total", |span| span.name == "actor.restart", &["actor.sort"]),
    ("tertulia_supervisor_escalations_total", |span| span.name == "supervisor.escalate", &["actor.sort"]),
];

fn is_decision(span: &SpanData) -> bool {
    span.name == "decision.gate" && has(span, "decision")
}

fn is_unanswered(span: &SpanData) -> bool {
    span.name == "decision.gate" && !has(span, "decision")
}

fn has(span: &SpanData, name: &str) -> bool {
    attribute(span, name).is_some()
}

fn is(span: &SpanData, name: &str, value: &str) -> bool {
    attribute(span, name).as_deref() == Some(value)
}

/// Panics if the metrics of a system differ from its spans.
pub(super) fn hold(system: &SpanMemory) {
    let (spans, exposition) = (system.spans(), system.metrics().exposition().unwrap());
    for (series, is_counted, labels) in PAIRS {
        let mut by_spans = Counts::new();
        for span in spans.iter().filter(|span| is_counted(span)) {
            *by_spans.entry(labels.iter().map(|label| attribute(span, label).unwrap_or_default()).collect()).or_default() += 1;
        }
        assert_eq!(counted(&exposition, series, labels), by_spans, "{series} by {labels:?}: counted, and by spans");
    }
}

/// The attributes of every decision; in rounds the vote follows.
const OF_DECISIONS: [&str; 8] = [
    "decision.trigger",
    "decision.message_count",
    "decision.check_count",
    "decision.threshold",
    "channel.id",
    "guild.id",
    "companion.id",
    "turn.id",
];
const OF_VOTES: [&str; 5] = ["decision.state", "decision.importance", "decision.selected", "decision.closing", "decision.floor"];

/// Panics if a span lacks a required attribute, or has failed without a reason.
pub(super) fn complete(spans: &[SpanData]) {
    for span in spans {
        let has_failed = matches!(span.status, Status::Error { .. });
        let is_operation = matches!(&*span.name, "actor.restart" | "supervisor.escalate");
        assert!(is_operation || has_failed == has(span, "error.type"), "{span:?}");
        if span.name == "decision.gate" {
            assert!(OF_DECISIONS.iter().all(|name| has(span, name)), "{span:?}");
            assert_eq!(has(span, "decision"), has(span, "decision.reason"), "{span:?}");
            assert_eq!(has(span, "decision"), !has_failed, "{span:?}");
            let of_vote = OF_VOTES.iter().filter(|name| has(span, name)).count();
            assert!([0, OF_VOTES.len()].contains(&of_vote), "{span:?}");
        }
    }
}

fn counted(exposition: &str, series: &str, labels: &[&str]) -> Counts {
    let mut counts = Counts::new();
    for (of, value) in exposition.lines().filter_map(|line| line.strip_prefix(series)?.rsplit_once(' ')) {
        let value: u64 = value.parse().expect("a count");
        let has_label = |label: &&str| {
            let mark = format!("{}=\"", label.replace('.', "_"));
            let pair = of.trim_matches(['{', '}']).split(',').find_map(|pair| pair.strip_prefix(mark.as_str()));
            pair.map_or(String::new(), |value| value.trim_end_matches('"').to_owned())
        };
        if value > 0 {
            *counts.entry(labels.iter().map(has_label).collect()).or_default() += value;
        }
    }
    counts
}
