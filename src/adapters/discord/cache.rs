//! What is known of guilds and channels without asking: fed by what is heard, and by what was asked for once.
//!
//! It is kept lean, since there are thousands of guilds: of a channel about 150 bytes, of a guild with sixty of them, twenty-five roles and
//! thirty emojis 16 KB, of whoever speaks nothing but the last names.

mod guild;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::guild::CachedGuild;
use super::incoming;
use super::names::plain;
use super::outgoing::{Emoji, MentionablePerson, Mentionables};
use super::snowflake::Snowflake;
use super::wire;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;
use crate::ports::inbound_events::ChannelRef;

/// The people of a channel who may be called: whoever spoke there last.
const MAX_PEOPLE: usize = 24;

/// What is known of channels. Nothing in it has to be: what is missing is asked for, or done without.
#[derive(Debug, Default)]
pub struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    channels: BTreeMap<Snowflake, CachedChannel>,
    guilds: BTreeMap<Snowflake, CachedGuild>,
}

/// What is known of one channel or thread.
#[derive(Clone, Debug, Default)]
struct CachedChannel {
    guild: Option<Snowflake>,
    newest: Option<Snowflake>,
    target: Option<WebhookTarget>,
    /// Its name; of a direct message, that of the person.
    name: Option<Box<str>>,
    is_direct: bool,
    /// Who spoke there last, the newest last.
    people: Vec<Snowflake>,
}

/// Where a channel's webhooks belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookTarget {
    /// The channel itself, or the one that a thread is in.
    pub root: Snowflake,
    /// The thread, if it is one.
    pub thread: Option<Snowflake>,
}

/// Whom and what words in a channel may point at ([`Mentionables`], with what it borrows).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedMentionables {
    /// People who may be called, by id and shown name.
    pub people: Vec<(Snowflake, Arc<str>)>,
    /// Emojis of the guild: id, name, whether it moves.
    pub emojis: Arc<[(Snowflake, Box<str>, bool)]>,
}

impl Cache {
    /// A message was seen in a channel, or is told to be its last one.
    pub fn message_seen(&self, channel: Snowflake, message: Snowflake) {
        let mut entries = self.lock();
        let cached = entries.channels.entry(channel).or_default();
        cached.newest = cached.newest.max(Some(message));
    }

    /// The newest message that was seen in a channel.
    pub fn newest(&self, channel: Snowflake) -> Option<Snowflake> {
        self.lock().channels.get(&channel)?.newest
    }

    /// A channel is a thread in another, or a channel of its own (none).
    pub fn set_parent(&self, channel: Snowflake, parent: Option<Snowflake>) -> WebhookTarget {
        let target = WebhookTarget { root: parent.unwrap_or(channel), thread: parent.map(|_| channel) };
        self.lock().channels.entry(channel).or_default().target = Some(target);
        target
    }

    /// Where a channel's webhooks belong, if that was told.
    pub fn webhook_target(&self, channel: Snowflake) -> Option<WebhookTarget> {
        self.lock().channels.get(&channel)?.target
    }

    /// Somebody spoke in a channel, and may be called there from now on. Whoever did not speak for long is forgotten.
    pub fn person_spoke(&self, guild: Option<Snowflake>, channel: Snowflake, user: Snowflake, name: &str) {
        let mut entries = self.lock();
        let cached = entries.channels.entry(channel).or_default();
        cached.guild = cached.guild.or(guild);
        let Some(guild) = cached.guild else { return };
        cached.people.retain(|other| *other != user);
        if cached.people.len() >= MAX_PEOPLE {
            cached.people.remove(0);
        }
        cached.people.push(user);
        entries.guilds.entry(guild).or_default().remember_person(user, name);
    }

    /// Somebody is not to be heard, and not to be called either.
    pub fn person_opted_out(&self, channel: Snowflake, user: Snowflake) {
        if let Some(cached) = self.lock().channels.get_mut(&channel) {
            cached.people.retain(|other| *other != user);
        }
    }

