//! Measures the cost of actors that die under load, each compared with the same without a death in the same run:
//!
//! * how long a room is unavailable: from the kill until the next message is accepted, and until the decision about it is journaled;
//! * how long work in flight takes: from the kill of a reply, a delivery or a turn-taking manager until the statement is journaled;
//! * how long a guild takes to accept messages and to decide about them, while another guild keeps dying.
//!
//! `cargo bench --bench restart -- [KILLS] [sled]`. The default is 200 kills of each kind, with a store in memory. `sled` uses a sled store in a
//! temporary folder. The model answers at once, except for work that must be in flight: that takes 20 ms, and so does looking up a part that was
//! sent. Everything takes three minutes.

#[path = "restart/beside.rs"]
mod beside;
#[path = "restart/in_flight.rs"]
mod in_flight;
#[path = "shared/system.rs"]
mod system;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use ractor::{Actor, ActorRef};
use serde_json::{Value, json};
use system::{context, millis, room, say};
use tertulia::actors::runtime::actor_keys::{
    ChannelActorKey, CompanionKey, GuildKey, GuildsKey, PoolKey, SwitchboardKey, WriterKey,
};
use tertulia::actors::runtime::context::ActorContext;
use tertulia::actors::runtime::directory::{ActorKey, Directory};
use tertulia::actors::runtime::root::{Root, RootMessage};
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::store::sled::{OpenOptions, SledStore};
use tertulia::backend;
use tertulia::backend::loading::load_rooms;
use tertulia::ports::backend::Backend;
use tertulia::ports::backend::live::{LiveStream, Watched};
use tertulia::telemetry::instruments::Instruments;
use tertulia::telemetry::recorder::Recorder;
use tokio::time::{Instant, sleep, timeout};

/// The measured room, and the rooms that are busy meanwhile: some in its guild, some in another.
const MEASURED: &str = "lobby";
const BUSY: [(&str, &str); 4] = [("den", "home"), ("attic", "home"), ("yard", "away"), ("barn", "away")];
/// The time between two messages in a busy room.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// The time between two attempts to send a message.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// The timeout. Longer times count as this.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
enum Victim {
    Nobody,
    Channel,
    Companion,
    Guild,
    Guilds,
    Writer,
    Switchboard,
    Pool,
}

impl Victim {
    const ALL: [Self; 8] =
        [Self::Nobody, Self::Channel, Self::Companion, Self::Guild, Self::Guilds, Self::Writer, Self::Switchboard, Self::Pool];

    fn kill(self, directory: &Directory) {
        let home = || "home".into();
        match self {
            Self::Nobody => {}
            Self::Channel => kill(directory, &ChannelActorKey(room(MEASURED).channel())),
            Self::Companion => kill(directory, &CompanionKey(home(), "aria".into())),
            Self::Guild => kill(directory, &GuildKey(home())),
            Self::Guilds => kill(directory, &GuildsKey()),
            Self::Writer => kill(directory, &WriterKey()),
            Self::Switchboard => kill(directory, &SwitchboardKey()),
            Self::Pool => kill(directory, &PoolKey()),
        }
    }
}

fn kill<P: ActorKey>(directory: &Directory, key: &P) {
    directory.find(key).expect("the victim is alive").kill();
}

/// A whole system. Each kill gets a new one, so that earlier restarts do not delay a restart.
struct World {
    backend: Backend,
    context: ActorContext,
    root: ActorRef<RootMessage>,
    live: LiveStream,
    busy: tokio::task::JoinSet<()>,
    /// The temporary folder, deleted with the world.
    _folder: Option<tempfile::TempDir>,
}

impl World {
    async fn new(on_disk: bool) -> anyhow::Result<Self> {
        Self::with(on_disk, Ok, &["aria"]).await
    }

    /// A world whose actor context is changed by `furnish`, with these companions in the measured room.
    async fn with(
        on_disk: bool,
        furnish: impl FnOnce(ActorContext) -> anyhow::Result<ActorContext>,
        companions: &[&str],
    ) -> anyhow::Result<Self> {
        if on_disk {
            let folder = tempfile::tempdir()?;
            let instruments = Instruments::noop();
            let options =
                OpenOptions { accept_loss: false, deadline: PATIENCE, cache_bytes: 16 << 20, new_id: 1, instruments, held: None };
            let store = Arc::new(SledStore::open(&folder.path().join("data"), &options)?);
            let context = furnish(context(store.clone(), Recorder::silent())?)?;
            Self::on(context.clone(), backend::backend(context, store), companions, Some(folder)).await
        } else {
            let store = Arc::new(MemoryStore::new());
            let context = furnish(context(store.clone(), Recorder::silent())?)?;
            Self::on(context.clone(), backend::backend(context, store), companions, None).await
        }
    }

