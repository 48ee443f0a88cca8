//! Reads a conversation's records for folding. From a damaged journal, reads the part before the damage.

use std::collections::BTreeSet;

use super::{Head, Range, ReadError, Reader, entry};
use crate::channel_key::ChannelKey;
use crate::domain::event::{Recorded, order_of_handling};
use crate::domain::id::{Seq, Ticket};
use crate::key;
use crate::ports::store::key::Key;
use crate::record::{OutboxRecord, SnapshotRecord};

/// The most events before a snapshot that are read. A turn in progress is hardly longer.
const EARLIER: usize = 256;

/// The records of a conversation, for folding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    /// The state to begin with. `None`: an empty conversation.
    pub snapshot: Option<SnapshotRecord>,
    /// The newest events that the snapshot contains, oldest first. They are not folded. Empty if the conversation was at rest at
    /// the snapshot.
    pub earlier: Vec<Recorded>,
    /// The events after the snapshot, in the order in which they were handled.
    pub events: Vec<Recorded>,
    /// The number of the journal's last event.
    pub head: Seq,
    /// The replies in the outbox, including those that were cancelled since.
    pub owed: Vec<(Ticket, OutboxRecord)>,
    /// The dead letters. They must not be handled.
    pub skip: BTreeSet<Seq>,
}

/// The records of a conversation, up to the first error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoredSoFar {
    /// The records before the first error.
    pub restored: Restored,
    /// The first error, if any.
    pub wrong: Option<ReadError>,
}

impl Reader<'_> {
    /// Reads the records of a conversation.
    ///
    /// # Errors
    /// [`ReadError::Gap`] if events are missing although no deletion explains it. [`ReadError::Illegible`] if an event or another
    /// record cannot be decoded.
    pub async fn restore(&self, channel_key: &ChannelKey) -> Result<Restored, ReadError> {
        let RestoredSoFar { restored, wrong } = self.restore_so_far(channel_key).await?;
        wrong.map_or(Ok(restored), Err)
    }

    /// Reads the records of a conversation, up to the first error in them.
    ///
    /// # Errors
    /// Returns an error if the store failed.
    pub async fn restore_so_far(&self, channel_key: &ChannelKey) -> Result<RestoredSoFar, ReadError> {
        // If even the head cannot be read, no record before the error is known.
        self.read_so_far(channel_key).await.or_else(|error| match error.of(channel_key) {
            error if error.is_damage() => Ok(RestoredSoFar { restored: Restored::default(), wrong: Some(error) }),
            error => Err(error),
        })
    }

    async fn read_so_far(&self, channel_key: &ChannelKey) -> Result<RestoredSoFar, ReadError> {
        loop {
            let head = self.head(channel_key).await?;
            let so_far = self.restore_as_of(channel_key, &head).await?;
            // In the meantime, the low-water mark may have been raised, with a snapshot that needs no event below it. Or the
            // journal may have grown, with a newer snapshot.
            let is_outdated = |now: Head| now.lowest > head.lowest || now.last > head.last;
            if !matches!(so_far.wrong, Some(ReadError::Gap { .. })) || !is_outdated(self.head(channel_key).await?) {
                return Ok(so_far);
            }
        }
    }

    async fn restore_as_of(&self, channel_key: &ChannelKey, head: &Head) -> Result<RestoredSoFar, ReadError> {
        let Some(no) = head.no else { return Ok(RestoredSoFar::default()) };
        let ward = channel_key.ward();
        let mut wrong = None;
        let snapshot: Option<SnapshotRecord> = match self.record(key::snapshot(ward, no)).await {
            // Without the snapshot, the starting point is unknown.
            Err(error @ ReadError::Record(_)) => {
                let restored = Restored { head: head.last, ..Restored::default() };
                return Ok(RestoredSoFar { restored, wrong: Some(error.of(channel_key)) });
            }
            read => read?,
        };
        let (handled, made) = snapshot.as_ref().map_or((Seq::NONE, Seq::NONE), |snapshot| (snapshot.handled, snapshot.made));
        let newest = handled.max(made);
        if newest > head.last {
            // New events would get numbers that the snapshot contains already.
            let wrong = Some(gap(channel_key, head.last.next(), newest.next()));
            return Ok(RestoredSoFar { restored: Restored { head: head.last, ..Restored::default() }, wrong });
        }
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
            // The gap ends before this event.
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

        let skip = or_default_if_damaged(channel_key, self.dead_letters(ward, no).await, &mut wrong)?
            .into_iter()
            .map(|record| record.seq)
            .collect();
        let earlier = self.earlier(channel_key, snapshot.as_ref()).await?;
        let owed = or_default_if_damaged(channel_key, self.outbox(channel_key).await, &mut wrong)?;
        Ok(RestoredSoFar { restored: Restored { snapshot, earlier, events, head: head.last, owed, skip }, wrong })
    }

    /// The events that led to the work in progress when a snapshot was taken.
    async fn earlier(&self, channel_key: &ChannelKey, snapshot: Option<&SnapshotRecord>) -> Result<Vec<Recorded>, ReadError> {
        let Some(snapshot) = snapshot.filter(|snapshot| !snapshot.conversation.is_at_rest()) else { return Ok(Vec::new()) };
        let newest = snapshot.handled.max(snapshot.made);
        let range = Range { after: Seq::NONE, before: Some(newest.next()), limit: EARLIER, newest_first: true };
        // These events are not folded, so unreadable ones can be left out.
        let mut events = self.legible(channel_key, range).await?.events;
        events.retain(|recorded| recorded.seq <= if recorded.event.is_inbound() { snapshot.handled } else { snapshot.made });
        events.reverse();
        Ok(events)
    }
}

fn gap(channel_key: &ChannelKey, expected: Seq, found: Seq) -> ReadError {
    ReadError::Gap { channel_key: channel_key.clone(), expected, found }
}

/// The result of a read. Damaged data counts as the default, and the first such error is stored in `wrong`.
fn or_default_if_damaged<T: Default>(
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
