//! Stores the notes that platforms need after a restart.

use async_trait::async_trait;

use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{GuildId, Ward};
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::journal::record::{decode_bytes, encode_bytes};
use crate::ports::notes::{NoteError, Notes};
use crate::ports::store::Write;

/// The notes of one system. They are stored in the ward of their guild, or in ward 0 if they belong to no guild. Deleting rooms or messages does
/// not delete them.
pub struct StoredNotes {
    context: ActorContext,
}

impl StoredNotes {
    pub fn new(context: ActorContext) -> Self {
        Self { context }
    }
}

#[async_trait]
impl Notes for StoredNotes {
    async fn read(&self, guild: Option<&GuildId>, name: &str) -> Result<Option<Vec<u8>>, NoteError> {
        let key = key::note(guild, name);
        let value = self.context.store.get(key.clone()).await.map_err(note_error)?;
        value.map(|value| decode_bytes(&key, &value)).transpose().map_err(note_error)
    }

    async fn all(&self, guild: Option<&GuildId>, beginning: &str) -> Result<Vec<(String, Vec<u8>)>, NoteError> {
        let stored = Reader::new(&*self.context.store).all(key::notes_beginning(guild, beginning)).await.map_err(note_error)?;
        let mut notes = Vec::with_capacity(stored.len());
        for (key, value) in stored {
            let name =
                key::name_of_note(guild, &key).ok_or_else(|| NoteError(format!("the key {key} is not the key of a note")))?;
            notes.push((name, decode_bytes(&key, &value).map_err(note_error)?));
        }
        Ok(notes)
    }

    async fn write(&self, guild: Option<&GuildId>, notes: Vec<(String, Option<Vec<u8>>)>) -> Result<(), NoteError> {
        if notes.is_empty() {
            return Ok(());
        }
        let ward = guild.map_or(Ward(0), Ward::of);
        let to_write = |(name, note): (String, Option<Vec<u8>>)| {
            let key = key::note(guild, &name);
            note.map_or_else(|| Write::Remove(key.clone()), |note| Write::Put(key.clone(), encode_bytes(&note)))
        };
        let writes = notes.into_iter().map(to_write).collect();
        write_meta(&self.context, ward, writes).await.map_err(note_error)
    }
}

fn note_error(error: impl std::fmt::Display) -> NoteError {
    NoteError(error.to_string())
}
