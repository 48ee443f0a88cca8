//! Resolves the address of an actor to the running actor. Callers must not store the resolved actor, because a restarted actor is a new one.
//!
//! ractor's own registry is process-wide. It is not used because two systems in one process (two tests) would collide in it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use ractor::{ActorCell, ActorId, ActorRef, ActorStatus, Message};

use crate::domain::id::{ChannelId, CompanionId, GuildId, PersonId, Ticket};
use crate::domain::named::named;

#[cfg(test)]
mod tests;

/// The identity of an actor, which stays the same over all its restarts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// The node's one writer to the store.
    Writer,
    /// The pool of calls to the side and main models.
    SideModels,
    /// Wakes the channels of accepted events.
    Switchboard,
    Platforms,
    /// A connection to a platform: the platform's name, and the number of the connection.
    Shard(&'static str, u32),
    Guilds,
    Guild(GuildId),
    /// A companion in a guild.
    Companion(GuildId, CompanionId),
    Channel(ChannelId),
    /// The turn-taking manager of a channel whose round is open.
    TurnTakingManager(ChannelId),
    /// A reply that is being written.
    Reply(ChannelId, Ticket),
    VoiceCall(ChannelId),
    /// The actor that decodes a person's audio in a call.
    VoiceUser(ChannelId, PersonId),
    /// The recognition of a person's speech in a call.
    Recognition(ChannelId, PersonId),
}

named! {
    /// The type of an actor, used as the label of the count of running actors.
    pub enum Sort {
        Writer = "writer",
        Models = "side_models",
        Switchboard = "switchboard",
        /// The supervisor of the platforms' connections.
        Platforms = "platforms",
        /// A connection to a platform.
        Shard = "shard",
        Guilds = "guilds",
        Guild = "guild",
        Companion = "companion",
        Channel = "channel",
        TurnTakingManager = "turn_taking_manager",
        Reply = "reply",
        /// Posts a statement on a platform.
        Delivery = "delivery",
        VoiceCall = "voice_call",
        /// Decodes the audio of one person.
        VoiceUser = "voice_user",
        /// Recognises the speech of one person.
        Recognition = "recognition",
    }
}

/// An address together with the message type of its actor. It is implemented once for each type of actor, so that no actor can be looked up
/// with the wrong message type:
///
/// ```ignore
/// pub struct ChannelActorKey(pub ChannelId);
///
/// impl ActorKey for ChannelActorKey {
///     type Message = ChannelMessage;
///     fn address(&self) -> Address { Address::Channel(self.0.clone()) }
/// }
/// ```
pub trait ActorKey {
    type Message: Message;

    fn address(&self) -> Address;
}

/// Resolves addresses of one system to actors. All clones are the same directory.
#[derive(Clone, Default)]
pub struct Directory(Arc<RwLock<Entries>>);

#[derive(Default)]
struct Entries {
    actors: HashMap<Address, Entry>,
    /// Guilds that have been registered before.
    guilds: HashSet<GuildId>,
    #[cfg(test)]
    registrations: u64,
}

struct Entry {
    actor: ActorCell,
    waiting: Arc<AtomicUsize>,
}

/// An actor's entry. Dropping it removes the entry, unless a successor has replaced it. It is stored in the actor's state, so
/// that the entry is always removed when the actor ends.
#[must_use = "the entry is removed when this is dropped"]
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

    /// Registers an actor, and replaces its predecessor.
    pub fn register<P: ActorKey>(&self, key: &P, actor: &ActorRef<P::Message>) -> Registration {
        let (address, cell) = (key.address(), actor.get_cell());
        let waiting = Arc::<AtomicUsize>::default();
        let mut entries = self.0.write();
        let is_successor = matches!(&address, Address::Guild(guild) if !entries.guilds.insert(guild.clone()));
        let (directory, id) = (self.clone(), cell.get_id());
        let registration = Registration { directory, address: address.clone(), id, waiting: waiting.clone(), is_successor };
        entries.actors.insert(address, Entry { actor: cell, waiting });
        #[cfg(test)]
        {
            entries.registrations += 1;
        }
        registration
    }

    /// How many actors were registered so far.
    #[cfg(test)]
    pub(crate) fn registrations(&self) -> u64 {
        self.0.read().registrations
    }

    /// The running actor. None if there is none, or if it is stopping.
    pub fn find<P: ActorKey>(&self, key: &P) -> Option<ActorRef<P::Message>> {
        self.find_entry(key).map(|(actor, _)| actor)
    }

    /// Sends work to the running actor. The work counts as waiting until the actor calls [`taken_on`](Registration::taken_on).
    /// Callers check the number of waiting messages before they send more. False: the actor is not running.
    pub fn hand_over<P: ActorKey>(&self, key: &P, work: P::Message) -> bool {
        let Some((actor, waiting)) = self.find_entry(key) else { return false };
        // Counted before the actor can receive it.
        waiting.fetch_add(1, Ordering::Relaxed);
        actor.cast(work).is_ok()
    }

    /// How many messages were handed over and are not taken on yet. Zero if the actor is not running.
    pub fn waiting<P: ActorKey>(&self, key: &P) -> usize {
        self.0.read().actors.get(&key.address()).map_or(0, |entry| entry.waiting.load(Ordering::Relaxed))
    }

    fn find_entry<P: ActorKey>(&self, key: &P) -> Option<(ActorRef<P::Message>, Arc<AtomicUsize>)> {
        let address = key.address();
        let (actor, waiting) = self.0.read().actors.get(&address).map(|entry| (entry.actor.clone(), entry.waiting.clone()))?;
        if actor.get_status() >= ActorStatus::Draining {
            return None;
        }
        Some((actor.into(), waiting))
    }
}

impl Registration {
    /// Whether this is the registration of a guild that has been registered before.
    pub const fn is_successor(&self) -> bool {
        self.is_successor
    }

    /// Reports that the actor has taken on this many of the messages that were [handed over](Directory::hand_over).
    pub fn taken_on(&self, count: usize) {
        // Messages that were sent in another way were never counted.
        let _ = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| Some(waiting.saturating_sub(count)));
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut entries = self.directory.0.write();
        if entries.actors.get(&self.address).is_some_and(|entry| entry.actor.get_id() == self.id) {
            entries.actors.remove(&self.address);
        }
    }
}

impl Address {
    /// The type of the actor.
    pub const fn sort(&self) -> Sort {
        match self {
            Self::Writer => Sort::Writer,
            Self::SideModels => Sort::Models,
            Self::Switchboard => Sort::Switchboard,
            Self::Platforms => Sort::Platforms,
            Self::Shard(..) => Sort::Shard,
            Self::Guilds => Sort::Guilds,
            Self::Guild(_) => Sort::Guild,
            Self::Companion(..) => Sort::Companion,
            Self::Channel(_) => Sort::Channel,
            Self::TurnTakingManager(_) => Sort::TurnTakingManager,
            Self::Reply(..) => Sort::Reply,
            Self::VoiceCall(_) => Sort::VoiceCall,
            Self::VoiceUser(..) => Sort::VoiceUser,
            Self::Recognition(..) => Sort::Recognition,
        }
    }
}
