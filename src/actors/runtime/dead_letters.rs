//! Counts how often one message took its handler down, says when it is to be set aside, and does it.

use std::collections::BTreeMap;

use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{ChannelId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::journal::record::{DeadLetterRecord, encode};
use crate::ports::store::Write;
use crate::telemetry::instruments::NONE;

/// A message that kills its handler so often is set aside.
pub const DEATHS_TO_DEAD_LETTER: u32 = 3;

/// Messages that killed are remembered up to this number; beyond it the one whose last death is the oldest is forgotten.
const MOST_SUSPECTS: usize = 1_024;

/// What to do with a message after its handler died of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Handle it again.
    TryAgain {
        /// Handlers it killed by now.
        deaths: u32,
    },
    /// Set it aside, recorded and shown; it is forgotten here.
    DeadLetter,
}

/// The messages under suspicion.
#[derive(Debug)]
pub struct Suspects {
    limit: u32,
    capacity: usize,
    deaths: BTreeMap<(ChannelId, Seq), Suspect>,
    by_age: BTreeMap<u64, (ChannelId, Seq)>,
    clock: u64,
}

#[derive(Debug)]
struct Suspect {
    deaths: u32,
    age: u64,
}

impl Default for Suspects {
    fn default() -> Self {
        Self::new(DEATHS_TO_DEAD_LETTER, MOST_SUSPECTS)
    }
}

impl Suspects {
    /// None yet; a message is set aside at `limit` deaths (at least 1), and `capacity` of them are remembered (at least 1).
    pub fn new(limit: u32, capacity: usize) -> Self {
        Self { limit: limit.max(1), capacity: capacity.max(1), deaths: BTreeMap::new(), by_age: BTreeMap::new(), clock: 0 }
    }

    /// A handler died while it was at this message.
    pub fn died(&mut self, channel: &ChannelId, seq: Seq) -> Verdict {
        let key = (channel.clone(), seq);
        let deaths = self.take(&key) + 1;
        if deaths >= self.limit {
            return Verdict::DeadLetter;
        }
        if self.deaths.len() >= self.capacity
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.deaths.remove(&oldest);
        }
        self.clock += 1;
        self.by_age.insert(self.clock, key.clone());
        self.deaths.insert(key, Suspect { deaths, age: self.clock });
        Verdict::TryAgain { deaths }
    }

    /// The message was handled after all.
    pub fn handled(&mut self, channel: &ChannelId, seq: Seq) {
        // Nearly always nobody is under suspicion: this runs for every message.
        if !self.deaths.is_empty() {
            self.take(&(channel.clone(), seq));
        }
    }

    /// How many messages are under suspicion.
    pub fn len(&self) -> usize {
        self.deaths.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.deaths.is_empty()
    }

    fn take(&mut self, key: &(ChannelId, Seq)) -> u32 {
        self.deaths.remove(key).map_or(0, |suspect| {
            self.by_age.remove(&suspect.age);
            suspect.deaths
        })
    }
}

/// Sets a message aside: its channel passes it over from its next start on. False: it is not certain that this is on record.
pub async fn put(context: &ActorContext, channel_key: &ChannelKey, seq: Seq, error: &str) -> bool {
    let Ok(Some(no)) = Reader::new(&*context.store).channel_no(channel_key).await else { return false };
    let record = DeadLetterRecord {
        guild: channel_key.guild.clone(),
        channel: channel_key.channel.clone(),
        seq,
        at: context.clock.now(),
        deaths: DEATHS_TO_DEAD_LETTER,
        error: error.into(),
        is_closed: false,
    };
    let ward = channel_key.ward();
    let is_dead_letter =
        write_meta(context, ward, vec![Write::Put(key::dead_letter(ward, no, seq), encode(&record))]).await.is_ok();
    if is_dead_letter {
        context.recorder.instruments().messages_set_aside.add(1, NONE);
    }
    is_dead_letter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_kills_three_handlers_is_set_aside() {
        let mut suspects = Suspects::default();

        let verdicts = [(); 3].map(|()| suspects.died(&lobby(), Seq(7)));

        assert_eq!(verdicts, [Verdict::TryAgain { deaths: 1 }, Verdict::TryAgain { deaths: 2 }, Verdict::DeadLetter]);
        assert!(suspects.is_empty());
    }

    #[test]
    fn messages_are_counted_apart() {
        let mut suspects = Suspects::default();
        suspects.died(&lobby(), Seq(7));
        suspects.died(&lobby(), Seq(7));

        assert_eq!(suspects.died(&lobby(), Seq(8)), Verdict::TryAgain { deaths: 1 });
        assert_eq!(suspects.died(&ChannelId::from("console:attic"), Seq(7)), Verdict::TryAgain { deaths: 1 });
    }

    #[test]
    fn a_message_that_was_handled_after_all_is_innocent() {
        let mut suspects = Suspects::default();
        suspects.died(&lobby(), Seq(7));
        suspects.died(&lobby(), Seq(7));

        suspects.handled(&lobby(), Seq(7));

        assert!(suspects.is_empty());
        assert_eq!(suspects.died(&lobby(), Seq(7)), Verdict::TryAgain { deaths: 1 });
    }

    #[test]
    fn a_message_retried_by_an_operator_gets_its_chances_again() {
        let mut suspects = Suspects::new(1, 1);

        assert_eq!(suspects.died(&lobby(), Seq(7)), Verdict::DeadLetter);
        assert_eq!(suspects.died(&lobby(), Seq(7)), Verdict::DeadLetter);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_is_forgotten() {
        let mut suspects = Suspects::new(3, 2);
        suspects.died(&lobby(), Seq(1));
        suspects.died(&lobby(), Seq(2));
        suspects.died(&lobby(), Seq(1));

        suspects.died(&lobby(), Seq(3));

        assert_eq!(suspects.len(), 2);
        assert_eq!(suspects.died(&lobby(), Seq(1)), Verdict::DeadLetter);
        assert_eq!(suspects.died(&lobby(), Seq(2)), Verdict::TryAgain { deaths: 1 });
    }

    fn lobby() -> ChannelId {
        ChannelId::from("console:lobby")
    }
}
