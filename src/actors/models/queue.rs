//! Decides which question is asked next, and which is shed when too many wait.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::actors::messages::models::CallId;
use crate::domain::id::GuildId;
use crate::domain::priority::Priority;

/// Questions that wait for one model. Higher priorities go first. Within a priority the guilds alternate, and a guild's oldest
/// question goes first.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    /// All waiting questions, including those that back off before a retry.
    waiting: BTreeMap<Priority, WaitingCalls>,
    counts: [usize; Priority::ALL.len()],
    /// The questions that could be asked now.
    ready: BTreeMap<Priority, Rotation>,
}

/// The waiting questions of one priority, by guild. Never empty.
#[derive(Debug, Default)]
struct WaitingCalls {
    by_guild: HashMap<GuildId, BTreeSet<CallId>>,
    /// The guilds by their number of waiting questions. Among equals the guild with the oldest question comes last.
    by_size: BTreeMap<(usize, Reverse<CallId>), GuildId>,
}

#[derive(Debug, Default)]
struct Rotation {
    order: VecDeque<GuildId>,
    /// Never empty for a guild that is in `order`.
    by_guild: HashMap<GuildId, BTreeSet<CallId>>,
}

impl Queue {
    /// A queue for at most this many questions.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, waiting: BTreeMap::new(), counts: [0; Priority::ALL.len()], ready: BTreeMap::new() }
    }

    pub fn len(&self) -> usize {
        self.counts.iter().sum()
    }

    /// How many questions wait with this priority.
    pub fn waiting(&self, priority: Priority) -> usize {
        self.counts[priority as usize]
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The question to shed so that a new one of this priority can wait. `None` if the queue has room. The new question itself if
    /// no waiting question has a lower priority or is to be shed before it.
    ///
    /// A question of the lowest priority is shed, from the guild that has the most of them, counting the new one. So no guild
    /// displaces another guild's questions by asking more. The guild's oldest question is shed, because its answer is worth the
    /// least. Among direct addresses the newest is shed instead, which may be the new one: a person waits for each of them, and
    /// for the oldest the longest.
    pub fn question_to_shed(&self, priority: Priority, new_call: CallId, guild: &GuildId) -> Option<CallId> {
        if self.len() < self.capacity {
            return None;
        }
        let Some((&weakest, waiting_calls)) = self.waiting.first_key_value().filter(|(weakest, _)| **weakest <= priority) else {
            return Some(new_call);
        };
        if weakest < priority {
            return waiting_calls.oldest_of_largest();
        }
        let calls = waiting_calls.by_guild.get(guild);
        let is_largest = calls.map_or(0, BTreeSet::len) + 1 >= waiting_calls.largest();
        if priority == Priority::DirectAddress {
            return if is_largest { Some(new_call) } else { waiting_calls.newest_of_largest() };
        }
        calls.filter(|_| is_largest).map_or_else(|| waiting_calls.oldest_of_largest(), |calls| calls.first().copied())
    }

    /// Adds a question that can be asked. A question that backed off gets its old place again.
    pub fn push(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.add_waiting(call, priority, guild);
        let rotation = self.ready.entry(priority).or_default();
        if !rotation.by_guild.contains_key(guild) {
            rotation.order.push_back(guild.clone());
        }
        rotation.by_guild.entry(guild.clone()).or_default().insert(call);
    }

    /// Adds a question that backs off before a retry, and cannot be asked yet.
    pub fn push_pausing(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.add_waiting(call, priority, guild);
    }

    /// Removes and returns the next question, from the guilds that may ask now.
    pub fn pop(&mut self, may_ask: impl Fn(&GuildId) -> bool) -> Option<CallId> {
        let (priority, call, guild) = self
            .ready
            .iter_mut()
            .rev()
            .find_map(|(&priority, rotation)| rotation.pop(&may_ask).map(|(call, guild)| (priority, call, guild)))?;
        if self.ready.get(&priority).is_some_and(|rotation| rotation.order.is_empty()) {
            self.ready.remove(&priority);
        }
        self.remove_waiting(call, priority, &guild);
        Some(call)
    }

    /// Removes a question, whether it is ready or backs off.
    pub fn remove(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.remove_waiting(call, priority, guild);
        if let Some(rotation) = self.ready.get_mut(&priority) {
            rotation.remove(call, guild);
            if rotation.order.is_empty() {
                self.ready.remove(&priority);
            }
        }
    }

    /// All questions that could be asked now.
    pub fn ready(&self) -> Vec<CallId> {
        let mut calls: Vec<CallId> =
            self.ready.values().flat_map(|rotation| rotation.by_guild.values().flatten().copied()).collect();
        calls.sort_unstable();
        calls
    }

    fn add_waiting(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        if self.waiting.entry(priority).or_default().change(guild, |calls| calls.insert(call)) {
            self.counts[priority as usize] += 1;
        }
    }

    fn remove_waiting(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        let Some(waiting_calls) = self.waiting.get_mut(&priority) else { return };
        if waiting_calls.change(guild, |calls| calls.remove(&call)) {
            self.counts[priority as usize] -= 1;
        }
        if waiting_calls.by_guild.is_empty() {
            self.waiting.remove(&priority);
        }
    }
}

impl WaitingCalls {
    /// Changes the set of a guild's waiting questions, and updates the sizes.
    fn change(&mut self, guild: &GuildId, change: impl FnOnce(&mut BTreeSet<CallId>) -> bool) -> bool {
        let calls = self.by_guild.entry(guild.clone()).or_default();
        let size = |calls: &BTreeSet<CallId>| calls.first().map(|oldest| (calls.len(), Reverse(*oldest)));
        let before = size(calls);
        let is_changed = change(calls);
        let after = size(calls);
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
