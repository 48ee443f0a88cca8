//! Who lives in which channel, under which names, and how patient each is there.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::domain::gate::Temper;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::names::{Names, SharedName};
use crate::journal::residence::Residence;
use crate::settings::companion::Companion;

/// The companions that are configured, by id.
pub type Cast = BTreeMap<CompanionId, Companion>;

/// Who lives where. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Residents(Arc<RwLock<Register>>);

struct Register {
    cast: Arc<Cast>,
    channels: BTreeMap<ChannelId, Residence>,
    names: HashMap<GuildId, Arc<Names>>,
}

impl Residents {
    /// These companions, living nowhere.
    pub fn new(cast: Cast) -> Self {
        Self(Arc::new(RwLock::new(Register { cast: Arc::new(cast), channels: BTreeMap::new(), names: HashMap::new() })))
    }

    /// The companions that are configured.
    pub fn cast(&self) -> Arc<Cast> {
        self.read().cast.clone()
    }

    /// Takes other companions from now on; nothing changes on an error.
    ///
    /// # Errors
    /// Two that live in one guild would share a name.
    pub fn recast(&self, cast: Cast) -> Result<(), SharedName> {
        let mut register = self.write();
        let cast = Arc::new(cast);
        let guilds: Vec<_> = register.names.keys().cloned().collect();
        let names = guilds
            .into_iter()
            .map(|guild| Ok((guild.clone(), Arc::new(names_of(&guild, &cast, register.channels.values())?))))
            .collect::<Result<_, SharedName>>()?;
        register.cast = cast;
        register.names = names;
        Ok(())
    }

    /// The channel's residence, if it has one.
    pub fn get(&self, channel: &ChannelId) -> Option<Residence> {
        self.read().channels.get(channel).cloned()
    }

    /// Every channel with its residence, by id.
    pub fn all(&self) -> Vec<(ChannelId, Residence)> {
        self.read().channels.iter().map(|(channel, residence)| (channel.clone(), residence.clone())).collect()
    }

    /// Whether a residence could be taken.
    ///
    /// # Errors
    /// Two companions of the guild would share a name.
    pub fn allows(&self, channel: &ChannelId, residence: &Residence) -> Result<(), SharedName> {
        let register = self.read();
        let others = register.channels.iter().filter(|(known, _)| *known != channel).map(|(_, known)| known);
        names_of(&residence.guild, &register.cast, others.chain([residence])).map(drop)
    }

    /// Takes a residence.
    ///
    /// # Errors
    /// Two companions of the guild would share a name; nothing changes then.
    pub fn put(&self, channel: &ChannelId, residence: Residence) -> Result<(), SharedName> {
        let mut register = self.write();
        let guild = residence.guild.clone();
        let before = register.channels.insert(channel.clone(), residence);
        match names_of(&guild, &register.cast, register.channels.values()) {
            Ok(names) => {
                register.names.insert(guild, Arc::new(names));
                Ok(())
            }
            Err(shared) => {
                match before {
                    Some(before) => register.channels.insert(channel.clone(), before),
                    None => register.channels.remove(channel),
                };
                Err(shared)
            }
        }
    }

    /// The channel is no more.
    pub fn remove(&self, channel: &ChannelId) {
        let mut register = self.write();
        let Some(gone) = register.channels.remove(channel) else { return };
        if let Ok(names) = names_of(&gone.guild, &register.cast, register.channels.values()) {
            register.names.insert(gone.guild, Arc::new(names));
        }
    }

    /// Everyone's names in a guild.
    pub fn names(&self, guild: &GuildId) -> Option<Arc<Names>> {
        self.read().names.get(guild).cloned()
    }

    /// Whether this is the id of a companion that lives in this guild.
    pub fn lives_in(&self, guild: &GuildId, id: &str) -> bool {
        let id = CompanionId::from(id);
        self.read().channels.values().any(|residence| residence.guild == *guild && residence.companions.contains(&id))
    }

    /// A companion as it is in a channel, with what was changed there.
    pub fn companion(&self, channel: &ChannelId, id: &CompanionId) -> Option<Companion> {
        let register = self.read();
        let configured = register.cast.get(id)?;
        let overrides = register.channels.get(channel).and_then(|residence| residence.overrides.get(id));
        Some(overrides.map_or_else(|| configured.clone(), |overrides| overrides.applied_to(configured)))
    }

    /// How patient everyone is in a channel.
    pub fn tempers(&self, channel: &ChannelId) -> BTreeMap<CompanionId, Temper> {
        let residents = self.get(channel).map(|residence| residence.companions).unwrap_or_default();
        residents.into_iter().filter_map(|id| Some((id.clone(), self.companion(channel, &id)?.temper()))).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Register> {
        // No code that holds the lock can panic halfway through a change.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Register> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names_of<'a>(guild: &GuildId, cast: &Cast, channels: impl Iterator<Item = &'a Residence>) -> Result<Names, SharedName> {
    let mut present: Vec<_> =
        channels.filter(|residence| residence.guild == *guild).flat_map(|residence| &residence.companions).collect();
    present.sort();
    present.dedup();
    Names::new(present.into_iter().filter_map(|id| cast.get(id)).map(|companion| (companion.id.clone(), companion.names())))
}
