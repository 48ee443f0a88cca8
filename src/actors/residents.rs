//! Who lives in which channel, under which names, and how patient each is there.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
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
pub struct Residents(Arc<Shared>);

struct Shared {
    register: RwLock<Register>,
    /// Grows with every change, so that what was made from the register is made again only then.
    edition: AtomicU64,
}

struct Register {
    cast: Arc<Cast>,
    channels: BTreeMap<ChannelId, Residence>,
    guilds: HashMap<GuildId, Household>,
}

/// The companions of one guild.
#[derive(Clone, Default)]
struct Household {
    /// In how many channels each lives.
    channels: BTreeMap<CompanionId, usize>,
    /// None as long as nobody lives there.
    names: Option<Arc<Names>>,
}

impl Residents {
    /// These companions, living nowhere.
    pub fn new(cast: Cast) -> Self {
        let register = Register { cast: Arc::new(cast), channels: BTreeMap::new(), guilds: HashMap::new() };
        Self(Arc::new(Shared { register: RwLock::new(register), edition: AtomicU64::new(0) }))
    }

    /// The companions that are configured.
    pub fn cast(&self) -> Arc<Cast> {
        self.read().cast.clone()
    }

    /// Another number after every change.
    pub fn edition(&self) -> u64 {
        self.0.edition.load(Ordering::Acquire)
    }

    /// Takes other companions from now on; nothing changes on an error.
    ///
    /// # Errors
    /// Two that live in one guild would share a name.
    pub fn recast(&self, cast: Cast) -> Result<(), SharedName> {
        let mut register = self.write();
        let renamed = register
            .guilds
            .iter()
            .map(|(guild, household)| Ok((guild.clone(), Arc::new(names_of(household.channels.keys(), &cast)?))))
            .collect::<Result<Vec<_>, SharedName>>()?;
        for (guild, names) in renamed {
            register.guilds.entry(guild).or_default().names = Some(names);
        }
        register.cast = Arc::new(cast);
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
        register.household_with(channel, Some(residence), &residence.guild).map(drop)
    }

    /// Takes a residence.
    ///
    /// # Errors
    /// Two companions of the guild would share a name; nothing changes then.
    pub fn put(&self, channel: &ChannelId, residence: Residence) -> Result<(), SharedName> {
        let mut register = self.write();
        let household = register.household_with(channel, Some(&residence), &residence.guild)?;
        register.guilds.insert(residence.guild.clone(), household);
        register.channels.insert(channel.clone(), residence);
        Ok(())
    }

    /// The channel is no more.
    pub fn remove(&self, channel: &ChannelId) {
        let mut register = self.write();
        let Some(guild) = register.channels.get(channel).map(|residence| residence.guild.clone()) else { return };
        // Fewer companions share no more names than there were.
        if let Ok(household) = register.household_with(channel, None, &guild) {
            register.guilds.insert(guild, household);
        }
        register.channels.remove(channel);
    }

    /// Everyone's names in a guild.
    pub fn names(&self, guild: &GuildId) -> Option<Arc<Names>> {
        self.read().guilds.get(guild)?.names.clone()
    }

