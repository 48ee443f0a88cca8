//! Measures how long a room is out of order when an actor dies under load: from the kill until the next message is accepted, and until
//! the decision on it is on record.
//!
//! `cargo bench --bench restart -- [KILLS] [sled]`: 200 kills of each kind unless told otherwise; in memory, or in a sled store in a
//! temporary folder. The model answers at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use futures_util::StreamExt as _;
use ractor::{Actor, ActorRef};
use serde_json::{Value, json};
use tertulia::actors::directory::{Directory, Place};
use tertulia::actors::house::ActorHouse;
use tertulia::actors::house::rooms::move_in;
use tertulia::actors::hub::Hub;
use tertulia::actors::kit::Kit;
use tertulia::actors::places::{ChannelPlace, CompanionPlace, GuildPlace, GuildsPlace, PoolPlace, ScribePlace, SwitchboardPlace};
use tertulia::actors::residents::Residents;
use tertulia::actors::root::{Root, RootMessage};
use tertulia::actors::side_models::{Models, Pool};
use tertulia::adapters::store::memory::MemoryStore;
use tertulia::adapters::store::sled::{OpenOptions, SledStore};
use tertulia::adapters::system::{SystemChance, SystemClock};
use tertulia::ports::house::House;
use tertulia::ports::house::live::LiveStream;
use tertulia::ports::house::room::RoomId;
use tertulia::ports::language_model::{Answer, Draft, Identity, LanguageModel, NoAnswer, Request, Usage};
use tertulia::settings::Settings;
use tertulia::settings::companion::{Companion, CompanionFile};
use tertulia::telemetry::instruments::Instruments;
use tertulia::telemetry::recorder::Recorder;
use tokio::sync::mpsc;
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
    Scribe,
    Switchboard,
    Pool,
}

impl Victim {
    const ALL: [Self; 8] =
        [Self::Nobody, Self::Channel, Self::Companion, Self::Guild, Self::Guilds, Self::Scribe, Self::Switchboard, Self::Pool];

    fn kill(self, directory: &Directory) {
        let home = || "home".into();
        match self {
            Self::Nobody => {}
            Self::Channel => kill(directory, &ChannelPlace(room(MEASURED).channel())),
            Self::Companion => kill(directory, &CompanionPlace(home(), "aria".into())),
            Self::Guild => kill(directory, &GuildPlace(home())),
            Self::Guilds => kill(directory, &GuildsPlace()),
            Self::Scribe => kill(directory, &ScribePlace()),
            Self::Switchboard => kill(directory, &SwitchboardPlace()),
            Self::Pool => kill(directory, &PoolPlace()),
        }
    }
}

fn kill<P: Place>(directory: &Directory, place: &P) {
    directory.find(place).expect("whoever is to be killed is there").kill();
}

/// Says NO, at once.
struct Instantly(Identity);

#[async_trait]
impl LanguageModel for Instantly {
    async fn ask(&self, _: &Request, _: Option<&mpsc::UnboundedSender<Draft>>) -> Result<Answer, NoAnswer> {
        let text = "Not mine.\nNO".to_owned();
        Ok(Answer { text, usage: Usage::default(), model: None, response_id: None, finish_reason: None })
    }

    fn identity(&self) -> &Identity {
        &self.0
    }
}

/// A whole system; each kill gets its own, so that no restart is held back by those before.
struct World {
    house: Arc<ActorHouse>,
    kit: Kit,
    root: ActorRef<RootMessage>,
    live: LiveStream,
    busy: tokio::task::JoinSet<()>,
    /// Gone when the world is.
    _folder: Option<tempfile::TempDir>,
}

impl World {
    async fn new(on_disk: bool) -> anyhow::Result<Self> {
        if on_disk {
            let folder = tempfile::tempdir()?;
            let instruments = Instruments::unread();
            let options = OpenOptions { accept_loss: false, deadline: PATIENCE, cache_bytes: 16 << 20, new_id: 1, instruments };
            let store = Arc::new(SledStore::open(&folder.path().join("data"), &options)?);
            let kit = kit(store.clone())?;
            Self::on(kit.clone(), ActorHouse::new(kit, store), Some(folder)).await
        } else {
            let store = Arc::new(MemoryStore::new());
            let kit = kit(store.clone())?;
            Self::on(kit.clone(), ActorHouse::new(kit, store), None).await
        }
    }

