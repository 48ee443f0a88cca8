//! What is known of guilds and channels without asking: fed by what is heard, and by what was asked for once.
//!
//! It is kept lean, since there are thousands of guilds: of a channel about 150 bytes, of a guild with sixty of them, twenty-five roles and
//! thirty emojis 16 KB, of whoever speaks nothing but the last names.

mod guild;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::guild::OfGuild;
use super::heard;
use super::names::plain;
use super::said::{Around, Emoji, Present};
use super::snowflake::Snowflake;
use super::wire;
use crate::domain::id::{ChannelId, GuildId};
use crate::domain::moment::Moment;
use crate::ports::inbound_events::ChannelRef;

/// The people of a channel who may be called: whoever spoke there last.
const MOST_PEOPLE: usize = 24;

/// What is known of channels. Nothing in it has to be: what is missing is asked for, or done without.
#[derive(Debug, Default)]
pub struct Known(Mutex<Everything>);

#[derive(Debug, Default)]
struct Everything {
    channels: BTreeMap<Snowflake, OfChannel>,
    guilds: BTreeMap<Snowflake, OfGuild>,
}

/// What is known of one channel or thread.
#[derive(Clone, Debug, Default)]
struct OfChannel {
    guild: Option<Snowflake>,
    newest: Option<Snowflake>,
    place: Option<Place>,
    /// Its name; of a direct message, that of the person.
    name: Option<Box<str>>,
    is_direct: bool,
    /// Who spoke there last, the newest last.
    people: Vec<Snowflake>,
}

/// Where a channel's webhooks belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The channel itself, or the one that a thread is in.
    pub root: Snowflake,
    /// The thread, if it is one.
    pub thread: Option<Snowflake>,
}

/// Whom and what words in a channel may point at ([`Around`], with what it borrows).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Company {
    /// People who may be called, by id and shown name.
    pub people: Vec<(Snowflake, Arc<str>)>,
    /// Emojis of the guild: id, name, whether it moves.
    pub emojis: Arc<[(Snowflake, Box<str>, bool)]>,
}

impl Known {
    /// A message was seen in a channel, or is told to be its last one.
    pub fn saw(&self, channel: Snowflake, message: Snowflake) {
        let mut known = self.lock();
        let of_channel = known.channels.entry(channel).or_default();
        of_channel.newest = of_channel.newest.max(Some(message));
    }

    /// The newest message that was seen in a channel.
    pub fn newest(&self, channel: Snowflake) -> Option<Snowflake> {
        self.lock().channels.get(&channel)?.newest
    }

    /// A channel is a thread in another, or a channel of its own (none).
    pub fn is_in(&self, channel: Snowflake, parent: Option<Snowflake>) -> Place {
        let place = Place { root: parent.unwrap_or(channel), thread: parent.map(|_| channel) };
        self.lock().channels.entry(channel).or_default().place = Some(place);
        place
    }

    /// Where a channel's webhooks belong, if that was told.
    pub fn place(&self, channel: Snowflake) -> Option<Place> {
        self.lock().channels.get(&channel)?.place
    }

    /// Somebody spoke in a channel, and may be called there from now on. Whoever did not speak for long is forgotten.
    pub fn spoke(&self, guild: Option<Snowflake>, channel: Snowflake, user: Snowflake, name: &str) {
        let mut known = self.lock();
        let of_channel = known.channels.entry(channel).or_default();
        of_channel.guild = of_channel.guild.or(guild);
        let Some(guild) = of_channel.guild else { return };
        of_channel.people.retain(|other| *other != user);
        if of_channel.people.len() >= MOST_PEOPLE {
            of_channel.people.remove(0);
        }
        of_channel.people.push(user);
        known.guilds.entry(guild).or_default().met(user, name);
    }

    /// Somebody is not to be heard, and not to be called either.
    pub fn hushed(&self, channel: Snowflake, user: Snowflake) {
        if let Some(of_channel) = self.lock().channels.get_mut(&channel) {
            of_channel.people.retain(|other| *other != user);
        }
    }

