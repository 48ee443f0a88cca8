//! Redacts deleted messages and replaces the text of edited ones, in the journal and in all data derived from them.
//!
//! Every rewrite holds the channel's rewrite lock, so that no rewrite restores text that another one has just redacted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actors::erasure::retention::without_person;
use crate::actors::inbound::Inbound;
use crate::actors::messages::writer;
use crate::actors::messages::writer::WriteError;
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::IndexRemoval;
use crate::actors::writer::requests::{drained, redact_events, remove_from_index, write_meta};
use crate::domain::attachment::Caption;
use crate::domain::event::{Event, Recorded, Standing};
use crate::domain::id::{PersonId, Seq, Ticket};
use crate::domain::message::Role;
use crate::domain::moment::Moment;
use crate::domain::note::Note;
use crate::domain::trigger::Trigger;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::record::{
    DeadLetterRecord, FILE_PART_BYTES, SnapshotRecord, UsageRecord, Used, decode, encode, encode_snapshot,
};
use crate::journal::redaction::{is_redacted, redact};
use crate::journal::speakers::{speakers, stretch};
use crate::ports::store::key::Key;
use crate::ports::store::{Store, Write};
use crate::telemetry::plain::Plain;

/// The most events in one batch of a rewrite. Tests use a small batch, so that they can interrupt between two batches.
const MAX_BATCH: usize = if cfg!(test) { 25 } else { 1_024 };

/// Why a rewrite failed, perhaps in part. A retry continues where it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The rewrite was not stored, or it is unknown whether it was.
    #[error(transparent)]
    Write(#[from] writer::Refused),
}

impl RewriteError {
    fn of(self, channel_key: &ChannelKey) -> Self {
        match self {
            Self::Read(error) => Self::Read(error.of(channel_key)),
            Self::Write(error) => Self::Write(error),
        }
    }
}

impl From<WriteError> for RewriteError {
    fn from(lost: WriteError) -> Self {
        Self::Write(lost.into())
    }
}

/// Deletes messages: removes them from buffers and history, together with the reasons of decisions and the summaries that may
/// quote them. Messages that do not exist or are already deleted are ignored. The deletion continues if the caller is cancelled.
pub async fn delete_messages(
    context: &ActorContext,
    channel_key: &ChannelKey,
    messages: &BTreeSet<Seq>,
) -> Result<(), RewriteError> {
    let (context, channel_key, messages) = (context.clone(), channel_key.clone(), messages.clone());
    let deletion = tokio::spawn(async move {
        let deleted = delete_all_traces(&context, &channel_key, &messages, false).await;
        deleted.map_err(|error| error.of(&channel_key))
    });
    deletion.await.unwrap_or_else(|_| Err(WriteError::Unknown.into()))
}

/// Redacts a statement whose deletion is on record, because another one took its place. If this fails, the next cleanup does it.
pub async fn finish_deletion(context: &ActorContext, channel_key: &ChannelKey, statement: Seq) {
    if let Err(error) = delete_all_traces(context, channel_key, &BTreeSet::from([statement]), true).await {
        tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %error, "a replaced statement is not redacted yet; it is retried");
    }
}

