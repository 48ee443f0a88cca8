//! Where every actor of one system is now: ids, never stored addresses, because a restarted actor has a new one.
//!
//! ractor's own registry is process-wide, so two systems in one process (two tests) would collide in it; it is not used.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ractor::{ActorCell, ActorId, ActorRef, ActorStatus, Message};

use crate::domain::id::{ChannelId, CompanionId, GuildId, Ticket};

#[cfg(test)]
mod tests;

/// Who an actor is, through all its restarts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// The node's one writer to the store.
    Writer,
    /// The pool of the side model.
    SideModels,
    /// The pool of the main model.
    MainModels,
    /// Routes what platforms hear.
    Switchboard,
    Platforms,
    /// A connection to a platform: the platform's name, and which of its connections.
    Shard(&'static str, u32),
    Guilds,
    Guild(GuildId),
    /// A companion in a guild.
    Companion(GuildId, CompanionId),
    Channel(ChannelId),
    /// The turn-taking manager of a channel whose round is open.
    TurnTakingManager(ChannelId),
    /// A reply in the making.
    Reply(ChannelId, Ticket),
}

/// What sort of actor it is: the label under which those alive are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(usize)]
pub enum Sort {
    Writer,
    Models,
    Switchboard,
    /// The supervisor of the platforms' connections.
    Platforms,
    /// A connection to a platform.
    Shard,
    Guilds,
    Guild,
    Companion,
    Channel,
    TurnTakingManager,
    Reply,
    /// A statement on its way to a platform.
    Delivery,
}

/// An address together with the messages that are understood there. Implemented once for each actor, beside it, so that nobody
/// can look one up under another's messages:
///
/// ```ignore
/// pub struct ChannelActorKey(pub ChannelId);
///
/// impl Place for ChannelActorKey {
///     type Message = ChannelMessage;
///     fn address(&self) -> Address { Address::Channel(self.0.clone()) }
/// }
/// ```
pub trait ActorKey {
    type Message: Message;

    fn address(&self) -> Address;
}

/// Resolves addresses of one system to actors. Cloned, it is the same directory.
#[derive(Clone, Default)]
pub struct Directory(Arc<RwLock<Entries>>);

#[derive(Default)]
struct Entries {
    actors: HashMap<Address, Entry>,
    /// Guilds that were there once.
    guilds: HashSet<GuildId>,
    alive: [usize; Sort::ALL.len()],
}

struct Entry {
    actor: ActorCell,
    waiting: Arc<AtomicUsize>,
}

/// An actor's entry; dropping it takes the entry out, unless a successor has taken the place. Kept in the actor's state, it goes
/// when the actor goes, whichever way that is.
#[must_use = "the entry goes when this is dropped"]
pub struct Registration {
    directory: Directory,
    address: Address,
    id: ActorId,
    waiting: Arc<AtomicUsize>,
    is_successor: bool,
}