    async fn on(kit: Kit, house: ActorHouse, folder: Option<tempfile::TempDir>) -> anyhow::Result<Self> {
        let (root, _) = Actor::spawn(None, Root, kit.clone()).await?;
        move_in(&kit, &[]).await?;
        root.cast(RootMessage::WakePending)?;
        let house = Arc::new(house);
        for (id, guild) in BUSY.into_iter().chain([(MEASURED, "home")]) {
            let plan = serde_json::from_value(json!({ "guild": guild, "companions": ["aria"] }))?;
            house.put_room(&room(id), plan).await?;
        }
        let live = house.live(&room(MEASURED), None).await?;
        let mut world = Self { house, kit, root, live, busy: tokio::task::JoinSet::new(), _folder: folder };
        world.decided("before").await?;
        for (id, _) in BUSY {
            let house = world.house.clone();
            world.busy.spawn(async move {
                for count in 0.. {
                    // One that is refused while an actor is down is not missed.
                    let _ = say(&house, id, &format!("aria, {count}")).await;
                    sleep(BUSY_PAUSE).await;
                }
            });
        }
        Ok(world)
    }

    /// Says something to Aria until it is accepted, and waits until she decided: how long either took, from now.
    async fn decided(&mut self, text: &str) -> anyhow::Result<(Duration, Duration)> {
        let began = Instant::now();
        let text = format!("aria, {text}");
        while say(&self.house, MEASURED, &text).await.is_err() {
            anyhow::ensure!(began.elapsed() < PATIENCE, "nothing is accepted");
            sleep(TRY_AGAIN_AFTER).await;
        }
        let accepted = began.elapsed();
        let is_it = |event: &Value| {
            event["event"] == "decision"
                && event["messages"].as_array().is_some_and(|texts| texts.iter().any(|told| *told == *text))
        };
        while !is_it(&serde_json::from_str(&self.live.next().await.context("nobody tells any more")??.json)?) {}
        Ok((accepted, began.elapsed()))
    }

    async fn end(mut self) {
        self.busy.shutdown().await;
        self.root.stop(None);
        let _ = self.root.get_cell().wait(None).await;
    }
}

async fn say(house: &ActorHouse, id: &str, text: &str) -> anyhow::Result<()> {
    let message = serde_json::from_value(json!({ "from": "Ana", "text": text }))?;
    house.say(&room(id), message).await?;
    Ok(())
}

fn kit(store: Arc<dyn tertulia::ports::store::Store>) -> anyhow::Result<Kit> {
    // Who talks so much would be over budget.
    let generous = json!({ "gate": { "addresses_per_minute": 1_000_000 } });
    let settings = Arc::new(Settings::overlay(generous).map_err(|problems| anyhow::anyhow!("{problems}"))?);
    let model: Arc<dyn LanguageModel> =
        Arc::new(Instantly(Identity { provider: "bench".into(), model: "instant".into(), endpoint: "bench".into() }));
    let file: CompanionFile = serde_json::from_value(json!({ "id": "aria" }))?;
    let aria = Companion::from_file(file, None, &settings.companion_defaults).map_err(|_| anyhow::anyhow!("Aria is fine"))?;
    let directory = Directory::new();
    let found = directory.clone();
    Ok(Kit {
        store,
        clock: Arc::new(SystemClock),
        chance: Arc::new(SystemChance),
        pool: Pool::new(&settings.models, Models { side: model.clone(), main: model }, move || found.find(&PoolPlace())),
        directory,
        hub: Hub::new(),
        recorder: Recorder::silent(),
        residents: Residents::new(
            BTreeMap::from([(aria.id.clone(), aria)]),
            settings.companion_defaults.clone(),
            Instruments::unread(),
        ),
        settings,
        store_failed: Arc::new(|detail| eprintln!("the store failed: {detail}")),
    })
}

fn room(id: &str) -> RoomId {
    RoomId::parse(id).expect("a room's name")
}

async fn measure(victim: Victim, kills: usize, on_disk: bool) -> anyhow::Result<()> {
    let (mut accepted, mut decided, mut lost) = (Vec::new(), Vec::new(), 0);
    for kill in 0..kills {
        let mut world = World::new(on_disk).await?;
        // At another moment of the load each time.
        sleep(Duration::from_millis(20) + Duration::from_micros(kill as u64 * 137 % 10_000)).await;
        victim.kill(&world.kit.directory);
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

/// The value below which so great a part lies, in milliseconds.
fn millis(sorted: &[Duration], part: f64) -> f64 {
    let index = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(index.saturating_sub(1)).map_or(f64::NAN, |span| span.as_secs_f64() * 1e3)
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
    Ok(())
}