    /// Whether this is the id of a companion that lives in this guild.
    pub fn lives_in(&self, guild: &GuildId, id: &str) -> bool {
        let id = CompanionId::from(id);
        self.read().guilds.get(guild).is_some_and(|household| household.channels.contains_key(&id))
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
        self.0.register.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Register> {
        let register = self.0.register.write().unwrap_or_else(PoisonError::into_inner);
        self.0.edition.fetch_add(1, Ordering::Release);
        register
    }
}

impl Register {
    /// A guild's companions if this channel had this residence, or none.
    fn household_with(
        &self,
        channel: &ChannelId,
        residence: Option<&Residence>,
        guild: &GuildId,
    ) -> Result<Household, SharedName> {
        let mut household = self.guilds.get(guild).cloned().unwrap_or_default();
        let before: Vec<_> = household.channels.keys().cloned().collect();
        for companion in self.channels.get(channel).into_iter().flat_map(|known| &known.companions) {
            if let Some(channels) = household.channels.get_mut(companion) {
                *channels -= 1;
            }
        }
        for companion in residence.into_iter().flat_map(|residence| &residence.companions) {
            *household.channels.entry(companion.clone()).or_default() += 1;
        }
        household.channels.retain(|_, channels| *channels > 0);
        if !household.channels.keys().eq(&before) {
            household.names = Some(Arc::new(names_of(household.channels.keys(), &self.cast)?));
        }
        Ok(household)
    }
}

fn names_of<'a>(companions: impl Iterator<Item = &'a CompanionId>, cast: &Cast) -> Result<Names, SharedName> {
    let present = companions.filter_map(|id| cast.get(id));
    Names::new(present.map(|companion| (companion.id.clone(), companion.names())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;
    use crate::settings::Settings;
    use crate::settings::companion::CompanionFile;

    #[test]
    fn a_companion_lives_in_a_guild_as_long_as_it_lives_in_one_of_its_channels() {
        let residents = Residents::new(cast(&[("aria", &["ari"]), ("bruno", &[])]));
        residents.put(&"one".into(), residence("home", &["aria"])).unwrap();
        residents.put(&"two".into(), residence("home", &["aria", "bruno"])).unwrap();

        residents.remove(&"one".into());
        assert!(residents.lives_in(&"home".into(), "aria"));

        residents.put(&"two".into(), residence("home", &["bruno"])).unwrap();
        assert!(!residents.lives_in(&"home".into(), "aria"));
        assert!(residents.lives_in(&"home".into(), "bruno"));
        assert!(!residents.lives_in(&"away".into(), "bruno"));
        assert_eq!(residents.names(&"home".into()).unwrap().find("ari and bruno"), ["bruno".into()]);
    }

    #[test]
    fn two_who_share_a_name_cannot_live_in_one_guild_and_nothing_changes() {
        let residents = Residents::new(cast(&[("aria", &["ari"]), ("ariel", &["Ari"])]));
        residents.put(&"one".into(), residence("home", &["aria"])).unwrap();
        residents.put(&"far".into(), residence("away", &["ariel"])).unwrap();

        let shared = residents.put(&"two".into(), residence("home", &["ariel"])).unwrap_err();

        assert_eq!((shared.first.as_str(), shared.second.as_str()), ("aria", "ariel"));
        assert_eq!(residents.get(&"two".into()), None);
        assert!(!residents.lives_in(&"home".into(), "ariel"));
    }

    #[test]
    fn a_new_cast_that_would_share_a_name_is_not_taken() {
        let residents = Residents::new(cast(&[("aria", &[]), ("bruno", &[])]));
        residents.put(&"one".into(), residence("home", &["aria", "bruno"])).unwrap();
        let edition = residents.edition();

        residents.recast(cast(&[("aria", &["ari"]), ("bruno", &["ari"])])).unwrap_err();
        assert_eq!(residents.cast()[&CompanionId::from("aria")].aliases.len(), 0);

        residents.recast(cast(&[("aria", &["ari"]), ("bruno", &[])])).unwrap();
        assert_eq!(residents.names(&"home".into()).unwrap().find("ari?"), ["aria".into()]);
        assert_ne!(residents.edition(), edition);
    }

    fn cast(companions: &[(&str, &[&str])]) -> Cast {
        let defaults = Settings::overlay(serde_json::json!({})).unwrap().companion_defaults;
        let companion = |(id, aliases): &(&str, &[&str])| {
            let aliases = aliases.iter().map(|alias| Arc::from(*alias)).collect();
            let file = CompanionFile { id: Some((*id).into()), aliases: Some(aliases), ..CompanionFile::default() };
            (CompanionId::from(*id), Companion::from_file(file, None, &defaults).unwrap())
        };
        companions.iter().map(companion).collect()
    }

    fn residence(guild: &str, companions: &[&str]) -> Residence {
        Residence {
            guild: guild.into(),
            companions: companions.iter().map(|id| CompanionId::from(*id)).collect(),
            overrides: BTreeMap::new(),
            paused: false,
            created_at: Moment::ZERO,
        }
    }
}
