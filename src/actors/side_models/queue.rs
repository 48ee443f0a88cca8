//! Decides which question is next, and which is shed when too many wait.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;

use crate::domain::id::GuildId;
use crate::domain::message::Modality;
use crate::domain::trigger::Trigger;

/// One question put to the pool; a later one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How soon a question is asked; a more urgent one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A summary, which nobody waits for.
    Summary,
    /// A lull in a text channel.
    Lull,
    /// An interjection in a text channel.
    Interjection,
    /// A turn in a text channel.
    Turn,
    /// Anything in a voice channel that is not a direct address.
    Voice,
    /// Somebody waits for this very companion.
    DirectAddress,
}

impl Priority {
    /// Every priority, the least urgent first.
    pub const ALL: [Self; 6] = [Self::Summary, Self::Lull, Self::Interjection, Self::Turn, Self::Voice, Self::DirectAddress];

    /// The priority of a question that a trigger led to.
    pub const fn of(trigger: Trigger, modality: Modality) -> Self {
        match (trigger, modality) {
            (Trigger::DirectAddress, _) => Self::DirectAddress,
            (_, Modality::Voice) => Self::Voice,
            (Trigger::Turn, Modality::Text) => Self::Turn,
            (Trigger::Interjection, Modality::Text) => Self::Interjection,
            (Trigger::Lull, Modality::Text) => Self::Lull,
        }
    }

    /// The name used in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Lull => "lull",
            Self::Interjection => "interjection",
            Self::Turn => "turn",
            Self::Voice => "voice",
            Self::DirectAddress => "direct_address",
        }
    }
}

/// Questions that wait for one model: by priority, in turn among guilds, the oldest of a guild first.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    /// All that wait, those that pause before another try included; the first is the first to be shed.
    waiting: BTreeSet<(Priority, CallId)>,
    /// Those that could be asked now.
    ready: BTreeMap<Priority, Rotation>,
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
        Self { capacity, waiting: BTreeSet::new(), ready: BTreeMap::new() }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Who must go so that one of this priority may wait; the newcomer itself if nobody who waits is weaker or older.
    ///
    /// The weakest goes, of equals the oldest: its answer is worth the least. Among direct addresses the newcomer is refused
    /// instead, because each has somebody waiting for it, and the oldest the longest.
    pub fn sheds_for(&self, newcomer: (Priority, CallId)) -> Option<CallId> {
        if self.waiting.len() < self.capacity {
            return None;
        }
        match self.waiting.first() {
            Some(&(weakest, oldest)) if weakest < newcomer.0 || (weakest == newcomer.0 && weakest != Priority::DirectAddress) => {
                Some(oldest)
            }
            _ => Some(newcomer.1),
        }
    }

    /// Lets a question wait, ready to be asked. One that paused takes its old place again.
    pub fn push(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.waiting.insert((priority, call));
        let rotation = self.ready.entry(priority).or_default();
        if !rotation.by_guild.contains_key(guild) {
            rotation.order.push_back(guild.clone());
        }
        rotation.by_guild.entry(guild.clone()).or_default().insert(call);
    }

    /// Lets a question wait without being ready: it pauses before another try.
    pub fn push_pausing(&mut self, call: CallId, priority: Priority) {
        self.waiting.insert((priority, call));
    }

    /// Takes the question that is next, among the guilds that may ask now.
    pub fn pop(&mut self, may_ask: impl Fn(&GuildId) -> bool) -> Option<CallId> {
        for (&priority, rotation) in self.ready.iter_mut().rev() {
            if let Some(call) = rotation.pop(&may_ask) {
                if rotation.order.is_empty() {
                    self.ready.remove(&priority);
                }
                self.waiting.remove(&(priority, call));
                return Some(call);
            }
        }
        None
    }

    /// Takes a question out wherever it waits.
    pub fn remove(&mut self, call: CallId, priority: Priority, guild: &GuildId) {
        self.waiting.remove(&(priority, call));
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
}

impl Rotation {
    fn pop(&mut self, may_ask: impl Fn(&GuildId) -> bool) -> Option<CallId> {
        let position = self.order.iter().position(may_ask)?;
        let guild = self.order.remove(position)?;
        let calls = self.by_guild.get_mut(&guild)?;
        let call = calls.pop_first();
        if calls.is_empty() {
            self.by_guild.remove(&guild);
        } else {
            self.order.push_back(guild);
        }
        call
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
