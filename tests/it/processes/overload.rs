//! Overload: more messages than the server can handle. It stays within its memory, explains each refusal, and sheds unaddressed questions before
//! addressed ones. Meanwhile it serves other guilds, and it recovers soon after.
//!
//! These long trials print figures. They assert what must hold on any machine, but no times. Nothing sleeps: ticks only pace the load, and every
//! wait is for an event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Json, Router};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::harness::{Premises, QUICK, Server, parameter, serve};

/// The number of clients that talk without end, and the least time between two messages of one.
const CLIENTS: usize = 200;
const PACE: Duration = Duration::from_millis(5);
/// The number of rooms where they talk among themselves, and of rooms where they address Aria: fewer than questions may wait for her model.
const TALK_ROOMS: usize = 400;
const ADDRESS_ROOMS: usize = 24;
const QUEUE_CAPACITY: &str = "64";
/// The length of the flood in seconds; `FLOOD_SECS` sets another one.
const SECS: u64 = 20;
/// The time between two answers of the models: they are asked much more often.
const ANSWER_PACE: Duration = Duration::from_millis(20);
/// The time between two messages in the calm room.
const CALM_PACE: Duration = Duration::from_millis(20);
/// In bytes: far more than the server needs here, and far less than it would take with anything unbounded.
const MEMORY_LIMIT: u64 = 1 << 30;

/// `cargo test --release --test it -- --ignored --nocapture a_flood` prints the figures. The assertions also hold without `--release`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn a_flood_stays_within_memory_and_other_guilds_are_served() {
    let server = flooded_premises().await.with("models.pool.queue_capacity", QUEUE_CAPACITY).start().await;
    for room in (0..TALK_ROOMS).map(talk_room).chain((0..ADDRESS_ROOMS).map(address_room)) {
        open(&server, &room, "flood").await;
    }
    open(&server, "calm", "calm").await;
    let before = Calm::measure(&server, 2).await;
    println!("resident before: {} MB", server.resident_bytes() >> 20);

    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients: JoinSet<Client> = (0..CLIENTS).map(|client| talk(server.url.clone(), client, is_over.clone())).collect();
    let (mut during, mut peak) = (Calm::default(), 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(parameter("FLOOD_SECS", SECS)) {
        during.add(Calm::measure(&server, 1).await);
        peak = peak.max(server.resident_bytes());
    }
    let flood_duration = began.elapsed();
    is_over.store(true, Ordering::Relaxed);
    let mut flood = Client::default();
    while let Some(client) = clients.join_next().await {
        flood.add(client.expect("the client does not panic"));
    }
    let ended = Instant::now();
    for room in (0..10).map(|number| talk_room(number * TALK_ROOMS / 10)) {
        time_to_answer(&server, &room).await;
    }
    let recovered = ended.elapsed();
    let after = Calm::measure(&server, 2).await;

    println!(
        "answers by status: {:?}; {:.0} a second",
        flood.statuses,
        flood.latencies.len() as f64 / flood_duration.as_secs_f64()
    );
    println!("milliseconds until accepted    50 %     99 %      max");
    let calms = [("calm before", before.latencies), ("calm during", during.latencies), ("calm after", after.latencies)];
    for (name, mut latencies) in [("flood", flood.latencies)].into_iter().chain(calms) {
        latencies.sort_unstable();
        let part = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!("{name:<24} {:>10.1} {:>8.1} {:>8.1}", part(0.5), part(0.99), part(1.0));
    }
    println!("resident at most: {} MB, at the end: {} MB", peak >> 20, server.resident_bytes() >> 20);
    println!("seconds to an answer in the calm room, whose guild's models are those of the flood:");
    println!("before {:.2?}, during {:.2?}, after {:.2?}", before.answered, during.answered, after.answered);
    println!("seconds from the flood's end until Aria answered in ten of its rooms, one after the other: {recovered:.1?}");
    for name in ["tertulia_pool_shed_total", "tertulia_pool_timeouts_total", "tertulia_actor_restarts_total"] {
        let counted: BTreeMap<_, _> = server.measured(name).await.into_iter().filter(|(_, count)| *count > 0.0).collect();
        println!("{name}: {counted:?}");
    }
    assert!(peak < MEMORY_LIMIT, "{peak} bytes");
    assert_eq!(flood.unexplained, 0, "every refusal has Retry-After");
    assert!(flood.statuses.keys().all(|status| [202, 429, 503].contains(status)), "{:?}", flood.statuses);
    assert!(shed(&server, "lull").await > 0.0, "the models were not overloaded, so nothing was tested");
    assert_eq!(shed(&server, "direct_address").await, 0.0, "questions about addressed messages were shed");
    server.stop().await;
}

