//! A model is connected while the server runs: tried, used at once, kept for the next start, and its key is nowhere but in its file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use axum::http::{Method, StatusCode};
use futures_util::future;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::harness::model::{Model, prompt};
use crate::harness::{Premises, Server};

const KEY: &str = "xylokey-3d2c1b0a99887766";
const STATEMENT: &str = "I am a real model, nearly.";

async fn model() -> Model {
    let model = Model::start(|body| {
        let decides = prompt(body).contains("Would you like to respond?");
        if decides { r#"{"reason": "Ana asked me.", "decision": "YES"}"# } else { STATEMENT }
    })
    .await;
    model.wants_key(KEY);
    model
}

fn connection(model: &Model, key: Option<&str>) -> Value {
    let mut connection = json!({ "base_url": model.url, "main": { "model": "large", "input_price": 1.0, "output_price": 2.0 } });
    if let Some(key) = key {
        connection["api_key"] = key.into();
    }
    connection
}

async fn send(server: &Server, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
    server.ask(method, path, Some(body)).await
}

#[tokio::test]
async fn a_model_is_connected_without_a_restart_and_kept_for_the_next_start() {
    let (model, premises) = (model().await, Premises::new());
    let server = premises.start().await;

    let (status, names) =
        send(&server, Method::POST, "/api/models/names", json!({ "base_url": model.url, "api_key": KEY })).await;
    assert_eq!((status, names), (StatusCode::OK, json!({ "models": ["large", "small"] })));
    let (status, tried) = send(&server, Method::POST, "/api/models/try", connection(&model, Some(KEY))).await;
    assert_eq!(status, StatusCode::OK, "{tried}");
    assert_eq!((&tried["decision"]["works"], &tried["statement"]["detail"]), (&json!(true), &json!(STATEMENT)), "{tried}");
    assert_eq!(tried["statement"]["cost"], json!(0.00002), "{tried}");
    let mut slow = connection(&model, Some(KEY));
    (slow["timeout_secs"], slow["short_decisions"]) = (json!(60), json!(true));
    let (status, connected) = send(&server, Method::PUT, "/api/models", slow).await;
    assert_eq!(
        (status, &connected["source"], &connected["has_key"]),
        (StatusCode::OK, &json!("page"), &json!(true)),
        "{connected}"
    );
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Aria, who are you?").await;
    assert_eq!(watch.event("statement").await["text"], STATEMENT);
    server.stop().await;

    let file = premises.data().join("connection.json");
    assert_eq!(fs::metadata(&file).expect("it is kept").permissions().mode() & 0o777, 0o600);
    let server = premises.start().await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Aria, and now?").await;
    assert_eq!(watch.event("statement").await["text"], STATEMENT);
    let shown = server.get("/api/models").await;
    assert_eq!((&shown["timeout_secs"], &shown["side"]["timeout_secs"]), (&json!(60), &json!(60.0)), "{shown}");
    assert!(shown["troubles"] == json!([]) && !shown.to_string().contains(KEY), "{shown}");
    let (_, back) = server.ask(Method::DELETE, "/api/models", None).await;
    assert_eq!((&back["source"], &back["main"]["model"]), (&json!("rehearsal"), &json!("rehearsal")));
    assert!(!file.exists());
    let log = server.kill().await;
    assert!(!log.contains(KEY), "{log}");
}

#[tokio::test]
async fn a_key_that_is_rejected_is_told_at_once_and_belongs_to_its_address() {
    let (model, other, premises) = (model().await, model().await, Premises::new());
    let server = premises.start().await;
    send(&server, Method::PUT, "/api/models", connection(&model, Some("wrong"))).await;
    let mut watch = server.watch("lobby", None).await;

    server.say("lobby", "Ana", "Aria, who are you?").await;

    assert_eq!(watch.event("error").await["error"], "key_rejected");
    let trouble = server.get("/api/models").await["troubles"][0].clone();
    assert_eq!(trouble["error"], "key_rejected");
    let detail = trouble["detail"].as_str().expect("a detail");
    assert!(detail.contains("401") && detail.contains("check the key") && !detail.contains("wrong"), "{detail}");
    let (status, problem) = send(&server, Method::PUT, "/api/models", connection(&other, None)).await;
    assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("api_key")), "{problem}");
    assert!(other.asked().is_empty());
    let (_, mended) = send(&server, Method::PUT, "/api/models", connection(&model, Some(KEY))).await;
    assert_eq!(mended["troubles"], json!([]));
    assert_eq!(watch.event("statement").await["text"], STATEMENT);
    server.stop().await;
}

