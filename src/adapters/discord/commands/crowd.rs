//! How many interactions are seen to at once, and which were seen before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::adapters::discord::snowflake::Snowflake;
use crate::domain::id::GuildId;

/// Interactions that are remembered. More than a connection tells again after it broke would need a person who types without end.
const REMEMBERED: usize = 4_096;

/// Places for interactions that are seen to at once; one guild cannot take them all.
#[derive(Clone, Debug)]
pub(super) struct Places {
    most: usize,
    most_of_guild: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_guild: BTreeMap<GuildId, usize>,
}

/// A place, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    guild: GuildId,
    taken: Arc<Mutex<Taken>>,
}

impl Places {
    pub fn new(most: usize, most_of_guild: usize) -> Self {
        Self { most, most_of_guild, taken: Arc::default() }
    }

    /// A place for a guild; none if all that it may have are taken.
    pub fn take(&self, guild: &GuildId) -> Option<Place> {
        let mut taken = lock(&self.taken);
        let of_guild = taken.by_guild.get(guild).copied().unwrap_or_default();
        if taken.all >= self.most || of_guild >= self.most_of_guild {
            return None;
        }
        taken.all += 1;
        taken.by_guild.insert(guild.clone(), of_guild + 1);
        Some(Place { guild: guild.clone(), taken: Arc::clone(&self.taken) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all -= 1;
        if let Some(of_guild) = taken.by_guild.get_mut(&self.guild) {
            *of_guild -= 1;
            if *of_guild == 0 {
                taken.by_guild.remove(&self.guild);
            }
        }
    }
}

// Nothing in there is half done when somebody panics.
fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The interactions of late, since a connection that goes on tells again what it told before.
#[derive(Debug, Default)]
pub(super) struct Seen {
    ids: BTreeSet<Snowflake>,
    in_order: VecDeque<Snowflake>,
}

impl Seen {
    /// Whether this one comes for the first time.
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
        let places = Places::new(3, 2);
        let (home, away) = (GuildId::from("discord:1"), GuildId::from("discord:2"));

        let (first, second) = (places.take(&home), places.take(&home));
        assert!(first.is_some() && second.is_some());
        assert!(places.take(&home).is_none());
        let other = places.take(&away);
        assert!(other.is_some());
        assert!(places.take(&away).is_none(), "all are taken");

        drop(first);
        assert!(places.take(&away).is_some());
        drop((second, other));
        assert!(lock(&places.taken).by_guild.is_empty());
    }

    #[test]
    fn what_was_seen_is_known_for_a_while() {
        let mut seen = Seen::default();
        let id = |number| Snowflake::new(number).unwrap();

        assert!(seen.is_new(id(1)));
        assert!(!seen.is_new(id(1)));
        for number in 2..=REMEMBERED as u64 + 1 {
            assert!(seen.is_new(id(number)));
        }

        assert_eq!((seen.ids.len(), seen.in_order.len()), (REMEMBERED, REMEMBERED));
        assert!(seen.is_new(id(1)), "it was so long ago that it is forgotten");
    }
}
