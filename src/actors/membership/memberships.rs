//! Who lives in which channel, under which names, and how patient each is there.

mod name_sets;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::{ChannelId, CompanionId, GuildId};
use crate::domain::names::{Names, SharedName};
use crate::journal::membership::{External, Membership};
use crate::settings::Problem;
use crate::settings::companion::{Companion, CompanionDefaults, CompanionFile};
use crate::telemetry::instruments::{Instruments, NONE};
use name_sets::NameSets;

/// The companions that are configured, by id.
pub type CompanionSet = BTreeMap<CompanionId, Companion>;

/// Who lives where. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Memberships(Arc<Shared>);

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
pub struct MembershipLock {
    _held: Arc<tokio::sync::OwnedMutexGuard<()>>,
}

struct Register {
    cast: Arc<CompanionSet>,
    /// What external companions are apart from their names.
    defaults: CompanionDefaults,
    channels: BTreeMap<ChannelId, Membership>,
    guilds: HashMap<GuildId, GuildMembers>,
    /// What looks for the names of companions that are configured, shared by guilds where the same ones live.
    name_sets: NameSets,
}

/// The companions of one guild.
#[derive(Clone, Default)]
struct GuildMembers {
    /// In how many channels each lives.
    channels: BTreeMap<CompanionId, usize>,
    /// Those that programs outside play, by channel.
    externals: BTreeMap<ChannelId, BTreeMap<CompanionId, External>>,
    /// None as long as nobody lives there.
    names: Option<Arc<Names>>,
}

/// Why other companions are not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// Two that live in one guild would share a name.
    #[error(transparent)]
    SharedName(#[from] SharedName),
    /// A program outside plays one of them.
    #[error(
        "{companion} is external in {channel}; give the companion's file another name, or take the external one out of the room"
    )]
    External { companion: CompanionId, channel: ChannelId },
}

impl Memberships {
    /// These companions, living nowhere. External ones will be what the defaults say, but for their names.
    pub fn new(cast: CompanionSet, defaults: CompanionDefaults, instruments: Instruments) -> Self {
        let register = Register {
            cast: Arc::new(cast),
            defaults,
            channels: BTreeMap::new(),
            guilds: HashMap::new(),
            name_sets: NameSets::default(),
        };
        let (register, moves, edition) = (RwLock::new(register), Mutex::default(), AtomicU64::new(0));
        let changes = Arc::default();
        Self(Arc::new(Shared { register, changes, moves, edition, instruments }))
    }

    /// Waits for its turn to change who lives where: whoever reads what is there, and settles something else for it, does both in one.
    pub async fn lock(&self) -> MembershipLock {
        MembershipLock { _held: Arc::new(self.0.changes.clone().lock_owned().await) }
    }