/// `cargo test --release --test it -- --ignored --nocapture thousands_of` prints what they cost.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn thousands_of_stalled_watchers_are_disconnected_and_cost_little() {
    const WATCHERS: usize = 2_000;
    const PERMITTED: usize = 1_900;
    let premises = flooded_premises().await.with("server.max_live", &PERMITTED.to_string());
    let premises = premises.with("server.stall_timeout_secs", "5").with("server.live_ping_secs", "2");
    let server = premises.with("telemetry.log", "warn,tertulia::adapters::console::live=debug").start().await;
    open(&server, "calm", "calm").await;
    let before = server.resident_bytes();
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
    let during = server.resident_bytes();
    println!(
        "{} watch, refused: {refused:?}; {} KB each",
        watchers.len(),
        (during.saturating_sub(before) / PERMITTED as u64) >> 10
    );
    assert_eq!((watchers.len(), refused.get(&503).copied()), (PERMITTED, Some(WATCHERS - PERMITTED)));

    let long = "so it goes ".repeat(600);
    let (mut peak, mut latencies) = (0, Vec::new());
    for number in 0..150 {
        let began = Instant::now();
        server.say("calm", "Ana", &format!("{number} {long}")).await;
        latencies.push(began.elapsed());
        peak = peak.max(server.resident_bytes());
    }
    let all_sent = Instant::now();
    server.logs_many("a live view ended", PERMITTED).await;

    latencies.sort_unstable();
    println!(
        "milliseconds until accepted meanwhile: 50 % {:.1?}, max {:.1?}",
        latencies[latencies.len() / 2],
        latencies[latencies.len() - 1]
    );
    println!(
        "resident at most: {} MB; all are gone after {:.1?}: {} MB",
        peak >> 20,
        all_sent.elapsed(),
        server.resident_bytes() >> 20
    );
    assert!(peak < MEMORY_LIMIT, "{peak} bytes");
    // A new watcher is accepted and sees new messages.
    let mut watch = server.watch("calm", None).await;
    server.say("calm", "Ana", "and now?").await;
    watch.event("message").await;
    drop(watchers);
    server.stop().await;
}

/// A server without limits per client address. Its models answer slowly, with YES where Aria is addressed.
async fn flooded_premises() -> Premises {
    let answers = Arc::new(Mutex::new(paced(ANSWER_PACE)));
    let answer = async move |Json(asked): Json<Value>| {
        answers.lock().await.tick().await;
        let is_addressed = asked.to_string().contains("directly addressed");
        let words = if is_addressed { "They mean me.\nYES" } else { "They talk among themselves.\nNO" };
        Json(json!({ "choices": [{ "message": { "role": "assistant", "content": words }, "finish_reason": "stop" }] }))
    };
    let model = format!("{}/v1", serve(Router::new().fallback(answer)).await);
    let wide = ["server.max_live", "server.max_live_per_address", "server.max_connections"];
    let premises = wide.into_iter().fold(Premises::new().without_limits(), |premises, limit| premises.with(limit, "10000"));
    let premises = premises.with_companion("aria", QUICK).with("models.main.base_url", &model);
    premises.with("models.main.model", "slow").with("telemetry.log", "warn")
}

