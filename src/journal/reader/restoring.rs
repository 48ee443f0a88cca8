//! What is on record of a conversation, to be folded; and how far that can be read, where it cannot be read to its end.

use std::collections::BTreeSet;

use super::{Head, Range, ReadError, Reader, entry};
use crate::domain::event::{Event, Recorded, order_of_handling};
use crate::domain::id::{CompanionId, Seq, Ticket};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::record::{OutboxRecord, SnapshotRecord};
use crate::ports::store::key::Key;

/// So much is read of what a snapshot contains: a turn that is going on is hardly longer.
const EARLIER: usize = 256;

/// What is on record of a conversation, to be folded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    /// Where to begin; none: with an empty conversation.
    pub snapshot: Option<SnapshotRecord>,
    /// Of a conversation that was not at rest at the snapshot: what the snapshot contains, the newest of it, oldest first. Not to be folded.
    pub earlier: Vec<Recorded>,
    /// What the snapshot does not contain, in the order in which it was handled.
    pub events: Vec<Recorded>,
    /// The number of the journal's last event.
    pub head: Seq,
    /// Who was asked in the newest of its rounds: a round that is open does not say it of those who answered.
    pub asked: Vec<CompanionId>,
    /// Replies owed, those that were dropped meanwhile included.
    pub owed: Vec<(Ticket, OutboxRecord)>,
    /// Events among them that killed their handler and were set aside: they are not to be handled.
    pub skip: BTreeSet<Seq>,
}

/// What is on record of a conversation, as far as it can be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoredSoFar {
    /// What comes before the first thing that is wrong.
    pub restored: Restored,
    /// What is wrong; none: nothing is.
    pub wrong: Option<ReadError>,
}

