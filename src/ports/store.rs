//! Durable storage: atomic batches of keys and values, and ordered reads.
//!
//! The port does not prescribe how a store works; a store needs no thread and no clock of its own. One conformance suite runs against every store.

pub mod key;
pub mod maintenance;

use async_trait::async_trait;

use crate::domain::id::{Seq, Ward};
use key::{ChannelNo, Key};

/// A fencing token that grows with every change of a ward's owner. In sled it grows whenever the store is opened, and whenever a ward is taken again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// A value as stored: bytes that the store does not interpret.
pub type Value = Vec<u8>;

/// A transaction: all of it is stored, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub ward: Ward,
    /// The term of the owner that created the batch.
    pub term: Term,
    /// The events to append to a channel's journal, if any.
    pub append: Option<Append>,
    /// Keys that must not exist yet. (They are usually among `writes` too.)
    pub fresh: Vec<Key>,
    /// Other keys to write or remove.
    pub writes: Vec<Write>,
}

/// Events to append to a channel's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The channel of the journal.
    pub channel: ChannelNo,
    /// The number of the channel's last event before these; `Seq::NONE` for a new channel.
    pub after: Seq,
    /// The records, numbered `after + 1`, `after + 2`, … in this order.
    pub records: Vec<Value>,
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Store this value, whether or not the key exists.
    Put(Key, Value),
    /// Delete the key, if it exists.
    Remove(Key),
}

/// Why a batch was rejected. Nothing of it was stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A newer owner has taken the ward.
    #[error("ward {} is held under term {}, not {}", .ward.0, .current.0, .named.0)]
    OldTerm {
        ward: Ward,
        /// The term that the batch named.
        named: Term,
        current: Term,
    },
    /// The journal does not end where the batch continues it.
    #[error("the journal of channel {} ends at {last}, not at {named}", .channel.0)]
    Gap {
        channel: ChannelNo,
        /// The number that the batch named.
        named: Seq,
        /// The number of the last event stored.
        last: Seq,
    },
    /// A key in `fresh` exists already.
    #[error("the key {key} exists already")]
    Exists { key: Key, value: Value },
}

/// Why an operation of a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It is unknown whether the group, or some of its batches, was stored. Only a later successful commit settles it.
    #[error("the outcome of a commit is unknown: {0}")]
    Unknown(String),
    /// The store has failed and accepts no more writes until it is opened again.
    #[error("the store has failed: {0}")]
    Failed(String),
    /// Stored data cannot be read.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

/// A store of batches.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Takes ownership of a ward. Returns a new term, greater than any before. Batches with older terms are rejected from now on.
    async fn acquire_ward(&self, ward: Ward) -> Result<Term, StoreError>;

    /// Commits a group of batches in order. Each is stored as a whole or rejected on its own, and later ones see the writes of earlier ones. Every
    /// batch reported as `Ok` survives power loss when this returns. Several groups may be in flight; they take effect in the order in which their
    /// futures were first polled.
    async fn commit(&self, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError>;

    /// The value of a key; `None` if it does not exist.
    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError>;

    /// Keys and values from `from` (inclusive) to `to` (exclusive), ascending, or descending if `newest_first`; at most `limit`.
    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError>;

    /// The number of concurrent reads for bulk reading. It is more than one if the store is on another machine, because each read waits for the
    /// network.
    fn reads_at_once(&self) -> usize {
        1
    }
}
