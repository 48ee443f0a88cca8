//! The memberships of all channels: their companions, the companions' names, and their interjection policies.

mod name_sets;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use crate::domain::gate::InterjectionPolicy;
use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId};
use crate::domain::moment::Moment;
use crate::domain::names::{Names, SharedName};
use crate::domain::policy::names::CommonNames;
use crate::domain::policy::quiet_hours::QuietHours;
use crate::domain::room_words::RoomWords;
use crate::journal::membership::{External, Membership};
use crate::settings::Problem;
use crate::settings::companion::{Companion, CompanionDefaults, CompanionFile};
use crate::telemetry::instruments::{Instruments, NONE};
use name_sets::NameSets;

/// The configured companions, by id.
pub type CompanionSet = BTreeMap<CompanionId, Companion>;

/// The memberships of all channels. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub struct Memberships(Arc<Shared>);

struct Shared {
    register: RwLock<Register>,
    /// Held while a room is changed, so that changes do not overlap.
    changes: Arc<tokio::sync::Mutex<()>>,
    /// The number of changes that are being journaled, by channel.
    changing: Mutex<HashMap<ChannelId, usize>>,
    /// Grows with every change, so that data derived from the register is computed again only then.
    edition: AtomicU64,
    instruments: Instruments,
}

/// The exclusive lock on changes of memberships. All clones are the same lock; it is released when the last one is dropped.
#[derive(Clone)]
pub struct MembershipLock {
    _held: Arc<tokio::sync::OwnedMutexGuard<()>>,
}

struct Register {
    cast: Arc<CompanionSet>,
    /// The settings of external companions, which have only names of their own.
    defaults: CompanionDefaults,
    /// Where names that are everyday words count.
    common: CommonNames,
    /// The guilds in which there are minors.
    minors: BTreeSet<GuildId>,
    channels: BTreeMap<ChannelId, Membership>,
    /// Channels whose deletion is pending. The names of their companions stay reserved, because the deletion may be undone.
    deleting: BTreeMap<ChannelId, Membership>,
    guilds: HashMap<GuildId, GuildMembers>,
    /// The name matchers of configured companions, shared by guilds with the same companions.
    name_sets: NameSets,
}

/// The companions of one guild.
#[derive(Clone, Default)]
struct GuildMembers {
    /// The number of channels in which each companion is a member.
    channels: BTreeMap<CompanionId, usize>,
    /// The external companions, by channel.
    externals: BTreeMap<ChannelId, BTreeMap<CompanionId, External>>,
    /// `None` as long as the guild has no companions.
    names: Option<Arc<Names>>,
}

/// The new name matchers of guilds after the configured companions were replaced.
type Renamed = Vec<(GuildId, Arc<Names>)>;

/// Why the configured companions cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// Two companions of one guild would share a name.
    #[error(transparent)]
    SharedName(#[from] SharedName),
    /// A new companion has the id of an external companion in a room.
    #[error(
        "{companion} is external in {channel}; give the companion's file another name, or remove the external companion from the room"
    )]
    External { companion: CompanionId, channel: ChannelId },
}

impl Memberships {
    /// Starts with these companions and no memberships. External companions get `defaults`, except for their names. `minors` are
    /// the guilds with minors.
    pub fn new(
        cast: CompanionSet,
        defaults: CompanionDefaults,
        common: CommonNames,
        minors: BTreeSet<GuildId>,
        instruments: Instruments,
    ) -> Self {
        let register = Register {
            cast: Arc::new(cast),
            defaults,
            common,
            minors,
            channels: BTreeMap::new(),
            deleting: BTreeMap::new(),
            guilds: HashMap::new(),
            name_sets: NameSets::default(),
        };
        let (register, changing, edition) = (RwLock::new(register), Mutex::default(), AtomicU64::new(0));
        let changes = Arc::default();
        Self(Arc::new(Shared { register, changes, changing, edition, instruments }))
    }

