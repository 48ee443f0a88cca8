//! People who do not want to be heard, by guild: at hand for whoever hears, and in the store.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::actors::runtime::kit::Kit;
use crate::actors::writer::reaching::administer;
use crate::actors::writer::{Contested, Lost};
use crate::domain::id::{GuildId, PersonId, Ward};
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::{IgnoredRecord, encode};
use crate::ports::house::Refused;
use crate::ports::ignoring::Ignoring;
use crate::ports::store::Write;

/// Who is not to be heard. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Ignored(Arc<Shared>);

#[derive(Default)]
struct Shared {
    people: RwLock<HashMap<GuildId, HashSet<PersonId>>>,
    /// Held while it is changed, one change after the other.
    changes: Mutex<()>,
}

impl Ignored {
    /// Takes in whom the store has. Needed before anything is heard.
    ///
    /// # Errors
    /// What is stored cannot be read.
    pub async fn read(&self, reader: &Reader<'_>) -> Result<(), ReadError> {
        for ward in (0..=u8::MAX).map(Ward) {
            for (guild, person) in reader.ignored(ward).await? {
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

    fn note(&self, guild: &GuildId, person: &PersonId, ignored: bool) {
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

/// Changes who is not to be heard, lastingly. What a person said before stays on record, and can be taken back as before; being forgotten
/// makes nobody heard again.
pub struct KeptIgnored {
    kit: Kit,
}

impl KeptIgnored {
    /// Those of this system.
    pub fn new(kit: Kit) -> Self {
        Self { kit }
    }
}

#[async_trait]
impl Ignoring for KeptIgnored {
    fn is_ignored(&self, guild: &GuildId, person: &PersonId) -> bool {
        self.kit.ignored.holds(guild, person)
    }

    async fn ignore(&self, guild: &GuildId, person: &PersonId, ignored: bool) -> Result<bool, Refused> {
        let _turn = self.kit.ignored.0.changes.lock().await;
        if self.is_ignored(guild, person) == ignored {
            return Ok(false);
        }
        let key = key::ignored(guild, person);
        let write = if ignored {
            let record = IgnoredRecord { guild: guild.clone(), person: person.clone(), since: self.kit.clock.now() };
            Write::Put(key, encode(&record))
        } else {
            Write::Remove(key)
        };
        administer(&self.kit, Ward::of(guild), vec![write]).await.map_err(not_now)?;
        self.kit.ignored.note(guild, person, ignored);
        Ok(true)
    }
}

fn not_now(error: Contested) -> Refused {
    let detail = match error {
        Contested::Lost(Lost::Unknown) => "it is not known whether this was stored, try again".to_owned(),
        error => format!("this cannot be stored at the moment, try again: {error}"),
    };
    Refused::Unavailable { detail, retry_after: None }
}
