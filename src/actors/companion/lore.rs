//! The lorebooks in force, from the store, from cards of companions and from files (docs/design/memory.md K-20).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::actors::membership::memberships::Memberships;
use crate::domain::id::{ChannelId, CompanionId};
use crate::domain::lore::Shelved;
use crate::domain::lore::matching::Compiled;
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::record::decode_bytes;
use crate::ports::backend::lore_service::KeptBook;
use crate::ports::backend::room::RoomId;
use crate::ports::store::Store;

/// The prefix of the names of records.
pub const RECORDS: &str = "lore/";

/// The stored form of a book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    #[serde(flatten)]
    pub shelved: Shelved,
    /// When the rooms were created. Another room with the same id does not get the book.
    #[serde(default)]
    pub since: BTreeMap<Arc<str>, Moment>,
}

/// A book in force.
#[derive(Clone, Debug)]
pub struct Volume {
    pub record: Arc<Record>,
    pub kept: KeptBook,
    compiled: Arc<Compiled>,
}

/// Books by id.
pub type Volumes = BTreeMap<Arc<str>, Volume>;

/// The books in force. Cheap to clone; all clones share them.
#[derive(Clone, Default)]
pub struct Lore {
    /// The books of cards and files.
    fixed: Arc<RwLock<Volumes>>,
    /// The books of the store, which take precedence over others with the same id.
    stored: Arc<RwLock<Volumes>>,
    /// Held while a book is changed.
    pub changes: Arc<Mutex<()>>,
}

impl Volume {
    pub fn new(record: Record, kept: KeptBook) -> Self {
        let compiled = Arc::new(Compiled::new(record.shelved.book.clone()));
        Self { record: record.into(), kept, compiled }
    }

    pub fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    fn is_of_room(&self, room: &ChannelId, memberships: &Memberships) -> bool {
        let Some((id, membership)) = RoomId::of(room).zip(memberships.recorded(room)) else { return false };
        let is_named = self.record.shelved.rooms.contains(id.as_str());
        is_named && self.record.since.get(id.as_str()).is_none_or(|since| *since == membership.created_at)
    }
}

impl Lore {
    /// The books that a companion knows in a channel. A thread has those of its parent channel, too.
    pub fn of(&self, channel: &ChannelId, companion: &CompanionId, memberships: &Memberships) -> Vec<Arc<Compiled>> {
        let within = memberships.recorded(channel).and_then(|membership| membership.inherits_from().cloned());
        let rooms: Vec<_> = [Some(channel), within.as_ref()].into_iter().flatten().collect();
        let is_known = |volume: &Volume| {
            let is_own = volume.record.shelved.companions.contains(companion.as_str());
            is_own || rooms.iter().any(|room| volume.is_of_room(room, memberships))
        };
        self.all().into_values().filter(is_known).map(|volume| volume.compiled).collect()
    }

    /// Puts a book of the store into force, or takes it out of force.
    pub fn set(&self, id: &Arc<str>, volume: Option<Volume>) {
        let mut stored = self.stored.write();
        match volume {
            Some(volume) => drop(stored.insert(id.clone(), volume)),
            None => drop(stored.remove(id)),
        }
    }

    /// Takes the book of a companion's card out of force.
    pub fn drop_card(&self, companion: &CompanionId) {
        self.fixed.write().remove(&id_of_card(companion));
    }

    /// All books in force.
    pub fn all(&self) -> Volumes {
        let mut all = self.fixed.read().clone();
        all.extend(self.stored.read().clone());
        all
    }

    /// Puts the books of cards, files and the store into force.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read. A single book that cannot be decoded is logged and left out.
    pub async fn load(&self, fixed: Volumes, store: &dyn Store) -> Result<(), ReadError> {
        let records = Reader::new(store).all(key::notes_beginning(None, RECORDS)).await?;
        let mut stored = Volumes::new();
        for (key, value) in records {
            let Some(name) = key::name_of_note(None, &key) else { continue };
            let id: Arc<str> = name[RECORDS.len()..].into();
            let record = decode_bytes(&key, &value).map_err(|error| error.to_string());
            match record.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string())) {
                Ok(record) => drop(stored.insert(id, Volume::new(record, KeptBook::Store))),
                Err(error) => tracing::error!(book = &*id, error, "a lorebook in the store cannot be read; restore a backup"),
            }
        }
        (*self.fixed.write(), *self.stored.write()) = (fixed, stored);
        Ok(())
    }
}

/// The id of the book of a companion's card.
pub fn id_of_card(companion: &CompanionId) -> Arc<str> {
    format!("card.{companion}").into()
}
