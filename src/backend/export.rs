//! Exports the events of journals, line by line.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use serde_json::{Map, Value};

use super::ActorBackend;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Seq, Ward};
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::redaction::is_redacted;
use crate::ports::backend::Refused;
use crate::ports::backend::keeping::Lines;
use crate::ports::backend::stamp::rfc3339;
use crate::ports::store::Store;
use crate::ports::store::key::ChannelNo;

/// Events that are read at once.
const PAGE: usize = 512;
impl ActorBackend {
    /// The channel that has this number. None: the record of its name is lost or unreadable.
    pub(super) async fn named(&self, ward: Ward, no: ChannelNo) -> Result<Option<ChannelKey>, Refused> {
        match self.reader().channel_key_of(ward, no).await {
            Err(error) if error.is_damage() => Ok(None),
            channel_key => channel_key.map_err(Refused::from),
        }
    }
}

pub(super) async fn said_line(reader: &Reader<'_>, channel_key: &ChannelKey, seq: Seq) -> Result<Option<String>, ReadError> {
    let recorded = reader.event(channel_key, seq).await?;
    let has_words = |recorded: &Recorded| matches!(&recorded.event, Event::Said { message, .. } if !is_redacted(message));
    Ok(recorded.filter(has_words).map(|recorded| line(channel_key, &recorded)))
}

/// The events of these journals, one journal after the other.
pub(super) fn events(store: Arc<dyn Store>, channel_keys: VecDeque<ChannelKey>) -> Lines {
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