    /// Waits for the exclusive lock on changes. Hold it from reading a membership until the changed one is stored.
    pub async fn lock(&self) -> MembershipLock {
        MembershipLock { _held: Arc::new(self.0.changes.clone().lock_owned().await) }
    }

    pub fn companions(&self) -> Arc<CompanionSet> {
        self.0.register.read().cast.clone()
    }

    /// A number that is different after every change.
    pub fn edition(&self) -> u64 {
        self.0.edition.load(Ordering::Acquire)
    }

    /// Replaces the configured companions. Nothing changes on an error.
    ///
    /// # Errors
    /// Returns an error if two companions of one guild would share a name, or if a new companion has the id of an external one in a room.
    pub fn reload_companions(&self, cast: CompanionSet) -> Result<(), ReloadError> {
        let mut register = self.write();
        let (name_sets, renamed) = register.names_with(&cast)?;
        for (guild, names) in renamed {
            register.guilds.entry(guild).or_default().names = Some(names);
        }
        register.name_sets = name_sets;
        register.cast = Arc::new(cast);
        Ok(())
    }

    /// Gives external companions these settings from now on.
    pub fn use_defaults(&self, defaults: CompanionDefaults) {
        self.write().defaults = defaults;
    }

    /// Checks whether the configured companions could be replaced by these.
    ///
    /// # Errors
    /// The same as for [`reload_companions`](Self::reload_companions).
    pub fn allows_companions(&self, cast: &CompanionSet) -> Result<(), ReloadError> {
        self.0.register.read().names_with(cast).map(drop)
    }

    /// The channel's membership, if it has one. A thread that inherits from its parent channel has the parent's companions and settings.
    pub fn get(&self, channel: &ChannelId) -> Option<Membership> {
        let register = self.0.register.read();
        Some(register.resolved(register.channels.get(channel)?))
    }

    /// The channel's membership as it was put, also if the deletion of the channel is pending.
    pub fn recorded(&self, channel: &ChannelId) -> Option<Membership> {
        self.0.register.read().recorded(channel).cloned()
    }

    /// When the channel will be deleted, if its deletion is pending. Such a channel has no membership any more.
    pub fn deleted_at(&self, channel: &ChannelId) -> Option<Moment> {
        self.0.register.read().deleting.get(channel)?.deleted_at
    }

    /// The channels whose deletion is pending, with the time of the deletion.
    pub fn all_deleting(&self) -> Vec<(ChannelId, Moment)> {
        let register = self.0.register.read();
        register.deleting.iter().filter_map(|(channel, membership)| Some((channel.clone(), membership.deleted_at?))).collect()
    }

    /// The channel's guild, if the channel has a membership.
    pub fn guild_of(&self, channel: &ChannelId) -> Option<GuildId> {
        self.0.register.read().channels.get(channel).map(|membership| membership.guild.clone())
    }

    /// All channels with their memberships, by id; each as returned by [`get`](Self::get).
    pub fn all(&self) -> Vec<(ChannelId, Membership)> {
        let register = self.0.register.read();
        register.channels.iter().map(|(channel, membership)| (channel.clone(), register.resolved(membership))).collect()
    }

    /// The first channel by id; with `after`, the first one after it.
    pub fn next_channel(&self, after: Option<&ChannelId>) -> Option<ChannelId> {
        let begin = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.0.register.read().channels.range((begin, Bound::Unbounded)).next().map(|(channel, _)| channel.clone())
    }

    /// A thread's membership as last journaled, and its current one. `None` if they are equal, or if the thread does not inherit.
    pub fn outdated(&self, thread: &ChannelId) -> Option<(Membership, Membership)> {
        let register = self.0.register.read();
        let recorded = register.channels.get(thread)?;
        recorded.inherits_from()?;
        let membership = register.resolved(recorded);
        (*recorded != membership).then(|| (recorded.clone(), membership))
    }

