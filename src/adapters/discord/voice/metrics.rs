//! Adds the counters of a connection to the metrics.

use super::counts::Counts;
use crate::telemetry::instruments::{Instruments, NONE};

/// The metrics of one connection.
pub struct Metrics {
    instruments: Instruments,
    added: Counts,
    /// Packets that were added as lost. Some may have arrived since.
    lost: u64,
}

/// Reads one of the counters.
type Count = fn(&Counts) -> u64;

impl Metrics {
    pub fn new(instruments: Instruments) -> Self {
        Self { instruments, added: Counts::default(), lost: 0 }
    }

    /// Adds the increase since the last call.
    pub fn add(&mut self, counts: &Counts) {
        let before = std::mem::replace(&mut self.added, *counts);
        if before == *counts {
            return;
        }
        let new = |count: Count| count(counts).saturating_sub(count(&before));
        let instruments = &self.instruments;
        let packets: [(_, Count); 5] = [
            ("received", Counts::packets),
            ("late", |counts| counts.late + counts.duplicates),
            ("refused", |counts| counts.plain_refused + counts.unauthenticated),
            ("undecodable", |counts| counts.malformed + counts.undecryptable),
            ("dropped", |counts| counts.unread),
        ];
        for (fate, count) in packets {
            let more = new(count);
            if more > 0 {
                instruments.discord_voice_packets.add(more, [fate]);
            }
        }
        let lost = counts.lost().saturating_sub(self.lost);
        self.lost += lost;
        instruments.discord_voice_packets.add(lost, ["lost"]);
        let frames: [(_, Count); 3] =
            [("sent", |counts| counts.sent), ("held", |counts| counts.held), ("dropped", |counts| counts.frames_dropped)];
        for (fate, count) in frames {
            let more = new(count);
            if more > 0 {
                instruments.discord_voice_frames.add(more, [fate]);
            }
        }
        instruments.discord_voice_encryption_failures.add(new(|counts| counts.dave_failures), NONE);
        instruments.discord_voice_resumes.add(new(|counts| counts.resumes), NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Metrics as Exposed;

    #[test]
    fn what_a_connection_counts_is_added_once_and_a_packet_that_was_overtaken_is_not_lost_again() {
        let exposed = Exposed::local();
        let packets = |fate| exposed.total("tertulia_discord_voice_packets_total", &[("discord_packet_fate", fate)]);
        let mut metrics = Metrics::new(exposed.instruments());
        let mut counts =
            Counts { received: 12, not_audio: 2, missing: 3, unauthenticated: 1, plain_refused: 1, ..Counts::default() };

        metrics.add(&counts);
        metrics.add(&counts);
        (counts.received, counts.overtaken) = (14, 2);
        metrics.add(&counts);
        (counts.missing, counts.dave_failures, counts.resumes) = (4, 1, 2);
        metrics.add(&counts);

        assert_eq!(["received", "lost", "refused", "undecodable"].map(packets), [12.0, 3.0, 2.0, 0.0]);
        let total = |name| exposed.total(name, &[]);
        assert_eq!(total("tertulia_discord_voice_encryption_failures_total"), 1.0);
        assert_eq!(total("tertulia_discord_voice_resumes_total"), 2.0);
    }
}