async fn delete_all_traces(
    context: &ActorContext,
    channel_key: &ChannelKey,
    messages: &BTreeSet<Seq>,
    is_on_record: bool,
) -> Result<(), RewriteError> {
    let _lock = context.rewrite_locks.lock(channel_key).await;
    let reader = Reader::new(&*context.store);
    let messages = with_text(&reader, channel_key, messages).await?;
    let Some(no) = reader.channel_no(channel_key).await?.filter(|_| !messages.is_empty()) else { return Ok(()) };
    // If this is interrupted, the notes make the next start finish the deletion.
    let notes = messages.iter().map(|seq| Write::Put(key::index_removal(channel_key.ward(), no, *seq), encode(&())));
    write_meta(context, channel_key.ward(), notes.collect()).await?;
    let mut deleted: BTreeSet<Seq> = messages.iter().copied().collect();
    match is_on_record {
        true => drained(context, channel_key).await?,
        false => accept_deletion(context, channel_key, Event::deleted(messages)).await?,
    }
    let traces = all_traces_of(context, channel_key, &mut deleted).await?;
    let messages: Vec<Seq> = deleted.iter().copied().collect();
    if !traces.illegible.is_empty() {
        let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
        let entries = traces.illegible.len();
        tracing::warn!(%guild, %channel, entries, "entries of this journal cannot be read: they may still quote deleted messages");
    }
    let usage_writes = usage_without_person(context, channel_key, &deleted, &traces.used_at).await?;
    if !is_on_record {
        context.forget_words(channel_key);
    }
    // The words of a replaced statement stay in the versions of the new one, whose kept prompt does not change.
    redact_messages(context, channel_key, &messages, traces.redacted, usage_writes).await
}

/// Appends the deletion of these messages, and waits until the running conversation has handled it. From then on, the channel
/// derives nothing from their text. The messages in `unnamed` lose their mentions of other people; only their authors remain.
pub async fn append_deletion(
    context: &ActorContext,
    channel_key: &ChannelKey,
    messages: &BTreeSet<Seq>,
    unnamed: Vec<Seq>,
) -> Result<(), RewriteError> {
    let messages = messages.iter().copied().collect();
    accept_deletion(context, channel_key, Event::Deleted { messages, unnamed, again: false, continues: false, replaced: false })
        .await
}

async fn accept_deletion(context: &ActorContext, channel_key: &ChannelKey, deletion: Event) -> Result<(), RewriteError> {
    Inbound::new(context.clone()).accept(channel_key, deletion, None).await?;
    // By now, everything that the channel derived from the messages before the deletion is in the journal.
    Ok(drained(context, channel_key).await?)
}

/// Finds the traces of these messages, whose deletion is already in the journal. Segments may have been handed over as new
/// messages before the deletion was committed, and a voice note may have got its words. Those messages are deleted, too, and
/// added to `gone`.
pub async fn all_traces_of(
    context: &ActorContext,
    channel_key: &ChannelKey,
    gone: &mut BTreeSet<Seq>,
) -> Result<Traces, RewriteError> {
    let reader = Reader::new(&*context.store);
    let traces = traces_of(&reader, channel_key, gone).await?;
    if traces.handed_over.is_empty() {
        return Ok(traces);
    }
    append_deletion(context, channel_key, &traces.handed_over, Vec::new()).await?;
    gone.extend(traces.handed_over);
    // A segment is handed over only once, so there are no further messages.
    Ok(traces_of(&reader, channel_key, gone).await?)
}

/// Redacts these messages and their traces like [`redact_traces`]. Also removes authors who have no other messages in the stretch
/// from the index of persons. Prompts in memory stay.
pub async fn redact_messages(
    context: &ActorContext,
    channel_key: &ChannelKey,
    messages: &[Seq],
    events: Vec<Recorded>,
    mut writes: Vec<Write>,
) -> Result<(), RewriteError> {
    let candidates = removal_candidates(&Reader::new(&*context.store), channel_key, messages).await?;
    // The notes are written together with the redaction. After an interruption, only the notes request the check of the index,
    // because the redacted messages no longer name their authors.
    writes.extend(candidates.values().flat_map(|candidates| &candidates.notes).map(|note| Write::Put(note.clone(), encode(&()))));
    redact_in_batches(context, channel_key, events, writes).await.map_err(|error| error.of(channel_key))?;
    for (stretch, RemovalCandidates { people, notes }) in &candidates {
        remove_from_index(context, channel_key, IndexRemoval { stretch: *stretch, below: Seq::NONE, people, notes }).await?;
    }
    Ok(())
}

