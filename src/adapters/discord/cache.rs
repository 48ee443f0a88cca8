//! A cache of guilds and channels. Gateway events and responses to requests fill it; it requests nothing itself.
//!
//! The cache is compact, because there may be thousands of guilds. A channel takes about 180 bytes. A guild with sixty channels, twenty-five roles
//! and thirty emojis takes 16 KB. Of people, it stores only the ids and names of the latest speakers.

mod guild;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use self::guild::CachedGuild;
use super::incoming;
use super::names::plain;
use super::outgoing::Mentionables;
use super::permissions::Readers;
use super::snowflake::Snowflake;
use super::wire;
use crate::domain::id::ChannelId;
use crate::domain::moment::Moment;
use crate::ports::inbound_events::ChannelRef;

/// The limit of mentionable people per channel: the latest speakers.
const MAX_PEOPLE: usize = 24;

/// Guilds and channels. Any entry may be missing; callers then request the data or proceed without it.
#[derive(Debug, Default)]
pub struct Cache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    channels: BTreeMap<Snowflake, CachedChannel>,
    guilds: BTreeMap<Snowflake, CachedGuild>,
}

/// A channel or thread.
#[derive(Clone, Debug, Default)]
struct CachedChannel {
    guild: Option<Snowflake>,
    newest: Option<Snowflake>,
    target: Option<WebhookTarget>,
    /// The channel's name. For a direct message, the person's name.
    name: Option<Box<str>>,
    topic: Option<Box<str>>,
    is_direct: bool,
    readers: Readers,
    /// The latest speakers, newest last.
    people: Vec<Snowflake>,
}

/// The channel and thread for posting through a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookTarget {
    /// The channel that owns the webhooks: the channel itself, or a thread's parent.
    pub root: Snowflake,
    /// The thread, if the channel is one.
    pub thread: Option<Snowflake>,
}

impl Cache {
    /// Records a message of a channel, or the last message that Discord reports for the channel.
    pub fn message_seen(&self, channel: Snowflake, message: Snowflake) {
        let mut entries = self.0.lock();
        let cached = entries.channels.entry(channel).or_default();
        cached.newest = cached.newest.max(Some(message));
    }

    /// The newest known message of a channel.
    pub fn newest(&self, channel: Snowflake) -> Option<Snowflake> {
        self.0.lock().channels.get(&channel)?.newest
    }

    /// Records whether a channel is a thread of `parent`.
    pub fn set_parent(&self, channel: Snowflake, parent: Option<Snowflake>) -> WebhookTarget {
        let target = WebhookTarget { root: parent.unwrap_or(channel), thread: parent.map(|_| channel) };
        self.0.lock().channels.entry(channel).or_default().target = Some(target);
        target
    }

    /// The webhook target of a channel, if known.
    pub fn webhook_target(&self, channel: Snowflake) -> Option<WebhookTarget> {
        self.0.lock().channels.get(&channel)?.target
    }

