//! Lists, changes and deletes lorebooks.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::ActorBackend;
use crate::actors::companion::lore::{RECORDS, Record, Volume, id_of_card};
use crate::actors::companion::pictures::hash;
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{CompanionId, Ward, id_of_title};
use crate::domain::lore::Shelved;
use crate::domain::moment::Moment;
use crate::journal::key;
use crate::journal::record::encode_bytes;
use crate::ports::backend::lore_service::{BookChange, BookSummary, BookView, Books, KeptBook, LoreService};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::companion_setup::Revision;
use crate::ports::store::Write;

/// The most lorebooks.
const MAX_BOOKS: usize = 500;
/// The longest id of a new one, in characters.
const MAX_ID_CHARS: usize = 40;

#[async_trait]
impl LoreService for ActorBackend {
    async fn books(&self) -> Result<Books, Refused> {
        let summary = |(id, volume): (Arc<str>, Volume)| {
            let Shelved { book, companions, rooms } = self.still_owned(&volume.record).shelved;
            BookSummary { id, name: book.name, kept: volume.kept, entries: book.entries.len(), companions, rooms }
        };
        Ok(Books { books: self.context.lore.all().into_iter().map(summary).collect() })
    }

    async fn book(&self, id: &str) -> Result<BookView, Refused> {
        let (id, volume) = self.volume(id)?;
        let unusable = volume.compiled().unusable.clone();
        let (revision, kept) = (revision(&volume.record), volume.kept);
        Ok(BookView { id, revision, kept, book: self.still_owned(&volume.record).shelved, unusable })
    }

    async fn create_book(&self, new: Shelved) -> Result<BookView, Refused> {
        let turn = self.context.lore.changes.lock().await;
        let all = self.context.lore.all();
        if all.len() >= MAX_BOOKS {
            return Err(Refused::conflict(Detail::of("refusals.too_many_books", json!({ "most": MAX_BOOKS }))));
        }
        let record = self.record(new)?;
        let id: Arc<str> = id_of_title(&record.shelved.book.name, MAX_ID_CHARS, "lore", |id| all.contains_key(id)).into();
        store(&self.context, &id, Some(record)).await?;
        drop(turn);
        self.book(&id).await
    }

    async fn change_book(&self, id: &str, change: BookChange) -> Result<BookView, Refused> {
        let turn = self.context.lore.changes.lock().await;
        let (id, _) = self.unchanged(id, &change.revision)?;
        store(&self.context, &id, Some(self.record(change.book)?)).await?;
        drop(turn);
        self.book(&id).await
    }

    async fn delete_book(&self, id: &str, revision: Revision) -> Result<(), Refused> {
        let _turn = self.context.lore.changes.lock().await;
        let (id, volume) = self.unchanged(id, &revision)?;
        if volume.kept == KeptBook::Card {
            return Err(Refused::conflict(Detail::key("refusals.book_of_card")));
        }
        Ok(store(&self.context, &id, None).await?)
    }
}

impl ActorBackend {
    fn volume(&self, id: &str) -> Result<(Arc<str>, Volume), Refused> {
        let found = self.context.lore.all().remove_entry(id);
        found.ok_or_else(|| Refused::not_found(Detail::key("refusals.book_gone")))
    }

    /// A book that may be changed, and was not since a client read it.
    fn unchanged(&self, id: &str, read: &Revision) -> Result<(Arc<str>, Volume), Refused> {
        let (id, volume) = self.volume(id)?;
        if let KeptBook::File { path } = &volume.kept {
            return Err(Refused::conflict(Detail::of("refusals.book_in_file", json!({ "path": path }))));
        }
        if revision(&volume.record) != *read {
            return Err(Refused::conflict(Detail::key("refusals.changed_meanwhile")));
        }
        Ok((id, volume))
    }

    /// The stored form of a book, if it is within its limits and its owners exist.
    fn record(&self, shelved: Shelved) -> Result<Record, Refused> {
        shelved.book.check().map_err(|problem| {
            Refused::invalid(format!("book.{}", problem.key), Detail::from(problem.message).with(problem.code))
        })?;
        if let Some(unknown) = unknown_owners(&self.context, &shelved).into_iter().next() {
            return Err(Refused::invalid("book", Detail::of("refusals.no_owner", json!({ "id": unknown }))));
        }
        let created = |room: &Arc<str>| {
            let membership = self.context.memberships.recorded(&RoomId::parse(room)?.channel())?;
            Some((room.clone(), membership.created_at))
        };
        Ok(Record { since: shelved.rooms.iter().filter_map(created).collect(), shelved })
    }

    /// A book without the rooms and companions that no longer exist.
    fn still_owned(&self, record: &Record) -> Record {
        let mut record = record.clone();
        let mut gone = unknown_owners(&self.context, &record.shelved);
        let is_other = |(room, since): (&Arc<str>, &Moment)| {
            let membership = RoomId::parse(room).and_then(|room| self.context.memberships.recorded(&room.channel()));
            membership.is_some_and(|membership| membership.created_at != *since).then(|| room.clone())
        };
        gone.extend(record.since.iter().filter_map(is_other));
        record.shelved.companions.retain(|id| !gone.contains(id));
        record.shelved.rooms.retain(|id| !gone.contains(id));
        record
    }
}

fn revision(record: &Record) -> Revision {
    Revision(hash(&serde_json::to_vec(record).unwrap_or_default()))
}

/// Stores a book, or removes it from the store, and puts that into force. The caller holds `Lore::changes`.
async fn store(context: &ActorContext, id: &Arc<str>, record: Option<Record>) -> Result<(), WriteError> {
    let key = key::note(None, &format!("{RECORDS}{id}"));
    let write = match &record {
        // Serializing to memory does not fail.
        Some(record) => Write::Put(key, encode_bytes(&serde_json::to_vec(record).unwrap_or_default())),
        None => Write::Remove(key),
    };
    write_meta(context, Ward(0), vec![write]).await?;
    context.lore.set(id, record.map(|record| Volume::new(record, KeptBook::Store)));
    Ok(())
}

/// Takes a deleted companion off all books, and removes the one of its card.
pub async fn forget_companion(context: &ActorContext, companion: &CompanionId) {
    let _turn = context.lore.changes.lock().await;
    context.lore.drop_card(companion);
    for (id, volume) in context.lore.all() {
        let mut record = Record::clone(&volume.record);
        let record = match id == id_of_card(companion) {
            true => None,
            false if record.shelved.companions.remove(companion.as_str()) && volume.kept == KeptBook::Store => Some(record),
            false => continue,
        };
        if let Err(error) = store(context, &id, record).await {
            tracing::warn!(book = &*id, %companion, %error, "a lorebook still names a companion that was removed");
        }
    }
}

/// The ids of the given companions and rooms that do not exist.
fn unknown_owners(context: &ActorContext, shelved: &Shelved) -> BTreeSet<Arc<str>> {
    let companions = context.memberships.companions();
    let is_companion = |id: &&Arc<str>| companions.contains_key(&CompanionId::from(&***id));
    let is_room = |id: &&Arc<str>| RoomId::parse(id).is_some_and(|room| context.memberships.recorded(&room.channel()).is_some());
    let companions = shelved.companions.iter().filter(|id| !is_companion(id));
    companions.chain(shelved.rooms.iter().filter(|id| !is_room(id))).cloned().collect()
}
