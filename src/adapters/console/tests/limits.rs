//! Clients that send too much, too often or too slowly.

use axum::response::IntoResponse;
use serde_json::json;
use tokio::io::duplex;

use super::*;
use crate::ports::backend::message_service::MessageService;
use crate::ports::backend::room::RoomId;

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_the_limit() {
    let world = World::with(Server { max_body_bytes: 2_048, ..settings() }).await;
    let body = |bytes: usize| json!({ "from": "Ana", "text": "x".repeat(bytes) });

    let fits = world.post("/api/rooms/lobby/messages", body(1_900)).await;
    let long = world.post("/api/rooms/lobby/messages", body(2_048)).await;
    let pieces = futures_util::stream::iter((0..100).map(|_| Ok::<_, io::Error>("x".repeat(1_000))));
    let streamed = world.post_raw("/api/rooms/lobby/messages", reqwest::Body::wrap_stream(pieces)).await;

    assert_eq!(fits.0, 202);
    assert_eq!((long.0, &long.1["detail"]), (413, &json!("the body has more than 2048 bytes; send less at once")));
    assert_eq!(streamed.0, 413);
}

#[tokio::test]
async fn a_huge_body_is_refused_before_it_is_read() {
    let world = World::new().await;

    let head = "POST /api/rooms/lobby/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n";
    let answer = world.raw(head).await;

    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_is_refused_early_can_read_why_while_it_still_sends() {
    let world = World::with(with_token()).await;
    let credentials = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}");
    let length = 12 << 20;
    let rest = "x".repeat(length);
    let say = "POST /api/rooms/lobby/messages HTTP/1.1";

    for (head, status) in [
        // With a length, in chunks, and where no handler reads the body.
        (format!("{say}\r\n{credentials}\r\nContent-Length: {length}\r\n\r\n"), "413"),
        (format!("{say}\r\n{credentials}\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n"), "413"),
        (format!("{say}\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"), "401"),
        (format!("{say}\r\nHost: elsewhere.example\r\nContent-Length: {length}\r\n\r\n"), "403"),
        (format!("GET /nothing HTTP/1.1\r\n{credentials}\r\nContent-Length: {length}\r\n\r\n"), "404"),
        (format!("PUT /api/companions HTTP/1.1\r\n{credentials}\r\nContent-Length: {length}\r\n\r\n"), "405"),
        // A head without an end, and bytes that are no head.
        (format!("GET /api/rooms HTTP/1.1\r\n{credentials}\r\nX: "), "431"),
        ("\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = world.whole(format!("{head}{rest}").as_bytes()).await;
        let answer = answer.unwrap_or_else(|error| panic!("the {status} was not received: {error}; {head}"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
    }
}

#[tokio::test]
async fn too_many_requests_are_refused_with_retry_after() {
    let world = World::with(Server { requests_per_second: 1, request_burst: 2, ..settings() }).await;

    let served = [world.get("/api/rooms").await.0, world.get("/api/rooms").await.0];
    let refused = world.request(Method::GET, "/api/rooms").send().await.unwrap();
    let probe = world.get("/healthz").await;

    assert_eq!(served, [200, 200]);
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert!(refused.text().await.unwrap().contains("server.requests_per_second"));
    assert_eq!(probe.0, 200);
}

#[tokio::test]
async fn anonymous_requests_do_not_block_the_right_token_and_wrong_tokens_are_counted() {
    let settings = Server { requests_per_second: 1, request_burst: 2, sign_ins_per_minute: 2, ..with_token() };
    let world = World::with(settings).await;
    for _ in 0..5 {
        world.get("/api/rooms").await;
    }

    let ask =
        async |token: &str| world.request(Method::GET, "/api/rooms").bearer_auth(token).send().await.unwrap().status().as_u16();
    let form = world.request(Method::GET, "/signin").send().await.unwrap().status().as_u16();
    let signed_in = world.post("/signin", json!({ "token": TOKEN })).await.0;
    let right = ask(TOKEN).await;
    let wrong = [ask("wrong").await, ask("wrong").await, ask("wrong").await];

    assert_eq!((form, signed_in, right), (200, 204, 200));
    assert!(wrong.iter().all(|status| matches!(status, 401 | 429)), "{wrong:?}");
    // After too many wrong tokens, a right one of less than 32 characters is refused, too.
    assert_eq!(ask(TOKEN).await, 429);
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_limits() {
    let settings = Server { trusted_proxies: vec!["127.0.0.0/8".into()], ..with_token() };
    let world = World::with(Server { sign_ins_per_minute: 1, ..settings }).await;
    let ask = async |client: &str, token: &str| {
        let request = world.request(Method::GET, "/api/rooms").header("x-forwarded-for", client);
        request.bearer_auth(token).send().await.unwrap().status().as_u16()
    };

    let guesses = [ask("198.51.100.1, 192.0.2.7", "a").await, ask("198.51.100.2, 192.0.2.7", "b").await];
    let blocked = ask("192.0.2.7", TOKEN).await;
    let other = ask("192.0.2.8", TOKEN).await;

    assert_eq!((guesses, blocked, other), ([401, 429], 429, 200));
}

#[tokio::test]
async fn anonymous_clients_do_not_use_up_the_requests_of_an_authenticated_one_at_the_same_address() {
    let token = "correct-horse-battery-staple-of-32-characters";
    let settings = Server { admin_token: Some(token.into()), ..settings() };
    let world = World::with(Server { requests_per_second: 1, request_burst: 2, ..settings }).await;

    let anonymous = [(); 3].map(|()| world.get("/api/rooms"));
    let anonymous: Vec<_> = futures_util::future::join_all(anonymous).await.into_iter().map(|answer| answer.0).collect();
    let operator = world.request(Method::GET, "/api/rooms").bearer_auth(token).send().await.unwrap();

    assert_eq!(anonymous.iter().filter(|status| **status == 429).count(), 1, "{anonymous:?}");
    assert_eq!(operator.status(), 200);
}

#[tokio::test]
async fn a_head_without_an_end_times_out() {
    let world = World::with(Server { header_timeout_secs: 0.05, ..settings() }).await;
    let mut stream = world.connect().await;

    stream.write_all(b"GET /api/rooms HTTP/1.1\r\nHost: loc").await.unwrap();

    assert!(!read_all(&mut stream).await.contains("200 OK"));
}

#[tokio::test]
async fn a_body_without_an_end_times_out() {
    let world = World::with(Server { body_timeout_secs: 0.05, ..settings() }).await;

    let answer =
        world.raw("POST /api/rooms/lobby/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{\"from\":").await;

    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

/// A console whose only connection slot is taken until the stream is dropped.
async fn full() -> (World, TcpStream) {
    let world = World::with(Server { max_connections: 1, ..settings() }).await;
    let mut first = world.connect().await;
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    first.readable().await.unwrap();
    (world, first)
}

#[tokio::test]
async fn a_client_over_the_connection_limit_gets_503_with_retry_after() {
    let (world, _first) = full().await;

    // A response before the request would make the client fail now and then, so this is repeated.
    for _ in 0..20 {
        let refused = world.request(Method::GET, "/healthz").send().await.unwrap();

        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
        assert_eq!(refused.headers()["connection"], "close");
        assert!(refused.text().await.unwrap().contains("server.max_connections"));
    }
}

#[tokio::test]
async fn a_client_over_the_connection_limit_can_read_its_response_after_sending_a_body() {
    let (world, _first) = full().await;
    let head = "POST /api/rooms/lobby/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n";

    let answer = world.raw(&format!("{head}{}", "x".repeat(200_000))).await;

    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with('}'), "{answer}");
}

#[tokio::test]
async fn rejected_connections_are_counted() {
    let (world, mut first) = full().await;

    let refused = [world.get("/healthz").await.0, world.get("/healthz").await.0];

    assert_eq!(refused, [503, 503]);
    first.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let metrics = read_all(&mut first).await;
    assert!(metrics.contains("tertulia_http_connections_refused_total 2\n"), "{metrics}");
}

#[tokio::test]
async fn the_longest_accepted_head_has_32_kib() {
    let world = World::new().await;
    let (start, end) = ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ", "\r\n\r\n");
    let head = |bytes: usize| format!("{start}{}{end}", "x".repeat(bytes - start.len() - end.len()));

    for (bytes, status) in [(32_000, 200), (32 << 10, 200), ((32 << 10) + 1, 431), (40_000, 431), (100_000, 431), (1_000, 200)] {
        let answer = world.raw(&head(bytes)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{bytes}: {answer}");
    }
}

#[tokio::test]
async fn long_responses_are_refused_while_too_many_bytes_are_unread() {
    let backend = Arc::new(FakeBackend::with_lobby());
    let message = serde_json::from_value(json!({ "from": "Ana", "text": "x".repeat(600 << 10) })).unwrap();
    backend.say(&RoomId::parse("lobby").unwrap(), message).await.unwrap();
    let console = Console::bind(&settings(), served(backend), rng(), Metrics::local()).await.unwrap();
    let ask = async || {
        let (server, mut client) = duplex(4_096);
        let (router, shared, peer) = (console.router.clone(), console.shared.clone(), console.address());
        let closing = shared.closing.subscribe();
        tokio::spawn(async move { connection::serve_stream(server, peer, router, &shared.settings, closing).await });
        client.write_all(b"GET /api/rooms/lobby/history HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        (String::from_utf8_lossy(&status).into_owned(), client)
    };

    // This leaves 1 of the 48 MiB.
    let others = console.shared.response_limits.counted(vec![b'x'; 47 << 20].into_response()).await;
    let (first, unread) = ask().await;
    let (second, _) = ask().await;
    drop(unread);
    drop(others);
    let (third, _) = ask().await;

    assert_eq!([first, second, third].map(|line| line[9..].to_owned()), ["200", "503", "200"]);
}
