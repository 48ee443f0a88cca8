//! Counts how often a message killed its handler, decides when it becomes a dead letter, and records it.

use std::collections::VecDeque;

use crate::actors::runtime::context::ActorContext;
use crate::actors::writer::requests::write_meta;
use crate::domain::id::{ChannelId, Seq};
use crate::journal::channel_key::ChannelKey;
use crate::journal::key;
use crate::journal::reader::Reader;
use crate::journal::record::{DeadLetterRecord, encode};
use crate::ports::store::Write;
use crate::telemetry::instruments::NONE;

/// A message becomes a dead letter after this many deaths of its handler.
pub const DEATHS_TO_DEAD_LETTER: u32 = 3;

/// The most suspects. If there are more, the one whose last death is the oldest is dropped.
const MAX_SUSPECTS: usize = 1_024;

/// The messages that killed a handler and are not dead letters yet, with the number of these deaths. The newest death is the
/// last.
#[derive(Debug, Default)]
pub struct Suspects(VecDeque<(ChannelId, Seq, u32)>);

impl Suspects {
    /// Counts a death of the handler of this message. Returns whether the message becomes a dead letter; it is no longer counted
    /// here then.
    pub fn died(&mut self, channel: &ChannelId, seq: Seq) -> bool {
        let known = self.0.iter().position(|(other, number, _)| other == channel && *number == seq);
        let deaths = known.and_then(|at| self.0.remove(at)).map_or(0, |(.., deaths)| deaths) + 1;
        if deaths >= DEATHS_TO_DEAD_LETTER {
            return true;
        }
        if self.0.len() >= MAX_SUSPECTS {
            self.0.pop_front();
        }
        self.0.push_back((channel.clone(), seq, deaths));
        false
    }
}

/// Stores a message as a dead letter. Its channel skips it from its next start on. False: it is unknown whether the dead letter
/// was stored.
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
        context.recorder.instruments().dead_letters.add(1, NONE);
    }
    is_recorded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_kills_three_handlers_becomes_a_dead_letter_and_is_counted_from_zero_when_it_is_retried() {
        let mut suspects = Suspects::default();

        let verdicts = [(); 6].map(|()| suspects.died(&lobby(), Seq(7)));

        assert_eq!(verdicts, [false, false, true, false, false, true]);
    }

    #[test]
    fn each_message_is_counted_separately() {
        let mut suspects = Suspects::default();
        suspects.died(&lobby(), Seq(7));
        suspects.died(&lobby(), Seq(7));

        assert!(!suspects.died(&lobby(), Seq(8)));
        assert!(!suspects.died(&ChannelId::from("console:attic"), Seq(7)));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_suspect_is_dropped() {
        let mut suspects = Suspects::default();
        for seq in [1, 1, 2, 2].into_iter().chain(3..).take(MAX_SUSPECTS + 3) {
            suspects.died(&lobby(), Seq(seq));
        }

        assert!(suspects.died(&lobby(), Seq(2)));
        assert!(!suspects.died(&lobby(), Seq(1)));
    }

    fn lobby() -> ChannelId {
        ChannelId::from("console:lobby")
    }
}