    /// The threads of a channel, by id.
    pub fn threads_of(&self, channel: &ChannelId) -> Vec<ChannelId> {
        let register = self.0.register.read();
        let threads = register.channels.iter().filter(|(_, membership)| membership.within.as_ref() == Some(channel));
        threads.map(|(thread, _)| thread.clone()).collect()
    }

    /// The threads of a channel that inherit from it, by id.
    pub fn inheriting_from(&self, channel: &ChannelId) -> Vec<ChannelId> {
        let register = self.0.register.read();
        let threads = register.channels.iter().filter(|(_, membership)| membership.inherits_from() == Some(channel));
        threads.map(|(thread, _)| thread.clone()).collect()
    }

    /// Whether a configured or external companion is a member of a channel. `None`: the channel has no membership.
    pub fn has_members(&self, channel: &ChannelId) -> Option<bool> {
        let register = self.0.register.read();
        let membership = register.channels.get(channel)?;
        Some(register.effective(membership).is_some_and(|membership| register.has_somebody(membership)))
    }

    /// Whether a channel with this membership would have a configured or external companion.
    pub fn would_have_members(&self, membership: &Membership) -> bool {
        self.0.register.read().has_somebody(membership)
    }

    /// Checks whether a membership could be applied.
    ///
    /// # Errors
    /// Returns an error if two companions of the guild would share a name.
    pub fn allows(&self, channel: &ChannelId, membership: &Membership) -> Result<(), SharedName> {
        let register = self.0.register.read();
        register.members_with(channel, Some(membership), &membership.guild, &register.cast).map(drop)
    }

    /// Checks whether a membership could be applied with these configured companions.
    ///
    /// # Errors
    /// Returns an error if two companions of the guild would share a name.
    pub fn allows_with(&self, channel: &ChannelId, membership: &Membership, cast: &CompanionSet) -> Result<(), SharedName> {
        self.0.register.read().members_with(channel, Some(membership), &membership.guild, cast).map(drop)
    }

    /// Stores a channel's membership in memory. The membership is hidden if the deletion of the channel is pending.
    ///
    /// # Errors
    /// Returns an error if two companions of the guild would share a name. Nothing changes then.
    pub fn put(&self, channel: &ChannelId, membership: Membership) -> Result<(), SharedName> {
        let mut register = self.write();
        let members = register.members_with(channel, Some(&membership), &membership.guild, &register.cast)?;
        register.replace_members(membership.guild.clone(), members);
        register.remove(channel);
        let channels = if membership.deleted_at.is_some() { &mut register.deleting } else { &mut register.channels };
        channels.insert(channel.clone(), membership);
        self.measure(&register);
        Ok(())
    }

    /// Removes a channel. Returns its membership as it was put, if it had one.
    pub fn remove(&self, channel: &ChannelId) -> Option<Membership> {
        let mut register = self.write();
        let guild = register.recorded(channel)?.guild.clone();
        // This cannot fail: fewer companions cannot share a new name.
        if let Ok(members) = register.members_with(channel, None, &guild, &register.cast) {
            register.replace_members(guild, members);
        }
        let removed = register.remove(channel);
        self.measure(&register);
        removed
    }

    /// Called while the register is locked, so that the newest number is reported last.
    fn measure(&self, register: &Register) {
        self.0.instruments.channels_known.set(register.channels.len() as u64, NONE);
    }

    /// Marks that a change of a channel is being journaled, until the returned guard is dropped.
    pub fn begin_change(&self, channel: &ChannelId) -> MembershipChange {
        *self.0.changing.lock().entry(channel.clone()).or_default() += 1;
        MembershipChange { memberships: self.clone(), channel: channel.clone() }
    }

    /// Whether a change of a channel is being journaled. In that case, the journal may not contain the change yet.
    pub fn is_changing(&self, channel: &ChannelId) -> bool {
        self.0.changing.lock().contains_key(channel)
    }

