//! Taking out of the record everything that a person said.

use std::collections::BTreeSet;

use super::ActorHouse;
use super::desk::{not_rewritten, unread};
use crate::actors::reaching::unlist;
use crate::actors::retention::without_person;
use crate::actors::taking_back::{answers_to, still_there, take_words_out, told_of};
use crate::domain::event::Event;
use crate::domain::id::{GuildId, PersonId, Seq, Ward};
use crate::journal::key;
use crate::journal::place::Place;
use crate::journal::record::{SetAsideRecord, UsageRecord, Used, decode, encode};
use crate::ports::house::Refused;
use crate::ports::house::keeping::{Forget, Forgotten};
use crate::ports::store::key::Key;
use crate::ports::store::{Value, Write};

/// So many records are read at once.
const PAGE: usize = 512;

impl ActorHouse {
    pub(super) async fn forget_person(&self, forget: Forget) -> Result<Forgotten, Refused> {
        let Forget { guild, person, answers } = forget;
        let person = PersonId::from(&*person);
        let ward = Ward::of(&guild);
        let listed = self.reader().listed(&guild, &person).await.map_err(unread)?;
        let said = self.reader().said_in(ward, &listed, &person).await.map_err(unread)?;
        let channels: BTreeSet<_> = listed.iter().map(|(no, _)| *no).collect();
        let is_unknown = channels.is_empty();
        let mut forgotten = Forgotten::default();
        for no in channels {
            let mut gone: BTreeSet<Seq> = said.iter().filter(|(known, _)| *known == no).map(|(_, seq)| *seq).collect();
            let Some(record) = self.reader().channel_of(ward, no).await.map_err(unread)? else { continue };
            let place = Place::new(&record.guild, &record.channel);
            if answers {
                gone.extend(answers_to(&self.reader(), &place, &gone).await.map_err(unread)?);
            }
            self.forget_in(&place, gone, &mut forgotten).await?;
            // Last of all: whoever is interrupted finds the rest by doing the same again.
            for (_, stretch) in listed.iter().filter(|(known, _)| *known == no) {
                unlist(&self.kit, &place, *stretch, &BTreeSet::from([person.clone()]))
                    .await
                    .map_err(|lost| not_rewritten(lost.into()))?;
            }
        }
        let has_used = self.forget_usage(&guild, &person).await?;
        if is_unknown && !has_used {
            return Err(self.nobody(&guild, &person).await);
        }
        Ok(forgotten)
    }

    async fn forget_in(&self, place: &Place, gone: BTreeSet<Seq>, forgotten: &mut Forgotten) -> Result<(), Refused> {
        let _turn = self.kit.rewriting.of(place).await;
        let still_there = still_there(&self.reader(), place, &gone).await.map_err(unread)?;
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
        let writes = self.without_errors(place, &gone).await?;
        take_words_out(&self.kit, place, events, writes).await.map_err(not_rewritten)
    }

    /// What was set aside of these messages is never handled, and of no use any more: how a handler died can quote what it read.
    async fn without_errors(&self, place: &Place, gone: &BTreeSet<Seq>) -> Result<Vec<Write>, Refused> {
        let Some(no) = self.reader().channel_no(place).await.map_err(unread)? else { return Ok(Vec::new()) };
        let records = self.reader().set_aside(place.ward(), no).await.map_err(unread)?;
        let concerned = records.into_iter().filter(|record| gone.contains(&record.seq));
        let closed = concerned.map(|record| SetAsideRecord { error: "".into(), is_closed: true, ..record });
        Ok(closed.map(|record| Write::Put(key::set_aside(place.ward(), no, record.seq), encode(&record))).collect())
    }

    /// True: they were named there.
    async fn forget_usage(&self, guild: &GuildId, person: &PersonId) -> Result<bool, Refused> {
        let (mut from, to) = (key::used_by(guild), key::used_by(guild).end());
        let mut has_used = false;
        loop {
            let page = self.kit.store.scan(from, to.clone(), false, PAGE).await.map_err(|error| unread(error.into()))?;
            let Some((last, _)) = page.last() else { return Ok(has_used) };
            from = key::successor(last);
            let writes = addresses_of(person, page)?;
            if !writes.is_empty() {
                has_used = true;
                self.administer(Ward::of(guild), writes).await?;
            }
        }
    }
}

/// Records of what was used by which this person addressed somebody, of nobody.
fn addresses_of(person: &PersonId, page: Vec<(Key, Value)>) -> Result<Vec<Write>, Refused> {
    let mut writes = Vec::new();
    for (key, value) in page {
        let record: UsageRecord = decode(&key, &value).map_err(|error| unread(error.into()))?;
        if matches!(&record.used, Used::Address { person: by, .. } if by == person)
            && let Some(record) = without_person(&record)
        {
            writes.push(Write::Put(key, encode(&record)));
        }
    }
    Ok(writes)
}
