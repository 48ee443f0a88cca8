//! Makes of what a shard hears what the core takes in: messages, edits and deletions, in the order of each channel.
//!
//! What is told of guilds and channels is known at once (`intake/guilds.rs`). What is to be put on record goes into the lane of its channel
//! (`intake/lanes.rs`): lanes run side by side, each of them one thing after the other. An event's receipt is kept once all that follows from
//! it is on record. A channel that may have heard less than was said catches up first (`intake/catching_up.rs`).

mod catching_up;
mod conversion;
mod guilds;
mod handover;
mod lanes;
mod marks;
mod messages;
mod reader;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use self::guilds::Guilds;
use self::lanes::{Lanes, Share, Work};
use self::marks::Marks;
use self::reader::Reader;
use super::dispatch::{self, Dispatch};
use super::platform::Discord;
use super::wire;
use crate::ports::clock::Clock;
use crate::ports::gateway::Shard;
use crate::ports::inbound_events::InboundEvents;
use crate::ports::notes::Notes;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::instruments::Instruments;

/// Channels that are looked up at once, whether something was said there meanwhile.
const MAX_CONCURRENT_LOOKUPS: usize = 32;

/// Takes an interaction (INTERACTION_CREATE), at once.
pub type Interactions = Arc<dyn Fn(Box<RawValue>) + Send + Sync>;

/// What hearing needs.
pub struct Dependencies {
    /// Discord, to be asked, and to be told what is known.
    pub discord: Arc<Discord>,
    /// Who takes in what is heard.
    pub inbound_events: Arc<dyn InboundEvents>,
    /// Where it is kept how far channels were heard.
    pub notes: Arc<dyn Notes>,
    /// The time of day.
    pub clock: Arc<dyn Clock>,
    /// How much is read after a downtime.
    pub settings: Settings,
    /// Where it is counted.
    pub instruments: Instruments,
    /// Who serves interactions.
    pub interactions: Interactions,
}

/// What the shards of one bot hear with. Its tasks end when it and all its intakes are dropped.
pub struct SharedIntake {
    discord: Arc<Discord>,
    inbound_events: Arc<dyn InboundEvents>,
    instruments: Instruments,
    interactions: Interactions,
    marks: Marks,
    reader: Reader,
    lookup_permits: Semaphore,
    /// When Discord was asked for the time.
    clock_requested_at: Mutex<Option<tokio::time::Instant>>,
    lookups: Arc<guilds::Lookups>,
    background_lookups: guilds::BackgroundLookups,
    guilds_with_members: guilds::GuildsWithMembers,
    /// By shard: a session that goes on tells nothing of them again.
    guilds: Mutex<BTreeMap<Shard, Arc<Mutex<Guilds>>>>,
    /// Nothing is read after a downtime, so that nothing may be left to be read.
    reads: bool,
}

/// What one connection hears with.
pub struct Intake {
    shared: Arc<SharedIntake>,
    shard: Shard,
    lanes: Lanes,
    guilds: Arc<Mutex<Guilds>>,
}

/// An event that cannot be read.
struct Unreadable(serde_json::Error);

impl SharedIntake {
    /// SharedIntake that hear nothing yet. To be called within a runtime.
    pub fn new(shared: Dependencies) -> Arc<Self> {
        let Dependencies { discord, inbound_events, notes, clock, settings, instruments, interactions } = shared;
        Arc::new(Self {
            marks: Marks::new(notes),
            reader: Reader::new(Arc::clone(&discord), clock, &settings),
            lookup_permits: Semaphore::new(MAX_CONCURRENT_LOOKUPS),
            clock_requested_at: Mutex::default(),
            lookups: Arc::default(),
            background_lookups: guilds::BackgroundLookups::default(),
            guilds_with_members: guilds::GuildsWithMembers::default(),
            guilds: Mutex::default(),
            reads: settings.backfill_messages > 0,
            discord,
            inbound_events,
            instruments,
            interactions,
        })
    }
}

