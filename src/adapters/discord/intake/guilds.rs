//! Applies events about guilds, channels, threads, roles and emojis to the cache at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::super::platform::Discord;
use super::super::rest::Failed;
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::lanes::{Behind, Work};
use super::{Intake, SharedIntake, Unreadable, read};
use crate::domain::id::GuildId;
use crate::ports::gateway::Shard;
use crate::telemetry::instruments::Instruments;
use crate::telemetry::instruments::kinds;

/// The wait before a guild or channel is requested again after a failed request.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);
/// The limit of attempts to look up a channel, if the result decides whether its messages are received, and the first wait between them. The wait
/// doubles each time.
const MAX_ATTEMPTS: u32 = 6;
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The limit of concurrent guild lookups in the background. Each takes two requests from the rate limit that replies share.
const MAX_BACKGROUND_LOOKUPS: usize = 4;
/// How long the set of guilds with companions is cached.
const GUILDS_CACHED_FOR: Duration = Duration::from_secs(5);

/// The available and unavailable guilds of one shard.
pub(super) struct Guilds {
    available: BTreeSet<Snowflake>,
    unavailable: BTreeSet<Snowflake>,
    counted: [kinds::Share; 2],
}

/// Lookups of guilds and channels that were reported to an earlier process, by id, with the time of the last attempt.
#[derive(Default)]
pub(super) struct Lookups(Mutex<BTreeMap<Snowflake, Arc<AsyncMutex<Option<Instant>>>>>);

/// Lookups of guilds in the background, while their messages are handled. The tasks end when this is dropped.
#[derive(Default)]
pub(super) struct BackgroundLookups(Mutex<(JoinSet<Snowflake>, BTreeSet<Snowflake>)>);

/// The guilds with companions. Cached, because the core scans all its rooms to find them.
#[derive(Default)]
pub(super) struct GuildsWithMembers(Mutex<Option<(Instant, BTreeSet<GuildId>)>>);

impl Guilds {
    pub fn new(instruments: &Instruments) -> Self {
        let counted = ["available", "unavailable"].map(|state| instruments.discord_guilds.share([state]));
        Self { available: BTreeSet::new(), unavailable: BTreeSet::new(), counted }
    }

    fn reset(&mut self, guilds: BTreeSet<Snowflake>) {
        self.available.clear();
        self.unavailable = guilds;
        self.count();
    }

    /// Marks a guild as available. Returns whether it was unavailable.
    fn set_available(&mut self, guild: Snowflake) -> bool {
        self.available.insert(guild);
        let was_unavailable = self.unavailable.remove(&guild);
        self.count();
        was_unavailable
    }

    /// Marks a guild as unavailable. Returns whether it was available.
    fn set_unavailable(&mut self, guild: Snowflake) -> bool {
        self.unavailable.insert(guild);
        let was_available = self.available.remove(&guild);
        self.count();
        was_available
    }

    fn remove(&mut self, guild: Snowflake) {
        self.available.remove(&guild);
        self.unavailable.remove(&guild);
        self.count();
    }

    fn count(&mut self) {
        let [available, unavailable] = &mut self.counted;
        available.set(self.available.len());
        unavailable.set(self.unavailable.len());
    }
}

impl Intake {
    /// Handles READY. If a guild with companions is not listed, the bot has left it.
    pub(super) fn ready(&mut self, ready: &wire::Ready) -> Vec<Work> {
        self.shared.discord.set_bot(ready.bot());
        let guilds_with_members = self.shared.inbound_events.guilds(Snowflake::is_of_discord);
        let mut work = Vec::new();
        if let Some(reported) = ready.guilds() {
            let reported: BTreeSet<_> = reported.collect();
            let own = guilds_with_members.iter().filter_map(Snowflake::of_guild).filter(|guild| self.is_on_shard(*guild));
            for guild in own.filter(|guild| !reported.contains(guild)) {
                tracing::info!(%guild, "the bot was removed from a guild while it was offline");
                work.push(self.shared.removed(guild));
            }
            reported.iter().for_each(|guild| self.shared.discord.cache().guild_unknown(*guild));
            self.guilds.lock().reset(reported);
        }
        // Direct messages are sent to the first shard. No event lists missed direct messages.
        if self.shard.number == 0 {
            let directs = guilds_with_members.iter().filter_map(Snowflake::of_direct_guild);
            work.extend(directs.map(|channel| Work::CatchUp(Behind { guild: None, channel, newest: None })));
        }
        work
    }

