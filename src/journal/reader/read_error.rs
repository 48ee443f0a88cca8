//! Why something could not be read, and whether it ever will be.

use crate::domain::id::Seq;
use crate::journal::channel_key::ChannelKey;
use crate::journal::inspection::named;
use crate::journal::key;
use crate::journal::record::RecordError;
use crate::ports::store::StoreError;
use crate::ports::store::key::{Key, Kind};

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The store does not answer as it should.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A value is not what it should be.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record of a channel is not what it should be.
    #[error(
        "{what} of {channel_key} cannot be read: {detail}; `tertulia history verify` lists all that cannot: put a backup from before back, or \
         delete the room"
    )]
    Illegible {
        /// Whose.
        channel_key: ChannelKey,
        /// Which: `event 12`.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The store cannot read what it holds of a channel.
    #[error("what is on record of {channel_key} cannot be read (`tertulia history verify` says what): {detail}")]
    Unreadable {
        /// Whose.
        channel_key: ChannelKey,
        /// What the store says, with a way out.
        detail: String,
    },
    /// Events are missing that nobody deleted.
    #[error(
        "the journal of {channel_key} should go on with event {expected}, but goes on with {found}: restore a backup, or start once with --accept-loss"
    )]
    Gap {
        /// Which journal.
        channel_key: ChannelKey,
        /// The number that is missing.
        expected: Seq,
        /// The number that follows; or one past the end.
        found: Seq,
    },
}

impl ReadError {
    /// Whether what is stored is not what it should be, and stays so; else the store does not answer, and may answer later.
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

    /// The same of a read of what belongs to this channel.
    #[must_use]
    pub fn of(self, channel_key: &ChannelKey) -> Self {
        let channel_key = channel_key.clone();
        match self {
            Self::Store(StoreError::Damaged(detail)) => Self::Unreadable { channel_key, detail },
            Self::Record(error) => {
                let (what, _) = named(error.key());
                // A channel that is part of what it is called is not told twice.
                let what = what.strip_suffix(&format!(" of {channel_key}")).map(str::to_owned).unwrap_or(what);
                match way_without_deleting(error.key()) {
                    Some(way) => Self::Unreadable { channel_key, detail: format!("{what}: {}; {way}", error.detail()) },
                    None => Self::Illegible { channel_key, what, detail: error.detail() },
                }
            }
            error => error,
        }
    }
}

/// The way out where nobody knows without a record where a channel's journal stands, so that the channel cannot be deleted either.
fn way_without_deleting(key: &Key) -> Option<&'static str> {
    match key.kind()? {
        Kind::ChannelName | Kind::Head | Kind::Tombstone => {
            Some("restore a backup, or find it again with `tertulia history compact --accept-loss`")
        }
        Kind::Meta => key::swept_in(key).map(|_| "put a backup from before back with `tertulia history restore`"),
        Kind::Journal
        | Kind::Snapshot
        | Kind::Pending
        | Kind::Outbox
        | Kind::MessageId
        | Kind::Person
        | Kind::ChannelOf
        | Kind::Summary
        | Kind::Setting
        | Kind::Usage
        | Kind::DeadLetter
        | Kind::Room
        | Kind::Session
        | Kind::Webhook
        | Kind::OptOut => None,
    }
}
