//! What is told of guilds, channels, threads, roles and emojis is known at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::super::platform::{Bot, Discord};
use super::super::rest::Failed;
use super::super::snowflake::Snowflake;
use super::super::wire;
use super::lanes::{Behind, Work};
use super::{Intake, SharedIntake, Unreadable, read};
use crate::domain::id::GuildId;
use crate::ports::gateway::Shard;
use crate::telemetry::instruments::Instruments;
use crate::telemetry::instruments::kinds;

/// Where Discord did not say what a guild or channel is, it is not asked again for so long.
const ASKED_AGAIN: Duration = Duration::from_secs(60);
/// How often it is asked what a channel is where that decides whether it is heard, and how long it takes until it is asked again, the first
/// time; then twice as long each time.
const MOST_TRIES: u32 = 6;
const TRIED_AGAIN: Duration = Duration::from_secs(1);
/// So many guilds are asked for at once beside what is heard there: each takes two requests of those that answers need, too.
const MAX_BACKGROUND_LOOKUPS: usize = 4;
/// Where nobody knows what a channel is, a guild is taken for inhabited or not for so long.
const GUILDS_CACHED_FOR: Duration = Duration::from_secs(5);

/// The guilds of one shard: of which something is told, and of which nothing is.
pub(super) struct Guilds {
    available: BTreeSet<Snowflake>,
    unavailable: BTreeSet<Snowflake>,
    counted: [kinds::Share; 2],
}

/// Guilds and channels that were told to a process before this one, and when they were asked for.
#[derive(Default)]
pub(super) struct Lookups(Mutex<BTreeMap<Snowflake, Arc<AsyncMutex<Option<Instant>>>>>);

/// Guilds that are asked for while what is said there is taken in all the same. Whoever asks ends when this is dropped.
#[derive(Default)]
pub(super) struct BackgroundLookups(Mutex<(JoinSet<Snowflake>, BTreeSet<Snowflake>)>);

/// Where somebody lives, as it was asked for last: the core goes through all its rooms for that.
#[derive(Default)]
pub(super) struct GuildsWithMembers(Mutex<Option<(Instant, BTreeSet<GuildId>)>>);

impl Guilds {
    pub fn new(instruments: &Instruments) -> Self {
        let counted = ["available", "unavailable"].map(|state| instruments.discord_guilds.share([state]));
        Self { available: BTreeSet::new(), unavailable: BTreeSet::new(), counted }
    }

    fn expect(&mut self, guilds: BTreeSet<Snowflake>) {
        self.available.clear();
        self.unavailable = guilds;
        self.count();
    }

    /// Says whether it was unavailable.
    fn is_there(&mut self, guild: Snowflake) -> bool {
        self.available.insert(guild);
        let was_not = self.unavailable.remove(&guild);
        self.count();
        was_not
    }

    /// Says whether it was available.
    fn has_trouble(&mut self, guild: Snowflake) -> bool {
        self.unavailable.insert(guild);
        let was_there = self.available.remove(&guild);
        self.count();
        was_there
    }

