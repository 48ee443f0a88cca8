//! Evaluates every query in a real Prometheus that scrapes a real server, after an evening that produces every kind of metric.

use serde_json::Value;

use super::boards;
use super::evening::Evening;
use super::prometheus::Prometheus;
use super::structure::compared;

/// What the evening must contain, with a query for how often it happened.
const REQUIRED: [(&str, &str); 17] = [
    ("addresses", r#"tertulia_decisions_total{decision="YES", decision_trigger="direct_address"}"#),
    ("turns", r#"tertulia_evaluations_total{decision_trigger="turn"}"#),
    ("interjections", r#"tertulia_evaluations_total{decision_trigger="interjection"}"#),
    ("lulls", r#"tertulia_evaluations_total{decision_trigger="lull"}"#),
    ("skipped questions", r#"tertulia_decisions_total{decision_reason="other_addressed"}"#),
    ("unanswered questions", r#"tertulia_evaluations_unanswered_total{error_type="key_rejected"}"#),
    ("ties", "tertulia_round_ties_total"),
    ("lost floors", r#"tertulia_round_wishes_total{decision_floor="lost"}"#),
    ("talks ended by the loop guard", "tertulia_loop_guard_trips_total"),
    ("closing stages", r#"tertulia_closing_transitions_total{closing_cause="state"}"#),
    ("judgements of repetition", "tertulia_repetition_judgements_total"),
    ("statements that were never made", r#"tertulia_statements_failed_total"#),
    ("calls of tools", r#"tertulia_tool_calls_total{tool_outcome="answered"}"#),
    ("sound from microphones", r#"tertulia_voice_packets_total{packet_fate="received"}"#),
    ("spoken answers", "tertulia_voice_answer_time_seconds_count"),
    ("quieter replies", "tertulia_voice_duck_delay_seconds_count"),
    ("stopped replies", r#"tertulia_voice_interruptions_total{interruption_verdict="stop_pressed"}"#),
];

/// `.ci/dashboards` runs it.
#[tokio::test]
#[ignore = "needs Prometheus (Debian's package), and takes a quarter of a minute"]
async fn every_query_of_dashboards_and_alerts_finds_series_of_a_running_server() {
    let prometheus = Prometheus::start().await;
    let evening = Evening::prepare().await;
    let server = evening.open().await;
    prometheus.scrape_from(&server);
    prometheus.scrapes(2).await;
    let server = evening.interrupt(server).await;
    prometheus.scrape_from(&server);
    // Rates need an earlier sample: a zero of each counter, and a first run for everything else.
    prometheus.scrapes(1).await;
    evening.run(&server).await;
    prometheus.scrapes(2).await;
    let watching = evening.run(&server).await;
    prometheus.scrapes(3).await;

    let mut missing = Vec::new();
    for (name, expression) in REQUIRED {
        let found = prometheus.find(&format!("sum({expression})")).await.expect("a query");
        if found.first().is_none_or(|sample| sample.value < 1.0) {
            missing.push(format!("the evening had no {name}"));
        }
    }
    let mut evaluated = 0;
    for (place, expression) in queries(&prometheus).await {
        evaluated += 1;
        match prometheus.find(&expression).await {
            Err(error) => missing.push(format!("{place}: {expression}: {error}")),
            Ok(found) if found.is_empty() => missing.push(format!("{place}: {expression}: no series")),
            Ok(found) if found.iter().all(|sample| sample.value.is_nan()) => {
                missing.push(format!("{place}: {expression}: no number among {}", found[0].labels));
            }
            Ok(_) => {}
        }
    }
    drop(watching);
    server.stop().await;

    println!("{evaluated} queries asked, {} without series", missing.len());
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// All queries, with the place of each: panels with their variables filled in, variables, and alerts without their comparison.
async fn queries(prometheus: &Prometheus) -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for (file, board) in boards() {
        for variable in board.templating.list.iter().filter(|variable| variable.kind == "query") {
            queries.push((format!("{file}: variable {}", variable.name), filled_in(&values_of(&variable.query))));
        }
        for panel in &board.panels {
            let place = format!("{file}: {}", panel.title);
            queries.extend(panel.targets.iter().map(|target| (place.clone(), filled_in(&target.expr))));
        }
    }
    let rules = prometheus.rules().await;
    assert!(rules.len() >= 20, "{rules:?}");
    for rule in rules {
        let (name, query) = (rule["name"].as_str().expect("a name"), rule["query"].as_str().expect("an expression"));
        assert_eq!(rule["health"], "ok", "{name}: {}", rule["lastError"]);
        let anchor = format!("docs/alerts.md#{}", name.to_lowercase());
        assert_eq!(rule["annotations"]["runbook_url"], anchor, "{name}");
        for (part, field) in [("annotations", "summary"), ("annotations", "description"), ("labels", "severity")] {
            assert!(rule[part][field].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {field}");
        }
        // The text is Prometheus' own form of the expression. What else it may be but one comparison leaves no series.
        let series = compared(query).unwrap_or_else(|| panic!("{name}: {query}"));
        queries.push((format!("alert {name}"), series.to_owned()));
    }
    queries
}

/// `label_values(series, label)` as a query.
fn values_of(query: &Value) -> String {
    let text = query["query"].as_str().expect("a query");
    let inner = text.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).expect("values of a label");
    let (series, label) = inner.rsplit_once(", ").expect("a label");
    format!("group by ({label}) ({series})")
}

/// Fills in the variables: every server, and time ranges that cover the whole evening.
fn filled_in(expression: &str) -> String {
    let values = [("$__rate_interval", "10m"), ("$__range", "10m"), ("$job", ".*"), ("$instance", ".*")];
    let filled = values.iter().fold(expression.to_owned(), |text, (variable, value)| text.replace(variable, value));
    assert!(!filled.contains('$'), "{filled}: a variable is left");
    filled
}
