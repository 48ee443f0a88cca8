//! Takes up at the start what an end in the middle has left: rooms that were deleted and are not swept yet, and people who may be listed
//! where nothing of theirs is left.

use std::collections::{BTreeMap, BTreeSet};

use super::kit::Kit;
use super::reaching::{fence, unlist};
use super::scribe::{Leaving, Lost};
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::speakers::stretch;
use crate::ports::store::key::{ChannelNo, Key};

/// So many records are read at once.
const PAGE: usize = 512;

/// Why something is still left; the next start goes on.
#[derive(Debug, thiserror::Error)]
enum StillLeft {
    #[error(transparent)]
    Unread(#[from] ReadError),
    #[error(transparent)]
    Unstored(#[from] Lost),
}

/// Stretches of a guild's journals in which somebody may have nothing left, each with the notes that say so.
type Noted = BTreeMap<(ChannelNo, Seq), Vec<Key>>;

/// Takes up what was left. What cannot be read is told in the log, and waits for the next start. Needs the scribe.
pub async fn take_up(kit: &Kit) {
    for ward in (0..=u8::MAX).map(Ward) {
        if let Err(error) = take_up_in(kit, ward).await {
            tell(ward, &error);
        }
    }
}

fn tell(ward: Ward, error: &StillLeft) {
    tracing::warn!(ward = ward.0, %error, "what an end in the middle has left is not taken up wholly; the next start tries again");
}

async fn take_up_in(kit: &Kit, ward: Ward) -> Result<(), StillLeft> {
    let reader = Reader::new(&*kit.store);
    for (mark, _) in reader.all(key::sweeps(ward)).await? {
        let Some(no) = key::swept_in(&mark) else { continue };
        // Whoever asks for a journal has it swept.
        if let Some(place) = reader.place_of(ward, no).await?
            && let Err(lost) = fence(kit, &place).await
        {
            tell(ward, &lost.into());
        }
    }
    let mut noted: BTreeMap<GuildId, Noted> = BTreeMap::new();
    for (note, _) in reader.all(key::unlistings(ward)).await? {
        let (Some(no), Some(seq)) = (key::channel_before_number(&note), note.last_number().map(Seq)) else { continue };
        if let Some(place) = reader.place_of(ward, no).await? {
            noted.entry(place.guild).or_default().entry((no, stretch(seq))).or_default().push(note);
        }
    }
    for (guild, noted) in noted {
        let listed = listed(kit, &guild, &noted).await?;
        for ((no, stretch), notes) in &noted {
            let Some(place) = reader.place_of(ward, *no).await? else { continue };
            let people = &listed.get(&(*no, *stretch)).cloned().unwrap_or_default();
            if let Err(lost) = unlist(kit, &place, Leaving { stretch: *stretch, below: Seq::NONE, people, notes }).await {
                tell(ward, &lost.into());
            }
        }
    }
    Ok(())
}

/// Who is listed in these stretches. The index leads from people to stretches, so all of the guild's is read.
async fn listed(kit: &Kit, guild: &GuildId, noted: &Noted) -> Result<BTreeMap<(ChannelNo, Seq), BTreeSet<PersonId>>, ReadError> {
    let (mut from, end) = (key::all_persons(guild), key::all_persons(guild).end());
    let mut listed: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    loop {
        let page = kit.store.scan(from, end.clone(), false, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(listed) };
        from = key::successor(last);
        for (entry, _) in &page {
            let (Some(no), Some(seq)) = (key::channel_before_number(entry), entry.last_number().map(Seq)) else { continue };
            let of = (no, stretch(seq));
            if noted.contains_key(&of)
                && let Some(person) = key::person_named_in(guild, entry)
            {
                listed.entry(of).or_default().insert(person);
            }
        }
    }
}
