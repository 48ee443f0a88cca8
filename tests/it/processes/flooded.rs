//! More than the server can serve: it stays within its memory, says what it refuses, sheds who was not addressed before who was, serves other
//! guilds meanwhile, and is well again soon after.
//!
//! These are long forms that print figures. What must hold whatever the machine is asserted, times are not. Nothing sleeps: ticks are the pace
//! of the load alone, and whatever is waited for is an event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Json, Router};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::harness::{Premises, QUICK, Server, chosen};

/// Who talks without end, each this often at most.
const CLIENTS: usize = 200;
const PACE: Duration = Duration::from_millis(5);
/// Where they talk among themselves, and where they address Aria: less than may wait for her model at once.
const TALKED_IN: usize = 400;
const ADDRESSED_IN: usize = 24;
const MAY_WAIT: &str = "64";
/// For how long: so many seconds unless `FLOOD_SECS` says otherwise.
const SECS: u64 = 20;
/// How often the models give an answer: much less often than they are asked.
const AN_ANSWER: Duration = Duration::from_millis(20);
/// How often something is said in the calm room.
const CALM_PACE: Duration = Duration::from_millis(20);
/// Far above what the server needs for this, far below what it would take if anything in it were without a bound.
const MOST_MEMORY: u64 = 1 << 30;

/// `cargo test --release --test it -- --ignored --nocapture a_flood` prints what it was like; without `--release` it holds as well.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn a_flood_is_borne_within_bounds_and_others_are_served_meanwhile() {
    let server = flooded_premises().await.with("models.pool.queue_capacity", MAY_WAIT).start().await;
    for room in (0..TALKED_IN).map(talked_in).chain((0..ADDRESSED_IN).map(addressed_in)) {
        open(&server, &room, "flood").await;
    }
    open(&server, "calm", "calm").await;
    let before = Calm::watched(&server, 2).await;
    println!("resident before: {} MB", server.member() >> 20);

    let over = Arc::new(AtomicBool::new(false));
    let mut clients: JoinSet<Client> = (0..CLIENTS).map(|client| talk(server.url.clone(), client, over.clone())).collect();
    let (mut during, mut most) = (Calm::default(), 0);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(chosen("FLOOD_SECS", SECS)) {
        during.add(Calm::watched(&server, 1).await);
        most = most.max(server.member());
    }
    let took = began.elapsed();
    over.store(true, Ordering::Relaxed);
    let mut flood = Client::default();
    while let Some(client) = clients.join_next().await {
        flood.add(client.expect("it is well"));
    }
    let ended = Instant::now();
    for room in (0..10).map(|number| talked_in(number * TALKED_IN / 10)) {
        answered(&server, &room).await;
    }
    let recovered = ended.elapsed();
    let after = Calm::watched(&server, 2).await;

    println!("answers by status: {:?}; {:.0} a second", flood.statuses, flood.took.len() as f64 / took.as_secs_f64());
    println!("milliseconds until accepted    50 %     99 %      max");
    let calms = [("calm before", before.took), ("calm during", during.took), ("calm after", after.took)];
    for (name, mut took) in [("flood", flood.took)].into_iter().chain(calms) {
        took.sort_unstable();
        let part = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        println!("{name:<24} {:>10.1} {:>8.1} {:>8.1}", part(0.5), part(0.99), part(1.0));
    }
    println!("resident at most: {} MB, at the end: {} MB", most >> 20, server.member() >> 20);
    println!("seconds to an answer in the calm room, whose guild's models are those of the flood:");
    println!("before {:.2?}, during {:.2?}, after {:.2?}", before.answered, during.answered, after.answered);
    println!("seconds from the flood's end until Aria answered in ten of its rooms, one after the other: {recovered:.1?}");
    for name in ["tertulia_pool_shed_total", "tertulia_pool_timeouts_total", "tertulia_actor_restarts_total"] {
        let counted: BTreeMap<_, _> = server.measured(name).await.into_iter().filter(|(_, count)| *count > 0.0).collect();
        println!("{name}: {counted:?}");
    }
    assert!(most < MOST_MEMORY, "{most} bytes");
    assert_eq!(flood.unexplained, 0, "a refusal says when to come back");
    assert!(flood.statuses.keys().all(|status| [202, 429, 503].contains(status)), "{:?}", flood.statuses);
    assert!(shed(&server, "lull").await > 0.0, "there was too much for the models, or nothing was tried");
    assert_eq!(shed(&server, "direct_address").await, 0.0, "who addressed her was sent away before others");
    server.stop().await;
}

/// `cargo test --release --test it -- --ignored --nocapture thousands_of` prints what they cost.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute"]
async fn thousands_of_watchers_who_do_not_read_are_let_go_and_cost_little() {
    const WATCHERS: usize = 2_000;
    const PLACES: usize = 1_900;
    let premises = flooded_premises().await.with("server.max_live", &PLACES.to_string());
    let premises = premises.with("server.stall_timeout_secs", "5").with("server.live_ping_secs", "2");
    let server = premises.with("telemetry.log", "warn,tertulia::adapters::console::live=debug").start().await;
    open(&server, "calm", "calm").await;
    let empty = server.member();
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
    let watched = server.member();
    println!("{} watch, refused: {refused:?}; {} KB each", watchers.len(), (watched.saturating_sub(empty) / PLACES as u64) >> 10);
    assert_eq!((watchers.len(), refused.get(&503).copied()), (PLACES, Some(WATCHERS - PLACES)));

    let long = "so it goes ".repeat(600);
    let (mut most, mut took) = (0, Vec::new());
    for number in 0..150 {
        let began = Instant::now();
        server.say("calm", "Ana", &format!("{number} {long}")).await;
        took.push(began.elapsed());
        most = most.max(server.member());
    }
    let said = Instant::now();
    server.logs_many("a live view ended", PLACES).await;

    took.sort_unstable();
    println!("milliseconds until accepted meanwhile: 50 % {:.1?}, max {:.1?}", took[took.len() / 2], took[took.len() - 1]);
    println!("resident at most: {} MB; all are gone after {:.1?}: {} MB", most >> 20, said.elapsed(), server.member() >> 20);
    assert!(most < MOST_MEMORY, "{most} bytes");
    // A new one finds a place and sees what is said.
    let mut watch = server.watch("calm", None).await;
    server.say("calm", "Ana", "and now?").await;
    watch.event("message").await;
    drop(watchers);
    server.stop().await;
}