    fn is_on_shard(&self, guild: Snowflake) -> bool {
        guild.shard(self.shard.of) == self.shard.number
    }

    /// Handles a guild that became available: after a new session, after an outage, or because the bot was invited.
    pub(super) fn guild_reported(&mut self, reported: &wire::Guild) -> Vec<Work> {
        let guild = reported.id;
        if reported.unavailable {
            self.guilds.lock().set_unavailable(guild);
            self.shared.discord.cache().guild_unknown(guild);
            return Vec::new();
        }
        let cache = self.shared.discord.cache();
        cache.guild_unknown(guild);
        cache.update_guild(reported, self.shared.discord.user());
        let channels = || reported.channels.iter().chain(&reported.threads);
        for channel in channels() {
            cache.update_channel(Some(guild), channel);
        }
        self.guilds.lock().set_available(guild);
        self.shared.welcome(reported);
        channels().filter_map(|channel| self.shared.behind(guild, channel)).collect()
    }

    /// Handles a change of a guild's name, roles or emojis.
    pub(super) fn guild_changed(&self, reported: &wire::Guild) -> Vec<Work> {
        self.shared.discord.cache().update_guild(reported, self.shared.discord.user());
        Vec::new()
    }

    /// Handles an outage of a guild, or the bot's removal from it.
    pub(super) fn guild_gone(&mut self, deleted: &wire::GuildDeleted) -> Vec<Work> {
        let guild = deleted.id;
        if deleted.is_outage() {
            self.shared.discord.cache().guild_unknown(guild);
            if self.guilds.lock().set_unavailable(guild) {
                tracing::warn!(%guild, "a guild is unavailable on Discord; its messages are read when it is back");
            }
            return Vec::new();
        }
        tracing::info!(%guild, "the bot was removed from a guild");
        self.guilds.lock().remove(guild);
        vec![self.shared.removed(guild)]
    }

    pub(super) fn channel_reported(&self, reported: &wire::Channel) -> Vec<Work> {
        let (guild, channel) = (reported.guild_id, reported.id);
        let cache = self.shared.discord.cache();
        cache.update_channel(guild, reported);
        self.shared.discord.clear_typing_refusal(channel);
        // The number of archived threads is unlimited, so they are not cached. Discord reports a thread again when it is reopened.
        if reported.is_archived() && !self.shared.inbound_events.listens(&cache.channel_ref(guild, channel)) {
            cache.remove_channel(channel);
        }
        Vec::new()
    }

    /// Handles a change of a thread. It may have been reopened: a new session does not list archived threads, so messages there may have been
    /// missed.
    pub(super) fn thread_changed(&self, reported: &wire::Channel) -> Vec<Work> {
        self.channel_reported(reported);
        reported.guild_id.and_then(|guild| self.shared.behind(guild, reported)).into_iter().collect()
    }

    /// Handles the deletion of a channel and its threads.
    pub(super) fn channel_gone(&self, deleted: &wire::ChannelDeleted) -> Vec<Work> {
        let mut channels = self.shared.discord.cache().threads(deleted.id);
        channels.push(deleted.id);
        self.channels_gone(deleted.guild_id, channels)
    }

    pub(super) fn thread_gone(&self, deleted: &wire::ChannelDeleted) -> Vec<Work> {
        self.channels_gone(deleted.guild_id, vec![deleted.id])
    }

    fn channels_gone(&self, guild: Option<Snowflake>, channels: Vec<Snowflake>) -> Vec<Work> {
        let Some(guild) = guild else { return Vec::new() };
        for channel in &channels {
            self.shared.discord.channel_gone(*channel);
        }
        channels.into_iter().map(|channel| Work::ChannelGone { guild, channel }).collect()
    }

