//! Measures what it costs when actors die under load, each thing beside the same without a death, in the same run:
//!
//! * how long a room is out of order: from the kill until the next message is accepted, and until the decision on it is on record;
//! * how long what was in hand takes: from the kill of a reply, a delivery or a turn-taking manager until the words are on record;
//! * how long a guild takes to accept messages and to decide on them, beside one that dies again and again.
//!
//! `cargo bench --bench restart -- [KILLS] [sled]`: 200 kills of each kind unless told otherwise; in memory, or in a sled store in a
//! temporary folder. The model answers at once, but for what has to be in hand: that takes 20 ms, and so does a look for a part that was sent.
//! All of it takes three minutes.

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
use tertulia::actors::service::ActorBackend;
use tertulia::actors::service::rooms::load_rooms;
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::store::sled::{OpenOptions, SledStore};
use tertulia::ports::backend::Backend;
use tertulia::ports::backend::live::LiveStream;
use tertulia::telemetry::instruments::Instruments;
use tertulia::telemetry::recorder::Recorder;
use tokio::time::{Instant, sleep, timeout};

/// The room in which is measured, and those that are busy meanwhile: some of its guild, some of another.
const MEASURED: &str = "lobby";
const BUSY: [(&str, &str); 4] = [("den", "home"), ("attic", "home"), ("yard", "away"), ("barn", "away")];
/// Between two messages in a busy room.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Between two attempts to be accepted.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);
/// Whoever takes longer counts with this.
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
    directory.find(key).expect("whoever is to be killed is there").kill();
}

/// A whole system; each kill gets its own, so that no restart is held back by those before.
struct World {
    backend: Arc<ActorBackend>,
    context: ActorContext,
    root: ActorRef<RootMessage>,
    live: LiveStream,
    busy: tokio::task::JoinSet<()>,
    /// Gone when the world is.
    _folder: Option<tempfile::TempDir>,
}

impl World {
    async fn new(on_disk: bool) -> anyhow::Result<Self> {
        Self::with(on_disk, Ok, &["aria"]).await
    }

    /// A world with whatever `furnish` changes about what its actors work with, and these companions in the room that is measured.
    async fn with(
        on_disk: bool,
        furnish: impl FnOnce(ActorContext) -> anyhow::Result<ActorContext>,
        companions: &[&str],
    ) -> anyhow::Result<Self> {
        if on_disk {
            let folder = tempfile::tempdir()?;
            let instruments = Instruments::unread();
            let options =
                OpenOptions { accept_loss: false, deadline: PATIENCE, cache_bytes: 16 << 20, new_id: 1, instruments, held: None };
            let store = Arc::new(SledStore::open(&folder.path().join("data"), &options)?);
            let context = furnish(context(store.clone(), Recorder::silent())?)?;
            Self::on(context.clone(), ActorBackend::new(context, store), companions, Some(folder)).await
        } else {
            let store = Arc::new(MemoryStore::new());
            let context = furnish(context(store.clone(), Recorder::silent())?)?;
            Self::on(context.clone(), ActorBackend::new(context, store), companions, None).await
        }
    }

    async fn on(
        context: ActorContext,
        backend: ActorBackend,
        companions: &[&str],
        folder: Option<tempfile::TempDir>,
    ) -> anyhow::Result<Self> {
        let (root, _) = Actor::spawn(None, Root, context.clone()).await?;
        load_rooms(&context, &[]).await?;
        root.cast(RootMessage::WakePending)?;
        let backend = Arc::new(backend);
        for (id, guild) in BUSY {
            let plan = serde_json::from_value(json!({ "guild": guild, "companions": ["aria"] }))?;
            backend.put_room(&room(id), plan).await?;
        }
        let plan = serde_json::from_value(json!({ "guild": "home", "companions": companions }))?;
        backend.put_room(&room(MEASURED), plan).await?;
        let live = backend.live(&room(MEASURED), None).await?;
        let mut world = Self { backend, context, root, live, busy: tokio::task::JoinSet::new(), _folder: folder };
        world.decided("before").await?;
        for (id, _) in BUSY {
            world.talk(id, BUSY_PAUSE);
        }
        Ok(world)
    }

    /// Has somebody talk to Aria in a room without end.
    fn talk(&mut self, id: &'static str, pause: Duration) {
        let backend = self.backend.clone();
        self.busy.spawn(async move {
            for count in 0.. {
                // One that is refused while an actor is down is not missed.
                let _ = say(&backend, id, &format!("aria, {count}")).await;
                sleep(pause).await;
            }
        });
    }

    /// The next event of the room that is measured.
    async fn event(&mut self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.live.next().await.context("nobody tells any more")??.json)?)
    }

    /// Says something to Aria until it is accepted, and waits until she decided: how long either took, from now.
    async fn decided(&mut self, text: &str) -> anyhow::Result<(Duration, Duration)> {
        let began = Instant::now();
        let text = format!("aria, {text}");
        while say(&self.backend, MEASURED, &text).await.is_err() {
            anyhow::ensure!(began.elapsed() < PATIENCE, "nothing is accepted");
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
        // At another moment of the load each time.
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
