//! The invitations to rooms, cached in memory.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::{OwnedMutexGuard, watch};

use crate::domain::guests::{Invitation, Invitations};
use crate::journal::key;
use crate::journal::reader::ReadError;
use crate::journal::record::decode;
use crate::ports::store::Store;

/// How many invitations are read at a time.
const AT_A_TIME: usize = 256;

/// All invitations. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub struct GuestBook(Arc<Shared>);

#[derive(Default)]
struct Shared {
    invitations: RwLock<Invitations>,
    /// Held while a change is written, so that changes do not overlap.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Grows with every change of an invitation, because the change may end visits.
    edition: watch::Sender<u64>,
}

impl GuestBook {
    /// Loads all invitations from the store. An invitation that cannot be decoded is skipped and cannot be used.
    ///
    /// # Errors
    /// Returns an error if the invitations cannot be read.
    pub async fn load(&self, store: &dyn Store) -> Result<(), ReadError> {
        let mut from = key::invitations();
        loop {
            let page = store.scan(from.clone(), key::invitations().end(), false, AT_A_TIME).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            from = key::successor(last);
            for (key, value) in page {
                match (key::invitation_in(&key), decode::<Invitation>(&key, &value)) {
                    (Some(id), Ok(invitation)) => self.0.invitations.write().restore(id, invitation),
                    (_, Err(error)) => tracing::warn!(%error, "an invitation cannot be read, and lets nobody in"),
                    (None, Ok(_)) => {}
                }
            }
        }
    }

    pub fn read<T>(&self, read: impl FnOnce(&Invitations) -> T) -> T {
        read(&self.0.invitations.read())
    }

    /// Notifies of every change of an invitation, because the change may end visits.
    pub fn edition(&self) -> watch::Receiver<u64> {
        self.0.edition.subscribe()
    }

    /// Waits for the exclusive lock on changes of invitations.
    pub(super) async fn lock(&self) -> OwnedMutexGuard<()> {
        self.0.changing.clone().lock_owned().await
    }

    /// Applies stored changes.
    pub(super) fn replace(&self, invitations: Invitations) {
        *self.0.invitations.write() = invitations;
        self.0.edition.send_modify(|edition| *edition = edition.wrapping_add(1));
    }
}
