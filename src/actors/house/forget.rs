//! Taking words out of the record: of a message that was taken back, of everything that a person said.

use std::collections::BTreeSet;

use super::ActorHouse;
use super::desk::unread;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::domain::window::RECENT_TURNS;
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::reader::{Range, ReadError, Reader};
use crate::journal::record::{SnapshotRecord, UsageRecord, Used, decode, encode, encode_snapshot};
use crate::journal::redaction::{is_wordless, without_words};
use crate::ports::house::Refused;
use crate::ports::house::keeping::{Forget, Forgotten};
use crate::ports::store::Write;

impl ActorHouse {
    pub(super) async fn forget_person(&self, forget: Forget) -> Result<Forgotten, Refused> {
        let Forget { guild, person } = forget;
        let person = PersonId::from(&*person);
        let said = self.reader().said_by(&guild, &person).await.map_err(unread)?;
        let ward = Ward::of(&guild);
        let mut channels: Vec<_> = said.iter().map(|(no, _)| *no).collect();
        channels.dedup();
        let mut forgotten = Forgotten::default();
        for no in channels {
            let gone: BTreeSet<Seq> = said.iter().filter(|(known, _)| *known == no).map(|(_, seq)| *seq).collect();
            let index = gone.iter().map(|seq| Write::Remove(key::person(&guild, &person, no, *seq))).collect();
            let Some(record) = self.reader().channel_of(ward, no).await.map_err(unread)? else { continue };
            let place = Place::new(&record.guild, &record.channel);
            self.forget_in(&place, gone, index, &mut forgotten).await?;
        }
        self.forget_usage(&guild, &person).await?;
        Ok(forgotten)
    }

    async fn forget_in(
        &self,
        place: &Place,
        gone: BTreeSet<Seq>,
        index: Vec<Write>,
        forgotten: &mut Forgotten,
    ) -> Result<(), Refused> {
        let still_there = self.with_words(place, &gone).await.map_err(unread)?;
        if !still_there.is_empty() {
            // Conversations that are under way let them go.
            self.accept(place, Event::Deleted { messages: still_there }, None).await?;
        }
        let events = told_of(&self.reader(), place, &gone).await.map_err(unread)?;
        for recorded in &events {
            match &recorded.event {
                Event::Said { .. } => forgotten.messages += 1,
                Event::Decided(_) => forgotten.decisions += 1,
                Event::Summarised { .. } => forgotten.summaries += 1,
                _ => {}
            }
        }
        self.take_words_out(place, events, index).await
    }

    async fn with_words(&self, place: &Place, messages: &BTreeSet<Seq>) -> Result<Vec<Seq>, ReadError> {
        let mut found = Vec::new();
        for seq in messages {
            let recorded = self.reader().event(place, *seq).await?;
            if let Some(Recorded { event: Event::Said { message, .. }, .. }) = recorded
                && !is_wordless(&message)
            {
                found.push(*seq);
            }
        }
        Ok(found)
    }

    /// Writes events again without their words, and the snapshot that quotes them. The channel has to have heard of it before.
    pub(super) async fn take_words_out(
        &self,
        place: &Place,
        events: Vec<Recorded>,
        mut writes: Vec<Write>,
    ) -> Result<(), Refused> {
        // A channel that is awake has let the words go when it answers, and what it wrote before is stored when the scribe answers: no
        // snapshot with these words comes after this one.
        self.look(&place.channel).await;
        self.fence(place).await?;
        if let Some(write) = self.bare_snapshot(place, &events).await.map_err(unread)? {
            writes.push(write);
        }
        self.scrub(place, events, writes).await
    }

    async fn bare_snapshot(&self, place: &Place, events: &[Recorded]) -> Result<Option<Write>, ReadError> {
        let Some(no) = self.reader().channel_no(place).await? else { return Ok(None) };
        let key = key::snapshot(place.ward(), no);
        let Some(value) = self.kit.store.get(key.clone()).await? else { return Ok(None) };
        let mut snapshot: SnapshotRecord = decode(&key, &value)?;
        for recorded in events {
            snapshot.conversation.forget_words(recorded);
        }
        Ok(Some(Write::Put(key, encode_snapshot(snapshot.made, &snapshot.conversation))))
    }

    async fn forget_usage(&self, guild: &GuildId, person: &PersonId) -> Result<(), Refused> {
        let all = self.reader().all(key::used_by(guild)).await.map_err(unread)?;
        let mut writes = Vec::new();
        for (key, value) in all {
            let record: UsageRecord = decode(&key, &value).map_err(|error| unread(error.into()))?;
            if let Used::Address { person: by, message } = &record.used
                && by == person
            {
                let used = Used::Address { person: "".into(), message: *message };
                writes.push(Write::Put(key, encode(&UsageRecord { used, ..record })));
            }
        }
        if writes.is_empty() {
            return Ok(());
        }
        self.administer(Ward::of(guild), writes).await
    }
}

/// The events of a channel that tell of these messages, without their words: the messages themselves, what replaced them, what was thought
/// and summed up about them.
pub(super) async fn told_of(reader: &Reader<'_>, place: &Place, gone: &BTreeSet<Seq>) -> Result<Vec<Recorded>, ReadError> {
    const PAGE: usize = 512;
    let Some(first) = gone.first() else { return Ok(Vec::new()) };
    let mut bare = Vec::new();
    let mut after = Seq(first.0.saturating_sub(1));
    let mut questions = BTreeSet::new();
    let mut said = Vec::new();
    loop {
        let page = reader.events(place, Range { after, before: None, limit: PAGE, newest_first: false }).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        let is_last = page.len() < PAGE;
        for recorded in page {
            let concerns = match &recorded.event {
                Event::Said { .. } => {
                    said.push(recorded.seq);
                    gone.contains(&recorded.seq)
                }
                Event::Edited { message, .. } => gone.contains(message),
                Event::Evaluated(evaluated) => {
                    // Its prompt showed the turns before as well.
                    let begun = said.partition_point(|seq| evaluated.messages.first().is_none_or(|first| seq < first));
                    let shown = said[begun.saturating_sub(RECENT_TURNS)..begun].iter().chain(&evaluated.messages);
                    if shown.into_iter().any(|seq| gone.contains(seq)) {
                        questions.insert(evaluated.ticket);
                    }
                    false
                }
                Event::Decided(decided) => {
                    decided.ticket.is_some_and(|ticket| questions.contains(&ticket))
                        || decided.messages.iter().any(|seq| gone.contains(seq))
                }
                // A summary holds what came before it, and what an earlier summary held.
                Event::Summarised { upto, .. } => upto >= first,
                _ => false,
            };
            let without = without_words(&recorded);
            if concerns && without != recorded {
                bare.push(without);
            }
        }
        if is_last {
            break;
        }
    }
    Ok(bare)
}
