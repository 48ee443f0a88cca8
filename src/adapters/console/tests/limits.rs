//! Clients that send too much, too often or too slowly.

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, duplex};

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
    assert_eq!((long.0, &long.1["detail"]), (413, &json!("the request has more than 2048 bytes; send less at once")));
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
async fn behind_a_trusted_proxy_one_client_does_not_keep_all_connections() {
    let settings = Server { trusted_proxies: vec!["127.0.0.0/8".into()], max_connections_per_address: 2, ..with_token() };
    let world = World::with(settings).await;
    let slow = "POST /signin HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.7\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    let mut open = [world.connect().await, world.connect().await];
    for stream in &mut open {
        stream.write_all(slow.as_bytes()).await.unwrap();
        // The server asks for the body once it has admitted the request.
        stream.read_exact(&mut [0; 25]).await.unwrap();
    }

    let ask = async |client: &str| {
        let request = world.request(Method::GET, "/signin").header("x-forwarded-for", client);
        request.send().await.unwrap().status().as_u16()
    };

    assert_eq!([ask("192.0.2.7").await, ask("192.0.2.8").await], [429, 200]);
    drop(open);
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

#[tokio::test]
async fn connections_over_the_limit_are_closed_and_counted() {
    let world = World::with(Server { max_connections: 1, ..settings() }).await;
    let mut first = world.connect().await;
    first.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    first.readable().await.unwrap();

    let refused = [read_all(&mut world.connect().await).await, read_all(&mut world.connect().await).await];

    assert_eq!(refused, ["", ""]);
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

/// A console whose lobby has so long a history that the system does not buffer a response with it.
async fn with_long_history(settings: &Server) -> Console {
    let backend = Arc::new(FakeBackend::with_lobby());
    for _ in 0..16 {
        let message = serde_json::from_value(json!({ "from": "Ana", "text": "x".repeat(600 << 10) })).unwrap();
        backend.say(&RoomId::parse("lobby").unwrap(), message).await.unwrap();
    }
    Console::bind(settings, served(backend), rng(), clock(), Metrics::local()).await.unwrap()
}

/// Asks for the history. Returns the status and the rest of the response, of which nothing is read.
async fn history<S: AsyncRead + AsyncWrite + Unpin>(mut client: S) -> (String, S) {
    client.write_all(b"GET /api/rooms/lobby/history HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut status = [0; 12];
    client.read_exact(&mut status).await.unwrap();
    (String::from_utf8_lossy(&status[9..]).into_owned(), client)
}

#[tokio::test(start_paused = true)]
async fn long_responses_are_refused_while_too_many_are_unread() {
    let console = with_long_history(&settings()).await;
    let ask = async || {
        let (server, client) = duplex(4_096);
        let (router, shared, peer) = (console.router.clone(), console.shared.clone(), console.address());
        let door = shared.door.clone();
        tokio::spawn(async move { connection::serve_stream(server, peer, router, &shared.settings, door).await });
        history(client).await
    };

    let others = console.shared.long_responses.acquire_many(guard::MAX_LONG_RESPONSES as u32 - 1).await.unwrap();
    let (first, unread) = ask().await;
    let (second, _) = ask().await;
    drop(unread);
    let (third, _) = ask().await;

    assert_eq!([first, second, third], ["200", "503", "200"]);
    drop(others);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected_and_others_get_their_long_response() {
    let console = with_long_history(&Server { stall_timeout_secs: 0.05, ..settings() }).await;
    let (address, shared) = (console.address(), console.shared.clone());
    tokio::spawn(console.serve(std::future::pending()));
    let others = shared.long_responses.acquire_many(guard::MAX_LONG_RESPONSES as u32 - 1).await.unwrap();

    let (first, mut unread) = history(TcpStream::connect(address).await.unwrap()).await;
    let (second, _) = history(TcpStream::connect(address).await.unwrap()).await;

    assert_eq!([first, second], ["200", "200"]);
    assert!(unread.read_to_end(&mut Vec::new()).await.is_err(), "the response is cut off");
    drop(others);
}
