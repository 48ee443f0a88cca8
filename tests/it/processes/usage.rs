//! `tertulia usage`, with a server and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::{Premises, Ran};

#[tokio::test]
async fn what_calls_cost_is_the_same_with_a_server_and_without() {
    let premises = priced(Premises::new(), &model().await);
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;
    let told = server.get("/api/usage").await;
    let span = ["--from", "2020-01-01", "--to", told["to"].as_str().expect("a time")];

    let asked = usage(&premises, &[&span[..], &["--json"]].concat()).await;
    let asked_table = usage(&premises, &[&span[..], &["--by", "companion"]].concat()).await;
    server.stop().await;
    let opened = usage(&premises, &[&span[..], &["--json"]].concat()).await;
    let opened_table = usage(&premises, &[&span[..], &["--by", "companion"]].concat()).await;

    assert_eq!((asked.code, opened.code), (Some(0), Some(0)), "{asked:?} {opened:?}");
    assert_eq!(asked.object(), opened.object());
    assert_eq!(asked_table.stdout, opened_table.stdout);
    let home = &asked.object()["guilds"][0];
    assert_eq!((&home["guild"], &home["statements"], &home["addresses"]), (&json!("home"), &json!(1), &json!(1)));
    // The first call failed, and was made again.
    assert_eq!((&home["calls"], &home["failed_calls"], &home["unpriced_calls"]), (&json!(3), &json!(1), &json!(0)));
    let by: Vec<_> = home["by"].as_array().expect("a list").iter().map(|by| (by["role"].clone(), by["cost"].clone())).collect();
    assert_eq!(by, [(json!("main"), json!(0.0175)), (json!("side"), json!(0.0012))]);
    assert_eq!(asked.object()["total"]["cost"], 0.0187);
    assert_eq!(told["guilds"][0]["by"], home["by"]);
    assert_eq!(home["caps"], json!({ "tokens": { "used": 2200, "limit": null }, "statements": { "used": 1, "limit": 5000 } }));
    let aria = asked_table.stdout.lines().find(|line| line.contains("aria")).expect("a line for her");
    assert_eq!(aria.split_whitespace().collect::<Vec<_>>(), ["home", "aria", "3", "1", "2,000", "200", "0.0187"]);
}

#[tokio::test]
async fn a_companion_that_names_a_model_is_answered_by_it_at_its_price() {
    let premises = priced(Premises::new(), &model().await)
        .with_companion("aria", "[model]\nmain = \"large\"\n")
        .with("models.large.base_url", &model().await)
        .with("models.large.model", "large-model")
        .with("models.large.input_price", "100")
        .with("models.large.output_price", "0");
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;

    let told = server.get("/api/usage").await;

    let by: Vec<_> = told["guilds"][0]["by"].as_array().expect("a list").iter().collect();
    let by: Vec<_> = by.into_iter().map(|by| (by["role"].clone(), by["model"].clone(), by["cost"].clone())).collect();
    let (main, side) = ((json!("main"), json!("large-model"), json!(0.1)), (json!("side"), json!("side"), json!(0.0012)));
    assert_eq!(by, [main, side]);
    server.stop().await;
}

#[tokio::test]
async fn what_was_used_before_is_still_told_when_its_room_and_its_prices_are_gone() {
    let mut premises = priced(Premises::new(), &model().await);
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;
    let deleted = server.ask(reqwest::Method::DELETE, "/api/rooms/lobby", None).await;
    assert!(deleted.0.is_success(), "{deleted:?}");
    server.stop().await;
    premises.set("models.main.input_price", "999");

    let opened = usage(&premises, &["--last", "1d", "--guild", "home", "--json"]).await;

    assert_eq!(opened.object()["total"]["cost"], 0.0187, "{opened:?}");
}