    /// Records that a person spoke in a channel and is now mentionable there. If the list is full, the person who spoke least recently is dropped.
    pub fn person_spoke(&self, guild: Option<Snowflake>, channel: Snowflake, user: Snowflake, name: &str) {
        let mut entries = self.0.lock();
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

    /// Removes a person who has opted out from the mentionable people.
    pub fn person_opted_out(&self, channel: Snowflake, user: Snowflake) {
        if let Some(cached) = self.0.lock().channels.get_mut(&channel) {
            cached.people.retain(|other| *other != user);
        }
    }

    /// The people and emojis that a statement in a channel may mention. Empty if nothing is known.
    pub fn mentionables(&self, channel: Snowflake) -> Mentionables {
        let entries = self.0.lock();
        let of_guild = |cached: &CachedChannel| entries.guilds.get(&cached.guild?);
        let Some(cached) = entries.channels.get(&channel) else { return Mentionables::default() };
        let Some(guild) = of_guild(cached) else { return Mentionables::default() };
        let people = cached.people.iter().filter_map(|user| Some((*user, guild.person(*user)?))).collect();
        Mentionables { people, emojis: Arc::clone(&guild.emojis) }
    }

    /// The guild of a channel, if known.
    pub fn guild_of(&self, channel: Snowflake) -> Option<Snowflake> {
        self.0.lock().channels.get(&channel)?.guild
    }

    /// The reference to a channel for the core.
    pub fn channel_ref(&self, guild: Option<Snowflake>, channel: Snowflake) -> ChannelRef {
        let entries = self.0.lock();
        let cached = entries.channels.get(&channel);
        let guild = guild.or(cached.and_then(|cached| cached.guild));
        let parent = cached.and_then(|cached| cached.target).filter(|target| target.thread.is_some());
        ChannelRef {
            guild: guild.map_or_else(|| channel.direct_guild(), Snowflake::guild),
            channel: channel.channel(),
            parent: parent.map(|target| target.root.channel()),
        }
    }

    /// The title of a channel for display: `#general · Home`, `post · #forum · Home`, `direct message with Ana`.
    pub fn title(&self, channel: &ChannelId) -> Option<String> {
        let entries = self.0.lock();
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

    /// Whether everybody in the guild can read a channel. An unknown channel is not public.
    pub fn is_public(&self, channel: &ChannelId) -> bool {
        let entries = self.0.lock();
        let cached = |channel: Snowflake| entries.channels.get(&channel);
        let Some(channel) = Snowflake::of_channel(channel).and_then(cached) else { return false };
        let everyone = channel.guild.and_then(|guild| entries.guilds.get(&guild)?.everyone);
        let root = channel.target.and_then(|target| cached(target.root));
        let (Some(everyone), Some(root)) = (everyone, root) else { return false };
        let readers = if matches!(channel.readers, Readers::OfParent) { root.readers } else { channel.readers };
        readers.is_everybody(everyone)
    }

    /// The topic of a channel. For a thread, the topic of its channel or forum.
    pub fn topic(&self, channel: &ChannelId) -> Option<String> {
        let entries = self.0.lock();
        let channel = Snowflake::of_channel(channel)?;
        let root = entries.channels.get(&channel)?.target.map_or(channel, |target| target.root);
        Some(entries.channels.get(&root)?.topic.as_deref()?.to_owned())
    }

    /// The title of a thread or forum post.
    pub fn thread_title(&self, thread: Snowflake) -> Option<String> {
        let entries = self.0.lock();
        let cached = entries.channels.get(&thread)?;
        cached.target?.thread?;
        Some(cached.name.as_deref()?.to_owned())
    }

    /// Removes a channel. Its threads stay.
    pub fn remove_channel(&self, channel: Snowflake) {
        self.0.lock().channels.remove(&channel);
    }

    /// The known threads of a channel.
    pub fn threads(&self, channel: Snowflake) -> Vec<Snowflake> {
        let is_in =
            |cached: &CachedChannel| cached.target.is_some_and(|target| target.root == channel && target.thread.is_some());
        let entries = self.0.lock();
        entries.channels.iter().filter(|(_, cached)| is_in(cached)).map(|(thread, _)| *thread).collect()
    }
}

impl Cache {
    /// Stores a channel or thread that Discord reported.
    pub fn update_channel(&self, guild: Option<Snowflake>, channel: &wire::Channel) {
        let mut entries = self.0.lock();
        let cached = entries.channels.entry(channel.id).or_default();
        cached.guild = guild.or(cached.guild);
        cached.is_direct = channel.is_direct();
        cached.readers = channel.readers(cached.guild);
        cached.name = channel.name().map(|name| plain(&name)).filter(|name| !name.is_empty()).map(Into::into);
        cached.topic = channel.topic().map(|topic| plain(&topic)).filter(|topic| !topic.is_empty()).map(Into::into);
        cached.newest = cached.newest.max(channel.newest());
        if channel.kind.is_some() && (!channel.is_thread() || channel.parent().is_some()) {
            let parent = channel.parent();
            cached.target = Some(WebhookTarget { root: parent.unwrap_or(channel.id), thread: parent.map(|_| channel.id) });
        }
    }

    /// Records a direct message channel and the person in it.
    pub fn set_direct(&self, channel: Snowflake, person: &str) {
        let mut entries = self.0.lock();
        let cached = entries.channels.entry(channel).or_default();
        cached.is_direct = true;
        if cached.name.as_deref() != Some(person) {
            cached.name = Some(person.into());
        }
        cached.target = Some(WebhookTarget { root: channel, thread: None });
    }

    /// Stores a guild that Discord reported. Its channels are stored separately.
    pub fn update_guild(&self, guild: &wire::Guild, bot: Option<Snowflake>) {
        self.0.lock().guilds.entry(guild.id).or_default().update(guild, bot);
    }

    /// Records that changes of a guild may have been missed. Until it is reported again, nothing in it is known to be public.
    pub fn guild_unknown(&self, guild: Snowflake) {
        let mut entries = self.0.lock();
        if let Some(cached) = entries.guilds.get_mut(&guild) {
            cached.everyone = None;
        }
        let of_guild = entries.channels.values_mut().filter(|channel| channel.guild == Some(guild));
        of_guild.for_each(|channel| channel.readers = Readers::Few);
    }

    /// Stores a new or changed role.
    pub fn update_role(&self, guild: Snowflake, role: &wire::Role, bot: Option<Snowflake>) {
        self.0.lock().guilds.entry(guild).or_default().update_role(guild, role, bot);
    }

    pub fn remove_role(&self, guild: Snowflake, role: Snowflake) {
        self.0.lock().guilds.entry(guild).or_default().remove_role(role);
    }

    /// Replaces the emojis of a guild.
    pub fn set_emojis(&self, guild: Snowflake, emojis: &[wire::Emoji]) {
        self.0.lock().guilds.entry(guild).or_default().set_emojis(emojis);
    }

    /// Whether Discord reported the guild itself, not only parts of it.
    pub fn has_guild(&self, guild: Snowflake) -> bool {
        self.0.lock().guilds.get(&guild).is_some_and(CachedGuild::is_complete)
    }

    /// The names of the known guilds, in alphabetical order.
    pub fn guild_names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> =
            self.0.lock().guilds.values().filter_map(|guild| Some(Arc::from(guild.name.as_deref()?))).collect();
        names.sort_unstable();
        names
    }

    /// When the bot was invited to a guild, if known.
    pub fn joined_at(&self, guild: Snowflake) -> Option<Moment> {
        self.0.lock().guilds.get(&guild)?.joined_at
    }

    /// Whether the type of a channel is known: a thread with its parent, or no thread.
    pub fn has_channel(&self, channel: Snowflake) -> bool {
        self.0.lock().channels.get(&channel).is_some_and(|cached| cached.target.is_some())
    }

    /// The role in a guild that only our bot has.
    pub fn own_role(&self, guild: Snowflake) -> Option<Snowflake> {
        self.0.lock().guilds.get(&guild)?.own_role
    }

    /// Removes a guild that the bot left. Returns its known channels.
    pub fn remove_guild(&self, guild: Snowflake) -> Vec<Snowflake> {
        let mut entries = self.0.lock();
        entries.guilds.remove(&guild);
        let is_there = |cached: &CachedChannel| cached.guild == Some(guild);
        let gone: Vec<_> = entries.channels.iter().filter(|(_, cached)| is_there(cached)).map(|(channel, _)| *channel).collect();
        for channel in &gone {
            entries.channels.remove(channel);
        }
        gone
    }

    /// A name lookup for one guild. It finds no names of other guilds. For direct messages (`None`), it finds none.
    pub const fn names(&self, guild: Option<Snowflake>) -> Names<'_> {
        Names { cache: self, guild }
    }
}

/// A name lookup for one guild.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    cache: &'a Cache,
    guild: Option<Snowflake>,
}

impl incoming::NameLookup for Names<'_> {
    fn person(&self, id: Snowflake) -> Option<String> {
        Some(self.cache.0.lock().guilds.get(&self.guild?)?.person(id)?.to_string())
    }

    fn role(&self, id: Snowflake) -> Option<String> {
        self.cache.0.lock().guilds.get(&self.guild?)?.role(id).map(str::to_owned)
    }

    fn channel(&self, id: Snowflake) -> Option<String> {
        let entries = self.cache.0.lock();
        let cached = entries.channels.get(&id).filter(|cached| cached.guild == self.guild && !cached.is_direct)?;
        cached.name.as_deref().map(str::to_owned)
    }
}
