//! Words that are taken out of the record, or replaced in it: of messages that were taken back or changed, and of all that led to others.
//!
//! Whoever changes the words of a channel waits for its turn, so that nobody writes back what somebody else has taken out meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::actors::erasure::retention::without_person;
use crate::actors::inbound::Inbound;
use crate::actors::messages::writer;
use crate::actors::messages::writer::{MetaWriteError, WriteError};
use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::Leaving;
use crate::actors::writer::requests::{drained, redact_events, remove_from_index, write_meta};
use crate::domain::conversation::JUDGED_MESSAGES;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq};
use crate::domain::message::Message;
use crate::domain::moment::Moment;
use crate::domain::trigger::Trigger;
use crate::domain::window::RECENT_TURNS;
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::record::{DeadLetterRecord, SnapshotRecord, UsageRecord, Used, decode, encode, encode_snapshot};
use crate::journal::redaction::{is_redacted, redact};
use crate::journal::speakers::{speaker, stretch};
use crate::ports::store::key::Key;
use crate::ports::store::{Store, Write};
use crate::telemetry::plain::Plain;

/// So many events are written again in one batch; in tests few, so that somebody is interrupted between two.
const MOST_AT_ONCE: usize = if cfg!(test) { 25 } else { 1_024 };

/// Why words were not changed, or not wholly; the same again goes on where it failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// The record cannot be read.
    #[error(transparent)]
    Unread(#[from] ReadError),
    /// It was not stored, or may not have been.
    #[error(transparent)]
    Unstored(#[from] writer::Refused),
}

impl RewriteError {
    fn of(self, channel_key: &ChannelKey) -> Self {
        match self {
            Self::Unread(error) => Self::Unread(error.of(channel_key)),
            Self::Unstored(error) => Self::Unstored(error),
        }
    }
}

impl From<WriteError> for RewriteError {
    fn from(lost: WriteError) -> Self {
        Self::Unstored(lost.into())
    }
}

/// Takes messages back: they leave buffers and history, with what was thought and summed up about them. What is not there, or was taken
/// back before, changes nothing. Goes on to its end if whoever asks for it goes away.
///
/// # Errors
/// [`RewriteError`].
pub async fn delete_messages(
    context: &ActorContext,
    channel_key: &ChannelKey,
    messages: &BTreeSet<Seq>,
) -> Result<(), RewriteError> {
    let (context, channel_key, messages) = (context.clone(), channel_key.clone(), messages.clone());
    let deletion = tokio::spawn(async move {
        let deleted = delete_all_traces(&context, &channel_key, &messages).await;
        deleted.map_err(|error| error.of(&channel_key))
    });
    deletion.await.unwrap_or_else(|_| Err(WriteError::Unknown.into()))
}

async fn delete_all_traces(
    context: &ActorContext,
    channel_key: &ChannelKey,
    messages: &BTreeSet<Seq>,
) -> Result<(), RewriteError> {
    let _turn = context.rewrite_locks.of(channel_key).await;
    let reader = Reader::new(&*context.store);
    let messages = still_there(&reader, channel_key, messages).await?;
    let Some(no) = reader.channel_no(channel_key).await?.filter(|_| !messages.is_empty()) else { return Ok(()) };
    // What is noted is taken back at the next start, if this is interrupted.
    let notes = messages.iter().map(|seq| Write::Put(key::index_removal(channel_key.ward(), no, *seq), encode(&())));
    write_meta(context, channel_key.ward(), notes.collect()).await.map_err(|meta_write_error| match meta_write_error {
        MetaWriteError::WriteError(lost) => lost,
        // Nothing of it has to be new.
        MetaWriteError::Exists { .. } => WriteError::Unknown,
    })?;
    let gone = messages.iter().copied().collect();
    let_go(context, channel_key, &gone).await?;
    let told = told_of(&reader, channel_key, &gone).await?;
    if !told.illegible.is_empty() {
        let (guild, channel) = (Plain(channel_key.guild.as_str()), Plain(channel_key.channel.as_str()));
        let entries = told.illegible.len();
        tracing::warn!(%guild, %channel, entries, "entries of this journal cannot be read: whether they tell of what was taken back is not known");
    }
    let unnamed = unnamed(context, channel_key, &gone, &told.asked_at).await?;
    take_messages_out(context, channel_key, &messages, told.bare, unnamed).await
}

/// Has a conversation that is under way let messages go: what it makes of them after this has no words.
///
/// # Errors
/// [`RewriteError`].
pub async fn let_go(context: &ActorContext, channel_key: &ChannelKey, messages: &BTreeSet<Seq>) -> Result<(), RewriteError> {
    Inbound::new(context.clone())
        .accept(channel_key, Event::Deleted { messages: messages.iter().copied().collect() }, None)
        .await?;
    // What it made of them before it heard of this is on record now.
    Ok(drained(context, channel_key).await?)
}

/// Takes words out as [`take_words_out`], of these messages and what tells of them; and whoever said nothing else out of the index of
/// persons.
///
/// # Errors
/// [`RewriteError`].
pub async fn take_messages_out(
    context: &ActorContext,
    channel_key: &ChannelKey,
    messages: &[Seq],
    events: Vec<Recorded>,
    mut writes: Vec<Write>,
) -> Result<(), RewriteError> {
    let left = left_by(&Reader::new(&*context.store), channel_key, messages).await?;
    // That somebody may have nothing left is noted with taking the words out: whoever is interrupted then is done with words, and nothing
    // tells any more who said them.
    writes.extend(left.values().flat_map(|left| &left.notes).map(|note| Write::Put(note.clone(), encode(&()))));
    take_words_out(context, channel_key, events, writes).await?;
    for (stretch, Left { people, notes }) in &left {
        remove_from_index(context, channel_key, Leaving { stretch: *stretch, below: Seq::NONE, people, notes }).await?;
    }
    Ok(())
}

/// What was used at these moments because one of these messages addressed somebody, of nobody.
async fn unnamed(
    context: &ActorContext,
    channel_key: &ChannelKey,
    gone: &BTreeSet<Seq>,
    asked_at: &BTreeSet<Moment>,
) -> Result<Vec<Write>, ReadError> {
    let mut writes = Vec::new();
    for at in asked_at {
        let next = Moment::from_micros(at.as_micros().saturating_add(1));
        let (from, to) = (key::usage_from(&channel_key.guild, *at), key::usage_from(&channel_key.guild, next));
        for (key, value) in context.store.scan(from, to, false, usize::MAX).await? {
            // What cannot be read names nobody that anyone could tell.
            let Ok(record) = decode::<UsageRecord>(&key, &value) else { continue };
            if matches!(&record.used, Used::Address { message, .. } if gone.contains(message))
                && record.channel == channel_key.channel
                && let Some(record) = without_person(&record)
            {
                writes.push(Write::Put(key, encode(&record)));
            }
        }
    }
    Ok(writes)
}

/// Who may have nothing left in a stretch.
#[derive(Default)]
struct Left {
    people: BTreeSet<PersonId>,
    /// Notes that it is to be looked at.
    notes: Vec<Key>,
}

/// Whom these messages leave, by stretch: afterwards nothing tells any more who said them.
async fn left_by(reader: &Reader<'_>, channel_key: &ChannelKey, messages: &[Seq]) -> Result<BTreeMap<Seq, Left>, ReadError> {
    let mut left: BTreeMap<_, Left> = BTreeMap::new();
    let Some(no) = reader.channel_no(channel_key).await? else { return Ok(left) };
    for seq in messages {
        let recorded = reader.event(channel_key, *seq).await?;
        let person = recorded.as_ref().and_then(|recorded| speaker(&recorded.event));
        let Left { people, notes } = left.entry(stretch(*seq)).or_default();
        people.extend(person.map(|id| PersonId::from(&**id)));
        // Of a companion's, too: that it was to be taken back is noted, and no more to be done.
        notes.push(key::index_removal(channel_key.ward(), no, *seq));
    }
    Ok(left)
}

/// Replaces the words of a message that is there and reads otherwise. False: there is none of that number any more.
///
/// # Errors
/// [`RewriteError`].
pub async fn replace_words(
    context: &ActorContext,
    channel_key: &ChannelKey,
    seq: Seq,
    text: Arc<str>,
) -> Result<bool, RewriteError> {
    let _turn = context.rewrite_locks.of(channel_key).await;
    let Some(Recorded { at, handled, turn, event: Event::Said { message, reply_to, reply, said_at }, .. }) =
        Reader::new(&*context.store).event(channel_key, seq).await?
    else {
        return Ok(false);
    };
    if is_redacted(&message) {
        return Ok(false);
    }
    if message.text != text {
        Inbound::new(context.clone()).accept(channel_key, Event::Edited { message: seq, text: text.clone() }, None).await?;
        let event = Event::Said { message: Message { text, ..message }, reply_to, reply, said_at };
        redact_events(context, channel_key, vec![Recorded { seq, at, handled, turn, event }], Vec::new()).await?;
    }
    Ok(true)
}

/// Writes events again without their words, and the snapshot that quotes them, and closes what was set aside of them. The channel has to have
/// heard of it before, and whoever does this has the turn.
///
/// # Errors
/// [`RewriteError`].
pub async fn take_words_out(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: Vec<Recorded>,
    writes: Vec<Write>,
) -> Result<(), RewriteError> {
    take_them_out(context, channel_key, events, writes).await.map_err(|error| error.of(channel_key))
}

async fn take_them_out(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: Vec<Recorded>,
    mut writes: Vec<Write>,
) -> Result<(), RewriteError> {
    // A channel that is awake has let the words go when it answers, and what it wrote before is stored when the writer answers: no
    // snapshot with these words comes after this one.
    drained(context, channel_key).await?;
    writes.extend(bare_snapshot(context, channel_key, &events).await?);
    writes.extend(without_errors(&Reader::new(&*context.store), channel_key, &events).await?);
    // Many words go a bounded part at a time. Whoever is interrupted finds the rest by doing the same again, so what leads there goes last:
    // the messages after all that came of them. What is made from all of them goes first.
    let mut rest = events;
    while rest.len() > MOST_AT_ONCE {
        let newest = rest.split_off(rest.len() - MOST_AT_ONCE);
        redact_events(context, channel_key, newest, std::mem::take(&mut writes)).await?;
    }
    Ok(redact_events(context, channel_key, rest, writes).await?)
}

/// Whether a room has a snapshot that cannot be read: what it holds of anything stays in it.
pub async fn has_illegible_snapshot(store: &dyn Store, channel_key: &ChannelKey) -> Result<bool, ReadError> {
    let Some(no) = Reader::new(store).channel_no(channel_key).await? else { return Ok(false) };
    let key = key::snapshot(channel_key.ward(), no);
    let stored = store.get(key.clone()).await?;
    Ok(stored.is_some_and(|value| decode::<SnapshotRecord>(&key, &value).is_err()))
}

async fn bare_snapshot(
    context: &ActorContext,
    channel_key: &ChannelKey,
    events: &[Recorded],
) -> Result<Option<Write>, ReadError> {
    let Some(no) = Reader::new(&*context.store).channel_no(channel_key).await? else { return Ok(None) };
    let key = key::snapshot(channel_key.ward(), no);
    let Some(value) = context.store.get(key.clone()).await? else { return Ok(None) };
    let mut snapshot: SnapshotRecord = match decode(&key, &value) {
        Ok(snapshot) => snapshot,
        // It shows nobody anything, and keeps nobody from taking back what is on record beside it.
        Err(error) => {
            tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %error, "what a snapshot holds of this stays in it");
            return Ok(None);
        }
    };
    for recorded in events {
        snapshot.conversation.forget_words(recorded);
    }
    Ok(Some(Write::Put(key, encode_snapshot(snapshot.made, &snapshot.conversation))))
}

