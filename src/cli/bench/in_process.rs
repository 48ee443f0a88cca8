//! Applies the load to a system in this process, through the inbound port that platforms use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use super::chatter::Message;
use super::figures::{Figures, STORE_SIZE};
use super::instant::Instant;
use super::load::{Outcome, Target};
use super::minutes::Monitored;
use super::{CONCURRENCY, Rooms};
use crate::actors::inbound::Speech;
use crate::actors::messages::writer::Refused;
use crate::actors::models::Models;
use crate::adapters::store::sled::disk_bytes;
use crate::cli::failure::Failure;
use crate::domain::message::{Author, Role};
use crate::journal::channel_key::ChannelKey;
use crate::ports::backend::room::RoomId;
use crate::server::apart::Apart;
use crate::settings::Loaded;
use crate::telemetry::Telemetry;
use crate::telemetry::metrics::Metrics;

pub(super) struct InProcess {
    system: Apart,
    metrics: Metrics,
    data: PathBuf,
    rooms: Vec<(RoomId, ChannelKey)>,
}

impl InProcess {
    /// Starts a system on this data folder, with budgets and model limits that never apply.
    pub(super) async fn start(mut loaded: Loaded, data: &Path, telemetry: &Telemetry) -> Result<Self, Failure> {
        let gate = &mut loaded.settings.gate;
        gate.evaluations_per_hour = u32::MAX;
        gate.guild_evaluations_per_hour = u32::MAX;
        gate.addresses_per_minute = u32::MAX;
        gate.guild_statements_per_day = u32::MAX;
        loaded.settings.models.guild_tokens_per_day = None;
        for endpoint in [&mut loaded.settings.models.side, &mut loaded.settings.models.main] {
            endpoint.max_concurrent = CONCURRENCY;
            endpoint.guild_max_concurrent = Some(CONCURRENCY);
        }
        loaded.settings.models.pool.queue_capacity = 100_000;
        let model: Arc<Instant> = Arc::default();
        let models = Models::new(model.clone(), model);
        let system = Apart::start(loaded, models, data, telemetry).await?;
        Ok(Self { system, metrics: telemetry.metrics(), data: data.to_path_buf(), rooms: Vec::new() })
    }

    pub(super) async fn create_rooms(&mut self, rooms: &Rooms) -> Result<(), Failure> {
        let backend = self.system.backend();
        let plan = |number: usize| {
            let plan = json!({ "guild": rooms.guild(number), "companions": rooms.companions(number) });
            (Rooms::name(number), serde_json::from_value(plan))
        };
        let requests = stream::iter(0..rooms.channels).map(|number| async move {
            let (name, plan) = plan(number);
            let room = RoomId::parse(&name).ok_or_else(|| Failure::Failed(format!("{name} is not a room id")))?;
            let plan = plan.map_err(|error| Failure::Failed(format!("room {name}: {error}")))?;
            backend.rooms.put(&room, plan).await?;
            let channel_key = ChannelKey::new(&rooms.guild(number).as_str().into(), &room.channel());
            Ok((room, channel_key))
        });
        let results: Vec<Result<_, Failure>> = requests.buffered(CONCURRENCY).collect().await;
        self.rooms = results.into_iter().collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Waits until every room has handled its messages.
    pub(super) async fn catch_up(&self) -> Result<(), Failure> {
        let backend = self.system.backend();
        let states = stream::iter(&self.rooms).map(|(room, _)| backend.rooms.state(room)).buffer_unordered(CONCURRENCY);
        let states: Vec<_> = states.collect().await;
        states.into_iter().try_for_each(|state| state.map(drop)).map_err(Failure::from)
    }

    pub(super) async fn stop(self) {
        self.system.stop().await;
    }
}

impl Monitored for InProcess {
    /// Reads on a blocking thread, so that the load does not wait for it.
    async fn figures(&self) -> Result<Figures, Failure> {
        let (metrics, data) = (self.metrics.clone(), self.data.clone());
        let read = move || {
            // The exposition caches the size for some seconds, so it is measured again here.
            metrics.exposition().map(|text| Figures::read(&text).with(STORE_SIZE, disk_bytes(&data).ok()))
        };
        let read = tokio::task::spawn_blocking(read).await;
        read.map_err(|error| Failure::Failed(format!("the metrics: {error}")))?.map_err(Failure::Failed)
    }
}

impl Target for InProcess {
    async fn send(&self, message: Message) -> Outcome {
        let from = Author { id: message.from.into(), name: message.from.into(), role: Role::Person };
        let mentions = message.mention.map(Arc::from).into_iter().collect();
        let speech = Speech { mentions, ..Speech::new(from, message.text) };
        match self.system.inbound().say(&self.rooms[message.room].1, speech).await {
            Ok(_) => Outcome::Accepted,
            Err(Refused::Busy { .. }) => Outcome::Refused,
            Err(_) => Outcome::Failed,
        }
    }
}