/// A server without the limits that hold one address back, whose models answer rarely: YES to whoever addresses Aria.
async fn flooded_premises() -> Premises {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let model = format!("http://{}/v1", listener.local_addr().expect("bound"));
    let answers = Arc::new(Mutex::new(paced(AN_ANSWER)));
    let answer = async move |Json(asked): Json<Value>| {
        answers.lock().await.tick().await;
        let is_addressed = asked.to_string().contains("directly addressed");
        let words = if is_addressed { "They mean me.\nYES" } else { "They talk among themselves.\nNO" };
        Json(json!({ "choices": [{ "message": { "role": "assistant", "content": words }, "finish_reason": "stop" }] }))
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
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

fn talked_in(number: usize) -> String {
    format!("talk-{number}")
}

fn addressed_in(number: usize) -> String {
    format!("address-{number}")
}

/// What one client saw, or all.
#[derive(Default)]
struct Client {
    statuses: BTreeMap<u16, usize>,
    took: Vec<Duration>,
    /// Refusals without `Retry-After`.
    unexplained: usize,
}

impl Client {
    fn add(&mut self, other: Self) {
        other.statuses.into_iter().for_each(|(status, times)| *self.statuses.entry(status).or_default() += times);
        self.took.extend(other.took);
        self.unexplained += other.unexplained;
    }
}

/// Says one thing after the other, each in another room, every eighth to Aria.
async fn talk(url: String, client: usize, over: Arc<AtomicBool>) -> Client {
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let (mut seen, mut pace) = (Client::default(), paced(PACE));
    for number in 0_usize.. {
        pace.tick().await;
        if over.load(Ordering::Relaxed) {
            break;
        }
        let at = client * 31 + number * 7;
        let (room, whom) =
            if number % 8 == 0 { (addressed_in(at % ADDRESSED_IN), "aria, ") } else { (talked_in(at % TALKED_IN), "") };
        let text = format!("{whom}{number} {}", "and so on ".repeat(20).trim_end());
        let began = Instant::now();
        let sent =
            http.post(format!("{url}/api/rooms/{room}/messages")).json(&json!({ "from": format!("P{client}"), "text": text }));
        let response = sent.send().await.expect("every request is answered");
        seen.took.push(began.elapsed());
        *seen.statuses.entry(response.status().as_u16()).or_default() += 1;
        let is_explained = response.status() == StatusCode::ACCEPTED || response.headers().contains_key("retry-after");
        seen.unexplained += usize::from(!is_explained);
    }
    seen
}

/// How the calm room fares.
#[derive(Default)]
struct Calm {
    /// How long each message took to be accepted.
    took: Vec<Duration>,
    /// How long each address took to be answered.
    answered: Vec<Duration>,
}

impl Calm {
    /// Something is said there a hundred times, and then Aria is addressed; so often.
    async fn watched(server: &Server, times: usize) -> Self {
        let (mut calm, mut pace) = (Self::default(), paced(CALM_PACE));
        for _ in 0..times {
            for number in 0..100 {
                pace.tick().await;
                let began = Instant::now();
                server.say("calm", "Ana", &format!("number {number}")).await;
                calm.took.push(began.elapsed());
            }
            calm.answered.push(answered(server, "calm").await);
        }
        calm
    }

    fn add(&mut self, other: Self) {
        self.took.extend(other.took);
        self.answered.extend(other.answered);
    }
}

/// Addresses Aria in a room: how long until she has said something to it.
async fn answered(server: &Server, room: &str) -> Duration {
    let mut watch = server.watch(room, None).await;
    let began = Instant::now();
    let seq = server.say(room, "Ana", "aria, what do you say?").await;
    let decided = |event: &Value| event["decision"] == "YES" && event["seq"].as_u64().is_some_and(|at| at > seq);
    watch.event_that("decision", decided).await;
    watch.event("statement").await;
    began.elapsed()
}

/// Questions of this priority that were shed.
async fn shed(server: &Server, priority: &str) -> f64 {
    let counted = server.measured("tertulia_pool_shed_total").await;
    let label = format!("pool_priority=\"{priority}\"");
    assert!(counted.keys().any(|labels| labels.contains(&label)), "{counted:?}");
    counted.iter().filter(|(labels, _)| labels.contains(&label)).map(|(_, count)| count).sum()
}

async fn open(server: &Server, room: &str, guild: &str) {
    let plan = json!({ "guild": guild, "companions": ["aria"] });
    let (status, body) = server.ask(Method::PUT, &format!("/api/rooms/{room}"), Some(plan)).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
}
