//! Counts how often a message killed its handler, decides when it becomes a dead letter, and records it.

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

/// A message becomes a dead letter after it has killed its handler this often.
pub const DEATHS_TO_DEAD_LETTER: u32 = 3;

/// How many suspects are remembered. If there are more, the one whose last death is the oldest is dropped.
const MAX_SUSPECTS: usize = 1_024;

/// What to do with a message that killed its handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Handle it again.
    TryAgain {
        /// How many handlers it has killed.
        deaths: u32,
    },
    /// Record it as a dead letter. It is no longer counted here.
    DeadLetter,
}

/// The messages that killed a handler and are not dead letters yet.
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
        Self::new(DEATHS_TO_DEAD_LETTER, MAX_SUSPECTS)
    }
}

impl Suspects {
    /// No suspects. A message becomes a dead letter at `limit` deaths (at least 1). `capacity` suspects are remembered (at least 1).
    pub fn new(limit: u32, capacity: usize) -> Self {
        Self { limit: limit.max(1), capacity: capacity.max(1), deaths: BTreeMap::new(), by_age: BTreeMap::new(), clock: 0 }
    }

    /// A handler died while it handled this message.
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

    /// The message was handled without a crash.
    pub fn handled(&mut self, channel: &ChannelId, seq: Seq) {
        // This runs for every message, and there are hardly ever suspects.
        if !self.deaths.is_empty() {
            self.take(&(channel.clone(), seq));
        }
    }

    /// The number of suspects.
    pub fn len(&self) -> usize {
        self.deaths.len()
    }

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

/// Records a message as a dead letter. Its channel skips it from its next start on. False: it is unknown whether the record was stored.
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
    let is_recorded = write_meta(context, ward, vec![Write::Put(key::dead_letter(ward, no, seq), encode(&record))]).await.is_ok();
    if is_recorded {
        context.recorder.instruments().messages_set_aside.add(1, NONE);
    }
    is_recorded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_kills_three_handlers_becomes_a_dead_letter() {
        let mut suspects = Suspects::default();

        let verdicts = [(); 3].map(|()| suspects.died(&lobby(), Seq(7)));

        assert_eq!(verdicts, [Verdict::TryAgain { deaths: 1 }, Verdict::TryAgain { deaths: 2 }, Verdict::DeadLetter]);
        assert!(suspects.is_empty());
    }

    #[test]
    fn each_message_is_counted_separately() {
        let mut suspects = Suspects::default();
        suspects.died(&lobby(), Seq(7));
        suspects.died(&lobby(), Seq(7));

        assert_eq!(suspects.died(&lobby(), Seq(8)), Verdict::TryAgain { deaths: 1 });
        assert_eq!(suspects.died(&ChannelId::from("console:attic"), Seq(7)), Verdict::TryAgain { deaths: 1 });
    }

    #[test]
    fn a_message_that_was_handled_is_no_longer_a_suspect() {
        let mut suspects = Suspects::default();
        suspects.died(&lobby(), Seq(7));
        suspects.died(&lobby(), Seq(7));

        suspects.handled(&lobby(), Seq(7));

        assert!(suspects.is_empty());
        assert_eq!(suspects.died(&lobby(), Seq(7)), Verdict::TryAgain { deaths: 1 });
    }

    #[test]
    fn a_message_that_an_operator_retries_is_counted_from_zero() {
        let mut suspects = Suspects::new(1, 1);

        assert_eq!(suspects.died(&lobby(), Seq(7)), Verdict::DeadLetter);
        assert_eq!(suspects.died(&lobby(), Seq(7)), Verdict::DeadLetter);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_suspect_is_dropped() {
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