#[tokio::test]
async fn two_connections_are_tried_at_a_time_and_others_are_told_to_wait() {
    let premises = Premises::new();
    let server = premises.start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", silent.local_addr().expect("an address"));
    let attempt = || {
        let connection = json!({ "base_url": url, "api_key": "", "main": { "model": "large" } });
        send(&server, Method::POST, "/api/models/try", connection)
    };
    let tries = future::join(attempt(), attempt());
    let asking = async {
        // A decision of each.
        let mut asked = Vec::new();
        while asked.len() < 2 {
            asked.push(silent.accept().await.expect("a connection"));
        }
        let refused = attempt().await;
        drop((asked, silent));
        refused
    };

    let (((first, _), (second, _)), (third, problem)) = future::join(tries, asking).await;
    let (fourth, _) = attempt().await;

    assert_eq!([first, second, third, fourth], [200, 200, 429, 200], "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("try again")), "{problem}");
    server.stop().await;
}

#[tokio::test]
async fn each_field_of_a_connection_that_cannot_be_used_is_named() {
    let (model, premises) = (model().await, Premises::new());
    let server = premises.start().await;
    let long = "x".repeat(3_000);
    let wrong = [
        ("base_url", "/base_url", json!("")),
        ("base_url", "/base_url", json!("models.example")),
        ("base_url", "/base_url", json!("ftp://models.example/v1")),
        ("base_url", "/base_url", json!(long)),
        ("api_key", "/api_key", json!("two words")),
        ("spare_key", "/spare_key", json!(true)),
        ("main.model", "/main/model", json!(" ")),
        ("main.model", "/main/model", json!("x".repeat(300))),
        ("main.input_price", "/main/input_price", json!(-1.0)),
        ("main.output_price", "/main/output_price", json!(null)),
        ("timeout_secs", "/timeout_secs", json!(5)),
        ("side.model", "/side/model", json!("")),
        ("side.input_price", "/side/output_price", json!(1.0)),
        ("main.extra_body", "/main/extra_body", json!({ "messages": [] })),
        ("extra_headers.host", "/extra_headers", json!({ "host": "other.example" })),
        ("extra_headers.authorization", "/extra_headers", json!({ "authorization": "Bearer other" })),
        ("extra_headers.a b", "/extra_headers", json!({ "a b": "c" })),
        ("extra_headers.x-key", "/extra_headers", json!({ "x-key": "two\nlines" })),
        ("extra_headers.x-key", "/extra_headers", json!({ "x-key": null })),
        ("extra_query.api-version", "/extra_query", json!({ "api-version": null })),
    ];

    for (field, place, value) in wrong {
        let mut body = connection(&model, Some(KEY));
        body["side"] = json!({ "model": "small", "input_price": null, "output_price": null });
        body["spare_key"] = json!(false);
        body["main"]["extra_body"] = json!({});
        body["timeout_secs"] = json!(null);
        body["extra_headers"] = json!({});
        body["extra_query"] = json!({});
        if field == "spare_key" {
            body["api_key"] = json!(null);
        }
        *body.pointer_mut(place).expect("the field is there") = value.clone();
        for (method, path) in [(Method::PUT, "/api/models"), (Method::POST, "/api/models/try")] {
            let (status, problem) = send(&server, method, path, body.clone()).await;

            assert_eq!(
                (status, &problem["field"]),
                (StatusCode::UNPROCESSABLE_ENTITY, &json!(field)),
                "{place} {value}: {problem}"
            );
        }
    }
    assert_eq!(server.get("/api/models").await["source"], "rehearsal");
    assert!(model.asked().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn further_headers_parameters_and_fields_are_sent_and_kept_and_secrets_are_never_shown() {
    let (model, other, premises) = (model().await, model().await, Premises::new());
    let server = premises.start().await;
    let mut new = connection(&model, Some(""));
    new["extra_headers"] = json!({ "Authorization": format!("Bearer {KEY}") });
    new["extra_query"] = json!({ "api-version": "2025-01-01", "sig": KEY });
    new["main"]["extra_body"] = json!({ "chat_template_kwargs": { "enable_thinking": false } });

    let (status, connected) = send(&server, Method::PUT, "/api/models", new.clone()).await;
    assert_eq!(status, StatusCode::OK, "{connected}");
    server.stop().await;
    let server = premises.start().await;
    let shown = server.get("/api/models").await;
    // As the page sends what it was shown.
    for field in ["extra_headers", "extra_query"] {
        new[field] = shown[field].clone();
    }
    let (_, names) = send(
        &server,
        Method::POST,
        "/api/models/names",
        json!({ "base_url": model.url, "extra_headers": shown["extra_headers"], "extra_query": shown["extra_query"] }),
    )
    .await;
    let (status, again) = send(&server, Method::PUT, "/api/models", new.clone()).await;
    let mut watch = server.watch("lobby", None).await;
    server.say("lobby", "Ana", "Aria, who are you?").await;

    assert_eq!(watch.event("statement").await["text"], STATEMENT);
    assert_eq!(
        (&shown["extra_headers"], &shown["extra_query"], &shown["has_key"]),
        (&json!({ "Authorization": null }), &json!({ "api-version": "2025-01-01", "sig": null }), &json!(false))
    );
    assert_eq!(names, json!({ "models": ["large", "small"] }));
    assert_eq!((status, &again["extra_query"]), (StatusCode::OK, &shown["extra_query"]), "{again}");
    assert_eq!(shown["main"]["extra_body"], new["main"]["extra_body"]);
    let asked = model.asked();
    let is_off = |body: &Value| body["chat_template_kwargs"]["enable_thinking"] == false;
    assert!(!asked.is_empty() && asked.iter().all(is_off), "{asked:?}");
    assert!(!format!("{shown}{again}").contains(KEY));
    // Secrets belong to their address.
    new["base_url"] = json!(other.url);
    let (status, problem) = send(&server, Method::PUT, "/api/models", new).await;
    assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("extra_headers.Authorization")));
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("enter one")), "{problem}");
    assert!(other.asked().is_empty());
    let log = server.kill().await;
    assert!(!log.contains(KEY), "{log}");
}

