//! Finds the decision in a query. Every search is bounded, however long a room's history is.

use std::collections::BTreeSet;

use super::{Newest, Scene, companions_of};
use crate::domain::event::Recorded;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::journal::reader::{Range, ReadError};
use crate::ports::backend::decisions::WhyAt;

/// The largest number of events that a search reads.
pub(super) const MAX_SEARCHED: usize = 16_384;
/// The number of events per read.
const PAGE: usize = 256;
/// The number of events that are searched for a readable one, to find the time of the others.
const NEAR: usize = 4;
/// Events of a channel have the channel's time, which may be earlier than that of inbound events before them on record. They are at most this many
/// events out of order.
const LAG: u64 = 256;

/// A search through a room's events, page by page.
pub(super) struct Search {
    range: Range,
    read: usize,
    /// Whether the last page was the end of the record.
    pub(super) is_read: bool,
}

impl Search {
    /// The events after this one, oldest first.
    pub(super) const fn after(seq: Seq) -> Self {
        Self { range: Range { after: seq, before: None, limit: PAGE, newest_first: false }, read: 0, is_read: false }
    }

    const fn newest_first(before: Option<Seq>) -> Self {
        Self { range: Range { after: Seq::NONE, before, limit: PAGE, newest_first: true }, read: 0, is_read: false }
    }

    /// Whether there is no next page.
    pub(super) const fn is_over(&self) -> bool {
        self.is_read || self.read >= MAX_SEARCHED
    }

    /// The readable events of the next page.
    pub(super) async fn next(&mut self, scene: &Scene<'_>) -> Result<Option<Vec<Recorded>>, ReadError> {
        if self.is_over() {
            return Ok(None);
        }
        let page = scene.entries(self.range).await?;
        self.read += page.looked_at();
        self.is_read = page.looked_at() < PAGE;
        match self.range.newest_first {
            true => self.range.before = page.last,
            false => self.range.after = page.last.unwrap_or(self.range.after),
        }
        Ok(Some(page.events))
    }
}

impl Scene<'_> {
    /// The decision of a companion to which the query refers.
    pub(super) async fn decision(&self, companion: &CompanionId, at: Option<&WhyAt>) -> Result<Option<Recorded>, ReadError> {
        match at {
            Some(WhyAt::Event(seq)) => self.first_after(*seq, Some(companion)).await,
            _ => Ok(self.newest(&BTreeSet::from([companion.clone()]), at).await?.remove(companion)),
        }
    }

    /// The first decision from this event on, of one companion or of any.
    pub(super) async fn first_after(&self, seq: Seq, companion: Option<&CompanionId>) -> Result<Option<Recorded>, ReadError> {
        let is_match = |recorded: &Recorded| {
            let companions = companions_of(recorded);
            companion.map_or(!companions.is_empty(), |companion| companions.contains(companion))
        };
        let mut search = Search::after(Seq(seq.0.saturating_sub(1)));
        while let Some(events) = search.next(self).await? {
            if let Some(first) = events.into_iter().find(&is_match) {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// The newest decision of each of these companions, up to a moment or now.
    pub(super) async fn newest(&self, companions: &BTreeSet<CompanionId>, at: Option<&WhyAt>) -> Result<Newest, ReadError> {
        let (before, latest) = match at {
            Some(WhyAt::Moment(moment)) => {
                let end = through_its_millisecond(*moment);
                (Some(Seq(self.last_at(end).await?.0.saturating_add(LAG))), end)
            }
            _ => (None, Moment::from_micros(u64::MAX)),
        };
        let mut newest = Newest::new();
        let mut search = Search::newest_first(before);
        while newest.len() < companions.len()
            && let Some(events) = search.next(self).await?
        {
            for recorded in events.into_iter().filter(|recorded| recorded.at <= latest) {
                for companion in companions_of(&recorded).iter().filter(|companion| companions.contains(companion)) {
                    newest.entry(companion.clone()).or_insert_with(|| recorded.clone());
                }
            }
        }
        Ok(newest)
    }

    /// Approximately the last event at or before a moment, by binary search. That works because an inbound event never has an earlier time than the
    /// events before it on record.
    async fn last_at(&self, moment: Moment) -> Result<Seq, ReadError> {
        let head = self.reader().head(&self.channel_key).await?;
        let (mut low, mut high) = (head.lowest.max(head.swept_below).max(Seq(1)), head.last.next());
        while low < high {
            let middle = Seq(low.0 + (high.0 - low.0) / 2);
            let range = Range { after: Seq(middle.0 - 1), before: Some(high), limit: NEAR, newest_first: false };
            let near = self.entries(range).await?;
            match (near.events.first(), near.last) {
                (Some(recorded), _) if recorded.at <= moment => low = recorded.seq.next(),
                // The times of these events are unknown.
                (None, Some(last)) => low = last.next(),
                _ => high = middle,
            }
        }
        Ok(Seq(low.0 - 1))
    }
}

/// The end of a moment's millisecond. Times are shown rounded down to the millisecond, so a query for such a time means all of that millisecond.
fn through_its_millisecond(moment: Moment) -> Moment {
    let begins = moment.as_micros() / 1_000 * 1_000;
    Moment::from_micros(begins.saturating_add(999))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::backend::stamp::{from_rfc3339, rfc3339};

    #[test]
    fn an_event_is_found_by_the_time_that_is_shown_for_it() {
        for micros in [1_000_000, 1_000_001, 1_000_999] {
            let asked = from_rfc3339(&rfc3339(Moment::from_micros(micros))).unwrap();

            assert_eq!(through_its_millisecond(asked), Moment::from_micros(1_000_999));
        }
        assert_eq!(through_its_millisecond(Moment::ZERO), Moment::from_micros(999));
    }
}