    async fn on(
        context: ActorContext,
        backend: Backend,
        companions: &[&str],
        folder: Option<tempfile::TempDir>,
    ) -> anyhow::Result<Self> {
        let (root, _) = Actor::spawn(None, Root, context.clone()).await?;
        load_rooms(&context, &[], false).await?;
        root.cast(RootMessage::WakePending)?;
        for (id, guild) in BUSY {
            let plan = serde_json::from_value(json!({ "guild": guild, "companions": ["aria"] }))?;
            backend.rooms.put(&room(id), plan).await?;
        }
        let plan = serde_json::from_value(json!({ "guild": "home", "companions": companions }))?;
        backend.rooms.put(&room(MEASURED), plan).await?;
        let live = backend.rooms.live(Watched::Room(room(MEASURED), None)).await?;
        let mut world = Self { backend, context, root, live, busy: tokio::task::JoinSet::new(), _folder: folder };
        world.decided("before").await?;
        for (id, _) in BUSY {
            world.talk(id, BUSY_PAUSE);
        }
        Ok(world)
    }

    /// Sends messages to Aria in a room forever.
    fn talk(&mut self, id: &'static str, pause: Duration) {
        let backend = self.backend.clone();
        self.busy.spawn(async move {
            for count in 0.. {
                // A message that is refused while an actor is down does not matter.
                let _ = say(&backend, id, &format!("aria, {count}")).await;
                sleep(pause).await;
            }
        });
    }

    /// The next event of the measured room.
    async fn event(&mut self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.live.next().await.context("the live feed ended")??)?)
    }

    /// Sends a message to Aria until it is accepted, and waits for her decision. Returns both times, from now on.
    async fn decided(&mut self, text: &str) -> anyhow::Result<(Duration, Duration)> {
        let began = Instant::now();
        let text = format!("aria, {text}");
        while say(&self.backend, MEASURED, &text).await.is_err() {
            anyhow::ensure!(began.elapsed() < PATIENCE, "no message was accepted in time");
            sleep(TRY_AGAIN_AFTER).await;
        }
        let accepted = began.elapsed();
        let is_it = |event: &Value| {
            event["event"] == "decision"
                && event["messages"].as_array().is_some_and(|texts| texts.iter().any(|told| *told == *text))
        };
        while !is_it(&self.event().await?) {}
        Ok((accepted, began.elapsed()))
    }

    async fn end(mut self) {
        self.busy.shutdown().await;
        self.root.stop(None);
        let _ = self.root.get_cell().wait(None).await;
    }
}

async fn measure(victim: Victim, kills: usize, on_disk: bool) -> anyhow::Result<()> {
    let (mut accepted, mut decided, mut lost) = (Vec::new(), Vec::new(), 0);
    for kill in 0..kills {
        let mut world = World::new(on_disk).await?;
        // Kill at a different moment of the load each time.
        sleep(Duration::from_millis(20) + Duration::from_micros(kill as u64 * 137 % 10_000)).await;
        victim.kill(&world.context.directory);
        match timeout(PATIENCE, world.decided("after")).await {
            Ok(took) => {
                let (until_accepted, until_decided) = took?;
                accepted.push(until_accepted);
                decided.push(until_decided);
            }
            Err(_) => lost += 1,
        }
        world.end().await;
    }
    accepted.sort_unstable();
    decided.sort_unstable();
    let [a, b, c] = [0.5, 0.99, 1.0].map(|part| millis(&accepted, part));
    let [d, e, f] = [0.5, 0.99, 1.0].map(|part| millis(&decided, part));
    println!("{:<12} {kills:>6} {a:>9.2} {b:>9.2} {c:>9.2} {d:>11.2} {e:>9.2} {f:>9.2} {lost:>6}", format!("{victim:?}"));
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let kills = asked.iter().find_map(|argument| argument.parse().ok()).unwrap_or(200);
    let on_disk = asked.iter().any(|argument| argument == "sled");
    println!("milliseconds from the kill, with {} rooms busy, store {}", BUSY.len(), if on_disk { "sled" } else { "in memory" });
    println!("killed        kills  accepted: 50 %    99 %      max  decided: 50 %   99 %      max  never");
    for victim in Victim::ALL {
        measure(victim, kills, on_disk).await?;
    }
    in_flight::measure(kills, on_disk).await?;
    beside::measure(on_disk).await
}