/// What was set aside of these messages is never handled, and of no use any more: how a handler died can quote what it read.
async fn without_errors(reader: &Reader<'_>, channel_key: &ChannelKey, events: &[Recorded]) -> Result<Vec<Write>, ReadError> {
    let Some(no) = reader.channel_no(channel_key).await? else { return Ok(Vec::new()) };
    let said = events.iter().filter(|recorded| matches!(recorded.event, Event::Said { .. }));
    let gone: BTreeSet<Seq> = said.map(|recorded| recorded.seq).collect();
    let stored = reader.all(key::dead_letters(channel_key.ward(), no)).await?;
    // One that cannot be read shows nobody anything, and keeps nobody from taking back what is beside it.
    let records = stored.iter().filter_map(|(key, value)| decode::<DeadLetterRecord>(key, value).ok());
    let closed = records.filter(|record| gone.contains(&record.seq)).map(|record| DeadLetterRecord {
        error: "".into(),
        is_closed: true,
        ..record
    });
    Ok(closed.map(|record| Write::Put(key::dead_letter(channel_key.ward(), no, record.seq), encode(&record))).collect())
}

/// Those of these messages that still have words, in order. One that cannot be read keeps no other from being taken back.
async fn still_there(reader: &Reader<'_>, channel_key: &ChannelKey, messages: &BTreeSet<Seq>) -> Result<Vec<Seq>, ReadError> {
    let (mut found, mut illegible) = (Vec::new(), None);
    for seq in messages {
        match reader.event(channel_key, *seq).await {
            Ok(Some(Recorded { event: Event::Said { message, .. }, .. })) if !is_redacted(&message) => found.push(*seq),
            Ok(_) => {}
            Err(error @ (ReadError::Record(_) | ReadError::Illegible { .. })) => {
                tracing::warn!(channel = %Plain(channel_key.channel.as_str()), %seq, %error, "a message that is to be taken back cannot be read");
                illegible = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match illegible {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

/// What companions answered to any of these messages, as far as it has words.
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
            match &recorded.event {
                Event::ReplyOwed { ticket, messages: answered, .. } if answered.iter().any(|seq| messages.contains(seq)) => {
                    owed.insert(*ticket);
                }
                Event::Said { reply: Some(ticket), message, .. } if owed.contains(ticket) && !is_redacted(message) => {
                    answers.insert(recorded.seq);
                }
                Event::Said { .. }
                | Event::Edited { .. }
                | Event::Deleted { .. }
                | Event::Joined { .. }
                | Event::Left { .. }
                | Event::Paused { .. }
                | Event::Cleared
                | Event::CaughtUp { .. }
                | Event::JitterDrawn { .. }
                | Event::LullFired { .. }
                | Event::BackOffEnded { .. }
                | Event::DeadlinesExtended { .. }
                | Event::AddressRefused { .. }
                | Event::RoundOpened(_)
                | Event::Evaluated(_)
                | Event::Decided(_)
                | Event::Unanswered { .. }
                | Event::StageChanged { .. }
                | Event::RoundClosed(_)
                | Event::RepetitionAsked { .. }
                | Event::RepetitionJudged { .. }
                | Event::ReplyOwed { .. }
                | Event::ReplyFailed { .. }
                | Event::Summarised { .. } => {}
            }
        }
    }
}

/// What a channel's record tells of messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The events that tell of them, without their words: the messages themselves, what replaced them, what was thought and summed up about
    /// them.
    pub bare: Vec<Recorded>,
    /// When companions were asked because one of them addressed them.
    pub asked_at: BTreeSet<Moment>,
    /// The numbers of what comes after them and cannot be read: it may tell of them, too.
    pub illegible: BTreeSet<Seq>,
}

/// What a channel's record tells of these messages.
pub async fn told_of(reader: &Reader<'_>, channel_key: &ChannelKey, gone: &BTreeSet<Seq>) -> Result<Told, ReadError> {
    const PAGE: usize = 512;
    let Some(first) = gone.first() else { return Ok(Told::default()) };
    let (mut bare, mut asked_at, mut illegible) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut after = Seq(first.0.saturating_sub(1));
    let mut questions = BTreeSet::new();
    let mut said = Vec::new();
    // Whether the summary that prompts show may hold something of them.
    let mut is_summed_up = false;
    loop {
        let page = reader.legible(channel_key, Range { after, before: None, limit: PAGE, newest_first: false }).await?;
        let Some(last) = page.last else { break };
        after = last;
        illegible.extend(page.illegible);
        for recorded in page.events {
            let concerns = match &recorded.event {
                Event::Said { .. } => {
                    said.push(recorded.seq);
                    gone.contains(&recorded.seq)
                }
                Event::Edited { message, .. } => gone.contains(message),
                Event::Evaluated(evaluated) => {
                    if evaluated.trigger == Trigger::DirectAddress && gone.contains(&evaluated.message) {
                        asked_at.insert(recorded.at);
                    }
                    // Its prompt showed the turns before as well.
                    let begun = said.partition_point(|seq| evaluated.messages.first().is_none_or(|first| seq < first));
                    let shown = said[begun.saturating_sub(RECENT_TURNS)..begun].iter().chain(&evaluated.messages);
                    if is_summed_up || shown.into_iter().any(|seq| gone.contains(seq)) {
                        questions.insert(evaluated.ticket);
                    }
                    false
                }
                Event::Decided(decided) => {
                    decided.ticket.is_some_and(|ticket| questions.contains(&ticket))
                        || decided.messages.iter().any(|seq| gone.contains(seq))
                }
                // A summary holds what came before it, and what an earlier summary held.
                Event::Summarised { upto, .. } => {
                    is_summed_up |= upto >= first;
                    upto >= first
                }
                Event::RepetitionJudged { message, .. } => {
                    let judged = said.partition_point(|seq| seq <= message);
                    said[judged.saturating_sub(JUDGED_MESSAGES)..judged].iter().any(|seq| gone.contains(seq))
                }
                Event::Deleted { .. }
                | Event::Joined { .. }
                | Event::Left { .. }
                | Event::Paused { .. }
                | Event::Cleared
                | Event::CaughtUp { .. }
                | Event::JitterDrawn { .. }
                | Event::LullFired { .. }
                | Event::BackOffEnded { .. }
                | Event::DeadlinesExtended { .. }
                | Event::AddressRefused { .. }
                | Event::RoundOpened(_)
                | Event::Unanswered { .. }
                | Event::StageChanged { .. }
                | Event::RoundClosed(_)
                | Event::RepetitionAsked { .. }
                | Event::ReplyOwed { .. }
                | Event::ReplyFailed { .. } => false,
            };
            let without = redact(&recorded);
            if concerns && without != recorded {
                bare.push(without);
            }
        }
    }
    Ok(Told { bare, asked_at, illegible })
}
