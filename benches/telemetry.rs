//! The cost of telemetry: the decision path without export, with export, and with a collector that hangs or is down, in one run; then the memory of
//! the spans of ten million decisions while no collector accepts them.
//!
//! `cargo bench --bench telemetry -- [ROUNDS] [MILLIONS]`. The default is 5 rounds and 10 million decisions. A round measures every variant once, in
//! a different order each time, so that other work of the machine affects them alike.

#[path = "shared/system.rs"]
mod system;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::routing::post;
use futures_util::StreamExt as _;
use ractor::Actor;
use serde_json::{Value, json};
use system::{context, millis, room, say};
use tertulia::actors::runtime::root::{Root, RootMessage};
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::backend;
use tertulia::backend::loading::load_rooms;
use tertulia::domain::id::{ChannelId, CompanionId, GuildId, Seq, Ticket};
use tertulia::domain::moment::Moment;
use tertulia::domain::trigger::Trigger;
use tertulia::ports::backend::live::Watched;
use tertulia::settings::Settings;
use tertulia::telemetry::decisions::{self, Answer, DecisionFacts};
use tertulia::telemetry::export::ExportPlan;
use tertulia::telemetry::recorder::Recorder;
use tertulia::telemetry::trace::{InTurn, TurnTrace};
use tertulia::telemetry::turns::{self, TurnFacts};
use tertulia::telemetry::{self, Plans, Telemetry};
use tokio::time::Instant;

/// Decisions that are recorded in a row when only the recording is measured.
const RECORDED: u64 = 100_000;
/// Messages, one after the other, when the whole path is measured.
const DECIDED: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collector {
    /// Nothing is exported.
    None,
    /// Accepts everything at once.
    Quick,
    /// Accepts the connection and never answers.
    Hangs,
    /// Refuses the connection.
    Down,
}

impl Collector {
    const ALL: [Self; 4] = [Self::None, Self::Quick, Self::Hangs, Self::Down];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "no export",
            Self::Quick => "exported",
            Self::Hangs => "collector hangs",
            Self::Down => "collector down",
        }
    }
}

/// The addresses of the collectors.
struct Collectors {
    quick: SocketAddr,
    hangs: SocketAddr,
    down: SocketAddr,
}

impl Collectors {
    fn start() -> anyhow::Result<Self> {
        let bound = || TcpListener::bind("127.0.0.1:0");
        let (quick, hangs, down) = (bound()?, bound()?, bound()?.local_addr()?);
        let here = Self { quick: quick.local_addr()?, hangs: hangs.local_addr()?, down };
        std::thread::spawn(move || collect(quick));
        // The operating system accepts connections of a listener on which `accept` is never called.
        std::mem::forget(hangs);
        Ok(here)
    }

    fn telemetry(&self, to: Collector) -> anyhow::Result<Telemetry> {
        let address = match to {
            Collector::None => None,
            Collector::Quick => Some(self.quick),
            Collector::Hangs => Some(self.hangs),
            Collector::Down => Some(self.down),
        };
        let spans = address.map(|address| ExportPlan::to(format!("http://{address}/v1/traces")));
        let settings = Settings::overlay(json!({})).map_err(|problems| anyhow::anyhow!("{problems}"))?;
        let (_, telemetry) = telemetry::build(&settings.telemetry, Plans { spans, ..Plans::default() }, io::sink, false)?;
        Ok(telemetry)
    }
}

fn collect(listener: TcpListener) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a listener");
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        let router = Router::new().route("/v1/traces", post(async |_: axum::body::Bytes| ()));
        axum::serve(listener, router).await.expect("it serves");
    });
}

/// Records decisions, each with its turn. Returns nanoseconds per decision.
fn telling(recorder: &Recorder, decisions: u64) -> f64 {
    let (guild, channel, companion) = (GuildId::from("home"), ChannelId::from("console:lobby"), CompanionId::from("aria"));
    let began = Instant::now();
    for number in 0..decisions {
        let trace = TurnTrace::new(u128::from(number + 1) << 64 | u128::from(number + 1));
        let (started, ended) = (Moment::from_micros(number), Moment::from_micros(number + 500));
        let turn = InTurn { trace, message: Seq(7), guild: &guild, channel: &channel };
        let decision = DecisionFacts {
            turn: turn.clone(),
            companion: &companion,
            trigger: Trigger::Lull,
            answer: Answer::Decided { decision: "NO", reason: "model_no" },
            message_count: 4,
            check_count: 1,
            threshold: Some(9),
            vote: None,
            floor: None,
            ticket: Some(Ticket(1)),
            started,
            ended,
        };
        decisions::record(recorder, &decision);
        let turn = TurnFacts {
            turn,
            trigger: Trigger::Lull,
            outcome: "silence",
            error_type: None,
            follows: None,
            awaited_since: started,
            overhead: Duration::ZERO,
            heard_since: None,
            started,
            ended,
        };
        turns::record(recorder, &turn);
    }
    began.elapsed().as_secs_f64() * 1e9 / decisions as f64
}

