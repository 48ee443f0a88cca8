//! The people who opted out, by guild, cached in memory for inbound messages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::RwLock;
use tokio::sync::{Mutex, MutexGuard};

use crate::domain::id::{GuildId, PersonId, Ward};
use crate::journal::reader::{ReadError, Reader};
use crate::ports::store::Store;

/// The people who opted out. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub struct OptOuts(Arc<Shared>);

#[derive(Default)]
struct Shared {
    people: RwLock<HashMap<GuildId, HashSet<PersonId>>>,
    /// Held during a change, so that changes do not overlap.
    changes: Mutex<()>,
}

impl OptOuts {
    /// Loads the stored opt-outs. Must be called before messages are accepted.
    ///
    /// # Errors
    /// Returns an error if the stored opt-outs cannot be read.
    pub async fn load(&self, store: &dyn Store) -> Result<(), ReadError> {
        let reader = Reader::new(store);
        let wards = stream::iter((0..=u8::MAX).map(Ward));
        let mut read = wards.map(|ward| reader.opt_outs(ward)).buffer_unordered(store.reads_at_once());
        while let Some(of_ward) = read.try_next().await? {
            of_ward.iter().for_each(|(guild, person)| self.note(guild, person, true));
        }
        Ok(())
    }

    /// Whether a person opted out in a guild.
    pub fn holds(&self, guild: &GuildId, person: &PersonId) -> bool {
        let people = self.0.people.read();
        people.get(guild).is_some_and(|people| people.contains(person))
    }

    /// The people who opted out in a guild.
    pub fn all(&self, guild: &GuildId) -> HashSet<PersonId> {
        self.0.people.read().get(guild).cloned().unwrap_or_default()
    }

    /// Waits for the exclusive lock on changes of opt-outs.
    pub(super) async fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.changes.lock().await
    }

    pub(super) fn note(&self, guild: &GuildId, person: &PersonId, ignored: bool) {
        let mut people = self.0.people.write();
        if ignored {
            people.entry(guild.clone()).or_default().insert(person.clone());
        } else if let Some(ignored) = people.get_mut(guild) {
            ignored.remove(person);
            if ignored.is_empty() {
                people.remove(guild);
            }
        }
    }
}