#[tokio::test]
async fn a_guild_nobody_has_heard_of_and_a_time_that_is_none_are_told() {
    let premises = Premises::new();
    let none = usage(&premises, &[]).await;
    let server = premises.start().await;

    let unknown = usage(&premises, &["--guild", "hoem"]).await;
    let time = usage(&premises, &["--from", "noon"]).await;
    let quiet = usage(&premises, &[]).await;
    server.stop().await;
    let opened = usage(&premises, &["--guild", "hoem"]).await;

    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.stderr.contains("there is no store in data"), "{none:?}");
    for refused in [unknown, opened] {
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("there is no guild hoem"), "{refused:?}");
    }
    assert_eq!(time.code, Some(2), "{time:?}");
    assert!(time.stderr.contains("--from \"noon\" is not a time"), "{time:?}");
    assert!(quiet.stdout.ends_with("Nothing was used.\n"), "{quiet:?}");
}

#[tokio::test]
async fn a_server_that_is_named_is_asked_with_the_token_of_the_settings() {
    let premises = Premises::new().with("server.listen", "0.0.0.0:0").with("server.admin_token", "correct-horse-battery-staple");
    let server = premises.start().await;
    let url = server.url.replace("0.0.0.0", "127.0.0.1");

    let admitted = usage(&premises, &["--server", &url, "--json"]).await;

    assert_eq!(admitted.code, Some(0), "{admitted:?}");
    assert_eq!(admitted.object()["guilds"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn nothing_that_a_server_says_is_obeyed_by_a_terminal() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let gone = (StatusCode::NOT_FOUND, Json(json!({ "detail": "gone\u{1b}[2J\nand more" })));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(async move || gone)).await });

    let told = usage(&Premises::new(), &["--server", &url]).await;

    assert_eq!((told.code, &*told.stderr), (Some(1), "tertulia: gone [2J and more\n"), "{told:?}");
}

#[tokio::test]
async fn the_operator_is_told_once_that_a_guild_has_used_up_its_statements() {
    let premises = Premises::new().with("gate.guild_statements_per_day", "1");
    let server = premises.start().await;
    let mut lobby = server.watch("lobby", Some(0)).await;
    server.say("lobby", "Ana", "hey aria, how was your day?").await;
    lobby.event("statement").await;
    for text in ["aria, and tomorrow?", "aria, are you there?"] {
        server.say("lobby", "Ana", text).await;
        let decision = lobby.event("decision").await;
        assert_eq!((&decision["reason"], &decision["budget"]), (&json!("budget"), &json!("guild_statements")), "{decision}");
    }
    let shown = usage(&premises, &[]).await;

    server.signal("TERM").await;
    let (_, log) = server.ended().await;

    let told: Vec<_> = log.lines().filter(|line| line.contains("a guild has used up its budget")).collect();
    assert_eq!(told.len(), 1, "{log}");
    assert!(told[0].contains("WARN") && told[0].contains("guild=home"), "{told:?}");
    let statements = shown.stdout.lines().find(|line| line.contains("statements") && line.contains("of 1")).expect("a line");
    assert!(statements.contains("used up, available again at "), "{shown:?}");
}

async fn usage(premises: &Premises, given: &[&str]) -> Ran {
    premises.run(&[&["usage"], given].concat()).await
}

fn priced(premises: Premises, url: &str) -> Premises {
    premises
        .with("models.side.base_url", url)
        .with("models.side.model", "side")
        .with("models.side.input_price", "1")
        .with("models.side.output_price", "2")
        .with("models.main.base_url", url)
        .with("models.main.model", "main")
        .with("models.main.input_price", "15")
        .with("models.main.output_price", "25")
        .with("models.pool.backoff_secs", "0.01")
}

/// A model that fails at its first call, and says YES to whatever it is asked from then on.
async fn model() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let router = Router::new().fallback(answer).with_state(Arc::<AtomicUsize>::default());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn answer(State(asked): State<Arc<AtomicUsize>>, Json(body): Json<Value>) -> Result<Json<Value>, StatusCode> {
    if asked.fetch_add(1, Ordering::SeqCst) == 0 {
        return Err(StatusCode::INTERNAL_SERVER_ERROR);
    }
    Ok(Json(json!({
        "id": "answer",
        "model": body["model"],
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Me.\nYES" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100 },
    })))
}
