//! Decides which question is next, and which is shed when too many wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::actors::messages::models::CallId;
use crate::domain::id::GuildId;
use crate::domain::priority::Priority;

/// Questions that wait for one model: by priority, in turn among guilds, the oldest of a guild first.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    /// All that wait, those that pause before another try included.
    waiting: BTreeMap<Priority, Crowd>,
    counts: [usize; Priority::ALL.len()],
    /// Those that could be asked now.
    ready: BTreeMap<Priority, Rotation>,
}

/// Those who wait at one priority, by guild. Never empty.
#[derive(Debug, Default)]
struct Crowd {
    by_guild: HashMap<GuildId, BTreeSet<CallId>>,
    /// The guilds by how many of theirs wait, of equals the one that waits longest last.
    by_size: BTreeMap<(usize, Reverse<CallId>), GuildId>,
}

#[derive(Debug, Default)]
struct Rotation {
    order: VecDeque<GuildId>,
    /// Never empty for a guild that is in `order`.
    by_guild: HashMap<GuildId, BTreeSet<CallId>>,
}

impl Queue {
    /// Lets this many wait.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, waiting: BTreeMap::new(), counts: [0; Priority::ALL.len()], ready: BTreeMap::new() }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    /// How many of them with this priority.
    pub fn waiting(&self, priority: Priority) -> usize {
        self.counts[priority as usize]
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Who must go so that one of this priority may wait; the newcomer itself if nobody who waits is weaker or older.
    ///
    /// The weakest goes, of equals one of the guild that has the most of them, the newcomer counted: no guild takes another's places by
    /// asking more. Of that guild's the oldest goes: its answer is worth the least. Among direct addresses the newest goes instead, which
    /// may be the newcomer, because each has somebody waiting for it, and the oldest the longest.
    pub fn sheds_for(&self, priority: Priority, newcomer: CallId, guild: &GuildId) -> Option<CallId> {
        if self.len() < self.capacity {
            return None;
        }
        let Some((&weakest, crowd)) = self.waiting.first_key_value().filter(|(weakest, _)| **weakest <= priority) else {
            return Some(newcomer);
        };
        if weakest < priority {
            return crowd.oldest_of_largest();
        }
        let its = crowd.by_guild.get(guild);
        let is_largest = its.map_or(0, BTreeSet::len) + 1 >= crowd.largest();
        if priority == Priority::DirectAddress {
            return if is_largest { Some(newcomer) } else { crowd.newest_of_largest() };
        }
        its.filter(|_| is_largest).map_or_else(|| crowd.oldest_of_largest(), |its| its.first().copied())
    }

    /// Lets a question wait, ready to be asked. One that paused takes its old place again.
    pub fn push(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.let_wait(call, priority, guild);
        let rotation = self.ready.entry(priority).or_default();
        if !rotation.by_guild.contains_key(guild) {
            rotation.order.push_back(guild.clone());
        }
        rotation.by_guild.entry(guild.clone()).or_default().insert(call);
    }

    /// Lets a question wait without being ready: it pauses before another try.
    pub fn push_pausing(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.let_wait(call, priority, guild);
    }

    /// Takes the question that is next, among the guilds that may ask now.
    pub fn pop(&mut self, may_ask: impl Fn(&GuildId) -> bool) -> Option<CallId> {
        let (priority, call, guild) = self
            .ready
            .iter_mut()
            .rev()
            .find_map(|(&priority, rotation)| rotation.pop(&may_ask).map(|(call, guild)| (priority, call, guild)))?;
        if self.ready.get(&priority).is_some_and(|rotation| rotation.order.is_empty()) {
            self.ready.remove(&priority);
        }
        self.forget(call, priority, &guild);
        Some(call)
    }

    /// Takes a question out wherever it waits.
    pub fn remove(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.forget(call, priority, guild);
        if let Some(rotation) = self.ready.get_mut(&priority) {
            rotation.remove(call, guild);
            if rotation.order.is_empty() {
                self.ready.remove(&priority);
            }
        }
    }

    /// Every question that could be asked now.
    pub fn ready(&self) -> Vec<CallId> {
        let mut calls: Vec<CallId> =
            self.ready.values().flat_map(|rotation| rotation.by_guild.values().flatten().copied()).collect();
        calls.sort_unstable();
        calls
    }

    fn let_wait(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        if self.waiting.entry(priority).or_default().change(guild, |its| its.insert(call)) {
            self.counts[priority as usize] += 1;
        }
    }

    fn forget(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        let Some(crowd) = self.waiting.get_mut(&priority) else { return };
        if crowd.change(guild, |its| its.remove(&call)) {
            self.counts[priority as usize] -= 1;
        }
        if crowd.by_guild.is_empty() {
            self.waiting.remove(&priority);
        }
    }
}

impl Crowd {
    /// Changes which of a guild's wait, and keeps the sizes right.
    fn change(&mut self, guild: &GuildId, change: impl FnOnce(&mut BTreeSet<CallId>) -> bool) -> bool {
        let its = self.by_guild.entry(guild.clone()).or_default();
        let size = |its: &BTreeSet<CallId>| its.first().map(|oldest| (its.len(), Reverse(*oldest)));
        let before = size(its);
        let is_changed = change(its);
        let after = size(its);
        if let Some(before) = before {
            self.by_size.remove(&before);
        }
        match after {
            Some(after) => drop(self.by_size.insert(after, guild.clone())),
            None => drop(self.by_guild.remove(guild)),
        }
        is_changed
    }

    fn largest(&self) -> usize {
        self.by_size.last_key_value().map_or(0, |((size, _), _)| *size)
    }

    fn oldest_of_largest(&self) -> Option<CallId> {
        self.by_size.last_key_value().map(|((_, Reverse(oldest)), _)| *oldest)
    }

    fn newest_of_largest(&self) -> Option<CallId> {
        let (_, guild) = self.by_size.last_key_value()?;
        self.by_guild.get(guild)?.last().copied()
    }
}

impl Rotation {
    fn pop(&mut self, may_ask: impl Fn(&GuildId) -> bool) -> Option<(CallId, GuildId)> {
        let position = self.order.iter().position(may_ask)?;
        let guild = self.order.remove(position)?;
        let calls = self.by_guild.get_mut(&guild)?;
        let call = calls.pop_first()?;
        if calls.is_empty() {
            self.by_guild.remove(&guild);
        } else {
            self.order.push_back(guild.clone());
        }
        Some((call, guild))
    }

    fn remove(&mut self, call: CallId, guild: &GuildId) {
        let Some(calls) = self.by_guild.get_mut(guild) else { return };
        calls.remove(&call);
        if calls.is_empty() {
            self.by_guild.remove(guild);
            self.order.retain(|waiting| waiting != guild);
        }
    }
}

#[cfg(test)]
mod tests;
