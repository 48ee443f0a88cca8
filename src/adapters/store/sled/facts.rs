//! The store's records about itself, stored among the others: format, id, term and counts.

use serde::{Deserialize, Serialize};

use crate::domain::id::Ward;
use crate::manifest::{Counts, FORMAT};
use crate::ports::store::key::{Key, Kind};

/// The store's records about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The version of the records' format.
    pub(crate) format: u64,
    /// The store's own id.
    pub(crate) store: String,
    /// The last term that was assigned; it grows with every opening.
    pub(crate) term: u64,
    /// The numbers of groups and events ever committed.
    pub(crate) counts: Counts,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    format: u64,
    store: String,
}

/// The least key of the store's records about itself.
pub(crate) fn first_key() -> Key {
    Key::new(Ward(0), Kind::Meta)
}

pub(crate) fn identity_key() -> Key {
    first_key().text("store")
}

pub(crate) fn term_key() -> Key {
    first_key().text("term")
}

pub(crate) fn counts_key() -> Key {
    first_key().text("counts")
}

/// Decodes the format of a stored identity.
pub(crate) fn format_from(identity: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Identity>(identity).ok().map(|identity| identity.format)
}

/// Encodes counts: groups, then events, eight bytes each.
pub(crate) fn counts_bytes(counts: Counts) -> Vec<u8> {
    [counts.groups.to_be_bytes(), counts.events.to_be_bytes()].concat()
}

/// Decodes stored counts.
pub(crate) fn counts_from(bytes: &[u8]) -> Option<Counts> {
    let (groups, events) = bytes.split_first_chunk()?;
    Some(Counts { groups: u64::from_be_bytes(*groups), events: u64::from_be_bytes(events.try_into().ok()?) })
}

impl Facts {
    /// The records of a new store.
    pub(super) fn new(id: u128) -> Self {
        Self { format: FORMAT, store: format!("{id:032x}"), term: 0, counts: Counts::default() }
    }

    /// Reads the records. `None`: the store has none yet.
    pub(super) fn read(db: &sled::Db) -> Result<Option<Self>, String> {
        let value = |key: Key| db.get(key.as_bytes()).map_err(|error| error.to_string());
        let Some(identity) = value(identity_key())? else { return Ok(None) };
        let Identity { format, store } =
            serde_json::from_slice(&identity).map_err(|error| format!("its identity cannot be read: {error}"))?;
        let term = match value(term_key())? {
            None => 0,
            Some(bytes) => bytes.as_ref().try_into().map(u64::from_be_bytes).map_err(|_| "its term is not a number")?,
        };
        let counts = match value(counts_key())? {
            None => Counts::default(),
            Some(bytes) => counts_from(&bytes).ok_or("its counts are not numbers")?,
        };
        Ok(Some(Self { format, store, term, counts }))
    }

    /// Writes and flushes the records.
    pub(super) fn write(&self, db: &sled::Db) -> Result<(), sled::Error> {
        let mut batch = sled::Batch::default();
        let identity = Identity { format: self.format, store: self.store.clone() };
        let identity = serde_json::to_vec(&identity).map_err(std::io::Error::from)?;
        batch.insert(identity_key().as_bytes(), identity);
        batch.insert(term_key().as_bytes(), &self.term.to_be_bytes());
        batch.insert(counts_key().as_bytes(), counts_bytes(self.counts));
        db.apply_batch(batch)?;
        db.flush()?;
        Ok(())
    }
}
