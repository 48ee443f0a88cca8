//! Converts a shard's gateway events into inbound events for the core: messages, edits and deletions, in order for each channel.
//!
//! Events about guilds and channels update the cache at once (`intake/guilds.rs`). Events to be journaled are queued in their channel's lane
//! (`intake/lanes.rs`). Lanes run concurrently; each lane handles its events in sequence. An event's receipt is acknowledged once all work for the
//! event is on record. A channel that may have missed messages catches up first (`intake/catching_up.rs`).

mod catching_up;
mod guilds;
mod handover;
mod lanes;
mod marks;
mod messages;
mod reader;
mod welcome;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use self::guilds::Guilds;
use self::lanes::{Lanes, ReceiptShare, Work};
use self::marks::Marks;
use self::reader::Reader;
use super::calls::Calls;
use super::dispatch::{self, Dispatch};
use super::platform::Discord;
use super::proxies::Proxies;
use super::snowflake::Snowflake;
use super::wire;
use crate::ports::clock::Clock;
use crate::ports::gateway::Shard;
use crate::ports::inbound_events::InboundEvents;
use crate::ports::notes::Notes;
use crate::settings::discord::Discord as Settings;
use crate::telemetry::instruments::Instruments;

/// The limit of concurrent checks of channels for missed messages.
const MAX_CONCURRENT_LOOKUPS: usize = 32;

/// Accepts an interaction (INTERACTION_CREATE) without blocking.
pub type Interactions = Arc<dyn Fn(Box<RawValue>) + Send + Sync>;

/// The dependencies of the intake.
pub struct Dependencies {
    /// The client for requests. The intake updates its cache.
    pub discord: Arc<Discord>,
    /// Receives inbound events.
    pub inbound_events: Arc<dyn InboundEvents>,
    /// Stores up to which message each channel was received.
    pub notes: Arc<dyn Notes>,
    pub clock: Arc<dyn Clock>,
    /// The limits of the backfill after downtime.
    pub settings: Settings,
    pub instruments: Instruments,
    /// Handles interactions.
    pub interactions: Interactions,
    /// The calls in voice channels. `None`: the bot enters none.
    pub calls: Option<Calls>,
}

/// The part of the intake that all shards of one bot share. Its tasks end when it and all intakes are dropped.
pub struct SharedIntake {
    discord: Arc<Discord>,
    inbound_events: Arc<dyn InboundEvents>,
    instruments: Instruments,
    interactions: Interactions,
    calls: Option<Calls>,
    marks: Marks,
    notes: Arc<dyn Notes>,
    proxies: Proxies,
    reader: Reader,
    lookup_permits: Semaphore,
    lookups: Arc<guilds::Lookups>,
    background_lookups: guilds::BackgroundLookups,
    guilds_with_members: guilds::GuildsWithMembers,
    /// By shard. They outlive connections, because Discord does not report guilds again in a resumed session.
    guilds: Mutex<BTreeMap<Shard, Arc<Mutex<Guilds>>>>,
    /// The webhooks, applications and bots that relay messages of people.
    bridges: Vec<Snowflake>,
    /// Whether reactions on statements are recorded.
    keeps_reactions: bool,
    /// Whether the backfill is on. If it is off, no message may be deferred to it.
    backfills: bool,
}

/// The intake of one connection.
pub struct Intake {
    shared: Arc<SharedIntake>,
    shard: Shard,
    lanes: Lanes,
    guilds: Arc<Mutex<Guilds>>,
}

/// An event that cannot be parsed.
struct Unreadable(serde_json::Error);

impl SharedIntake {
    /// Must be called within a Tokio runtime, because tasks are spawned.
    pub fn new(shared: Dependencies) -> Arc<Self> {
        let Dependencies { discord, inbound_events, notes, clock, settings, instruments, interactions, calls } = shared;
        Arc::new(Self {
            marks: Marks::new(Arc::clone(&notes)),
            notes,
            proxies: Proxies::default(),
            reader: Reader::new(Arc::clone(&discord), clock, &settings),
            lookup_permits: Semaphore::new(MAX_CONCURRENT_LOOKUPS),
            lookups: Arc::default(),
            background_lookups: guilds::BackgroundLookups::default(),
            guilds_with_members: guilds::GuildsWithMembers::default(),
            guilds: Mutex::default(),
            backfills: settings.backfill_messages > 0,
            bridges: settings.bridges.iter().filter_map(|id| id.parse().ok()).collect(),
            keeps_reactions: settings.reactions,
            discord,
            inbound_events,
            instruments,
            interactions,
            calls,
        })
    }
}

impl Intake {
    /// Creates the intake for a new connection of a shard.
    pub fn new(shared: &Arc<SharedIntake>, shard: Shard) -> Self {
        let guilds = shared.guilds_of(shard);
        Self { shared: Arc::clone(shared), shard, lanes: Lanes::new(shared), guilds }
    }

