//! Models are looked at, tried and connected, and no answer has a key.

use serde_json::json;

use super::*;

const KEY: &str = "sk-never-shown";

#[tokio::test]
async fn a_model_is_tried_and_connected_and_its_key_is_never_shown() {
    let world = World::new().await;
    let connection = json!({
        "base_url": "http://models.example/v1", "api_key": KEY, "main": { "model": "large" }, "extra_headers": { "x-key": KEY }
    });

    let before = world.get("/api/models").await;
    let tried = world.send(Method::POST, "/api/models/try", connection.clone()).await;
    let connected = world.send(Method::PUT, "/api/models", connection).await;
    let after = world.get("/api/models").await;
    let disconnected = world.ask(Method::DELETE, "/api/models").await;

    assert_eq!((before.0, &before.1["source"]), (200, &json!("rehearsal")));
    assert_eq!((tried.0, &tried.1["decision"]["works"]), (200, &json!(true)));
    assert_eq!(connected, after);
    assert_eq!(
        (&after.1["source"], &after.1["has_key"], &after.1["side"]["model"]),
        (&json!("page"), &json!(true), &json!("large"))
    );
    assert_eq!(disconnected, before);
    assert!(![tried.1, after.1].iter().any(|shown| shown.to_string().contains(KEY)));
}

#[tokio::test]
async fn a_rejected_key_and_an_unknown_field_are_named() {
    let world = World::new().await;

    let (status, names) = world.send(Method::POST, "/api/models/names", json!({ "base_url": "http://m/v1" })).await;
    let wrong = world.send(Method::POST, "/api/models/names", json!({ "base_url": "http://m/v1", "api_key": "wrong" })).await;
    let unknown = world.send(Method::PUT, "/api/models", json!({ "base_url": "http://m/v1", "main": { "modle": "x" } })).await;

    assert_eq!((status, names), (200, json!({ "models": ["large", "small"] })));
    assert_eq!((wrong.0, &wrong.1["field"]), (422, &json!("api_key")));
    assert!(unknown.0 >= 400 && unknown.1["detail"].as_str().unwrap().contains("modle"), "{unknown:?}");
}

#[tokio::test]
async fn with_an_admin_token_nobody_sees_tries_or_connects_models_without_it() {
    let world = World::with(with_token()).await;
    let connection = json!({ "base_url": "http://m/v1", "main": { "model": "large" } });
    let requests = [
        (Method::GET, "/api/models", Value::Null),
        (Method::PUT, "/api/models", connection.clone()),
        (Method::DELETE, "/api/models", Value::Null),
        (Method::POST, "/api/models/names", json!({ "base_url": "http://m/v1" })),
        (Method::POST, "/api/models/try", connection),
    ];

    for (method, path, body) in requests {
        let request = world.request(method.clone(), path);
        let without = if body.is_null() { request } else { request.json(&body) };
        let with = without.try_clone().unwrap().bearer_auth(TOKEN);

        assert_eq!(answer(without.send().await.unwrap()).await.0, 401, "{method} {path}");
        assert_eq!(answer(with.send().await.unwrap()).await.0, 200, "{method} {path}");
    }
}
