//! Changes invitations: stores each change, then applies it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::guests::Invitations;
use crate::domain::id::{ChannelId, Ward};
use crate::journal::key;
use crate::journal::record::encode;
use crate::ports::store::Write;

/// Changes invitations. `change` returns the ids of the invitations that it changed. The change is atomic, also if the caller is
/// cancelled in the meantime.
///
/// # Errors
/// Returns an error if the store rejects the change.
pub async fn change<T: Send + 'static>(
    context: &ActorContext,
    change: impl FnOnce(&mut Invitations) -> (T, BTreeSet<Arc<str>>) + Send + 'static,
) -> Result<T, WriteError> {
    let context = context.clone();
    let changed = tokio::spawn(async move {
        let _held = context.guests.lock().await;
        let mut invitations = context.guests.read(Clone::clone);
        let (result, changed) = change(&mut invitations);
        if changed.is_empty() {
            return Ok(result);
        }
        let write = |id: &Arc<str>| match invitations.get(id) {
            Some(invitation) => Write::Put(key::invitation(id), encode(invitation)),
            None => Write::Remove(key::invitation(id)),
        };
        write_meta(&context, Ward(0), changed.iter().map(write).collect()).await?;
        context.guests.replace(invitations);
        Ok(result)
    });
    changed.await.unwrap_or(Err(WriteError::Unknown))
}

/// Removes the invitations to a room that is deleted.
///
/// # Errors
/// Returns an error if the store rejects the change.
pub async fn remove_room(context: &ActorContext, channel: &ChannelId) -> Result<(), WriteError> {
    let channel = channel.clone();
    change(context, move |invitations| ((), invitations.remove_room(&channel))).await
}
