//! Takes people out of the index of persons of whom nothing is left.

use std::collections::BTreeSet;

use ractor::ActorRef;

use super::ScribeMessage;
use super::reply::Reply;
use super::request::{Lost, Unlist};
use crate::domain::id::{PersonId, Seq};
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::speakers::{self, STRETCH, after_stretch};
use crate::ports::store::Store;

/// So often it is looked again, when something was said meanwhile.
const TRIES: usize = 64;

/// Takes people out of the index for the stretch that a number lies in, if nothing in it is theirs from another number on.
///
/// # Errors
/// Some of them may still be listed: the same again goes on.
pub async fn unlist(
    store: &dyn Store,
    scribe: &ActorRef<ScribeMessage>,
    place: &Place,
    stretch: Seq,
    from: Seq,
    people: &BTreeSet<PersonId>,
) -> Result<(), Lost> {
    let reader = Reader::new(store);
    let first = speakers::stretch(stretch);
    for _ in 0..TRIES {
        // Whatever is said after this is seen below, or by the scribe.
        let head = reader.head(place).await.map_err(unread)?;
        let Some(no) = head.no else { return Ok(()) };
        let there = reader.speakers(place.ward(), no, from.max(first), after_stretch(stretch)).await.map_err(unread)?;
        let mut keys = Vec::new();
        for person in people.difference(&there) {
            let entries = key::person_in(&place.guild, person, no, stretch);
            let found =
                store.scan(entries.start, entries.end, false, STRETCH as usize).await.map_err(|error| unread(error.into()))?;
            keys.extend(found.into_iter().map(|(key, _)| key));
        }
        if keys.is_empty() {
            return Ok(());
        }
        let (reply, done) = Reply::awaited();
        let unlist = Unlist { place: place.clone(), stretch, keys, as_of: head.last, reply };
        let _ = scribe.cast(ScribeMessage::Unlist(unlist));
        if done.await.unwrap_or(Err(Lost::Unknown))? {
            return Ok(());
        }
    }
    Err(Lost::Unavailable("too much is said there to take anybody out of the index of persons; do the same again".into()))
}

fn unread(error: ReadError) -> Lost {
    Lost::Unavailable(error.to_string().into())
}
