//! Exports the events of journals, line by line, and the messages of a room as a document.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};

use super::ActorBackend;
use super::reading::is_shown;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Seq, Ward};
use crate::domain::message::Role;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::Lines;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::store::Store;
use crate::ports::store::key::ChannelNo;
use crate::story::transcript::{Entry, Transcript};

/// The number of events per read.
const PAGE: usize = 512;
impl ActorBackend {
    /// The channel with this number. `None`: the record of its name is lost or unreadable.
    pub(super) async fn named(&self, ward: Ward, no: ChannelNo) -> Result<Option<ChannelKey>, Refused> {
        match self.reader().channel_key_of(ward, no).await {
            Err(error) if error.is_damage() => Ok(None),
            channel_key => channel_key.map_err(Refused::from),
        }
    }
}

pub(super) async fn said_line(reader: &Reader<'_>, channel_key: &ChannelKey, seq: Seq) -> Result<Option<String>, ReadError> {
    let is_theirs = |recorded: &Recorded| match &recorded.event {
        Event::ReminderSet(set) => !set.is_redacted(),
        _ => is_shown(recorded),
    };
    let recorded = reader.event(channel_key, seq).await?.filter(is_theirs);
    let Some(mut recorded) = recorded else { return Ok(None) };
    if let Event::Said { message, .. } = &mut recorded.event {
        // The quoted text is by another author.
        message.quoted = None;
    }
    line(reader, channel_key, &recorded).await.map(Some)
}

/// The events of these journals, one journal after the other.
pub(super) fn events(store: Arc<dyn Store>, channel_keys: VecDeque<ChannelKey>) -> Lines {
    let reading = Reading { store, channel_keys, after: Seq::NONE, page: VecDeque::new(), is_last: false };
    let lines = stream::try_unfold(reading, |mut reading| async move {
        let line = reading.next().await?;
        Ok::<_, Refused>(line.map(|line| (line, reading)))
    });
    lines.boxed()
}

/// The messages of a room as a document, in pieces.
pub(super) async fn document(
    store: Arc<dyn Store>,
    channel_key: ChannelKey,
    transcript: Transcript,
    head: String,
) -> Result<Lines, ReadError> {
    let (mut edited, mut replaced, mut gone) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut after = Seq::NONE;
    loop {
        let page = Reader::new(&*store).legible(&channel_key, range_after(after)).await?;
        for recorded in &page.events {
            match &recorded.event {
                // The mark of the message tells which of its versions was edited.
                Event::Edited { message, version: Some(_), .. } => drop(edited.remove(message)),
                Event::Edited { message, captions, .. } if captions.is_empty() => drop(edited.insert(*message)),
                Event::ReplyOwed { again: Some(statement), .. } => drop(replaced.insert(*statement)),
                Event::Deleted { messages, replaced: true, .. } => gone.extend(messages.iter().copied()),
                _ => {}
            }
        }
        match page.last {
            Some(last) if page.looked_at() == PAGE => after = last,
            _ => break,
        }
    }
    let (after, is_over) = (Seq::NONE, false);
    let document =
        Document { store, channel_key, transcript, edited, replaced, gone, after, messages: 0, unreadable: 0, is_over };
    let pieces = stream::try_unfold(document, |mut document| async move {
        let pieces = if document.is_over { None } else { Some(document.next().await?) };
        Ok::<_, Refused>(pieces.map(|pieces| (stream::iter(pieces).map(Ok), document)))
    });
    Ok(stream::iter([Ok(head)]).chain(pieces.try_flatten()).boxed())
}

struct Document {
    store: Arc<dyn Store>,
    channel_key: ChannelKey,
    transcript: Transcript,
    edited: BTreeSet<Seq>,
    /// The statements in whose place, or after which, a companion wrote another one. Their words are deleted, and nothing is said of them.
    replaced: BTreeSet<Seq>,
    /// The statements that were replaced. Their words may not be erased yet.
    gone: BTreeSet<Seq>,
    after: Seq,
    messages: usize,
    unreadable: usize,
    is_over: bool,
}

