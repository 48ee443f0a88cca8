//! Facts about people by guild, cached in memory: who opted out, when each person was last told that companions are AI, and who
//! turned notes on or off.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::RwLock;

use crate::domain::id::{GuildId, PersonId, Ward};
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::NoteSwitchRecord;
use crate::ports::store::{Store, Write};

/// One value for each person of each guild. Clones share it.
#[derive(Clone, Default)]
pub struct People<T>(Arc<RwLock<HashMap<GuildId, HashMap<PersonId, T>>>>);

/// The people who opted out.
pub type OptOuts = People<()>;
/// When people were last told that companions are AI.
pub type Told = People<Moment>;
/// Whether notes are taken, by guild and person. An empty person id stands for the whole guild; with an empty guild id, it is the default for guilds of
/// the console.
pub type NoteSwitches = People<NoteSwitchRecord>;

impl<T: Copy> People<T> {
    pub fn get(&self, guild: &GuildId, person: &PersonId) -> Option<T> {
        self.0.read().get(guild)?.get(person).copied()
    }

    /// The people of a guild whose values match.
    pub fn filtered(&self, guild: &GuildId, matches: impl Fn(T) -> bool) -> Vec<PersonId> {
        let all = self.0.read();
        let people = all.get(guild).into_iter().flatten();
        people.filter(|(_, value)| matches(**value)).map(|(person, _)| person.clone()).collect()
    }

    /// The guilds of a ward that have an entry.
    pub fn guilds(&self, ward: Ward) -> BTreeSet<GuildId> {
        self.0.read().keys().filter(|guild| Ward::of(guild) == ward).cloned().collect()
    }

    /// Adds people once their values are stored.
    pub fn insert<'a>(&self, guild: &GuildId, people: impl IntoIterator<Item = &'a PersonId>, value: T) {
        let people = people.into_iter().map(|person| (person.clone(), value));
        self.0.write().entry(guild.clone()).or_default().extend(people);
    }

    /// Removes a person once that is stored.
    pub fn remove(&self, guild: &GuildId, person: &PersonId) {
        let mut all = self.0.write();
        if let Some(people) = all.get_mut(guild) {
            people.remove(person);
            if people.is_empty() {
                all.remove(guild);
            }
        }
    }
}

impl People<()> {
    pub fn holds(&self, guild: &GuildId, person: &PersonId) -> bool {
        self.get(guild, person).is_some()
    }
}

impl People<Moment> {
    /// The write that removes when a person was told. `None` if the person was not told.
    pub fn removal(&self, guild: &GuildId, person: &PersonId) -> Option<Write> {
        self.get(guild, person).map(|_| Write::Remove(key::disclosure(guild, person)))
    }
}

impl People<NoteSwitchRecord> {
    /// The switch of a guild, or the default for guilds of the console. None: nobody has set it.
    pub fn of_guild(&self, guild: &GuildId, is_of_console: bool) -> Option<NoteSwitchRecord> {
        let nobody = PersonId::from("");
        self.get(guild, &nobody).or_else(|| self.get(&GuildId::from(""), &nobody).filter(|_| is_of_console))
    }

    /// Whether notes may be taken of a person.
    pub fn allows(&self, guild: &GuildId, person: &PersonId) -> bool {
        self.get(guild, person).is_none_or(|switch| switch.on)
    }
}

/// Loads the caches. Must be called before messages are accepted.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub async fn load(opt_outs: &OptOuts, told: &Told, switches: &NoteSwitches, store: &dyn Store) -> Result<(), ReadError> {
    let reader = &Reader::new(store);
    let wards = stream::iter((0..=u8::MAX).map(Ward));
    let read = wards.map(|ward| async move {
        Ok::<_, ReadError>((reader.opt_outs(ward).await?, reader.disclosures(ward).await?, reader.note_switches(ward).await?))
    });
    let mut read = read.buffer_unordered(store.reads_at_once());
    while let Some((opted_out, last_told, switched)) = read.try_next().await? {
        opted_out.iter().for_each(|(guild, person)| opt_outs.insert(guild, [person], ()));
        last_told.iter().for_each(|(guild, person, at)| told.insert(guild, [person], *at));
        switched.iter().for_each(|(guild, person, on)| switches.insert(guild, [person], *on));
    }
    Ok(())
}