impl Intake {
    /// Takes what one connection of a shard hears.
    pub fn new(shared: &Arc<SharedIntake>, shard: Shard) -> Self {
        let guilds = shared.guilds_of(shard);
        Self { shared: Arc::clone(shared), shard, lanes: Lanes::new(shared), guilds }
    }

    /// What follows from an event, in its order. What is known changes at once.
    fn follows(&mut self, kind: &str, data: Box<RawValue>) -> Result<Vec<Work>, Unreadable> {
        let text = data.get();
        self.follow_access(kind, text)?;
        let work = match kind {
            "READY" => self.ready(&read(text)?),
            "GUILD_CREATE" => self.guild_told(&read(text)?),
            "GUILD_UPDATE" => self.guild_changed(&read(text)?),
            "GUILD_DELETE" => self.guild_gone(&read(text)?),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" => self.channel_told(&read(text)?),
            "THREAD_UPDATE" => self.thread_changed(&read(text)?),
            "CHANNEL_DELETE" => self.channel_gone(&read(text)?),
            "THREAD_DELETE" => self.thread_gone(&read(text)?),
            "THREAD_LIST_SYNC" => self.threads_told(&read(text)?),
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => self.role_changed(&read(text)?),
            "GUILD_ROLE_DELETE" => self.role_gone(&read(text)?),
            "GUILD_EMOJIS_UPDATE" => self.emojis_changed(&read(text)?),
            "WEBHOOKS_UPDATE" => self.webhooks_changed(&read(text)?),
            "MESSAGE_CREATE" => {
                let at: wire::MessageLocation = read(text)?;
                self.said(at, data)
            }
            "MESSAGE_UPDATE" => {
                let (at, update): (wire::MessageLocation, wire::Update) = (read(text)?, read(text)?);
                if update.is_edit() { self.edited(at, data) } else { Vec::new() }
            }
            "MESSAGE_DELETE" => {
                let at: wire::MessageDeleted = read(text)?;
                self.deleted(at.guild_id, at.channel_id, &[at.id])
            }
            "MESSAGE_DELETE_BULK" => {
                let bulk: wire::MessagesDeleted = read(text)?;
                self.deleted(bulk.guild_id, bulk.channel_id, &bulk.ids)
            }
            _ => Vec::new(),
        };
        Ok(work)
    }
}

#[async_trait]
impl dispatch::Intake for Intake {
    async fn take(&mut self, dispatch: Dispatch) {
        let Dispatch { kind, data, receipt } = dispatch;
        if kind == "INTERACTION_CREATE" {
            (self.shared.interactions)(data);
            return receipt.kept();
        }
        // What is known is whole, whoever panics in between.
        let work = match catch_unwind(AssertUnwindSafe(|| self.follows(&kind, data))) {
            Ok(Ok(work)) => work,
            Ok(Err(unreadable)) => {
                self.shared.unreadable(&kind, &unreadable.0);
                Vec::new()
            }
            Err(_) => {
                self.shared.panicked(&kind);
                Vec::new()
            }
        };
        if work.is_empty() {
            return receipt.kept();
        }
        let shares = Share::split(receipt, work.len());
        for (work, share) in work.into_iter().zip(shares) {
            self.lanes.put(work, share).await;
        }
    }
}

impl SharedIntake {
    /// Counts and logs what cannot be read, without what it says: the error would quote it.
    fn unreadable(&self, kind: &str, error: &serde_json::Error) {
        self.instruments.discord_unreadable.add(1, crate::telemetry::instruments::NONE);
        tracing::warn!(event = kind, byte = error.column(), "an event of Discord's cannot be read; it is left out");
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(Unreadable)
}

impl fmt::Debug for SharedIntake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedIntake").field("discord", &self.discord).finish_non_exhaustive()
    }
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("shard", &self.shard).finish_non_exhaustive()
    }
}
