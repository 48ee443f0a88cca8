//! Stores changed lorebooks, and puts them into force (docs/design/memory.md K-20).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::lore::{RECORDS, Record, Volume, id_of_card};
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{CompanionId, Ward};
use crate::domain::lore::Shelved;
use crate::journal::key;
use crate::journal::record::encode_bytes;
use crate::ports::backend::lore_service::KeptBook;
use crate::ports::backend::room::RoomId;
use crate::ports::store::Write;

/// Stores a book, or removes its record, and puts that into force. The caller holds `Lore::changes`. `fixed` is what counts without a record.
///
/// # Errors
/// Returns an error if it is not known to be stored.
pub async fn store(
    context: &ActorContext,
    id: &Arc<str>,
    record: Option<Record>,
    fixed: Option<Volume>,
) -> Result<(), WriteError> {
    let key = key::note(None, &format!("{RECORDS}{id}"));
    // Serializing to memory does not fail.
    let bytes = record.as_ref().map(|record| serde_json::to_vec(record).unwrap_or_default());
    let write = bytes.map_or_else(|| Write::Remove(key.clone()), |bytes| Write::Put(key.clone(), encode_bytes(&bytes)));
    write_meta(context, Ward(0), vec![write]).await?;
    let volume = record.map(|record| Volume::new(record, KeptBook::Store)).or(fixed);
    context.lore.set(id, volume);
    Ok(())
}

/// Takes a deleted companion off all books, and removes the one of its card.
pub async fn forget_companion(context: &ActorContext, companion: &CompanionId) {
    let _turn = context.lore.changes.lock().await;
    for (id, volume) in context.lore.all() {
        let mut record = Record::clone(&volume.record);
        let record = match id == id_of_card(companion) {
            true => None,
            false if record.shelved.companions.remove(companion.as_str()) && volume.kept == KeptBook::Store => Some(record),
            false => continue,
        };
        if let Err(error) = store(context, &id, record, None).await {
            tracing::warn!(book = &*id, %companion, %error, "a lorebook still names a companion that was removed");
        }
    }
}

/// The ids of the given companions and rooms that do not exist.
pub fn unknown_owners(context: &ActorContext, shelved: &Shelved) -> BTreeSet<Arc<str>> {
    let companions = context.memberships.companions();
    let is_companion = |id: &&Arc<str>| companions.contains_key(&CompanionId::from(&***id));
    let is_room = |id: &&Arc<str>| RoomId::parse(id).is_some_and(|room| context.memberships.recorded(&room.channel()).is_some());
    let companions = shelved.companions.iter().filter(|id| !is_companion(id));
    companions.chain(shelved.rooms.iter().filter(|id| !is_room(id))).cloned().collect()
}
