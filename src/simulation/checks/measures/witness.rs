//! Which actors died before they could count an event that was in flight.
//!
//! Time stands still while any task can run, so a living actor has handled a committed group before the next moment. So a missing count is
//! excused only by an end between the earliest moment at which the event can have been handed to the writer and its commit.

use std::time::Duration;

use super::super::super::book::{CountedWrite, InFlight};
use super::super::super::ends::{End, Watched};
use super::super::super::life::Props;
use super::super::super::store::Committed;
use crate::journal::channel_key::ChannelKey;

pub(super) struct Witness {
    /// The number of the life of the process.
    pub(super) life: u64,
    /// When it ended, if it has.
    over: Option<Duration>,
    /// The actors that ended in it.
    ends: Vec<End>,
}

impl Witness {
    pub(super) fn of(props: &Props, over: Option<Duration>) -> Self {
        let life = props.stage.life();
        let ends = props.store.ends.all().into_iter().filter(|end| end.life == life).collect();
        Self { life, over, ends }
    }

    /// The event is of this life, and its writer got an answer.
    pub(super) const fn is_of(&self, entry: &Committed) -> bool {
        entry.life == self.life && entry.is_answered
    }

    /// The same for a write that is no event.
    pub(super) const fn is_of_write(&self, kept: &CountedWrite) -> bool {
        kept.life == self.life && kept.is_answered
    }

    /// The writer that passed it to the store lived to count it.
    pub(super) fn has_writer_counted(&self, at: Duration, in_flight: InFlight) -> bool {
        self.was_alive(at) && !self.has_ended(&Watched::Writer, in_flight.asked, at)
    }

    /// The channel that made it lived to count it. A delivery ends with its channel.
    pub(super) fn has_channel_counted(&self, channel_key: &ChannelKey, at: Duration, in_flight: InFlight) -> bool {
        self.was_alive(at) && self.survived(channel_key, in_flight.since, at)
    }

    /// The channel did not end in this time.
    pub(super) fn survived(&self, channel_key: &ChannelKey, from: Duration, to: Duration) -> bool {
        !self.has_ended(&Watched::Channel(channel_key.channel.clone()), from, to)
    }

    /// The process was still alive at this moment.
    pub(super) fn was_alive(&self, at: Duration) -> bool {
        self.over.is_none_or(|over| at < over)
    }

    pub(super) fn ends_of<'a>(&'a self, who: &'a Watched) -> impl Iterator<Item = Duration> + 'a {
        self.ends.iter().filter(move |end| end.who == *who).map(|end| end.at)
    }

    fn has_ended(&self, who: &Watched, from: Duration, to: Duration) -> bool {
        self.ends_of(who).any(|at| from <= at && at <= to)
    }
}