    /// Whom and what words in a channel may point at; nothing if nothing was told.
    pub fn company(&self, channel: Snowflake) -> Company {
        let known = self.lock();
        let of_guild = |of_channel: &OfChannel| known.guilds.get(&of_channel.guild?);
        let Some(of_channel) = known.channels.get(&channel) else { return Company::default() };
        let Some(guild) = of_guild(of_channel) else { return Company::default() };
        let people = of_channel.people.iter().filter_map(|user| Some((*user, guild.person(*user)?))).collect();
        Company { people, emojis: Arc::clone(&guild.emojis) }
    }

    /// The guild that a channel is in, if that was told.
    pub fn guild_of(&self, channel: Snowflake) -> Option<Snowflake> {
        self.lock().channels.get(&channel)?.guild
    }

    /// Where a channel is, as the core is told.
    pub fn channel_ref(&self, guild: Option<Snowflake>, channel: Snowflake) -> ChannelRef {
        let known = self.lock();
        let of_channel = known.channels.get(&channel);
        let guild = guild.or(of_channel.and_then(|of_channel| of_channel.guild));
        let parent = of_channel.and_then(|of_channel| of_channel.place).filter(|place| place.thread.is_some());
        ChannelRef {
            guild: guild.map_or_else(|| channel.direct_guild(), Snowflake::guild),
            channel: channel.channel(),
            parent: parent.map(|place| place.root.channel()),
        }
    }

    /// What a channel is called for people: `#general · Home`, `post · #forum · Home`, `direct message with Ana`.
    pub fn title(&self, channel: &ChannelId) -> Option<String> {
        let known = self.lock();
        let of_channel = known.channels.get(&Snowflake::of_channel(channel)?)?;
        let name = of_channel.name.as_deref()?;
        if of_channel.is_direct {
            return Some(format!("direct message with {name}"));
        }
        let guild = known.guilds.get(&of_channel.guild?)?.name.as_deref()?;
        let Some(place) = of_channel.place.filter(|place| place.thread.is_some()) else {
            return Some(format!("#{name} · {guild}"));
        };
        let parent = known.channels.get(&place.root).and_then(|parent| parent.name.as_deref());
        Some(parent.map_or_else(|| format!("{name} · {guild}"), |parent| format!("{name} · #{parent} · {guild}")))
    }

    /// What a guild is called for people.
    pub fn guild_title(&self, guild: &GuildId) -> Option<String> {
        let known = self.lock();
        Some(known.guilds.get(&Snowflake::of_guild(guild)?)?.name.as_deref()?.to_owned())
    }

    /// A channel is gone: it, and the threads in it that are known.
    pub fn forget(&self, channel: Snowflake) {
        self.lock().channels.remove(&channel);
    }

    /// The threads of a channel that are known.
    pub fn threads(&self, channel: Snowflake) -> Vec<Snowflake> {
        let is_in =
            |of_channel: &OfChannel| of_channel.place.is_some_and(|place| place.root == channel && place.thread.is_some());
        let known = self.lock();
        known.channels.iter().filter(|(_, of_channel)| is_in(of_channel)).map(|(thread, _)| *thread).collect()
    }

    // Nothing in here is half done when somebody panics.
    fn lock(&self) -> MutexGuard<'_, Everything> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A channel or thread of a guild was told of.
    pub fn channel_is(&self, guild: Option<Snowflake>, told: &wire::Channel) {
        let mut known = self.lock();
        let of_channel = known.channels.entry(told.id.0).or_default();
        of_channel.guild = guild.or(of_channel.guild);
        of_channel.is_direct = told.is_direct();
        of_channel.name = told.name().map(|name| plain(&name)).filter(|name| !name.is_empty()).map(Into::into);
        of_channel.newest = of_channel.newest.max(told.newest());
        if told.is_told() && (!told.is_thread() || told.parent().is_some()) {
            let parent = told.parent();
            of_channel.place = Some(Place { root: parent.unwrap_or(told.id.0), thread: parent.map(|_| told.id.0) });
        }
    }

