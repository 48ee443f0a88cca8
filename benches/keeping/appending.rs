//! Messages appended by the writer, without channels that handle them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ractor::{Actor, ActorRef};
use secrecy::SecretString;
use tertulia::actors::messages::reply::Reply;
use tertulia::actors::messages::writer::{Accept, Accepted, Refused, Request, WriterMessage};
use tertulia::actors::runtime::context::ActorContext;
use tertulia::actors::writer::{Arguments, Bounds, Writer};
use tertulia::adapters::store::Identity;
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::store::postgres::PostgresStore;
use tertulia::adapters::store::sled::{OpenOptions, SledStore};
use tertulia::domain::event::Event;
use tertulia::domain::message::{Author, Message, Role};
use tertulia::journal::channel_key::ChannelKey;
use tertulia::ports::store::Store;
use tertulia::telemetry::instruments::Instruments;
use tertulia::telemetry::metrics::Metrics;
use tertulia::telemetry::recorder::Recorder;
use tokio::time::Instant;

use super::spread;
use super::system::context;

/// Rooms that the messages are for.
const ROOMS: usize = 100;
/// The duration of each measurement.
const SPAN: Duration = Duration::from_secs(2);

/// The variable with the URL of an empty PostgreSQL database. Without it, none is measured.
const URL: &str = "TERTULIA_BENCH_POSTGRES";

/// Where messages are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    OnDisk,
    InPostgres,
    InMemory,
}

/// A way to store messages.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    kept: Kept,
    /// The maximum number of batches in a group.
    group: usize,
    /// Messages in flight.
    width: usize,
}

const WAYS: [Way; 9] = [
    Way { name: "in groups", kept: Kept::OnDisk, group: 1_024, width: 1 },
    Way { name: "in groups", kept: Kept::OnDisk, group: 1_024, width: 16 },
    Way { name: "in groups", kept: Kept::OnDisk, group: 1_024, width: 256 },
    Way { name: "a commit per message", kept: Kept::OnDisk, group: 1, width: 16 },
    Way { name: "a commit per message", kept: Kept::OnDisk, group: 1, width: 256 },
    Way { name: "in groups, in PostgreSQL", kept: Kept::InPostgres, group: 1_024, width: 1 },
    Way { name: "in groups, in PostgreSQL", kept: Kept::InPostgres, group: 1_024, width: 16 },
    Way { name: "in groups, in PostgreSQL", kept: Kept::InPostgres, group: 1_024, width: 256 },
    Way { name: "in groups, in memory", kept: Kept::InMemory, group: 1_024, width: 256 },
];

pub async fn measure(rounds: usize) -> anyhow::Result<()> {
    println!("storing messages, median of {rounds} rounds (least – most)");
    println!("{:<24} {:>10} {:>28} {:>28} {:>20}", "", "in flight", "messages/s", "latency, µs, 50 %", "per commit");
    let url = std::env::var(URL).ok().map(SecretString::from);
    let ways = WAYS.into_iter().filter(|way| way.kept != Kept::InPostgres || url.is_some());
    let mut figures: [(Vec<f64>, Vec<f64>, Vec<f64>); WAYS.len()] = Default::default();
    for _ in 0..rounds {
        for (way, (rates, times, groups)) in ways.clone().zip(&mut figures) {
            let (rate, micros, group) = append(way, url.as_ref()).await?;
            rates.push(rate);
            times.push(micros);
            groups.push(group);
        }
    }
    for (way, (rates, times, groups)) in ways.zip(figures) {
        println!("{:<24} {:>10} {:>28} {:>28} {:>20}", way.name, way.width, spread(rates), spread(times), spread(groups));
    }
    Ok(())
}

/// Messages per second, the median latency in microseconds, and messages per commit.
async fn append(way: Way, url: Option<&SecretString>) -> anyhow::Result<(f64, f64, f64)> {
    let folder = tempfile::tempdir()?;
    let metrics = Metrics::local();
    let store: Arc<dyn Store> = match (way.kept, url) {
        (Kept::OnDisk, _) => Arc::new(open(folder.path(), metrics.instruments())?),
        (Kept::InPostgres, Some(url)) => {
            Arc::new(PostgresStore::open(folder.path(), url, &options(metrics.instruments()), &Identity::command())?)
        }
        (Kept::InMemory, _) | (_, None) => Arc::new(MemoryStore::new()),
    };
    let recorder = Recorder::new(None, false, metrics.instruments());
    let context = ActorContext { store_failed: Arc::new(|why| eprintln!("{why}")), ..context(store.clone(), recorder)? };
    let bounds = Bounds { group_batches: way.group, ..Bounds::default() };
    let arguments = Arguments { context, deliver: Arc::new(|_, _, _| ()), bounds };
    let (writer, ended) = Actor::spawn(None, Writer, arguments).await?;
    let channel_keys: Vec<_> =
        (0..ROOMS).map(|room| ChannelKey::new(&"home".into(), &format!("console:{room}").into())).collect();
    for channel_key in &channel_keys {
        accept(&writer, channel_key).await?;
    }
    let (began, groups) = (Instant::now(), metrics.total("tertulia_journal_group_size_count", &[]));
    let number = AtomicU64::new(0);
    let one = || async {
        let number = number.fetch_add(1, Ordering::Relaxed) as usize;
        let began = Instant::now();
        accept(&writer, &channel_keys[number % ROOMS]).await.map(|_| began.elapsed())
    };
    let endless = stream::repeat_with(one).take_while(|_| std::future::ready(began.elapsed() < SPAN));
    let took: Vec<_> = endless.buffer_unordered(way.width).collect().await;
    let seconds = began.elapsed().as_secs_f64();
    let groups = metrics.total("tertulia_journal_group_size_count", &[]) - groups;
    let mut took = took.into_iter().collect::<Result<Vec<_>, _>>()?;
    took.sort_unstable();
    writer.stop(None);
    ended.await?;
    let count = took.len() as f64;
    Ok((count / seconds, took[took.len() / 2].as_secs_f64() * 1e6, count / groups))
}

/// Opens a store in this folder.
pub fn open(folder: &std::path::Path, instruments: Instruments) -> anyhow::Result<SledStore> {
    Ok(SledStore::open(folder, &options(instruments))?)
}

fn options(instruments: Instruments) -> OpenOptions {
    OpenOptions {
        accept_loss: false,
        deadline: Duration::from_secs(60),
        cache_bytes: 128 << 20,
        new_id: 1,
        instruments,
        held: None,
    }
}

async fn accept(writer: &ActorRef<WriterMessage>, channel_key: &ChannelKey) -> Result<Accepted, Refused> {
    let (reply, accepted) = Reply::awaited();
    let ana: Arc<str> = "Ana".into();
    let text = "I thought that the bread would be done by now, but nobody opened the oven since";
    let message = Message::new(Author { id: ana.clone(), name: ana, role: Role::Person }, text.into());
    let event = Event::Said { message, reply_to: None, reply: None, said_at: None };
    let accept = Accept { channel_key: channel_key.clone(), at: None, event, id: None, files: Vec::new(), reply };
    // One that is gone drops it, which answers it.
    let _ = writer.cast(WriterMessage::Request(Request::Accept(accept)));
    accepted.await.unwrap_or(Err(tertulia::actors::messages::writer::WriteError::Unknown.into()))
}
