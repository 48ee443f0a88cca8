//! One life of the process: the real actors on the simulation's ports.

use std::sync::Arc;

use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use serde_json::json;
use tokio::task::JoinHandle;

use super::calls::{self, Calls};
use super::dice::Dice;
use super::faults::FaultKind;
use super::gateway::{SimGateway, Wire};
use super::models::SimModel;
use super::people::People;
use super::plan::{CAST, Plan, lull_timeout, starts_after};
use super::platform::SimPlatform;
use super::stage::{Ending, Present, Stage, lock};
use super::store::SimStore;
use crate::actors::erasure::cleanup;
use crate::actors::erasure::note_switches::{set_across_rooms, switch};
use crate::actors::inbound::Inbound;
use crate::actors::membership::changes;
use crate::actors::membership::memberships::CompanionSet;
use crate::actors::models::Models;
use crate::actors::runtime::context::{ActorContext, Environment};
use crate::actors::runtime::root::{Root, RootMessage};
use crate::actors::runtime::startup_log;
use crate::backend::{self, loading};
use crate::domain::id::{CompanionId, GuildId};
use crate::journal::record::NoteSwitchRecord;
use crate::ports::backend::Backend;
use crate::ports::chat_platform::{ChatPlatform, Platforms};
use crate::ports::gateway::{Gateway, Gateways};
use crate::samples;
use crate::server::speech::built_in;
use crate::settings::Settings;
use crate::telemetry::fake::SpanMemory;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::recorder::Recorder;

/// What survives the process.
pub(super) struct Props {
    pub(super) stage: Arc<Stage>,
    pub(super) store: Arc<SimStore>,
    pub(super) side: Arc<SimModel>,
    pub(super) main: Arc<SimModel>,
    pub(super) platform: Arc<SimPlatform>,
    pub(super) wire: Wire,
    pub(super) people: People,
    pub(super) calls: Calls,
    /// For the first process, and for those after it.
    settings: (Arc<Settings>, Arc<Settings>),
    /// The companions that are configured at present.
    cast: Mutex<Vec<&'static str>>,
    /// Decides which redactions the process crashes in.
    pub(super) interruptions: Mutex<Dice>,
}

impl Props {
    pub(super) fn of(plan: Plan) -> Arc<Self> {
        let read = |overlay| Arc::new(samples::settings(overlay));
        let first = read(plan.settings.clone());
        let settings = (first.clone(), plan.later.clone().map_or(first, read));
        let stage = Stage::new(plan);
        Arc::new(Self {
            store: SimStore::new(stage.clone()),
            side: SimModel::new(stage.clone(), "side"),
            main: SimModel::new(stage.clone(), "main"),
            platform: SimPlatform::new(stage.clone()),
            wire: Wire::new(&stage.plan),
            people: People::default(),
            calls: Calls::default(),
            settings,
            cast: Mutex::new(CAST.iter().map(|(id, _)| *id).collect()),
            interruptions: Mutex::new(Dice::new(stage.plan.seed, "interruptions")),
            stage,
        })
    }

    /// The settings of this life. Also updates the configured companions.
    fn reload(&self) -> Arc<Settings> {
        let Stage { plan, .. } = &*self.stage;
        if self.stage.life() == 1 {
            return self.settings.0.clone();
        }
        if plan.later.is_some() {
            self.stage.reach("settings changed between two lives");
        }
        if let Some(cast) = plan.cast_later.as_ref().filter(|_| self.stage.life() == 2) {
            self.stage.reach("companions changed between two lives");
            lock(&self.cast).clone_from(cast);
        }
        self.stage.note_fault(FaultKind::CompanionSet(lock(&self.cast).clone()));
        self.settings.1.clone()
    }

    pub(super) fn is_configured(&self, companion: &str) -> bool {
        lock(&self.cast).contains(&companion)
    }