/// Returns the writes that remove the person, or the message, from the usage records of these moments, if one of these messages caused the usage.
pub async fn usage_without_person(
    context: &ActorContext,
    channel_key: &ChannelKey,
    gone: &BTreeSet<Seq>,
    used_at: &BTreeSet<Moment>,
) -> Result<Vec<Write>, ReadError> {
    let (mut writes, mut helped) = (Vec::new(), BTreeSet::new());
    for at in used_at {
        let next = Moment::from_micros(at.as_micros().saturating_add(1));
        let (from, to) = (key::usage_from(&channel_key.guild, *at), key::usage_from(&channel_key.guild, next));
        for (key, value) in context.store.scan(from, to, false, usize::MAX).await? {
            // An unreadable record reveals no name, so it is skipped.
            let Ok(record) = decode::<UsageRecord>(&key, &value) else { continue };
            let write = match &record.used {
                _ if record.channel != channel_key.channel => None,
                Used::Address { message, .. } if gone.contains(message) => without_person(&record),
                Used::Help { message: Some(message) } if gone.contains(message) => {
                    if !helped.insert(*message) {
                        writes.push(Write::Remove(key));
                        continue;
                    }
                    Some(UsageRecord { used: Used::Help { message: None }, ..record.clone() })
                }
                _ => None,
            };
            writes.extend(write.map(|record| Write::Put(key, encode(&record))));
        }
    }
    Ok(writes)
}

/// People who may have no messages left in a stretch.
#[derive(Default)]
struct RemovalCandidates {
    people: BTreeSet<PersonId>,
    /// The notes that request the check.
    notes: Vec<Key>,
}

/// The authors of these messages, by stretch. Call this before the redaction, which removes the authors.
async fn removal_candidates(
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    messages: &[Seq],
) -> Result<BTreeMap<Seq, RemovalCandidates>, ReadError> {
    let mut candidates: BTreeMap<_, RemovalCandidates> = BTreeMap::new();
    let Some(no) = reader.channel_no(channel_key).await? else { return Ok(candidates) };
    for seq in messages {
        let recorded = reader.event(channel_key, *seq).await?;
        let RemovalCandidates { people, notes } = candidates.entry(stretch(*seq)).or_default();
        people.extend(recorded.iter().flat_map(|recorded| speakers(&recorded.event)).map(|id| PersonId::from(&**id)));
        // A companion's message has such a note as well, written before the deletion. The note is removed when the deletion is
        // finished.
        notes.push(key::index_removal(channel_key.ward(), no, *seq));
    }
    Ok(candidates)
}

/// A change of a message.
pub enum Change {
    /// The new text.
    Text(Arc<str>),
    /// Descriptions of its pictures by a model.
    Captions(Vec<Caption>),
    /// The index of the version to show.
    Version(usize),
}

/// Changes a message, unless it stays the same. Returns false if it does not exist, is deleted, or has no such version.
pub async fn change_message(
    context: &ActorContext,
    channel_key: &ChannelKey,
    seq: Seq,
    change: Change,
) -> Result<bool, RewriteError> {
    let _lock = context.rewrite_locks.lock(channel_key).await;
    let reader = Reader::new(&*context.store);
    let Some(mut recorded) = reader.event(channel_key, seq).await? else { return Ok(false) };
    let Event::Said { message, .. } = &mut recorded.event else { return Ok(false) };
    if is_redacted(message) {
        return Ok(false);
    }
    let before = message.clone();
    let (mut captions, mut version) = (Vec::new(), None);
    match change {
        Change::Text(text) => {
            message.edit(text, &[]);
            message.mark_edited();
        }
        Change::Captions(added) => {
            message.edit(message.captioned(&added), &added);
            captions = added;
        }
        Change::Version(index) if message.stand(index) => version = Some(Standing { index, edited: message.edited }),
        Change::Version(_) => return Ok(false),
    }
    if message.text != before.text || message.versions != before.versions {
        let is_captioned = !captions.is_empty();
        let edited = Event::Edited { message: seq, text: message.text.clone(), captions, version };
        Inbound::new(context.clone()).accept(channel_key, edited, None).await?;
        // The sentences and segments still contain the old text.
        let mut events: Vec<_> = parts_of(&reader, channel_key, seq, false).await?.into_values().collect();
        if !is_captioned {
            events.extend(notes_without(&reader, channel_key, |source| source == seq).await?);
        }
        for segment in before.speech.iter().flat_map(|speech| &speech.segments) {
            events.extend(reader.event(channel_key, *segment).await?.as_ref().map(redact));
        }
        context.forget_words(channel_key);
        events.push(recorded);
        redact_events(context, channel_key, events, Vec::new()).await?;
    }
    Ok(true)
}

