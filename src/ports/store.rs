//! Keeping what must not be lost: atomic batches of keys and values, ordered reads, and nothing of how.
//!
//! A store needs no thread and no clock of its own. One conformance suite runs against every store.

pub mod keeper;
pub mod key;

use async_trait::async_trait;

use crate::domain::id::{Seq, Ward};
use key::{ChannelNo, Key};

/// Grows with every change of a ward's owner. In sled it counts openings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// A value as stored.
pub type Value = Vec<u8>;

/// What belongs together: all of it is stored, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Where all its keys lie.
    pub ward: Ward,
    /// Under which ownership it was made.
    pub term: Term,
    /// What it appends to a channel's journal.
    pub append: Option<Append>,
    /// Keys that must not exist yet. (They are usually among `writes` too.)
    pub fresh: Vec<Key>,
    /// Other keys that it writes or removes.
    pub writes: Vec<Write>,
}

/// Events that continue a channel's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Which journal.
    pub channel: ChannelNo,
    /// The number of the channel's last event before these; `Seq::NONE` for a new one.
    pub after: Seq,
    /// The records, numbered `after + 1`, `after + 2`, … in this order.
    pub records: Vec<Value>,
}

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Store this value, whatever was there.
    Put(Key, Value),
    /// Take the key away, if it is there.
    Remove(Key),
}

/// Why a batch was not stored. Nothing of it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Somebody else has owned the ward since.
    #[error("ward {} is held under term {}, not {}", .ward.0, .current.0, .named.0)]
    OldTerm {
        /// Which ward.
        ward: Ward,
        /// The term that the batch named.
        named: Term,
        /// The term that holds.
        current: Term,
    },
    /// The journal does not end where the batch continues it.
    #[error("the journal of channel {} ends at {last}, not at {named}", .channel.0)]
    Gap {
        /// Which channel.
        channel: ChannelNo,
        /// The number that the batch named.
        named: Seq,
        /// The number of the last event stored.
        last: Seq,
    },
    /// A key that had to be new is there already.
    #[error("the key {key} exists already")]
    Exists {
        /// Which key.
        key: Key,
        /// What it holds.
        value: Value,
    },
}

/// Why a store does not do what it is asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be said whether the group, or a part of its batches, was stored. Only a committed write settles it.
    #[error("the outcome of a commit is unknown: {0}")]
    Unknown(String),
    /// The store has failed and takes no more writes until it is opened again.
    #[error("the store has failed: {0}")]
    Failed(String),
    /// What is stored cannot be read.
    #[error("the store is damaged: {0}")]
    Damaged(String),
}

/// A place that keeps batches.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Takes ownership of a ward: a new term, greater than any before; batches under older ones are refused from now on.
    async fn take(&self, ward: Ward) -> Result<Term, StoreError>;

    /// Commits a group: batches in order, each whole or refused by itself, later ones seeing what earlier ones wrote. All that is
    /// reported `Ok` survives power loss when this returns. Several groups may be on their way; they take effect in the order in which
    /// they were polled first.
    async fn commit(&self, group: Vec<Batch>) -> Result<Vec<Result<(), Refusal>>, StoreError>;

    /// The value of a key.
    async fn get(&self, key: Key) -> Result<Option<Value>, StoreError>;

    /// Keys and values from `from` (inclusive) to `to` (exclusive), ascending, or descending when `newest_first`; at most `limit`.
    async fn scan(&self, from: Key, to: Key, newest_first: bool, limit: usize) -> Result<Vec<(Key, Value)>, StoreError>;
}
