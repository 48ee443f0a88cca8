//! A running system on a stored history.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use ractor::{Actor, ActorRef};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tertulia::actors::inbound::Inbound;
use tertulia::actors::runtime::context::ActorContext;
use tertulia::actors::runtime::root::{Root, RootMessage};
use tertulia::adapters::store::OpenError;
use tertulia::adapters::store::sled::{OpenOptions, SledStore};
use tertulia::backend;
use tertulia::backend::loading::load_rooms;
use tertulia::domain::message::Author;
use tertulia::ports::backend::Backend;
use tertulia::ports::clock::Clock;
use tertulia::ports::inbound_events::InboundMessage;
use tertulia::ports::store::Store;
use tertulia::ports::store::maintenance::StoreMaintenance;
use tertulia::telemetry::instruments::Instruments;
use tertulia::telemetry::metrics::Metrics;
use tertulia::telemetry::recorder::Recorder;
use tokio::time::Instant;

use super::stock::Stock;
use super::system;

/// Messages in flight.
const WIDTH: usize = 64;

pub struct World {
    pub context: ActorContext,
    pub metrics: Metrics,
    stock: Stock,
    backend: Backend,
    inbound: Inbound,
    root: ActorRef<RootMessage>,
    tree: tokio::task::JoinHandle<()>,
}

/// The cost of messages.
pub struct Took {
    /// Microseconds of the clock and of processors per message.
    pub wall: f64,
    pub processor: f64,
}

impl World {
    /// Starts a system on this store.
    pub async fn on<S: Store + StoreMaintenance>(
        store: Arc<S>,
        stock: Stock,
        clock: Option<Arc<dyn Clock>>,
    ) -> anyhow::Result<Self> {
        let metrics = Metrics::local();
        let generous = json!({ "gate": {
            "addresses_per_minute": u32::MAX, "evaluations_per_hour": u32::MAX, "guild_evaluations_per_hour": u32::MAX,
        } });
        let recorder = Recorder::new(None, false, metrics.instruments());
        let mut context = system::context_with(&stock.cast(), generous, store.clone(), recorder)?;
        if let Some(clock) = clock {
            context.clock = clock;
        }
        let (root, tree) = Actor::spawn(None, Root, context.clone()).await?;
        load_rooms(&context, &[], false).await?;
        root.cast(RootMessage::WakePending)?;
        let backend = backend::backend(context.clone(), store);
        Ok(Self { metrics, stock, backend, inbound: Inbound::new(context.clone()), context, root, tree })
    }

    /// Sends a message to each of these channels, repeats this, and waits until all messages are handled.
    pub async fn talk(&self, channels: std::ops::Range<usize>, times: usize) -> anyhow::Result<Took> {
        let (began, worked) = (Instant::now(), processor_time());
        if times == 0 {
            return Ok(Took { wall: 0.0, processor: 0.0 });
        }
        let numbers = (0..times).flat_map(|time| channels.clone().map(move |number| (time, number)));
        let saying = stream::iter(numbers).map(|(time, number)| self.say(time, number)).buffer_unordered(WIDTH);
        let said: Vec<_> = saying.collect().await;
        let count = said.len() as f64;
        said.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let looking =
            stream::iter(channels).map(|number| async move { self.backend.rooms.state(&self.stock.room(number)).await });
        let looked: Vec<_> = looking.buffer_unordered(WIDTH).collect().await;
        looked.into_iter().collect::<Result<Vec<_>, _>>()?;
        let micros = |span: Duration| span.as_secs_f64() * 1e6 / count;
        Ok(Took { wall: micros(began.elapsed()), processor: micros(processor_time() - worked) })
    }

    async fn say(&self, time: usize, number: usize) -> anyhow::Result<()> {
        let called = (time % 10 == 9).then(|| format!("name{}, ", time / 10 % self.stock.companions));
        let text = format!("{}I thought that the bread would be done by now, but nobody looked", called.unwrap_or_default());
        let message = InboundMessage::new(Author::of_name("Ana".into()), text.into());
        self.inbound.say(&self.stock.channel_key(number), message, None).await?;
        Ok(())
    }

    /// Stops the actors, and waits until the store is closed.
    pub async fn end(self) -> anyhow::Result<()> {
        let Self { context, backend, inbound, root, tree, .. } = self;
        let store = Arc::downgrade(&context.store);
        root.stop(None);
        tree.await?;
        drop((context, backend, inbound, root));
        // Actors stop asynchronously, and the last one closes the store.
        let until = Instant::now() + Duration::from_secs(10);
        while store.strong_count() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

/// Opens the store in this folder.
pub async fn open(data: &Path) -> anyhow::Result<Arc<SledStore>> {
    let options = OpenOptions {
        held: None,
        accept_loss: false,
        deadline: Duration::from_secs(600),
        cache_bytes: 128 << 20,
        new_id: 1,
        instruments: Instruments::noop(),
    };
    // A store that was just dropped may still be closing.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match SledStore::open(data, &options) {
            Err(OpenError::InUse { .. }) if Instant::now() < until => tokio::time::sleep(Duration::from_millis(5)).await,
            opened => return Ok(Arc::new(opened?)),
        }
    }
}

/// What all threads of this process have worked.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
