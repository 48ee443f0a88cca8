//! The matchers that find companions' names in texts, shared by all guilds with the same companions.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::GuildMembers;
use crate::domain::id::CompanionId;
use crate::domain::names::Names;

/// The matchers that guilds use, by the sorted ids of their companions. Configured companions have the same names in all guilds. External
/// companions have different names in each guild, so guilds with external companions do not share their matcher.
#[derive(Default)]
pub(super) struct NameSets {
    pub(super) matchers: HashMap<Vec<CompanionId>, Weak<Names>>,
    /// At more entries than this, entries without a guild are removed.
    clean_at: usize,
}

impl NameSets {
    /// The matcher of a guild with the same companions.
    pub(super) fn of(&self, members: &GuildMembers) -> Option<Arc<Names>> {
        self.matchers.get(&shared_by(members)?)?.upgrade()
    }

    /// Shares a guild's matcher with every guild that has the same companions.
    pub(super) fn share(&mut self, members: &GuildMembers, names: &Arc<Names>) {
        let Some(companions) = shared_by(members) else { return };
        self.matchers.insert(companions, Arc::downgrade(names));
        if self.matchers.len() > self.clean_at {
            self.matchers.retain(|_, names| names.strong_count() > 0);
            self.clean_at = 2 * self.matchers.len();
        }
    }
}

fn shared_by(members: &GuildMembers) -> Option<Vec<CompanionId>> {
    members.externals.is_empty().then(|| members.channels.keys().cloned().collect())
}
