//! Takes people out of the index of persons of whom nothing is left.

use std::collections::BTreeSet;

use ractor::ActorRef;

use crate::actors::messages::reply::Reply;
use crate::actors::messages::writer::{RemoveFromIndex, WriteError, WriterMessage};
use crate::domain::id::{PersonId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::speakers::{self, STRETCH, after_stretch};
use crate::ports::store::Store;
use crate::ports::store::key::Key;
use crate::telemetry::plain::Plain;

/// So often it is looked again, when something was said meanwhile.
const TRIES: usize = 64;

/// Who may have nothing left in a stretch of a journal.
#[derive(Clone, Copy, Debug)]
pub struct Leaving<'a> {
    /// A number in the [stretch](speakers).
    pub stretch: Seq,
    /// What comes before this number is theirs no more.
    pub below: Seq,
    /// Who.
    pub people: &'a BTreeSet<PersonId>,
    /// Notes that this is to be looked at, which go once it was.
    pub notes: &'a [Key],
}

/// Takes people out of the index for a stretch, if nothing in it is theirs any more. Where something in it cannot be read, it may be theirs:
/// they stay, and the notes with them, so that it is looked at again.
///
/// # Errors
/// Some of them may still be listed: the same again goes on.
pub async fn remove_from_index(
    store: &dyn Store,
    writer: &ActorRef<WriterMessage>,
    channel_key: &ChannelKey,
    leaving: Leaving<'_>,
) -> Result<(), WriteError> {
    let Leaving { stretch, below, people, notes } = leaving;
    let reader = Reader::new(store);
    let first = speakers::stretch(stretch);
    for _ in 0..TRIES {
        // Whatever is said after this is seen below, or by the writer.
        let head = reader.head(channel_key).await?;
        let Some(no) = head.no else { return Ok(()) };
        let (there, illegible) = match reader.speakers(channel_key.ward(), no, below.max(first), after_stretch(stretch)).await {
            Err(error) if error.is_damage() => {
                tell_unreadable(channel_key, &error);
                return Ok(());
            }
            read => read?,
        };
        if !illegible.is_empty() {
            tell_illegible(channel_key, &illegible);
            return Ok(());
        }
        let mut keys = notes.to_vec();
        for person in people.difference(&there) {
            let entries = key::person_in(&channel_key.guild, person, no, stretch);
            let found = store.scan(entries.start, entries.end, false, STRETCH as usize).await;
            let found = found.map_err(|error| ReadError::from(error).of(channel_key))?;
            keys.extend(found.into_iter().map(|(key, _)| key));
        }
        if keys.is_empty() || strike(writer, channel_key, stretch, keys, head.last).await? {
            return Ok(());
        }
    }
    Err(WriteError::Unavailable("too much is said there to take anybody out of the index of persons; do the same again".into()))
}

/// Takes entries out of the index of stretches up to this one. Not done, if it was not full at a number and something was said since.
///
/// # Errors
/// They may still be there.
pub async fn strike(
    writer: &ActorRef<WriterMessage>,
    channel_key: &ChannelKey,
    stretch: Seq,
    keys: Vec<Key>,
    as_of: Seq,
) -> Result<bool, WriteError> {
    let (reply, done) = Reply::awaited();
    let _ = writer.cast(WriterMessage::RemoveFromIndex(RemoveFromIndex {
        channel_key: channel_key.clone(),
        stretch,
        keys,
        as_of,
        reply,
    }));
    done.await.unwrap_or(Err(WriteError::Unknown))
}

fn tell_unreadable(channel_key: &ChannelKey, error: &ReadError) {
    let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
    tracing::warn!(
        %guild,
        %channel,
        %error,
        "a part of this journal cannot be read, and may be of somebody of whom nothing else is left: they stay in the index of persons"
    );
}

fn tell_illegible(channel_key: &ChannelKey, illegible: &BTreeSet<Seq>) {
    let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
    let (entries, first) = (illegible.len(), illegible.first().copied().unwrap_or_default());
    tracing::warn!(
        %guild,
        %channel,
        entries,
        %first,
        "entries of this journal cannot be read, and may be of somebody of whom nothing else is left: they stay in the index of persons"
    );
}
