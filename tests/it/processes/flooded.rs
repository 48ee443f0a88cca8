//! More than the server can serve: it stays within its memory, says what it refuses, and is well again soon after.
//!
//! The long forms print figures; what must hold whatever the machine is asserted, times are not.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Json, Router};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::harness::{Premises, Server};

/// Who talks without end, and where.
const CLIENTS: usize = 200;
const ROOMS: usize = 500;
/// For how long: so many seconds unless `FLOOD_SECS` says otherwise.
const SECS: u64 = 60;
/// How long the models take.
const SLOWNESS: Duration = Duration::from_secs(2);
/// Whoever is refused comes back after so long.
const PAUSE: Duration = Duration::from_millis(5);
/// Far above what the server needs for this, far below what it would take if anything in it were without a bound.
const MOST_MEMORY: u64 = 1 << 30;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes, and a release build: cargo test --release --test it -- --ignored --nocapture a_flood"]
async fn a_flood_is_borne_within_bounds_and_others_are_served_meanwhile() {
    let server = flooded_premises().await.start().await;
    for number in 0..ROOMS {
        open(&server, &format!("flood-{number}"), "flood").await;
    }
    open(&server, "calm", "calm").await;
    let before = calm(&server, Duration::from_secs(5)).await;
    let answered_before = [answered(&server).await, answered(&server).await];
    println!("resident before: {} MB", resident(&server) >> 20);

    let over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(talk(server.url.clone(), client, over.clone()));
    }
    let secs = std::env::var("FLOOD_SECS").ok().and_then(|secs| secs.parse().ok()).unwrap_or(SECS);
    let mut most = 0;
    let (mut during, mut answered_during) = (Vec::new(), Vec::new());
    for _ in 0..(secs / 5).max(1) {
        during.extend(calm(&server, Duration::from_secs(5)).await);
        answered_during.push(answered(&server).await);
        most = most.max(resident(&server));
    }
    over.store(true, Ordering::Relaxed);
    let mut statuses = BTreeMap::<u16, usize>::new();
    let (mut took, mut unexplained) = (Vec::new(), 0);
    while let Some(client) = clients.join_next().await {
        let client = client.expect("it is well");
        client.statuses.into_iter().for_each(|(status, times)| *statuses.entry(status).or_default() += times);
        took.extend(client.took);
        unexplained += client.unexplained;
    }
    let answered_after = [answered(&server).await, answered(&server).await];
    let after = calm(&server, Duration::from_secs(5)).await;

    println!("answers by status: {statuses:?}; {:.0} a second", took.len() as f64 / secs as f64);
    println!("milliseconds       50 %     99 %      max");
    for (name, mut took) in [("flood", took), ("calm before", before), ("calm during", during), ("calm after", after)] {
        took.sort_unstable();
        let part = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!("{name:<14} {:>9.1} {:>8.1} {:>8.1}", part(0.5), part(0.99), part(1.0));
    }
    println!("resident at most: {} MB, at the end: {} MB", most >> 20, resident(&server) >> 20);
    println!("seconds to an answer in the calm room, whose guild's models are those of the flood:");
    println!("before {answered_before:.1?}, during {answered_during:.1?}, from the flood's end on {answered_after:.1?}");
    let metrics = server.get("/metrics").await;
    for line in metrics.as_str().expect("text").lines().filter(|line| is_told(line)) {
        println!("{line}");
    }
    assert!(most < MOST_MEMORY, "{most} bytes");
    assert_eq!(unexplained, 0, "a refusal says when to come back");
    assert!(statuses.keys().all(|status| [202, 429, 503].contains(status)), "{statuses:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes, and a release build: cargo test --release --test it -- --ignored --nocapture thousands_of"]
