//! Sends messages at a rate that does not depend on how quickly they are accepted, and measures latency from the time when each was due.
//!
//! In such an open loop, a message that waits behind a slow one counts as slow too. A closed loop, which sends the next message once the last
//! one was accepted, would leave that wait out.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::chatter::{Chatter, Message};

/// Significant digits of the times in histograms.
pub(super) const DIGITS: u8 = 3;
/// Messages without an answer count as failed this long after the last message was due.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// When messages are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// This number a second, even if earlier ones are not accepted yet.
    Rate(f64),
    /// As many as are accepted, with this number in flight. Latencies mean little then.
    FlatOut(NonZeroUsize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The message is on record.
    Accepted,
    /// The system was overloaded.
    Refused,
    /// Any other error.
    Failed,
}

/// The system under load.
pub(super) trait Target {
    fn send(&self, message: Message) -> impl Future<Output = Outcome>;
}

/// The latencies in microseconds of messages that were accepted since the last [`take`](Recent::take). Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Recent(Arc<Mutex<Histogram<u64>>>);

impl Default for Recent {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(times())))
    }
}

impl Recent {
    fn record(&self, micros: u64) {
        // The histogram resizes itself. Only a far larger value than any latency here would fail.
        let _ = self.0.lock().record(micros);
    }

    /// Returns the latencies so far, and starts with an empty histogram.
    pub(super) fn take(&self) -> Histogram<u64> {
        std::mem::replace(&mut *self.0.lock(), times())
    }
}

fn times() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("a histogram can have three significant digits")
}

pub(super) struct LoadResult {
    /// Microseconds from the time when each accepted message was due until it was accepted.
    pub times: Histogram<u64>,
    pub said: u64,
    pub accepted: u64,
    pub refused: u64,
    pub failed: u64,
    /// From the first message to the last answer.
    pub took: Duration,
    recent: Recent,
}

impl LoadResult {
    fn new(recent: &Recent) -> Self {
        Self { times: times(), said: 0, accepted: 0, refused: 0, failed: 0, took: Duration::ZERO, recent: recent.clone() }
    }

    fn record_outcome(&mut self, due: Instant, outcome: Outcome) {
        match outcome {
            Outcome::Accepted => {
                self.accepted += 1;
                let micros = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
                // It does not fail: see `Recent::record`.
                let _ = self.times.record(micros);
                self.recent.record(micros);
            }
            Outcome::Refused => self.refused += 1,
            Outcome::Failed => self.failed += 1,
        }
    }
}

/// Sends messages for this duration.
pub(super) async fn apply(
    target: &impl Target,
    chatter: &mut Chatter,
    pace: Pace,
    span: Duration,
    recent: &Recent,
) -> LoadResult {
    let began = Instant::now();
    let result = LoadResult::new(recent);
    let mut result = match pace {
        Pace::Rate(rate) => at_a_rate(target, chatter, rate, span, result).await,
        Pace::FlatOut(width) => flat_out(target, chatter, width, span, result).await,
    };
    result.took = began.elapsed();
    result
}

async fn at_a_rate(target: &impl Target, chatter: &mut Chatter, rate: f64, span: Duration, mut result: LoadResult) -> LoadResult {
    let mut due_times = due_times(rate, span);
    let mut in_flight = FuturesUnordered::new();
    let mut is_over = false;
    let mut give_up = std::pin::pin!(tokio::time::sleep(span + ANSWER_TIMEOUT));
    while !is_over || !in_flight.is_empty() {
        tokio::select! {
            due = due_times.recv(), if !is_over => match due {
                Some(due) => {
                    result.said += 1;
                    let answer = target.send(chatter.next());
                    in_flight.push(async move { (due, answer.await) });
                }
                None => is_over = true,
            },
            Some((due, outcome)) = in_flight.next(), if !in_flight.is_empty() => result.record_outcome(due, outcome),
            () = &mut give_up => break,
        }
    }
    result.failed += in_flight.len() as u64;
    result
}

/// Sends each due time when it is reached. A thread does this, because the runtime's timers have a resolution of a millisecond.
fn due_times(rate: f64, span: Duration) -> mpsc::UnboundedReceiver<Instant> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let began = Instant::now();
    std::thread::spawn(move || {
        let all = (rate * span.as_secs_f64()) as u64;
        for number in 0..all {
            let due = began + Duration::from_secs_f64(number as f64 / rate);
            #[expect(clippy::disallowed_methods, reason = "the load depends on the clock alone, and on no event")]
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if sender.send(due).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn flat_out(
    target: &impl Target,
    chatter: &mut Chatter,
    width: NonZeroUsize,
    span: Duration,
    mut result: LoadResult,
) -> LoadResult {
    let began = Instant::now();
    let mut in_flight = FuturesUnordered::new();
    loop {
        while in_flight.len() < width.get() && began.elapsed() < span {
            result.said += 1;
            let (due, answer) = (Instant::now(), target.send(chatter.next()));
            in_flight.push(async move { (due, answer.await) });
        }
        match in_flight.next().await {
            Some((due, outcome)) => result.record_outcome(due, outcome),
            None => return result,
        }
    }
}
