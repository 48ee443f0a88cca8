//! What looks for names in texts, made once for all guilds where the same companions live.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::GuildMembers;
use crate::domain::id::CompanionId;
use crate::domain::names::Names;

/// Those that some guild has, by who lives there, sorted: of one cast, in which everybody has the same names everywhere. Whoever is played by
/// a program outside is named differently in each guild, so guilds with one have their own.
#[derive(Default)]
pub(super) struct NameSets {
    pub(super) known: HashMap<Vec<CompanionId>, Weak<Names>>,
    /// Those that no guild has any more are forgotten when there are so many.
    forget_at: usize,
}

impl NameSets {
    /// That of a guild where the same companions live.
    pub(super) fn of(&self, members: &GuildMembers) -> Option<Arc<Names>> {
        self.known.get(&shared_by(members)?)?.upgrade()
    }

    /// This is a guild's, and that of every guild where the same companions live.
    pub(super) fn share(&mut self, members: &GuildMembers, names: &Arc<Names>) {
        let Some(companions) = shared_by(members) else { return };
        self.known.insert(companions, Arc::downgrade(names));
        if self.known.len() > self.forget_at {
            self.known.retain(|_, names| names.strong_count() > 0);
            self.forget_at = 2 * self.known.len();
        }
    }
}

fn shared_by(members: &GuildMembers) -> Option<Vec<CompanionId>> {
    members.externals.is_empty().then(|| members.channels.keys().cloned().collect())
}
