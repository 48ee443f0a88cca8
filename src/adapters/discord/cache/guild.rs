//! A guild in the cache.

use std::sync::Arc;

use twilight_model::guild::Permissions;

use super::super::names::plain;
use super::super::outgoing::Emoji;
use super::super::snowflake::Snowflake;
use super::super::wire;
use crate::domain::moment::Moment;

/// The limit of stored people's names: the latest speakers.
const MAX_PEOPLE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct CachedGuild {
    pub name: Option<Box<str>>,
    /// The role that only our bot has.
    pub own_role: Option<Snowflake>,
    pub emojis: Arc<[Emoji]>,
    /// The permissions that everybody has, before a channel's overwrites. None: unknown.
    pub everyone: Option<Permissions>,
    /// Ordered by id.
    roles: Vec<(Snowflake, Box<str>)>,
    /// Newest last.
    people: Vec<(Snowflake, Arc<str>)>,
    is_complete: bool,
    /// When the bot was invited.
    pub joined_at: Option<Moment>,
}

impl CachedGuild {
    /// Whether Discord reported the guild itself, not only parts of it.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub fn update(&mut self, reported: &wire::Guild, bot: Option<Snowflake>) {
        self.is_complete = true;
        self.joined_at = reported.joined_at().or(self.joined_at);
        if let Some(name) = &reported.name {
            self.name = Some(plain(name)).filter(|name| !name.is_empty()).map(Into::into);
        }
        // Every guild has at least one role. If there is none, the event did not include the roles.
        if !reported.roles.is_empty() {
            self.own_role = reported.roles.iter().find(|role| bot.is_some() && role.bot() == bot).map(|role| role.id);
            // `@everyone` is the role with the id of the guild.
            self.everyone = reported.roles.iter().find(|role| role.id == reported.id).and_then(|role| role.permissions);
            self.roles = reported.roles.iter().map(|role| (role.id, name_of(role))).collect();
            self.roles.sort_by_key(|(id, _)| *id);
            self.roles.shrink_to_fit();
        }
        self.set_emojis(&reported.emojis);
    }

    pub fn update_role(&mut self, guild: Snowflake, role: &wire::Role, bot: Option<Snowflake>) {
        let id = role.id;
        if id == guild {
            self.everyone = role.permissions;
        }
        if bot.is_some() && role.bot() == bot {
            self.own_role = Some(id);
        }
        let entry = (id, name_of(role));
        match self.roles.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => self.roles[at] = entry,
            Err(at) => self.roles.insert(at, entry),
        }
    }

    pub fn remove_role(&mut self, role: Snowflake) {
        self.roles.retain(|(id, _)| *id != role);
        self.own_role = self.own_role.filter(|own| *own != role);
    }

    pub fn role(&self, role: Snowflake) -> Option<&str> {
        let at = self.roles.binary_search_by_key(&role, |(id, _)| *id).ok()?;
        Some(&self.roles[at].1)
    }

    pub fn set_emojis(&mut self, emojis: &[wire::Emoji]) {
        let usable = emojis.iter().filter(|emoji| emoji.is_usable());
        let kept = |emoji: &wire::Emoji| Emoji { id: emoji.id, name: emoji.name.as_str().into(), animated: emoji.animated };
        self.emojis = usable.map(kept).collect();
    }

    pub fn remember_person(&mut self, user: Snowflake, name: &str) {
        let before = self.people.iter().position(|(other, _)| *other == user).map(|at| self.people.remove(at).1);
        if self.people.len() >= MAX_PEOPLE {
            self.people.remove(0);
        }
        self.people.push((user, before.filter(|before| **before == *name).unwrap_or_else(|| name.into())));
    }

    pub fn person(&self, user: Snowflake) -> Option<Arc<str>> {
        Some(Arc::clone(&self.people.iter().find(|(other, _)| *other == user)?.1))
    }
}

fn name_of(role: &wire::Role) -> Box<str> {
    role.name.as_deref().map(plain).unwrap_or_default().into()
}
