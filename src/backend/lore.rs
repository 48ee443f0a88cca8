//! Lists, changes and deletes lorebooks.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::ActorBackend;
use crate::actors::companion::lore::{Record, Volume};
use crate::actors::companion::lore_writing::{store, unknown_owners};
use crate::actors::companion::pictures::hash;
use crate::domain::id::id_of_title;
use crate::domain::lore::Shelved;
use crate::domain::moment::Moment;
use crate::ports::backend::lore_service::{BookChange, BookSummary, BookView, Books, KeptBook, LoreService};
use crate::ports::backend::room::RoomId;
use crate::ports::backend::{Detail, Refused};
use crate::ports::companion_setup::Revision;

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
        store(&self.context, &id, Some(record), None).await?;
        drop(turn);
        self.book(&id).await
    }

    async fn change_book(&self, id: &str, change: BookChange) -> Result<BookView, Refused> {
        let turn = self.context.lore.changes.lock().await;
        let (id, _) = self.unchanged(id, &change.revision)?;
        store(&self.context, &id, Some(self.record(change.book)?), None).await?;
        drop(turn);
        self.book(&id).await
    }

    async fn delete_book(&self, id: &str, revision: Revision) -> Result<(), Refused> {
        let _turn = self.context.lore.changes.lock().await;
        let (id, volume) = self.unchanged(id, &revision)?;
        if volume.kept == KeptBook::Card {
            return Err(Refused::conflict(Detail::key("refusals.book_of_card")));
        }
        let of_card = self.context.lore.of_card(&id);
        Ok(store(&self.context, &id, None, of_card).await?)
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