async fn thousands_of_watchers_who_do_not_read_are_let_go_and_cost_little() {
    const WATCHERS: usize = 2_000;
    let premises = flooded_premises().await.with("server.stall_timeout_secs", "5").with("server.max_live", "1900");
    let server = premises.start().await;
    open(&server, "calm", "calm").await;
    let empty = resident(&server);
    let url = format!("{}/api/live?room=calm", server.url.replacen("http", "ws", 1));
    let (mut watchers, mut refused) = (Vec::new(), BTreeMap::<u16, usize>::new());
    for _ in 0..WATCHERS {
        match tokio_tungstenite::connect_async(&url).await {
            Ok((socket, _)) => watchers.push(socket),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
                assert!(response.headers().contains_key("retry-after"), "{response:?}");
                *refused.entry(response.status().as_u16()).or_default() += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let watched = resident(&server);
    println!("{} watch, refused: {refused:?}; {} KB each", watchers.len(), (watched.saturating_sub(empty) / 1_900) >> 10);
    assert_eq!((watchers.len(), refused.get(&503).copied()), (1_900, Some(100)));

    let long = "so it goes ".repeat(600);
    let mut most = 0;
    for number in 0..600 {
        server.say("calm", "Ana", &format!("{number} {long}")).await;
        most = most.max(resident(&server));
    }
    // They are let go once they have not read for five seconds; a new one finds a place and sees what is said.
    let mut gone = 0;
    while sockets(&server).await > 0.0 {
        gone += 1;
        server.say("calm", "Ana", "still here?").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!("resident at most: {} MB, once they are gone: {} MB; {gone} looks", most >> 20, resident(&server) >> 20);
    assert!(most < MOST_MEMORY, "{most} bytes");
    let mut watch = server.watch("calm", None).await;
    server.say("calm", "Ana", "and now?").await;
    watch.event("message").await;
    drop(watchers);
    server.stop().await;
}

/// A server without the limits that hold one address back, whose models are slow.
async fn flooded_premises() -> Premises {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let model = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let router = Router::new().fallback(async |Json(_): Json<Value>| {
        tokio::time::sleep(SLOWNESS).await;
        Json(json!({ "choices": [{ "message": { "role": "assistant", "content": "They mean me.\nYES" }, "finish_reason": "stop" }] }))
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let plenty = [
        "server.requests_per_second",
        "server.request_burst",
        "gate.addresses_per_minute",
        "gate.evaluations_per_hour",
        "gate.guild_evaluations_per_hour",
        "gate.guild_statements_per_day",
    ];
    let premises = plenty.into_iter().fold(Premises::new(), |premises, limit| premises.with(limit, "1000000"));
    let wide = ["server.max_live", "server.max_live_per_address", "server.max_connections"];
    let premises = wide.into_iter().fold(premises, |premises, limit| premises.with(limit, "10000"));
    premises.with("models.main.base_url", &model).with("models.main.model", "slow").with("telemetry.log", "warn")
}

/// What one client saw.
#[derive(Default)]
struct Client {
    statuses: BTreeMap<u16, usize>,
    took: Vec<Duration>,
    /// Refusals without `Retry-After`.
    unexplained: usize,
}

/// Says one thing after the other, every second to Aria, each in another room.
async fn talk(url: String, client: usize, over: Arc<AtomicBool>) -> Client {
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut seen = Client::default();
    for number in 0_usize.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let room = (client * 31 + number * 7) % ROOMS;
        let whom = if number % 2 == 0 { "aria, " } else { "" };
        let said =
            json!({ "from": format!("P{client}"), "text": format!("{whom}{number} {}", "and so on ".repeat(20).trim_end()) });
        let began = Instant::now();
        let sent = http.post(format!("{url}/api/rooms/flood-{room}/messages")).json(&said).send().await;
        let response = sent.expect("every request is answered");
        seen.took.push(began.elapsed());
        *seen.statuses.entry(response.status().as_u16()).or_default() += 1;
        if response.status() != StatusCode::ACCEPTED {
            seen.unexplained += usize::from(!response.headers().contains_key("retry-after"));
            tokio::time::sleep(PAUSE).await;
        }
    }
    seen
}

/// Says something in the calm room now and then: how long each took to be accepted.
async fn calm(server: &Server, span: Duration) -> Vec<Duration> {
    let (end, mut took) = (Instant::now() + span, Vec::new());
    while Instant::now() < end {
        let began = Instant::now();
        server.say("calm", "Ana", &format!("number {}", took.len())).await;
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    took
}

/// Addresses Aria in the calm room: how many seconds until she has said something.
async fn answered(server: &Server) -> f64 {
    let mut watch = server.watch("calm", None).await;
    let began = Instant::now();
    server.say("calm", "Ana", "aria, what do you say?").await;
    watch.event("statement").await;
    began.elapsed().as_secs_f64()
}

async fn sockets(server: &Server) -> f64 {
    sum(server, "tertulia_live_sockets").await
}

async fn sum(server: &Server, name: &str) -> f64 {
    let metrics = server.get("/metrics").await;
    let lines = metrics.as_str().expect("text").lines();
    let values = lines.filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

fn is_told(line: &str) -> bool {
    let names = [
        "tertulia_pool_shed_total",
        "tertulia_http_requests_total",
        "tertulia_actor_restarts_total",
        "tertulia_pool_timeouts_total",
    ];
    names.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0")
}

async fn open(server: &Server, room: &str, guild: &str) {
    let plan = json!({ "guild": guild, "companions": ["aria"] });
    let (status, body) = server.ask(Method::PUT, &format!("/api/rooms/{room}"), Some(plan)).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
}

/// Bytes of memory that the server occupies.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux tells it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
