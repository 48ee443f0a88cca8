//! `tertulia usage`, with and without a running server.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::model::{Answer, Model};
use crate::harness::{Collector, Premises, Ran, serve_answer};

#[tokio::test]
async fn costs_are_the_same_without_a_server_after_the_deletion_of_their_room_and_at_other_prices() {
    let mut premises = priced(Premises::new(), &model().await);
    let server = premises.start().await;
    server.exchange("lobby", "hey aria, how was your day?").await;
    let result = server.get("/api/usage").await;
    let span = ["--from", "2020-01-01", "--to", result["to"].as_str().expect("a time")];

    let online = usage(&premises, &[&span[..], &["--json"]].concat()).await;
    let online_table = usage(&premises, &[&span[..], &["--by", "companion"]].concat()).await;
    server.done(Method::DELETE, "/api/rooms/lobby", None).await;
    server.stop().await;
    premises.set("models.main.input_price", "999");
    let offline = usage(&premises, &[&span[..], &["--json"]].concat()).await;
    let offline_table = usage(&premises, &[&span[..], &["--by", "companion"]].concat()).await;
    let of_guild = usage(&premises, &["--last", "1d", "--guild", "home", "--json"]).await;

    assert_eq!((online.code, offline.code), (Some(0), Some(0)), "{online:?} {offline:?}");
    assert_eq!(online.object(), offline.object());
    assert_eq!(online_table.stdout, offline_table.stdout);
    let home = &online.object()["guilds"][0];
    assert_eq!((&home["guild"], &home["statements"], &home["addresses"]), (&json!("home"), &json!(1), &json!(1)));
    // The first call failed and was retried.
    assert_eq!((&home["calls"], &home["failed_calls"], &home["unpriced_calls"]), (&json!(3), &json!(1), &json!(0)));
    let by: Vec<_> = home["by"].as_array().expect("a list").iter().map(|by| (by["role"].clone(), by["cost"].clone())).collect();
    assert_eq!(by, [(json!("main"), json!(0.0175)), (json!("side"), json!(0.0012))]);
    assert_eq!((&online.object()["total"]["cost"], &of_guild.object()["total"]["cost"]), (&json!(0.0187), &json!(0.0187)));
    assert_eq!(result["guilds"][0]["by"], home["by"]);
    assert_eq!(home["caps"], json!({ "tokens": { "used": 2200, "limit": null }, "statements": { "used": 1, "limit": 5000 } }));
    let aria = online_table.stdout.lines().find(|line| line.contains("aria")).expect("a line for her");
    assert_eq!(aria.split_whitespace().collect::<Vec<_>>(), ["home", "aria", "3", "1", "2,000", "–", "200", "0.0187"]);
}

#[tokio::test]
async fn cached_tokens_cost_their_own_price_and_their_share_is_in_usage_metrics_and_spans() {
    let collector = Collector::start().await;
    let model = Model::start(|_: &Value| "Me.\nYES").await;
    model.takes_tokens(1000, 100);
    let premises = priced(Premises::new(), &model)
        .with("models.side.cache_read_price", "0.1")
        .with("models.main.cache_read_price", "1.5")
        .with("telemetry.otlp_endpoint", &collector.url);
    let server = premises.start().await;
    let (mut lobby, _) = server.exchange("lobby", "hey aria, how was your day?").await;
    model.streams_with_cached(800);
    server.say("lobby", "Ana", "aria, and tomorrow?").await;
    lobby.event("statement").await;

    let result = server.get("/api/usage").await;
    let table = usage(&premises, &["--by", "role"]).await;
    let metrics = server.get("/metrics").await.as_str().expect("text").to_owned();
    server.stop().await;

    let home = &result["guilds"][0];
    let by: Vec<_> = home["by"].as_array().expect("a list").iter().map(|by| (by["role"].clone(), by["cost"].clone())).collect();
    assert_eq!(by, [(json!("main"), json!(0.0242)), (json!("side"), json!(0.00168))]);
    let total = &result["total"];
    let tokens = ["input_tokens", "cache_read_tokens", "output_tokens", "reasoning_tokens"].map(|count| total[count].clone());
    assert_eq!(tokens, [4000, 1600, 400, 2].map(|count| json!(count)));
    assert!(total["cache_write_tokens"].is_null(), "nobody reports it: {total}");
    assert_eq!(home["caps"]["tokens"]["used"], 4400, "cached tokens count in full");
    let total = table.stdout.lines().find(|line| line.starts_with("total")).expect("a total");
    assert_eq!(total.split_whitespace().collect::<Vec<_>>(), ["total", "4", "0", "4,000", "40", "%", "400", "0.0259"]);
    for (name, expected) in [
        ("gen_ai_client_inference_usage_cache_read_input_tokens_total", 800.0),
        ("gen_ai_client_inference_usage_input_tokens_total", 2000.0),
        ("gen_ai_client_inference_time_to_first_chunk_seconds_count", 1.0),
        ("gen_ai_client_inference_duration_seconds_count", 2.0),
        ("gen_ai_client_operation_duration_seconds_count", 2.0),
    ] {
        let series: Vec<_> =
            metrics.lines().filter(|line| line.starts_with(name) && line.contains("model_role=\"main\"")).collect();
        let value = series.first().and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        assert_eq!((series.len(), value), (1, Some(expected)), "{name}: {series:?}");
    }
    assert!(metrics.contains("gen_ai_invoke_agent_duration_seconds_count"), "{metrics}");
    let spans = collector.spans();
    for name in ["gen_ai.usage.cache_read.input_tokens", "gen_ai.response.time_to_first_chunk"] {
        assert_eq!(spans.matches(&format!("\"{name}\"")).count(), 2, "{name}: {spans}");
    }
}