    /// The name matcher of a guild.
    pub fn names(&self, guild: &GuildId) -> Option<Arc<Names>> {
        self.0.register.read().guilds.get(guild)?.names.clone()
    }

    /// Whether this is the id of a companion that is a member of a channel of this guild.
    pub fn is_in_guild(&self, guild: &GuildId, id: &str) -> bool {
        let id = CompanionId::from(id);
        self.0.register.read().guilds.get(guild).is_some_and(|members| members.channels.contains_key(&id))
    }

    /// A companion's settings in a channel, with the channel's overrides.
    pub fn companion(&self, channel: &ChannelId, id: &CompanionId) -> Option<Companion> {
        let register = self.0.register.read();
        let membership = register.channels.get(channel).and_then(|membership| register.effective(membership));
        let external = membership.and_then(|membership| membership.externals.get(id));
        let companion = match external {
            Some(external) => external_companion(id, external, &register.defaults).ok()?,
            None => register.cast.get(id)?.clone(),
        };
        let overrides = membership.and_then(|membership| membership.overrides.get(id));
        Some(overrides.map_or_else(|| companion.clone(), |overrides| overrides.applied_to(&companion)))
    }

    /// The companions that are present in a channel: members that are configured or external. The value is true for an external
    /// companion.
    pub fn present(&self, channel: &ChannelId) -> BTreeMap<CompanionId, bool> {
        let register = self.0.register.read();
        let memberships = register.channels.get(channel).and_then(|membership| register.effective(membership)).into_iter();
        let members =
            memberships.flat_map(|membership| register.members(membership).map(|id| (id.clone(), membership.is_external(id))));
        members.collect()
    }

    /// Whether a channel has minors: in its guild, in the channel itself, or in its parent channel.
    pub fn has_minors(&self, channel: &ChannelId) -> bool {
        let register = self.0.register.read();
        let membership = register.channels.get(channel).and_then(|membership| register.effective(membership));
        membership.is_some_and(|membership| register.has_minors(membership))
    }

    /// This membership without the companions that are excluded: those of another guild, and those for adults only, if there are minors.
    pub fn admitted(&self, membership: &Membership) -> Membership {
        let register = self.0.register.read();
        let mut admitted = membership.clone();
        admitted.companions.retain(|id| !register.excludes(membership, id));
        admitted
    }

    /// Whether the settings mark a guild as having minors.
    pub fn guild_has_minors(&self, guild: &GuildId) -> bool {
        self.0.register.read().minors.contains(guild)
    }

    /// Whether a companion is excluded from a channel with this membership: it belongs to another guild, or there are minors.
    pub fn excludes(&self, membership: &Membership, companion: &CompanionId) -> bool {
        self.0.register.read().excludes(membership, companion)
    }

    /// The language of a channel's voice calls. `None`: `speech.language`.
    pub fn language(&self, channel: &ChannelId) -> Option<Arc<str>> {
        let register = self.0.register.read();
        register.effective(register.channels.get(channel)?)?.language.clone()
    }

    /// Whether the words of all voice notes in a channel are recognised, or of none. `None`: as the settings say.
    pub fn voice_notes(&self, channel: &ChannelId) -> Option<bool> {
        let register = self.0.register.read();
        register.effective(register.channels.get(channel)?)?.voice_notes
    }

    /// The words of a channel itself that are set at run time.
    pub fn words(&self, channel: &ChannelId) -> Option<RoomWords> {
        let register = self.0.register.read();
        Some(register.effective(register.channels.get(channel)?)?.words.clone())
    }

    /// What people say of themselves in a channel.
    pub fn described(&self, channel: &ChannelId) -> BTreeMap<PersonId, Arc<str>> {
        self.0.register.read().channels.get(channel).map(|membership| membership.described.clone()).unwrap_or_default()
    }

