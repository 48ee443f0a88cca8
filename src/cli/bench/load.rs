//! Says things at a rate that does not depend on how quickly they are taken, and measures from when they were to be said.
//!
//! In such an open loop what waits behind something slow counts as slow too; a loop that says the next thing once the last one was taken
//! would leave that out.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hdrhistogram::Histogram;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::talk::{Said, Talk};

/// Three digits of every time are kept.
pub(super) const DIGITS: u8 = 3;
/// What is not answered so long after the last was said is given up.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(30);

/// How quickly things are said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// So many a second, whatever comes of them.
    Rate(f64),
    /// As many as are taken, so many on their way at a time. Times say little then.
    FlatOut(NonZeroUsize),
}

/// What came of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is on record.
    Accepted,
    /// There was too much to do.
    Refused,
    /// Something else went wrong.
    Failed,
}

/// Whoever is talked to.
pub(super) trait Listener {
    /// Takes something in.
    fn take(&self, said: Said) -> impl Future<Output = Fate>;
}

/// Microseconds of what was accepted since somebody looked last. Cloned, it is the same.
#[derive(Clone, Debug)]
pub(super) struct Recent(Arc<Mutex<Histogram<u64>>>);

impl Default for Recent {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(times())))
    }
}

impl Recent {
    fn note(&self, micros: u64) {
        // It grows with what it is given; nothing takes so long that there would be no room for it.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).record(micros);
    }

    /// Takes what there is.
    pub(super) fn take(&self) -> Histogram<u64> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), times())
    }
}

fn times() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("three digits are few enough")
}

/// What came of it all.
pub(super) struct Taken {
    /// Microseconds from when each accepted message was to be said.
    pub times: Histogram<u64>,
    pub said: u64,
    pub accepted: u64,
    pub refused: u64,
    pub failed: u64,
    /// From the first message to the last answer.
    pub took: Duration,
    recent: Recent,
}

impl Taken {
    fn new(recent: &Recent) -> Self {
        Self { times: times(), said: 0, accepted: 0, refused: 0, failed: 0, took: Duration::ZERO, recent: recent.clone() }
    }

    fn note(&mut self, due: Instant, fate: Fate) {
        match fate {
            Fate::Accepted => {
                self.accepted += 1;
                let micros = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
                // As above.
                let _ = self.times.record(micros);
                self.recent.note(micros);
            }
            Fate::Refused => self.refused += 1,
            Fate::Failed => self.failed += 1,
        }
    }
}

/// Talks for so long.
pub(super) async fn talk(listener: &impl Listener, talk: &mut Talk, pace: Pace, span: Duration, recent: &Recent) -> Taken {
    let began = Instant::now();
    let taken = Taken::new(recent);
    let mut taken = match pace {
        Pace::Rate(rate) => at_a_rate(listener, talk, rate, span, taken).await,
        Pace::FlatOut(width) => flat_out(listener, talk, width, span, taken).await,
    };
    taken.took = began.elapsed();
    taken
}

async fn at_a_rate(listener: &impl Listener, talk: &mut Talk, rate: f64, span: Duration, mut taken: Taken) -> Taken {
    let mut moments = moments(rate, span);
    let mut under_way = FuturesUnordered::new();
    let mut is_over = false;
    let mut give_up = std::pin::pin!(tokio::time::sleep(span + GIVEN_UP_AFTER));
    while !is_over || !under_way.is_empty() {
        tokio::select! {
            due = moments.recv(), if !is_over => match due {
                Some(due) => {
                    taken.said += 1;
                    let answer = listener.take(talk.next());
                    under_way.push(async move { (due, answer.await) });
                }
                None => is_over = true,
            },
            Some((due, fate)) = under_way.next(), if !under_way.is_empty() => taken.note(due, fate),
            () = &mut give_up => break,
        }
    }
    taken.failed += under_way.len() as u64;
    taken
}

/// When something is to be said, told at that moment: by a thread, since the runtime's timers know whole milliseconds only.
fn moments(rate: f64, span: Duration) -> mpsc::UnboundedReceiver<Instant> {
    let (tell, told) = mpsc::unbounded_channel();
    let began = Instant::now();
    std::thread::spawn(move || {
        let all = (rate * span.as_secs_f64()) as u64;
        for number in 0..all {
            let due = began + Duration::from_secs_f64(number as f64 / rate);
            #[expect(clippy::disallowed_methods, reason = "here it is said by the clock alone, and by nothing that happens")]
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if tell.send(due).is_err() {
                return;
            }
        }
    });
    told
}

async fn flat_out(listener: &impl Listener, talk: &mut Talk, width: NonZeroUsize, span: Duration, mut taken: Taken) -> Taken {
    let began = Instant::now();
    let mut under_way = FuturesUnordered::new();
    loop {
        while under_way.len() < width.get() && began.elapsed() < span {
            taken.said += 1;
            let (due, answer) = (Instant::now(), listener.take(talk.next()));
            under_way.push(async move { (due, answer.await) });
        }
        match under_way.next().await {
            Some((due, fate)) => taken.note(due, fate),
            None => return taken,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::Notify;

    use super::*;

    /// Takes the first thing only once the last was said.
    struct Slow {
        all: u64,
        heard: Cell<u64>,
        go_on: Notify,
    }

    impl Listener for Slow {
        async fn take(&self, _: Said) -> Fate {
            self.heard.set(self.heard.get() + 1);
            match self.heard.get() {
                1 => self.go_on.notified().await,
                heard if heard == self.all => self.go_on.notify_one(),
                _ => {}
            }
            Fate::Accepted
        }
    }

    #[tokio::test]
    async fn who_talks_does_not_wait_for_who_listens() {
        let slow = Slow { all: 50, heard: Cell::new(0), go_on: Notify::new() };
        let mut people = Talk::new(1, 1, Vec::new());

        let taken = talk(&slow, &mut people, Pace::Rate(1_000.0), Duration::from_millis(50), &Recent::default()).await;

        assert_eq!((taken.said, taken.accepted, taken.failed), (50, 50, 0));
        // It was to be said at the very beginning.
        assert!(taken.times.max() >= 49_000, "{}", taken.times.max());
    }

    #[tokio::test]
    async fn flat_out_there_are_never_more_on_their_way() {
        struct Narrow(Cell<usize>, Cell<usize>);
        impl Listener for Narrow {
            async fn take(&self, _: Said) -> Fate {
                self.0.set(self.0.get() + 1);
                self.1.set(self.1.get().max(self.0.get()));
                tokio::task::yield_now().await;
                self.0.set(self.0.get() - 1);
                Fate::Refused
            }
        }
        let narrow = Narrow(Cell::new(0), Cell::new(0));
        let width = NonZeroUsize::new(3).expect("it is not 0");

        let taken =
            talk(&narrow, &mut Talk::new(1, 1, Vec::new()), Pace::FlatOut(width), Duration::from_millis(5), &Recent::default())
                .await;

        assert_eq!((narrow.1.get(), taken.refused), (3, taken.said));
    }
}
