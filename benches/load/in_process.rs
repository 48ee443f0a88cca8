//! Applies the load to a system in this process, through the inbound port that platforms use.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use ractor::{Actor, ActorRef};
use tertulia::actors::inbound::Inbound;
use tertulia::actors::messages::writer::Refused;
use tertulia::actors::models::Models;
use tertulia::actors::runtime::context::{ActorContext, Environment};
use tertulia::actors::runtime::root::{Root, RootMessage};
use tertulia::adapters::store::Identity;
use tertulia::adapters::store::sled::{OpenOptions, disk_bytes};
use tertulia::adapters::system::{SystemClock, SystemRng};
use tertulia::backend;
use tertulia::backend::loading::load_rooms;
use tertulia::domain::message::Author;
use tertulia::journal::channel_key::ChannelKey;
use tertulia::ports::backend::Backend;
use tertulia::ports::backend::room::RoomId;
use tertulia::ports::inbound_events::InboundMessage;
use tertulia::server::speech::built_in;
use tertulia::server::{CACHE_BYTES, open_engine};
use tertulia::settings::Loaded;
use tertulia::telemetry::Telemetry;
use tertulia::telemetry::metrics::Metrics;

use super::chatter::Message;
use super::figures::{Figures, STORE_SIZE};
use super::instant::Instant;
use super::minutes::Monitored;
use super::pace::{Outcome, Target};
use super::{CONCURRENCY, Rooms, System};

pub(super) struct InProcess {
    backend: Backend,
    inbound: Inbound,
    root: ActorRef<RootMessage>,
    tree: tokio::task::JoinHandle<()>,
    metrics: Metrics,
    data: PathBuf,
    rooms: Vec<ChannelKey>,
}

impl InProcess {
    /// Starts a system on this data folder, with budgets and model limits that never apply.
    pub(super) async fn start(loaded: Loaded, data: &Path, telemetry: &Telemetry, rooms: &Rooms) -> anyhow::Result<Self> {
        let Loaded { mut settings, companions, .. } = loaded;
        let gate = &mut settings.gate;
        gate.evaluations_per_hour = u32::MAX;
        gate.guild_evaluations_per_hour = u32::MAX;
        gate.addresses_per_minute = u32::MAX;
        gate.guild_statements_per_day = u32::MAX;
        settings.models.guild_tokens_per_day = None;
        for endpoint in [&mut settings.models.side, &mut settings.models.main] {
            endpoint.max_concurrent = CONCURRENCY;
            endpoint.guild_max_concurrent = Some(CONCURRENCY);
        }
        settings.models.pool.queue_capacity = 100_000;
        let model: Arc<Instant> = Arc::default();
        let metrics = telemetry.metrics();
        settings.storage.path = data.to_path_buf();
        let options = OpenOptions {
            accept_loss: false,
            deadline: Duration::from_secs(60),
            cache_bytes: CACHE_BYTES,
            new_id: 1,
            instruments: metrics.instruments(),
            held: None,
        };
        // With PostgreSQL, connecting waits for its answers.
        let storage = settings.storage.clone();
        let opening = move || open_engine(storage.engine, &storage, &options, &Identity::command());
        let opened = tokio::task::spawn_blocking(opening).await?.map_err(|ended| anyhow::anyhow!("{ended}"))?;
        let context = ActorContext::new(Environment {
            store: opened.store(),
            clock: Arc::new(SystemClock),
            rng: Arc::new(SystemRng),
            models: Models::new(model.clone(), model),
            speech: built_in(),
            recorder: telemetry.recorder(),
            settings: Arc::new(settings),
            companions,
        });
        let (root, tree) = Actor::spawn(None, Root, context.clone()).await?;
        load_rooms(&context, &[], false).await?;
        root.cast(RootMessage::WakePending)?;
        Ok(Self {
            backend: backend::backend(context.clone(), opened.maintenance()),
            inbound: Inbound::new(context),
            root,
            tree,
            metrics,
            data: data.to_path_buf(),
            rooms: (0..rooms.channels)
                .map(|number| Ok(ChannelKey::new(&rooms.guild(number).as_str().into(), &id(number)?.channel())))
                .collect::<anyhow::Result<_>>()?,
        })
    }

    /// Stops the actors.
    pub(super) async fn stop(self) {
        self.root.stop(None);
        // The way in which the task ended does not matter.
        let _ = self.tree.await;
    }
}

fn id(number: usize) -> anyhow::Result<RoomId> {
    RoomId::parse(&Rooms::name(number)).context("a room's name")
}

impl Monitored for InProcess {
    /// Reads on a blocking thread, so that the load does not wait for it.
    async fn figures(&self) -> anyhow::Result<Figures> {
        let (metrics, data) = (self.metrics.clone(), self.data.clone());
        let read = tokio::task::spawn_blocking(move || {
            let text = metrics.exposition().map_err(anyhow::Error::msg)?;
            Ok(Figures::read(&text).with(STORE_SIZE, disk_bytes(&data).ok()))
        });
        read.await?
    }
}

impl System for InProcess {
    async fn create(&self, rooms: &Rooms) -> anyhow::Result<()> {
        let requests = stream::iter(0..rooms.channels).map(|number| async move {
            self.backend.rooms.put(&id(number)?, serde_json::from_value(rooms.plan(number))?).await?;
            Ok(())
        });
        requests.buffer_unordered(CONCURRENCY).try_collect().await
    }

    async fn catch_up(&self, rooms: &Rooms) -> anyhow::Result<()> {
        let requests = stream::iter(0..rooms.channels).map(|number| async move {
            self.backend.rooms.state(&id(number)?).await?;
            Ok(())
        });
        requests.buffer_unordered(CONCURRENCY).try_collect().await
    }
}

impl Target for InProcess {
    async fn send(&self, message: Message) -> Outcome {
        let mentions = message.mention.map(Arc::from).into_iter().collect();
        let inbound = InboundMessage { mentions, ..InboundMessage::new(Author::of_name(message.from.into()), message.text) };
        match self.inbound.say(&self.rooms[message.room], inbound, None).await {
            Ok(_) => Outcome::Accepted,
            Err(Refused::Busy { .. }) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        }
    }
}
