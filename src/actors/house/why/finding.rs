//! Finds the decision that is meant. Every search is bounded, however long a room's past is.

use std::collections::BTreeSet;

use super::super::reading::{Wanted, found};
use super::{Newest, Scene, companions_of};
use crate::domain::event::Recorded;
use crate::domain::id::{CompanionId, Seq};
use crate::domain::moment::Moment;
use crate::journal::reader::{Range, ReadError};
use crate::ports::house::decisions::WhyAt;

/// Events that a search reads at most.
const SEARCHED: usize = 16_384;
/// Events read at once.
const PAGE: usize = 256;
/// What a channel makes bears the channel's time, which may lie behind what was heard before it on record, by so many events at most.
const LAG: u64 = 256;

impl Scene<'_> {
    /// The decision of a companion that is meant.
    pub(super) async fn decision(&self, whose: &CompanionId, at: Option<&WhyAt>) -> Result<Option<Recorded>, ReadError> {
        match at {
            Some(WhyAt::Event(seq)) => self.first_after(*seq, Some(whose)).await,
            _ => Ok(self.newest(&BTreeSet::from([whose.clone()]), at).await?.remove(whose)),
        }
    }

    /// The first decision from this event on: of one companion, or of anybody.
    pub(super) async fn first_after(&self, seq: Seq, whose: Option<&CompanionId>) -> Result<Option<Recorded>, ReadError> {
        let after = Some(Seq(seq.0.saturating_sub(1)));
        let wanted = Wanted { after, before: None, limit: 1, most: SEARCHED };
        let is_its = |recorded: &Recorded| {
            let companions = companions_of(recorded);
            whose.map_or(!companions.is_empty(), |whose| companions.contains(whose))
        };
        let first = |recorded: &Recorded| if is_its(recorded) { vec![recorded.clone()] } else { Vec::new() };
        Ok(found(&self.reader(), &self.place, wanted, first).await?.pop())
    }

    /// The newest decision of each of these, up to a moment or now.
    pub(super) async fn newest(&self, of: &BTreeSet<CompanionId>, at: Option<&WhyAt>) -> Result<Newest, ReadError> {
        let (before, latest) = match at {
            Some(WhyAt::Moment(moment)) => (Some(Seq(self.last_at(*moment).await?.0.saturating_add(LAG))), *moment),
            _ => (None, Moment::from_micros(u64::MAX)),
        };
        let mut newest = Newest::new();
        let mut range = Range { after: Seq::NONE, before, limit: PAGE, newest_first: true };
        let mut read = 0;
        while read < SEARCHED && newest.len() < of.len() {
            let page = self.reader().events(&self.place, range).await?;
            read += page.len();
            range.before = page.last().map(|recorded| recorded.seq);
            let is_last = page.len() < PAGE;
            for recorded in page.into_iter().filter(|recorded| recorded.at <= latest) {
                for companion in companions_of(&recorded).iter().filter(|companion| of.contains(companion)) {
                    newest.entry(companion.clone()).or_insert_with(|| recorded.clone());
                }
            }
            if is_last {
                break;
            }
        }
        Ok(newest)
    }

    /// About the last event at or before a moment, found by halving: what is heard never bears an earlier time than what is on record before.
    async fn last_at(&self, moment: Moment) -> Result<Seq, ReadError> {
        let head = self.reader().head(&self.place).await?;
        let (mut low, mut high) = (head.lowest.max(head.swept_below).max(Seq(1)), head.last.next());
        while low < high {
            let middle = Seq(low.0 + (high.0 - low.0) / 2);
            let range = Range { after: Seq(middle.0 - 1), before: Some(high), limit: 1, newest_first: false };
            match self.reader().events(&self.place, range).await?.pop() {
                Some(recorded) if recorded.at <= moment => low = recorded.seq.next(),
                _ => high = middle,
            }
        }
        Ok(Seq(low.0 - 1))
    }
}
