//! Who lives in which channel, under which names, and how patient each is there.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::domain::gate::Temper;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::names::{Names, SharedName};
use crate::journal::residence::{External, Residence};
use crate::settings::Problem;
use crate::settings::companion::{Companion, CompanionDefaults, CompanionFile};
use crate::telemetry::instruments::{Instruments, NONE};

/// The companions that are configured, by id.
pub type Cast = BTreeMap<CompanionId, Companion>;

/// Who lives where. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Residents(Arc<Shared>);

struct Shared {
    register: RwLock<Register>,
    /// Channels where somebody is putting on record who comes and goes, and how many do.
    moves: Mutex<HashMap<ChannelId, usize>>,
    /// Grows with every change, so that what was made from the register is made again only then.
    edition: AtomicU64,
    instruments: Instruments,
}

struct Register {
    cast: Arc<Cast>,
    /// What external companions are apart from their names.
    defaults: CompanionDefaults,
    channels: BTreeMap<ChannelId, Residence>,
    guilds: HashMap<GuildId, Household>,
}

/// The companions of one guild.
#[derive(Clone, Default)]
struct Household {
    /// In how many channels each lives.
    channels: BTreeMap<CompanionId, usize>,
    /// Those that programs outside play, by channel.
    externals: BTreeMap<ChannelId, BTreeMap<CompanionId, External>>,
    /// None as long as nobody lives there.
    names: Option<Arc<Names>>,
}

/// Why other companions are not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Miscast {
    /// Two that live in one guild would share a name.
    #[error(transparent)]
    SharedName(#[from] SharedName),
    /// A program outside plays one of them.
    #[error(
        "{companion} is external in {channel}; give the companion's file another name, or take the external one out of the room"
    )]
    External {
        /// Who.
        companion: CompanionId,
        /// Where.
        channel: ChannelId,
    },
}

impl Residents {
    /// These companions, living nowhere. External ones will be what the defaults say, but for their names.
    pub fn new(cast: Cast, defaults: CompanionDefaults, instruments: Instruments) -> Self {
        let register = Register { cast: Arc::new(cast), defaults, channels: BTreeMap::new(), guilds: HashMap::new() };
        let (register, moves, edition) = (RwLock::new(register), Mutex::default(), AtomicU64::new(0));
        Self(Arc::new(Shared { register, moves, edition, instruments }))
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
    /// Two that live in one guild would share a name, or a program outside plays one of them.
    pub fn recast(&self, cast: Cast) -> Result<(), Miscast> {
        let mut register = self.write();
        for (channel, residence) in &register.channels {
            // Whose id was taken before is told when the rooms are made ready.
            let is_taken = |id: &&CompanionId| cast.contains_key(*id) && !register.cast.contains_key(*id);
            if let Some(companion) = residence.externals.keys().find(is_taken) {
                return Err(Miscast::External { companion: companion.clone(), channel: channel.clone() });
            }
        }
        let renamed = register
            .guilds
            .iter()
            .map(|(guild, household)| Ok((guild.clone(), Arc::new(names_of(household, &cast)?))))
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
        self.measure(&register);
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
        self.measure(&register);
    }

    /// While the register is held, so that the newest number is told last.
    fn measure(&self, register: &Register) {
        self.0.instruments.channels_known.set(register.channels.len() as u64, NONE);
    }

    /// Somebody begins to put on record who comes to a channel and who goes, and does until this is dropped.
    pub fn moving(&self, channel: &ChannelId) -> Moving {
        *self.moves().entry(channel.clone()).or_default() += 1;
        Moving { residents: self.clone(), channel: channel.clone() }
    }

    /// Whether somebody is putting on record who comes to a channel and who goes: what is not there yet is on its way.
    pub fn is_moving(&self, channel: &ChannelId) -> bool {
        self.moves().contains_key(channel)
    }

    fn moves(&self) -> MutexGuard<'_, HashMap<ChannelId, usize>> {
        self.0.moves.lock().unwrap_or_else(PoisonError::into_inner)
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
        let residence = register.channels.get(channel);
        let external = residence.and_then(|residence| residence.externals.get(id));
        let companion = match external {
            Some(external) => played(id, external, &register.defaults).ok()?,
            None => register.cast.get(id)?.clone(),
        };
        let overrides = residence.and_then(|residence| residence.overrides.get(id));
        Some(overrides.map_or_else(|| companion.clone(), |overrides| overrides.applied_to(&companion)))
    }

