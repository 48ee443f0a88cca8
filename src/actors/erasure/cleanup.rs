//! Takes up, at the start and once a day, what an end in the middle has left: rooms that were deleted and are not swept yet, messages that
//! were to be taken back, and people who may be listed where nothing of theirs is left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::actors::erasure::deletion::{RewriteError, delete_messages};
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::Leaving;
use crate::actors::writer::requests::{fence, remove_from_index};
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::journal::key;
use crate::journal::reader::{ReadError, Reader};
use crate::journal::speakers::stretch;
use crate::ports::store::key::{ChannelNo, Key};

/// So many records are read at once.
const PAGE: usize = 512;

/// Between one time and the next: a writer that died, or a room that was busy, can leave something in a process that goes on for months.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Why something is still left; the next time goes on.
#[derive(Debug, thiserror::Error)]
enum CleanupError {
    #[error(transparent)]
    Unread(#[from] ReadError),
    #[error(transparent)]
    Unstored(#[from] WriteError),
    #[error(transparent)]
    NotTakenBack(#[from] RewriteError),
}

/// Stretches of a guild's journals in which somebody may have nothing left, each with the notes that say so.
type Noted = BTreeMap<(ChannelNo, Seq), Vec<Key>>;

/// Takes up what was left, now and once a day, for as long as the runtime lives. Needs the writer.
pub async fn keep_cleaning_up(context: ActorContext) {
    loop {
        clean_up(&context).await;
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// Takes up what was left. What cannot be read is told in the log, and waits for the next time. Needs the writer.
pub async fn clean_up(context: &ActorContext) {
    for ward in (0..=u8::MAX).map(Ward) {
        if let Err(error) = take_up_in(context, ward).await {
            tell(ward, &error);
        }
    }
}

fn tell(ward: Ward, error: &CleanupError) {
    tracing::warn!(ward = ward.0, %error, "what an end in the middle has left is not taken up wholly; it is tried again in a day, and at the next start");
}

async fn take_up_in(context: &ActorContext, ward: Ward) -> Result<(), CleanupError> {
    let reader = Reader::new(&*context.store);
    for (mark, _) in reader.all(key::sweeps(ward)).await? {
        let Some(no) = key::sweep_in(&mark) else { continue };
        if let Err(error) = sweep(context, ward, no).await {
            tell(ward, &error);
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
            Err(error) => tell(ward, &error.into()),
        }
    }
    for (guild, noted) in noted {
        let listed = listed(context, &guild, &noted).await?;
        for ((no, stretch), notes) in &noted {
            let people = listed.get(&(*no, *stretch)).cloned().unwrap_or_default();
            if let Err(error) =
                delete_noted(context, ward, *no, Leaving { stretch: *stretch, below: Seq::NONE, people: &people, notes }).await
            {
                tell(ward, &error);
            }
        }
    }
    Ok(())
}

/// Whoever asks for a journal has it swept.
async fn sweep(context: &ActorContext, ward: Ward, no: ChannelNo) -> Result<(), CleanupError> {
    if let Some(channel_key) = Reader::new(&*context.store).channel_key_of(ward, no).await? {
        fence(context, &channel_key).await?;
    }
    Ok(())
}

/// Takes back what was noted and still has words, and takes out of the index who has nothing left in the stretch.
async fn delete_noted(context: &ActorContext, ward: Ward, no: ChannelNo, leaving: Leaving<'_>) -> Result<(), CleanupError> {
    let reader = Reader::new(&*context.store);
    let Some(channel_key) = reader.channel_key_of(ward, no).await? else { return Ok(()) };
    let noted = leaving.notes.iter().filter_map(Key::last_number).map(Seq).collect();
    delete_messages(context, &channel_key, &noted).await?;
    Ok(remove_from_index(context, &channel_key, leaving).await?)
}

/// Who is listed in these stretches. The index leads from people to stretches, so all of the guild's is read.
async fn listed(
    context: &ActorContext,
    guild: &GuildId,
    noted: &Noted,
) -> Result<BTreeMap<(ChannelNo, Seq), BTreeSet<PersonId>>, ReadError> {
    let (mut from, end) = (key::all_persons(guild), key::all_persons(guild).end());
    let mut listed: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    loop {
        let page = context.store.scan(from, end.clone(), false, PAGE).await?;
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