    /// The quiet hours of a channel, which apply to all its companions.
    pub fn quiet_hours(&self, channel: &ChannelId) -> Option<QuietHours> {
        let register = self.0.register.read();
        register.effective(register.channels.get(channel)?)?.quiet_hours
    }

    /// The words that speech recognition writes instead of the names of the companions in a channel. `None`: no such words are
    /// configured.
    pub fn sounds(&self, channel: &ChannelId) -> Option<Names> {
        let present = self.present(channel).into_keys().filter_map(|id| self.companion(channel, &id));
        let heard: Vec<_> = present.filter(|companion| !companion.voice.sounds_like.is_empty()).collect();
        let names = self.names(&self.guild_of(channel)?).filter(|_| !heard.is_empty())?;
        let sounds =
            heard.iter().map(|companion| (companion.id.clone(), companion.voice.sounds_like.iter().map(|sound| &**sound)));
        Some(Names::of_sounds(&names, sounds).with(self.0.register.read().common))
    }

    /// The names of the companions that are present in a channel, which are likely to be said there.
    pub fn said_names(&self, channel: &ChannelId) -> Vec<Arc<str>> {
        let companions = self.present(channel).into_keys().filter_map(|id| self.companion(channel, &id));
        companions.flat_map(|companion| [companion.name].into_iter().chain(companion.aliases)).collect()
    }

    /// The interjection policies of the companions that are present in a channel.
    pub fn policies(&self, channel: &ChannelId) -> BTreeMap<CompanionId, InterjectionPolicy> {
        let quiet_hours =
            if self.has_minors(channel) { QuietHours::Always } else { self.quiet_hours(channel).unwrap_or_default() };
        let policy = |id: &CompanionId| {
            let policy = self.companion(channel, id)?.policy();
            Some(InterjectionPolicy { quiet_hours: [policy.quiet_hours[0], quiet_hours], ..policy })
        };
        self.present(channel).into_keys().filter_map(|id| Some((id.clone(), policy(&id)?))).collect()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Register> {
        let register = self.0.register.write();
        self.0.edition.fetch_add(1, Ordering::Release);
        register
    }
}

/// Guard of a change that is being journaled.
pub struct MembershipChange {
    memberships: Memberships,
    channel: ChannelId,
}

impl Drop for MembershipChange {
    fn drop(&mut self) {
        let mut changing = self.memberships.0.changing.lock();
        if let Some(count) = changing.get_mut(&self.channel) {
            *count -= 1;
        }
        changing.retain(|_, count| *count > 0);
    }
}

impl Register {
    /// The name matchers of all guilds if these were the configured companions.
    fn names_with(&self, cast: &CompanionSet) -> Result<(NameSets, Renamed), ReloadError> {
        for (channel, membership) in &self.channels {
            // Ids that were already in use before are logged when the rooms are loaded.
            let is_taken = |id: &&CompanionId| cast.contains_key(*id) && !self.cast.contains_key(*id);
            if let Some(companion) = membership.externals.keys().find(is_taken) {
                return Err(ReloadError::External { companion: companion.clone(), channel: channel.clone() });
            }
        }
        let mut name_sets = NameSets::default();
        let mut renamed = Vec::with_capacity(self.guilds.len());
        for (guild, members) in &self.guilds {
            let names = members.names_in(cast, self.common, &name_sets)?;
            name_sets.share(members, &names);
            renamed.push((guild.clone(), names));
        }
        Ok((name_sets, renamed))
    }

    /// The membership whose companions and settings apply: the channel's own one, or that of its parent channel. `None` if the parent has none, or is
    /// in another guild.
    fn effective<'a>(&'a self, membership: &'a Membership) -> Option<&'a Membership> {
        let Some(channel) = membership.inherits_from() else { return Some(membership) };
        self.channels.get(channel).filter(|other| other.inherits_from().is_none() && other.guild == membership.guild)
    }

    fn recorded(&self, channel: &ChannelId) -> Option<&Membership> {
        self.channels.get(channel).or_else(|| self.deleting.get(channel))
    }

