//! Doors for guests, checks of addresses, and the live view without WebSockets.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use serde_json::json;
use tower::ServiceExt as _;

use super::super::door::Door;
use super::super::guard::Peer;
use super::*;

const ORIGIN: &str = "https://calm-blue-hats.trycloudflare.com";

/// A request that came through a tunnel.
async fn through_tunnel(console: &Console, request: axum::http::request::Builder, body: &str) -> axum::response::Response {
    let door = Door::for_guests("127.0.0.1:9".parse().unwrap(), ORIGIN, Door::proxies_on_this_machine());
    let mut request: Request = request.body(Body::from(body.to_owned())).unwrap();
    request.extensions_mut().insert(Peer { address: [127, 0, 0, 1].into(), door: Arc::new(door) });
    console.router.clone().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn nobody_operates_the_server_at_a_door_for_guests() {
    let at = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        request.header("host", "calm-blue-hats.trycloudflare.com").header("x-forwarded-for", "192.0.2.7")
    };
    for settings in [settings(), Server { sign_ins_per_minute: 1, ..with_token() }] {
        let backend = Arc::new(FakeBackend::with_lobby());
        let console = Console::bind(&settings, served(backend), rng(), clock(), Metrics::local()).await.unwrap();
        let status = async |request| through_tunnel(&console, request, "").await.status().as_u16();

        for path in ["/api/rooms", "/metrics", "/api/addresses", "/api/openapi.json"] {
            // Right and wrong tokens get the same answer, so nothing can be guessed.
            for token in [TOKEN, "open barley", "open barley"] {
                assert_eq!(status(at("GET", path).header("authorization", format!("Bearer {token}"))).await, 401, "{path}");
            }
        }
        assert_eq!(status(at("GET", "/signin")).await, 404);
        assert_eq!(status(at("POST", "/signin").header("origin", ORIGIN)).await, 404);
        let home = through_tunnel(&console, at("GET", "/"), "").await;
        assert_eq!((home.status().as_u16(), &home.headers()["location"]), (303, &"/join".parse().unwrap()));
        assert_eq!(status(at("GET", "/join")).await, 200);
    }
}

#[tokio::test]
async fn a_guest_comes_in_through_a_tunnel_with_a_secure_cookie_and_only_at_its_own_host() {
    let world = World::with(with_token()).await;
    let invite = world.request(Method::POST, "/api/rooms/lobby/invitations").bearer_auth(TOKEN);
    let (_, invited) = answer(invite.json(&json!({ "ends": "day", "most_guests": 5 })).send().await.unwrap()).await;
    let secret = invited["link"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let console = Console::bind(&with_token(), served(world.backend.clone()), rng(), clock(), Metrics::local()).await.unwrap();
    let join = |host: &str, origin: &str| {
        let request = Request::post("/api/invitations/join").header("host", host).header("origin", origin);
        request.header("content-type", "application/json").header("x-forwarded-for", "192.0.2.7")
    };
    let host = ORIGIN.strip_prefix("https://").unwrap();
    let body = json!({ "secret": secret, "name": "Ben" }).to_string();

    for (host, origin) in [("evil.example", ORIGIN), (host, "https://evil.example"), (host, &*ORIGIN.replace("https", "http"))] {
        assert_eq!(through_tunnel(&console, join(host, origin), &body).await.status(), 403, "{host} {origin}");
    }
    let joined = through_tunnel(&console, join(host, ORIGIN), &body).await;
    let cookie = joined.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(joined.status() == 204 && cookie.starts_with("__Host-tertulia-guest-") && cookie.ends_with("; Secure"), "{cookie}");
    let visit = Request::get("/api/visit").header("host", host).header("cookie", cookie.split(';').next().unwrap());
    assert_eq!(through_tunnel(&console, visit, "").await.status(), 200);
    // Another site below the same host name cannot set the cookie of this one.
    let forged = Request::get("/api/visit")
        .header("host", host)
        .header("cookie", cookie.split(';').next().unwrap().replace("__Host-", ""));
    assert_eq!(through_tunnel(&console, forged, "").await.status(), 401);

    // The guest may be an operator who tries the invitation. Leaving ends the visit alone.
    let at_main_door = async |request: axum::http::request::Builder, body: String| {
        let door = Door::main("127.0.0.1:9".parse().unwrap(), &with_token()).unwrap();
        let mut request: Request = request.header("host", "127.0.0.1:9").body(Body::from(body)).unwrap();
        request.extensions_mut().insert(Peer { address: [127, 0, 0, 1].into(), door: Arc::new(door) });
        console.router.clone().oneshot(request).await.unwrap()
    };
    let sign_in = Request::post("/signin").header("content-type", "application/json");
    let signed_in = at_main_door(sign_in, json!({ "token": TOKEN }).to_string()).await;
    let session = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let cookies = format!("{}; {session}", cookie.split(';').next().unwrap());
    let leave = Request::post("/signout").header("host", host).header("origin", ORIGIN).header("cookie", cookies);
    let left = through_tunnel(&console, leave.header("x-forwarded-for", "192.0.2.7"), "").await;
    assert!(left.status() == 204 && !left.headers().contains_key("set-cookie"), "{left:?}");
    let rooms = at_main_door(Request::get("/api/rooms").header("cookie", session), String::new()).await;
    assert_eq!(rooms.status(), 200);
}

/// A proxy that passes on requests to a server, but no WebSockets and no large bodies, and breaks when told to.
async fn poor_proxy(to: SocketAddr, is_other: Arc<AtomicBool>) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let forward = async move |request: Request| {
        if is_other.load(Ordering::Relaxed) {
            return (StatusCode::OK, "another server".to_owned());
        }
        if request.headers().get("content-length").is_some_and(|length| length.len() > 6) {
            return (StatusCode::PAYLOAD_TOO_LARGE, String::new());
        }
        let sent = client.request(request.method().clone(), format!("http://{to}{}", request.uri())).headers(HeaderMap::new());
        let answer = sent.header("x-forwarded-for", "192.0.2.7").send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, Router::new().fallback(forward)).into_future());
    url
}