    /// Whom and what words in a channel may point at; nothing if nothing was told.
    pub fn mentionables(&self, channel: Snowflake) -> OwnedMentionables {
        let entries = self.lock();
        let of_guild = |cached: &CachedChannel| entries.guilds.get(&cached.guild?);
        let Some(cached) = entries.channels.get(&channel) else { return OwnedMentionables::default() };
        let Some(guild) = of_guild(cached) else { return OwnedMentionables::default() };
        let people = cached.people.iter().filter_map(|user| Some((*user, guild.person(*user)?))).collect();
        OwnedMentionables { people, emojis: Arc::clone(&guild.emojis) }
    }

    /// The guild that a channel is in, if that was told.
    pub fn guild_of(&self, channel: Snowflake) -> Option<Snowflake> {
        self.lock().channels.get(&channel)?.guild
    }

    /// Where a channel is, as the core is told.
    pub fn channel_ref(&self, guild: Option<Snowflake>, channel: Snowflake) -> ChannelRef {
        let entries = self.lock();
        let cached = entries.channels.get(&channel);
        let guild = guild.or(cached.and_then(|cached| cached.guild));
        let parent = cached.and_then(|cached| cached.target).filter(|target| target.thread.is_some());
        ChannelRef {
            guild: guild.map_or_else(|| channel.direct_guild(), Snowflake::guild),
            channel: channel.channel(),
            parent: parent.map(|target| target.root.channel()),
        }
    }

    /// What a channel is called for people: `#general · Home`, `post · #forum · Home`, `direct message with Ana`.
    pub fn title(&self, channel: &ChannelId) -> Option<String> {
        let entries = self.lock();
        let cached = entries.channels.get(&Snowflake::of_channel(channel)?)?;
        let name = cached.name.as_deref()?;
        if cached.is_direct {
            return Some(format!("direct message with {name}"));
        }
        let guild = entries.guilds.get(&cached.guild?)?.name.as_deref()?;
        let Some(target) = cached.target.filter(|target| target.thread.is_some()) else {
            return Some(format!("#{name} · {guild}"));
        };
        let parent = entries.channels.get(&target.root).and_then(|parent| parent.name.as_deref());
        Some(parent.map_or_else(|| format!("{name} · {guild}"), |parent| format!("{name} · #{parent} · {guild}")))
    }

    /// What a guild is called for people.
    pub fn guild_title(&self, guild: &GuildId) -> Option<String> {
        let entries = self.lock();
        Some(entries.guilds.get(&Snowflake::of_guild(guild)?)?.name.as_deref()?.to_owned())
    }

    /// A channel is gone: it, and the threads in it that are known.
    pub fn remove_channel(&self, channel: Snowflake) {
        self.lock().channels.remove(&channel);
    }

    /// The threads of a channel that are known.
    pub fn threads(&self, channel: Snowflake) -> Vec<Snowflake> {
        let is_in =
            |cached: &CachedChannel| cached.target.is_some_and(|target| target.root == channel && target.thread.is_some());
        let entries = self.lock();
        entries.channels.iter().filter(|(_, cached)| is_in(cached)).map(|(thread, _)| *thread).collect()
    }

    // Nothing in here is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// A channel or thread of a guild was told of.
    pub fn update_channel(&self, guild: Option<Snowflake>, told: &wire::Channel) {
        let mut entries = self.lock();
        let cached = entries.channels.entry(told.id.0).or_default();
        cached.guild = guild.or(cached.guild);
        cached.is_direct = told.is_direct();
        cached.name = told.name().map(|name| plain(&name)).filter(|name| !name.is_empty()).map(Into::into);
        cached.newest = cached.newest.max(told.newest());
        if told.has_kind() && (!told.is_thread() || told.parent().is_some()) {
            let parent = told.parent();
            cached.target = Some(WebhookTarget { root: parent.unwrap_or(told.id.0), thread: parent.map(|_| told.id.0) });
        }
    }

