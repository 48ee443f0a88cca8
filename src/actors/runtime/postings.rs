//! The parts of statements that are being posted, so that a server that stops in order waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Counts what is being posted. Once it is closed, nothing more is.
#[derive(Clone, Debug)]
pub struct Postings(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    count: usize,
}

/// Something that is being posted, until its result is on record.
#[derive(Debug)]
pub struct Posting(Postings);

impl Default for Postings {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl Postings {
    /// Begins to post. `None`: the server stops.
    pub fn begin(&self) -> Option<Posting> {
        let is_begun = self.0.send_if_modified(|state| {
            state.count += usize::from(!state.is_closed);
            !state.is_closed
        });
        is_begun.then(|| Posting(self.clone()))
    }

    /// Lets nothing more begin, and waits for what has. What takes longer is looked up by whoever posts next.
    pub async fn close(&self, at_most: Duration) {
        let mut states = self.0.subscribe();
        self.0.send_modify(|state| state.is_closed = true);
        if timeout(at_most, states.wait_for(|state| state.count == 0)).await.is_err() {
            tracing::info!("a platform has not answered yet; whether it posted a part is looked up after the next start");
        }
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_has_begun_is_waited_for_and_nothing_more_begins() {
        let postings = Postings::default();
        let posting = postings.begin().unwrap();
        let closing = tokio::spawn({
            let postings = postings.clone();
            async move { postings.close(Duration::from_secs(3)).await }
        });
        tokio::task::yield_now().await;

        let late = postings.begin().is_none();
        let waits = !closing.is_finished();
        drop(posting);
        closing.await.unwrap();

        assert!(late && waits);
    }

    #[tokio::test(start_paused = true)]
    async fn a_platform_that_does_not_answer_is_not_waited_for_any_longer() {
        let postings = Postings::default();
        let _posting = postings.begin();
        let began = tokio::time::Instant::now();

        postings.close(Duration::from_secs(3)).await;

        assert_eq!(began.elapsed(), Duration::from_secs(3));
    }
}