#[tokio::test]
async fn a_key_without_an_address_is_used_only_if_that_is_asked_for() {
    let model = model().await;
    let premises = Premises::new().with("models.main.api_key", KEY);
    let server = premises.start().await;
    let unasked = send(&server, Method::PUT, "/api/models", connection(&model, None)).await;
    let mut chosen = connection(&model, None);
    chosen["spare_key"] = json!(true);

    let (status, tried) = send(&server, Method::POST, "/api/models/try", chosen.clone()).await;
    let (_, connected) = send(&server, Method::PUT, "/api/models", chosen).await;

    assert_eq!((unasked.0, &unasked.1["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("api_key")));
    assert_eq!((status, &tried["statement"]["works"]), (StatusCode::OK, &json!(true)), "{tried}");
    assert_eq!((&connected["has_key"], &connected["has_spare_key"]), (&json!(true), &json!(true)), "{connected}");
    assert!(!connected.to_string().contains(KEY));
    server.stop().await;
}

#[tokio::test]
async fn the_models_are_checked_by_a_command_and_at_the_start() {
    let model = model().await;
    let premises = Premises::new()
        .with("models.main.base_url", &model.url)
        .with("models.main.model", "large")
        .with("models.main.api_key", "wrong")
        .with("models.check_at_start", "true");

    let failed = premises.run(&["models", "check"]).await.exits_with(1);
    let server = premises.start().await;
    let logged = server.logs("a model gives no answer").await;
    server.stop().await;
    let premises = premises.with("models.main.api_key", KEY);
    let worked = premises.run(&["models", "check"]).await.exits_with(0);

    assert!(failed.stdout.contains("decides  large: does not work") && failed.stdout.contains("check the key"), "{failed:?}");
    assert!(logged.contains("401"), "{logged}");
    assert!(worked.stdout.contains("writes   large: works") && worked.stdout.contains(STATEMENT), "{worked:?}");
    assert!(![failed.stdout, worked.stdout].iter().any(|shown| shown.contains(KEY) || shown.contains("Bearer")));
}
