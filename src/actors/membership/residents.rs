//! Who lives in which channel, under which names, and how patient each is there.

mod automata;

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
use automata::Automata;

/// The companions that are configured, by id.
pub type Cast = BTreeMap<CompanionId, Companion>;

/// Who lives where. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Residents(Arc<Shared>);

struct Shared {
    register: RwLock<Register>,
    /// Held while rooms are changed, one change after the other.
    changes: Arc<tokio::sync::Mutex<()>>,
    /// Channels where somebody is putting on record who comes and goes, and how many do.
    moves: Mutex<HashMap<ChannelId, usize>>,
    /// Grows with every change, so that what was made from the register is made again only then.
    edition: AtomicU64,
    instruments: Instruments,
}

/// The right to change who lives where. One has it at a time; all clones are one.
#[derive(Clone)]
pub struct Turn {
    _held: Arc<tokio::sync::OwnedMutexGuard<()>>,
}

struct Register {
    cast: Arc<Cast>,
    /// What external companions are apart from their names.
    defaults: CompanionDefaults,
    channels: BTreeMap<ChannelId, Residence>,
    guilds: HashMap<GuildId, Household>,
    /// What looks for the names of companions that are configured, shared by guilds where the same ones live.
    automata: Automata,
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
        let register = Register {
            cast: Arc::new(cast),
            defaults,
            channels: BTreeMap::new(),
            guilds: HashMap::new(),
            automata: Automata::default(),
        };
        let (register, moves, edition) = (RwLock::new(register), Mutex::default(), AtomicU64::new(0));
        let changes = Arc::default();
        Self(Arc::new(Shared { register, changes, moves, edition, instruments }))
    }

    /// Waits for its turn to change who lives where: whoever reads what is there, and settles something else for it, does both in one.
    pub async fn turn(&self) -> Turn {
        Turn { _held: Arc::new(self.0.changes.clone().lock_owned().await) }
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
        let mut automata = Automata::default();
        let mut renamed = Vec::with_capacity(register.guilds.len());
        for (guild, household) in &register.guilds {
            let names = household.names_in(&cast, &automata)?;
            automata.share(household, &names);
            renamed.push((guild.clone(), names));
        }
        for (guild, names) in renamed {
            register.guilds.entry(guild).or_default().names = Some(names);
        }
        register.automata = automata;
        register.cast = Arc::new(cast);
        Ok(())
    }

    /// The channel's residence, if it has one. A thread that lives by the channel that it is in has that one's companions, overrides and
    /// pause.
    pub fn get(&self, channel: &ChannelId) -> Option<Residence> {
        let register = self.read();
        Some(register.resolved(register.channels.get(channel)?))
    }

    /// Whose channel it is, if it has a residence.
    pub fn guild_of(&self, channel: &ChannelId) -> Option<GuildId> {
        self.read().channels.get(channel).map(|residence| residence.guild.clone())
    }

    /// Every channel with its residence, by id; each as by [`get`](Self::get).
    pub fn all(&self) -> Vec<(ChannelId, Residence)> {
        let register = self.read();
        register.channels.iter().map(|(channel, residence)| (channel.clone(), register.resolved(residence))).collect()
    }

    /// A thread's residence as it was last put on record, and as it is by now, where they differ.
    pub fn outdated(&self, thread: &ChannelId) -> Option<(Residence, Residence)> {
        let register = self.read();
        let recorded = register.channels.get(thread)?;
        recorded.lives_by()?;
        let residence = register.resolved(recorded);
        (*recorded != residence).then(|| (recorded.clone(), residence))
    }

    /// The threads of a channel, by id.
    pub fn threads_of(&self, channel: &ChannelId) -> Vec<ChannelId> {
        let register = self.read();
        let threads = register.channels.iter().filter(|(_, residence)| residence.within.as_ref() == Some(channel));
        threads.map(|(thread, _)| thread.clone()).collect()
    }

    /// The threads of a channel that live by it, by id.
    pub fn living_by(&self, channel: &ChannelId) -> Vec<ChannelId> {
        let register = self.read();
        let threads = register.channels.iter().filter(|(_, residence)| residence.lives_by() == Some(channel));
        threads.map(|(thread, _)| thread.clone()).collect()
    }

    /// Whether a companion that is configured, or played by a program outside, lives in a channel; none: the channel has no residence.
    pub fn is_lived_in(&self, channel: &ChannelId) -> Option<bool> {
        let register = self.read();
        let residence = register.channels.get(channel)?;
        Some(register.effective(residence).is_some_and(|residence| register.holds_somebody(residence)))
    }

    /// Whether somebody would live in a channel that had this residence.
    pub fn would_be_lived_in(&self, residence: &Residence) -> bool {
        self.read().holds_somebody(residence)
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
        register.settle(residence.guild.clone(), household);
        register.channels.insert(channel.clone(), residence);
        self.measure(&register);
        Ok(())
    }

    /// The channel is no more: its residence as it was put, if it had one.
    pub fn take(&self, channel: &ChannelId) -> Option<Residence> {
        let mut register = self.write();
        let guild = register.channels.get(channel)?.guild.clone();
        // Fewer companions share no more names than there were.
        if let Ok(household) = register.household_with(channel, None, &guild) {
            register.settle(guild, household);
        }
        let taken = register.channels.remove(channel);
        self.measure(&register);
        taken
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
        let residence = register.channels.get(channel).and_then(|residence| register.effective(residence));
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
        let residents = register.channels.get(channel).and_then(|residence| register.effective(residence)).into_iter();
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
    /// The residence whose companions, overrides and pause hold; none where it is one that is not there, or of another guild.
    fn effective<'a>(&'a self, residence: &'a Residence) -> Option<&'a Residence> {
        let Some(channel) = residence.lives_by() else { return Some(residence) };
        self.channels.get(channel).filter(|other| other.lives_by().is_none() && other.guild == residence.guild)
    }

    fn resolved(&self, residence: &Residence) -> Residence {
        if residence.lives_by().is_some() { residence.like(self.effective(residence)) } else { residence.clone() }
    }

    fn holds_somebody(&self, residence: &Residence) -> bool {
        residence.companions.iter().any(|id| residence.is_external(id) || self.cast.contains_key(id))
    }

    /// A guild's companions if this channel had this residence, or none.
    fn household_with(
        &self,
        channel: &ChannelId,
        residence: Option<&Residence>,
        guild: &GuildId,
    ) -> Result<Household, SharedName> {
        // Whoever lives in a thread by the channel that it is in is counted there.
        let residence = residence.filter(|residence| residence.lives_by().is_none());
        let known = self.channels.get(channel).filter(|known| known.lives_by().is_none());
        let mut household = self.guilds.get(guild).cloned().unwrap_or_default();
        let before: Vec<_> = household.channels.keys().cloned().collect();
        let externals = residence.map(|residence| residence.externals.clone()).unwrap_or_default();
        let externals_before = if externals.is_empty() {
            household.externals.remove(channel)
        } else {
            household.externals.insert(channel.clone(), externals.clone())
        };
        for companion in known.into_iter().flat_map(|known| &known.companions) {
            if let Some(channels) = household.channels.get_mut(companion) {
                *channels -= 1;
            }
        }
        for companion in residence.into_iter().flat_map(|residence| &residence.companions) {
            *household.channels.entry(companion.clone()).or_default() += 1;
        }
        household.channels.retain(|_, channels| *channels > 0);
        if !household.channels.keys().eq(&before) || externals_before.unwrap_or_default() != externals {
            household.names = Some(household.names_in(&self.cast, &self.automata)?);
        }
        Ok(household)
    }

    /// A guild's companions are these from now on.
    fn settle(&mut self, guild: GuildId, household: Household) {
        if let Some(names) = &household.names {
            self.automata.share(&household, names);
        }
        self.guilds.insert(guild, household);
    }
}

impl Household {
    /// Everyone's names: those that a guild with the same companions has already, where no program outside plays one.
    fn names_in(&self, cast: &Cast, automata: &Automata) -> Result<Arc<Names>, SharedName> {
        match automata.of(self) {
            Some(names) => Ok(names),
            None => Ok(Arc::new(names_of(self, cast)?)),
        }
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
mod tests;
