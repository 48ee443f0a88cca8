//! What every actor of one system works with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::actors::erasure::rewrite_locks::RewriteLocks;
use crate::actors::membership::memberships::{CompanionSet, Memberships};
use crate::actors::membership::opt_outs::OptOuts;
use crate::actors::models::{Models, Pool};
use crate::actors::runtime::actor_keys::PoolKey;
use crate::actors::runtime::directory::Directory;
use crate::actors::runtime::hub::Hub;
use crate::actors::runtime::in_flight::RecentHangs;
use crate::ports::chat_platform::Platforms;
use crate::ports::clock::Clock;
use crate::ports::gateway::Gateways;
use crate::ports::rng::Rng;
use crate::ports::store::Store;
use crate::settings::Settings;
use crate::telemetry::recorder::Recorder;

/// What every actor works with. Cheap to clone.
#[derive(Clone)]
pub struct ActorContext {
    /// Where everything is kept. Only the writer writes.
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    pub directory: Directory,
    pub hub: Hub,
    /// Where people talk, apart from the console.
    pub platforms: Platforms,
    /// Those of them that are heard over connections of their own.
    pub gateways: Gateways,
    pub pool: Pool,
    pub recorder: Recorder,
    pub settings: Arc<Settings>,
    pub memberships: Memberships,
    /// Who is not to be heard.
    pub opt_outs: OptOuts,
    /// Whose turn it is to change words that are on record.
    pub rewrite_locks: RewriteLocks,
    /// Which channels have to look for what they hung over.
    pub hung: RecentHangs,
    /// Whether the last attempt to compact the store failed, or found no room: nobody knows then when erased words leave its file.
    pub compaction_failed: Arc<AtomicBool>,
    /// Called when the store can take no more: the process has to end, and begin anew.
    pub store_failed: Arc<dyn Fn(String) + Send + Sync>,
}

/// What a context cannot do without: everything else has a default.
pub struct Environment {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub rng: Arc<dyn Rng>,
    pub models: Models,
    pub recorder: Recorder,
    pub settings: Arc<Settings>,
    /// The companions that there are.
    pub companions: CompanionSet,
}

impl ActorContext {
    /// What actors work with in this environment: without platforms, with nobody in it yet. A store that fails is only told of in the log.
    pub fn new(environment: Environment) -> Self {
        let Environment { store, clock, rng, models, recorder, settings, companions } = environment;
        let directory = Directory::new();
        let finder = directory.clone();
        Self {
            store,
            clock,
            rng,
            pool: Pool::new(&settings.models, models, move || finder.find(&PoolKey())),
            directory,
            hub: Hub::new(),
            platforms: Platforms::default(),
            gateways: Gateways::default(),
            memberships: Memberships::new(companions, settings.companion_defaults.clone(), recorder.instruments().clone()),
            recorder,
            settings,
            opt_outs: OptOuts::default(),
            rewrite_locks: RewriteLocks::default(),
            hung: RecentHangs::default(),
            compaction_failed: Arc::default(),
            store_failed: Arc::new(|detail| tracing::error!(detail, "the store takes no more")),
        }
    }
}
