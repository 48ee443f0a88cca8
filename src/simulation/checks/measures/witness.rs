//! Who died while something was on its way, and cannot have told of it.
//!
//! Time stands still while anybody has something to do: whoever is there when a group is committed has handled that before the next moment.
//! So nothing excuses a count but an end between the moment that something can have been handed to the writer and that of its commit.

use std::time::Duration;

use super::super::super::book::{Kept, OnItsWay};
use super::super::super::ends::{End, Who};
use super::super::super::life::Props;
use super::super::super::store::Committed;
use crate::journal::channel_key::ChannelKey;

pub(super) struct Witness {
    /// Which life of the process it is.
    pub(super) life: u64,
    /// When it was over, if it is.
    over: Option<Duration>,
    /// Who ended in it.
    ends: Vec<End>,
}

impl Witness {
    pub(super) fn of(props: &Props, over: Option<Duration>) -> Self {
        let life = props.stage.life();
        let ends = props.store.ends.all().into_iter().filter(|end| end.life == life).collect();
        Self { life, over, ends }
    }

    /// It is of this life, and whoever wrote it was told.
    pub(super) const fn is_of(&self, entry: &Committed) -> bool {
        entry.life == self.life && entry.is_answered
    }

    /// As above.
    pub(super) const fn keeps(&self, kept: &Kept) -> bool {
        kept.life == self.life && kept.is_answered
    }

    /// The writer that handed it to the store lived to tell of it.
    pub(super) fn has_writer_told(&self, at: Duration, on_its_way: OnItsWay) -> bool {
        self.went_on(at) && !self.has_ended(&Who::Writer, on_its_way.asked, at)
    }

    /// The channel that made it, or its delivery, which takes it along, lived to tell of it.
    pub(super) fn has_channel_told(&self, channel_key: &ChannelKey, at: Duration, on_its_way: OnItsWay) -> bool {
        self.went_on(at) && self.lived_through(channel_key, on_its_way.since, at)
    }

    /// The channel was the same all the time.
    pub(super) fn lived_through(&self, channel_key: &ChannelKey, from: Duration, to: Duration) -> bool {
        !self.has_ended(&Who::Channel(channel_key.channel.clone()), from, to)
    }

    /// The process was not over at this moment.
    pub(super) fn went_on(&self, at: Duration) -> bool {
        self.over.is_none_or(|over| at < over)
    }

    pub(super) fn ends_of<'a>(&'a self, who: &'a Who) -> impl Iterator<Item = Duration> + 'a {
        self.ends.iter().filter(move |end| end.who == *who).map(|end| end.at)
    }

    fn has_ended(&self, who: &Who, from: Duration, to: Duration) -> bool {
        self.ends_of(who).any(|at| from <= at && at <= to)
    }
}