/// Writes redacted events, redacts the snapshot that quotes them, and closes their dead letters. The channel must have handled
/// the deletion before, and the caller must hold the rewrite lock.
pub async fn redact_traces(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: Vec<Recorded>,
    writes: Vec<Write>,
) -> Result<(), RewriteError> {
    context.forget_words(channel_key);
    redact_in_batches(context, channel_key, events, writes).await.map_err(|error| error.of(channel_key))
}

async fn redact_in_batches(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: Vec<Recorded>,
    mut writes: Vec<Write>,
) -> Result<(), RewriteError> {
    context.recall.forget(channel_key);
    remove_files(context, channel_key, &events).await?;
    // A running channel that answers has dropped the text. Once the writer answers, everything that the channel wrote before is
    // stored. So no later snapshot contains the text.
    drained(context, channel_key).await?;
    writes.extend(redacted_snapshot(context, channel_key, &events).await?);
    writes.extend(closed_dead_letters(&Reader::new(&*context.store), channel_key, &events).await?);
    // Many events are redacted in batches. A retry after an interruption must find the remaining ones. So the newest events are
    // redacted first and the messages themselves last, because all derived data is found through the messages. The snapshot is
    // part of the first batch.
    let mut rest = events;
    while rest.len() > MAX_BATCH {
        let newest = rest.split_off(rest.len() - MAX_BATCH);
        redact_events(context, channel_key, newest, std::mem::take(&mut writes)).await?;
    }
    Ok(redact_events(context, channel_key, rest, writes).await?)
}

/// Removes the files of those of these messages that are redacted.
async fn remove_files(context: &ActorContext, channel_key: &ChannelKey, events: &[Recorded]) -> Result<(), RewriteError> {
    let is_message = |recorded: &&Recorded| matches!(&recorded.event, Event::Said { message, .. } if is_redacted(message));
    let gone: BTreeSet<Seq> = events.iter().filter(is_message).map(|recorded| recorded.seq).collect();
    let (Some(first), Some(last)) = (gone.first(), gone.last()) else { return Ok(()) };
    let reader = Reader::new(&*context.store);
    let Some(no) = reader.channel_no(channel_key).await? else { return Ok(()) };
    let ward = channel_key.ward();
    for (message, file, record) in reader.files(channel_key, *first, last.next()).await? {
        if gone.contains(&message) {
            let parts = key::file_parts(ward, no, message, file);
            let numbers = 0..record.bytes.div_ceil(FILE_PART_BYTES as u64);
            let parts = numbers.map(|number| Write::Remove(parts.clone().number(number)));
            let writes = parts.chain([Write::Remove(key::file(ward, no, message, file))]).collect();
            redact_events(context, channel_key, Vec::new(), writes).await?;
        }
    }
    Ok(())
}

/// Whether a room has an unreadable snapshot. Such a snapshot cannot be redacted.
pub async fn has_illegible_snapshot(store: &dyn Store, channel_key: &ChannelKey) -> Result<bool, ReadError> {
    let Some(no) = Reader::new(store).channel_no(channel_key).await? else { return Ok(false) };
    let key = key::snapshot(channel_key.ward(), no);
    let stored = store.get(key.clone()).await?;
    Ok(stored.is_some_and(|value| decode::<SnapshotRecord>(&key, &value).is_err()))
}

