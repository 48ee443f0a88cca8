//! Requests that a foreign web page makes a browser send are refused.

use serde_json::json;

use super::*;

impl World {
    async fn say_as(&self, headers: &[(&str, &str)]) -> u16 {
        let mut request = self.request(Method::POST, "/api/rooms/lobby/messages").json(&json!({ "from": "Ana", "text": "hi" }));
        request = request.bearer_auth(TOKEN);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap().status().as_u16()
    }
}

#[tokio::test]
async fn a_host_name_rebound_to_loopback_is_refused() {
    let world = World::new().await;
    let as_host = |host: &'static str| world.request(Method::GET, "/api/rooms").header("host", host).send();

    let rebound = answer(as_host("evil.example").await.unwrap()).await;
    let local = as_host("localhost:1234").await.unwrap();

    assert_eq!(rebound.0, 403);
    assert!(rebound.1["detail"].as_str().unwrap().contains("server.public_url"));
    assert_eq!(local.status(), 200);
}

#[tokio::test]
async fn without_a_token_nobody_behind_a_proxy_is_the_operator() {
    let world = World::new().await;
    let passed_on = |path, header: &'static str| world.request(Method::GET, path).header(header, "192.0.2.7").send();

    for header in ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "cf-connecting-ip"] {
        let refused = answer(passed_on("/api/rooms", header).await.unwrap()).await;
        assert_eq!(refused.0, 403, "{header}");
        assert!(refused.1["detail"].as_str().unwrap().contains("server.admin_token_file"), "{refused:?}");
    }
    assert_eq!(passed_on("/", "via").await.unwrap().status(), 403);
    assert_eq!(passed_on("/healthz", "via").await.unwrap().status(), 200);
    assert_eq!(world.get("/api/rooms").await.0, 200);
}

#[tokio::test]
async fn a_request_without_a_host_is_refused() {
    let world = World::new().await;

    let answer = world.raw("GET /api/rooms HTTP/1.1\r\nConnection: close\r\n\r\n").await;

    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[tokio::test]
async fn probes_accept_any_host() {
    let world = World::new().await;

    for path in ["/healthz", "/readyz"] {
        let response = world.request(Method::GET, path).header("host", "tertulia.internal").send().await.unwrap();
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn a_page_behind_a_rebound_name_gets_no_details_from_readiness() {
    let world = World::new().await;
    *world.backend.not_ready_because.lock() = Some("/secret/path is full".into());
    let readiness_with = |name: &'static str, value: &'static str| {
        let request = world.request(Method::GET, "/readyz").header(name, value);
        async { answer(request.send().await.unwrap()).await }
    };

    let foreign = [
        readiness_with("host", "evil.example").await,
        readiness_with("sec-fetch-site", "cross-site").await,
        readiness_with("host", "10.0.0.1").await,
    ];
    let own = readiness_with("host", "localhost").await;

    assert!(foreign.iter().all(|answer| answer.1 == json!({ "ready": false })), "{foreign:?}");
    assert_eq!(own.1["parts"][0]["detail"], "/secret/path is full");
}

#[tokio::test]
async fn forms_and_plain_text_from_foreign_pages_change_nothing() {
    let world = World::new().await;
    let body = r#"{"from": "Ana", "text": "hi"}"#;
    let posted = |kind: &'static str, origin: Option<&'static str>| {
        let mut request = world.request(Method::POST, "/api/rooms/lobby/messages").header("content-type", kind).body(body);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        async { request.send().await.unwrap().status().as_u16() }
    };

    for kind in ["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
    {
        // Browsers send the origin of every POST. A request without one is refused by its content type.
        assert_eq!(posted(kind, Some("http://evil.example")).await, 403, "{kind}");
        assert_eq!(posted(kind, Some("null")).await, 403, "{kind}");
        assert_eq!(posted(kind, None).await, 415, "{kind}");
    }
    assert_eq!(posted("application/json", Some("http://evil.example")).await, 403);
    assert_eq!(posted("application/json", None).await, 202);
    let history = world.get("/api/rooms/lobby/history").await.1;
    assert_eq!(history["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn only_our_own_pages_can_make_changes() {
    let world = World::with(Server { public_url: Some("https://talk.example.org".into()), ..with_token() }).await;
    let own = world.url("");

    assert_eq!(world.say_as(&[]).await, 202);
    assert_eq!(world.say_as(&[("origin", &own), ("sec-fetch-site", "same-origin")]).await, 202);
    assert_eq!(world.say_as(&[("origin", "https://talk.example.org"), ("host", "talk.example.org")]).await, 202);
    assert_eq!(world.say_as(&[("origin", "https://evil.example")]).await, 403);
    assert_eq!(world.say_as(&[("origin", "null")]).await, 403);
    assert_eq!(world.say_as(&[("origin", "http://127.0.0.1:1")]).await, 403);
    assert_eq!(world.say_as(&[("sec-fetch-site", "cross-site")]).await, 403);
    assert_eq!(world.say_as(&[("sec-fetch-site", "same-site")]).await, 403);
}

#[tokio::test]
async fn another_site_cannot_read_the_api_but_can_link_to_the_page() {
    let world = World::new().await;
    let from_other_site = |path: &str| world.request(Method::GET, path).header("sec-fetch-site", "cross-site").send();

    assert_eq!(from_other_site("/api/rooms").await.unwrap().status(), 403);
    assert_eq!(from_other_site("/").await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_foreign_page_cannot_sign_in_or_out() {
    let world = World::with(with_token()).await;

    for path in ["/signin", "/signout"] {
        let post = world.request(Method::POST, path).header("origin", "http://evil.example").json(&json!({ "token": TOKEN }));
        assert_eq!(post.send().await.unwrap().status(), 403);
    }
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let world = World::new().await;
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; manifest-src 'self'; img-src 'self' blob:; media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

    for path in ["/", "/signin", "/api/rooms", "/api/nothing", "/api/rooms/boom", "/healthz", "/api/live"] {
        let response = world.request(Method::GET, path).send().await.unwrap();
        let headers = response.headers();
        assert_eq!(headers["content-security-policy"], policy, "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "same-origin", "{path}");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin", "{path}");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin", "{path}");
        assert_eq!(headers["cache-control"], if matches!(path, "/" | "/signin") { "no-cache" } else { "no-store" }, "{path}");
    }
}
