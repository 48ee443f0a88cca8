//! Puts the lorebooks of cards, files and the store into force.

use crate::actors::companion::lore::{Record, Volume, Volumes, id_of_card};
use crate::actors::runtime::context::ActorContext;
use crate::cards;
use crate::domain::lore::Shelved;
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::ports::backend::lore_service::KeptBook;
use crate::settings::lore::BookFile;

/// Loads all lorebooks. `files`: those that were read from files.
pub(super) async fn load(context: &ActorContext, files: Vec<BookFile>) {
    let _turn = context.lore.changes.lock().await;
    let of_file = |BookFile { path, stem, shelved }: BookFile| {
        let kept = KeptBook::File { path: path.display().to_string() };
        (format!("file.{stem}").into(), Volume::new(Record { shelved, ..Record::default() }, kept))
    };
    let mut fixed: Volumes = files.into_iter().map(of_file).collect();
    let reader = Reader::new(&*context.store);
    for (id, companion) in context.memberships.companions().iter() {
        let card = match reader.bytes(key::card(id)).await {
            Ok(Some(card)) => card,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(companion = %id, %error, "the lorebook of a card cannot be read");
                continue;
            }
        };
        // A card may have megabytes.
        let read = tokio::task::spawn_blocking(move || cards::read(&card).ok().and_then(|card| card.book)).await;
        let Some(mut book) = read.ok().flatten().map(|read| read.book).filter(|book| !book.entries.is_empty()) else { continue };
        if book.name.trim().is_empty() {
            book.name = companion.name.clone();
        }
        let shelved = Shelved { book, companions: [id.as_str().into()].into(), ..Shelved::default() };
        fixed.insert(id_of_card(id), Volume::new(Record { shelved, ..Record::default() }, KeptBook::Card));
    }
    if let Err(error) = context.lore.load(fixed, &*context.store).await {
        tracing::error!(%error, "the lorebooks in the store cannot be read, so companions know none of them");
    }
}