    fn remove(&mut self, channel: &ChannelId) -> Option<Membership> {
        self.channels.remove(channel).or_else(|| self.deleting.remove(channel))
    }

    fn resolved(&self, membership: &Membership) -> Membership {
        if membership.inherits_from().is_some() { membership.like(self.effective(membership)) } else { membership.clone() }
    }

    fn has_somebody(&self, membership: &Membership) -> bool {
        self.members(membership).next().is_some()
    }

    /// The present members: configured or external, and not excluded.
    fn members<'a>(&'a self, membership: &'a Membership) -> impl Iterator<Item = &'a CompanionId> {
        let takes_part =
            |id: &&CompanionId| membership.is_external(id) || (self.cast.contains_key(*id) && !self.excludes(membership, id));
        membership.companions.iter().filter(takes_part)
    }

    fn has_minors(&self, membership: &Membership) -> bool {
        // The parent channel also counts for threads that no longer inherit from it.
        let parent = membership.within.as_ref().and_then(|parent| self.channels.get(parent));
        membership.minors || parent.is_some_and(|parent| parent.minors) || self.minors.contains(&membership.guild)
    }

    fn excludes(&self, membership: &Membership, companion: &CompanionId) -> bool {
        let Some(companion) = self.cast.get(companion).filter(|companion| !membership.is_external(&companion.id)) else {
            return false;
        };
        !companion.is_of(&membership.guild) || companion.adult && self.has_minors(membership)
    }

    /// The members of a guild as if this channel had this membership, or none.
    fn members_with(
        &self,
        channel: &ChannelId,
        membership: Option<&Membership>,
        guild: &GuildId,
        cast: &CompanionSet,
    ) -> Result<GuildMembers, SharedName> {
        // Inherited members of a thread are counted in the parent channel.
        let membership = membership.filter(|membership| membership.inherits_from().is_none());
        let previous = self.recorded(channel).filter(|previous| previous.inherits_from().is_none());
        let mut members = self.guilds.get(guild).cloned().unwrap_or_default();
        let before: Vec<_> = members.channels.keys().cloned().collect();
        let externals = membership.map(|membership| membership.externals.clone()).unwrap_or_default();
        let externals_before = if externals.is_empty() {
            members.externals.remove(channel)
        } else {
            members.externals.insert(channel.clone(), externals.clone())
        };
        for companion in previous.into_iter().flat_map(|previous| &previous.companions) {
            if let Some(channels) = members.channels.get_mut(companion) {
                *channels -= 1;
            }
        }
        for companion in membership.into_iter().flat_map(|membership| &membership.companions) {
            *members.channels.entry(companion.clone()).or_default() += 1;
        }
        members.channels.retain(|_, channels| *channels > 0);
        if !members.channels.keys().eq(&before) || externals_before.unwrap_or_default() != externals {
            members.names = Some(members.names_in(cast, self.common, &self.name_sets)?);
        }
        Ok(members)
    }

    fn replace_members(&mut self, guild: GuildId, members: GuildMembers) {
        if let Some(names) = &members.names {
            self.name_sets.share(&members, names);
        }
        self.guilds.insert(guild, members);
    }
}

impl GuildMembers {
    /// The name matcher. Guilds with the same companions share one, unless they have external companions.
    fn names_in(&self, cast: &CompanionSet, common: CommonNames, name_sets: &NameSets) -> Result<Arc<Names>, SharedName> {
        match name_sets.of(self) {
            Some(names) => Ok(names),
            None => Ok(Arc::new(names_of(self, cast)?.with(common))),
        }
    }
}

/// The settings of an external companion.
///
/// # Errors
/// Returns all invalid settings, each with its key.
pub fn external_companion(
    id: &CompanionId,
    external: &External,
    defaults: &CompanionDefaults,
) -> Result<Companion, Vec<Problem>> {
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