impl Directory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters an actor, in the place of the one that was there before.
    pub fn register<P: ActorKey>(&self, key: &P, actor: &ActorRef<P::Message>) -> Registration {
        let (address, cell) = (key.address(), actor.get_cell());
        let waiting = Arc::<AtomicUsize>::default();
        let mut entries = self.write();
        let is_successor = matches!(&address, Address::Guild(guild) if !entries.guilds.insert(guild.clone()));
        let (directory, id) = (self.clone(), cell.get_id());
        let registration = Registration { directory, address: address.clone(), id, waiting: waiting.clone(), is_successor };
        let sort = address.sort();
        if entries.actors.insert(address, Entry { actor: cell, waiting }).is_none() {
            entries.alive[sort as usize] += 1;
        }
        registration
    }

    /// The actor that is there now. None if there is none, or if it is stopping.
    pub fn find<P: ActorKey>(&self, key: &P) -> Option<ActorRef<P::Message>> {
        self.find_entry(key).map(|(actor, _)| actor)
    }

    /// Hands work to the actor that is there now. It counts as waiting until the actor says that it was
    /// [taken on](Registration::taken_on): whoever brings more asks first how much waits. False: nobody is there.
    pub fn hand_over<P: ActorKey>(&self, key: &P, work: P::Message) -> bool {
        let Some((actor, waiting)) = self.find_entry(key) else { return false };
        // Counted before it can be taken on.
        waiting.fetch_add(1, Ordering::Relaxed);
        actor.cast(work).is_ok()
    }

    /// How much of what was handed over there was not taken on yet. Nothing waits for an actor that is not there.
    pub fn waiting<P: ActorKey>(&self, key: &P) -> usize {
        self.read().actors.get(&key.address()).map_or(0, |entry| entry.waiting.load(Ordering::Relaxed))
    }

    fn find_entry<P: ActorKey>(&self, key: &P) -> Option<(ActorRef<P::Message>, Arc<AtomicUsize>)> {
        let address = key.address();
        let (actor, waiting) = self.read().actors.get(&address).map(|entry| (entry.actor.clone(), entry.waiting.clone()))?;
        if actor.get_status() >= ActorStatus::Draining {
            return None;
        }
        // Two places of different messages that claim one address would be a mistake of ours; what is sent must not get lost.
        if actor.is_message_type_of::<P::Message>() != Some(true) {
            tracing::error!(?address, "an actor that understands other messages is registered here");
            return None;
        }
        Some((actor.into(), waiting))
    }

    /// Takes an actor out, if it is still the one that is there.
    pub fn remove(&self, address: &Address, id: ActorId) -> bool {
        let mut entries = self.write();
        let is_same = entries.actors.get(address).is_some_and(|entry| entry.actor.get_id() == id);
        if is_same {
            entries.actors.remove(address);
            entries.alive[address.sort() as usize] -= 1;
        }
        is_same
    }

    /// How many actors of every sort are registered, those without any included.
    pub fn alive(&self) -> impl Iterator<Item = (Sort, usize)> + use<> {
        let alive = self.read().alive;
        Sort::ALL.into_iter().zip(alive)
    }

    fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.alive()).finish()
    }
}

impl Registration {
    /// Whether it is that of a guild that was there before.
    pub const fn is_successor(&self) -> bool {
        self.is_successor
    }

    /// So much of what was [handed over](Directory::hand_over) waits no more.
    pub fn taken_on(&self, count: usize) {
        // What came another way was never counted.
        let _ = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| Some(waiting.saturating_sub(count)));
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.directory.remove(&self.address, self.id);
    }
}

impl Address {
    /// What sort of actor is there.
    pub const fn sort(&self) -> Sort {
        match self {
            Self::Writer => Sort::Writer,
            Self::SideModels | Self::MainModels => Sort::Models,
            Self::Switchboard => Sort::Switchboard,
            Self::Platforms => Sort::Platforms,
            Self::Shard(..) => Sort::Shard,
            Self::Guilds => Sort::Guilds,
            Self::Guild(_) => Sort::Guild,
            Self::Companion(..) => Sort::Companion,
            Self::Channel(_) => Sort::Channel,
            Self::TurnTakingManager(_) => Sort::TurnTakingManager,
            Self::Reply(..) => Sort::Reply,
        }
    }
}

impl Sort {
    /// Every sort, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Writer,
        Self::Models,
        Self::Switchboard,
        Self::Platforms,
        Self::Shard,
        Self::Guilds,
        Self::Guild,
        Self::Companion,
        Self::Channel,
        Self::TurnTakingManager,
        Self::Reply,
        Self::Delivery,
    ];

    /// The name used as a metric's label and in spans.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Writer => "scribe",
            Self::Models => "side_models",
            Self::Switchboard => "switchboard",
            Self::Platforms => "platforms",
            Self::Shard => "shard",
            Self::Guilds => "guilds",
            Self::Guild => "guild",
            Self::Companion => "companion",
            Self::Channel => "channel",
            Self::TurnTakingManager => "turn_taking_manager",
            Self::Reply => "reply",
            Self::Delivery => "delivery",
        }
    }
}
