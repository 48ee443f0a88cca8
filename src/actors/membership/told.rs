//! When people were last told in a guild that companions are AI, cached in memory for the statements that answer them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::RwLock;

use crate::domain::id::{GuildId, PersonId, Ward};
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::ports::store::{Store, Write};

/// When people were last told. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub struct Told(Arc<RwLock<HashMap<GuildId, HashMap<PersonId, Moment>>>>);

impl Told {
    /// Loads what is stored. Must be called before statements are posted.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn load(&self, store: &dyn Store) -> Result<(), ReadError> {
        let reader = Reader::new(store);
        let wards = stream::iter((0..=u8::MAX).map(Ward));
        let mut read = wards.map(|ward| reader.told(ward)).buffer_unordered(store.reads_at_once());
        while let Some(of_ward) = read.try_next().await? {
            of_ward.iter().for_each(|(guild, person, at)| self.note(guild, [person], *at));
        }
        Ok(())
    }

    /// The guilds of a ward in which people were told.
    pub fn guilds(&self, ward: Ward) -> BTreeSet<GuildId> {
        let all = self.0.read();
        let told = all.iter().filter(|(_, people)| !people.is_empty()).map(|(guild, _)| guild);
        told.filter(|guild| Ward::of(guild) == ward).cloned().collect()
    }

    /// When a person was last told.
    pub fn at(&self, guild: &GuildId, person: &PersonId) -> Option<Moment> {
        self.0.read().get(guild)?.get(person).copied()
    }

    /// The people who were last told before this moment.
    pub fn before(&self, guild: &GuildId, before: Moment) -> Vec<PersonId> {
        let all = self.0.read();
        let told = all.get(guild).into_iter().flatten();
        told.filter(|(_, at)| **at < before).map(|(person, _)| person.clone()).collect()
    }

    /// Notes who was told, which is stored.
    pub fn note<'a>(&self, guild: &GuildId, people: impl IntoIterator<Item = &'a PersonId>, at: Moment) {
        let people = people.into_iter().map(|person| (person.clone(), at));
        self.0.write().entry(guild.clone()).or_default().extend(people);
    }

    /// The write that forgets that a person was told, unless the person never was.
    pub fn removal(&self, guild: &GuildId, person: &PersonId) -> Option<Write> {
        self.at(guild, person).map(|_| Write::Remove(key::told(guild, person)))
    }

    /// Forgets that a person was told, once that is stored.
    pub fn remove(&self, guild: &GuildId, person: &PersonId) {
        if let Some(people) = self.0.write().get_mut(guild) {
            people.remove(person);
        }
    }
}
