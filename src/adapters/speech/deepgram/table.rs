//! Maps positions in the sent audio to times. The service counts the audio that it receives. Only speech is sent, so the service's clock stops in
//! pauses.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::moment::Moment;
use crate::ports::audio::{HEARD_FRAME, HEARD_RATE};

/// Audio that begins this close to the end of the previous audio continues it.
const JITTER: Duration = Duration::from_millis(1);
/// The maximum number of gapless spans that are kept.
const MOST_SPANS: usize = 1_024;

/// Audio without a gap.
struct Span {
    /// The position of its first sample.
    offset: u64,
    samples: u64,
    from: Moment,
}

/// The audio that was sent on one connection. Offsets are in samples.
#[derive(Default)]
pub(in crate::adapters::speech) struct Table {
    spans: VecDeque<Span>,
    sent: u64,
}

impl Table {
    /// Records sent audio. `from` is the time of its first sample.
    pub fn push(&mut self, from: Moment, samples: u64) {
        match self.spans.back_mut() {
            Some(last) if from.since(last.end()).max(last.end().since(from)) <= JITTER => last.samples += samples,
            _ => self.spans.push_back(Span { offset: self.sent, samples, from }),
        }
        self.sent += samples;
        if self.spans.len() > MOST_SPANS {
            self.spans.pop_front();
        }
    }

    /// Records sent silence that is not audio of the person.
    pub fn push_silence(&mut self, samples: u64) {
        let end = self.end(self.sent);
        // The silence takes no time: the audio after it has its own time.
        self.spans.push_back(Span { offset: self.sent, samples: 0, from: end });
        self.sent += samples;
    }

    /// The number of samples that were sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// The time of the sample at this offset.
    pub fn begin(&self, offset: u64) -> Moment {
        let next = self.spans.iter().find(|span| offset < span.offset + span.samples);
        next.map_or_else(|| self.end(offset), |span| span.from + duration(offset.saturating_sub(span.offset)))
    }

    /// The end time of the audio before this offset.
    pub fn end(&self, offset: u64) -> Moment {
        let last = self.spans.iter().rev().find(|span| span.offset < offset).or(self.spans.front());
        last.map_or(Moment::ZERO, |span| span.from + duration(offset.saturating_sub(span.offset).min(span.samples)))
    }

    /// The start time of the packet that contains this offset. Repeated audio begins with a packet.
    pub fn packet(&self, offset: u64) -> Moment {
        let begin = self.begin(offset);
        let span = self.spans.iter().find(|span| offset < span.offset + span.samples);
        let into = span.map_or(0, |span| offset.saturating_sub(span.offset) % HEARD_FRAME as u64);
        begin - duration(into)
    }

    /// The offset of the audio from this time.
    pub fn offset(&self, moment: Moment) -> u64 {
        let span = self.spans.iter().rev().find(|span| span.from <= moment).or(self.spans.front());
        span.map_or(0, |span| span.offset + samples(moment.since(span.from)).min(span.samples))
    }

    /// Drops spans that end before this offset.
    pub fn forget(&mut self, before: u64) {
        while self.spans.len() > 1 && self.spans.front().is_some_and(|span| span.offset + span.samples < before) {
            self.spans.pop_front();
        }
    }
}

impl Span {
    fn end(&self) -> Moment {
        self.from + duration(self.samples)
    }
}

/// The duration of this many samples.
pub(in crate::adapters::speech) fn duration(samples: u64) -> Duration {
    Duration::from_micros(samples.saturating_mul(1_000_000) / u64::from(HEARD_RATE))
}

/// The number of samples in this duration.
pub(in crate::adapters::speech) fn samples(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).saturating_mul(u64::from(HEARD_RATE)) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_micros(ms * 1_000)
    }

    #[test]
    fn pauses_are_not_in_the_clock_of_the_service() {
        let mut table = Table::default();
        // 1.0 to 1.5 s, and 9.0 to 9.5 s.
        for packet in 0..25 {
            table.push(at(1_000 + packet * 20), 320);
        }
        table.push(at(9_000), 8_000);

        assert_eq!(table.sent(), 16_000);
        assert_eq!((table.begin(0), table.begin(4_000), table.end(4_000)), (at(1_000), at(1_250), at(1_250)));
        // Where the pause is, audio ends at another moment than audio begins.
        assert_eq!((table.end(8_000), table.begin(8_000)), (at(1_500), at(9_000)));
        assert_eq!((table.end(16_000), table.begin(16_000), table.begin(99_000)), (at(9_500), at(9_500), at(9_500)));
        assert_eq!((table.offset(at(1_250)), table.offset(at(5_000)), table.offset(at(9_250))), (4_000, 8_000, 12_000));
        assert_eq!((table.packet(4_100), table.packet(8_100)), (at(1_240), at(9_000)));
    }

    #[test]
    fn silence_that_nobody_said_takes_no_time() {
        let mut table = Table::default();
        table.push(at(1_000), 8_000);
        table.push_silence(1_280);
        table.push(at(3_000), 8_000);

        assert_eq!((table.end(8_700), table.begin(8_700), table.begin(9_280)), (at(1_500), at(3_000), at(3_000)));
        assert_eq!(table.offset(at(2_000)), 8_000);
    }

    #[test]
    fn what_is_forgotten_does_not_change_the_rest() {
        let mut table = Table::default();
        assert_eq!((table.begin(7), table.end(7), table.offset(at(7))), (at(0), at(0), 0));
        for second in 0..5_000 {
            table.push(at(second * 1_000), 320);
        }
        table.forget(4_999 * 320 + 1);

        assert_eq!((table.spans.len(), table.begin(4_999 * 320)), (1, at(4_999_000)));
    }
}