    pub fn companions(&self) -> Arc<CompanionSet> {
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
    pub fn reload_companions(&self, cast: CompanionSet) -> Result<(), ReloadError> {
        let mut register = self.write();
        for (channel, membership) in &register.channels {
            // Whose id was taken before is told when the rooms are made ready.
            let is_taken = |id: &&CompanionId| cast.contains_key(*id) && !register.cast.contains_key(*id);
            if let Some(companion) = membership.externals.keys().find(is_taken) {
                return Err(ReloadError::External { companion: companion.clone(), channel: channel.clone() });
            }
        }
        let mut name_sets = NameSets::default();
        let mut renamed = Vec::with_capacity(register.guilds.len());
        for (guild, members) in &register.guilds {
            let names = members.names_in(&cast, &name_sets)?;
            name_sets.share(members, &names);
            renamed.push((guild.clone(), names));
        }
        for (guild, names) in renamed {
            register.guilds.entry(guild).or_default().names = Some(names);
        }
        register.name_sets = name_sets;
        register.cast = Arc::new(cast);
        Ok(())
    }

    /// The channel's residence, if it has one. A thread that lives by the channel that it is in has that one's companions, overrides and
    /// pause.
    pub fn get(&self, channel: &ChannelId) -> Option<Membership> {
        let register = self.read();
        Some(register.resolved(register.channels.get(channel)?))
    }

    /// Whose channel it is, if it has a residence.
    pub fn guild_of(&self, channel: &ChannelId) -> Option<GuildId> {
        self.read().channels.get(channel).map(|membership| membership.guild.clone())
    }

    /// Every channel with its residence, by id; each as by [`get`](Self::get).
    pub fn all(&self) -> Vec<(ChannelId, Membership)> {
        let register = self.read();
        register.channels.iter().map(|(channel, membership)| (channel.clone(), register.resolved(membership))).collect()
    }

    /// A thread's residence as it was last put on record, and as it is by now, where they differ.
    pub fn outdated(&self, thread: &ChannelId) -> Option<(Membership, Membership)> {
        let register = self.read();
        let recorded = register.channels.get(thread)?;
        recorded.inherits_from()?;
        let membership = register.resolved(recorded);
        (*recorded != membership).then(|| (recorded.clone(), membership))
    }

    /// The threads of a channel, by id.
    pub fn threads_of(&self, channel: &ChannelId) -> Vec<ChannelId> {
        let register = self.read();
        let threads = register.channels.iter().filter(|(_, membership)| membership.within.as_ref() == Some(channel));
        threads.map(|(thread, _)| thread.clone()).collect()
    }

    /// The threads of a channel that live by it, by id.
    pub fn inheriting_from(&self, channel: &ChannelId) -> Vec<ChannelId> {
        let register = self.read();
        let threads = register.channels.iter().filter(|(_, membership)| membership.inherits_from() == Some(channel));
        threads.map(|(thread, _)| thread.clone()).collect()
    }

    /// Whether a companion that is configured, or played by a program outside, lives in a channel; none: the channel has no residence.
    pub fn has_members(&self, channel: &ChannelId) -> Option<bool> {
        let register = self.read();
        let membership = register.channels.get(channel)?;
        Some(register.effective(membership).is_some_and(|membership| register.has_somebody(membership)))
    }

    /// Whether somebody would live in a channel that had this residence.
    pub fn would_have_members(&self, membership: &Membership) -> bool {
        self.read().has_somebody(membership)
    }

    /// Whether a residence could be taken.
    ///
    /// # Errors
    /// Two companions of the guild would share a name.
    pub fn allows(&self, channel: &ChannelId, membership: &Membership) -> Result<(), SharedName> {
        let register = self.read();
        register.members_with(channel, Some(membership), &membership.guild).map(drop)
    }

    /// Takes a residence.
    ///
    /// # Errors
    /// Two companions of the guild would share a name; nothing changes then.
    pub fn put(&self, channel: &ChannelId, membership: Membership) -> Result<(), SharedName> {
        let mut register = self.write();
        let members = register.members_with(channel, Some(&membership), &membership.guild)?;
        register.replace_members(membership.guild.clone(), members);
        register.channels.insert(channel.clone(), membership);
        self.measure(&register);
        Ok(())
    }

    /// The channel is no more: its residence as it was put, if it had one.
    pub fn take(&self, channel: &ChannelId) -> Option<Membership> {
        let mut register = self.write();
        let guild = register.channels.get(channel)?.guild.clone();
        // Fewer companions share no more names than there were.
        if let Ok(members) = register.members_with(channel, None, &guild) {
            register.replace_members(guild, members);
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
    pub fn begin_change(&self, channel: &ChannelId) -> MembershipChange {
        *self.moves().entry(channel.clone()).or_default() += 1;
        MembershipChange { memberships: self.clone(), channel: channel.clone() }
    }

    /// Whether somebody is putting on record who comes to a channel and who goes: what is not there yet is on its way.
    pub fn is_changing(&self, channel: &ChannelId) -> bool {
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
    pub fn is_in_guild(&self, guild: &GuildId, id: &str) -> bool {
        let id = CompanionId::from(id);
        self.read().guilds.get(guild).is_some_and(|members| members.channels.contains_key(&id))
    }

    /// A companion as it is in a channel, with what was changed there.
    pub fn companion(&self, channel: &ChannelId, id: &CompanionId) -> Option<Companion> {
        let register = self.read();
        let membership = register.channels.get(channel).and_then(|membership| register.effective(membership));
        let external = membership.and_then(|membership| membership.externals.get(id));
        let companion = match external {
            Some(external) => external_companion(id, external, &register.defaults).ok()?,
            None => register.cast.get(id)?.clone(),
        };
        let overrides = membership.and_then(|membership| membership.overrides.get(id));
        Some(overrides.map_or_else(|| companion.clone(), |overrides| overrides.applied_to(&companion)))
    }

    /// Everyone who is present in a channel: who should be and is configured, or is played by a program outside. Says of each whether it is
    /// external.
    pub fn present(&self, channel: &ChannelId) -> BTreeMap<CompanionId, bool> {
        let register = self.read();
        let memberships = register.channels.get(channel).and_then(|membership| register.effective(membership)).into_iter();
        let known =
            memberships.flat_map(|membership| membership.companions.iter().map(|id| (id.clone(), membership.is_external(id))));
        known.filter(|(id, is_external)| *is_external || register.cast.contains_key(id)).collect()
    }

    /// How patient everyone is in a channel.
    pub fn policies(&self, channel: &ChannelId) -> BTreeMap<CompanionId, InterjectionPolicy> {
        let present = self.present(channel).into_keys();
        present.filter_map(|id| Some((id.clone(), self.companion(channel, &id)?.policy()))).collect()
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
pub struct MembershipChange {
    memberships: Memberships,
    channel: ChannelId,
}

impl Drop for MembershipChange {
    fn drop(&mut self) {
        let mut moves = self.memberships.moves();
        if let Some(count) = moves.get_mut(&self.channel) {
            *count -= 1;
        }
        moves.retain(|_, count| *count > 0);
    }
}

impl Register {
    /// The residence whose companions, overrides and pause hold; none where it is one that is not there, or of another guild.
    fn effective<'a>(&'a self, membership: &'a Membership) -> Option<&'a Membership> {
        let Some(channel) = membership.inherits_from() else { return Some(membership) };
        self.channels.get(channel).filter(|other| other.inherits_from().is_none() && other.guild == membership.guild)
    }

    fn resolved(&self, membership: &Membership) -> Membership {
        if membership.inherits_from().is_some() { membership.like(self.effective(membership)) } else { membership.clone() }
    }

    fn has_somebody(&self, membership: &Membership) -> bool {
        membership.companions.iter().any(|id| membership.is_external(id) || self.cast.contains_key(id))
    }

    /// A guild's companions if this channel had this residence, or none.
    fn members_with(
        &self,
        channel: &ChannelId,
        membership: Option<&Membership>,
        guild: &GuildId,
    ) -> Result<GuildMembers, SharedName> {
        // Whoever lives in a thread by the channel that it is in is counted there.
        let membership = membership.filter(|membership| membership.inherits_from().is_none());
        let known = self.channels.get(channel).filter(|known| known.inherits_from().is_none());
        let mut members = self.guilds.get(guild).cloned().unwrap_or_default();
        let before: Vec<_> = members.channels.keys().cloned().collect();
        let externals = membership.map(|membership| membership.externals.clone()).unwrap_or_default();
        let externals_before = if externals.is_empty() {
            members.externals.remove(channel)
        } else {
            members.externals.insert(channel.clone(), externals.clone())
        };
        for companion in known.into_iter().flat_map(|known| &known.companions) {
            if let Some(channels) = members.channels.get_mut(companion) {
                *channels -= 1;
            }
        }
        for companion in membership.into_iter().flat_map(|membership| &membership.companions) {
            *members.channels.entry(companion.clone()).or_default() += 1;
        }
        members.channels.retain(|_, channels| *channels > 0);
        if !members.channels.keys().eq(&before) || externals_before.unwrap_or_default() != externals {
            members.names = Some(members.names_in(&self.cast, &self.name_sets)?);
        }
        Ok(members)
    }

    /// A guild's companions are these from now on.
    fn replace_members(&mut self, guild: GuildId, members: GuildMembers) {
        if let Some(names) = &members.names {
            self.name_sets.share(&members, names);
        }
        self.guilds.insert(guild, members);
    }
}

impl GuildMembers {
    /// Everyone's names: those that a guild with the same companions has already, where no program outside plays one.
    fn names_in(&self, cast: &CompanionSet, name_sets: &NameSets) -> Result<Arc<Names>, SharedName> {
        match name_sets.of(self) {
            Some(names) => Ok(names),
            None => Ok(Arc::new(names_of(self, cast)?)),
        }
    }
}

/// The companion that a program outside plays.
///
/// # Errors
/// Everything that a companion may not have, each with its key.
pub fn external_companion(id: &CompanionId, external: &External, defaults: &CompanionDefaults) -> Result<Companion, Vec<Problem>> {
    let (name, aliases) = (external.name.clone(), Some(external.aliases.clone()));
    let file = CompanionFile { id: Some(id.clone()), name, aliases, ..CompanionFile::default() };
    Companion::from_file(file, None, defaults)
}

fn names_of(members: &GuildMembers, cast: &CompanionSet) -> Result<Names, SharedName> {
    let configured = members.channels.keys().filter_map(|id| cast.get(id));
    let configured = configured.map(|companion| (companion.id.clone(), companion.names().collect::<Vec<_>>()));
    let externals = members.externals.values().flatten().map(|(id, external)| {
        let names = external.name.iter().chain(&external.aliases).map(|name| &**name);
        (id.clone(), names.collect())
    });
    Names::new(configured.chain(externals))
}

#[cfg(test)]
mod tests;