    fn cast(&self) -> CompanionSet {
        let configured = lock(&self.cast).clone();
        let companion = |(id, alias): &(&str, &str)| {
            let tier = ["very_quiet", "quiet", "average", "eager", "very_eager"][id.len() % 5];
            let lull = lull_timeout(id).map(|quiet| quiet.as_secs_f64());
            let starts_after = starts_after(id).map(|silence| silence.as_secs_f64());
            let file = json!({ "id": id, "aliases": [alias], "interjection": tier, "text_lull_timeout": lull, "starts_after": starts_after });
            (CompanionId::from(*id), samples::companion(file, &self.settings.0))
        };
        let cast = CAST.iter().filter(|(id, _)| configured.contains(id)).map(companion);
        cast.collect()
    }
}

#[derive(Clone)]
pub(super) struct Life {
    pub(super) props: Arc<Props>,
    pub(super) context: ActorContext,
    pub(super) backend: Backend,
    pub(super) root: ActorRef<RootMessage>,
    pub(super) metrics: Metrics,
}

impl Life {
    /// Starts the process as `server.rs` does. An error ends the process.
    pub(super) async fn begin(props: Arc<Props>) -> Result<(Self, JoinHandle<()>), String> {
        let (stage, settings) = (props.stage.clone(), props.reload());
        // Spans cost time, and other tests check them, so only every eighth seed records them.
        let spans = SpanMemory::new();
        let metrics = spans.metrics().clone();
        let recorder = match stage.plan.seed % 8 {
            0 => spans.recorder(true),
            _ => Recorder::new(None, false, metrics.instruments()),
        };
        let platform: Arc<dyn ChatPlatform> = props.platform.clone();
        let gateway: Arc<dyn Gateway> = Arc::new(SimGateway(props.clone()));
        let ending = stage.clone();
        let has_calls = stage.plan.rooms.iter().any(|room| room.has_call);
        let (voice_calls, effects) = calls::begin(&props);
        let mut context = ActorContext {
            platforms: Platforms::default().with(platform),
            gateways: Gateways::default().with(gateway),
            store_failed: Arc::new(move |detail| ending.end(Ending::Ended(format!("the store accepts no more: {detail}")))),
            ..ActorContext::new(Environment {
                store: props.store.clone(),
                clock: stage.clock.clone(),
                rng: stage.rng.clone(),
                models: Models::new(props.side.clone(), props.main.clone()),
                speech: built_in(),
                recorder,
                settings,
                companions: props.cast(),
            })
        };
        if has_calls {
            context.voice_calls = voice_calls;
        }
        let backend = backend::backend(context.clone(), props.store.inner.clone());
        let (root, tree) = Actor::spawn(None, Root, context.clone()).await.map_err(|error| error.to_string())?;
        let inbound = Inbound::new(context.clone());
        let store = props.store.clone();
        stage.enter(Present {
            directory: context.directory.clone(),
            backend: backend.clone(),
            inbound,
            root: root.get_cell(),
            store,
        });
        loading::load_rooms(&context, &[], false).await.map_err(|error| error.to_string())?;
        changes::resume_deletions(&context).await;
        if stage.plan.seed.is_multiple_of(2) {
            // A fault of the store may prevent it, as when a person turns notes on.
            drop(switch(&context, &GuildId::from(""), None, true).await);
            let switch = NoteSwitchRecord { on: true, ..NoteSwitchRecord::default() };
            drop(set_across_rooms(&context, &GuildId::from(""), switch, true).await);
        }
        startup_log::record_start(&context).await;
        if props.store.has_unfinished_work() {
            stage.reach("unfinished work resumed at the start");
        }
        tokio::spawn(cleanup::keep_cleaning_up(context.clone()));
        let life = Self { props, context, backend, root, metrics };
        if has_calls {
            life.connect_calls(effects);
        }
        life.root.cast(RootMessage::WakePending).map_err(|error| error.to_string())?;
        Ok((life, tree))
    }

    /// Replaces the configured companions, as a reload does.
    pub(super) fn reload_companions(&self, ids: &[&'static str]) {
        *lock(&self.props.cast) = ids.to_vec();
        self.props.stage.note_fault(FaultKind::CompanionSet(ids.to_vec()));
        if let Err(error) = loading::reload_companions(&self.context, self.props.cast()) {
            self.props.stage.violate(format!("these companions cannot be loaded: {error}"));
        }
    }
}