async fn redacted_snapshot(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: &[Recorded],
) -> Result<Option<Write>, ReadError> {
    let Some(no) = Reader::new(&*context.store).channel_no(channel_key).await? else { return Ok(None) };
    let key = key::snapshot(channel_key.ward(), no);
    let Some(value) = context.store.get(key.clone()).await? else { return Ok(None) };
    let mut snapshot: SnapshotRecord = match decode(&key, &value) {
        Ok(snapshot) => snapshot,
        // An unreadable snapshot reveals nothing, and it must not prevent the deletion of the events.
        Err(error) => {
            tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %error, "an unreadable snapshot cannot be redacted");
            return Ok(None);
        }
    };
    for recorded in events {
        snapshot.conversation.apply_redaction(recorded);
    }
    Ok(Some(Write::Put(key, encode_snapshot(snapshot.made, &snapshot.conversation))))
}

/// Returns the writes that close the dead letters of these messages. The writes also remove the stored errors, because an error
/// can quote the message.
async fn closed_dead_letters(
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    events: &[Recorded],
) -> Result<Vec<Write>, ReadError> {
    let Some(no) = reader.channel_no(channel_key).await? else { return Ok(Vec::new()) };
    let messages = events.iter().filter(|recorded| matches!(recorded.event, Event::Said { .. }));
    let redacted: BTreeSet<Seq> = messages.map(|recorded| recorded.seq).collect();
    let stored = reader.all(key::dead_letters(channel_key.ward(), no)).await?;
    // An unreadable dead letter reveals nothing, and it must not prevent the deletion of the others.
    let records = stored.iter().filter_map(|(key, value)| decode::<DeadLetterRecord>(key, value).ok());
    let closed = records.filter(|record| redacted.contains(&record.seq)).map(|record| DeadLetterRecord {
        error: "".into(),
        is_closed: true,
        ..record
    });
    Ok(closed.map(|record| Write::Put(key::dead_letter(channel_key.ward(), no, record.seq), encode(&record))).collect())
}

