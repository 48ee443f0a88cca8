//! Caches in memory when each person of a guild last received the disclosure that companions are AI. Statements use it to decide
//! whether to disclose again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::RwLock;

use crate::domain::id::{GuildId, PersonId, Ward};
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::ports::store::{Store, Write};

/// The times of the last AI disclosures. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub struct Told(Arc<RwLock<HashMap<GuildId, HashMap<PersonId, Moment>>>>);

impl Told {
    /// Loads the stored times. Must be called before statements are posted.
    ///
    /// # Errors
    /// Returns an error if the times cannot be read.
    pub async fn load(&self, store: &dyn Store) -> Result<(), ReadError> {
        let reader = Reader::new(store);
        let wards = stream::iter((0..=u8::MAX).map(Ward));
        let mut read = wards.map(|ward| reader.told(ward)).buffer_unordered(store.reads_at_once());
        while let Some(of_ward) = read.try_next().await? {
            of_ward.iter().for_each(|(guild, person, at)| self.note(guild, [person], *at));
        }
        Ok(())
    }

    /// The guilds of a ward in which people received the disclosure.
    pub fn guilds(&self, ward: Ward) -> BTreeSet<GuildId> {
        let all = self.0.read();
        let told = all.iter().filter(|(_, people)| !people.is_empty()).map(|(guild, _)| guild);
        told.filter(|guild| Ward::of(guild) == ward).cloned().collect()
    }

    /// When a person last received the disclosure.
    pub fn at(&self, guild: &GuildId, person: &PersonId) -> Option<Moment> {
        self.0.read().get(guild)?.get(person).copied()
    }

    /// The people who last received the disclosure before this moment.
    pub fn before(&self, guild: &GuildId, before: Moment) -> Vec<PersonId> {
        let all = self.0.read();
        let told = all.get(guild).into_iter().flatten();
        told.filter(|(_, at)| **at < before).map(|(person, _)| person.clone()).collect()
    }

    /// Records a disclosure that is already stored.
    pub fn note<'a>(&self, guild: &GuildId, people: impl IntoIterator<Item = &'a PersonId>, at: Moment) {
        let people = people.into_iter().map(|person| (person.clone(), at));
        self.0.write().entry(guild.clone()).or_default().extend(people);
    }

    /// The write that removes a person's record from the store. `None` if there is none.
    pub fn removal(&self, guild: &GuildId, person: &PersonId) -> Option<Write> {
        self.at(guild, person).map(|_| Write::Remove(key::told(guild, person)))
    }

    /// Removes a person's record from the cache, once it is removed from the store.
    pub fn remove(&self, guild: &GuildId, person: &PersonId) {
        if let Some(people) = self.0.write().get_mut(guild) {
            people.remove(person);
        }
    }
}
