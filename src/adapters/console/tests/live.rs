//! Live views of a room.

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::duplex;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, client_async, connect_async};

use super::*;
use crate::ports::backend::fake::LIVE_BUFFER;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

impl World {
    async fn watch(&self, query: &str) -> Socket {
        connect_async(format!("ws://{}/api/live?{query}", self.address)).await.unwrap().0
    }

    /// The status with which a live view is refused; 101 if it is accepted.
    async fn refuse(&self, query: &str, headers: &[(&'static str, &str)]) -> u16 {
        let mut request = format!("ws://{}/api/live?{query}", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok(_) => 101,
            Err(Error::Http(response)) => response.status().as_u16(),
            Err(error) => panic!("{error}"),
        }
    }

    async fn say(&self, text: &str) {
        self.post("/api/rooms/lobby/messages", json!({ "from": "Ana", "text": text })).await;
    }
}

async fn next_event(socket: &mut Socket) -> Value {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

async fn close_code(socket: &mut Socket) -> u16 {
    loop {
        if let Message::Close(frame) = socket.next().await.unwrap().unwrap() {
            return frame.unwrap().code.into();
        }
    }
}

#[tokio::test]
async fn a_watcher_receives_new_messages() {
    let world = World::new().await;
    let mut socket = world.watch("room=lobby").await;

    world.say("hi").await;

    assert_eq!(next_event(&mut socket).await, json!({ "event": "message", "seq": 1, "from": "Ana", "text": "hi" }));
}

#[tokio::test]
async fn a_returning_watcher_gets_missed_events_once() {
    let world = World::new().await;
    for text in ["one", "two", "three"] {
        world.say(text).await;
    }

    let mut socket = world.watch("room=lobby&after=1").await;
    world.say("four").await;

    let texts = [next_event(&mut socket).await, next_event(&mut socket).await, next_event(&mut socket).await]
        .map(|event| event["text"].clone());
    assert_eq!(texts, ["two", "three", "four"]);
}

#[tokio::test]
async fn a_watcher_that_falls_behind_is_told_where_to_resume() {
    let world = World::new().await;
    let mut socket = world.watch("room=lobby").await;
    let live = |seq: u64| json!({ "seq": seq }).to_string().into();
    world.backend.show("lobby", live(7));
    assert_eq!(next_event(&mut socket).await["seq"], 7);

    // There is no await in between, so the watcher's task cannot keep up.
    for seq in 8..=(8 + LIVE_BUFFER as u64) {
        world.backend.show("lobby", live(seq));
    }

    assert_eq!(next_event(&mut socket).await, json!({ "event": "resume", "after": 7 }));
    assert_eq!(close_code(&mut socket).await, 1013);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_is_disconnected_and_its_slot_is_freed() {
    let world = World::with(Server { stall_timeout_secs: 0.05, max_live: 1, request_burst: 1_000_000, ..settings() }).await;
    let socket = world.watch("room=lobby").await;
    let large: Arc<str> = format!("\"{}\"", "x".repeat(8 << 20)).into();

    // More than the system buffers for a connection.
    for _ in 0..4 {
        world.backend.show("lobby", large.clone());
    }

    while world.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap().contains("tertulia_live_sockets 1") {
        tokio::task::yield_now().await;
    }
    drop(socket);
    assert_eq!(world.refuse("room=lobby", &[]).await, 101);
}

#[tokio::test(start_paused = true)]
async fn the_server_stops_reading_from_a_watcher_that_pings_and_reads_nothing() {
    let backend = Arc::new(FakeBackend::with_lobby());
    let console = Console::bind(&settings(), served(backend), rng(), clock(), Metrics::local()).await.unwrap();
    let (server, client) = duplex(16 << 10);
    let (router, shared, peer) = (console.router.clone(), console.shared.clone(), console.address());
    let door = shared.door.clone();
    tokio::spawn(async move { connection::serve_stream(server, peer, router, &shared.settings, door).await });
    let (mut watcher, _) = client_async("ws://localhost/api/live?room=lobby", client).await.unwrap();

    // A ping of 125 bytes, masked with zeros.
    let pings = [[0x89, 0x80 | 125].as_slice(), &[0; 4 + 125]].concat().repeat(1_000);
    let mut taken: usize = 0;
    while taken < 8 << 20 {
        // The paused clock advances only when the server reads no more.
        match timeout(Duration::from_secs(1), watcher.get_mut().write(&pings[taken % pings.len()..])).await {
            Ok(written) => taken += written.unwrap(),
            Err(_) => break,
        }
    }

    assert!(taken < 256 << 10, "{taken} bytes of pings were read, but none of the pongs");
}

#[tokio::test]
async fn an_invalid_live_request_is_refused_before_the_upgrade() {
    let world = World::new().await;

    assert_eq!(world.refuse("room=a%20b", &[]).await, 422);
    assert_eq!(world.refuse("room=lobby&after=x", &[]).await, 400);
    assert_eq!(world.refuse("room=nowhere", &[]).await, 404);
    assert_eq!(world.get("/api/live?room=lobby").await.0, 426);
}

#[tokio::test]
async fn without_a_room_all_rooms_are_watched_and_a_slow_watcher_gets_a_cursor() {
    let world = World::new().await;

    let mut first = world.watch("").await;
    let mut resumed = world.watch("after=den.3,discord:12.4").await;

    assert_eq!(next_event(&mut first).await["event"], "hello");
    assert_eq!(next_event(&mut resumed).await["event"], "hello");
    assert_eq!(next_event(&mut resumed).await, json!({ "event": "resume", "after": "den.3,discord:12.4" }));
    assert_eq!(close_code(&mut resumed).await, 1013);
}

#[tokio::test]
async fn an_invalid_cursor_is_refused_with_its_room_and_what_to_write() {
    let world = World::new().await;

    for (cursor, words) in [
        ("12", "\"12\" is not a room and its number; write each room as ROOM.NUMBER"),
        ("lobby.1,den.x", "the number of room den is \"x\", must be a whole number"),
        ("lobby.1,lobby.2", "room lobby is named twice; name it once"),
    ] {
        let request = world.request(Method::GET, &format!("/api/live?after={cursor}"));
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let problem: Value = response.json().await.unwrap();

        assert_eq!((status, &problem["field"]), (400, &json!("after")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
}

#[tokio::test]
async fn only_our_own_pages_can_open_a_live_view() {
    let world = World::new().await;

    assert_eq!(world.refuse("room=lobby", &[("origin", "http://evil.example")]).await, 403);
    assert_eq!(world.refuse("room=lobby", &[("origin", &world.url(""))]).await, 101);
    assert_eq!(world.refuse("room=lobby", &[("host", "evil.example")]).await, 403);
}

#[tokio::test]
async fn a_live_view_needs_the_token_if_one_is_configured() {
    let world = World::with(with_token()).await;

    assert_eq!(world.refuse("room=lobby", &[]).await, 401);
    assert_eq!(world.refuse("room=lobby", &[("authorization", &format!("Bearer {TOKEN}"))]).await, 101);
}

#[tokio::test]
async fn signing_out_ends_the_live_view() {
    let world = World::with(Server { live_ping_secs: 0.05, ..with_token() }).await;
    let response = world.post_signin().await;
    let mut request = format!("ws://{}/api/live?room=lobby", world.address).into_client_request().unwrap();
    request.headers_mut().insert("cookie", response.parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();

    world.request(Method::POST, "/signout").header("cookie", &response).send().await.unwrap();

    assert_eq!(close_code(&mut socket).await, 1008);
}

impl World {
    async fn post_signin(&self) -> String {
        let response = self.request(Method::POST, "/signin").json(&json!({ "token": TOKEN })).send().await.unwrap();
        response.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
    }
}

#[tokio::test]
async fn live_views_are_limited_in_total_and_per_address() {
    let small = World::with(Server { max_live: 1, ..settings() }).await;
    let per_address = World::with(Server { max_live_per_address: 1, ..settings() }).await;
    let _taken = (small.watch("room=lobby").await, per_address.watch("room=lobby").await);

    assert_eq!(small.refuse("room=lobby", &[]).await, 503);
    assert_eq!(per_address.refuse("room=lobby", &[]).await, 429);
}

#[tokio::test]
async fn a_watcher_that_answers_no_pings_is_disconnected() {
    let world = World::with(Server { live_ping_secs: 0.05, ..settings() }).await;
    let mut stream = world.connect().await;
    let upgrade = "GET /api/live?room=lobby HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    stream.write_all(upgrade.as_bytes()).await.unwrap();

    // After three unanswered pings, the server closes the connection.
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 101 "));
}

#[tokio::test]
async fn short_messages_from_a_watcher_are_ignored_and_a_long_one_ends_the_view() {
    let world = World::new().await;
    let mut socket = world.watch("room=lobby").await;

    socket.send(Message::text("hello")).await.unwrap();
    world.say("hi").await;
    let event = next_event(&mut socket).await;
    socket.send(Message::text("x".repeat(10_000))).await.unwrap();

    assert_eq!(event["text"], "hi");
    assert!(!matches!(socket.next().await, Some(Ok(Message::Text(_)))));
}

#[tokio::test]
async fn deleting_a_room_ends_its_live_views() {
    let world = World::new().await;
    let mut socket = world.watch("room=lobby").await;

    world.ask(Method::DELETE, "/api/rooms/lobby").await;

    assert_eq!(close_code(&mut socket).await, 1000);
}

#[tokio::test]
async fn shutdown_closes_live_views_with_going_away() {
    let mut world = World::new().await;
    let mut socket = world.watch("room=lobby").await;

    world.stop.take().unwrap().send(()).unwrap();

    assert_eq!(close_code(&mut socket).await, 1001);
    world.served.await.unwrap();
}
