//! Removes people from the index of persons when none of their messages are left.

use std::collections::BTreeSet;

use ractor::ActorRef;

use super::requests::ask;
use crate::actors::messages::writer::{RemoveFromIndex, Request, WriteError, WriterMessage};
use crate::domain::id::{PersonId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::speakers::{self, STRETCH, after_stretch};
use crate::ports::store::Store;
use crate::ports::store::key::Key;
use crate::telemetry::plain::Plain;

/// The maximum number of attempts if new messages keep arriving.
const ATTEMPTS: usize = 64;

/// People who may have no messages left in a stretch of a journal.
#[derive(Clone, Copy, Debug)]
pub struct IndexRemoval<'a> {
    /// A number in the [stretch](speakers).
    pub stretch: Seq,
    /// Events below this number no longer count.
    pub below: Seq,
    pub people: &'a BTreeSet<PersonId>,
    /// Stored reminders of this removal. They are removed once it is done.
    pub notes: &'a [Key],
}

/// Removes people from the index for a stretch that contains no messages of theirs. An unreadable event in the stretch counts as
/// theirs. Then they stay in the index, and the notes stay too, so that the removal is retried.
///
/// # Errors
/// Returns an error if some of the people may still be in the index. A retry continues where it failed.
pub async fn remove_from_index(
    store: &dyn Store,
    writer: &ActorRef<WriterMessage>,
    channel_key: &ChannelKey,
    removal: IndexRemoval<'_>,
) -> Result<(), WriteError> {
    let IndexRemoval { stretch, below, people, notes } = removal;
    let reader = Reader::new(store);
    let first = speakers::stretch(stretch);
    for _ in 0..ATTEMPTS {
        // Messages that arrive after this are seen by the read below, or by the writer.
        let head = reader.head(channel_key).await?;
        let Some(no) = head.no else { return Ok(()) };
        let (remaining, unreadable) =
            match reader.speakers(channel_key.ward(), no, below.max(first), after_stretch(stretch)).await {
                Err(error) if error.is_damage() => {
                    warn_unreadable(channel_key, &error);
                    return Ok(());
                }
                read => read?,
            };
        if !unreadable.is_empty() {
            warn_unreadable_entries(channel_key, &unreadable);
            return Ok(());
        }
        let mut keys = notes.to_vec();
        for person in people.difference(&remaining) {
            let entries = key::person_in(&channel_key.guild, person, no, stretch);
            let found = store.scan(entries.start, entries.end, false, STRETCH as usize).await;
            let found = found.map_err(|error| ReadError::from(error).of(channel_key))?;
            keys.extend(found.into_iter().map(|(key, _)| key));
        }
        if keys.is_empty() || remove_index_entries(writer, channel_key, stretch, keys, head.last).await? {
            return Ok(());
        }
    }
    Err(WriteError::Unavailable("messages arrive too fast to remove anybody from the index of persons; try again".into()))
}

/// Removes entries of this stretch and earlier ones from the index. Returns false and removes nothing if the stretch was not full
/// at `as_of` and messages have arrived since.
///
/// # Errors
/// Returns an error if the entries may still be there.
pub async fn remove_index_entries(
    writer: &ActorRef<WriterMessage>,
    channel_key: &ChannelKey,
    stretch: Seq,
    keys: Vec<Key>,
    as_of: Seq,
) -> Result<bool, WriteError> {
    let channel_key = channel_key.clone();
    ask(writer, |reply| Request::RemoveFromIndex(RemoveFromIndex { channel_key, stretch, keys, as_of, reply })).await
}

fn warn_unreadable(channel_key: &ChannelKey, error: &ReadError) {
    let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
    tracing::warn!(
        %guild,
        %channel,
        %error,
        "a part of this journal cannot be read, so nobody in it is removed from the index of persons"
    );
}

fn warn_unreadable_entries(channel_key: &ChannelKey, unreadable: &BTreeSet<Seq>) {
    let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
    let (entries, first) = (unreadable.len(), unreadable.first().copied().unwrap_or_default());
    tracing::warn!(
        %guild,
        %channel,
        entries,
        %first,
        "entries of this journal cannot be read, so nobody in it is removed from the index of persons"
    );
}
