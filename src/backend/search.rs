//! Full-text search in a room, for people.

use std::collections::BTreeMap;

use tokio::sync::Semaphore;

use super::ActorBackend;
use super::reading::{history_message, is_shown};
use crate::domain::event::Event;
use crate::domain::id::Seq;
use crate::domain::recall::Corpus;
use crate::journal::channel_key::ChannelKey;
use crate::journal::reader::Range;
use crate::ports::backend::Refused;
use crate::ports::backend::messages::{Found, SearchQuery};

/// The number of events per read.
const PAGE: usize = 512;
/// The most messages that are searched. If there are more, the newest are searched.
const MOST: usize = 200_000;
/// The most memory for the words of messages, in bytes. Beyond it, only the newest messages are searched.
const MOST_BYTES: usize = 64 << 20;
/// The most concurrent searches. Each reads a whole room.
static AT_A_TIME: Semaphore = Semaphore::const_new(2);

impl ActorBackend {
    /// The messages of a room that contain these words in any of their forms, or contain this text; best match first.
    pub(super) async fn search_in(&self, channel_key: &ChannelKey, query: &SearchQuery) -> Result<Found, Refused> {
        let _place = AT_A_TIME.acquire().await.map_err(|_| Refused::unreadable("the searches are closed"))?;
        let (words, needle) = (self.context.recall.words(), query.words.to_lowercase());
        let in_force = self.context.in_force();
        let zone = in_force.prompt.zone_of(&channel_key.guild);
        let wanted = words.query([("", &*query.words)], &[], &self.context.clock.now().zoned(zone));
        let (mut corpus, mut containing) = (Corpus::default(), Vec::new());
        let mut before = None;
        loop {
            let range = Range { after: Seq::NONE, before, limit: PAGE, newest_first: true };
            let page = self.reader().legible(channel_key, range).await?;
            let is_last = page.looked_at() < PAGE;
            before = page.last.or(before);
            let (words, needle) = (words.clone(), needle.clone());
            let work = move || {
                let mut words = words.reader();
                for recorded in page.events.iter().filter(|recorded| is_shown(recorded)) {
                    let Event::Said { message, .. } = &recorded.event else { continue };
                    corpus.push(recorded.seq, recorded.at, &message.from.name, &message.text, &mut words);
                    if message.text.to_lowercase().contains(&needle) || message.from.name.to_lowercase().contains(&needle) {
                        containing.push(corpus.len() - 1);
                    }
                }
                (corpus, containing)
            };
            (corpus, containing) =
                tokio::task::spawn_blocking(work).await.map_err(|_| Refused::unreadable("a search panicked"))?;
            if is_last || corpus.len() >= MOST || corpus.bytes() >= MOST_BYTES {
                break;
            }
        }
        let limit = query.limit;
        let work = move || {
            let scores = corpus.scores(&wanted, &words);
            // Messages with the exact text come before messages with only its words.
            let best = scores.iter().copied().fold(0.0, f32::max) + 1.0;
            let mut found: BTreeMap<usize, f32> = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
            containing.into_iter().for_each(|index| *found.entry(index).or_default() += best);
            let mut found: Vec<(usize, f32)> = found.into_iter().collect();
            // The corpus is sorted from newest to oldest.
            found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let best: Vec<Seq> = found.iter().take(limit).filter_map(|(index, _)| corpus.seq(*index)).collect();
            (best, found.len())
        };
        let (best, count) = tokio::task::spawn_blocking(work).await.map_err(|_| Refused::unreadable("a search panicked"))?;
        let mut messages = Vec::new();
        for seq in best {
            let recorded = self.reader().event(channel_key, seq).await?;
            messages.extend(recorded.as_ref().and_then(history_message));
        }
        Ok(Found { messages, count })
    }
}