    /// Somebody wrote to the bot directly.
    pub fn is_direct(&self, channel: Snowflake, person: &str) {
        let mut known = self.lock();
        let of_channel = known.channels.entry(channel).or_default();
        of_channel.is_direct = true;
        if of_channel.name.as_deref() != Some(person) {
            of_channel.name = Some(person.into());
        }
        of_channel.place = Some(Place { root: channel, thread: None });
    }

    /// A guild was told of, whole or without its channels.
    pub fn guild_is(&self, told: &wire::Guild, bot: Option<Snowflake>) {
        self.lock().guilds.entry(told.id.0).or_default().is(told, bot);
    }

    /// A role of a guild came or changed.
    pub fn role_is(&self, guild: Snowflake, role: &wire::Role, bot: Option<Snowflake>) {
        self.lock().guilds.entry(guild).or_default().role_is(role, bot);
    }

    /// A role of a guild went.
    pub fn role_gone(&self, guild: Snowflake, role: Snowflake) {
        self.lock().guilds.entry(guild).or_default().role_gone(role);
    }

    /// These are the emojis of a guild.
    pub fn emojis_are(&self, guild: Snowflake, emojis: &[wire::Emoji]) {
        self.lock().guilds.entry(guild).or_default().emojis_are(emojis);
    }

    /// Whether a guild was told of.
    pub fn knows_guild(&self, guild: Snowflake) -> bool {
        self.lock().guilds.get(&guild).is_some_and(OfGuild::is_told)
    }

    /// When the bot was invited to a guild, if that was told.
    pub fn joined(&self, guild: Snowflake) -> Option<Moment> {
        self.lock().guilds.get(&guild)?.joined
    }

    /// Whether it was told where a channel is.
    pub fn knows_channel(&self, channel: Snowflake) -> bool {
        self.lock().channels.get(&channel).is_some_and(|of_channel| of_channel.place.is_some())
    }

    /// The role that belongs to our bot alone in a guild.
    pub fn own_role(&self, guild: Snowflake) -> Option<Snowflake> {
        self.lock().guilds.get(&guild)?.own_role
    }

    /// The bot is not in a guild any more. Returns its channels that were known.
    pub fn guild_gone(&self, guild: Snowflake) -> Vec<Snowflake> {
        let mut known = self.lock();
        known.guilds.remove(&guild);
        let is_there = |of_channel: &OfChannel| of_channel.guild == Some(guild);
        let gone: Vec<_> =
            known.channels.iter().filter(|(_, of_channel)| is_there(of_channel)).map(|(channel, _)| *channel).collect();
        for channel in &gone {
            known.channels.remove(channel);
        }
        gone
    }

    /// The names of one guild, or of none: what belongs to another guild is unknown there.
    pub const fn names(&self, guild: Option<Snowflake>) -> Names<'_> {
        Names { known: self, guild }
    }
}

/// The names of one guild.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    known: &'a Known,
    guild: Option<Snowflake>,
}

impl heard::Known for Names<'_> {
    fn person(&self, id: Snowflake) -> Option<String> {
        Some(self.known.lock().guilds.get(&self.guild?)?.person(id)?.to_string())
    }

    fn role(&self, id: Snowflake) -> Option<String> {
        self.known.lock().guilds.get(&self.guild?)?.role(id).map(str::to_owned)
    }

    fn channel(&self, id: Snowflake) -> Option<String> {
        let known = self.known.lock();
        let of_channel = known.channels.get(&id).filter(|of_channel| of_channel.guild == self.guild && !of_channel.is_direct)?;
        of_channel.name.as_deref().map(str::to_owned)
    }
}

impl Company {
    /// Does something with it as [`super::said`] wants it. With `calls` false nobody may be called.
    pub fn with<T>(&self, calls: bool, act: impl FnOnce(&Around<'_>) -> T) -> T {
        let people: Vec<_> = self.people.iter().filter(|_| calls).map(|(id, name)| Present { id: *id, name }).collect();
        let emojis: Vec<_> =
            self.emojis.iter().map(|(id, name, animated)| Emoji { id: *id, name, animated: *animated }).collect();
        act(&Around { people: &people, emojis: &emojis })
    }
}