fn paced(pace: Duration) -> Interval {
    let mut paced = interval(pace);
    paced.set_missed_tick_behavior(MissedTickBehavior::Delay);
    paced
}

fn talk_room(number: usize) -> String {
    format!("talk-{number}")
}

fn address_room(number: usize) -> String {
    format!("address-{number}")
}

/// The results of one client, or of all.
#[derive(Default)]
struct Client {
    statuses: BTreeMap<u16, usize>,
    latencies: Vec<Duration>,
    /// Refusals without `Retry-After`.
    unexplained: usize,
}

impl Client {
    fn add(&mut self, other: Self) {
        other.statuses.into_iter().for_each(|(status, times)| *self.statuses.entry(status).or_default() += times);
        self.latencies.extend(other.latencies);
        self.unexplained += other.unexplained;
    }
}

/// Sends one message after the other, each to another room, every eighth to Aria.
async fn talk(url: String, client: usize, is_over: Arc<AtomicBool>) -> Client {
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let (mut seen, mut pace) = (Client::default(), paced(PACE));
    for number in 0_usize.. {
        pace.tick().await;
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let at = client * 31 + number * 7;
        let (room, address) =
            if number % 8 == 0 { (address_room(at % ADDRESS_ROOMS), "aria, ") } else { (talk_room(at % TALK_ROOMS), "") };
        let text = format!("{address}{number} {}", "and so on ".repeat(20).trim_end());
        let began = Instant::now();
        let sent =
            http.post(format!("{url}/api/rooms/{room}/messages")).json(&json!({ "from": format!("P{client}"), "text": text }));
        let response = sent.send().await.expect("every request is answered");
        seen.latencies.push(began.elapsed());
        *seen.statuses.entry(response.status().as_u16()).or_default() += 1;
        let is_explained = response.status() == StatusCode::ACCEPTED || response.headers().contains_key("retry-after");
        seen.unexplained += usize::from(!is_explained);
    }
    seen
}

/// Measurements in the calm room.
#[derive(Default)]
struct Calm {
    /// The time until each message was accepted.
    latencies: Vec<Duration>,
    /// The time until each message to Aria was answered.
    answered: Vec<Duration>,
}

impl Calm {
    /// Sends a hundred messages and then one to Aria, `times` times.
    async fn measure(server: &Server, times: usize) -> Self {
        let (mut calm, mut pace) = (Self::default(), paced(CALM_PACE));
        for _ in 0..times {
            for number in 0..100 {
                pace.tick().await;
                let began = Instant::now();
                server.say("calm", "Ana", &format!("number {number}")).await;
                calm.latencies.push(began.elapsed());
            }
            calm.answered.push(time_to_answer(server, "calm").await);
        }
        calm
    }

    fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.answered.extend(other.answered);
    }
}

/// Addresses Aria in a room. Returns the time until her statement.
async fn time_to_answer(server: &Server, room: &str) -> Duration {
    let mut watch = server.watch(room, None).await;
    let began = Instant::now();
    let seq = server.say(room, "Ana", "aria, what do you say?").await;
    let decided = |event: &Value| event["decision"] == "YES" && event["seq"].as_u64().is_some_and(|at| at > seq);
    watch.event_that("decision", decided).await;
    watch.event("statement").await;
    began.elapsed()
}

/// The number of questions of this priority that were shed.
async fn shed(server: &Server, priority: &str) -> f64 {
    let counted = server.measured("tertulia_pool_shed_total").await;
    let label = format!("pool_priority=\"{priority}\"");
    assert!(counted.keys().any(|labels| labels.contains(&label)), "{counted:?}");
    counted.iter().filter(|(labels, _)| labels.contains(&label)).map(|(_, count)| count).sum()
}

async fn open(server: &Server, room: &str, guild: &str) {
    let plan = json!({ "guild": guild, "companions": ["aria"] });
    server.done(Method::PUT, &format!("/api/rooms/{room}"), Some(plan)).await;
}