#[tokio::test]
async fn a_check_says_what_is_wrong_at_an_address() {
    let world = World::new().await;
    let faults = async |url: &str| {
        let (status, checked) = world.post("/api/addresses/check", json!({ "url": url })).await;
        assert_eq!(status, 200, "{checked}");
        let faults = checked["faults"].as_array().unwrap().iter().map(|fault| fault["code"].as_str().unwrap().to_owned());
        faults.collect::<Vec<_>>()
    };
    let is_other = Arc::<AtomicBool>::default();
    let proxy = poor_proxy(world.address, is_other.clone()).await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();

    assert_eq!(faults(&world.url("")).await, [""; 0]);
    assert_eq!(faults(&proxy).await, ["untrusted_proxy", "no_web_socket", "small_bodies"]);
    is_other.store(true, Ordering::Relaxed);
    assert_eq!(faults(&proxy).await, ["other_server"]);
    assert_eq!(faults(&format!("https://{closed}")).await, ["no_answer"]);
    assert_eq!(faults(&format!("https://{}", world.address)).await, ["no_tls"]);
    assert_eq!(faults("https://talk.example.org/tertulia").await, ["below_path"]);
    assert_eq!(faults("http://talk.example.org").await, ["no_https"]);
    assert_eq!(faults("talk").await, ["no_url"]);
    assert_eq!(world.get("/api/addresses/here?secret=0").await.0, 404, "no check runs");
}

#[tokio::test]
async fn without_web_sockets_each_request_returns_the_events_since_the_one_before() {
    let world = World::with(Server { live_ping_secs: 0.05, ..settings() }).await;
    world.post("/api/rooms/lobby/messages", json!({ "from": "Ana", "text": "one" })).await;
    let poll = async |query: &str| {
        let (status, polled) = world.get(&format!("/api/live/poll?room=lobby&as=Ben&{query}")).await;
        assert_eq!(status, 200, "{polled}");
        polled
    };

    let first = poll("after=0").await;
    world.post("/api/rooms/lobby/messages", json!({ "from": "Ana", "text": "two" })).await;
    let next = poll(&format!("after={}&people={}", first["after"], first["people"])).await;
    let none = poll(&format!("after={}&people={}", next["after"], next["people"])).await;

    let texts = |polled: &Value| {
        polled["events"].as_array().unwrap().iter().filter_map(|event| event["text"].as_str()).collect::<String>()
    };
    assert_eq!([texts(&first), texts(&next), texts(&none)], ["one", "two", ""]);
    let people = first["events"].as_array().unwrap().last().unwrap();
    assert_eq!((&people["event"], &people["people"][0]["name"]), (&json!("people"), &json!("Ben")));
    assert_eq!((&none["after"], &none["people"]), (&next["after"], &first["people"]));
    assert_eq!(world.get("/api/live/poll?room=nowhere").await.0, 404);
}