/// Measures the whole system, one message after the other: from the message to the journaled decision.
async fn deciding(recorder: Recorder) -> anyhow::Result<Vec<Duration>> {
    let store = Arc::new(MemoryStore::new());
    let context = context(store.clone(), recorder)?;
    let (root, ended) = Actor::spawn(None, Root, context.clone()).await?;
    load_rooms(&context, &[], false).await?;
    root.cast(RootMessage::WakePending)?;
    let backend = backend::backend(context, store);
    let plan = serde_json::from_value(json!({ "guild": "home", "companions": ["aria"] }))?;
    backend.rooms.put(&room("lobby"), plan).await?;
    let mut live = backend.rooms.live(Watched::Room(room("lobby"), None)).await?;
    let mut took = Vec::with_capacity(DECIDED);
    for number in 0..DECIDED {
        let began = Instant::now();
        say(&backend, "lobby", &format!("aria, {number}")).await?;
        while serde_json::from_str::<Value>(&live.next().await.context("the live feed ended")??)?["event"] != "decision" {}
        took.push(began.elapsed());
    }
    root.stop(None);
    ended.await?;
    took.sort_unstable();
    Ok(took)
}

/// The median, the minimum and the maximum.
fn spread(mut measured: Vec<f64>) -> (f64, f64, f64) {
    measured.sort_by(f64::total_cmp);
    (measured[measured.len() / 2], measured[0], measured[measured.len() - 1])
}

/// Resident memory of the process in MiB. Only on Linux.
fn resident_mib() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(f64::NAN) * 4_096.0 / f64::from(1 << 20)
}

fn main() -> anyhow::Result<()> {
    let asked: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let rounds = asked.first().copied().unwrap_or(5);
    let millions = asked.get(1).copied().unwrap_or(10);
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // Log lines are formatted as in a server, and dropped.
    tracing::subscriber::set_global_default(tracing_subscriber::fmt().with_writer(io::sink).finish())?;
    let collectors = Collectors::start()?;
    let runtime = tokio::runtime::Runtime::new()?;

    let mut recording: [Vec<f64>; 4] = Default::default();
    let mut decided: [(Vec<f64>, Vec<f64>); 4] = Default::default();
    for round in 0..rounds as usize {
        for turn in 0..Collector::ALL.len() {
            let way = (round + turn) % Collector::ALL.len();
            let telemetry = collectors.telemetry(Collector::ALL[way])?;
            recording[way].push(telling(&telemetry.recorder(), RECORDED));
            let took = runtime.block_on(deciding(telemetry.recorder()))?;
            decided[way].0.push(millis(&took, 0.5) * 1e3);
            decided[way].1.push(millis(&took, 0.99) * 1e3);
            telemetry.shutdown();
        }
    }
    println!("median of {rounds} rounds (least – most)");
    println!("{:<16} {:>30} {:>32} {:>32}", "", "recording a decision, ns", "message to decision, µs, 50 %", "99 %");
    for (way, collector) in Collector::ALL.into_iter().enumerate() {
        let show = |measured: &[f64]| {
            let (middle, least, most) = spread(measured.to_vec());
            format!("{middle:.0} ({least:.0} – {most:.0})")
        };
        let (half, nearly_all) = &decided[way];
        println!("{:<16} {:>30} {:>32} {:>32}", collector.name(), show(&recording[way]), show(half), show(nearly_all));
    }

    for collector in [Collector::Down, Collector::Hangs] {
        let telemetry = collectors.telemetry(collector)?;
        let before = resident_mib();
        let mut most = before;
        for _ in 0..millions * 10 {
            telling(&telemetry.recorder(), 100_000);
            most = most.max(resident_mib());
        }
        let (ledger, spans) = (telemetry.ledger(), 2 * millions * 1_000_000);
        println!(
            "{}: {spans} spans of {millions} million decisions; memory {before:.1} MiB before, {most:.1} MiB at most; {} dropped, {} failed, {} waiting",
            collector.name(),
            ledger.dropped(),
            ledger.failed(),
            ledger.waiting(),
        );
        telemetry.shutdown();
    }
    Ok(())
}
