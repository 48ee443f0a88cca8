//! Finishes interrupted work, at the start and once a day: sweeps of deleted rooms, deletions of messages, and index entries of
//! people whose messages may be gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::actors::erasure::deletion::{RewriteError, delete_messages};
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::IndexRemoval;
use crate::actors::writer::requests::{fence, remove_from_index};
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::speakers::stretch;
use crate::ports::store::key::{ChannelNo, Key};

/// The pause between two runs. Long-running processes need the repetition, because a crashed writer or a busy room can leave
/// unfinished work.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Stretches of a guild's journals in which a person may have no messages left, each with the notes that request the check.
type Noted = BTreeMap<(ChannelNo, Seq), Vec<Key>>;

/// Cleans up now and once a day, as long as the runtime lives. Needs the writer.
pub async fn keep_cleaning_up(context: ActorContext) {
    loop {
        clean_up(&context).await;
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// Cleans up once. Errors are logged, and the next run tries again. Needs the writer.
pub async fn clean_up(context: &ActorContext) {
    for ward in (0..=u8::MAX).map(Ward) {
        if let Err(error) = clean_up_ward(context, ward).await {
            log(ward, &error);
        }
    }
}

fn log(ward: Ward, error: &RewriteError) {
    tracing::warn!(ward = ward.0, %error, "cleaning up after an interrupted deletion failed in part; it is retried in a day, and at the next start");
}

async fn clean_up_ward(context: &ActorContext, ward: Ward) -> Result<(), RewriteError> {
    let reader = Reader::new(&*context.store);
    for (mark, _) in reader.all(key::sweeps(ward)).await? {
        let Some(no) = key::sweep_in(&mark) else { continue };
        if let Err(error) = sweep(context, ward, no).await {
            log(ward, &error);
        }
    }
    let mut noted: BTreeMap<GuildId, Noted> = BTreeMap::new();
    for (note, _) in reader.all(key::index_removals(ward)).await? {
        let (Some(no), Some(seq)) = (key::channel_before_number(&note), note.last_number().map(Seq)) else { continue };
        match reader.channel_key_of(ward, no).await {
            Ok(Some(channel_key)) => {
                noted.entry(channel_key.guild).or_default().entry((no, stretch(seq))).or_default().push(note)
            }
            Ok(None) => {}
            Err(error) => log(ward, &error.into()),
        }
    }
    for (guild, noted) in noted {
        let listed = listed(context, &guild, &noted).await?;
        for ((no, stretch), notes) in &noted {
            let people = listed.get(&(*no, *stretch)).cloned().unwrap_or_default();
            if let Err(error) =
                delete_noted(context, ward, *no, IndexRemoval { stretch: *stretch, below: Seq::NONE, people: &people, notes })
                    .await
            {
                log(ward, &error);
            }
        }
    }
    Ok(())
}

/// Sweeps a deleted channel: any request for a journal makes the writer sweep it first.
async fn sweep(context: &ActorContext, ward: Ward, no: ChannelNo) -> Result<(), RewriteError> {
    if let Some(channel_key) = Reader::new(&*context.store).channel_key_of(ward, no).await? {
        fence(context, &channel_key).await?;
    }
    Ok(())
}

/// Deletes noted messages that still have their text, and removes people without messages in the stretch from the index.
async fn delete_noted(context: &ActorContext, ward: Ward, no: ChannelNo, leaving: IndexRemoval<'_>) -> Result<(), RewriteError> {
    let reader = Reader::new(&*context.store);
    let Some(channel_key) = reader.channel_key_of(ward, no).await? else { return Ok(()) };
    let noted = leaving.notes.iter().filter_map(Key::last_number).map(Seq).collect();
    delete_messages(context, &channel_key, &noted).await?;
    Ok(remove_from_index(context, &channel_key, leaving).await?)
}

/// The people in the index of persons for these stretches. The index is ordered by person, so this reads all entries of the
/// guild.
async fn listed(
    context: &ActorContext,
    guild: &GuildId,
    noted: &Noted,
) -> Result<BTreeMap<(ChannelNo, Seq), BTreeSet<PersonId>>, ReadError> {
    let mut pages = Reader::new(&*context.store).pages(key::all_persons(guild), key::all_persons(guild).end());
    let mut listed: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    while let Some(page) = pages.next().await? {
        for (entry, _) in &page {
            let (Some(no), Some(seq)) = (key::channel_before_number(entry), entry.last_number().map(Seq)) else { continue };
            let place = (no, stretch(seq));
            if noted.contains_key(&place)
                && let Some(person) = key::person_named_in(guild, entry)
            {
                listed.entry(place).or_default().insert(person);
            }
        }
    }
    Ok(listed)
}
