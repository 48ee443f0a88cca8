//! What every actor of one system works with.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::actors::erasure::turns::Turns;
use crate::actors::membership::ignored::Ignored;
use crate::actors::membership::residents::Residents;
use crate::actors::models::Pool;
use crate::actors::runtime::directory::Directory;
use crate::actors::runtime::hub::Hub;
use crate::actors::runtime::in_hand::HungBefore;
use crate::ports::chance::Chance;
use crate::ports::chat_platform::Platforms;
use crate::ports::clock::Clock;
use crate::ports::gateway::Gateways;
use crate::ports::store::Store;
use crate::settings::Settings;
use crate::telemetry::recorder::Recorder;

/// What every actor works with. Cheap to clone.
#[derive(Clone)]
pub struct Kit {
    /// Where everything is kept. Only the scribe writes.
    pub store: Arc<dyn Store>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// What nobody should foresee.
    pub chance: Arc<dyn Chance>,
    /// Where everyone is.
    pub directory: Directory,
    /// Whoever watches.
    pub hub: Hub,
    /// Where people talk, apart from the console.
    pub platforms: Platforms,
    /// Those of them that are heard over connections of their own.
    pub gateways: Gateways,
    /// The models.
    pub pool: Pool,
    /// Spans.
    pub recorder: Recorder,
    /// The rules.
    pub settings: Arc<Settings>,
    /// Who lives where.
    pub residents: Residents,
    /// Who is not to be heard.
    pub ignored: Ignored,
    /// Whose turn it is to change words that are on record.
    pub rewriting: Turns,
    /// Which channels have to look for what they hung over.
    pub hung: HungBefore,
    /// Whether the last attempt to compact the store failed, or found no room: nobody knows then when erased words leave its file.
    pub compaction_failed: Arc<AtomicBool>,
    /// Called when the store can take no more: the process has to end, and begin anew.
    pub store_failed: Arc<dyn Fn(String) + Send + Sync>,
}