    /// Handles access to further channels. The bot did not receive their earlier messages.
    pub(super) fn threads_reported(&self, reported: &wire::Threads) -> Vec<Work> {
        let guild = reported.guild_id;
        let cache = self.shared.discord.cache();
        for thread in &reported.threads {
            cache.update_channel(Some(guild), thread);
        }
        reported.threads.iter().filter_map(|thread| self.shared.behind(guild, thread)).collect()
    }

    pub(super) fn role_changed(&self, reported: &wire::RoleChanged) -> Vec<Work> {
        self.shared.discord.cache().update_role(reported.guild_id, &reported.role, self.shared.discord.user());
        Vec::new()
    }

    pub(super) fn role_gone(&self, deleted: &wire::RoleDeleted) -> Vec<Work> {
        self.shared.discord.cache().remove_role(deleted.guild_id, deleted.role_id);
        Vec::new()
    }

    pub(super) fn emojis_changed(&self, reported: &wire::Emojis) -> Vec<Work> {
        self.shared.discord.cache().set_emojis(reported.guild_id, &reported.emojis);
        Vec::new()
    }

    /// Ends the pauses of channels where an event may allow the bot to post again: changes of roles, of its own member, of channels' overwrites or
    /// of webhooks. As long as posting works everywhere, events are not parsed for this.
    pub(super) fn end_pauses(&self, kind: &str, text: &str) -> Result<(), Unreadable> {
        let concerns_channel = matches!(kind, "CHANNEL_UPDATE" | "THREAD_UPDATE" | "WEBHOOKS_UPDATE");
        let concerns_guild = matches!(
            kind,
            "GUILD_CREATE"
                | "GUILD_UPDATE"
                | "GUILD_ROLE_CREATE"
                | "GUILD_ROLE_UPDATE"
                | "GUILD_ROLE_DELETE"
                | "GUILD_MEMBER_UPDATE"
        );
        if !(concerns_channel || concerns_guild) || self.shared.discord.delivery_errors().is_empty() {
            return Ok(());
        }
        let changed: wire::Changed = read(text)?;
        let channel = changed.channel_id.or(changed.id).filter(|_| concerns_channel);
        if let Some(guild) = changed.guild_id.or(changed.id) {
            self.shared.discord.access_changed(guild, channel);
        }
        Ok(())
    }

    /// Handles a change of a channel's webhooks. Ours may have been deleted.
    pub(super) fn webhooks_changed(&self, reported: &wire::WebhooksChanged) -> Vec<Work> {
        self.shared.discord.webhooks_changed(reported.channel_id);
        Vec::new()
    }
}

impl SharedIntake {
    /// The guilds of a shard, including those reported to its earlier connections. Drops the guilds of shards with another shard count.
    pub(super) fn guilds_of(&self, shard: Shard) -> Arc<Mutex<Guilds>> {
        let mut guilds = self.guilds.lock();
        guilds.retain(|other, _| other.of == shard.of);
        Arc::clone(guilds.entry(shard).or_insert_with(|| Arc::new(Mutex::new(Guilds::new(&self.instruments)))))
    }

    fn removed(&self, guild: Snowflake) -> Work {
        for channel in self.discord.cache().remove_guild(guild) {
            self.discord.channel_gone(channel);
        }
        self.calls.as_ref().inspect(|calls| calls.guild_gone(guild));
        Work::GuildGone { guild }
    }

    /// The catch-up for a channel that may have missed messages. `None` if it has no messages or no companions, or is an archived thread.
    fn behind(&self, guild: Snowflake, reported: &wire::Channel) -> Option<Work> {
        let channel = reported.id;
        let newest = reported.newest().filter(|_| !reported.is_archived())?;
        let listens = self.inbound_events.listens(&self.discord.cache().channel_ref(Some(guild), channel));
        listens.then_some(Work::CatchUp(Behind { guild: Some(guild), channel, newest: Some(newest) }))
    }

    /// Whether a guild has companions.
    pub(super) fn has_members(&self, guild: Option<Snowflake>) -> bool {
        let Some(guild) = guild else { return false };
        let mut guilds_with_members = self.guilds_with_members.0.lock();
        if guilds_with_members.as_ref().is_none_or(|(read_at, _)| read_at.elapsed() > GUILDS_CACHED_FOR) {
            *guilds_with_members =
                Some((Instant::now(), self.inbound_events.guilds(Snowflake::is_of_discord).into_iter().collect()));
        }
        guilds_with_members.as_ref().is_some_and(|(_, guilds)| guilds.contains(&guild.guild()))
    }