    /// Applies an event to the cache. Returns the resulting work, in order.
    fn apply(&mut self, kind: &str, data: Box<RawValue>) -> Result<Vec<Work>, Unreadable> {
        let text = data.get();
        self.end_pauses(kind, text)?;
        if let Some(calls) = &self.shared.calls {
            tell_calls(calls, kind, text)?;
        }
        let work = match kind {
            "READY" => self.ready(&read(text)?),
            "GUILD_CREATE" => self.guild_reported(&read(text)?),
            "GUILD_UPDATE" => self.guild_changed(&read(text)?),
            "GUILD_DELETE" => self.guild_gone(&read(text)?),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" => self.channel_reported(&read(text)?),
            "THREAD_UPDATE" => self.thread_changed(&read(text)?),
            "CHANNEL_DELETE" => self.channel_gone(&read(text)?),
            "THREAD_DELETE" => self.thread_gone(&read(text)?),
            "THREAD_LIST_SYNC" => self.threads_reported(&read(text)?),
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => self.role_changed(&read(text)?),
            "GUILD_ROLE_DELETE" => self.role_gone(&read(text)?),
            "GUILD_EMOJIS_UPDATE" => self.emojis_changed(&read(text)?),
            "WEBHOOKS_UPDATE" => self.webhooks_changed(&read(text)?),
            "MESSAGE_CREATE" => {
                let at: wire::MessageLocation = read(text)?;
                self.message_created(at, data)
            }
            "MESSAGE_UPDATE" => {
                let (at, update): (wire::MessageLocation, wire::Update) = (read(text)?, read(text)?);
                if update.is_edit() { self.message_edited(at, data) } else { Vec::new() }
            }
            "MESSAGE_DELETE" => {
                let at: wire::MessageDeleted = read(text)?;
                self.messages_deleted(at.guild_id, at.channel_id, &[at.id])
            }
            "MESSAGE_DELETE_BULK" => {
                let bulk: wire::MessagesDeleted = read(text)?;
                self.messages_deleted(bulk.guild_id, bulk.channel_id, &bulk.ids)
            }
            "MESSAGE_REACTION_ADD" => self.reacted(&read(text)?, false),
            "MESSAGE_REACTION_REMOVE" | "MESSAGE_REACTION_REMOVE_ALL" | "MESSAGE_REACTION_REMOVE_EMOJI" => {
                self.reacted(&read(text)?, true)
            }
            _ => Vec::new(),
        };
        Ok(work)
    }
}

#[async_trait]
impl dispatch::Intake for Intake {
    async fn handle_dispatch(&mut self, dispatch: Dispatch) {
        let Dispatch { kind, data, receipt } = dispatch;
        if kind == "INTERACTION_CREATE" {
            (self.shared.interactions)(data);
            return receipt.kept();
        }
        // A panic leaves the cache consistent.
        let work = match catch_unwind(AssertUnwindSafe(|| self.apply(&kind, data))) {
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
        let shares = ReceiptShare::split(receipt, work.len());
        for (work, share) in work.into_iter().zip(shares) {
            self.lanes.put(work, share).await;
        }
    }
}

impl SharedIntake {
    /// Counts and logs an event that cannot be parsed. The error is not logged, because it would quote the event.
    fn unreadable(&self, kind: &str, error: &serde_json::Error) {
        self.instruments.discord_unreadable.add(1, crate::telemetry::instruments::NONE);
        tracing::warn!(event = kind, byte = error.column(), "an event from Discord cannot be parsed; it is ignored");
    }
}

/// Passes an event to the voice calls, if it concerns them.
fn tell_calls(calls: &Calls, kind: &str, text: &str) -> Result<(), Unreadable> {
    match kind {
        "READY" | "RESUMED" => calls.connected(),
        "VOICE_STATE_UPDATE" => calls.voice_state(&read(text)?),
        "VOICE_SERVER_UPDATE" => calls.voice_server(read(text)?),
        "GUILD_CREATE" => {
            let guild: wire::Guild = read(text)?;
            if !guild.unavailable {
                calls.guild_reported(guild.id, &guild.in_voice());
            }
        }
        "CHANNEL_UPDATE" | "GUILD_ROLE_UPDATE" | "GUILD_ROLE_DELETE" | "GUILD_MEMBER_UPDATE" => {
            let changed: wire::Changed = read(text)?;
            if let Some(guild) = changed.guild_id {
                calls.access_changed(guild);
            }
        }
        "CHANNEL_DELETE" => {
            let channel: wire::ChannelDeleted = read(text)?;
            if let Some(guild) = channel.guild_id {
                calls.channel_gone(guild, channel.id);
            }
        }
        _ => {}
    }
    Ok(())
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