/// Returns those of these messages and segments that still have their text, in order. For spoken messages, their segments are
/// included, for statements their reactions. An unreadable message does not prevent the deletion of the others; it is an error only if there are no others.
async fn with_text(reader: &Reader<'_>, channel_key: &ChannelKey, messages: &BTreeSet<Seq>) -> Result<Vec<Seq>, ReadError> {
    let (mut found, mut illegible) = (Vec::new(), None);
    for seq in messages {
        match reader.event(channel_key, *seq).await {
            Ok(Some(Recorded { event: Event::Said { message, .. }, .. })) if !is_redacted(&message) => {
                // The transcript of a spoken message is also stored in its segments. The words of a voice note go with the note.
                found.extend(message.sources());
                if message.from.role == Role::Companion {
                    found.extend(reader.reactions_on(channel_key, *seq).await?.0.iter().map(|reaction| reaction.seq));
                }
                found.push(*seq);
            }
            Ok(Some(Recorded { event: Event::Segment(segment), .. })) if !segment.is_redacted() => found.push(*seq),
            Ok(Some(Recorded { event: Event::Chosen { by: Some(_), .. }, .. })) => found.push(*seq),
            Ok(Some(Recorded { event: Event::ToolCalled(called), .. })) if called.cause.is_some() => found.push(*seq),
            Ok(Some(Recorded { event: Event::ToolConfirmed(confirmed), .. })) if confirmed.by.is_some() => found.push(*seq),
            Ok(Some(Recorded { event: Event::Reacted { by, .. }, .. })) if !by.as_str().is_empty() => found.push(*seq),
            Ok(_) => {}
            Err(error @ (ReadError::Record(_) | ReadError::Illegible { .. })) => {
                tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %seq, %error, "a message that should be deleted cannot be read");
                illegible = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match illegible {
        Some(error) if found.is_empty() => Err(error),
        _ => {
            found.sort();
            found.dedup();
            Ok(found)
        }
    }
}

/// The companions' statements that answer any of these messages, except deleted ones.
pub async fn answers_to(
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    messages: &BTreeSet<Seq>,
) -> Result<BTreeSet<Seq>, ReadError> {
    const PAGE: usize = 512;
    let mut answers = BTreeSet::new();
    let mut owed = BTreeSet::new();
    let Some(first) = messages.first() else { return Ok(answers) };
    let mut after = *first;
    loop {
        let page = reader.legible(channel_key, Range { after, before: None, limit: PAGE, newest_first: false }).await?;
        let Some(last) = page.last else { return Ok(answers) };
        after = last;
        for recorded in &page.events {
            if follow_replies(&recorded.event, messages, &mut owed) {
                continue;
            }
            if let Event::Said { reply: Some(ticket), message, .. } = &recorded.event
                && owed.contains(ticket)
                && !is_redacted(message)
            {
                answers.insert(recorded.seq);
            }
        }
    }
}

/// If the event owes a reply to any of these messages, or replaces a reply in `replies`, adds its ticket to `replies`. Returns
/// whether it was added.
fn follow_replies(event: &Event, messages: &BTreeSet<Seq>, replies: &mut BTreeSet<Ticket>) -> bool {
    let reply = event.owed().filter(|reply| {
        reply.replaces.is_some_and(|stopped| replies.contains(&stopped))
            || reply.messages.iter().any(|seq| messages.contains(seq))
    });
    reply.is_some_and(|reply| replies.insert(reply.ticket))
}

/// The spoken sentences of a statement, redacted, and with `with_calls` its calls of tools. They precede the statement in the journal. Empty if the
/// message is not a companion's statement.
async fn parts_of(
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    statement: Seq,
    with_calls: bool,
) -> Result<BTreeMap<Seq, Recorded>, ReadError> {
    const PAGE: usize = 64;
    let mut parts = BTreeMap::new();
    let Some(Recorded { event: Event::Said { reply: Some(ticket), .. }, .. }) = reader.event(channel_key, statement).await?
    else {
        return Ok(parts);
    };
    let mut attempt = ticket;
    let mut before = statement;
    loop {
        let range = Range { after: Seq::NONE, before: Some(before), limit: PAGE, newest_first: true };
        let page = reader.legible(channel_key, range).await?;
        let Some(last) = page.last else { return Ok(parts) };
        before = last;
        for recorded in &page.events {
            let is_part = match &recorded.event {
                Event::SentenceStarting { ticket: of, text, .. } => *of == ticket && !text.is_empty(),
                Event::ToolCalled(called) => with_calls && called.ticket == attempt,
                Event::ToolAnswered(answered) => with_calls && answered.ticket == attempt,
                _ => false,
            };
            if is_part {
                parts.insert(recorded.seq, redact(recorded));
            }
            // No sentence was spoken before the reply was owed, or under an earlier ticket.
            if let Some(reply) = recorded.event.owed().filter(|reply| reply.ticket == attempt) {
                match reply.replaces.filter(|_| with_calls) {
                    Some(stopped) => attempt = stopped,
                    None => return Ok(parts),
                }
            }
        }
    }
}

/// A note, redacted because it had one of these sources. `None` if it had none of them.
fn without_sources(recorded: &Recorded, is_gone: impl Fn(Seq) -> bool) -> Option<Recorded> {
    let mut without = recorded.clone();
    let Event::Noted(note) = &mut without.event else { return None };
    note.lose(is_gone).then_some(without)
}

/// The notes of a channel that lose one of these sources, redacted.
async fn notes_without(
    reader: &Reader<'_>,
    channel_key: &ChannelKey,
    is_gone: impl Fn(Seq) -> bool,
) -> Result<Vec<Recorded>, ReadError> {
    let mut changed = Vec::new();
    for (seq, note) in reader.notes(channel_key, Seq::NONE).await? {
        if note.sources.iter().any(|source| is_gone(*source)) {
            let recorded = reader.event(channel_key, seq).await?;
            changed.extend(recorded.and_then(|recorded| without_sources(&recorded, &is_gone)));
        }
    }
    Ok(changed)
}

/// Redacts the notes of a channel that have expired sources, those below a number.
pub async fn expire_sources(context: &ActorContext, channel_key: &ChannelKey, below: Seq) -> Result<(), RewriteError> {
    let _lock = context.rewrite_locks.lock(channel_key).await;
    let changed = notes_without(&Reader::new(&*context.store), channel_key, |source| source < below).await?;
    if changed.is_empty() { Ok(()) } else { redact_traces(context, channel_key, changed, Vec::new()).await }
}

/// Replaces the text of a note. Returns false if there is no such note.
pub async fn correct_note(
    context: &ActorContext,
    channel_key: &ChannelKey,
    seq: Seq,
    text: Arc<str>,
) -> Result<bool, RewriteError> {
    let _lock = context.rewrite_locks.lock(channel_key).await;
    let Some(mut recorded) = Reader::new(&*context.store).event(channel_key, seq).await? else { return Ok(false) };
    let Event::Noted(note) = &mut recorded.event else { return Ok(false) };
    if note.is_redacted() {
        return Ok(false);
    }
    (note.text, note.asked) = (text, true);
    redact_traces(context, channel_key, vec![recorded], Vec::new()).await?;
    Ok(true)
}

/// Erases notes of a channel. Returns how many were erased.
pub async fn erase_notes(
    context: &ActorContext,
    channel_key: &ChannelKey,
    is_erased: impl Fn(Seq, &Note) -> bool,
) -> Result<u64, RewriteError> {
    let _lock = context.rewrite_locks.lock(channel_key).await;
    let reader = Reader::new(&*context.store);
    let mut erased = Vec::new();
    for (seq, note) in reader.notes(channel_key, Seq::NONE).await? {
        if is_erased(seq, &note) {
            erased.extend(reader.event(channel_key, seq).await?.as_ref().map(redact));
        }
    }
    let count = erased.len() as u64;
    if count > 0 {
        redact_traces(context, channel_key, erased, Vec::new()).await?;
    }
    Ok(count)
}

/// The events of a channel's journal that contain or may quote some messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traces {
    /// The events that contain the text, redacted: the messages themselves, their edits and spoken sentences, and decisions,
    /// summaries and judgements that may quote them.
    pub redacted: Vec<Recorded>,
    /// The times of usage records that may name the messages or their authors: when companions were asked because one of the messages addressed
    /// them, and the months of decisions about people at risk.
    pub used_at: BTreeSet<Moment>,
    /// Other messages that have one of these as a [source](crate::domain::message::Message::sources) and still have their text.
    pub handed_over: BTreeSet<Seq>,
    /// The numbers of later events that are unreadable and may quote the messages as well.
    pub illegible: BTreeSet<Seq>,
}

/// Searches a channel's journal for every event that may quote these messages.
pub async fn traces_of(reader: &Reader<'_>, channel_key: &ChannelKey, gone: &BTreeSet<Seq>) -> Result<Traces, ReadError> {
    const PAGE: usize = 512;
    let Some(first) = gone.first() else { return Ok(Traces::default()) };
    let (mut redacted, mut used_at, mut illegible) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut handed_over = BTreeSet::new();
    let mut after = Seq(first.0.saturating_sub(1));
    // Replies to deleted messages, and their spoken sentences. Such a reply may have ended without a statement.
    let mut about_gone = BTreeSet::new();
    let mut parts = BTreeMap::new();
    let mut calls_about_gone = BTreeSet::new();
    loop {
        let page = reader.legible(channel_key, Range { after, before: None, limit: PAGE, newest_first: false }).await?;
        let Some(last) = page.last else { break };
        after = last;
        illegible.extend(page.illegible);
        for recorded in page.events {
            let is_trace = match &recorded.event {
                Event::Said { message, reply, .. } => {
                    let is_gone = gone.contains(&recorded.seq);
                    if is_gone && reply.is_some() {
                        parts.extend(parts_of(reader, channel_key, recorded.seq, true).await?);
                        calls_about_gone.extend(parts.values().filter_map(|part| part.event.call()));
                    }
                    if !is_gone && message.versions.is_some() && reply.is_some_and(|ticket| about_gone.contains(&ticket)) {
                        // Only the text that stands remains of an answer to a deleted message.
                        let mut standing = recorded.clone();
                        if let Event::Said { message, .. } = &mut standing.event {
                            message.versions = None;
                        }
                        redacted.push(standing);
                    }
                    if !is_gone && !is_redacted(message) && message.sources().any(|source| gone.contains(&source)) {
                        handed_over.insert(recorded.seq);
                    }
                    is_gone
                }
                Event::Segment(_)
                | Event::VoiceJoined { .. }
                | Event::VoiceLeft { .. }
                | Event::Chosen { .. }
                | Event::Disclosed(_) => gone.contains(&recorded.seq),
                Event::Reacted { message, .. } => gone.contains(message) || gone.contains(&recorded.seq),
                Event::Edited { message, .. } => gone.contains(message),
                Event::Interrupted { .. } => gone.contains(&recorded.seq),
                Event::SentenceStarting { ticket, text, .. } => {
                    if about_gone.contains(ticket) && !text.is_empty() {
                        parts.insert(recorded.seq, redact(&recorded));
                    }
                    false
                }
                Event::Evaluated(evaluated) => {
                    if evaluated.trigger == Trigger::DirectAddress && gone.contains(&evaluated.message) {
                        used_at.insert(recorded.at);
                    }
                    false
                }
                Event::Decided(decided) => {
                    used_at.extend(decided.at_risk.filter(|message| gone.contains(message)).map(|_| recorded.at.month(0)));
                    // The prompt of an external companion is unknown, so its decisions count as traces.
                    decided.call.as_ref().is_none_or(|call| call.showed(gone))
                        || decided.messages.iter().any(|seq| gone.contains(seq))
                }
                Event::ReminderSet(reminder) => {
                    gone.contains(&recorded.seq) || reminder.asked.iter().any(|asked| gone.contains(asked))
                }
                Event::ToolCalled(called) => {
                    let is_about_gone = about_gone.contains(&called.ticket) || called.was_shown(gone);
                    calls_about_gone.extend(is_about_gone.then_some(called.call));
                    is_about_gone || gone.contains(&recorded.seq)
                }
                Event::ToolConfirmed(_) => gone.contains(&recorded.seq),
                Event::ToolAnswered(answered) => calls_about_gone.contains(&answered.call),
                Event::Noted(_) => {
                    redacted.extend(without_sources(&recorded, |source| gone.contains(&source)));
                    false
                }
                // A summary covers all messages before it, and the content of the previous summary.
                Event::Summarised { upto, .. } => upto >= first,
                Event::RepetitionJudged { call, .. } => call.as_ref().is_some_and(|call| call.showed(gone)),
                Event::ReplyOwed { .. } | Event::Replanned { .. } | Event::ReplyExtended { .. } => {
                    follow_replies(&recorded.event, gone, &mut about_gone);
                    false
                }
                _ => false,
            };
            let without = redact(&recorded);
            if is_trace && without != recorded {
                redacted.push(without);
            }
        }
    }
    // These are redacted first, because they are found through their statement.
    redacted.extend(parts.into_values());
    Ok(Traces { redacted, used_at, handed_over, illegible })
}
