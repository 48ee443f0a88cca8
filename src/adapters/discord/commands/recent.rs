//! Limits how many interactions are handled at once, and finds repeated ones.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::adapters::discord::snowflake::Snowflake;
use crate::domain::id::GuildId;

/// The number of remembered interactions. It is more than a resumed connection repeats, unless somebody types without end.
const REMEMBERED: usize = 4_096;

/// Slots for interactions in progress. One guild cannot use all of them.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    most: usize,
    most_per_guild: usize,
    in_use: Arc<Mutex<InUse>>,
}

#[derive(Debug, Default)]
struct InUse {
    all: usize,
    by_guild: BTreeMap<GuildId, usize>,
}

/// A slot in use. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    guild: GuildId,
    in_use: Arc<Mutex<InUse>>,
}

impl Slots {
    pub fn new(most: usize, most_per_guild: usize) -> Self {
        Self { most, most_per_guild, in_use: Arc::default() }
    }

    /// Takes a slot for a guild. `None` if all slots, or all that one guild may use, are in use.
    pub fn take(&self, guild: &GuildId) -> Option<Slot> {
        let mut in_use = self.in_use.lock();
        let in_guild = in_use.by_guild.get(guild).copied().unwrap_or_default();
        if in_use.all >= self.most || in_guild >= self.most_per_guild {
            return None;
        }
        in_use.all += 1;
        in_use.by_guild.insert(guild.clone(), in_guild + 1);
        Some(Slot { guild: guild.clone(), in_use: Arc::clone(&self.in_use) })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut in_use = self.in_use.lock();
        in_use.all -= 1;
        if let Some(in_guild) = in_use.by_guild.get_mut(&self.guild) {
            *in_guild -= 1;
            if *in_guild == 0 {
                in_use.by_guild.remove(&self.guild);
            }
        }
    }
}

/// The latest interactions. They are remembered because a resumed connection repeats events.
#[derive(Debug, Default)]
pub(super) struct RecentInteractions {
    ids: BTreeSet<Snowflake>,
    in_order: VecDeque<Snowflake>,
}

impl RecentInteractions {
    /// Whether an interaction arrives for the first time. Remembers it.
    pub fn is_new(&mut self, id: Snowflake) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.in_order.push_back(id);
        if self.in_order.len() > REMEMBERED
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_guild_leaves_room_for_others() {
        let slots = Slots::new(3, 2);
        let (home, away) = (GuildId::from("discord:1"), GuildId::from("discord:2"));

        let (first, second) = (slots.take(&home), slots.take(&home));
        assert!(first.is_some() && second.is_some());
        assert!(slots.take(&home).is_none());
        let other = slots.take(&away);
        assert!(other.is_some());
        assert!(slots.take(&away).is_none(), "all are in use");

        drop(first);
        assert!(slots.take(&away).is_some());
        drop((second, other));
        assert!(slots.in_use.lock().by_guild.is_empty());
    }

    #[test]
    fn an_interaction_is_remembered_for_a_while() {
        let mut seen = RecentInteractions::default();
        let id = |number| Snowflake::new(number).unwrap();

        assert!(seen.is_new(id(1)));
        assert!(!seen.is_new(id(1)));
        for number in 2..=REMEMBERED as u64 + 1 {
            assert!(seen.is_new(id(number)));
        }

        assert_eq!((seen.ids.len(), seen.in_order.len()), (REMEMBERED, REMEMBERED));
        assert!(seen.is_new(id(1)), "it is too long ago to be remembered");
    }
}