impl Reader<'_> {
    /// What is on record of a conversation.
    ///
    /// # Errors
    /// [`ReadError::Gap`] when numbers are missing that no deletion explains, [`ReadError::Illegible`] when an entry is not what it should be.
    pub async fn restore(&self, channel_key: &ChannelKey) -> Result<Restored, ReadError> {
        let RestoredSoFar { restored, wrong } = self.restore_so_far(channel_key).await?;
        wrong.map_or(Ok(restored), Err)
    }

    /// What is on record of a conversation, up to the first thing that is wrong with it.
    ///
    /// # Errors
    /// The store's, where it does not answer.
    pub async fn restore_so_far(&self, channel_key: &ChannelKey) -> Result<RestoredSoFar, ReadError> {
        // Where nothing else is known of it, nothing comes before what is wrong.
        self.read_so_far(channel_key).await.or_else(|error| match error.of(channel_key) {
            error if error.is_damage() => Ok(RestoredSoFar { restored: Restored::default(), wrong: Some(error) }),
            error => Err(error),
        })
    }

    async fn read_so_far(&self, channel_key: &ChannelKey) -> Result<RestoredSoFar, ReadError> {
        loop {
            let head = self.head(channel_key).await?;
            let so_far = self.restore_as_of(channel_key, &head).await?;
            // Somebody raised the mark meanwhile, with a snapshot that needs nothing from below.
            let is_outdated =
                matches!(so_far.wrong, Some(ReadError::Gap { .. })) && self.head(channel_key).await?.lowest > head.lowest;
            if !is_outdated {
                return Ok(so_far);
            }
        }
    }

    async fn restore_as_of(&self, channel_key: &ChannelKey, head: &Head) -> Result<RestoredSoFar, ReadError> {
        let Some(no) = head.no else { return Ok(RestoredSoFar::default()) };
        let ward = channel_key.ward();
        let mut wrong = None;
        let snapshot: Option<SnapshotRecord> = match self.record(key::snapshot(ward, no)).await {
            // Without it nobody knows where to begin.
            Err(error @ ReadError::Record(_)) => {
                let restored = Restored { head: head.last, ..Restored::default() };
                return Ok(RestoredSoFar { restored, wrong: Some(error.of(channel_key)) });
            }
            read => read?,
        };
        let (handled, made) = snapshot.as_ref().map_or((Seq::NONE, Seq::NONE), |snapshot| (snapshot.handled, snapshot.made));
        let first = handled.min(made).next().max(head.swept_below);
        let stored = self.collect(Key::event(ward, no, first), Key::event(ward, no, head.last.next()), usize::MAX, false).await?;

        let mut expected = first;
        let mut events = Vec::new();
        for (key, value) in stored {
            let recorded = match entry(channel_key, &key, &value) {
                Ok(recorded) => recorded,
                Err(error) => {
                    wrong = Some(error);
                    break;
                }
            };
            // What is missing is missing up to the event before this one.
            if expected.max(head.lowest) < recorded.seq {
                wrong = Some(gap(channel_key, expected.max(head.lowest), recorded.seq));
                break;
            }
            expected = recorded.seq.next();
            if recorded.seq > if recorded.event.is_inbound() { handled } else { made } {
                events.push(recorded);
            }
        }
        if wrong.is_none() && expected.max(head.lowest) <= head.last {
            wrong = Some(gap(channel_key, expected.max(head.lowest), head.last.next()));
        }
        order_of_handling(&mut events);

        let skip =
            so_far(channel_key, self.dead_letters(ward, no).await, &mut wrong)?.into_iter().map(|record| record.seq).collect();
        let asked = match events.iter().rev().find_map(asked_in) {
            Some(asked) => asked.clone(),
            None => self.asked_before(channel_key, snapshot.as_ref()).await?,
        };
        let earlier = self.earlier(channel_key, snapshot.as_ref()).await?;
        let owed = so_far(channel_key, self.outbox(channel_key).await, &mut wrong)?;
        Ok(RestoredSoFar { restored: Restored { snapshot, earlier, events, head: head.last, asked, owed, skip }, wrong })
    }

    /// What led to what was going on when a snapshot was taken.
    async fn earlier(&self, channel_key: &ChannelKey, snapshot: Option<&SnapshotRecord>) -> Result<Vec<Recorded>, ReadError> {
        let Some(snapshot) = snapshot.filter(|snapshot| !snapshot.conversation.is_at_rest()) else { return Ok(Vec::new()) };
        let newest = snapshot.handled.max(snapshot.made);
        let range = Range { after: Seq::NONE, before: Some(newest.next()), limit: EARLIER, newest_first: true };
        // Nothing is folded of it: what cannot be read of it is left out.
        let mut events = self.legible(channel_key, range).await?.events;
        events.retain(|recorded| recorded.seq <= if recorded.event.is_inbound() { snapshot.handled } else { snapshot.made });
        events.reverse();
        Ok(events)
    }

    /// Who was asked in the round that was open when a snapshot was taken.
    async fn asked_before(
        &self,
        channel_key: &ChannelKey,
        snapshot: Option<&SnapshotRecord>,
    ) -> Result<Vec<CompanionId>, ReadError> {
        let round = snapshot.and_then(|snapshot| Some((snapshot.conversation.round()?, snapshot.made)));
        let Some((round, made)) = round else { return Ok(Vec::new()) };
        let range = Range { after: round.message, before: Some(made.next()), limit: usize::MAX, newest_first: true };
        Ok(self.legible(channel_key, range).await?.events.iter().find_map(asked_in).cloned().unwrap_or_default())
    }
}

fn gap(channel_key: &ChannelKey, expected: Seq, found: Seq) -> ReadError {
    ReadError::Gap { channel_key: channel_key.clone(), expected, found }
}

/// What was read, or nothing where it is not what it should be; the first such error is kept.
fn so_far<T: Default>(
    channel_key: &ChannelKey,
    read: Result<T, ReadError>,
    wrong: &mut Option<ReadError>,
) -> Result<T, ReadError> {
    read.or_else(|error| match error.of(channel_key) {
        error if error.is_damage() => {
            wrong.get_or_insert(error);
            Ok(T::default())
        }
        error => Err(error),
    })
}

fn asked_in(recorded: &Recorded) -> Option<&Vec<CompanionId>> {
    let Event::RoundOpened(opened) = &recorded.event else { return None };
    Some(&opened.asked)
}
