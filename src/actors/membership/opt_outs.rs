//! People who do not want to be heard, by guild: at hand for whoever hears.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::{Mutex, MutexGuard};

use crate::domain::id::{GuildId, PersonId, Ward};
use crate::journal::reader::{ReadError, Reader};

/// Who is not to be heard. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct OptOuts(Arc<Shared>);

#[derive(Default)]
struct Shared {
    people: RwLock<HashMap<GuildId, HashSet<PersonId>>>,
    /// Held while it is changed, one change after the other.
    changes: Mutex<()>,
}

impl OptOuts {
    /// Takes in whom the store has. Needed before anything is heard.
    ///
    /// # Errors
    /// What is stored cannot be read.
    pub async fn read(&self, reader: &Reader<'_>) -> Result<(), ReadError> {
        for ward in (0..=u8::MAX).map(Ward) {
            for (guild, person) in reader.opt_outs(ward).await? {
                self.note(&guild, &person, true);
            }
        }
        Ok(())
    }

    /// Whether a person is not to be heard in a guild.
    pub fn holds(&self, guild: &GuildId, person: &PersonId) -> bool {
        let people = self.0.people.read().unwrap_or_else(PoisonError::into_inner);
        people.get(guild).is_some_and(|people| people.contains(person))
    }

    /// The turn to change who is not to be heard: one change after the other.
    pub(super) async fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.changes.lock().await
    }

    pub(super) fn note(&self, guild: &GuildId, person: &PersonId, ignored: bool) {
        let mut people = self.0.people.write().unwrap_or_else(PoisonError::into_inner);
        if ignored {
            people.entry(guild.clone()).or_default().insert(person.clone());
        } else if let Some(known) = people.get_mut(guild) {
            known.remove(person);
            if known.is_empty() {
                people.remove(guild);
            }
        }
    }
}