    /// Looks up the guild and the channel of a message if they are not cached. If the session was resumed, Discord reported them only to an earlier
    /// process.
    ///
    /// In a channel with companions, a message waits for the guild's lookup only if it refers to a role or channel by id. Otherwise, the guild is
    /// looked up in the background.
    pub(super) async fn look_up_missing(&self, guild: Option<Snowflake>, channel: Snowflake, has_references: bool) {
        let Some(guild) = guild else { return };
        let cache = self.discord.cache();
        if !cache.has_guild(guild) {
            if !has_references && self.inbound_events.listens(&cache.channel_ref(Some(guild), channel)) {
                self.background_lookups.ask(guild, &self.discord, &self.lookups);
                return;
            }
            let ask = || self.discord.fetch_guild(guild).boxed();
            self.lookups.ask(guild, 1, || cache.has_guild(guild), ask).await;
        }
        if !cache.has_channel(channel) {
            // If a thread's parent is unknown, its messages would be lost. In other channels, only names would be missing.
            let has_companions = self.inbound_events.listens(&cache.channel_ref(Some(guild), channel));
            let tries = if has_companions { 1 } else { MAX_ATTEMPTS };
            let ask = || self.discord.fetch_channel(channel).map_ok(drop).boxed();
            self.lookups.ask(channel, tries, || cache.has_channel(channel), ask).await;
        }
    }
}

impl BackgroundLookups {
    /// Starts to look up a guild, unless a lookup is in progress or the limit is reached. If it is reached, the guild's next message tries again.
    fn ask(&self, guild: Snowflake, discord: &Arc<Discord>, lookups: &Arc<Lookups>) {
        let mut beside = self.0.lock();
        let (tasks, guilds) = &mut *beside;
        while let Some(over) = tasks.try_join_next() {
            match over {
                Ok(guild) => drop(guilds.remove(&guild)),
                // The id of the panicked lookup is unknown. Clearing the set may cause a second lookup of a guild.
                Err(_) => guilds.clear(),
            }
        }
        if tasks.len() >= MAX_BACKGROUND_LOOKUPS || !guilds.insert(guild) {
            return;
        }
        let (discord, lookups) = (Arc::clone(discord), Arc::clone(lookups));
        tasks.spawn(async move {
            let cache = discord.cache();
            lookups.ask(guild, 1, || cache.has_guild(guild), || discord.fetch_guild(guild).boxed()).await;
            guild
        });
    }
}

impl Lookups {
    /// Makes up to `tries` requests for an object, unless it is cached meanwhile or was requested recently. Callers for the same object wait for
    /// each other.
    async fn ask<'a>(
        &self,
        id: Snowflake,
        tries: u32,
        is_cached: impl Fn() -> bool,
        ask: impl Fn() -> BoxFuture<'a, Result<(), Failed>>,
    ) {
        let lock = Arc::clone(self.0.lock().entry(id).or_default());
        let mut last_attempt = lock.lock().await;
        if is_cached() || last_attempt.is_some_and(|at| at.elapsed() < LOOKUP_INTERVAL) {
            return;
        }
        let mut outcome = ask().await;
        for tried in 0..tries.saturating_sub(1) {
            let Err(Failed::NotNow { .. } | Failed::Unknown { .. }) = &outcome else { break };
            let after = if let Err(Failed::NotNow { after, .. }) = &outcome { *after } else { None };
            sleep(after.unwrap_or(FIRST_RETRY * 2_u32.saturating_pow(tried)).min(LOOKUP_INTERVAL)).await;
            outcome = ask().await;
        }
        *last_attempt = Some(Instant::now());
        match outcome {
            Ok(()) => drop(self.0.lock().remove(&id)),
            Err(error) => {
                tracing::warn!(%id, %error, "this guild or channel cannot be requested from Discord; names and threads there are unknown")
            }
        }
    }
}
