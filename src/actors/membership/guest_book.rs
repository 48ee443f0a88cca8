//! The invitations to rooms: in memory as in the store.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::guests::{Invitation, Invitations};
use crate::domain::id::{ChannelId, Ward};
use crate::journal::key;
use crate::journal::reader::ReadError;
use crate::journal::record::{decode, encode};
use crate::ports::store::{Store, Write};

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
    /// Grows when visits may have ended.
    edition: watch::Sender<u64>,
}

impl GuestBook {
    /// Reads all invitations of the store. One that cannot be decoded is left out: nobody comes in by it.
    ///
    /// # Errors
    /// They cannot be read.
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

    /// Changes with every change that can end a visit.
    pub fn edition(&self) -> watch::Receiver<u64> {
        self.0.edition.subscribe()
    }

    /// Changes invitations: `change` names those that it changed. They are stored first, and in force then. All of it happens, or nothing, also if
    /// the caller is gone meanwhile.
    ///
    /// # Errors
    /// The store did not take the change.
    pub async fn change<T: Send + 'static>(
        &self,
        context: &ActorContext,
        change: impl FnOnce(&mut Invitations) -> (T, BTreeSet<Arc<str>>) + Send + 'static,
    ) -> Result<T, WriteError> {
        let (shared, context) = (self.0.clone(), context.clone());
        let changed = tokio::spawn(async move {
            let _held = shared.changing.clone().lock_owned().await;
            let mut invitations = shared.invitations.read().clone();
            let (result, changed) = change(&mut invitations);
            if changed.is_empty() {
                return Ok(result);
            }
            let write = |id: &Arc<str>| match invitations.get(id) {
                Some(invitation) => Write::Put(key::invitation(id), encode(invitation)),
                None => Write::Remove(key::invitation(id)),
            };
            write_meta(&context, Ward(0), changed.iter().map(write).collect()).await?;
            *shared.invitations.write() = invitations;
            shared.edition.send_modify(|edition| *edition = edition.wrapping_add(1));
            Ok(result)
        });
        changed.await.unwrap_or(Err(WriteError::Unknown))
    }

    /// Removes the invitations to a room that is deleted.
    ///
    /// # Errors
    /// The store did not take the change.
    pub async fn remove_room(&self, context: &ActorContext, channel: &ChannelId) -> Result<(), WriteError> {
        let channel = channel.clone();
        self.change(context, move |invitations| ((), invitations.remove_room(&channel))).await
    }
}