    /// Somebody wrote to the bot directly.
    pub fn set_direct(&self, channel: Snowflake, person: &str) {
        let mut entries = self.lock();
        let cached = entries.channels.entry(channel).or_default();
        cached.is_direct = true;
        if cached.name.as_deref() != Some(person) {
            cached.name = Some(person.into());
        }
        cached.target = Some(WebhookTarget { root: channel, thread: None });
    }

    /// A guild was told of, whole or without its channels.
    pub fn update_guild(&self, told: &wire::Guild, bot: Option<Snowflake>) {
        self.lock().guilds.entry(told.id.0).or_default().update(told, bot);
    }

    /// A role of a guild came or changed.
    pub fn update_role(&self, guild: Snowflake, role: &wire::Role, bot: Option<Snowflake>) {
        self.lock().guilds.entry(guild).or_default().update_role(role, bot);
    }

    /// A role of a guild went.
    pub fn remove_role(&self, guild: Snowflake, role: Snowflake) {
        self.lock().guilds.entry(guild).or_default().remove_role(role);
    }

    /// These are the emojis of a guild.
    pub fn set_emojis(&self, guild: Snowflake, emojis: &[wire::Emoji]) {
        self.lock().guilds.entry(guild).or_default().set_emojis(emojis);
    }

    /// Whether a guild was told of.
    pub fn has_guild(&self, guild: Snowflake) -> bool {
        self.lock().guilds.get(&guild).is_some_and(CachedGuild::is_complete)
    }

    /// When the bot was invited to a guild, if that was told.
    pub fn joined_at(&self, guild: Snowflake) -> Option<Moment> {
        self.lock().guilds.get(&guild)?.joined_at
    }

    /// Whether it was told where a channel is.
    pub fn has_channel(&self, channel: Snowflake) -> bool {
        self.lock().channels.get(&channel).is_some_and(|cached| cached.target.is_some())
    }

    /// The role that belongs to our bot alone in a guild.
    pub fn own_role(&self, guild: Snowflake) -> Option<Snowflake> {
        self.lock().guilds.get(&guild)?.own_role
    }

    /// The bot is not in a guild any more. Returns its channels that were known.
    pub fn remove_guild(&self, guild: Snowflake) -> Vec<Snowflake> {
        let mut entries = self.lock();
        entries.guilds.remove(&guild);
        let is_there = |cached: &CachedChannel| cached.guild == Some(guild);
        let gone: Vec<_> = entries.channels.iter().filter(|(_, cached)| is_there(cached)).map(|(channel, _)| *channel).collect();
        for channel in &gone {
            entries.channels.remove(channel);
        }
        gone
    }

    /// The names of one guild, or of none: what belongs to another guild is unknown there.
    pub const fn names(&self, guild: Option<Snowflake>) -> Names<'_> {
        Names { cache: self, guild }
    }
}

/// The names of one guild.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    cache: &'a Cache,
    guild: Option<Snowflake>,
}

impl incoming::NameLookup for Names<'_> {
    fn person(&self, id: Snowflake) -> Option<String> {
        Some(self.cache.lock().guilds.get(&self.guild?)?.person(id)?.to_string())
    }

    fn role(&self, id: Snowflake) -> Option<String> {
        self.cache.lock().guilds.get(&self.guild?)?.role(id).map(str::to_owned)
    }

    fn channel(&self, id: Snowflake) -> Option<String> {
        let entries = self.cache.lock();
        let cached = entries.channels.get(&id).filter(|cached| cached.guild == self.guild && !cached.is_direct)?;
        cached.name.as_deref().map(str::to_owned)
    }
}

impl OwnedMentionables {
    /// Does something with it as [`super::outgoing`] wants it. With `calls` false nobody may be called.
    pub fn with<T>(&self, calls: bool, act: impl FnOnce(&Mentionables<'_>) -> T) -> T {
        let people: Vec<_> = self.people.iter().filter(|_| calls).map(|(id, name)| MentionablePerson { id: *id, name }).collect();
        let emojis: Vec<_> =
            self.emojis.iter().map(|(id, name, animated)| Emoji { id: *id, name, animated: *animated }).collect();
        act(&Mentionables { people: &people, emojis: &emojis })
    }
}