#[tokio::test]
async fn figures_are_the_same_without_a_server_and_after_the_deletion_of_their_room() {
    let premises = Premises::new();
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, i want to die").await;
    lobby.event("help").await;

    let online = usage(&premises, &["--safety", "--json"]).await;
    server.done(Method::DELETE, "/api/rooms/lobby", None).await;
    server.stop().await;
    let offline = usage(&premises, &["--safety", "--json"]).await;
    let table = usage(&premises, &["--safety", "--last", "1d"]).await;

    assert_eq!((online.object(), &online.object()["total"]["helped"]), (offline.object(), &json!(1)), "{online:?}");
    let total: Vec<_> =
        table.stdout.lines().find(|line| line.starts_with("total")).expect("a total").split_whitespace().collect();
    assert_eq!(total, ["total", "0", "0", "0", "1", "0"]);
}

#[tokio::test]
async fn receptions_are_the_same_without_a_server_and_leave_with_their_room() {
    let premises = priced(Premises::new(), &model().await);
    let server = premises.start().await;
    server.exchange("lobby", "hey aria, how was your day?").await;
    server.say("lobby", "Ana", "Good to hear.").await;

    let online = usage(&premises, &["--received", "--json"]).await;
    let table = usage(&premises, &["--received=days", "--last", "7d"]).await;
    server.stop().await;
    let offline = usage(&premises, &["--received", "--json"]).await;
    let server = premises.start().await;
    server.done(Method::DELETE, "/api/rooms/lobby", None).await;
    let deleted = usage(&premises, &["--received", "--json"]).await;
    server.stop().await;

    let by = &online.object()["guilds"][0]["by"];
    assert_eq!((&by[0]["model"], &by[0]["received"]), (&json!("main"), &json!({ "answered": 1 })), "{online:?}");
    assert_eq!(online.object()["guilds"], offline.object()["guilds"]);
    let aria = table.stdout.lines().find(|line| line.contains("aria")).expect("a line for her");
    assert_eq!(aria.split_whitespace().skip(1).collect::<Vec<_>>(), ["home", "aria", "main", "1", "100%"]);
    assert_eq!(deleted.object()["guilds"], json!([]));
}

#[tokio::test]
async fn a_companion_that_names_a_model_is_charged_at_its_price() {
    let premises = priced(Premises::new(), &model().await)
        .with_companion("aria", "[model]\nmain = \"large\"\n")
        .with("models.large.base_url", &model().await.url)
        .with("models.large.model", "large-model")
        .with("models.large.input_price", "100")
        .with("models.large.output_price", "0");
    let server = premises.start().await;
    server.exchange("lobby", "hey aria, how was your day?").await;

    let result = server.get("/api/usage").await;

    let by: Vec<_> = result["guilds"][0]["by"].as_array().expect("a list").iter().collect();
    let by: Vec<_> = by.into_iter().map(|by| (by["role"].clone(), by["model"].clone(), by["cost"].clone())).collect();
    let (main, side) = ((json!("main"), json!("large-model"), json!(0.1)), (json!("side"), json!("side"), json!(0.0012)));
    assert_eq!(by, [main, side]);
    server.stop().await;
}

#[tokio::test]
async fn a_servers_answer_does_not_control_the_terminal() {
    let url = serve_answer(StatusCode::NOT_FOUND, Json(json!({ "detail": "gone\u{1b}[2J\nand more" }))).await;

    let result = usage(&Premises::new(), &["--server", &url]).await;

    assert_eq!((result.code, &*result.stderr), (Some(1), "tertulia: gone [2J and more\n"), "{result:?}");
}

#[tokio::test]
async fn an_exhausted_statement_budget_is_logged_once() {
    let premises = Premises::new().with("gate.guild_statements_per_day", "1");
    let server = premises.start().await;
    let (mut lobby, _) = server.exchange("lobby", "hey aria, how was your day?").await;
    for text in ["aria, and tomorrow?", "aria, are you there?"] {
        server.say("lobby", "Ana", text).await;
        let decision = lobby.event("decision").await;
        assert_eq!((&decision["reason"], &decision["budget"]), (&json!("budget"), &json!("guild_statements")), "{decision}");
    }
    let shown = usage(&premises, &[]).await;

    let log = server.stop().await;

    let warnings: Vec<_> = log.lines().filter(|line| line.contains("a guild has used up its budget")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    assert!(warnings[0].contains("WARN") && warnings[0].contains("guild=home"), "{warnings:?}");
    let statements = shown.stdout.lines().find(|line| line.contains("statements") && line.contains("of 1")).expect("a line");
    assert!(statements.contains("used up, available again at "), "{shown:?}");
}

async fn usage(premises: &Premises, arguments: &[&str]) -> Ran {
    premises.run(&[&["usage"], arguments].concat()).await
}

fn priced(premises: Premises, model: &Model) -> Premises {
    model
        .serving(premises)
        .with("models.side.input_price", "1")
        .with("models.side.output_price", "2")
        .with("models.main.input_price", "15")
        .with("models.main.output_price", "25")
        .with("models.pool.backoff_secs", "0.01")
}

/// A model that fails at its first call, and answers YES to every later one.
async fn model() -> Model {
    let has_failed = AtomicBool::new(false);
    let answer = move |_: &Value| match has_failed.swap(true, Ordering::SeqCst) {
        false => Answer::Refused(503, "not yet".to_owned()),
        true => "Me.\nYES".into(),
    };
    let model = Model::start(answer).await;
    model.takes_tokens(1000, 100);
    model
}