impl Document {
    /// The next messages. At the end of the journal, the end of the document.
    async fn next(&mut self) -> Result<Vec<String>, ReadError> {
        let reader = Reader::new(&*self.store);
        let page = reader.legible(&self.channel_key, range_after(self.after)).await?;
        self.unreadable += page.illegible.len();
        let mut pieces = Vec::new();
        for recorded in &page.events {
            let Event::Said { message, reply_to, said_at, .. } = &recorded.event else { continue };
            if self.gone.contains(&recorded.seq) || is_redacted(message) && self.replaced.contains(&recorded.seq) {
                continue;
            }
            let answered = match reply_to {
                Some(seq) => reader
                    .legible(
                        &self.channel_key,
                        Range { before: Some(seq.next()), limit: 1, ..range_after(Seq(seq.0.saturating_sub(1))) },
                    )
                    .await?
                    .events
                    .pop(),
                None => None,
            };
            let answered = answered.as_ref().and_then(|answered| match &answered.event {
                Event::Said { message, .. } => Some(message),
                _ => None,
            });
            self.messages += usize::from(is_shown(recorded));
            pieces.push(self.transcript.entry(&Entry {
                seq: recorded.seq,
                at: said_at.unwrap_or(recorded.at),
                message,
                is_edited: message.edited || self.edited.contains(&recorded.seq),
                answers: reply_to.map(|seq| (seq, answered)),
            }));
        }
        match page.last {
            Some(last) if page.looked_at() == PAGE => self.after = last,
            _ => {
                self.is_over = true;
                pieces.push(self.transcript.foot(self.messages, self.unreadable));
            }
        }
        Ok(pieces)
    }
}

const fn range_after(after: Seq) -> Range {
    Range { after, before: None, limit: PAGE, newest_first: false }
}

struct Reading {
    store: Arc<dyn Store>,
    channel_keys: VecDeque<ChannelKey>,
    after: Seq,
    /// The events that were read and not returned yet. Their files are read one by one.
    page: VecDeque<Recorded>,
    /// Whether they are the last ones of their journal.
    is_last: bool,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<String>, ReadError> {
        loop {
            let Some(channel_key) = self.channel_keys.front() else { return Ok(None) };
            if let Some(recorded) = self.page.pop_front() {
                return line(&Reader::new(&*self.store), channel_key, &recorded).await.map(Some);
            }
            if std::mem::take(&mut self.is_last) {
                self.channel_keys.pop_front();
                self.after = Seq::NONE;
                continue;
            }
            let page = Reader::new(&*self.store).events(channel_key, range_after(self.after)).await?;
            self.is_last = page.len() < PAGE;
            self.after = page.last().map_or(self.after, |last| last.seq);
            self.page.extend(page);
        }
    }
}

/// An event as a line of JSON, with the bytes of its files.
async fn line(reader: &Reader<'_>, channel_key: &ChannelKey, recorded: &Recorded) -> Result<String, ReadError> {
    let mut object = Map::new();
    object.insert("guild".into(), channel_key.guild.as_str().into());
    object.insert("channel".into(), channel_key.channel.as_str().into());
    if let Ok(Value::Object(fields)) = serde_json::to_value(recorded) {
        object.extend(fields);
    }
    object.insert("at".into(), rfc3339(recorded.at).into());
    if matches!(&recorded.event, Event::Said { message, .. } if message.from.role == Role::Companion) {
        object.insert("ai".into(), true.into());
    }
    if matches!(&recorded.event, Event::Said { message, .. } if message.attachments.iter().any(|file| file.stored().is_some())) {
        let files = reader.files_of(channel_key, recorded.seq).await?;
        let encoded: Vec<_> =
            files.iter().map(|file| json!({ "media_type": file.media_type, "data": STANDARD.encode(&file.bytes) })).collect();
        object.insert("files".into(), encoded.into());
    }
    Ok(Value::Object(object).to_string())
}