    /// Everyone who is present in a channel: who should be and is configured, or is played by a program outside. Says of each whether it is
    /// external.
    pub fn present(&self, channel: &ChannelId) -> BTreeMap<CompanionId, bool> {
        let register = self.read();
        let residents = register.channels.get(channel).into_iter();
        let known = residents.flat_map(|residence| residence.companions.iter().map(|id| (id.clone(), residence.is_external(id))));
        known.filter(|(id, is_external)| *is_external || register.cast.contains_key(id)).collect()
    }

    /// How patient everyone is in a channel.
    pub fn tempers(&self, channel: &ChannelId) -> BTreeMap<CompanionId, Temper> {
        let present = self.present(channel).into_keys();
        present.filter_map(|id| Some((id.clone(), self.companion(channel, &id)?.temper()))).collect()
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

/// Somebody is putting on record who comes to a channel and who goes.
pub struct Moving {
    residents: Residents,
    channel: ChannelId,
}

impl Drop for Moving {
    fn drop(&mut self) {
        let mut moves = self.residents.moves();
        if let Some(count) = moves.get_mut(&self.channel) {
            *count -= 1;
        }
        moves.retain(|_, count| *count > 0);
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
        let externals = residence.map(|residence| residence.externals.clone()).unwrap_or_default();
        let externals_before = if externals.is_empty() {
            household.externals.remove(channel)
        } else {
            household.externals.insert(channel.clone(), externals.clone())
        };
        for companion in self.channels.get(channel).into_iter().flat_map(|known| &known.companions) {
            if let Some(channels) = household.channels.get_mut(companion) {
                *channels -= 1;
            }
        }
        for companion in residence.into_iter().flat_map(|residence| &residence.companions) {
            *household.channels.entry(companion.clone()).or_default() += 1;
        }
        household.channels.retain(|_, channels| *channels > 0);
        if !household.channels.keys().eq(&before) || externals_before.unwrap_or_default() != externals {
            household.names = Some(Arc::new(names_of(&household, &self.cast)?));
        }
        Ok(household)
    }
}

/// The companion that a program outside plays.
///
/// # Errors
/// Everything that a companion may not have, each with its key.
pub fn played(id: &CompanionId, external: &External, defaults: &CompanionDefaults) -> Result<Companion, Vec<Problem>> {
    let (name, aliases) = (external.name.clone(), Some(external.aliases.clone()));
    let file = CompanionFile { id: Some(id.clone()), name, aliases, ..CompanionFile::default() };
    Companion::from_file(file, None, defaults)
}

fn names_of(household: &Household, cast: &Cast) -> Result<Names, SharedName> {
    let configured = household.channels.keys().filter_map(|id| cast.get(id));
    let configured = configured.map(|companion| (companion.id.clone(), companion.names().collect::<Vec<_>>()));
    let externals = household.externals.values().flatten().map(|(id, external)| {
        let names = external.name.iter().chain(&external.aliases).map(|name| &**name);
        (id.clone(), names.collect())
    });
    Names::new(configured.chain(externals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::moment::Moment;
    use crate::settings::Settings;

    #[test]
    fn a_companion_lives_in_a_guild_as_long_as_it_lives_in_one_of_its_channels() {
        let residents = residents(&[("aria", &["ari"]), ("bruno", &[])]);
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
        let residents = residents(&[("aria", &["ari"]), ("ariel", &["Ari"])]);
        residents.put(&"one".into(), residence("home", &["aria"])).unwrap();
        residents.put(&"far".into(), residence("away", &["ariel"])).unwrap();

        let shared = residents.put(&"two".into(), residence("home", &["ariel"])).unwrap_err();

        assert_eq!((shared.first.as_str(), shared.second.as_str()), ("aria", "ariel"));
        assert_eq!(residents.get(&"two".into()), None);
        assert!(!residents.lives_in(&"home".into(), "ariel"));
    }

    #[test]
    fn a_new_cast_that_would_share_a_name_is_not_taken() {
        let residents = residents(&[("aria", &[]), ("bruno", &[])]);
        residents.put(&"one".into(), residence("home", &["aria", "bruno"])).unwrap();
        let edition = residents.edition();

        residents.recast(cast(&[("aria", &["ari"]), ("bruno", &["ari"])])).unwrap_err();
        assert_eq!(residents.cast()[&CompanionId::from("aria")].aliases.len(), 0);

        residents.recast(cast(&[("aria", &["ari"]), ("bruno", &[])])).unwrap();
        assert_eq!(residents.names(&"home".into()).unwrap().find("ari?"), ["aria".into()]);
        assert_ne!(residents.edition(), edition);
    }

    #[test]
    fn an_external_companion_lives_under_its_names_and_is_what_the_defaults_say() {
        let residents = residents(&[("aria", &["ari"])]);
        let zed = External { name: None, aliases: vec!["zeddy".into()] };

        residents.put(&"one".into(), with_external("zed", zed.clone())).unwrap();

        assert!(residents.lives_in(&"home".into(), "zed"));
        assert_eq!(residents.names(&"home".into()).unwrap().find("ari and zeddy"), ["aria".into(), "zed".into()]);
        assert_eq!(residents.tempers(&"one".into()).len(), 2);
        assert!(residents.present(&"one".into())[&CompanionId::from("zed")]);
        assert_eq!(&*residents.companion(&"one".into(), &"zed".into()).unwrap().name, "Zed");
        assert_eq!(residents.companion(&"two".into(), &"zed".into()), None);
    }

    #[test]
    fn an_external_companion_shares_no_name_with_anybody_in_any_room_of_its_guild() {
        let residents = residents(&[("aria", &["ari"])]);
        residents.put(&"one".into(), residence("home", &["aria"])).unwrap();
        let named = |name: &str| External { name: Some(name.into()), aliases: Vec::new() };
        residents.put(&"two".into(), with_external("zed", named("Zed"))).unwrap();

        residents.put(&"two".into(), with_external("zed", named("ARI"))).unwrap_err();
        residents.put(&"two".into(), with_external("zed", named("Zoltan"))).unwrap();

        assert_eq!(residents.names(&"home".into()).unwrap().find("zoltan"), ["zed".into()]);
        residents.put(&"two".into(), residence("home", &["aria"])).unwrap();
        assert_eq!(residents.names(&"home".into()).unwrap().find("zoltan"), []);
        assert!(!residents.lives_in(&"home".into(), "zed"));
    }

    #[test]
    fn a_companion_that_is_played_from_outside_is_not_configured_besides() {
        let residents = residents(&[("aria", &[])]);
        residents.put(&"one".into(), with_external("zed", External::default())).unwrap();

        let refused = residents.recast(cast(&[("aria", &[]), ("zed", &[])])).unwrap_err();

        assert!(matches!(refused, Miscast::External { companion, .. } if companion.as_str() == "zed"));
        assert!(!residents.cast().contains_key(&CompanionId::from("zed")));
    }

    fn residents(companions: &[(&str, &[&str])]) -> Residents {
        let defaults = Settings::overlay(serde_json::json!({})).unwrap().companion_defaults;
        Residents::new(cast(companions), defaults, Instruments::unread())
    }

    fn with_external(id: &str, external: External) -> Residence {
        let mut residence = residence("home", &["aria", id]);
        residence.externals.insert(id.into(), external);
        residence
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
            externals: BTreeMap::new(),
            overrides: BTreeMap::new(),
            paused: false,
            created_at: Moment::ZERO,
        }
    }
}
