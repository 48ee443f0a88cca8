//! Errors of reading a journal, whether they are permanent, and their form for callers of the backend.

use crate::channel_key::ChannelKey;
use crate::domain::id::Seq;
use crate::inspection::named;
use crate::key;
use crate::ports::backend::Refused;
use crate::ports::inbound_events::{InboundError, RETRY_AFTER};
use crate::ports::store::StoreError;
use crate::ports::store::key::{Key, Kind};
use crate::record::RecordError;

/// Why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A value cannot be decoded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record of a channel cannot be decoded.
    #[error(
        "{what} of {channel_key} cannot be read: {detail}; `tertulia history verify` lists all that cannot: restore an earlier backup, or \
         delete the room"
    )]
    Illegible {
        /// The channel of the record.
        channel_key: ChannelKey,
        /// A description of the record: `event 12`.
        what: String,
        detail: String,
    },
    /// The store cannot read its records of a channel.
    #[error("what is on record of {channel_key} cannot be read (`tertulia history verify` says what): {detail}")]
    Unreadable {
        /// The channel of the record.
        channel_key: ChannelKey,
        /// The store's message, with the remedy.
        detail: String,
    },
    /// Events are missing although no deletion explains it.
    #[error(
        "the journal of {channel_key} should continue with event {expected}, but continues with {found}: restore a backup, or start once with --accept-loss; if that does not help, delete the room"
    )]
    Gap {
        /// The channel of the journal.
        channel_key: ChannelKey,
        /// The number that is missing.
        expected: Seq,
        /// The next number that exists, or one past the end.
        found: Seq,
    },
}

impl ReadError {
    /// Whether stored data is damaged, which is permanent. Otherwise the store failed, and may work later.
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Store(StoreError::Unknown(_) | StoreError::Failed(_)) => false,
            Self::Store(StoreError::Damaged(_))
            | Self::Record(_)
            | Self::Illegible { .. }
            | Self::Unreadable { .. }
            | Self::Gap { .. } => true,
        }
    }

    /// Converts the error of a read to one that names this channel.
    #[must_use]
    pub fn of(self, channel_key: &ChannelKey) -> Self {
        let channel_key = channel_key.clone();
        match self {
            Self::Store(StoreError::Damaged(detail)) => Self::Unreadable { channel_key, detail },
            Self::Record(error) => {
                let (what, _) = named(error.key());
                // Do not repeat a channel that the description already names.
                let what = what.strip_suffix(&format!(" of {channel_key}")).map(str::to_owned).unwrap_or(what);
                match repair_without_deletion(error.key()) {
                    Some(way) => Self::Unreadable { channel_key, detail: format!("{what}: {}; {way}", error.detail()) },
                    None => Self::Illegible { channel_key, what, detail: error.detail() },
                }
            }
            error => error,
        }
    }
}

impl From<ReadError> for Refused {
    fn from(error: ReadError) -> Self {
        if error.is_damage() { Self::damaged(error.to_string()) } else { Self::unreadable(&error.to_string()) }
    }
}

impl From<RecordError> for Refused {
    fn from(error: RecordError) -> Self {
        ReadError::from(error).into()
    }
}

/// A store that does not answer may answer later. Damage is permanent.
impl From<ReadError> for InboundError {
    fn from(error: ReadError) -> Self {
        let detail = error.to_string();
        if error.is_damage() { Self::not_recorded(&detail) } else { Self::Later { after: RETRY_AFTER, detail } }
    }
}

/// The remedy for a record without which the extent of the journal is unknown, so that the channel cannot be deleted either.
fn repair_without_deletion(key: &Key) -> Option<&'static str> {
    match key.kind()? {
        Kind::ChannelName | Kind::Head | Kind::Tombstone => Some(()),
        Kind::Meta => key::sweep_in(key).map(drop),
        _ => None,
    }
    .map(|()| "restore an earlier backup with `tertulia history restore`")
}