    fn is_gone(&mut self, guild: Snowflake) {
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
    /// A new session. A guild where somebody lives and that it does not name was left meanwhile.
    pub(super) fn ready(&mut self, ready: &wire::Ready) -> Vec<Work> {
        self.shared.discord.set_bot(Bot { application: ready.application(), user: ready.user() });
        let guilds_with_members = self.shared.inbound_events.guilds(Snowflake::is_of_discord);
        let mut work = Vec::new();
        if let Some(told) = ready.guilds() {
            let told: BTreeSet<_> = told.collect();
            let mine = guilds_with_members.iter().filter_map(Snowflake::of_guild).filter(|guild| self.is_mine(*guild));
            for guild in mine.filter(|guild| !told.contains(guild)) {
                tracing::info!(%guild, "the bot was removed from a guild while nobody listened");
                work.push(self.shared.removed(guild));
            }
            self.guilds().expect(told);
        }
        // Direct messages come to the first shard, and no event tells what was said there meanwhile.
        if self.shard.number == 0 {
            let directs = guilds_with_members.iter().filter_map(Snowflake::of_direct_guild);
            work.extend(directs.map(|channel| Work::CatchUp(Behind { guild: None, channel, newest: None })));
        }
        work
    }

    // It holds plain values: whoever panics in between leaves them whole.
    fn guilds(&self) -> MutexGuard<'_, Guilds> {
        self.guilds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_mine(&self, guild: Snowflake) -> bool {
        guild.shard(self.shard.of) == self.shard.number
    }

    /// A guild is there: after a new session, after an outage, or because the bot was invited.
    pub(super) fn guild_told(&mut self, told: &wire::Guild) -> Vec<Work> {
        let guild = told.id.0;
        if told.unavailable {
            self.guilds().has_trouble(guild);
            return Vec::new();
        }
        let cache = self.shared.discord.cache();
        cache.update_guild(told, self.shared.discord.user());
        let channels = || told.channels.iter().chain(&told.threads);
        for channel in channels() {
            cache.update_channel(Some(guild), channel);
        }
        self.guilds().is_there(guild);
        channels().filter_map(|channel| self.shared.behind(guild, channel)).collect()
    }

    /// A guild changed: its name, its roles, its emojis.
    pub(super) fn guild_changed(&self, told: &wire::Guild) -> Vec<Work> {
        self.shared.discord.cache().update_guild(told, self.shared.discord.user());
        Vec::new()
    }

    /// A guild is not there: Discord has trouble with it, or the bot was removed.
    pub(super) fn guild_gone(&mut self, gone: &wire::GuildDeleted) -> Vec<Work> {
        let guild = gone.id.0;
        if gone.is_outage() {
            if self.guilds().has_trouble(guild) {
                tracing::warn!(%guild, "Discord has trouble with a guild; what is said there is read when it is back");
            }
            return Vec::new();
        }
        tracing::info!(%guild, "the bot was removed from a guild");
        self.guilds().is_gone(guild);
        vec![self.shared.removed(guild)]
    }

    /// A channel or thread came or changed.
    pub(super) fn channel_told(&self, told: &wire::Channel) -> Vec<Work> {
        let (guild, channel) = (told.guild_id.map(|id| id.0), told.id.0);
        let cache = self.shared.discord.cache();
        cache.update_channel(guild, told);
        self.shared.discord.clear_typing_refusal(channel);
        // There can be any number of archived threads; one that comes back is told of.
        if told.is_archived() && !self.shared.inbound_events.listens(&cache.channel_ref(guild, channel)) {
            cache.remove_channel(channel);
        }
        Vec::new()
    }

    /// A thread changed. One that comes back was not among those that a new session told of: more may have been said there than was heard.
    pub(super) fn thread_changed(&self, told: &wire::Channel) -> Vec<Work> {
        self.channel_told(told);
        told.guild_id.and_then(|guild| self.shared.behind(guild.0, told)).into_iter().collect()
    }

    /// A channel is gone with its threads.
    pub(super) fn channel_gone(&self, gone: &wire::ChannelDeleted) -> Vec<Work> {
        let mut channels = self.shared.discord.cache().threads(gone.id.0);
        channels.push(gone.id.0);
        self.gone(gone.guild_id, channels)
    }

    /// A thread is gone.
    pub(super) fn thread_gone(&self, gone: &wire::ChannelDeleted) -> Vec<Work> {
        self.gone(gone.guild_id, vec![gone.id.0])
    }

    fn gone(&self, guild: Option<wire::Id>, channels: Vec<Snowflake>) -> Vec<Work> {
        let Some(guild) = guild.map(|id| id.0) else { return Vec::new() };
        for channel in &channels {
            self.shared.discord.channel_gone(*channel);
        }
        channels.into_iter().map(|channel| Work::ChannelGone { guild, channel }).collect()
    }

    /// The bot was let into channels: what was said there before was not told.
    pub(super) fn threads_told(&self, told: &wire::Threads) -> Vec<Work> {
        let guild = told.guild_id.0;
        let cache = self.shared.discord.cache();
        for thread in &told.threads {
            cache.update_channel(Some(guild), thread);
        }
        told.threads.iter().filter_map(|thread| self.shared.behind(guild, thread)).collect()
    }

    /// A role came or changed.
    pub(super) fn role_changed(&self, told: &wire::RoleChanged) -> Vec<Work> {
        self.shared.discord.cache().update_role(told.guild_id.0, &told.role, self.shared.discord.user());
        Vec::new()
    }

    /// A role went.
    pub(super) fn role_gone(&self, gone: &wire::RoleDeleted) -> Vec<Work> {
        self.shared.discord.cache().remove_role(gone.guild_id.0, gone.role_id.0);
        Vec::new()
    }

    /// The emojis of a guild changed.
    pub(super) fn emojis_changed(&self, told: &wire::Emojis) -> Vec<Work> {
        self.shared.discord.cache().set_emojis(told.guild_id.0, &told.emojis);
        Vec::new()
    }

    /// What may change where the bot can post: roles, its own membership, overwrites of channels, room for webhooks. Nothing is read as long
    /// as posting works everywhere.
    pub(super) fn follow_access(&self, kind: &str, text: &str) -> Result<(), Unreadable> {
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
            self.shared.discord.access_changed(guild.0, channel.map(|id| id.0));
        }
        Ok(())
    }

    /// The webhooks of a channel changed; perhaps ours is gone.
    pub(super) fn webhooks_changed(&self, told: &wire::WebhooksChanged) -> Vec<Work> {
        self.shared.discord.webhooks_changed(told.channel_id.0);
        Vec::new()
    }
}

