//! Exports the record: the events of journals line by line, or a replay script of one room.

mod losses;
mod script;

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::{Map, Value};

use super::ActorBackend;
use super::errors::damaged;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{PersonId, Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::{ExportForm, ExportQuery, Lines, Person};
use crate::ports::backend::stamp::rfc3339;
use crate::ports::store::Store;
use crate::ports::store::key::ChannelNo;

/// Events that are read at once.
const PAGE: usize = 512;
/// How many events a replay script may be made from. It is limited because a script is one document.
const MAX_SCRIPTED: usize = 200_000;

impl ActorBackend {
    pub(super) async fn export_lines(&self, query: ExportQuery) -> Result<Lines, Refused> {
        let channel_keys: VecDeque<ChannelKey> = match &query.room {
            Some(room) => [self.room_to_read(room)?.0].into(),
            None => self
                .context
                .memberships
                .all()
                .iter()
                .map(|(channel, membership)| ChannelKey::new(&membership.guild, channel))
                .collect(),
        };
        match (query.form, channel_keys.front()) {
            (ExportForm::Json, _) => Ok(events(self.context.store.clone(), channel_keys)),
            (ExportForm::Replay, Some(channel_key)) => {
                let range = Range { after: Seq::NONE, before: None, limit: MAX_SCRIPTED + 1, newest_first: false };
                let events = self.reader().events(channel_key, range).await?;
                if events.len() > MAX_SCRIPTED {
                    let detail = format!(
                        "the room has more than {MAX_SCRIPTED} events, which is too much for one script; export it as JSON"
                    );
                    return Err(Refused::TooLarge(detail));
                }
                let script = script::of(channel_key, &events, &self.context.memberships, &self.context.settings);
                Ok(stream::iter([Ok(script.to_string())]).boxed())
            }
            (ExportForm::Replay, None) => Err(Refused::NotFound("there is no room to make a script from".into())),
        }
    }
}

impl ActorBackend {
    /// What a person said, by the index of persons. Deleted messages have no text any more, and are left out. Unreadable entries in the person's
    /// stretches may be the person's: if there are any, the stream ends with an error after all other lines.
    pub(super) async fn export_person_lines(&self, person: &Person) -> Result<Lines, Refused> {
        let id = PersonId::from(&*person.id);
        let (store, ward) = (self.context.store.clone(), Ward::of(&person.guild));
        let listed = self.reader().listed(&person.guild, &id).await?;
        if listed.is_empty() {
            return Err(self.nobody(&person.guild, &id).await);
        }
        let (mut messages, mut illegible, mut nameless) = (Vec::new(), 0, 0);
        let mut unreadable = None;
        for (no, stretches) in &listed {
            let Some(channel_key) = self.named(ward, *no).await? else {
                nameless += 1;
                continue;
            };
            match self.reader().messages_by(ward, *no, stretches.keys(), &id).await {
                Ok(found) => {
                    messages.extend(found.messages.into_iter().map(|seq| (channel_key.clone(), seq)));
                    illegible += found.illegible.len();
                }
                Err(error) if error.is_damage() => drop(unreadable.get_or_insert_with(|| error.of(&channel_key))),
                Err(error) => return Err(error.into()),
            }
        }
        let counted =
            |count: usize, one: &str, many: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {many}") };
        let cannot_be_read = |which: String| {
            format!("{which} where {} said something cannot be read, and may contain messages of this person", person.id)
        };
        let missing = if let Some(error) = unreadable {
            Some(format!("{} said something where {error}", person.id))
        } else if nameless > 0 {
            Some(cannot_be_read(format!("{} without a readable name", counted(nameless, "channel", "channels"))))
        } else {
            (illegible > 0).then(|| cannot_be_read(counted(illegible, "entry", "entries")))
        };
        let missing = missing.map(|missing| Err(damaged(format!("{missing}; the rest is exported"))));
        let lines = stream::iter(messages).filter_map(move |(channel_key, seq)| {
            let store = store.clone();
            async move {
                let line = said_line(&Reader::new(&*store), &channel_key, seq).await;
                line.map_err(Refused::from).transpose()
            }
        });
        Ok(lines.chain(stream::iter(missing)).boxed())
    }
}

impl ActorBackend {
    /// The channel that has this number. None: the record of its name is lost or unreadable.
    pub(super) async fn named(&self, ward: Ward, no: ChannelNo) -> Result<Option<ChannelKey>, Refused> {
        match self.reader().channel_key_of(ward, no).await {
            Err(error) if error.is_damage() => Ok(None),
            channel_key => channel_key.map_err(Refused::from),
        }
    }
}

async fn said_line(reader: &Reader<'_>, channel_key: &ChannelKey, seq: Seq) -> Result<Option<String>, ReadError> {
    let recorded = reader.event(channel_key, seq).await?;
    let has_words = |recorded: &Recorded| matches!(&recorded.event, Event::Said { message, .. } if !is_redacted(message));
    Ok(recorded.filter(has_words).map(|recorded| line(channel_key, &recorded)))
}

/// The events of these journals, one journal after the other.
fn events(store: Arc<dyn Store>, channel_keys: VecDeque<ChannelKey>) -> Lines {
    let reading = Reading { store, channel_keys, after: Seq::NONE, ready: VecDeque::new() };
    let lines = stream::unfold(Some(reading), |reading| async move {
        let mut reading = reading?;
        match reading.next().await {
            Ok(Some(line)) => Some((Ok(line), Some(reading))),
            Ok(None) => None,
            Err(error) => Some((Err(error.into()), None)),
        }
    });
    lines.boxed()
}

struct Reading {
    store: Arc<dyn Store>,
    channel_keys: VecDeque<ChannelKey>,
    after: Seq,
    ready: VecDeque<String>,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<String>, ReadError> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Some(line));
            }
            let Some(channel_key) = self.channel_keys.front() else { return Ok(None) };
            let range = Range { after: self.after, before: None, limit: PAGE, newest_first: false };
            let page = Reader::new(&*self.store).events(channel_key, range).await?;
            self.ready.extend(page.iter().map(|recorded| line(channel_key, recorded)));
            match page.last().filter(|_| page.len() == PAGE) {
                Some(last) => self.after = last.seq,
                None => {
                    self.channel_keys.pop_front();
                    self.after = Seq::NONE;
                }
            }
        }
    }
}

fn line(channel_key: &ChannelKey, recorded: &Recorded) -> String {
    let mut object = Map::new();
    object.insert("guild".into(), channel_key.guild.as_str().into());
    object.insert("channel".into(), channel_key.channel.as_str().into());
    if let Ok(Value::Object(fields)) = serde_json::to_value(recorded) {
        object.extend(fields);
    }
    object.insert("at".into(), rfc3339(recorded.at).into());
    Value::Object(object).to_string()
}
