//! Why something could not be read, and whether it ever will be.

use crate::domain::id::Seq;
use crate::journal::place::Place;
use crate::journal::record::RecordError;
use crate::ports::store::StoreError;

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
        "{what} of {place} cannot be read: {detail}; `tertulia history verify` lists all that cannot: put a backup from before back, or \
         delete the room"
    )]
    Illegible {
        /// Whose.
        place: Place,
        /// Which: `event 12`.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// The store cannot read what it holds of a channel.
    #[error("what is on record of {place} cannot be read (`tertulia history verify` says what): {detail}")]
    Unreadable {
        /// Whose.
        place: Place,
        /// What the store says, with a way out.
        detail: String,
    },
    /// Events are missing that nobody deleted.
    #[error(
        "the journal of {place} should go on with event {expected}, but goes on with {found}: restore a backup, or start once with --accept-loss"
    )]
    Gap {
        /// Which journal.
        place: Place,
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
    pub fn of(self, place: &Place) -> Self {
        match self {
            Self::Store(StoreError::Damaged(detail)) => Self::Unreadable { place: place.clone(), detail },
            error => error,
        }
    }
}