impl SharedIntake {
    /// The guilds of a shard, as they were told to the connections before. Those of another number of shards are nobody's any more.
    pub(super) fn guilds_of(&self, shard: Shard) -> Arc<Mutex<Guilds>> {
        let mut guilds = self.guilds.lock().unwrap_or_else(PoisonError::into_inner);
        guilds.retain(|other, _| other.of == shard.of);
        Arc::clone(guilds.entry(shard).or_insert_with(|| Arc::new(Mutex::new(Guilds::new(&self.instruments)))))
    }

    /// The bot was removed from a guild.
    fn removed(&self, guild: Snowflake) -> Work {
        for channel in self.discord.cache().remove_guild(guild) {
            self.discord.channel_gone(channel);
        }
        Work::GuildGone { guild }
    }

    /// A channel of which more may have been said than was heard, if anybody listens there.
    fn behind(&self, guild: Snowflake, told: &wire::Channel) -> Option<Work> {
        let channel = told.id.0;
        let newest = told.newest().filter(|_| !told.is_archived())?;
        let listens = self.inbound_events.listens(&self.discord.cache().channel_ref(Some(guild), channel));
        listens.then_some(Work::CatchUp(Behind { guild: Some(guild), channel, newest: Some(newest) }))
    }

    /// Whether somebody lives in a guild.
    pub(super) fn has_members(&self, guild: Option<Snowflake>) -> bool {
        let Some(guild) = guild else { return false };
        let mut guilds_with_members = self.guilds_with_members.0.lock().unwrap_or_else(PoisonError::into_inner);
        if guilds_with_members.as_ref().is_none_or(|(asked, _)| asked.elapsed() > GUILDS_CACHED_FOR) {
            *guilds_with_members =
                Some((Instant::now(), self.inbound_events.guilds(Snowflake::is_of_discord).into_iter().collect()));
        }
        guilds_with_members.as_ref().is_some_and(|(_, guilds)| guilds.contains(&guild.guild()))
    }

    /// Asks what a guild and a channel are, if nobody told. A session that goes on told it to the process before this one.
    ///
    /// What people say where somebody lives waits for that only if it points at something by its number; else it is asked for background_lookups.
    pub(super) async fn look_up_missing(&self, guild: Option<Snowflake>, channel: Snowflake, points_at_something: bool) {
        let Some(guild) = guild else { return };
        let cache = self.discord.cache();
        if !cache.has_guild(guild) {
            if !points_at_something && self.inbound_events.listens(&cache.channel_ref(Some(guild), channel)) {
                self.background_lookups.ask(guild, &self.discord, &self.lookups);
                return;
            }
            let ask = || self.discord.fetch_guild(guild).boxed();
            self.lookups.ask(guild, 1, || cache.has_guild(guild), ask).await;
        }
        if !cache.has_channel(channel) {
            // What is said in a thread of which nobody knows what it is in would be lost; elsewhere only names are missing.
            let is_heard = self.inbound_events.listens(&cache.channel_ref(Some(guild), channel));
            let tries = if is_heard { 1 } else { MOST_TRIES };
            let ask = || self.discord.fetch_channel(channel).map_ok(drop).boxed();
            self.lookups.ask(channel, tries, || cache.has_channel(channel), ask).await;
        }
    }
}

impl BackgroundLookups {
    /// Asks for a guild, unless it is being asked for, or so many are: it is asked for with the next message then.
    fn ask(&self, guild: Snowflake, discord: &Arc<Discord>, lookups: &Arc<Lookups>) {
        let mut beside = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (tasks, guilds) = &mut *beside;
        while let Some(over) = tasks.try_join_next() {
            match over {
                Ok(guild) => drop(guilds.remove(&guild)),
                // Which one panicked is not told; at worst one is asked for twice.
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
    /// Asks for something so often, one asker at a time, unless it is known by then or was asked for lately.
    async fn ask<'a>(
        &self,
        id: Snowflake,
        tries: u32,
        is_known: impl Fn() -> bool,
        ask: impl Fn() -> BoxFuture<'a, Result<(), Failed>>,
    ) {
        let turn = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default());
        let mut asked = turn.lock().await;
        if is_known() || asked.is_some_and(|asked| asked.elapsed() < ASKED_AGAIN) {
            return;
        }
        let mut outcome = ask().await;
        for tried in 0..tries.saturating_sub(1) {
            let Err(Failed::NotNow { .. } | Failed::Unknown { .. }) = &outcome else { break };
            let after = if let Err(Failed::NotNow { after, .. }) = &outcome { *after } else { None };
            sleep(after.unwrap_or(TRIED_AGAIN * 2_u32.saturating_pow(tried)).min(ASKED_AGAIN)).await;
            outcome = ask().await;
        }
        *asked = Some(Instant::now());
        match outcome {
            Ok(()) => drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)),
            Err(error) => tracing::warn!(%id, %error, "Discord does not say what this is; names and threads there are unknown"),
        }
    }
}
